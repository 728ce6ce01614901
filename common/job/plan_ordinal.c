/*  plan_ordinal - a group of places, each kept for itself: one that failed goes, and when it is gone another of its name
 *  comes. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

typedef struct {
    plan_t *plan;
    const tt_group_t *rule;
    size_t group, want;
    size_t *holders; /* [want] TT_PLAN_NONE = nobody, not even one that goes */
} places_t;

/*  Of two the older one stays, and rather one that is not going. Who decides has no rival: twins stay, and the user is told. */
static void s_place(places_t *self, size_t at)
{
    const tt_replica_t *replicas = self->plan->seen->replicas;
    size_t *holder = &self->holders[replicas[at].index];
    const size_t other = *holder, first = self->plan->out->first;
    if (other == TT_PLAN_NONE) {
        *holder = at;
    } else if (replicas[at].index == self->rule->deciding && self->rule->decides == TT_DECIDES_FIRST) {
        *holder = first == at ? at : other;
    } else if (replicas[at].deleting || replicas[other].deleting) {
        *holder = replicas[at].deleting ? other : at;
    } else {
        const bool older = plan_older(&replicas[at], &replicas[other]);
        *holder = older ? at : other;
        plan_delete(self->plan, older ? other : at, -1);
    }
}

static void s_look(places_t *self)
{
    const tt_seen_t *seen = self->plan->seen;
    for (size_t i = 0; i < self->want; i++)
        self->holders[i] = TT_PLAN_NONE;
    for (size_t i = 0; i < seen->replica_count; i++) {
        const tt_replica_t *replica = &seen->replicas[i];
        if (replica->group != self->group)
            continue;
        if (replica->index >= 0 && (size_t)replica->index < self->want)
            s_place(self, i);
        else
            plan_delete(self->plan, i, -1);
    }
}

/*  Seconds between an end and the next one: counted by the job, as nothing of a name's past is left when it comes again. */
static int64_t s_backoff(const places_t *self, size_t at)
{
    const tt_replica_t *replica = &self->plan->seen->replicas[at];
    const bool first = at == self->plan->out->first; /* that one's restart counts when the next is there */
    const int64_t restarts = self->plan->out->state.restarts - !first;
    const bool well = replica->state == TT_REPLICA_SUCCEEDED;
    const tt_backoff_rule_t rule = {.first = 1, .most = TT_PLAN_BACKOFF_MAX_S};
    int64_t delay = tt_backoff_wait(&rule, restarts < 0 ? 1 : restarts + 1);
    if (replica->disrupted || replica->lost || replica->refused)
        return replica->refused ? TT_PLAN_REFUSED_S : 0;
    if (replica->ended_s - replica->created_s >= TT_PLAN_RESET_S)
        delay = 1;
    return well && delay < TT_PLAN_SUCCESS_S ? TT_PLAN_SUCCESS_S : delay;
}

static bool s_comes_again(const places_t *self, const tt_replica_t *replica)
{
    const bool wanted_still = self->rule->decides == TT_DECIDES_NONE && !self->rule->once;
    return !replica->deleting &&
           (replica->state == TT_REPLICA_FAILED || (replica->state == TT_REPLICA_SUCCEEDED && wanted_still));
}

static void s_keep(places_t *self, size_t place, bool may_create)
{
    const size_t at = self->holders[place];
    if (at != TT_PLAN_NONE) {
        if (s_comes_again(self, &self->plan->seen->replicas[at]))
            plan_delete_after(self->plan, at, s_backoff(self, at));
        return;
    }
    tt_action_t *action = may_create ? plan_create(self->plan, self->group) : NULL;
    if (action)
        action->index = (int32_t)place;
}

void plan_ordinal(plan_t *self, size_t group)
{
    const tt_group_t *rule = &self->rules->groups[group];
    places_t places = {.plan = self, .rule = rule, .group = group, .want = (size_t)rule->want};
    places.holders = tt_array0(places.want, sizeof *places.holders);
    s_look(&places);
    const bool may_create = plan_may_create(self, group);
    for (size_t place = 0; place < places.want; place++)
        s_keep(&places, place, may_create);
    free(places.holders);
}
