/*  plan - may the job begin, and what is made of it by the one planner. */
#include "k8s/dijob/plan.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/rules.h"

/*  A job that came by another's schema, or whose spec was broken since. A new one fails; one that has begun, by its phase or by its pods, is never
 *  ended for a rule of ours, not even where it has no pod just now: it goes on as far as it can, and the user is told. */
static bool s_may_begin(planner_t *self)
{
    const dijob_t *job = self->job;
    const bool new = self->phase == DIJOB_PHASE_NONE && self->view->pod_count == 0;
    const char *words = dijob_refusal(job);
    const char *reason = job->invalid ? "InvalidSpec" : "InvalidName";
    self->reason = words ? reason : NULL;
    if (words && new) {
        planner_phase(self, DIJOB_PHASE_FAILED, job->tasks_shape ? "JobFailed" : "DIJobFailed", "Warning",
            "DIJob %s failed because %s", job->meta.name, words);
        return false;
    }
    if (planner_condition(self, "SpecRefused", words != NULL, words ? reason : "Accepted", words ? words : "") && words)
        draft_event(&self->draft, "Warning", reason, "%s; %s", words,
            job->invalid ? "its pods are left as they are" : "the job runs and goes on");
    return true;
}

/*  The one planner decides (common/job/plan.h); what it decided is put in DI-orchestrator's words, and done to pods. */
static void s_decide(planner_t *self)
{
    rules_t rules;
    tt_plan_t plan;
    rules_open(&rules, self);
    tt_plan(&plan, &rules.rules, &rules.state, &rules.seen);
    if (!self->ended)
        rules_facts(self, &plan);
    if (!dijob_phase_final(self->phase) && !self->job->invalid && !self->job->suspend && !plan_waits(self))
        planner_curve(self);
    rules_actions(self, &rules, &plan);
    tt_plan_clear(&plan);
    rules_close(&rules);
}

static void s_go_on(planner_t *self)
{
    if (!s_may_begin(self))
        return;
    plan_trouble(self);
    s_decide(self);
    if (self->job->invalid || dijob_phase_final(self->phase))
        return;
    plan_refusals(self);
    plan_queue(self);
}

static void s_plan(planner_t *self)
{
    const dijob_t *job = self->job;
    if (self->ended)
        s_decide(self); /* what is left of it goes */
    else
        s_go_on(self);
    if (!self->ended)
        planner_set(
            self, "reason", self->reason && self->phase != DIJOB_PHASE_SUCCEEDED ? json_string(self->reason) : NULL);
    if (job->tasks_shape)
        plan_count_tasks(self);
    else
        plan_count_roles(self);
    if (job->generation > 0)
        planner_set(self, "observedGeneration", json_integer(job->generation));
}

tt_status_t dijob_plan(front_plan_t *out, const front_view_t *view)
{
    planner_t planner;
    *out = (front_plan_t){.again_s = -1};
    if (((const dijob_t *)view->job)->deleting) /* the garbage collector does the rest */
        return TT_OK;
    planner_open(&planner, out, view);
    s_plan(&planner);
    planner_close(&planner);
    return TT_OK;
}
