#include "collector/peers.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#define TT_LOG_COMPONENT "collector"
#include "common/base/log.h"

enum {
    LINGER_MS = 100,
    WEIGHTS_HWM = 4, /* versions that may wait to be read: those that were missed are fetched by number */
    DATA_HWM = 64    /* segments, within credit                                                       */
};

tt_status_t peers_init(peers_t *self)
{
    const tt_sock_opts_t opts = {
        .name = "weights", .hwm = WEIGHTS_HWM, .max_bytes = self->max_bytes, .keys = tt_location_keys(self->location)};
    TT_TRY(tt_sock_new(&self->sub, TT_SUB, &opts));
    tt_loop_sock(self->loop, self->sub, self->on_packet, self->ctx);
    return TT_OK;
}

static void s_leave(peers_t *self, peer_t *peer)
{
    if (peer->sock) {
        tt_loop_forget_sock(self->loop, peer->sock);
        tt_sock_destroy(&peer->sock);
    }
    if (peer->weights[0])
        tt_sock_disconnect(self->sub, peer->weights);
}

void peers_free(peers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        s_leave(self, &self->at[i]);
    free(self->at);
    if (self->sub)
        tt_loop_forget_sock(self->loop, self->sub);
    tt_sock_destroy(&self->sub);
    self->at = NULL;
    self->count = 0;
}

static tt_status_t s_reach(peers_t *self, const tt_rec_MEMBER_t *member, peer_t *out)
{
    const char *data, *weights;
    tt_status_t status = tt_location_reach(self->location, member->data_ipc, member->data_tcp, &data);
    if (status == TT_OK)
        status = tt_location_reach(self->location, member->weights_ipc, member->weights_tcp, &weights);
    if (status != TT_OK)
        return tt_err_wrap(status, "learner/%u cannot be reached from here", member->index);
    snprintf(out->data, sizeof out->data, "%s", data);
    snprintf(out->weights, sizeof out->weights, "%s", weights);
    return TT_OK;
}

static tt_status_t s_join(peers_t *self, const tt_rec_MEMBER_t *member, peer_t *out)
{
    *out = (peer_t){.instance = member->instance, .index = member->index};
    TT_TRY(s_reach(self, member, out));
    const tt_sock_opts_t opts = {.name = "segments",
        .identity = self->identity,
        .hwm = DATA_HWM,
        .max_bytes = self->max_bytes,
        .linger_ms = LINGER_MS,
        .keys = tt_location_keys(self->location)};
    TT_TRY(tt_sock_new(&out->sock, TT_DEALER, &opts));
    tt_status_t status = tt_sock_connect(out->sock, out->data);
    if (status == TT_OK)
        status = tt_sock_connect(self->sub, out->weights);
    if (status != TT_OK) {
        tt_sock_destroy(&out->sock);
        return status;
    }
    tt_loop_sock(self->loop, out->sock, self->on_packet, self->ctx);
    log_debug("connected to learner/%u at %s", out->index, out->data);
    return TT_OK;
}

static peer_t *s_find(const peers_t *self, uint64_t instance)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].instance == instance)
            return &self->at[i];
    return NULL;
}

static tt_status_t s_take_member(peers_t *self, const tt_rec_MEMBER_t *member)
{
    peer_t *peer = s_find(self, member->instance);
    if (!peer) {
        peer_t fresh;
        TT_TRY(s_join(self, member, &fresh));
        self->at = tt_realloc(self->at, (self->count + 1) * sizeof *self->at);
        peer = &self->at[self->count++];
        *peer = fresh;
    }
    peer->gone = false;
    peer->rank = member->rank;
    /* its base may be another one now: nothing goes there before it has said so */
    peer->credited = false;
    return TT_OK;
}

static void s_drop_gone(peers_t *self)
{
    size_t left = 0;
    for (size_t i = 0; i < self->count; i++) {
        if (self->at[i].gone)
            s_leave(self, &self->at[i]);
        else
            self->at[left++] = self->at[i];
    }
    self->count = left;
}

tt_status_t peers_take(peers_t *self, const tt_msg_ROSTER_t *roster)
{
    /* who stays keeps socket and cursor: what is on its way is not sent again */
    for (size_t i = 0; i < self->count; i++)
        self->at[i].gone = true;
    for (size_t i = 0; roster && i < roster->members_count; i++)
        if (roster->members[i].role == TT_PEER_LEARNER)
            TT_TRY(s_take_member(self, &roster->members[i]));
    s_drop_gone(self);
    return TT_OK;
}

void peers_uncredit(peers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        self->at[i].credited = false;
}

void peers_aim(peer_t *peer, uint64_t batch)
{
    peer->next = batch;
    peer->part = 0;
}

void peers_aim_all(peers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        peers_aim(&self->at[i], self->at[i].base);
}

peer_t *peers_of_sock(const peers_t *self, const tt_sock_t *sock)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].sock == sock)
            return &self->at[i];
    return NULL;
}

peer_t *peers_of_rank(const peers_t *self, uint32_t rank)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].rank == rank)
            return &self->at[i];
    return NULL;
}

peer_t *peers_silent(const peers_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->at[i].credited)
            return &self->at[i];
    return NULL;
}

peer_t *peers_tight(const peers_t *self, uint64_t batch)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].upto <= batch)
            return &self->at[i];
    return NULL;
}

uint64_t peers_start(const peers_t *self)
{
    uint64_t start = UINT64_MAX;
    for (size_t i = 0; i < self->count; i++)
        if (self->at[i].base < start)
            start = self->at[i].base;
    return start;
}

/*  A reference to the frame goes out, not a copy of its bytes. False: the socket takes no more now. */
static bool s_send(peer_t *peer, resend_segment_t *segment)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    zmq_msg_copy(&frame, &segment->frame);
    const tt_status_t status = tt_sock_send(peer->sock, NULL, &segment->msg, &frame, 1);
    tt_frame_close(&frame);
    if (status != TT_OK)
        log_debug(
            "segment of batch %" PRIu64 " waits for learner/%u: %s", segment->msg.batch, peer->index, tt_err_text());
    return status == TT_OK;
}

/*  False: it is not all out yet, and the next look goes on from here. */
static bool s_send_batch(peer_t *peer, const resend_t *resend)
{
    resend_segment_t *segment;
    for (; (segment = resend_find(resend, peer->next, peer->part)); peer->part++)
        if (!s_send(peer, segment))
            return false;
    return true;
}

void peers_flush(peers_t *self, const resend_t *resend, uint64_t end)
{
    for (size_t i = 0; i < self->count; i++) {
        peer_t *peer = &self->at[i];
        while (peer->credited && peer->next < end && peer->next < peer->upto && s_send_batch(peer, resend))
            peers_aim(peer, peer->next + 1);
    }
}
