#include "aggregator/aggregator.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "aggregator/early.h"
#include "aggregator/reduce.h"
#include "common/base/laps.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "common/config/train.h"
#include "common/nn/tree.h"
#define TT_LOG_COMPONENT "aggregator"
#include "common/base/log.h"

enum {
    CHUNK_BYTES = 1 << 20, /* largest chunk                                                       */
    CHUNKS_MAX = 4096,
    HWM = 64,        /* GRADs from, SUMs for one learner; those over it wait for reduce_flush */
    FLUSH_MS = 5,    /* between attempts to send what a full socket refused                 */
    REPORT_MS = 250, /* between two looks at what we wait for                               */
    POLL_MS = 1000
};
static const size_t s_early_bytes = (size_t)256 << 20; /* GRADs that may wait for their roster */

/*  A learner of the roster. */
typedef struct {
    uint32_t index;
    uint64_t instance;
} sender_t;

typedef enum { STAGE_sum, STAGE_wait_gradients, STAGE_COUNT } stage_t;

typedef struct {
    const tt_location_t *location;
    const tt_clock_t *clock;
    int signals;
    tt_loop_t *loop;
    tt_sock_t *data;
    tt_link_t *link;
    char ipc[256], tcp[256];
    reduce_t *reduce; /* NULL before WELCOME */
    early_t *early;
    int64_t lease_ms;
    uint32_t era; /* of the roster */
    uint64_t generation;
    uint32_t shards;
    uint32_t learners;
    sender_t *learner;  /* of the roster, by rank                          */
    uint32_t place, of; /* which of how many aggregators we are: our chunks */
    uint64_t strangers; /* GRADs from none of the learners                 */
    int flush_timer;    /* 0 = none                                        */
    tt_laps_t laps;
} aggregator_t;

/* ---- GRAD in, SUM out -------------------------------------------------------------------------------------------- */

static tt_status_t s_on_flush(void *ctx)
{
    aggregator_t *self = ctx;
    if (reduce_flush(self->reduce) == 0) {
        tt_loop_forget_timer(self->loop, self->flush_timer);
        self->flush_timer = 0;
    }
    return TT_OK;
}

static tt_status_t s_send_sum(void *ctx, const char *peer, const tt_msg_SUM_t *sum, zmq_msg_t *frame)
{
    aggregator_t *self = ctx;
    const tt_status_t status = tt_sock_send(self->data, peer, sum, frame, 1);
    if (status == TT_AGAIN && !self->flush_timer)
        self->flush_timer = tt_loop_timer(self->loop, FLUSH_MS, FLUSH_MS, s_on_flush, self);
    else if (status != TT_OK && status != TT_AGAIN)
        log_debug("no SUM of step %" PRIu64 " for %s: %s", sum->step, peer, tt_err_text());
    return status;
}

/*  "learner/<index>/<instance>" is who it said it was when it connected. A coordinator that lost its journal may have given it
 *  another number since; the instance is its own for life. */
static bool s_is_learner(const aggregator_t *self, const char *peer)
{
    const char *last = strrchr(peer, '/');
    char *end = NULL;
    const uint64_t instance = last ? strtoull(last + 1, &end, 16) : 0;
    if (!end || end == last + 1 || *end || strncmp(peer, "learner/", 8) != 0)
        return false;
    for (uint32_t rank = 0; rank < self->learners; rank++)
        if (self->learner[rank].instance == instance)
            return true;
    return false;
}

/*  A peer may be wrong a thousand times a second: the log hears of the 1st, 2nd, 4th, 8th, ... */
static void s_refuse_stranger(aggregator_t *self, const char *peer, const tt_msg_GRAD_t *grad)
{
    const uint64_t before = self->strangers++;
    if ((before & (before + 1)) == 0)
        log_warn("GRAD of step %" PRIu64 " from %s dropped: it is none of the roster's %u learners", grad->step, peer,
            self->learners);
}

/*  TT_AGAIN: it is ahead of the roster. Else it is done with. */
static tt_status_t s_take(void *ctx, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame)
{
    aggregator_t *self = ctx;
    const bool now = grad->era == self->era && grad->generation == self->generation;
    if (now && !s_is_learner(self, peer)) {
        s_refuse_stranger(self, peer, grad);
        return TT_OK;
    }
    const tt_status_t status = reduce_grad(self->reduce, peer, grad, frame);
    if (status != TT_OK && status != TT_AGAIN)
        log_warn("dropped: %s", tt_err_text());
    return status;
}

static tt_status_t s_on_data(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    aggregator_t *self = ctx;
    tt_lap(&self->laps, STAGE_wait_gradients, tt_now_ns(self->clock));
    if (packet->msg.type != TT_MSG_GRAD || packet->frame_count != 1) {
        log_warn("%s from %s dropped: expected GRAD with one frame", tt_msg_name(packet->msg.type), packet->peer);
        return TT_OK;
    }
    const tt_status_t taken = s_take(self, packet->peer, &packet->msg.GRAD, &packet->frame[0]);
    tt_lap(&self->laps, STAGE_sum, tt_now_ns(self->clock));
    if (taken != TT_AGAIN)
        return TT_OK;
    if (early_put(self->early, packet->peer, &packet->msg.GRAD, &packet->frame[0], tt_now_ms(self->clock)) != TT_OK)
        log_warn("GRAD of era %u, generation %" PRIu64 " from %s dropped: too many wait for a roster already",
            packet->msg.GRAD.era, packet->msg.GRAD.generation, packet->peer);
    return TT_OK;
}

/* ---- what the coordinator says ----------------------------------------------------------------------------------- */

static tt_status_t s_on_welcome(aggregator_t *self, const tt_msg_WELCOME_t *welcome)
{
    tt_train_cfg_t cfg;
    TT_TRY(tt_train_parse(&cfg, welcome->config, strlen(welcome->config)));
    if (self->reduce)
        return TT_OK; /* the coordinator was restarted; the job is the same */
    const reduce_limits_t limits = {cfg.learner.shards, CHUNKS_MAX, CHUNK_BYTES};
    self->shards = cfg.learner.shards;
    log_info("in as aggregator/%u", welcome->index);
    TT_TRY(reduce_new(&self->reduce, &limits, s_send_sum, self));
    self->early = early_new(s_early_bytes);
    self->lease_ms = welcome->lease_ms ? welcome->lease_ms : cfg.net.lease_ms;
    tt_loop_sock(self->loop, self->data, s_on_data, self); /* a GRAD that came earlier has waited in the socket */
    return TT_OK;
}

static void s_take_learners(aggregator_t *self, const tt_msg_ROSTER_t *roster)
{
    self->learners = 0;
    free(self->learner);
    self->learner = tt_array0(roster->members_count + 1, sizeof *self->learner);
    for (size_t i = 0; i < roster->members_count; i++)
        self->learners += roster->members[i].role == TT_PEER_LEARNER;
    for (size_t i = 0; i < roster->members_count; i++) {
        const tt_rec_MEMBER_t *member = &roster->members[i];
        if (member->role != TT_PEER_LEARNER || member->rank >= self->learners)
            continue;
        sender_t *sender = &self->learner[member->rank];
        sender->index = member->index;
        sender->instance = member->instance;
    }
}

/*  Chunks go round the aggregators in the order of their numbers. True: ours are others now. */
static bool s_take_place(aggregator_t *self, const tt_msg_ROSTER_t *roster)
{
    const uint32_t index = tt_link_index(self->link), place = self->place, of = self->of;
    self->place = self->of = 0;
    for (size_t i = 0; i < roster->members_count; i++) {
        const tt_rec_MEMBER_t *member = &roster->members[i];
        self->place += member->role == TT_PEER_AGGREGATOR && member->index < index;
        self->of += member->role == TT_PEER_AGGREGATOR;
    }
    return self->place != place || self->of != of;
}

static tt_status_t s_on_roster(aggregator_t *self, const tt_msg_ROSTER_t *roster)
{
    if (!self->reduce)
        return tt_err(TT_PROTOCOL, "ROSTER before WELCOME");
    s_take_learners(self, roster);
    self->era = roster->era;
    self->generation = roster->generation;
    reduce_enter(self->reduce, roster->era, roster->generation);
    if (s_take_place(self, roster))
        reduce_moved(self->reduce);
    early_offer(self->early, s_take, self);
    tt_link_roster(self->link, roster);
    tt_link_holds(self->link, false, 0, roster->era, roster->generation);
    log_debug("generation %" PRIu64 ": %u learners", roster->generation, self->learners);
    return TT_OK;
}

static tt_status_t s_leave(const char *reason)
{
    log_info("leaving: %s", reason && *reason ? reason : "told to");
    return TT_STOPPED;
}

static tt_status_t s_on_control(void *ctx, tt_packet_t *packet)
{
    aggregator_t *self = ctx;
    switch (packet->msg.type) {
    case TT_MSG_WELCOME:
        return s_on_welcome(self, &packet->msg.WELCOME);
    case TT_MSG_ROSTER:
        return s_on_roster(self, &packet->msg.ROSTER);
    case TT_MSG_STOP:
        return s_leave(packet->msg.STOP.reason);
    case TT_MSG_DRAIN:
        return s_leave(packet->msg.DRAIN.reason);
    default:
        return TT_OK;
    }
}

static tt_status_t s_on_link(void *ctx, int fd)
{
    (void)fd;
    return tt_link_each(((aggregator_t *)ctx)->link, s_on_control, ctx);
}

static tt_status_t s_on_signal(void *ctx, int fd)
{
    aggregator_t *self = ctx;
    if (tt_signals_next(fd) == 0)
        return TT_OK;
    tt_link_send(self->link, &TT_MSG(DRAINED, .reason = (char *)"SIGTERM"));
    return s_leave("SIGTERM");
}

/*  Who owns that shard? Its index, -1 when the roster does not say. */
static int s_owner(const aggregator_t *self, uint32_t shard)
{
    for (uint32_t rank = 0; rank < self->learners && self->learners <= self->shards; rank++) {
        uint32_t lo, hi;
        tt_tree_run(self->shards, self->learners, rank, &lo, &hi);
        if (shard >= lo && shard < hi)
            return (int)self->learner[rank].index;
    }
    return -1;
}

static tt_status_t s_on_report(void *ctx)
{
    static const char *const names[] = {[STAGE_sum] = "sum", [STAGE_wait_gradients] = "wait_gradients"};
    aggregator_t *self = ctx;
    reduce_gap_t gap;
    tt_lap(&self->laps, STAGE_wait_gradients, tt_now_ns(self->clock));
    tt_link_spent(self->link, names, self->laps.spent_ns, STAGE_COUNT);
    if (!self->reduce)
        return TT_OK;
    early_expire(self->early, tt_now_ms(self->clock) - self->lease_ms);
    tt_link_progress(self->link, reduce_sums(self->reduce));
    if (reduce_gap(self->reduce, &gap))
        tt_link_state(self->link, "waiting for GRAD of step %" PRIu64 " chunk %u shard %u from learner/%d", gap.step,
            gap.chunk, gap.shard, s_owner(self, gap.shard));
    else
        tt_link_state(self->link, "idle: %" PRIu64 " sums finished", reduce_sums(self->reduce));
    return TT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_start(aggregator_t *self)
{
    const tt_location_t *location = self->location;
    const tt_sock_opts_t opts = {.name = "gradients",
        .hwm = HWM,
        .max_bytes = CHUNK_BYTES + 4096,
        .linger_ms = 100,
        .keys = tt_location_keys(location)};
    TT_TRY(tt_loop_new(&self->loop, self->clock));
    TT_TRY(tt_sock_new(&self->data, TT_ROUTER, &opts));
    TT_TRY(tt_location_bind(location, self->data, "data", self->ipc, self->tcp));
    tt_link_opts_t link = tt_location_link(location);
    link.data_ipc = self->ipc;
    link.data_tcp = self->tcp;
    TT_TRY(tt_link_start(&self->link, &link));
    tt_link_state(self->link, "idle: waiting for WELCOME");
    tt_loop_fd(self->loop, tt_link_fd(self->link), s_on_link, self);
    tt_loop_timer(self->loop, REPORT_MS, REPORT_MS, s_on_report, self);
    if (self->signals >= 0)
        tt_loop_fd(self->loop, self->signals, s_on_signal, self);
    return TT_OK;
}

static tt_status_t s_serve(aggregator_t *self)
{
    tt_status_t status;
    do
        status = tt_loop_poll(self->loop, POLL_MS);
    while (status == TT_OK || status == TT_AGAIN);
    return status == TT_STOPPED ? TT_OK : status;
}

static void s_end(aggregator_t *self)
{
    tt_link_destroy(&self->link);
    reduce_destroy(&self->reduce);
    early_destroy(&self->early);
    tt_loop_destroy(&self->loop);
    tt_sock_destroy(&self->data);
    tt_location_leave(self->ipc);
    free(self->learner);
}

tt_status_t aggregator_run(const tt_location_t *location, int signals_fd)
{
    const tt_clock_t *clock = location->clock;
    aggregator_t self = {.location = location, .clock = clock, .signals = signals_fd, .laps.lap_ns = tt_now_ns(clock)};
    tt_status_t status = s_start(&self);
    if (status == TT_OK)
        status = s_serve(&self);
    s_end(&self);
    return status;
}
