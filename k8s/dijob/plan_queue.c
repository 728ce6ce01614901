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
        draft_event(&self->draft, "Normal", reason, "%s", text);
    if (waits)
        self->reason = PLAN_WAITS;
    free(text);
}

/*  A group of which more are wanted than were admitted. */
typedef struct {
    front_group_t of;
    int64_t share;
    int64_t least; /* its minReplicas; -1 = it has none */
} exceeded_t;

/*  The first; false: there is none. */
static bool s_exceeded(const planner_t *self, exceeded_t *out)
{
    for (size_t i = 0; dijob_front.group_at(self->job, i, &out->of); i++) {
        out->share = kueue_share(&self->view->admission, out->of.name);
        out->least = self->job->tasks_shape ? -1 : self->job->least[i];
        if (out->of.wanted > out->share)
            return true;
    }
    return false;
}

/*  Caller frees. */
static char *s_limit_text(const exceeded_t *group, const char *queue, bool enough)
{
    if (!enough)
        return tt_sprintf("%s: %lld replicas are wanted, and queue %s has admitted %lld; they are made after "
                          "spec.suspend was true for a moment, when the job has waited anew",
            group->of.name, (long long)group->of.wanted, queue, (long long)group->share);
    return tt_sprintf(
        "%s: queue %s has admitted %lld of %lld replicas, and minReplicas is %lld; to ask for all of them "
        "again, let the job wait anew: spec.suspend true for a moment",
        group->of.name, queue, (long long)group->share, (long long)group->of.wanted, (long long)group->least);
}

/*  A quota that is reserved cannot grow: who wants more of it has to wait anew, and that is the user's to decide. Fewer that are
 *  enough for the job are what it has asked for. */
static void s_limited(planner_t *self)
{
    exceeded_t group;
    if (!s_exceeded(self, &group)) {
        planner_condition(self, "AdmissionExceeded", false, "Admitted", "");
        return;
    }
    const bool enough = group.least >= 0 && group.share >= group.least;
    const char *reason = enough ? "PartlyAdmitted" : "MoreThanAdmitted";
    char *text = s_limit_text(&group, self->view->admission.queue, enough);
    if (planner_condition(self, "AdmissionExceeded", true, reason, text))
        draft_event(&self->draft, enough ? "Normal" : "Warning", reason, "%s", text);
    free(text);
}

void plan_queue(planner_t *self)
{
    s_waiting(self);
    s_limited(self);
}
