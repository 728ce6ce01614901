/*  plan_step - the groups that go in step: a state machine, one stage a round, each written before it is acted on, so that
 *  what it counts (restarts, reshapes) is counted once. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

/*  The wanted replicas are a row of slots, group by group and place by place; each is empty or has one. */
typedef struct {
    plan_t *plan;
    size_t wanted; /* slots                                                   */
    size_t *slots; /* [wanted] a replica; TT_PLAN_NONE = empty                 */
    bool *surplus; /* [replica_count] has no slot                             */
    bool *ranks;   /* [rank_room] numbers of those that have one              */
    size_t rank_room, next_rank;
    size_t here; /* replicas that count: not going, not lost                */
    size_t filled, ready, succeeded, failed;
    size_t first_failed;
    bool changed; /* this round makes or removes replicas, or waits for one  */
} step_t;

static bool s_is_member(const plan_t *plan, size_t group)
{
    return group >= plan->rules->group_count || plan->rules->groups[group].on_failure == TT_FAILURE_RESTART_JOB;
}

bool plan_is_in_step(const plan_t *self)
{
    for (size_t i = 0; i < self->rules->group_count; i++)
        if (self->rules->groups[i].on_failure == TT_FAILURE_RESTART_JOB)
            return true;
    return false;
}

/*  It goes without being counted. */
static bool s_is_lost(const tt_replica_t *replica)
{
    return replica->state == TT_REPLICA_FAILED && (replica->lost || replica->refused);
}

static bool s_is_failed(const tt_replica_t *replica)
{
    return replica->state == TT_REPLICA_FAILED && !s_is_lost(replica);
}

static bool s_counts(const plan_t *plan, size_t at)
{
    const tt_replica_t *replica = &plan->seen->replicas[at];
    return s_is_member(plan, replica->group) && plan_stays(plan, at) && !s_is_lost(replica);
}

/* ---- who has which slot ----------------------------------------------------------------------------------------------------- */

/*  The slot of a replica, an empty one of its group where it is anyone's; `wanted` = none. */
static size_t s_slot(const step_t *self, const tt_replica_t *replica)
{
    size_t slot = 0, from = 0;
    for (size_t g = 0; g < self->plan->rules->group_count; g++) {
        const tt_group_t *rule = &self->plan->rules->groups[g];
        const size_t want = rule->on_failure == TT_FAILURE_RESTART_JOB ? (size_t)rule->want : 0;
        if (g == replica->group) {
            if (rule->identity == TT_ID_ORDINAL)
                return replica->index >= 0 && (size_t)replica->index < want ? slot + (size_t)replica->index
                                                                            : self->wanted;
            for (from = slot; from < slot + want; from++)
                if (self->slots[from] == TT_PLAN_NONE)
                    return from;
            return self->wanted;
        }
        slot += want;
    }
    return self->wanted;
}

typedef struct {
    const tt_replica_t *replica;
    size_t at;
} aged_t;

static int s_oldest_first(const void *left, const void *right)
{
    return plan_older(((const aged_t *)left)->replica, ((const aged_t *)right)->replica) ? -1 : 1;
}

/*  Of two in one place, or with one number (an answer was lost, and the rules changed meanwhile), the older one stays. */
static void s_place(step_t *self, const aged_t *aged)
{
    const size_t slot = s_slot(self, aged->replica);
    const int32_t rank = aged->replica->rank;
    const bool numbered = rank >= 0 && (size_t)rank < self->rank_room;
    if (slot == self->wanted || self->slots[slot] != TT_PLAN_NONE || (numbered && self->ranks[rank])) {
        self->surplus[aged->at] = true;
        return;
    }
    self->slots[slot] = aged->at;
    self->filled++;
    if (numbered)
        self->ranks[rank] = true;
}

static void s_count(step_t *self, size_t at)
{
    const tt_replica_t *replica = &self->plan->seen->replicas[at];
    self->here++;
    self->ready += replica->ready && replica->state == TT_REPLICA_RUNNING;
    self->succeeded += replica->state == TT_REPLICA_SUCCEEDED;
    if (s_is_failed(replica) && self->failed++ == 0)
        self->first_failed = at;
}

static void s_place_all(step_t *self)
{
    const tt_seen_t *seen = self->plan->seen;
    aged_t *aged = tt_array0(seen->replica_count, sizeof *aged);
    size_t count = 0;
    for (size_t i = 0; i < seen->replica_count; i++)
        if (s_counts(self->plan, i)) {
            aged[count++] = (aged_t){&seen->replicas[i], i};
            s_count(self, i);
        }
    qsort(aged, count, sizeof *aged, s_oldest_first);
    for (size_t i = 0; i < count; i++)
        s_place(self, &aged[i]);
    free(aged);
}

static void s_look(step_t *self)
{
    const tt_rules_t *rules = self->plan->rules;
    const size_t count = self->plan->seen->replica_count;
    for (size_t i = 0; i < rules->group_count; i++)
        self->wanted += s_is_member(self->plan, i) ? (size_t)rules->groups[i].want : 0;
    self->rank_room = count + self->wanted + 1;
    self->slots = tt_array0(self->wanted, sizeof *self->slots);
    self->surplus = tt_array0(count, sizeof *self->surplus);
    self->ranks = tt_array0(self->rank_room, sizeof *self->ranks);
    for (size_t i = 0; i < self->wanted; i++)
        self->slots[i] = TT_PLAN_NONE;
    s_place_all(self);
}

/*  As many as asked for, and those. */
static bool s_complete(const step_t *self)
{
    return self->filled == self->wanted && self->here == self->wanted;
}

/* ---- towards the numbers ---------------------------------------------------------------------------------------------------- */

static void s_delete(step_t *self, size_t at)
{
    plan_delete(self->plan, at, -1);
    self->changed = true;
}

static void s_delete_after(step_t *self, size_t at, int64_t delay_s)
{
    plan_delete_after(self->plan, at, delay_s);
    self->changed = true;
}

/*  Places that are not asked for any more, and replicas of groups that are no more. */
static void s_trim(step_t *self)
{
    for (size_t i = 0; i < self->plan->seen->replica_count; i++)
        if (self->surplus[i] && plan_stays(self->plan, i))
            s_delete(self, i);
}

/*  Numbers in use; the lowest free one is next. */
static void s_ranks(step_t *self)
{
    for (size_t i = 0; i < self->rank_room; i++)
        self->ranks[i] = false;
    for (size_t i = 0; i < self->plan->seen->replica_count; i++) {
        const int32_t rank = self->plan->seen->replicas[i].rank;
        if (plan_stays(self->plan, i) && rank >= 0 && (size_t)rank < self->rank_room)
            self->ranks[rank] = true;
    }
}

static int32_t s_take_rank(step_t *self)
{
    while (self->next_rank + 1 < self->rank_room && self->ranks[self->next_rank])
        self->next_rank++;
    self->ranks[self->next_rank] = true;
    return (int32_t)self->next_rank;
}

/*  One of that place, be it on its way out. */
static bool s_is_held(const step_t *self, size_t group, int32_t index)
{
    for (size_t i = 0; i < self->plan->seen->replica_count; i++)
        if (self->plan->seen->replicas[i].group == group && self->plan->seen->replicas[i].index == index)
            return true;
    return false;
}

static void s_create(step_t *self, size_t group, int32_t index)
{
    const bool ordinal = self->plan->rules->groups[group].identity == TT_ID_ORDINAL;
    const int32_t rank = s_take_rank(self);
    self->changed = true;
    if (!plan_may_create(self->plan, group) || (ordinal && s_is_held(self, group, index)))
        return;
    tt_action_t *action = plan_create(self->plan, group);
    if (action) {
        action->index = ordinal ? index : -1;
        action->rank = rank;
    }
}

/*  What is missing, lowest places first. */
static void s_fill(step_t *self)
{
    const tt_rules_t *rules = self->plan->rules;
    s_ranks(self);
    for (size_t group = 0, slot = 0; group < rules->group_count; group++)
        for (int64_t i = 0; s_is_member(self->plan, group) && i < rules->groups[group].want; i++, slot++)
            if (self->slots[slot] == TT_PLAN_NONE || !plan_stays(self->plan, self->slots[slot]))
                s_create(self, group, (int32_t)i);
}

static void s_remove_lost(step_t *self)
{
    for (size_t i = 0; i < self->plan->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->plan->seen->replicas[i];
        if (s_is_member(self->plan, replica->group) && plan_stays(self->plan, i) && s_is_lost(replica))
            s_delete_after(self, i, replica->refused ? TT_PLAN_REFUSED_S : 0);
    }
}

/*  True: the numbers are reached. */
static bool s_settle(step_t *self)
{
    s_remove_lost(self);
    s_trim(self);
    s_fill(self);
    return !self->changed;
}

/* ---- stages ----------------------------------------------------------------------------------------------------------------- */

static void s_stage(step_t *self, tt_stage_t stage, tt_why_t why)
{
    plan_stage(self->plan, (tt_fact_t){stage, why, TT_PLAN_NONE, self->here, self->wanted});
}

static void s_failed(step_t *self)
{
    plan_t *plan = self->plan;
    const int64_t limit = plan->rules->backoff_limit;
    const bool over = limit >= 0 && plan->before->restarts >= limit;
    if (plan_code(plan))
        return;
    if (!over)
        plan->out->state.restarts = plan->before->restarts + 1;
    plan_stage(plan, (tt_fact_t){over ? TT_STAGE_FAILED : TT_STAGE_RESTARTING, over ? TT_WHY_LIMIT : TT_WHY_RULES,
                         self->first_failed, self->failed, self->wanted});
}

static bool s_is_done(const step_t *self)
{
    const tt_rules_t *rules = self->plan->rules;
    bool all = false;
    for (size_t i = 0; i < rules->group_count; i++)
        all |= s_is_member(self->plan, i) && rules->groups[i].decides == TT_DECIDES_ALL;
    return (!all || s_complete(self)) && plan_done(self->plan);
}

/*  Enough of each group are there for the work to go on. */
static bool s_is_ready(const step_t *self)
{
    const plan_t *plan = self->plan;
    size_t slot = 0;
    for (size_t g = 0; g < plan->rules->group_count; g++) {
        const tt_group_t *rule = &plan->rules->groups[g];
        int64_t there = 0;
        for (int64_t i = 0; s_is_member(plan, g) && i < rule->want; i++, slot++) {
            const tt_replica_t *replica = &plan->seen->replicas[self->slots[slot]];
            there += replica->state == TT_REPLICA_SUCCEEDED || (replica->ready && replica->state == TT_REPLICA_RUNNING);
        }
        if (s_is_member(plan, g) && there < (rule->min >= 0 && rule->min < rule->want ? rule->min : rule->want))
            return false;
    }
    return true;
}

static void s_working(step_t *self)
{
    if (s_is_done(self))
        s_stage(self, TT_STAGE_SUCCEEDED, TT_WHY_RULES);
    else if (self->failed > 0)
        s_failed(self);
    else if (!s_complete(self)) {
        self->plan->out->state.reshapes++;
        s_stage(self, TT_STAGE_RESHAPING, TT_WHY_RULES);
    } else if (s_is_ready(self))
        s_stage(self, TT_STAGE_RUNNING, TT_WHY_RULES);
}

/*  What failed goes, others come in its place: at once the first time, after 1 s doubling to 60 s from the second on. */
static void s_restarting(step_t *self)
{
    const tt_seen_t *seen = self->plan->seen;
    const int64_t restarts = self->plan->before->restarts;
    const tt_backoff_rule_t rule = {.at_once = 1, .first = 1, .most = TT_PLAN_BACKOFF_MAX_S};
    const int64_t delay = tt_backoff_wait(&rule, restarts);
    for (size_t i = 0; i < seen->replica_count; i++) {
        const tt_replica_t *replica = &seen->replicas[i];
        const bool old = replica->ended_s - replica->created_s >= TT_PLAN_RESET_S;
        if (s_counts(self->plan, i) && s_is_failed(replica))
            s_delete_after(self, i, old ? 0 : delay);
    }
    if (s_settle(self))
        s_stage(self, TT_STAGE_STARTING, TT_WHY_AGAIN);
}

/*  Who was there before this began goes, all of them, before anybody comes. Told by numbers: times of creation are whole
 *  seconds of another clock. */
static bool s_all_gone(step_t *self)
{
    const tt_seen_t *seen = self->plan->seen;
    const int64_t count = self->plan->before->reshapes;
    const int32_t now = count < TT_PLAN_RESHAPES_MAX ? (int32_t)count : TT_PLAN_RESHAPES_MAX;
    bool gone = true;
    for (size_t i = 0; i < seen->replica_count; i++)
        if (s_is_member(self->plan, seen->replicas[i].group) && seen->replicas[i].reshapes != now) {
            s_delete(self, i);
            gone = false;
        }
    return gone;
}

static void s_reshaping(step_t *self)
{
    if (self->plan->rules->whole && !s_all_gone(self))
        return;
    if (s_settle(self))
        s_stage(self, TT_STAGE_STARTING, TT_WHY_AGAIN);
}

static void s_step(step_t *self)
{
    switch (self->plan->out->state.stage) {
    case TT_STAGE_PENDING:
        if (s_settle(self))
            s_stage(self, TT_STAGE_STARTING, TT_WHY_RULES);
        break;
    case TT_STAGE_STARTING:
    case TT_STAGE_RUNNING:
        s_working(self);
        break;
    case TT_STAGE_RESTARTING:
        s_restarting(self);
        break;
    case TT_STAGE_RESHAPING:
        s_reshaping(self);
        break;
    case TT_STAGE_NEW:
    case TT_STAGE_SUSPENDED:
    case TT_STAGE_SUCCEEDED:
    case TT_STAGE_FAILED:
        s_stage(self, TT_STAGE_PENDING, TT_WHY_RULES);
        s_settle(self);
        break;
    }
}

void plan_step(plan_t *self)
{
    step_t step = {.plan = self, .first_failed = TT_PLAN_NONE};
    s_look(&step);
    s_step(&step);
    free(step.slots);
    free(step.surplus);
    free(step.ranks);
}
