#define TT_LOG_COMPONENT "roster"
#include <stdlib.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/placement.h"
#include "coordinator/roster_parts.h"

static bool s_is_victim(const roster_t *self, const peer_t *peer)
{
    const bool surplus = peer->index < ROSTER_BY_HAND && peer->index >= self->cfg.desired[peer->role];
    return (peer->state == PEER_WAITING || peer->state == PEER_ACTIVE) && (surplus || peer->asks);
}

/*  Would the weights leave with the victims? Then those that hold them stay until another learner does. */
static bool s_must_stay(const roster_t *self, const peer_t *victim)
{
    if (victim->role != TT_PEER_LEARNER || !victim->holds)
        return false;
    for (size_t i = 0; i < self->peer_count; i++) {
        const peer_t *peer = self->peers[i];
        if (peer->role == TT_PEER_LEARNER && peer->state == PEER_ACTIVE && peer->holds && !s_is_victim(self, peer))
            return false;
    }
    return true;
}

static void s_choose_victims(roster_t *self)
{
    for (size_t i = 0; i < self->peer_count; i++)
        if (s_is_victim(self, self->peers[i]) && !s_must_stay(self, self->peers[i]))
            roster_fire(self, self->peers[i], PEER_VICTIM);
}

static tt_rec_MEMBER_t s_record(const peer_t *peer)
{
    return (tt_rec_MEMBER_t){.role = peer->role,
        .index = peer->index,
        .instance = peer->instance,
        .pid = peer->pid,
        .memory = peer->memory,
        .data_ipc = tt_strdup(peer->data_ipc),
        .data_tcp = tt_strdup(peer->data_tcp),
        .weights_ipc = tt_strdup(peer->weights_ipc),
        .weights_tcp = tt_strdup(peer->weights_tcp)};
}

static tt_rec_MEMBER_t *s_records(const roster_t *self, const placement_t *placed, size_t *count)
{
    *count = placed->learner_count + placed->collector_count + placed->aggregator_count;
    tt_rec_MEMBER_t *members = tt_array0(*count, sizeof *members), *next = members;
    for (size_t i = 0; i < placed->learner_count; i++, next++) {
        *next = s_record(placed->learners[i]);
        next->rank = (uint32_t)i;
    }
    for (size_t i = 0; i < placed->collector_count; i++, next++) {
        *next = s_record(placed->collectors[i]);
        placement_range(self->cfg.num_envs, i, placed->collector_count, &next->env_lo, &next->env_count);
    }
    for (size_t i = 0; i < placed->aggregator_count; i++, next++)
        *next = s_record(placed->aggregators[i]);
    return members;
}

static bool s_same(const tt_rec_MEMBER_t *a, const tt_rec_MEMBER_t *b)
{
    return a->role == b->role && a->index == b->index && a->instance == b->instance && a->rank == b->rank &&
           a->env_lo == b->env_lo && a->env_count == b->env_count;
}

static bool s_nothing_changes(const roster_t *self, const tt_rec_MEMBER_t *members, size_t count, bool fresh)
{
    if (!self->announced || count != self->member_count || (fresh && (!self->fresh || self->again)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!s_same(&members[i], &self->members[i]))
            return false;
    return true;
}

static bool s_learners_change(const roster_t *self, const tt_rec_MEMBER_t *members, size_t count)
{
    if (!self->announced) /* of an earlier coordinator's learners we know too little */
        return true;
    for (size_t i = 0;; i++) { /* learners stand first, in order of rank */
        const bool now = i < count && members[i].role == TT_PEER_LEARNER;
        const bool then = i < self->member_count && self->members[i].role == TT_PEER_LEARNER;
        if (now != then || (now && members[i].instance != self->members[i].instance))
            return true;
        if (!now)
            return false;
    }
}

/*  Nobody holds weights: a new era begins, unless the one that rank 0 was told to begin, perhaps by an earlier
 *  coordinator, has not begun yet. If it had, rank 0 would hold. */
static void s_begin_era(roster_t *self, const tt_rec_MEMBER_t *rank0, const char *(*restore)(void *ctx), void *ctx)
{
    const tt_rec_MEMBER_t *then = roster_member(self, TT_PEER_LEARNER, rank0->instance);
    const bool told = !self->again && self->fresh && then && then->rank == 0;
    self->fresh = true;
    self->again = false;
    if (told) {
        self->begun = false;
        return;
    }
    const char *from = restore(ctx);
    if (self->era < self->over) {
        self->era = self->over;
        self->begun = true;
    }
    if (self->begun) {
        self->rolled_back++;
        log_warn("no learner holds the weights: era %u begins from %s", self->era + 1, from[0] ? from : "version 0");
    }
    self->begun = false;
    self->era++;
    free(self->restore);
    self->restore = tt_strdup(from);
}

static bool s_somebody_holds(const placement_t *placed)
{
    for (size_t i = 0; i < placed->learner_count; i++)
        if (placed->learners[i]->holds)
            return true;
    return false;
}

static void s_settle(roster_t *self)
{
    for (size_t i = 0; i < self->peer_count; i++) {
        peer_t *peer = self->peers[i];
        const tt_rec_MEMBER_t *member =
            peer->state == PEER_DRAINING ? NULL : roster_member(self, peer->role, peer->instance);
        roster_fire(self, peer, member ? PEER_PLACED : PEER_LEFT_OUT);
        if (!member)
            continue;
        peer->rank = peer->role == TT_PEER_LEARNER ? member->rank : UINT32_MAX;
        peer->env_lo = member->env_lo;
        peer->env_count = member->env_count;
    }
}

/*  Who started them should hear that they do nothing. */
static void s_say_spares(roster_t *self, tt_peer_role_t role, const char *key, uint32_t most)
{
    const uint32_t spares = roster_spares(self, role);
    if (spares > self->spares[role])
        log_warn("%u %ss are here, but %s is %u: %u will do nothing until others leave", most + spares,
            tt_peer_role_name(role), key, most, spares);
    self->spares[role] = spares;
}

bool roster_publish(roster_t *self, const char *(*restore)(void *ctx), void *ctx)
{
    if (roster_may_adopt(self))
        roster_adopt(self);
    s_choose_victims(self);
    s_say_spares(self, TT_PEER_LEARNER, "learner.shards", self->cfg.shards);
    s_say_spares(self, TT_PEER_COLLECTOR, "num_envs", self->cfg.num_envs);
    self->dirty_ns = INT64_MAX;
    placement_t placed;
    placement_make(&placed, self->peers, self->peer_count,
        &(placement_limits_t){.num_envs = self->cfg.num_envs,
            .shards = self->cfg.shards,
            .warms = self->cfg.warms,
            .collectors_warm = self->cfg.collectors_warm});
    size_t count = 0;
    tt_rec_MEMBER_t *members = s_records(self, &placed, &count);
    const bool fresh = placed.learner_count > 0 && !s_somebody_holds(&placed);
    placement_free(&placed);
    if (s_nothing_changes(self, members, count, fresh)) {
        roster_free_members(members, count);
        s_settle(self); /* one may have left and come back in the meantime: it has its place again */
        return false;
    }
    if (fresh)
        s_begin_era(self, &members[0], restore, ctx);
    else
        self->fresh = false;
    self->generation += s_learners_change(self, members, count);
    self->epoch++;
    roster_free_members(self->members, self->member_count);
    self->members = members;
    self->member_count = count;
    self->announced = true;
    s_settle(self);
    return true;
}

void roster_begin_again(roster_t *self)
{
    self->again = self->fresh;
    if (self->again)
        roster_dirty(self);
}

void roster_message(const roster_t *self, tt_msg_ROSTER_t *out)
{
    *out = TT_MSG(ROSTER, .era = self->era, .epoch = self->epoch, .generation = self->generation,
        .restore = self->fresh ? self->restore : NULL, .fresh = self->fresh, .members = self->members,
        .members_count = self->member_count);
}
