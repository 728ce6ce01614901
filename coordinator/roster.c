#define TT_LOG_COMPONENT "roster"
#include "coordinator/roster.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "coordinator/roster_parts.h"

void roster_dirty(roster_t *self)
{
    if (self->dirty_ns == INT64_MAX)
        self->dirty_ns = tt_now_ns(self->clock);
}

void roster_fire(roster_t *self, peer_t *peer, peer_event_t event)
{
    if (peer_fire(peer, event, tt_now_ns(self->clock)))
        roster_dirty(self);
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

void roster_free_members(tt_rec_MEMBER_t *members, size_t count)
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
    roster_free_members(self->members, self->member_count);
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
    free(self->restore);
    self->restore = tt_strdup(past->restore ? past->restore : "");
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

void roster_begin_after(roster_t *self, uint32_t era)
{
    self->over = era;
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

peer_t *roster_process(const roster_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid)
{
    peer_t *peer = roster_holder(self, role, index);
    return peer && (pid == 0 || peer->pid == pid) ? peer : NULL;
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

const tt_rec_MEMBER_t *roster_member(const roster_t *self, uint32_t role, uint64_t instance)
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
    const peer_t *holder = hello->index >= 0 ? roster_holder(self, role, (uint32_t)hello->index) : NULL;
    /* a number that some coordinator chose may be chosen anew */
    if (hello->index >= 0 && !(holder && hello->index >= ROSTER_BY_HAND)) {
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
static tt_status_t s_check_past(const roster_t *self, const tt_msg_HELLO_t *hello)
{
    if (hello->era > ROSTER_NUMBER_MAX || hello->generation > ROSTER_NUMBER_MAX || hello->epoch > ROSTER_NUMBER_MAX)
        return tt_err(TT_DENIED,
            "you know era %u, generation %" PRIu64 ", epoch %" PRIu64
            ": no run has counted that far; end, and start anew",
            hello->era, hello->generation, hello->epoch);
    if (roster_may_adopt(self))
        return TT_OK;
    if (hello->era > self->era || hello->generation > self->generation || hello->epoch > self->epoch)
        return tt_err(TT_DENIED,
            "you know era %u, generation %" PRIu64 ", this coordinator only %u, %" PRIu64
            " (its journal is gone or is of another run); end, and start anew",
            hello->era, hello->generation, self->era, self->generation);
    const bool member = roster_member(self, TT_PEER_LEARNER, hello->instance);
    if (hello->holds && (hello->era != self->era || !member))
        return tt_err(TT_DENIED,
            "your weights (era %u, generation %" PRIu64 ") are of a roster that is gone (now %u, %" PRIu64
            "); end, and start anew",
            hello->era, hello->generation, self->era, self->generation);
    /* the weights of that roster may have come to it, unread yet: it would take them for those of the newest one */
    if (hello->place > 0 && hello->era == self->era && !member)
        return tt_err(TT_DENIED,
            "you were a learner of generation %" PRIu64 ", which is gone (now %" PRIu64 "); end, and start anew",
            hello->generation, self->generation);
    return TT_OK;
}

static peer_t *s_add_peer(roster_t *self, const char *identity, const tt_msg_HELLO_t *hello, uint32_t index)
{
    peer_t *peer = NULL;
    peer_new(&peer, identity, index, hello);
    peer->order = self->arrivals++;
    const tt_rec_MEMBER_t *past = roster_member(self, hello->role, hello->instance);
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
    roster_dirty(self); /* a postponed victim may go now; nothing is announced when nothing changes */
}

static void s_set_warm(roster_t *self, peer_t *peer, bool warm)
{
    if (peer->role == TT_PEER_AGGREGATOR || peer->warm == warm)
        return;
    peer->warm = warm;
    roster_dirty(self);
}

/*  Heartbeats say later whether it still holds (or by now). */
static void s_note_claim(const roster_t *self, peer_t *peer, const tt_msg_HELLO_t *hello)
{
    if (roster_may_adopt(self))
        peer->claim = (peer_claim_t){.era = hello->era,
            .generation = hello->generation,
            .epoch = hello->epoch,
            .learners = hello->learners,
            .place = hello->place,
            .holds = hello->holds};
}

tt_status_t roster_hello(roster_t *self, const char *identity, void *sock, const tt_msg_HELLO_t *hello, peer_t **out)
{
    if (hello->role != TT_PEER_COLLECTOR && hello->role != TT_PEER_LEARNER && hello->role != TT_PEER_AGGREGATOR)
        return tt_err(
            TT_DENIED, "a %s is not a role that takes part in a run", tt_peer_role_name((tt_peer_role_t)hello->role));
    peer_t *peer = roster_find(self, identity);
    if (!peer) {
        TT_TRY(s_check_past(self, hello));
        uint32_t index = 0;
        TT_TRY(s_choose_index(self, hello, &index));
        peer = s_add_peer(self, identity, hello, index);
    }
    peer->sock = sock;
    s_note_claim(self, peer, hello);
    s_set_holds(self, peer, hello->holds && hello->era == self->era);
    roster_fire(self, peer, PEER_HELLO);
    *out = peer;
    return TT_OK;
}

void roster_heard(roster_t *self, peer_t *peer)
{
    roster_fire(self, peer, PEER_HEARD);
}

void roster_beat(roster_t *self, peer_t *peer, const tt_msg_HEARTBEAT_t *beat)
{
    roster_fire(self, peer, PEER_HEARD);
    snprintf(peer->doing, sizeof peer->doing, "%s", beat->state ? beat->state : "");
    usage_beat(&peer->usage, beat);
    if (beat->progress != peer->progress) {
        peer->progress = beat->progress;
        peer->moved_ns = peer->seen_ns;
    }
    if (roster_may_adopt(self) && peer->claim.era == beat->era)
        peer->claim.holds = beat->holds;
    s_set_holds(self, peer, beat->holds && beat->era == self->era);
    s_set_warm(self, peer, beat->warm && (peer->role == TT_PEER_COLLECTOR || beat->era == self->era));
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
    roster_fire(self, peer, event);
    s_remove(self, peer);
}

void roster_asks(roster_t *self, peer_t *peer)
{
    if (peer->asks)
        return;
    log_info("%s/%u asks to be let go", tt_peer_role_name(peer->role), peer->index);
    peer->asks = true;
    roster_dirty(self);
}

/*  We were away ourselves (stopped, or starved of the processor): what they said meanwhile lies unread. */
static bool s_looked_late(roster_t *self, int64_t now)
{
    const int64_t grace = self->cfg.lease_ns / 2;
    const int64_t due = roster_lease_due_ns(self);
    if (due == INT64_MAX || now - due < grace)
        return false;
    log_info("looked %.1f s late: nobody is counted as dead before %.1f s more", (double)(now - due) * 1e-9,
        (double)grace * 1e-9);
    for (size_t i = 0; i < self->peer_count; i++)
        if (self->peers[i]->seen_ns < now - grace)
            self->peers[i]->seen_ns = now - grace;
    return true;
}

void roster_tick(roster_t *self)
{
    const int64_t now = tt_now_ns(self->clock);
    if (s_looked_late(self, now))
        return;
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

/*  For somebody else: a slow environment, a long update, an evaluation. */
static bool s_waits(const peer_t *peer)
{
    return strstr(peer->doing, "waiting for") != NULL;
}

static int64_t s_newest_move_ns(const roster_t *self)
{
    int64_t newest_ns = INT64_MIN;
    for (size_t i = 0; i < self->peer_count; i++)
        if (s_has_work(self, self->peers[i]) && self->peers[i]->moved_ns > newest_ns)
            newest_ns = self->peers[i]->moved_ns;
    return newest_ns;
}

/*  Who stands still by itself comes before who waits for others. */
static bool s_is_worse(const peer_t *peer, const peer_t *worst)
{
    if (!worst || s_waits(peer) != s_waits(worst))
        return !worst || s_waits(worst);
    return peer->moved_ns < worst->moved_ns;
}

const peer_t *roster_stalled(const roster_t *self, int64_t stall_ns)
{
    const peer_t *worst = NULL;
    const int64_t now = tt_now_ns(self->clock), newest_ns = s_newest_move_ns(self);
    for (size_t i = 0; i < self->peer_count; i++) {
        const peer_t *peer = self->peers[i];
        const int64_t moved_ns = s_waits(peer) ? newest_ns : peer->moved_ns;
        if (s_has_work(self, peer) && now - moved_ns >= stall_ns && s_is_worse(peer, worst))
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
    roster_dirty(self);
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

static uint32_t s_most(const roster_t *self, tt_peer_role_t role)
{
    return role == TT_PEER_LEARNER ? self->cfg.shards : role == TT_PEER_COLLECTOR ? self->cfg.num_envs : UINT32_MAX;
}

uint32_t roster_spares(const roster_t *self, tt_peer_role_t role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < self->peer_count; i++)
        count += self->peers[i]->role == role &&
                 (self->peers[i]->state == PEER_ACTIVE || self->peers[i]->state == PEER_WAITING);
    return count > s_most(self, role) ? count - s_most(self, role) : 0;
}

static bool s_enough(const roster_t *self, uint32_t collectors, uint32_t learners, uint32_t aggregators)
{
    return s_peers_of(self, TT_PEER_COLLECTOR) >= collectors && s_peers_of(self, TT_PEER_LEARNER) >= learners &&
           s_peers_of(self, TT_PEER_AGGREGATOR) >= aggregators;
}

/*  A member whose number another process has is not awaited: it died while nobody was there to see it. */
static bool s_past_is_here(const roster_t *self)
{
    for (size_t i = 0; i < self->member_count; i++)
        if (!roster_holder(self, (tt_peer_role_t)self->members[i].role, self->members[i].index))
            return false;
    return self->member_count > 0;
}

/*  After a restart of the coordinator. */
static bool s_awaits_past(const roster_t *self)
{
    return self->member_count > 0 && tt_now_ns(self->clock) < self->past_until;
}

bool roster_goes_on(const roster_t *self)
{
    return !self->announced && (s_past_is_here(self) || s_awaits_past(self) || roster_any_holder(self));
}

/*  The first roster: when all are there; or a while after a run is possible at all; and, after a restart of the
 *  coordinator, not before those of the last roster have come back or had a lease to do so. */
static int64_t s_first_due(roster_t *self)
{
    if (s_past_is_here(self))
        return 0;
    if (s_awaits_past(self))
        return self->past_until;
    const uint32_t *desired = self->cfg.desired;
    if (!s_enough(self, 1, 1, 0))
        return INT64_MAX;
    const int64_t adopt = roster_may_adopt(self) ? roster_adopt_due(self) : 0;
    if (adopt > tt_now_ns(self->clock))
        return adopt;
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

int64_t roster_due_ns(roster_t *self)
{
    if (!self->announced)
        return s_first_due(self);
    return self->dirty_ns == INT64_MAX ? INT64_MAX : self->dirty_ns + self->cfg.coalesce_ns;
}

/* ---- what it says -------------------------------------------------------------------------------------------------- */

bool roster_is_warming(const roster_t *self, const peer_t *peer)
{
    const bool warms = peer->role == TT_PEER_LEARNER     ? self->cfg.warms
                       : peer->role == TT_PEER_COLLECTOR ? self->cfg.collectors_warm
                                                         : false;
    const uint32_t ready = roster_ready(self, peer->role);
    return warms && peer->state == PEER_WAITING && !peer->warm && ready > 0 && ready < s_most(self, peer->role);
}

uint32_t roster_warming(const roster_t *self, tt_peer_role_t role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < self->peer_count; i++)
        count += self->peers[i]->role == role && roster_is_warming(self, self->peers[i]);
    return count;
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

bool roster_took_over(const roster_t *self)
{
    return self->took_over;
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
