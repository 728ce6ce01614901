/*  plan_act - actions, names, waits: what every rule of a plan needs. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/plan_parts.h"

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static size_t s_hash(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (size_t)(hash ^ hash >> 32);
}

/*  The place of a name, or the free one where it belongs. */
static size_t s_slot(const plan_index_t *self, const char *name)
{
    size_t at = s_hash(name) & (self->room - 1);
    while (self->names[at] && strcmp(self->names[at], name) != 0)
        at = (at + 1) & (self->room - 1);
    return at;
}

static void s_index(plan_t *self)
{
    const tt_seen_t *seen = self->seen;
    plan_index_t *names = &self->names;
    for (names->room = 16; names->room < 2 * seen->replica_count;)
        names->room *= 2;
    names->names = tt_array0(names->room, sizeof *names->names);
    names->values = tt_array0(names->room, sizeof *names->values);
    for (size_t i = 0; i < seen->replica_count; i++) {
        const size_t at = s_slot(names, seen->replicas[i].name);
        names->names[at] = seen->replicas[i].name;
        names->values[at] = i;
    }
    for (size_t i = 0; i < seen->replica_count; i++) {
        const size_t old = seen->replicas[i].replaces ? plan_find(self, seen->replicas[i].replaces) : TT_PLAN_NONE;
        if (old != TT_PLAN_NONE)
            self->replaced[old] = true;
    }
}

size_t plan_find(const plan_t *self, const char *name)
{
    const size_t at = s_slot(&self->names, name);
    return self->names.names[at] ? self->names.values[at] : TT_PLAN_NONE;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

void plan_open(
    plan_t *self, tt_plan_t *out, const tt_rules_t *rules, const tt_plan_state_t *state, const tt_seen_t *seen)
{
    *out = (tt_plan_t){.state = *state, .first = TT_PLAN_NONE, .again_s = -1};
    *self = (plan_t){.rules = rules, .seen = seen, .before = state, .out = out};
    self->going = tt_array0(seen->replica_count, sizeof *self->going);
    self->replaced = tt_array0(seen->replica_count, sizeof *self->replaced);
    s_index(self);
}

void plan_close(plan_t *self)
{
    free(self->names.names);
    free(self->names.values);
    free(self->going);
    free(self->replaced);
}

void tt_plan_clear(tt_plan_t *self)
{
    free(self->actions);
    *self = (tt_plan_t){.again_s = -1};
}

/* ---- actions ----------------------------------------------------------------------------------------------------------- */

tt_action_t *plan_action(plan_t *self, tt_do_t what)
{
    tt_plan_t *out = self->out;
    if (out->count == out->room) {
        out->room = out->room ? 2 * out->room : 8;
        out->actions = tt_realloc(out->actions, tt_mul(out->room, sizeof *out->actions));
    }
    tt_action_t *action = &out->actions[out->count++];
    *action = (tt_action_t){.what = what,
        .replica = TT_PLAN_NONE,
        .service = TT_PLAN_NONE,
        .owner = TT_PLAN_NONE,
        .index = -1,
        .rank = -1,
        .grace_s = -1};
    return action;
}

tt_action_t *plan_create(plan_t *self, size_t group)
{
    const int64_t restarts = self->out->state.restarts, reshapes = self->out->state.reshapes;
    if (self->creates == TT_PLAN_CREATES_MAX) {
        plan_again(self, 0);
        return NULL;
    }
    self->creates++;
    tt_action_t *action = plan_action(self, TT_DO_CREATE);
    action->group = group;
    action->restarts = restarts < INT32_MAX ? (int32_t)restarts : INT32_MAX;
    action->reshapes = reshapes < TT_PLAN_RESHAPES_MAX ? (int32_t)reshapes : TT_PLAN_RESHAPES_MAX;
    return action;
}

void plan_delete(plan_t *self, size_t replica, int grace_s)
{
    if (!plan_stays(self, replica))
        return;
    self->going[replica] = true;
    tt_action_t *action = plan_action(self, TT_DO_DELETE);
    action->replica = replica;
    action->grace_s = grace_s;
}

void plan_delete_after(plan_t *self, size_t replica, int64_t delay_s)
{
    const int64_t wait_s = tt_plan_wait_s(&self->seen->replicas[replica], delay_s, self->seen->now_s);
    if (wait_s > 0)
        plan_again(self, wait_s);
    else
        plan_delete(self, replica, -1);
}

void plan_again(plan_t *self, int64_t seconds)
{
    if (seconds < 0)
        seconds = 0;
    if (self->out->again_s < 0 || seconds < self->out->again_s)
        self->out->again_s = seconds;
}

void plan_stage(plan_t *self, tt_fact_t fact)
{
    tt_plan_t *out = self->out;
    TT_CHECK(out->fact_count < TT_COUNT(out->facts));
    out->facts[out->fact_count++] = fact;
    out->state.stage = fact.stage;
    if (fact.stage == TT_STAGE_RUNNING && out->state.started_s == 0)
        out->state.started_s = self->seen->now_s;
    if (tt_stage_final(fact.stage))
        out->state.ended_s = self->seen->now_s;
}

/* ---- questions --------------------------------------------------------------------------------------------------------- */

bool plan_stays(const plan_t *self, size_t replica)
{
    return !self->seen->replicas[replica].deleting && !self->going[replica];
}

bool plan_failed(const plan_t *self, size_t replica)
{
    return plan_stays(self, replica) && self->seen->replicas[replica].state == TT_REPLICA_FAILED;
}

/*  Its template is there, and so is the one that it is of use to. */
bool plan_may_create(const plan_t *self, size_t group)
{
    const tt_group_t *rule = &self->rules->groups[group];
    if (rule->blocked || rule->after == TT_GROUP_NONE)
        return !rule->blocked;
    for (size_t i = 0; i < self->seen->replica_count; i++) {
        const tt_replica_t *replica = &self->seen->replicas[i];
        const tt_replica_t *decides = self->out->first == TT_PLAN_NONE ? NULL : &self->seen->replicas[self->out->first];
        const bool first = !decides || decides == replica || decides->group != (size_t)rule->after ||
                           decides->index != 0; /* of twins the one that has a say */
        if (replica->group == (size_t)rule->after && replica->index == 0 && first && !replica->deleting &&
            replica->state != TT_REPLICA_FAILED)
            return true;
    }
    return false;
}

bool plan_older(const tt_replica_t *a, const tt_replica_t *b)
{
    return a->created_s != b->created_s ? a->created_s < b->created_s : strcmp(a->name, b->name) < 0;
}

bool tt_code_set_has(const tt_code_set_t *self, int code)
{
    return code >= 0 && code < TT_EXIT_CODES && (self->bits[code / 64] >> code % 64 & 1);
}

void tt_code_set_put(tt_code_set_t *self, int code, bool on)
{
    const uint64_t bit = UINT64_C(1) << code % 64;
    TT_CHECK(code >= 0 && code < TT_EXIT_CODES);
    self->bits[code / 64] = on ? self->bits[code / 64] | bit : self->bits[code / 64] & ~bit;
}

bool tt_stage_final(tt_stage_t stage)
{
    return stage == TT_STAGE_SUCCEEDED || stage == TT_STAGE_FAILED;
}

bool tt_replica_alive(const tt_replica_t *self)
{
    return !self->deleting && self->state != TT_REPLICA_SUCCEEDED && self->state != TT_REPLICA_FAILED;
}

int64_t tt_plan_delay_s(const tt_replica_t *self)
{
    const bool well = !self->deleting && self->state == TT_REPLICA_SUCCEEDED;
    const tt_backoff_rule_t rule = {.first = well ? TT_PLAN_SUCCESS_S : 1, .most = TT_PLAN_BACKOFF_MAX_S};
    if (self->disrupted)
        return 0;
    return tt_backoff_next(&rule, self->ended_s - self->created_s >= TT_PLAN_RESET_S ? 0 : self->backoff_s);
}

int32_t tt_plan_failures(const tt_replica_t *self, int64_t now_s)
{
    const bool ended = self->state == TT_REPLICA_SUCCEEDED || self->state == TT_REPLICA_FAILED;
    const bool failed = self->state == TT_REPLICA_FAILED || self->waits;
    const bool fault = failed && !self->disrupted && !self->lost && !self->refused;
    const int64_t lived_s = (ended ? self->ended_s : now_s) - self->created_s;
    const int64_t since_s = ended ? now_s - self->ended_s : 0;
    const int64_t inside = self->own_restarts * (int64_t)TT_PLAN_RESET_S > lived_s ? self->own_restarts : 0;
    if (self->state == TT_REPLICA_SUCCEEDED || since_s >= TT_PLAN_RESET_S || (lived_s >= TT_PLAN_RESET_S && !inside))
        return 0;
    const int64_t failures = self->failures + inside + fault;
    return failures < INT32_MAX ? (int32_t)failures : INT32_MAX;
}

int64_t tt_plan_wait_s(const tt_replica_t *self, int64_t delay_s, int64_t now_s)
{
    const int64_t wait_s = self->ended_s + delay_s - now_s;
    if (wait_s > 2 * TT_PLAN_BACKOFF_MAX_S) /* its host's clock is wrong */
        return 0;
    return wait_s > 0 ? wait_s : 0;
}
