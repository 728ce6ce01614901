/*  plan_decide - how the job is, by those of its replicas that have a say. */
#include <string.h>
#include "common/job/plan_parts.h"

/* ---- the first ------------------------------------------------------------------------------------------------------------- */

/*  Has more to say than the other: not going, the one that decided so far, the one with the right name, the older. */
static bool s_before(const plan_t *self, const tt_replica_t *a, const tt_replica_t *b)
{
    const char *uid = self->before->first;
    const bool same_a = strcmp(a->uid, uid) == 0, same_b = strcmp(b->uid, uid) == 0;
    if (a->deleting != b->deleting)
        return b->deleting;
    if (same_a != same_b)
        return same_a;
    if (a->named != b->named)
        return a->named;
    return plan_older(a, b);
}

/*  Its UID is what tells it from a twin that was deleted by force and may still run. */
static void s_fence(plan_t *self)
{
    const tt_replica_t *first = &self->seen->replicas[self->out->first];
    if (first->deleting || strcmp(self->before->first, first->uid) == 0)
        return;
    self->out->state.restarts += *self->before->first != 0;
    self->out->state.first = first->uid;
}

static bool s_is_first(const plan_t *self, const tt_replica_t *replica)
{
    if (replica->group >= self->rules->group_count)
        return false;
    const tt_group_t *rule = &self->rules->groups[replica->group];
    return rule->decides == TT_DECIDES_FIRST && replica->index == rule->deciding;
}

/*  Of several only one has a say; the front end tells. */
void plan_find_first(plan_t *self)
{
    tt_plan_t *out = self->out;
    const tt_replica_t *replicas = self->seen->replicas;
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        if (!s_is_first(self, &replicas[i]))
            continue;
        out->twins += !replicas[i].deleting;
        if (out->first == TT_PLAN_NONE || s_before(self, &replicas[i], &replicas[out->first]))
            out->first = i;
    }
    if (out->first != TT_PLAN_NONE)
        s_fence(self);
}

/* ---- done? ----------------------------------------------------------------------------------------------------------------- */

typedef struct {
    size_t all, ready, succeeded;
} count_t;

static count_t s_count(const plan_t *self, size_t group)
{
    count_t count = {0};
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        if (replica->group != group || !plan_stays(self, i))
            continue;
        count.all++;
        count.ready += replica->ready && replica->state == TT_REPLICA_RUNNING;
        count.succeeded += replica->state == TT_REPLICA_SUCCEEDED;
    }
    return count;
}

static bool s_first_is(const plan_t *self, tt_replica_state_t state)
{
    const size_t first = self->out->first;
    return first != TT_PLAN_NONE && plan_stays(self, first) && self->seen->replicas[first].state == state;
}

static bool s_satisfied(const plan_t *self, size_t group)
{
    const tt_group_t *rule = &self->rules->groups[group];
    const count_t count = s_count(self, group);
    const size_t wanted = rule->want < 0 ? count.all : (size_t)rule->want;
    if (rule->decides == TT_DECIDES_FIRST)
        return s_first_is(self, TT_REPLICA_SUCCEEDED);
    if (rule->decides == TT_DECIDES_ANY)
        return count.succeeded > 0;
    return count.succeeded >= wanted && (rule->want >= 0 || wanted > 0);
}

/*  A group of nobody is satisfied, but does not end a job by itself. */
bool plan_done(const plan_t *self)
{
    size_t succeeded = 0;
    for (size_t i = 0; i < self->rules->group_count; i++) {
        if (self->rules->groups[i].decides == TT_DECIDES_NONE)
            continue;
        if (!s_satisfied(self, i))
            return false;
        succeeded += s_count(self, i).succeeded;
    }
    return succeeded > 0;
}

static bool s_is_running(const plan_t *self)
{
    size_t all = 0;
    for (size_t i = 0; i < self->rules->group_count; i++) {
        const tt_group_t *rule = &self->rules->groups[i];
        if (rule->decides == TT_DECIDES_FIRST)
            return s_first_is(self, TT_REPLICA_RUNNING);
        const count_t count = s_count(self, i);
        const int64_t need = rule->min >= 0 && (rule->want < 0 || rule->min < rule->want) ? rule->min : rule->want;
        if ((int64_t)(count.ready + count.succeeded) < need)
            return false;
        all += count.ready;
    }
    return all > 0;
}

/* ---- failed? --------------------------------------------------------------------------------------------------------------- */

/*  A replica that failed by its own doing, in whose place no other runs, and that has a say. */
static bool s_is_fault(const plan_t *self, size_t at)
{
    const tt_replica_t *replica = &self->seen->replicas[at];
    return replica->group < self->rules->group_count && plan_failed(self, at) && !self->replaced[at] &&
           !replica->lost && !replica->refused && (!s_is_first(self, replica) || at == self->out->first);
}

/*  128 + SIGINT, SIGKILL, SIGUSR1, SIGTERM: somebody from outside ended it. */
static bool s_is_signal(int32_t code)
{
    return code == 130 || code == 137 || code == 138 || code == 143;
}

static bool s_is_final_code(const tt_group_t *rule, const tt_replica_t *replica)
{
    switch (rule->final_codes) {
    case TT_CODES_TUTTI: /* also of one that waits to be started again */
        return tt_exit_is_final(replica->exit_code);
    case TT_CODES_PLAIN:
        return replica->state == TT_REPLICA_FAILED && replica->exit_code > 0 && replica->exit_code < 128;
    case TT_CODES_SIGNAL:
        return replica->state == TT_REPLICA_FAILED && replica->exit_code > 0 && !s_is_signal(replica->exit_code);
    case TT_CODES_LISTED:
        return tt_code_set_has(rule->listed, replica->exit_code);
    case TT_CODES_NONE:
    case TT_CODES_RULES:
        break;
    }
    return false;
}

bool plan_code(plan_t *self)
{
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        if (replica->group < self->rules->group_count && plan_stays(self, i) && !self->replaced[i] &&
            !replica->disrupted && !replica->lost && !replica->refused &&
            s_is_final_code(&self->rules->groups[replica->group], replica)) {
            plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, TT_WHY_CODE, i, 1, 0});
            return true;
        }
    }
    return false;
}

static bool s_fail(plan_t *self)
{
    for (size_t i = 0; i < self->seen->replica_count; i++)
        if (s_is_fault(self, i) && self->rules->groups[self->seen->replicas[i].group].on_failure == TT_FAILURE_FAIL) {
            const tt_why_t why = i == self->out->first ? TT_WHY_FIRST : TT_WHY_REPLICA;
            plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, why, i, 1, 0});
            return true;
        }
    return false;
}

/*  Would its restart count? Of the first the next one's UID counts; of the others each tells by what number it was made: who
 *  failed before the last restart that was counted belongs to that one. */
static bool s_is_uncounted(const plan_t *self, size_t at)
{
    const tt_replica_t *replica = &self->seen->replicas[at];
    if (!s_is_fault(self, at) || replica->disrupted)
        return false;
    const tt_group_t *rule = &self->rules->groups[replica->group];
    return rule->on_failure == TT_FAILURE_REPLACE && rule->identity == TT_ID_ORDINAL &&
           (s_is_first(self, replica) || replica->restarts >= self->before->restarts);
}

static void s_count_restart(plan_t *self)
{
    const int64_t limit = self->rules->backoff_limit;
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        if (!s_is_uncounted(self, i))
            continue;
        if (limit >= 0 && self->out->state.restarts >= limit) {
            plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, TT_WHY_LIMIT, i, (size_t)self->out->state.restarts, 0});
            return;
        }
        if (!s_is_first(self, &self->seen->replicas[i])) {
            self->out->state.restarts++;
            return;
        }
    }
}

/*  Of those that run and come again; a limit of 0 allows none. True: too often, the job has failed. */
static bool s_restarted_inside(plan_t *self)
{
    const int64_t limit = self->rules->backoff_limit;
    int64_t sum = 0;
    size_t most = TT_PLAN_NONE;
    for (size_t i = 0; i < self->seen->replica_count && limit >= 0; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        if (replica->group >= self->rules->group_count || !plan_stays(self, i) || !tt_replica_alive(replica) ||
            self->rules->groups[replica->group].on_failure != TT_FAILURE_REPLACE)
            continue;
        sum += replica->own_restarts;
        if (most == TT_PLAN_NONE || replica->own_restarts > self->seen->replicas[most].own_restarts)
            most = i;
    }
    if (sum == 0 || sum < limit)
        return false;
    plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, TT_WHY_LIMIT, most, (size_t)sum, 0});
    return true;
}

/* ---- in a row -------------------------------------------------------------------------------------------------------------- */

/*  It does not work: what is in it waits to be started again, or another is to take its place; not one that is kept for reading alone. */
static bool s_is_down(const plan_t *self, size_t at)
{
    const tt_replica_t *replica = &self->seen->replicas[at];
    const int64_t want = self->rules->groups[replica->group].want;
    int64_t alive = 0;
    if (replica->disrupted || !plan_stays(self, at))
        return false;
    if (replica->waits || !s_is_fault(self, at))
        return replica->waits;
    for (size_t i = 0; i < self->seen->replica_count; i++)
        alive += self->seen->replicas[i].group == replica->group && tt_replica_alive(&self->seen->replicas[i]);
    return want < 0 || alive < want;
}

/*  One of its group was there when it came, and works: what ails this one is not the group's. */
static bool s_is_outlived(const plan_t *self, size_t at, int64_t limit)
{
    const tt_replica_t *failed = &self->seen->replicas[at];
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *other = &self->seen->replicas[i];
        if (i != at && other->group == failed->group && tt_replica_alive(other) && other->ready &&
            other->created_s <= failed->created_s && tt_plan_failures(other, self->seen->now_s) < limit)
            return true;
    }
    return false;
}

/*  True: so often in a row, and nobody of the group works, that it will not get better. */
static bool s_failed_in_a_row(plan_t *self)
{
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        const int64_t limit =
            replica->group < self->rules->group_count ? self->rules->groups[replica->group].fail_after : 0;
        const int32_t failures = limit > 0 ? tt_plan_failures(replica, self->seen->now_s) : 0;
        if (limit > 0 && failures >= limit && s_is_down(self, i) && !s_is_outlived(self, i, limit)) {
            plan_stage(self, (tt_fact_t){TT_STAGE_FAILED, TT_WHY_IN_A_ROW, i, (size_t)failures, 0});
            return true;
        }
    }
    return false;
}

void plan_decide(plan_t *self)
{
    const bool alone = !plan_is_in_step(self); /* else plan_step says what those of its groups make of it */
    const tt_why_t why = self->out->first != TT_PLAN_NONE ? TT_WHY_FIRST : TT_WHY_RULES;
    if (alone && plan_done(self)) {
        plan_stage(self, (tt_fact_t){TT_STAGE_SUCCEEDED, why, self->out->first, 0, 0});
        return;
    }
    if (s_fail(self))
        return;
    if (alone && s_is_running(self))
        plan_stage(self, (tt_fact_t){TT_STAGE_RUNNING, why, self->out->first, 0, 0});
    if (self->rules->watch_only || (alone && plan_code(self)) || s_restarted_inside(self) || s_failed_in_a_row(self))
        return;
    s_count_restart(self);
}
