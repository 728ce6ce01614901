/*  facts - what a plan decided, in DI-orchestrator's words: phases, conditions, events. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/rules.h"

static const dijob_pod_t *s_pod(const planner_t *self, const tt_fact_t *fact)
{
    return fact->replica != TT_PLAN_NONE ? self->pods[fact->replica] : NULL;
}

/*  A phase's own message is DI-orchestrator's; what the pod said is an event of its own. */
static void s_say_end(planner_t *self, const dijob_pod_t *pod)
{
    char *words = plan_words(self, pod);
    draft_event(&self->draft, "Warning", "PodFailed", "%s", words);
    free(words);
}

/* ---- both shapes ----------------------------------------------------------------------------------------------------------- */

/*  One ended in a way that can only come again. */
static void s_code(planner_t *self, const dijob_pod_t *pod)
{
    char *words = plan_words(self, pod);
    planner_phase(self, DIJOB_PHASE_FAILED, self->job->tasks_shape ? "JobFailed" : "DIJobFailed", "Warning",
        "DIJob %s failed because %s", self->job->meta.name, words);
    const char *word = self->job->tutti ? tt_exit_word(pod->last_exit) : NULL;
    self->reason = word ? word : "PodFailurePolicy"; /* batch/v1's word */
    free(words);
}

/*  Of a job whose spec cannot be read nobody works any more, without a coordinator whose word would count. */
static void s_nobody_left(planner_t *self, const tt_fact_t *fact)
{
    const bool tasks = self->job->tasks_shape;
    const char *name = self->job->meta.name;
    if (fact->stage == TT_STAGE_FAILED)
        planner_phase(self, DIJOB_PHASE_FAILED, tasks ? "JobFailed" : "DIJobFailed", "Warning",
            "DIJob %s failed because %zu of its pods failed and none is left", name, fact->count);
    else
        planner_phase(self, DIJOB_PHASE_SUCCEEDED, tasks ? "JobSucceeded" : "DIJobSucceeded", "Normal",
            "DIJob %s succeeded because all of its pods succeeded", name);
}

static void s_late(planner_t *self)
{
    self->reason = PLAN_LATE;
    planner_phase(self, DIJOB_PHASE_FAILED, PLAN_LATE, "Warning",
        "DIJob %s was active longer than its deadline of %lld s", self->job->meta.name,
        (long long)self->job->deadline_s);
}

/*  Its counters go on afterwards, its deadline begins anew. */
static void s_suspended(planner_t *self)
{
    const char *name = self->job->meta.name;
    if (plan_waits(self)) /* the event is plan_queue's */
        planner_phase(
            self, DIJOB_PHASE_SUSPENDED, PLAN_WAITS, NULL, "DIJob %s is suspended while it waits in its queue", name);
    else
        planner_phase(self, DIJOB_PHASE_SUSPENDED, "JobSuspended", "Normal", "DIJob %s is suspended", name);
    planner_set(self, "startTimestamp", NULL);
}

static void s_resumed(planner_t *self)
{
    char *words = tt_sprintf("DIJob %s goes on", self->job->meta.name);
    if (planner_condition(self, dijob_phase_name(DIJOB_PHASE_SUSPENDED), false, "JobResumed", words))
        draft_event(&self->draft, "Normal", "JobResumed", "%s", words);
    free(words);
}

/* ---- roles ----------------------------------------------------------------------------------------------------------------- */

static void s_coordinator_failed(planner_t *self, const dijob_pod_t *pod)
{
    self->reason = pod->why ? pod->why : "Error";
    s_say_end(self, pod);
    planner_phase(self, DIJOB_PHASE_FAILED, "DIJobFailed", "Warning", "DIJob %s failed because coordinator failed",
        self->job->meta.name);
}

/*  Of a role, again and again. */
static void s_in_a_row(planner_t *self, const tt_fact_t *fact)
{
    const dijob_pod_t *pod = s_pod(self, fact);
    char *words = plan_words(self, pod);
    self->reason = "BackoffLimitExceeded";
    planner_phase(self, DIJOB_PHASE_FAILED, "DIJobFailed", "Warning",
        "DIJob %s failed because %s failed %zu times in a row and backoffLimit is %lld; the last, %s",
        self->job->meta.name, dijob_role_label((dijob_role_t)pod->role), fact->count,
        (long long)self->job->backoff_limit, words);
    free(words);
}

/*  The phase follows the coordinator, and nobody else. */
static void s_role_fact(planner_t *self, const tt_fact_t *fact)
{
    const char *name = self->job->meta.name;
    if (fact->stage == TT_STAGE_PENDING)
        planner_phase(self, DIJOB_PHASE_CREATED, "DIJobCreated", self->phase == DIJOB_PHASE_SUSPENDED ? NULL : "Normal",
            "DIJob %s created", name);
    else if (fact->stage == TT_STAGE_RUNNING)
        planner_phase(self, DIJOB_PHASE_RUNNING, "DIJobRunning", NULL,
            "coordinator and aggregator of DIJob %s are running", name);
    else if (fact->stage == TT_STAGE_SUCCEEDED)
        planner_phase(self, DIJOB_PHASE_SUCCEEDED, "DIJobSucceeded", "Normal",
            "DIJob %s succeeded because coordinator succeeded", name);
    else if (fact->stage == TT_STAGE_FAILED)
        s_coordinator_failed(self, s_pod(self, fact));
}

static void s_twins(planner_t *self, const tt_plan_t *plan)
{
    if (plan->twins < 2) {
        planner_condition(self, "CoordinatorTwins", false, "OneCoordinator", "");
        return;
    }
    char *words = tt_sprintf("%zu coordinator pods: %s coordinates, the others have no say", plan->twins,
        self->pods[plan->first]->meta.name);
    if (planner_condition(self, "CoordinatorTwins", true, "TooManyCoordinators", words))
        draft_event(&self->draft, "Warning", "TooManyCoordinators", "%s", words);
    free(words);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------------------- */

static void s_task_starting(planner_t *self, const tt_fact_t *fact)
{
    if (fact->why == TT_WHY_AGAIN)
        planner_phase(self, DIJOB_PHASE_STARTING, "JobStarting", "Normal",
            "job is starting since the created pods %zu are matched replicas %zu.", fact->count, fact->wanted);
    else
        planner_phase(
            self, DIJOB_PHASE_STARTING, "JobStarting", "Normal", "job is starting since all pods are created.");
}

static void s_task_failed(planner_t *self, const tt_fact_t *fact)
{
    s_say_end(self, s_pod(self, fact));
    if (fact->stage == TT_STAGE_RESTARTING) {
        planner_phase(self, DIJOB_PHASE_RESTARTING, "JobRestarting", "Warning",
            "job is restarting since %zu pods failed", fact->count);
        return;
    }
    self->reason = "BackoffLimitExceeded";
    planner_phase(self, DIJOB_PHASE_FAILED, "JobFailed", "Warning",
        "job failed since %zu pods failed and exceed backoff limit", fact->count);
}

static void s_task_fact(planner_t *self, const tt_fact_t *fact)
{
    switch (fact->stage) {
    case TT_STAGE_PENDING:
        planner_phase(self, DIJOB_PHASE_PENDING, "JobPending", "Normal", "job is pending since it was %s.",
            self->phase == DIJOB_PHASE_SUSPENDED ? "resumed" : "created");
        break;
    case TT_STAGE_STARTING:
        s_task_starting(self, fact);
        break;
    case TT_STAGE_RUNNING:
        planner_phase(self, DIJOB_PHASE_RUNNING, "JobRunning", "Normal", "job is running since all pods are ready.");
        break;
    case TT_STAGE_RESTARTING:
    case TT_STAGE_FAILED:
        s_task_failed(self, fact);
        break;
    case TT_STAGE_RESHAPING:
        planner_phase(self, DIJOB_PHASE_RESCHEDULING, "JobRescheduling", "Warning",
            "job is rescheduling since replicas changed, replicas: %zu, pods: %zu", fact->wanted, fact->count);
        break;
    case TT_STAGE_SUCCEEDED:
        planner_phase(self, DIJOB_PHASE_SUCCEEDED, "JobSucceeded", "Normal",
            "job succeeded since all the replicas are succeeded.");
        break;
    case TT_STAGE_NEW:
    case TT_STAGE_SUSPENDED: /* the same for both shapes */
        break;
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static void s_fact(planner_t *self, const tt_fact_t *fact)
{
    if (fact->why == TT_WHY_CODE)
        s_code(self, s_pod(self, fact));
    else if (fact->why == TT_WHY_NOBODY_LEFT)
        s_nobody_left(self, fact);
    else if (fact->why == TT_WHY_DEADLINE)
        s_late(self);
    else if (fact->why == TT_WHY_IN_A_ROW)
        s_in_a_row(self, fact);
    else if (fact->stage == TT_STAGE_SUSPENDED)
        s_suspended(self);
    else if (rules_by_tasks(self->job))
        s_task_fact(self, fact);
    else
        s_role_fact(self, fact);
}

static void s_set_count(planner_t *self, const char *key, int64_t count)
{
    if (draft_count(&self->draft, key) != count)
        planner_set(self, key, json_integer(count));
}

void rules_facts(planner_t *self, const tt_plan_t *plan)
{
    s_twins(self, plan);
    s_set_count(self, "restarts", plan->state.restarts);
    s_set_count(self, "reschedules", plan->state.reshapes);
    if (strcmp(planner_text(self, "coordinatorUID"), plan->state.first) != 0)
        planner_set(self, "coordinatorUID", *plan->state.first ? json_string(plan->state.first) : NULL);
    if (plan->state.stage != TT_STAGE_SUSPENDED)
        s_resumed(self);
    for (size_t i = 0; i < plan->fact_count; i++)
        s_fact(self, &plan->facts[i]);
    if (plan->state.started_s > 0 && !*planner_text(self, "startTimestamp")) /* another operator's wrote none */
        planner_set(self, "startTimestamp", parts_time_text(plan->state.started_s));
}
