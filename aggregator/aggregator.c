#include "aggregator/aggregator.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "aggregator/reduce.h"
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

typedef struct {
    const tt_seat_t *seat;
    int signals;
    tt_loop_t *loop;
    tt_sock_t *data;
    tt_link_t *link;
    char ipc[256], tcp[256];
    reduce_t *reduce; /* NULL before WELCOME */
    uint32_t shards;
    uint32_t learners, *learner; /* of the roster: index by rank */
    int flush_timer;             /* 0 = none                     */
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

static tt_status_t s_on_data(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    aggregator_t *self = ctx;
    if (packet->msg.type != TT_MSG_GRAD || packet->frame_count != 1) {
        log_warn("%s from %s dropped: expected GRAD with one frame", tt_msg_name(packet->msg.type), packet->peer);
        return TT_OK;
    }
    if (reduce_grad(self->reduce, packet->peer, &packet->msg.GRAD, &packet->frame[0]) != TT_OK)
        log_warn("dropped: %s", tt_err_text());
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
    tt_loop_sock(self->loop, self->data, s_on_data, self); /* a GRAD that came earlier has waited in the socket */
    return TT_OK;
}

static tt_status_t s_on_roster(aggregator_t *self, const tt_msg_ROSTER_t *roster)
{
    if (!self->reduce)
        return tt_err(TT_PROTOCOL, "ROSTER before WELCOME");
    self->learners = 0;
    free(self->learner);
    self->learner = tt_array0(roster->members_count + 1, sizeof *self->learner);
    for (size_t i = 0; i < roster->members_count; i++)
        self->learners += roster->members[i].role == TT_PEER_LEARNER;
    for (size_t i = 0; i < roster->members_count; i++)
        if (roster->members[i].role == TT_PEER_LEARNER && roster->members[i].rank < self->learners)
            self->learner[roster->members[i].rank] = roster->members[i].index;
    reduce_enter(self->reduce, roster->era, roster->generation);
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
            return (int)self->learner[rank];
    }
    return -1;
}

static tt_status_t s_on_report(void *ctx)
{
    aggregator_t *self = ctx;
    reduce_gap_t gap;
    if (!self->reduce)
        return TT_OK;
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
    const tt_seat_t *seat = self->seat;
    const tt_sock_opts_t opts = {
        .name = "gradients", .hwm = HWM, .max_bytes = CHUNK_BYTES + 4096, .linger_ms = 100, .keys = tt_seat_keys(seat)};
    TT_TRY(tt_loop_new(&self->loop, NULL));
    TT_TRY(tt_sock_new(&self->data, TT_ROUTER, &opts));
    TT_TRY(tt_seat_bind(seat, self->data, "data", self->ipc, self->tcp));
    tt_link_opts_t link = tt_seat_link(seat);
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
    tt_loop_destroy(&self->loop);
    tt_sock_destroy(&self->data);
    tt_seat_leave(self->ipc);
    free(self->learner);
}

tt_status_t aggregator_run(const tt_seat_t *seat, int signals_fd)
{
    aggregator_t self = {.seat = seat, .signals = signals_fd};
    tt_status_t status = s_start(&self);
    if (status == TT_OK)
        status = s_serve(&self);
    s_end(&self);
    return status;
}
