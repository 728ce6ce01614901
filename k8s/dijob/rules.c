#include "k8s/dijob/rules.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/refusals.h"
#include "k8s/dijob/parts.h"
#include "k8s/front/kueue.h"
#include "k8s/front/spec.h"

enum {
    FAILED_MAX = 3, /* newest failed pods of a role that are kept for reading */
    EXIT_TERMINATED = 143,
    LABEL_MAX = 63
};

/*  A service's name is a label; pods may have names that no service can have. */
static bool s_may_serve(const char *name)
{
    return spec_is_label(name, LABEL_MAX, true);
}

bool rules_by_tasks(const dijob_t *job)
{
    return job->tasks_shape && !job->invalid;
}

/* ---- groups -------------------------------------------------------------------------------------------------------------- */

static int64_t s_want(const dijob_t *job, dijob_role_t role)
{
    const int64_t want = job->replicas[role], learners = job->replicas[DIJOB_LEARNER];
    if (role == DIJOB_AGGREGATOR && want < 0 && job->tutti && learners >= 0)
        return learners > 1 ? 1 : 0; /* gradients of one learner need no adding up */
    return want;
}

static bool s_has_no_template(const dijob_t *job, dijob_role_t role)
{
    return role != DIJOB_AGGREGATOR && role != DIJOB_DDP_LEARNER && !job->has[role];
}

int64_t rules_wanted(const dijob_t *job, dijob_role_t role)
{
    const int64_t want = role == DIJOB_COORDINATOR ? 1 : role == DIJOB_DDP_LEARNER ? 0 : s_want(job, role);
    return want < 0 || s_has_no_template(job, role) ? 0 : want;
}

int64_t rules_least(const dijob_t *job, dijob_role_t role)
{
    const int64_t wanted = rules_wanted(job, role), least = job->least[role];
    const bool elastic = role == DIJOB_COLLECTOR || role == DIJOB_LEARNER;
    return elastic && least >= 0 && least < wanted ? least : wanted;
}

/*  No more than its queue has admitted; where nobody declares how many (-1) that stays. */
static int64_t s_admitted(const planner_t *planner, const char *group, int64_t want)
{
    const int64_t share = kueue_share(&planner->view->admission, group);
    return want < share ? want : share;
}

/*  What any group of the job has in common. */
static tt_group_t s_group(const planner_t *planner, const char *name, dijob_role_t role, int task)
{
    const dijob_t *job = planner->job;
    return (tt_group_t){.name = name,
        .final_codes = job->policy  ? TT_CODES_LISTED
                       : job->tutti ? TT_CODES_TUTTI
                                    : TT_CODES_NONE,
        .listed = &job->fatal,
        .min = -1,
        .after = TT_GROUP_NONE,
        .owner = TT_GROUP_NONE,
        .keep_failed = FAILED_MAX,
        .blocked = front_is_refused(planner->view, dijob_group(role, task))};
}

/*  The coordinator decides, and all others come after it. Ours goes on where it was when it fails. */
static tt_group_t s_role(const planner_t *planner, dijob_role_t role)
{
    const dijob_t *job = planner->job;
    tt_group_t group = s_group(planner, dijob_role_label(role), role, -1);
    if (role == DIJOB_COORDINATOR) {
        group.identity = TT_ID_ORDINAL;
        group.on_failure = job->tutti ? TT_FAILURE_REPLACE : TT_FAILURE_FAIL;
        group.decides = TT_DECIDES_FIRST;
        group.want = 1;
        return group;
    }
    group.after = DIJOB_COORDINATOR;
    group.owner = role == DIJOB_DDP_LEARNER ? DIJOB_AGGREGATOR : TT_GROUP_NONE;
    group.want = role == DIJOB_DDP_LEARNER ? -1 : s_admitted(planner, group.name, s_want(job, role));
    group.blocked |= s_has_no_template(job, role);
    group.fail_after = job->backoff_limit < 0 ? 0 : job->backoff_limit + 1;
    return group;
}

static tt_group_t s_task(const planner_t *planner, size_t task)
{
    tt_group_t group = s_group(planner, planner->job->tasks[task].name, DIJOB_TASK, (int)task);
    group.identity = TT_ID_ORDINAL;
    group.on_failure = TT_FAILURE_RESTART_JOB;
    group.decides = TT_DECIDES_ALL;
    group.want = s_admitted(planner, group.name, planner->job->tasks[task].replicas);
    return group;
}

/*  Who ran too long is to end, whatever is kept of a job that ended by itself. */
static bool s_was_late(const planner_t *planner)
{
    return planner->ended && parts_is(draft_condition(&planner->draft, "Failed"), "reason", PLAN_LATE);
}

static void s_rules(rules_t *self, const planner_t *planner)
{
    const dijob_t *job = planner->job;
    const bool tasks = rules_by_tasks(job), late = s_was_late(planner);
    const size_t count = tasks ? job->task_count : DIJOB_TASK; /* task pods are of no role: they go */
    self->groups = tt_array0(count, sizeof *self->groups);
    for (size_t i = 0; i < count; i++)
        self->groups[i] = tasks ? s_task(planner, i) : s_role(planner, (dijob_role_t)i);
    self->service = tt_sprintf("di-%s", job->meta.name);
    self->rules = (tt_rules_t){.groups = self->groups,
        .group_count = count,
        .backoff_limit = tasks ? job->backoff_limit : -1,
        .deadline_s = job->deadline_s,
        .ttl_s = job->ttl_s,
        .clean = late && job->clean == TT_CLEAN_NONE ? TT_CLEAN_RUNNING : job->clean,
        .clean_gently = late,
        .suspend = job->suspend || plan_waits(planner),
        .serve = tasks ? TT_SERVE_JOB : TT_SERVE_REPLICA,
        .servable = s_may_serve(self->service),
        .whole = tasks && job->preemptible,
        .hold = job->tutti && !(planner->view->made & 1u << DIJOB_CURVE), /* pods mount the secret */
        .watch_only = job->invalid != NULL};
}

/* ---- pods ------------------------------------------------------------------------------------------------------------------ */

static tt_replica_state_t s_by_counts(const dijob_pod_t *pod)
{
    const char counts = dijob_pod_counts(pod);
    if (pod->deleting)
        return entry_state(&pod->as_pod);
    return counts == 'a'   ? TT_REPLICA_RUNNING
           : counts == 's' ? TT_REPLICA_SUCCEEDED
           : counts == 'f' ? TT_REPLICA_FAILED
                           : TT_REPLICA_PENDING;
}

tt_replica_t rules_replica(const dijob_pod_t *pod)
{
    return (tt_replica_t){.name = pod->meta.name,
        .uid = pod->meta.uid,
        .group = pod->role,
        .index = pod->role == DIJOB_COORDINATOR ? 0 : -1,
        .rank = pod->rank,
        .state = s_by_counts(pod),
        .deleting = pod->deleting,
        .disrupted = pod->disrupted,
        .scheduled = pod->scheduled,
        .ready = pod->ready,
        .runs = (pod->phase == POD_RUNNING || pod->phase == POD_PENDING) && !pod->stuck,
        .over = pod->phase == POD_FAILED,
        .servable = s_may_serve(pod->meta.name),
        .exit_code = pod->last_exit,
        .reshapes = pod->reschedules,
        .created_s = pod->created_s,
        .ended_s = plan_ended_s(pod),
        .backoff_s = pod->backoff_s,
        .waits = pod->phase == POD_RUNNING && pod->main == MAIN_WAITING && pod->last_exit > 0 && !pod->deleting,
        .own_restarts = pod->own_restarts,
        .failures = pod->failures,
        .replaces = pod->replaces,
        .owner = pod->role == DIJOB_DDP_LEARNER ? pod->owner_pod : NULL,
        .leads = pod->ddp_master,
        .weight = pod->gpu_ports + 1};
}

static bool s_has_name(const dijob_t *job, const dijob_pod_t *pod)
{
    const size_t size = strlen(job->meta.name);
    return strncmp(pod->meta.name, job->meta.name, size) == 0 && strcmp(pod->meta.name + size, "-coordinator") == 0;
}

/*  Which task's; that many = none's. */
static size_t s_task_of(const dijob_t *job, const dijob_pod_t *pod)
{
    size_t task = 0;
    while (task < job->task_count && (!pod->owner_pod || strcmp(job->tasks[task].name, pod->owner_pod) != 0))
        task++;
    return task;
}

/*  Ended, and nobody's fault: its node refused it, or a preemptible job was told to leave. */
static tt_replica_t s_task_replica(const dijob_t *job, const dijob_pod_t *pod)
{
    tt_replica_t replica = rules_replica(pod);
    replica.group = s_task_of(job, pod);
    replica.index = pod->task_rank;
    replica.state = pod->phase == POD_UNKNOWN ? TT_REPLICA_FAILED : entry_state(&pod->as_pod);
    replica.refused = pod->phase == POD_FAILED && pod->refused;
    replica.lost = pod->phase == POD_FAILED && job->preemptible && pod->exit_code == EXIT_TERMINATED;
    return replica;
}

static tt_replica_t s_replica(const dijob_t *job, const dijob_pod_t *pod)
{
    if (rules_by_tasks(job))
        return s_task_replica(job, pod);
    tt_replica_t replica = rules_replica(pod);
    replica.named = pod->role == DIJOB_COORDINATOR && s_has_name(job, pod);
    replica.refused = pod->role != DIJOB_COORDINATOR && pod->phase == POD_FAILED && pod->refused;
    return replica;
}

/* ---- the rest -------------------------------------------------------------------------------------------------------------- */

/*  DI-orchestrator up to 1.1.1 named the one service as the job; that one stays. */
static tt_service_t s_service(const rules_t *self, const dijob_t *job, const dijob_service_t *service)
{
    const char *name = service->meta.name;
    return (tt_service_t){.name = name,
        .deleting = service->deleting,
        .of_job = strcmp(name, self->service) == 0 || strcmp(name, job->meta.name) == 0};
}

/*  A phase that a shape does not know is as if nothing had been begun, but for a job with a coordinator, which was created. */
static tt_stage_t s_stage(const planner_t *planner)
{
    switch (planner->phase) {
    case DIJOB_PHASE_PENDING:
        return TT_STAGE_PENDING;
    case DIJOB_PHASE_STARTING:
        return TT_STAGE_STARTING;
    case DIJOB_PHASE_RUNNING:
        return TT_STAGE_RUNNING;
    case DIJOB_PHASE_RESTARTING:
        return TT_STAGE_RESTARTING;
    case DIJOB_PHASE_RESCHEDULING:
        return TT_STAGE_RESHAPING;
    case DIJOB_PHASE_SUSPENDED:
        return TT_STAGE_SUSPENDED;
    case DIJOB_PHASE_SUCCEEDED:
        return TT_STAGE_SUCCEEDED;
    case DIJOB_PHASE_FAILED:
        return TT_STAGE_FAILED;
    case DIJOB_PHASE_NONE:
    case DIJOB_PHASE_CREATED:
    case DIJOB_PHASE_UNKNOWN:
    case DIJOB_PHASES:
        break;
    }
    return planner->phase == DIJOB_PHASE_NONE || rules_by_tasks(planner->job) ? TT_STAGE_NEW : TT_STAGE_PENDING;
}

void rules_open(rules_t *self, const planner_t *planner)
{
    const front_view_t *view = planner->view;
    *self = (rules_t){.state = {.stage = s_stage(planner),
                          .restarts = draft_count(&planner->draft, "restarts"),
                          .reshapes = draft_count(&planner->draft, "reschedules"),
                          .started_s = parts_time(planner_text(planner, "startTimestamp")),
                          .ended_s = planner->ended ? draft_ended_s(&planner->draft, "completionTimestamp",
                                                          dijob_phase_name(planner->phase))
                                                    : 0,
                          .first = planner_text(planner, "coordinatorUID")}};
    s_rules(self, planner);
    self->replicas = tt_array0(view->pod_count, sizeof *self->replicas);
    self->services = tt_array0(view->service_count, sizeof *self->services);
    for (size_t i = 0; i < view->pod_count; i++)
        self->replicas[i] = s_replica(planner->job, planner->pods[i]);
    for (size_t i = 0; i < view->service_count; i++)
        self->services[i] = s_service(self, planner->job, planner->services[i]);
    self->seen = (tt_seen_t){self->replicas, view->pod_count, self->services, view->service_count, view->now_s};
}

void rules_close(rules_t *self)
{
    free(self->groups);
    free(self->replicas);
    free(self->services);
    free(self->service);
}
