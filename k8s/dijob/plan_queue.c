/*  plan_queue - a job that waits in a queue, or has been let in for a number of pods: who may be made, and what is told. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/rules.h"
#include "k8s/front/kueue.h"

bool plan_waits(const planner_t *self)
{
    return self->view->admission.queue && !self->view->admission.admitted && !self->job->suspend;
}

/*  Why it has no pods, or has some again. Caller frees. */
static char *s_text(const planner_t *self, const char *reason)
{
    const front_admission_t *admission = &self->view->admission;
    const char *name = self->job->meta.name, *words = admission->words ? admission->words : "";
    if (strcmp(reason, PLAN_WAITS) == 0)
        return tt_sprintf(
            "DIJob %s waits for admission in queue %s%s%s", name, admission->queue, *words ? ": " : "", words);
    if (strcmp(reason, "Admitted") == 0)
        return tt_sprintf("DIJob %s is admitted in queue %s", name, admission->queue);
    return tt_sprintf("DIJob %s waits in no queue", name);
}

static void s_waiting(planner_t *self)
{
    const front_admission_t *admission = &self->view->admission;
    const bool waits = plan_waits(self), goes = admission->queue && admission->admitted;
    const char *reason = waits ? PLAN_WAITS : goes ? "Admitted" : "NotQueued";
    char *text = s_text(self, reason);
    if (planner_condition(self, PLAN_WAITS, waits, reason, text))
        planner_event(self, "Normal", reason, "%s", text);
    if (waits)
        self->reason = PLAN_WAITS;
    free(text);
}

/*  The first group of which more are wanted than were admitted; false: there is none. */
static bool s_exceeded(const planner_t *self, const char **group, int64_t *want)
{
    const dijob_t *job = self->job;
    const size_t count = rules_by_tasks(job) ? job->task_count : DIJOB_TASK;
    for (size_t i = 0; i < count; i++) {
        *group = rules_by_tasks(job) ? job->tasks[i].name : dijob_role_label((dijob_role_t)i);
        *want = rules_by_tasks(job) ? job->tasks[i].replicas : rules_min(job, (dijob_role_t)i);
        if (*want > kueue_share(&self->view->admission, *group))
            return true;
    }
    return false;
}

/*  A quota that is reserved cannot grow: who wants more of it has to wait anew, and that is the user's to decide. */
static void s_limited(planner_t *self)
{
    const char *group;
    int64_t want;
    if (!s_exceeded(self, &group, &want)) {
        planner_condition(self, "AdmissionExceeded", false, "Admitted", "");
        return;
    }
    char *text =
        tt_sprintf("%s: %lld replicas are wanted, and queue %s has admitted %lld; they are made after spec.suspend "
                   "was true for a moment, when the job has waited anew",
            group, (long long)want, self->view->admission.queue, (long long)kueue_share(&self->view->admission, group));
    if (planner_condition(self, "AdmissionExceeded", true, "MoreThanAdmitted", text))
        planner_event(self, "Warning", "MoreThanAdmitted", "%s", text);
    free(text);
}

void plan_queue(planner_t *self)
{
    s_waiting(self);
    s_limited(self);
}
