#define TT_LOG_COMPONENT "roster"
#include "coordinator/roster.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/placement.h"

/*  Structure of our class */
struct roster {
    roster_cfg_t cfg;
    const tt_clock_t *clock;
    peer_t **peers; /* owned, in order of arrival */
    size_t peer_count, peer_room;
    uint64_t arrivals;

    uint32_t era, rolled_back;
    uint64_t epoch, generation;
    bool announced, fresh;
    bool begun; /* somebody has held weights of this era */
    char *restore;
    tt_rec_MEMBER_t *members; /* of the newest roster, or of the journal's; owned, strings too */
    size_t member_count;

    int64_t dirty_ns;   /* since when something has changed; INT64_MAX = nothing has       */
    int64_t past_until; /* before the first roster: members of the journal's are awaited   */
};

static void s_dirty(roster_t *self)
{
    if (self->dirty_ns == INT64_MAX)
        self->dirty_ns = tt_now_ns(self->clock);
}

static void s_fire(roster_t *self, peer_t *peer, peer_event_t event)
{
    if (peer_fire(peer, event, tt_now_ns(self->clock)))
        s_dirty(self);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

tt_status_t roster_new(roster_t **self_p, const roster_cfg_t *cfg, const tt_clock_t *clock)
{
    if (cfg->num_envs < 1 || cfg->shards < 1 || cfg->lease_ns < 1)
        return tt_err(TT_INVALID, "roster: num_envs, shards and lease must be at least 1");
    roster_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->clock = clock;
    self->dirty_ns = INT64_MAX;
    self->restore = tt_strdup("");
    *self_p = self;
    return TT_OK;
}

static void s_free_members(tt_rec_MEMBER_t *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(members[i].data_ipc);
        free(members[i].data_tcp);
        free(members[i].weights_ipc);
        free(members[i].weights_tcp);
    }
    free(members);
}

void roster_destroy(roster_t **self_p)
{
    roster_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->peer_count; i++)
        peer_destroy(&self->peers[i]);
    free(self->peers);
    s_free_members(self->members, self->member_count);
    free(self->restore);
    free(self);
    *self_p = NULL;
}

void roster_continue(roster_t *self, const roster_past_t *past)
{
    TT_CHECK(self->peer_count == 0 && !self->announced);
    self->era = past->era;
    self->epoch = past->epoch;
    self->generation = past->generation;
    self->fresh = past->fresh;
    self->rolled_back = past->rolled_back;
    self->begun = past->era > 0 && !past->ended;
    if (!past->went_on)
        return;
    self->members = tt_array0(past->member_count, sizeof *self->members);
    self->member_count = past->member_count;
    for (size_t i = 0; i < past->member_count; i++) {
        const roster_past_member_t *m = &past->members[i];
        self->members[i] =
            (tt_rec_MEMBER_t){.role = m->role, .index = m->index, .instance = m->instance, .rank = m->rank};
    }
    self->past_until = tt_now_ns(self->clock) + self->cfg.lease_ns;
}

/* ---- peers --------------------------------------------------------------------------------------------------------- */

peer_t *roster_find(const roster_t *self, const char *identity)
{
    for (size_t i = 0; i < self->peer_count; i++)
        if (strcmp(self->peers[i]->identity, identity) == 0)
            return self->peers[i];
    return NULL;
}

peer_t *roster_holder(const roster_t *self, tt_peer_role_t role, uint32_t index)
{
    for (size_t i = 0; i < self->peer_count; i++)
        if (self->peers[i]->role == role && self->peers[i]->index == index)
            return self->peers[i];
    return NULL;
}

size_t roster_peer_count(const roster_t *self)
{
    return self->peer_count;
}

peer_t *roster_peer(const roster_t *self, size_t i)
{
    return i < self->peer_count ? self->peers[i] : NULL;
}

static peer_t *s_by_instance(const roster_t *self, tt_peer_role_t role, uint64_t instance)
{
    for (size_t i = 0; i < self->peer_count; i++)
        if (self->peers[i]->role == role && self->peers[i]->instance == instance)
            return self->peers[i];
    return NULL;
}

static const tt_rec_MEMBER_t *s_member(const roster_t *self, uint32_t role, uint64_t instance)
{
    for (size_t i = 0; i < self->member_count; i++)
        if (self->members[i].role == role && self->members[i].instance == instance)
            return &self->members[i];
    return NULL;
}

static size_t s_peers_of(const roster_t *self, tt_peer_role_t role)
{
    size_t count = 0;
    for (size_t i = 0; i < self->peer_count; i++)
        count += self->peers[i]->role == role;
    return count;
}

static tt_status_t s_choose_index(const roster_t *self, const tt_msg_HELLO_t *hello, uint32_t *out)
{
    const tt_peer_role_t role = (tt_peer_role_t)hello->role;
    if (s_peers_of(self, role) >= ROSTER_PEERS_MAX)
        return tt_err(
            TT_DENIED, "this run already has %d %ss; stop one first", ROSTER_PEERS_MAX, tt_peer_role_name(role));
    if (hello->index >= 0) {
        const peer_t *holder = roster_holder(self, role, (uint32_t)hello->index);
        if (holder)
            return tt_err(TT_DENIED,
                "%s/%u is in use by process %u on %s; stop that one (its number is free %.1f s after its last word), "
                "or "
                "take any free number with --index -1",
                tt_peer_role_name(role), holder->index, holder->pid, holder->host, (double)self->cfg.lease_ns * 1e-9);
        *out = (uint32_t)hello->index;
        return TT_OK;
    }
    for (uint32_t index = ROSTER_BY_HAND; index <= ROSTER_PEERS_MAX; index++) {
        if (!roster_holder(self, role, index)) {
            *out = index;
            return TT_OK;
        }
    }
    return tt_err(TT_DENIED, "no number is free for one more %s", tt_peer_role_name(role));
}

/*  Weights count only when they are of this era and their learner has never missed a generation. */
static tt_status_t s_check_weights(const roster_t *self, const tt_msg_HELLO_t *hello)
{
    if (hello->era > self->era || hello->generation > self->generation)
        return tt_err(TT_DENIED,
            "you know era %u, generation %" PRIu64 ", this coordinator only %u, %" PRIu64
            " (its journal is gone or is of another run); end, and start anew",
            hello->era, hello->generation, self->era, self->generation);
    if (hello->holds && (hello->era != self->era || !s_member(self, TT_PEER_LEARNER, hello->instance)))
        return tt_err(TT_DENIED,
            "your weights (era %u, generation %" PRIu64 ") are of a roster that is gone (now %u, %" PRIu64
            "); end, and start anew",
            hello->era, hello->generation, self->era, self->generation);
    return TT_OK;
}

static peer_t *s_add_peer(roster_t *self, const char *identity, const tt_msg_HELLO_t *hello, uint32_t index)
{
    peer_t *peer = NULL;
    peer_new(&peer, identity, index, hello);
    peer->order = self->arrivals++;
    const tt_rec_MEMBER_t *past = s_member(self, hello->role, hello->instance);
    peer->rank = past && peer->role == TT_PEER_LEARNER ? past->rank : UINT32_MAX;
    if (self->peer_count == self->peer_room) {
        self->peer_room = self->peer_room ? 2 * self->peer_room : 16;
        self->peers = tt_realloc(self->peers, tt_mul(self->peer_room, sizeof(peer_t *)));
    }
    self->peers[self->peer_count++] = peer;
    return peer;
}

static void s_set_holds(roster_t *self, peer_t *peer, bool holds)
{
    if (peer->role != TT_PEER_LEARNER || peer->holds == holds)
        return;
    peer->holds = holds;
    self->begun |= holds;
    s_dirty(self); /* a postponed victim may go now; nothing is announced when nothing changes */
}

tt_status_t roster_hello(roster_t *self, const char *identity, void *sock, const tt_msg_HELLO_t *hello, peer_t **out)
{
    if (hello->role != TT_PEER_COLLECTOR && hello->role != TT_PEER_LEARNER && hello->role != TT_PEER_AGGREGATOR)
        return tt_err(
            TT_DENIED, "a %s is not a role that takes part in a run", tt_peer_role_name((tt_peer_role_t)hello->role));
    peer_t *peer = roster_find(self, identity);
    if (!peer) {
        if (hello->role == TT_PEER_LEARNER)
            TT_TRY(s_check_weights(self, hello));
        uint32_t index = 0;
        TT_TRY(s_choose_index(self, hello, &index));
        peer = s_add_peer(self, identity, hello, index);
    }
    peer->sock = sock;
    s_set_holds(self, peer, hello->holds && hello->era == self->era);
    s_fire(self, peer, PEER_HELLO);
    *out = peer;
    return TT_OK;
}

void roster_heard(roster_t *self, peer_t *peer)
{
    s_fire(self, peer, PEER_HEARD);
}

void roster_beat(roster_t *self, peer_t *peer, const tt_msg_HEARTBEAT_t *beat)
{
    s_fire(self, peer, PEER_HEARD);
    snprintf(peer->doing, sizeof peer->doing, "%s", beat->state ? beat->state : "");
    if (beat->progress != peer->progress) {
        peer->progress = beat->progress;
        peer->moved_ns = peer->seen_ns;
    }
    s_set_holds(self, peer, beat->holds && beat->era == self->era);
}

static void s_remove(roster_t *self, peer_t *peer)
{
    size_t i = 0;
    while (self->peers[i] != peer)
        i++;
    self->peer_count--;
    memmove(self->peers + i, self->peers + i + 1, (self->peer_count - i) * sizeof(peer_t *));
    peer_destroy(&peer);
}

void roster_leave(roster_t *self, peer_t *peer, peer_event_t event, const char *why)
{
    TT_CHECK(event == PEER_DRAINED || event == PEER_ENDED || event == PEER_SILENT);
    const bool expected = event == PEER_DRAINED || peer->state == PEER_DRAINING;
    tt_log(TT_LOG_COMPONENT, expected ? TT_LOG_INFO : TT_LOG_WARN, "%s/%u has left: %s", tt_peer_role_name(peer->role),
        peer->index, why);
    s_fire(self, peer, event);
    s_remove(self, peer);
}

void roster_ended(roster_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid, const char *why)
{
    peer_t *peer = roster_holder(self, role, index);
    if (peer && (pid == 0 || peer->pid == pid))
        roster_leave(self, peer, PEER_ENDED, why);
}

void roster_tick(roster_t *self)
{
    const int64_t now = tt_now_ns(self->clock);
    for (size_t i = self->peer_count; i-- > 0;) {
        peer_t *peer = self->peers[i];
        if (now - peer->seen_ns < self->cfg.lease_ns)
            continue;
        char why[256];
        snprintf(why, sizeof why, "not a word for %.1f s from process %u on %s, last seen %s",
            (double)(now - peer->seen_ns) * 1e-9, peer->pid, peer->host, peer->doing[0] ? peer->doing : "saying HELLO");
        roster_leave(self, peer, PEER_SILENT, why);
    }
}

int64_t roster_lease_due_ns(const roster_t *self)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < self->peer_count; i++)
        if (self->peers[i]->seen_ns + self->cfg.lease_ns < due)
            due = self->peers[i]->seen_ns + self->cfg.lease_ns;
    return due;
}

/*  An aggregator has none while there is one learner. */
static bool s_has_work(const roster_t *self, const peer_t *peer)
{
    return peer->state == PEER_ACTIVE && strncmp(peer->doing, "idle", 4) != 0 &&
           (peer->role != TT_PEER_AGGREGATOR || roster_ready(self, TT_PEER_LEARNER) > 1);
}

const peer_t *roster_stalled(const roster_t *self, int64_t stall_ns)
{
    const peer_t *worst = NULL;
    const int64_t now = tt_now_ns(self->clock);
    for (size_t i = 0; i < self->peer_count; i++) {
        const peer_t *peer = self->peers[i];
        if (!s_has_work(self, peer) || now - peer->moved_ns < stall_ns)
            continue;
        if (!worst || peer->moved_ns < worst->moved_ns)
            worst = peer;
    }
    return worst;
}

/* ---- desired replicas, and when a roster is due -------------------------------------------------------------------- */

void roster_desire(roster_t *self, tt_peer_role_t role, uint32_t count)
{
    TT_CHECK((uint32_t)role < ROSTER_ROLES);
    if (self->cfg.desired[role] == count)
        return;
    self->cfg.desired[role] = count;
    s_dirty(self);
}

uint32_t roster_desired(const roster_t *self, tt_peer_role_t role)
{
    return (uint32_t)role < ROSTER_ROLES ? self->cfg.desired[role] : 0;
}

uint32_t roster_ready(const roster_t *self, tt_peer_role_t role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < self->peer_count; i++)
        count += self->peers[i]->role == role && self->peers[i]->state == PEER_ACTIVE;
    return count;
}

static bool s_enough(const roster_t *self, uint32_t collectors, uint32_t learners, uint32_t aggregators)
{
    return s_peers_of(self, TT_PEER_COLLECTOR) >= collectors && s_peers_of(self, TT_PEER_LEARNER) >= learners &&
           s_peers_of(self, TT_PEER_AGGREGATOR) >= aggregators;
}

static bool s_past_is_here(const roster_t *self)
{
    for (size_t i = 0; i < self->member_count; i++)
        if (!s_by_instance(self, (tt_peer_role_t)self->members[i].role, self->members[i].instance))
            return false;
    return self->member_count > 0;
}

/*  The first roster: when all are there; or a while after a run is possible at all; and, after a restart of the
 *  coordinator, not before those of the last roster have come back or had a lease to do so. */
static int64_t s_first_due(const roster_t *self)
{
    if (s_past_is_here(self))
        return 0;
    if (self->member_count > 0 && tt_now_ns(self->clock) < self->past_until)
        return self->past_until;
    const uint32_t *desired = self->cfg.desired;
    if (!s_enough(self, 1, 1, 0))
        return INT64_MAX;
    if (s_enough(self, desired[TT_PEER_COLLECTOR], desired[TT_PEER_LEARNER], desired[TT_PEER_AGGREGATOR]))
        return 0;
    int64_t latest = 0; /* arrival of those without whom there is no run */
    for (tt_peer_role_t role = TT_PEER_COLLECTOR; role <= TT_PEER_LEARNER; role++) {
        for (size_t i = 0; i < self->peer_count; i++) {
            if (self->peers[i]->role != role)
                continue;
            latest = self->peers[i]->came_ns > latest ? self->peers[i]->came_ns : latest;
            break;
        }
    }
    return latest + self->cfg.first_wait_ns;
}

int64_t roster_due_ns(const roster_t *self)
{
    if (!self->announced)
        return s_first_due(self);
    return self->dirty_ns == INT64_MAX ? INT64_MAX : self->dirty_ns + self->cfg.coalesce_ns;
}

/* ---- making a roster ----------------------------------------------------------------------------------------------- */

static bool s_is_victim(const roster_t *self, const peer_t *peer)
{
    return (peer->state == PEER_WAITING || peer->state == PEER_ACTIVE) && peer->index < ROSTER_BY_HAND &&
           peer->index >= self->cfg.desired[peer->role];
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
            s_fire(self, self->peers[i], PEER_VICTIM);
}

static tt_rec_MEMBER_t s_record(const peer_t *peer)
{
    return (tt_rec_MEMBER_t){.role = peer->role,
        .index = peer->index,
        .instance = peer->instance,
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
    if (!self->announced || count != self->member_count || (fresh && !self->fresh))
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

/*  Nobody holds weights: a new era begins, unless the one that rank 0 was told to begin has not begun yet. */
static void s_begin_era(roster_t *self, const tt_rec_MEMBER_t *rank0, const char *restore)
{
    const bool told = self->announced && self->fresh && self->member_count > 0 &&
                      self->members[0].role == TT_PEER_LEARNER && self->members[0].instance == rank0->instance;
    self->fresh = true;
    if (told)
        return;
    if (self->begun) {
        self->rolled_back++;
        log_warn(
            "no learner holds the weights: era %u begins from %s", self->era + 1, restore[0] ? restore : "version 0");
    }
    self->begun = false;
    self->era++;
    free(self->restore);
    self->restore = tt_strdup(restore);
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
            peer->state == PEER_DRAINING ? NULL : s_member(self, peer->role, peer->instance);
        s_fire(self, peer, member ? PEER_PLACED : PEER_LEFT_OUT);
        if (!member)
            continue;
        peer->rank = peer->role == TT_PEER_LEARNER ? member->rank : UINT32_MAX;
        peer->env_lo = member->env_lo;
        peer->env_count = member->env_count;
    }
}

bool roster_publish(roster_t *self, const char *restore)
{
    s_choose_victims(self);
    self->dirty_ns = INT64_MAX;
    placement_t placed;
    placement_make(&placed, self->peers, self->peer_count,
        &(placement_limits_t){.num_envs = self->cfg.num_envs, .shards = self->cfg.shards});
    size_t count = 0;
    tt_rec_MEMBER_t *members = s_records(self, &placed, &count);
    const bool fresh = placed.learner_count > 0 && !s_somebody_holds(&placed);
    placement_free(&placed);
    if (s_nothing_changes(self, members, count, fresh)) {
        s_free_members(members, count);
        return false;
    }
    if (fresh)
        s_begin_era(self, &members[0], restore);
    else
        self->fresh = false;
    self->generation += s_learners_change(self, members, count);
    self->epoch++;
    s_free_members(self->members, self->member_count);
    self->members = members;
    self->member_count = count;
    self->announced = true;
    s_settle(self);
    return true;
}

void roster_message(const roster_t *self, tt_msg_ROSTER_t *out)
{
    *out = TT_MSG(ROSTER, .era = self->era, .epoch = self->epoch, .generation = self->generation,
        .restore = self->fresh ? self->restore : NULL, .fresh = self->fresh, .members = self->members,
        .members_count = self->member_count);
}

bool roster_announced(const roster_t *self)
{
    return self->announced;
}

bool roster_fresh(const roster_t *self)
{
    return self->fresh;
}

uint32_t roster_era(const roster_t *self)
{
    return self->era;
}

uint64_t roster_epoch(const roster_t *self)
{
    return self->epoch;
}

uint64_t roster_generation(const roster_t *self)
{
    return self->generation;
}

uint32_t roster_rolled_back(const roster_t *self)
{
    return self->rolled_back;
}

peer_t *roster_rank0(const roster_t *self)
{
    if (!self->announced || self->member_count == 0 || self->members[0].role != TT_PEER_LEARNER)
        return NULL;
    return s_by_instance(self, TT_PEER_LEARNER, self->members[0].instance);
}
