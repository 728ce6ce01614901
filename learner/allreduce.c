#define TT_LOG_COMPONENT "allreduce"
#include "learner/allreduce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/nn/tree.h"

typedef struct {
    uint32_t index;
    uint64_t instance;
    tt_sock_t *sock; /* NULL: it has no endpoint that we can reach */
} link_t_;

/*  What was said of a step, and of its sum: the same however often it is said again. */
typedef struct {
    bool held;    /* partial sums lie in memory, and are not sent               */
    bool reaches; /* we reach everybody's memory                                */
    bool agreed;  /* everybody does, says the sum: from the next step on `held` */
} how_t;

struct allreduce {
    allreduce_cfg_t cfg;
    uint32_t era;
    uint64_t generation;
    link_t_ *link; /* [links] in the order of the roster */
    uint32_t links;
    uint32_t chunks;
    exchange_t *exchange;
    float *sum[2]; /* of the step in hand, of the last finished one */
    bool *have;    /* [chunks] of sum[0] */
    uint32_t missing;
    bool sending;  /* a step is in hand and was sent */
    uint64_t step; /* in hand */
    how_t how;     /* is it summed */
    bool kept;     /* sum[1] is the sum of `last` */
    uint64_t last;
    how_t before;           /* of `last`, within the generation */
    allreduce_node_fn node; /* what was sent, for sending again */
    void *ctx;
    uint32_t lo, hi;
    int64_t sent_ms;
};

allreduce_t *allreduce_new(const allreduce_cfg_t *cfg)
{
    allreduce_t *self = tt_new0(sizeof *self);
    self->cfg = *cfg;
    self->chunks = (uint32_t)((cfg->count + ALLREDUCE_CHUNK - 1) / ALLREDUCE_CHUNK);
    self->sum[0] = tt_aligned0(tt_mul(cfg->count, sizeof(float)));
    self->sum[1] = tt_aligned0(tt_mul(cfg->count, sizeof(float)));
    self->have = tt_array0(self->chunks, sizeof *self->have);
    self->exchange = exchange_new(&(exchange_cfg_t){.memory = cfg->memory,
        .loop = cfg->loop,
        .dir = cfg->dir,
        .index = cfg->index,
        .instance = cfg->instance,
        .shards = cfg->shards,
        .count = cfg->count});
    return self;
}

static void s_close_link(allreduce_t *self, link_t_ *link)
{
    if (!link->sock)
        return;
    tt_loop_forget_sock(self->cfg.loop, link->sock);
    tt_sock_destroy(&link->sock);
}

void allreduce_destroy(allreduce_t **self_p)
{
    allreduce_t *self = *self_p;
    if (!self)
        return;
    for (uint32_t i = 0; i < self->links; i++)
        s_close_link(self, &self->link[i]);
    free(self->link);
    exchange_destroy(&self->exchange);
    free(self->sum[0]);
    free(self->sum[1]);
    free(self->have);
    free(self);
    *self_p = NULL;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static size_t s_chunk_floats(const allreduce_t *self, uint32_t chunk)
{
    const size_t from = (size_t)chunk * ALLREDUCE_CHUNK;
    return self->cfg.count - from < ALLREDUCE_CHUNK ? self->cfg.count - from : ALLREDUCE_CHUNK;
}

/*  A node of a step, with its floats. */
typedef struct {
    uint64_t step;
    uint32_t node;
    const float *data;
    bool reaches;
} partial_t;

static tt_status_t s_send_chunk(const allreduce_t *self, link_t_ *link, const partial_t *partial, uint32_t chunk)
{
    const tt_msg_GRAD_t message =
        TT_MSG(GRAD, .era = self->era, .generation = self->generation, .step = partial->step, .node = partial->node,
            .shards = self->cfg.shards, .chunk = chunk, .chunks = self->chunks, .reaches = partial->reaches);
    const size_t bytes = s_chunk_floats(self, chunk) * sizeof(float);
    zmq_msg_t frame;
    tt_frame_new(&frame, bytes);
    memcpy(zmq_msg_data(&frame), partial->data + (size_t)chunk * ALLREDUCE_CHUNK, bytes);
    const tt_status_t status = tt_sock_send(link->sock, NULL, &message, &frame, 1);
    tt_frame_close(&frame);
    return status == TT_AGAIN ? TT_OK : status; /* a full queue: allreduce_nudge sends again */
}

/*  A node's chunks to the aggregators that own them. */
static tt_status_t s_send_node(const allreduce_t *self, const partial_t *partial)
{
    for (uint32_t chunk = 0; chunk < self->chunks && self->links; chunk++) {
        link_t_ *link = &self->link[chunk % self->links];
        if (link->sock)
            TT_TRY(s_send_chunk(self, link, partial, chunk));
    }
    return TT_OK;
}

static tt_status_t s_send_step(allreduce_t *self)
{
    uint32_t nodes[TT_TREE_RUN_MAX];
    const size_t count = tt_tree_nodes(self->cfg.shards, self->lo, self->hi, nodes);
    for (size_t i = 0; i < count; i++) {
        partial_t partial = {.step = self->step, .node = nodes[i], .reaches = self->how.reaches};
        TT_TRY(self->node(self->ctx, nodes[i], &partial.data));
        TT_TRY(s_send_node(self, &partial));
    }
    return TT_OK;
}

static tt_status_t s_send_again(allreduce_t *self)
{
    self->sent_ms = tt_now_ms(self->cfg.clock);
    /* the finished sum first, as the tree's root: a learner that is one step behind may get it from nowhere else. What was held it finds
       where it was */
    if (self->kept && !self->before.held)
        TT_TRY(s_send_node(
            self, &(partial_t){.step = self->last, .node = 1, .data = self->sum[1], .reaches = self->before.agreed}));
    return self->sending && !self->how.held ? s_send_step(self) : TT_OK;
}

static exchange_step_t s_which(const allreduce_t *self)
{
    return (exchange_step_t){self->era, self->generation, self->step};
}

static tt_status_t s_hold(allreduce_t *self)
{
    uint32_t nodes[TT_TREE_RUN_MAX];
    const float *data[TT_TREE_RUN_MAX];
    const exchange_step_t which = s_which(self);
    const size_t count = tt_tree_nodes(self->cfg.shards, self->lo, self->hi, nodes);
    for (size_t i = 0; i < count; i++)
        TT_TRY(self->node(self->ctx, nodes[i], &data[i]));
    exchange_put(self->exchange, &which, data);
    return TT_OK;
}

tt_status_t allreduce_send(
    allreduce_t *self, uint64_t step, uint32_t lo, uint32_t hi, allreduce_node_fn node, void *ctx)
{
    self->step = step;
    self->node = node;
    self->ctx = ctx;
    self->lo = lo;
    self->hi = hi;
    self->sending = true;
    self->how.held = self->before.agreed;
    self->how.reaches = self->how.held || exchange_reaches(self->exchange);
    self->how.agreed = false;
    self->missing = self->how.held ? 1 : self->chunks;
    self->sent_ms = tt_now_ms(self->cfg.clock);
    memset(self->have, 0, self->chunks * sizeof *self->have);
    return self->how.held ? s_hold(self) : s_send_step(self);
}

tt_status_t allreduce_nudge(allreduce_t *self)
{
    if (!self->sending || tt_now_ms(self->cfg.clock) - self->sent_ms < self->cfg.resend_ms)
        return TT_OK;
    log_debug(
        "step %llu: no sum for %lld ms, sending again", (unsigned long long)self->step, (long long)self->cfg.resend_ms);
    return s_send_again(self);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static tt_status_t s_take_sum(allreduce_t *self, const tt_msg_SUM_t *sum, zmq_msg_t *frame)
{
    if (sum->era != self->era || sum->generation != self->generation || !self->sending || sum->step != self->step)
        return TT_OK; /* again, or of another generation: a joiner was told this step and waits for its sum, too */
    if (self->how.held)
        return tt_err(TT_PROTOCOL, "SUM of step %llu, of which nothing was sent", (unsigned long long)sum->step);
    if (sum->chunks != self->chunks || sum->chunk >= self->chunks)
        return tt_err(TT_PROTOCOL, "SUM of step %llu: chunk %u of %u, expected %u chunks",
            (unsigned long long)sum->step, sum->chunk, sum->chunks, self->chunks);
    const size_t bytes = s_chunk_floats(self, sum->chunk) * sizeof(float);
    if (zmq_msg_size(frame) != bytes)
        return tt_err(TT_PROTOCOL, "SUM of step %llu, chunk %u: %zu bytes, expected %zu", (unsigned long long)sum->step,
            sum->chunk, zmq_msg_size(frame), bytes);
    if (self->have[sum->chunk])
        return TT_OK;
    memcpy(self->sum[0] + (size_t)sum->chunk * ALLREDUCE_CHUNK, zmq_msg_data(frame), bytes);
    self->how.agreed = sum->reaches && (self->how.agreed || self->missing == self->chunks);
    self->have[sum->chunk] = true;
    self->missing--;
    return TT_OK;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    allreduce_t *self = ctx;
    if (packet->msg.type != TT_MSG_SUM || packet->frame_count != 1) {
        log_warn("an aggregator sent %s; ignored", tt_msg_name(packet->msg.type));
        return TT_OK;
    }
    if (s_take_sum(self, &packet->msg.SUM, &packet->frame[0]) != TT_OK)
        log_warn("%s; ignored", tt_err_text());
    return TT_OK;
}

/*  Whoever held a step holds those that follow. */
static void s_look(allreduce_t *self)
{
    const exchange_step_t which = s_which(self);
    if (!exchange_sum(self->exchange, &which, self->sum[0]))
        return;
    self->missing = 0;
    self->how.agreed = true;
}

const float *allreduce_sum(allreduce_t *self)
{
    if (self->sending && self->how.held && self->missing)
        s_look(self);
    return self->sending && self->missing == 0 ? self->sum[0] : NULL;
}

void allreduce_finish(allreduce_t *self)
{
    /* kept, not thrown away: a peer may have missed it and a new generation asks for it */
    float *finished = self->sum[0];
    self->sum[0] = self->sum[1];
    self->sum[1] = finished;
    self->last = self->step;
    self->before = self->missing ? (how_t){0} : self->how;
    self->kept = true;
    self->sending = false;
}

const float *allreduce_last_sum(const allreduce_t *self, uint64_t *step)
{
    *step = self->last;
    return self->kept ? self->sum[1] : NULL;
}

void allreduce_keep(allreduce_t *self, uint64_t step, const float *sum)
{
    memcpy(self->sum[1], sum, self->cfg.count * sizeof *sum);
    self->last = step;
    self->before = (how_t){0};
    self->kept = true;
}

void allreduce_forget(allreduce_t *self)
{
    self->kept = self->sending = false;
    self->before = (how_t){0};
}

/* ---- rosters ----------------------------------------------------------------------------------------------------- */

/*  Messages that may wait for one aggregator: what a generation begins with (the kept sum and the step in hand), twice. */
static int s_hwm(const allreduce_t *self)
{
    uint64_t nodes = 1; /* of the largest run: two of each size */
    for (uint32_t shards = self->cfg.shards; shards > 1; shards /= 2)
        nodes += 2;
    const uint64_t messages = 2 * nodes * self->chunks;
    return messages < INT32_MAX ? (int)messages : INT32_MAX;
}

static tt_status_t s_open_link(allreduce_t *self, const view_peer_t *peer, link_t_ *out)
{
    *out = (link_t_){.index = peer->index, .instance = peer->instance};
    if (!peer->data[0])
        return TT_OK;
    char identity[64], name[32];
    snprintf(identity, sizeof identity, "learner/%u/%llx", self->cfg.index, (unsigned long long)self->cfg.instance);
    snprintf(name, sizeof name, "aggregator/%u", peer->index);
    const tt_sock_opts_t opts = {.name = name, .identity = identity, .keys = self->cfg.keys, .hwm = s_hwm(self)};
    tt_sock_t *sock = NULL;
    TT_TRY(tt_sock_new(&sock, TT_DEALER, &opts));
    const tt_status_t status = tt_sock_connect(sock, peer->data);
    if (status != TT_OK) {
        tt_sock_destroy(&sock);
        return status;
    }
    tt_loop_sock(self->cfg.loop, sock, s_on_packet, self);
    out->sock = sock;
    return TT_OK;
}

static link_t_ *s_find_link(link_t_ *links, uint32_t count, uint64_t instance)
{
    for (uint32_t i = 0; i < count; i++)
        if (links[i].instance == instance)
            return &links[i];
    return NULL;
}

/*  Sockets of aggregators that stay are kept; sets bit i of *fresh_p for new ones. */
static tt_status_t s_relink(allreduce_t *self, const view_t *view, bool *changed)
{
    link_t_ *links = tt_array0(view->aggregators, sizeof *links);
    tt_status_t status = TT_OK;
    for (uint32_t i = 0; i < view->aggregators && status == TT_OK; i++) {
        link_t_ *old = s_find_link(self->link, self->links, view->aggregator[i].instance);
        if (!old || old != &self->link[i])
            *changed = true;
        if (old && old->sock) {
            links[i] = *old;
            old->sock = NULL;
        } else {
            status = s_open_link(self, &view->aggregator[i], &links[i]);
        }
    }
    *changed |= view->aggregators != self->links;
    for (uint32_t i = 0; i < self->links; i++)
        s_close_link(self, &self->link[i]);
    free(self->link);
    self->link = links;
    self->links = view->aggregators;
    return status;
}

tt_status_t allreduce_enter(allreduce_t *self, const view_t *view)
{
    bool changed = false;
    const bool entered = view->era != self->era || view->generation != self->generation;
    if (view->era != self->era)
        allreduce_forget(self);
    self->era = view->era;
    self->generation = view->generation;
    if (entered) {
        self->sending = false;     /* the caller starts the step again with its new run */
        self->before = (how_t){0}; /* who is new, or is not here any more, is not asked  */
        exchange_enter(self->exchange, view);
    }
    TT_TRY(s_relink(self, view, &changed));
    return (entered || changed) && view->learners > 1 ? s_send_again(self) : TT_OK;
}

static const char *s_awaited_learner(const allreduce_t *self, char *text, size_t size)
{
    const exchange_step_t which = s_which(self);
    snprintf(text, size, "learner/%u", exchange_awaited(self->exchange, &which));
    return text;
}

const char *allreduce_awaited(const allreduce_t *self, char *text, size_t size)
{
    if (self->sending && self->how.held)
        return s_awaited_learner(self, text, size);
    if (!self->links) {
        snprintf(text, size, "an aggregator to join");
        return text;
    }
    uint32_t chunk = 0;
    while (chunk + 1 < self->chunks && self->have[chunk])
        chunk++;
    snprintf(text, size, "aggregator/%u", self->link[chunk % self->links].index);
    return text;
}
