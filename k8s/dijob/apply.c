/*  apply - what a plan does, as actions on pods and services with their names; and what the replicas API makes of the same. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/rules.h"

/* ---- ddp learners -------------------------------------------------------------------------------------------------------- */

static void s_ddp_want(dijob_pod_want_t *want, const dijob_pod_t *pod, const dijob_pod_t *owner, const tt_gang_t *gang)
{
    want->role = DIJOB_DDP_LEARNER;
    want->replaces = pod->meta.name;
    want->aggregator = owner->meta.name;
    want->aggregator_uid = owner->meta.uid;
    want->gpus = want->local_world_size = pod->gpu_ports + 1;
    want->world_size = (int)gang->sum;
    want->start_rank = (int)gang->start;
    want->split = gang->size > 1;
}

static bool s_is_replaced(const dijob_pod_t *const *pods, size_t pod_count, const char *name)
{
    for (size_t i = 0; i < pod_count; i++)
        if (pods[i]->replaces && strcmp(pods[i]->replaces, name) == 0)
            return true;
    return false;
}

static bool s_is_of_gang(const dijob_pod_t *a, const dijob_pod_t *b)
{
    return a->role == DIJOB_DDP_LEARNER && a->owner_pod && strcmp(a->owner_pod, b->owner_pod) == 0;
}

bool dijob_ddp_want(
    dijob_pod_want_t *want, const dijob_pod_t *const *pods, size_t pod_count, const dijob_pod_t *pod, const char *name)
{
    const dijob_pod_t *owner = NULL;
    tt_replica_t *gang = tt_array0(pod_count, sizeof *gang);
    size_t count = 0, found = TT_PLAN_NONE;
    for (size_t i = 0; i < pod_count && pod->owner_pod; i++) {
        if (pods[i]->role == DIJOB_AGGREGATOR && strcmp(pods[i]->meta.name, pod->owner_pod) == 0)
            owner = pods[i];
        if (!s_is_of_gang(pods[i], pod) || (pods[i] != pod && pods[i]->deleting) ||
            s_is_replaced(pods, pod_count, pods[i]->meta.name))
            continue;
        found = pods[i] == pod ? count : found;
        gang[count++] = rules_replica(pods[i]);
    }
    if (owner && found != TT_PLAN_NONE) {
        const tt_gang_t place = tt_plan_gang(gang, count, found);
        s_ddp_want(want, pod, owner, &place);
        want->master = place.lead == found;
        want->master_name = want->master ? name : gang[place.lead].name;
        want->name = name;
    }
    free(gang);
    return owner && found != TT_PLAN_NONE;
}

size_t dijob_victims(
    const dijob_pod_t *const *pods, size_t pod_count, dijob_role_t role, size_t n, const dijob_pod_t **out)
{
    tt_replica_t *replicas = tt_array0(pod_count, sizeof *replicas);
    size_t *chosen = tt_array0(n < pod_count ? n : pod_count, sizeof *chosen);
    for (size_t i = 0; i < pod_count; i++)
        replicas[i] = rules_replica(pods[i]);
    const size_t count = tt_plan_victims(replicas, pod_count, role, n, chosen);
    for (size_t i = 0; i < count; i++)
        out[i] = pods[chosen[i]];
    free(replicas);
    free(chosen);
    return count;
}

int dijob_failures(const dijob_pod_t *pod)
{
    const tt_replica_t replica = rules_replica(pod);
    const int32_t failures = tt_plan_failures(&replica, replica.ended_s);
    return failures < UINT16_MAX ? failures : UINT16_MAX;
}

/* ---- pods ------------------------------------------------------------------------------------------------------------------ */

/*  New pods are found below the service that those that run know. */
static bool s_has_old_service(const planner_t *self, const char *service)
{
    bool old = false;
    for (size_t i = 0; i < self->view->service_count; i++) {
        if (strcmp(self->services[i]->meta.name, service) == 0)
            return false;
        old |= strcmp(self->services[i]->meta.name, self->job->meta.name) == 0;
    }
    return old;
}

/*  One of that name that is still going is waited for. */
static void s_create_task(planner_t *self, const rules_t *rules, const tt_action_t *action)
{
    char *name = tt_sprintf("%s-%s-%d", self->job->meta.name, rules->groups[action->group].name, action->index);
    if (planner_find(self, name) == self->view->pod_count)
        planner_create(self, &(dijob_pod_want_t){.role = DIJOB_TASK,
                                 .name = name,
                                 .task = (int)action->group,
                                 .rank = action->rank,
                                 .task_rank = action->index,
                                 .reschedules = action->reshapes,
                                 .old_service = s_has_old_service(self, rules->service)});
    free(name);
}

/*  Caller frees. */
static char *s_name(planner_t *self, dijob_role_t role, const tt_action_t *action)
{
    if (role == DIJOB_COORDINATOR)
        return tt_sprintf("%s-coordinator", self->job->meta.name);
    return action->replica != TT_PLAN_NONE ? planner_name_for(self, role, self->pods[action->replica])
                                           : planner_name(self, role);
}

static void s_create_role(planner_t *self, const tt_action_t *action)
{
    const dijob_role_t role = (dijob_role_t)action->group;
    const dijob_pod_t *const *pods = self->pods;
    const dijob_pod_t *old = action->replica != TT_PLAN_NONE ? pods[action->replica] : NULL;
    const dijob_pod_t *lead = role == DIJOB_DDP_LEARNER ? pods[action->gang.lead] : NULL;
    char *name = s_name(self, role, action);
    char *leader = lead && action->lead_goes ? planner_name_for(self, role, lead) : NULL;
    dijob_pod_want_t want = {.role = role, .name = name, .task = -1, .rank = -1, .task_rank = -1};
    want.replaces = old ? old->meta.name : NULL;
    want.backoff_s = (int)action->backoff_s;
    want.failures = action->failures < UINT16_MAX ? action->failures : UINT16_MAX;
    if (lead) {
        s_ddp_want(&want, old, pods[action->owner], &action->gang);
        want.master = lead == old;
        want.master_name = leader ? leader : lead->meta.name;
    }
    planner_create(self, &want);
    free(leader);
    free(name);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static void s_do(planner_t *self, const rules_t *rules, const tt_action_t *action)
{
    switch (action->what) {
    case TT_DO_CREATE:
        if (rules_by_tasks(self->job))
            s_create_task(self, rules, action);
        else
            s_create_role(self, action);
        break;
    case TT_DO_DELETE:
        planner_delete(self, action->replica, action->grace_s);
        break;
    case TT_DO_SERVE:
        draft_add(&self->draft, FRONT_CREATE_SERVICE,
            action->replica == TT_PLAN_NONE ? NULL : self->pods[action->replica]->meta.name);
        break;
    case TT_DO_UNSERVE:
        draft_add(&self->draft, FRONT_DELETE_SERVICE, self->services[action->service]->meta.name);
        break;
    case TT_DO_FORGET:
        draft_add(&self->draft, FRONT_DELETE_JOB, NULL);
        break;
    }
}

void rules_actions(planner_t *self, const rules_t *rules, const tt_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        s_do(self, rules, &plan->actions[i]);
    if (plan->again_s >= 0)
        draft_again(&self->draft, plan->again_s);
}
