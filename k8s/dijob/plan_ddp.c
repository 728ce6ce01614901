/*  plan_ddp - ddp learners belong to an aggregator: they go with it, follow it to the one that takes its place, and one
 *  that fails is replaced. Who made them (the replicas API) said how many GPUs each has; ranks follow from that. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/planner.h"

typedef struct {
    size_t pod;
    const dijob_pod_t *self, *owner; /* owner: whose it is to be; NULL = nobody's: it goes */
    bool keep;                       /* nothing to do, or not yet                          */
    char *name;                      /* of the one in its place; owned; NULL = none        */
    int start_rank, world_size;
    size_t first, size; /* of its group */
} ddp_t;

/*  By aggregator; in a group the master, then by GPUs: the order in which ranks were given. */
static int s_compare(const void *left, const void *right)
{
    const dijob_pod_t *a = ((const ddp_t *)left)->self, *b = ((const ddp_t *)right)->self;
    const int owners = strcmp(a->owner_pod, b->owner_pod);
    if (owners != 0)
        return owners;
    if (a->ddp_master != b->ddp_master)
        return a->ddp_master ? -1 : 1;
    if (a->gpu_ports != b->gpu_ports)
        return a->gpu_ports > b->gpu_ports ? -1 : 1;
    return strcmp(a->meta.name, b->meta.name);
}

static size_t s_collect(planner_t *planner, ddp_t *all)
{
    size_t count = 0;
    for (size_t i = 0; i < planner->view->pod_count; i++) {
        const dijob_pod_t *pod = planner->view->pods[i];
        if (pod->role != DIJOB_DDP_LEARNER || !pod->owner_pod || planner->going[i])
            continue;
        if (planner->replaced[i])
            planner_delete(planner, i, -1);
        else if (!pod->deleting || pod->disrupted)
            all[count++] = (ddp_t){.pod = i, .self = pod, .keep = true};
    }
    qsort(all, count, sizeof *all, s_compare);
    return count;
}

/*  Ranks of the pods of one group. */
static void s_ranks(ddp_t *all, size_t first, size_t size)
{
    int world = 0;
    for (size_t i = first; i < first + size; i++) {
        all[i].start_rank = world;
        world += all[i].self->gpu_ports + 1;
        all[i].first = first;
        all[i].size = size;
    }
    for (size_t i = first; i < first + size; i++)
        all[i].world_size = world;
}

static const dijob_pod_t *s_successor(const planner_t *planner, const char *aggregator)
{
    for (size_t i = 0; i < planner->view->pod_count; i++) {
        const dijob_pod_t *pod = planner->view->pods[i];
        if (pod->role == DIJOB_AGGREGATOR && pod->replaces && strcmp(pod->replaces, aggregator) == 0 &&
            planner_stays(planner, i))
            return pod;
    }
    return NULL;
}

/*  An aggregator that failed or was disrupted will have a successor, where it was asked for over HTTP. */
static bool s_succeeded_soon(const planner_t *planner, size_t at)
{
    if (at == planner->view->pod_count || planner->going[at] || plan_want(planner->job, DIJOB_AGGREGATOR) >= 0)
        return false;
    const dijob_pod_t *pod = planner->view->pods[at];
    return pod->deleting ? pod->disrupted : dijob_pod_counts(pod) == 'f';
}

/*  One that failed itself: is it time? */
static bool s_is_due(planner_t *planner, const dijob_pod_t *pod)
{
    const bool lost = pod->deleting || dijob_pod_counts(pod) == 'f';
    if (!lost)
        return false;
    const int64_t wait_s = plan_wait_s(pod, plan_delay_s(pod), planner->view->now_s);
    if (wait_s > 0)
        planner_again(planner, wait_s);
    return wait_s <= 0;
}

static void s_judge(planner_t *planner, ddp_t *ddp)
{
    const size_t at = planner_find(planner, ddp->self->owner_pod);
    const bool there =
        at < planner->view->pod_count && planner_stays(planner, at) && dijob_pod_counts(planner->view->pods[at]) != 'f';
    ddp->owner = there ? planner->view->pods[at] : s_successor(planner, ddp->self->owner_pod);
    if (there)
        ddp->keep = !s_is_due(planner, ddp->self);
    else
        ddp->keep = !ddp->owner && s_succeeded_soon(planner, at);
}

/*  All of a group know the address of the first: without it they begin anew together. */
static void s_judge_group(planner_t *planner, ddp_t *all, size_t first, size_t size)
{
    for (size_t i = first; i < first + size; i++)
        s_judge(planner, &all[i]);
    for (size_t i = first + 1; i < first + size && !all[first].keep && all[first].owner; i++)
        all[i].keep = false;
}

static void s_want(dijob_pod_want_t *want, const ddp_t *all, const ddp_t *ddp)
{
    const ddp_t *master = &all[ddp->first];
    want->role = DIJOB_DDP_LEARNER;
    want->replaces = ddp->self->meta.name;
    want->aggregator = ddp->owner->meta.name;
    want->aggregator_uid = ddp->owner->meta.uid;
    want->gpus = want->local_world_size = ddp->self->gpu_ports + 1;
    want->world_size = ddp->world_size;
    want->start_rank = ddp->start_rank;
    want->split = ddp->size > 1;
    want->master = ddp == master;
    want->master_name = master->name ? master->name : master->self->meta.name;
}

static void s_replace(planner_t *planner, ddp_t *all, ddp_t *ddp)
{
    dijob_pod_want_t want = {.task = -1, .rank = -1, .task_rank = -1};
    want.name = ddp->name = planner_name_for(planner, DIJOB_DDP_LEARNER, ddp->self);
    want.backoff_s = (int)plan_delay_s(ddp->self);
    s_want(&want, all, ddp);
    planner_create(planner, &want);
}

static void s_do_group(planner_t *planner, ddp_t *all, size_t first, size_t size, bool may_create)
{
    for (size_t i = first; i < first + size; i++) {
        if (!all[i].keep && !all[i].owner)
            planner_delete(planner, all[i].pod, -1);
        else if (!all[i].keep && may_create)
            s_replace(planner, all, &all[i]);
    }
}

void plan_ddp(planner_t *self, bool may_create)
{
    ddp_t *all = tt_array0(self->view->pod_count, sizeof *all);
    const size_t count = s_collect(self, all);
    for (size_t first = 0, size; first < count; first += size) {
        for (size = 1; first + size < count; size++)
            if (strcmp(all[first].self->owner_pod, all[first + size].self->owner_pod) != 0)
                break;
        s_ranks(all, first, size);
        s_judge_group(self, all, first, size);
        s_do_group(self, all, first, size, may_create);
    }
    for (size_t i = 0; i < count; i++)
        free(all[i].name);
    free(all);
}

/* ---- for the replicas API --------------------------------------------------------------------------------------------------- */

static bool s_is_replaced(const dijob_pod_t *const *pods, size_t pod_count, const char *name)
{
    for (size_t i = 0; i < pod_count; i++)
        if (pods[i]->replaces && strcmp(pods[i]->replaces, name) == 0)
            return true;
    return false;
}

static bool s_is_of_group(const dijob_pod_t *a, const dijob_pod_t *b)
{
    return a->role == DIJOB_DDP_LEARNER && a->owner_pod && strcmp(a->owner_pod, b->owner_pod) == 0;
}

bool dijob_ddp_want(
    dijob_pod_want_t *want, const dijob_pod_t *const *pods, size_t pod_count, const dijob_pod_t *pod, const char *name)
{
    const dijob_pod_t *owner = NULL;
    ddp_t *all = tt_array0(pod_count, sizeof *all), *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < pod_count && pod->owner_pod; i++) {
        if (pods[i]->role == DIJOB_AGGREGATOR && strcmp(pods[i]->meta.name, pod->owner_pod) == 0)
            owner = pods[i];
        if (s_is_of_group(pods[i], pod) && (pods[i] == pod || !pods[i]->deleting) &&
            !s_is_replaced(pods, pod_count, pods[i]->meta.name))
            all[count++] = (ddp_t){.self = pods[i]};
    }
    qsort(all, count, sizeof *all, s_compare);
    s_ranks(all, 0, count);
    for (size_t i = 0; i < count; i++)
        found = all[i].self == pod ? &all[i] : found;
    if (owner && found) {
        found->owner = owner;
        s_want(want, all, found);
        if (want->master)
            want->master_name = name;
        want->name = name;
    }
    free(all);
    return owner && found;
}
