/*  plan_number - a group of random identity, each of which is replaced for itself.
 *
 *  With a number that decides; without, whoever asks does, and only one that failed or was disrupted is replaced, once. Every
 *  replacement names the one that it stands for and the seconds that were waited, so the back-off (1 s doubling to 60 s) is
 *  read from the replicas and survives a restart of who plans. So is how many failed in a row (tt_plan_failures). */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

/*  One that ended, or is about to without having been asked to. */
typedef struct {
    size_t replica;
    int64_t ended_s, delay_s, wait_s; /* wait_s: till its place may be taken */
} ended_t;

typedef struct {
    plan_t *plan;
    const tt_group_t *rule;
    size_t group, there; /* there: alive, or ended well where that is an end */
    ended_t *ended;      /* newest first */
    size_t ended_count;
    size_t waiting; /* of ended: not replaced, and too early for it */
} number_t;

/*  In both ways of counting: failed, or disrupted and on its way out. With a number also one that ended well. */
static bool s_is_ended(const number_t *self, const tt_replica_t *replica)
{
    if (replica->deleting)
        return self->rule->want < 0 && replica->disrupted && replica->state != TT_REPLICA_SUCCEEDED;
    return replica->state == TT_REPLICA_FAILED ||
           (replica->state == TT_REPLICA_SUCCEEDED && self->rule->want >= 0 && self->rule->decides == TT_DECIDES_NONE);
}

static int s_newest_first(const void *left, const void *right)
{
    const ended_t *a = left, *b = right;
    if (a->ended_s != b->ended_s)
        return a->ended_s > b->ended_s ? -1 : 1;
    return a->replica < b->replica ? -1 : a->replica > b->replica;
}

static bool s_is_done(const number_t *self, const tt_replica_t *replica)
{
    return !replica->deleting && replica->state == TT_REPLICA_SUCCEEDED && self->rule->decides != TT_DECIDES_NONE;
}

static void s_look(number_t *self)
{
    const plan_t *plan = self->plan;
    for (size_t i = 0; i < plan->seen->replica_count; i++) {
        const tt_replica_t *replica = &plan->seen->replicas[i];
        if (replica->group != self->group || plan->going[i])
            continue;
        self->there += tt_replica_alive(replica) || s_is_done(self, replica);
        if (!s_is_ended(self, replica))
            continue;
        ended_t *ended = &self->ended[self->ended_count++];
        *ended = (ended_t){i, replica->ended_s, tt_plan_delay_s(replica), 0};
        ended->wait_s = tt_plan_wait_s(replica, ended->delay_s, plan->seen->now_s);
        self->waiting += !plan->replaced[i] && ended->wait_s > 0;
    }
    qsort(self->ended, self->ended_count, sizeof *self->ended, s_newest_first);
}

/*  The next that is due, from *at on. NULL: none. */
static const ended_t *s_due(const number_t *self, size_t *at)
{
    for (; *at < self->ended_count; (*at)++)
        if (!self->plan->replaced[self->ended[*at].replica] && self->ended[*at].wait_s <= 0)
            return &self->ended[(*at)++];
    return NULL;
}

static bool s_create(number_t *self, const ended_t *old)
{
    tt_action_t *action = plan_create(self->plan, self->group);
    if (action && old) {
        action->replica = old->replica;
        action->backoff_s = old->delay_s;
        action->failures = tt_plan_failures(&self->plan->seen->replicas[old->replica], self->plan->seen->now_s);
        self->plan->replaced[old->replica] = true;
    }
    return action != NULL;
}

/*  The earliest time that somebody's place may be taken. */
static void s_wait(const number_t *self)
{
    for (size_t i = 0; i < self->ended_count; i++)
        if (!self->plan->replaced[self->ended[i].replica] && self->ended[i].wait_s > 0)
            plan_again(self->plan, self->ended[i].wait_s);
}

/* ---- by number ------------------------------------------------------------------------------------------------------------ */

static void s_surplus(number_t *self, size_t n)
{
    const tt_seen_t *seen = self->plan->seen;
    size_t *victims = tt_array0(n, sizeof *victims);
    const size_t count = tt_plan_victims(seen->replicas, seen->replica_count, self->group, n, victims);
    for (size_t i = 0; i < count; i++)
        plan_delete(self->plan, victims[i], -1);
    free(victims);
}

/*  The newest failed ones are kept for reading; what else has ended goes, unless it still holds its back-off. */
static void s_tidy(number_t *self, bool missing)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->ended_count; i++) {
        const size_t at = self->ended[i].replica;
        const tt_replica_t *replica = &self->plan->seen->replicas[at];
        const bool holds = missing && !self->plan->replaced[at];
        const bool readable = replica->state == TT_REPLICA_FAILED && replica->over;
        if (holds || (readable && kept < self->rule->keep_failed))
            kept += readable;
        else
            plan_delete(self->plan, at, -1);
    }
}

static void s_by_number(number_t *self, bool may_create)
{
    const size_t want = (size_t)self->rule->want;
    const size_t missing = want > self->there ? want - self->there : 0;
    size_t at = 0;
    if (self->there > want)
        s_surplus(self, self->there - want);
    if (may_create) {
        for (size_t n = missing > self->waiting ? missing - self->waiting : 0; n > 0; n--)
            if (!s_create(self, s_due(self, &at)))
                break;
        if (missing > 0)
            s_wait(self);
    }
    s_tidy(self, missing > 0);
}

/* ---- as they are ---------------------------------------------------------------------------------------------------------- */

/*  Has a successor, and is itself nobody's whose end would have to be seen anew without it. */
static bool s_is_done_with(const plan_t *plan, size_t at)
{
    const char *before = plan->seen->replicas[at].replaces;
    return plan->replaced[at] && (!before || plan_find(plan, before) == TT_PLAN_NONE);
}

/*  A failed one goes when the one in its place is there: were it kept, that one's deletion would look like its own
 *  failure once more. */
static void s_as_they_are(number_t *self, bool may_create)
{
    size_t at = 0;
    for (size_t i = 0; i < self->ended_count; i++)
        if (s_is_done_with(self->plan, self->ended[i].replica))
            plan_delete(self->plan, self->ended[i].replica, -1);
    if (!may_create)
        return;
    for (const ended_t *old = s_due(self, &at); old; old = s_due(self, &at))
        if (!s_create(self, old))
            break;
    s_wait(self);
}

void plan_number(plan_t *self, size_t group)
{
    number_t number = {.plan = self, .rule = &self->rules->groups[group], .group = group};
    number.ended = tt_array0(self->seen->replica_count, sizeof *number.ended);
    s_look(&number);
    if (number.rule->want >= 0)
        s_by_number(&number, plan_may_create(self, group));
    else
        s_as_they_are(&number, plan_may_create(self, group));
    free(number.ended);
}

/* ---- who goes first --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const tt_replica_t *replica;
    size_t at;
} victim_t;

/*  Before the other one: has done least so far. */
static int s_least_first(const void *left, const void *right)
{
    const tt_replica_t *a = ((const victim_t *)left)->replica, *b = ((const victim_t *)right)->replica;
    if (a->scheduled != b->scheduled)
        return a->scheduled ? 1 : -1;
    if (a->ready != b->ready)
        return a->ready ? 1 : -1;
    if (a->created_s != b->created_s)
        return a->created_s > b->created_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

size_t tt_plan_victims(const tt_replica_t *replicas, size_t count, size_t group, size_t n, size_t *out)
{
    victim_t *all = tt_array0(count, sizeof *all);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (replicas[i].group == group && tt_replica_alive(&replicas[i]))
            all[found++] = (victim_t){&replicas[i], i};
    qsort(all, found, sizeof *all, s_least_first);
    const size_t chosen = n < found ? n : found;
    for (size_t i = 0; i < chosen; i++)
        out[i] = all[i].at;
    free(all);
    return chosen;
}
