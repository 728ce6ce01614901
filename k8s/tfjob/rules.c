/*  rules - a TFJob, its pods and its services in the words of the one job model (common/job/plan.h). */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/refusals.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/plan.h"

/* ---- groups -------------------------------------------------------------------------------------------------------------- */

/*  Never: who fails has failed the job. ExitCode: but for four signals from outside. Else the kubelet starts it again, and one
 *  that failed all the same did so by its node's doing. */
static void s_restart(tt_group_t *group, tfjob_restart_t restart)
{
    group->on_failure = restart == TFJOB_NEVER ? TT_FAILURE_FAIL : TT_FAILURE_REPLACE;
    group->final_codes = restart == TFJOB_EXIT_CODE ? TT_CODES_SIGNAL : TT_CODES_NONE;
}

/*  v1alpha1: only the chief's own mistake is the job's, and whoever else fails comes again: see s_exit_code. */
static void s_restart_old(tt_group_t *group)
{
    group->on_failure = TT_FAILURE_REPLACE;
    group->final_codes = TT_CODES_PLAIN;
}

static tt_group_t s_group(const planner_t *planner, tfjob_type_t type)
{
    const tfjob_t *job = planner->job;
    const tfjob_replicas_t *replicas = &job->types[type];
    const bool decides = type == tfjob_decider(job);
    tt_group_t group = {.name = tfjob_type_label(type),
        .identity = TT_ID_ORDINAL,
        .want = replicas->there ? replicas->replicas : 0,
        .once = true,
        .after = TT_GROUP_NONE,
        .owner = TT_GROUP_NONE,
        .blocked = front_is_refused(planner->view, (int)type)};
    if (decides)
        group.decides = type == TFJOB_WORKER && job->all_workers ? TT_DECIDES_ALL : TT_DECIDES_FIRST;
    group.deciding = decides ? job->old.chief_index : 0;
    group.min = decides ? 1 : 0; /* any worker that runs is enough for Running */
    if (job->old.there)
        s_restart_old(&group);
    else
        s_restart(&group, replicas->restart);
    return group;
}

static tt_rules_t s_rules(const rules_t *self, const planner_t *planner)
{
    const tfjob_t *job = planner->job;
    return (tt_rules_t){.groups = self->groups,
        .group_count = job->invalid ? 0 : TFJOB_TYPES,
        .backoff_limit = job->backoff_limit,
        .deadline_s = job->deadline_s,
        .ttl_s = job->ttl_s,
        .clean = job->clean,
        .clean_gently = true,
        .serve = TT_SERVE_PLACE,
        .suspend = job->suspend,
        .hold = (tfjob_old_objects(job) & ~planner->view->made) != 0}; /* pods mount what is missing */
}

/* ---- pods ---------------------------------------------------------------------------------------------------------------- */

static bool s_has_name(const tfjob_t *job, const tfjob_pod_t *pod)
{
    if (pod->type >= TFJOB_TYPES)
        return false;
    char *name = tfjob_place_name(job, (tfjob_type_t)pod->type, pod->index);
    const bool same = strcmp(name, pod->meta.name) == 0;
    free(name);
    return same;
}

/*  In v1alpha1 nobody asks with which code one ended that is not the chief, and a chief that the kernel killed for its memory has
 *  made a mistake of its own, though it was a signal. */
static int32_t s_exit_code(const tfjob_pod_t *pod)
{
    if (!pod->old)
        return pod->exit_code;
    if (!pod->decides)
        return -1;
    return pod->exit_code > 0 && pod->why && strcmp(pod->why, "OOMKilled") == 0 ? 1 : pod->exit_code;
}

static tt_replica_t s_replica(const tfjob_t *job, const tfjob_pod_t *pod)
{
    const bool ended = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    return (tt_replica_t){.name = pod->meta.name,
        .uid = pod->meta.uid,
        .group = pod->type,
        .index = pod->index,
        .rank = -1,
        .state = entry_state(&pod->as_pod),
        .deleting = pod->deleting,
        .disrupted = pod->disrupted,
        .refused = pod->phase == POD_FAILED && pod->refused,
        .scheduled = pod->scheduled,
        .ready = pod->ready,
        .runs = !ended,
        .over = ended,
        .named = s_has_name(job, pod),
        .exit_code = s_exit_code(pod),
        .restarts = pod->restarts,
        .own_restarts = pod->own_restarts,
        .created_s = pod->created_s,
        .ended_s = pod->finished_s > 0 ? pod->finished_s : pod->created_s,
        .weight = 1};
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------ */

static tt_stage_t s_stage(tfjob_phase_t phase)
{
    static const tt_stage_t stages[TFJOB_PHASES] = {[TFJOB_PHASE_NONE] = TT_STAGE_NEW,
        [TFJOB_PHASE_CREATED] = TT_STAGE_PENDING,
        [TFJOB_PHASE_RUNNING] = TT_STAGE_RUNNING,
        [TFJOB_PHASE_RESTARTING] = TT_STAGE_RUNNING,
        [TFJOB_PHASE_SUSPENDED] = TT_STAGE_SUSPENDED,
        [TFJOB_PHASE_SUCCEEDED] = TT_STAGE_SUCCEEDED,
        [TFJOB_PHASE_FAILED] = TT_STAGE_FAILED};
    return stages[phase];
}

/*  Its deadline begins when it is first looked at, waiting for room included, as Kubeflow has it. */
static int64_t s_started_s(const planner_t *planner)
{
    const int64_t started_s = parts_time(parts_text(planner->draft.status, "startTime", NULL));
    return started_s > 0 || planner->job->suspend ? started_s : planner->view->now_s;
}

void tfjob_rules_open(rules_t *self, const planner_t *planner)
{
    const front_view_t *view = planner->view;
    *self =
        (rules_t){.state = {.stage = s_stage(planner->phase),
                      .restarts = draft_count(&planner->draft, "restarts"),
                      .started_s = s_started_s(planner),
                      .ended_s = tt_stage_final(s_stage(planner->phase))
                                     ? draft_ended_s(&planner->draft, "completionTime", tfjob_phases[planner->phase])
                                     : 0,
                      .first = parts_text(planner->draft.status, "chiefUID", "")}};
    for (int type = 0; type < TFJOB_TYPES; type++)
        self->groups[type] = s_group(planner, (tfjob_type_t)type);
    self->rules = s_rules(self, planner);
    self->replicas = tt_array0(view->pod_count, sizeof *self->replicas);
    self->services = tt_array0(view->service_count, sizeof *self->services);
    for (size_t i = 0; i < view->pod_count; i++)
        self->replicas[i] = s_replica(planner->job, planner->pods[i]);
    for (size_t i = 0; i < view->service_count; i++) {
        const tfjob_service_t *service = view->services[i];
        self->services[i] = (tt_service_t){
            .name = service->meta.name, .deleting = service->deleting, .group = service->type, .index = service->index};
    }
    self->seen = (tt_seen_t){self->replicas, view->pod_count, self->services, view->service_count, view->now_s};
    self->rules.groups = self->groups;
}

void tfjob_rules_close(rules_t *self)
{
    free(self->replicas);
    free(self->services);
}
