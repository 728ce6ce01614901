/*  plan_owned - replicas that belong to one of another group: they go with it, follow it to the one that takes its place, and
 *  one that fails is replaced. Who made them said what each weighs; ranks follow from that. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

typedef struct {
    const tt_replica_t *self;
    size_t at, owner; /* owner: whose it is to be; TT_PLAN_NONE = nobody's: it goes */
    bool keep;        /* nothing to do, or not yet                                  */
    tt_gang_t gang;
} owned_t;

/*  By owner; of one owner's who leads, then by weight: the order in which ranks were given. */
static int s_compare(const void *left, const void *right)
{
    const tt_replica_t *a = ((const owned_t *)left)->self, *b = ((const owned_t *)right)->self;
    const int owners = strcmp(a->owner, b->owner);
    if (owners != 0)
        return owners;
    if (a->leads != b->leads)
        return a->leads ? -1 : 1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return strcmp(a->name, b->name);
}

/*  Of those of one owner. */
static void s_ranks(owned_t *gang, size_t size)
{
    int64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        gang[i].gang = (tt_gang_t){.lead = gang[0].at, .size = size, .start = sum};
        sum += gang[i].self->weight;
    }
    for (size_t i = 0; i < size; i++)
        gang[i].gang.sum = sum;
}

tt_gang_t tt_plan_gang(const tt_replica_t *replicas, size_t count, size_t at)
{
    owned_t *all = tt_array0(count, sizeof *all);
    tt_gang_t found = {.lead = at};
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        if (replicas[i].group == replicas[at].group && replicas[i].owner &&
            strcmp(replicas[i].owner, replicas[at].owner) == 0)
            all[size++] = (owned_t){.self = &replicas[i], .at = i};
    qsort(all, size, sizeof *all, s_compare);
    s_ranks(all, size);
    for (size_t i = 0; i < size; i++)
        found = all[i].at == at ? all[i].gang : found;
    free(all);
    return found;
}

static size_t s_collect(plan_t *plan, size_t group, owned_t *all)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->seen->replica_count; i++) {
        const tt_replica_t *replica = &plan->seen->replicas[i];
        if (replica->group != group || !replica->owner || plan->going[i])
            continue;
        if (plan->replaced[i])
            plan_delete(plan, i, -1);
        else if (!replica->deleting || replica->disrupted)
            all[count++] = (owned_t){.self = replica, .at = i, .owner = TT_PLAN_NONE, .keep = true};
    }
    qsort(all, count, sizeof *all, s_compare);
    return count;
}

static size_t s_successor(const plan_t *plan, const tt_group_t *rule, const char *owner)
{
    for (size_t i = 0; i < plan->seen->replica_count; i++) {
        const tt_replica_t *replica = &plan->seen->replicas[i];
        if (replica->group == (size_t)rule->owner && replica->replaces && strcmp(replica->replaces, owner) == 0 &&
            plan_stays(plan, i))
            return i;
    }
    return TT_PLAN_NONE;
}

/*  An owner that failed or was disrupted will have a successor, where no number says how many there are. */
static bool s_succeeded_soon(const plan_t *plan, const tt_group_t *rule, size_t at)
{
    if (at == TT_PLAN_NONE || plan->going[at] || plan->rules->groups[rule->owner].want >= 0)
        return false;
    const tt_replica_t *owner = &plan->seen->replicas[at];
    return owner->deleting ? owner->disrupted : owner->state == TT_REPLICA_FAILED;
}

/*  One that failed itself: is it time? */
static bool s_is_due(plan_t *plan, const tt_replica_t *replica)
{
    if (!replica->deleting && replica->state != TT_REPLICA_FAILED)
        return false;
    const int64_t wait_s = tt_plan_wait_s(replica, tt_plan_delay_s(replica), plan->seen->now_s);
    if (wait_s > 0)
        plan_again(plan, wait_s);
    return wait_s <= 0;
}

static void s_judge(plan_t *plan, const tt_group_t *rule, owned_t *owned)
{
    const size_t at = plan_find(plan, owned->self->owner);
    const bool there =
        at != TT_PLAN_NONE && plan_stays(plan, at) && plan->seen->replicas[at].state != TT_REPLICA_FAILED;
    owned->owner = there ? at : s_successor(plan, rule, owned->self->owner);
    if (there)
        owned->keep = !s_is_due(plan, owned->self);
    else
        owned->keep = owned->owner == TT_PLAN_NONE && s_succeeded_soon(plan, rule, at);
}

/*  All of one owner's know the address of the first: without it they begin anew together. */
static void s_judge_gang(plan_t *plan, const tt_group_t *rule, owned_t *gang, size_t size)
{
    for (size_t i = 0; i < size; i++)
        s_judge(plan, rule, &gang[i]);
    for (size_t i = 1; i < size && !gang[0].keep && gang[0].owner != TT_PLAN_NONE; i++)
        gang[i].keep = false;
}

static void s_replace(plan_t *plan, size_t group, const owned_t *owned, bool lead_goes)
{
    tt_action_t *action = plan_create(plan, group);
    if (!action)
        return;
    action->replica = owned->at;
    action->owner = owned->owner;
    action->backoff_s = tt_plan_delay_s(owned->self);
    action->failures = tt_plan_failures(owned->self, plan->seen->now_s);
    action->gang = owned->gang;
    action->lead_goes = lead_goes;
}

static void s_do_gang(plan_t *plan, size_t group, const owned_t *gang, size_t size)
{
    const bool may_create = plan_may_create(plan, group);
    for (size_t i = 0; i < size; i++) {
        if (!gang[i].keep && gang[i].owner == TT_PLAN_NONE)
            plan_delete(plan, gang[i].at, -1);
        else if (!gang[i].keep && may_create)
            s_replace(plan, group, &gang[i], !gang[0].keep && gang[0].owner != TT_PLAN_NONE);
    }
}

void plan_owned(plan_t *self, size_t group)
{
    const tt_group_t *rule = &self->rules->groups[group];
    owned_t *all = tt_array0(self->seen->replica_count, sizeof *all);
    const size_t count = s_collect(self, group, all);
    for (size_t first = 0, size; first < count; first += size) {
        for (size = 1; first + size < count; size++)
            if (strcmp(all[first].self->owner, all[first + size].self->owner) != 0)
                break;
        s_ranks(all + first, size);
        s_judge_gang(self, rule, all + first, size);
        s_do_gang(self, group, all + first, size);
    }
    free(all);
}
