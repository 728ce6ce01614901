/*  snapshot_remote - snapshots of a learner that has no run directory: they go to the coordinator, and come from there
 *  (coordinator/snapshot_store.h), piece by piece, over a socket that is open for one file only. */
#define TT_LOG_COMPONENT "snapshot_remote"
#include <stdio.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "learner/core.h"

enum { PIECE = 1 << 20, AGAIN_MS = 1000, SILENCE_MS = 3000, AWAY_MS = 600000, SOCK_MAX = (1 << 20) + 65536 };

/*  One file, there or back. */
typedef struct {
    core_t *core;
    tt_sock_t *sock;
    const char *what; /* for the heartbeat */
    bool answered;
    char refused[512];
    uint64_t have; /* bytes that are over                     */
    tt_buf_t *in;  /* LOAD: what has come                     */
    uint64_t size; /* of the file; LOAD: 0 = not known yet    */
    int64_t moved_ms, patience_ms;
} transfer_t;

static int64_t s_now_ms(const core_t *core)
{
    return tt_now_ms(core->clock);
}

/* ---- answers -------------------------------------------------------------------------------------------------------- */

static void s_on_stored(transfer_t *self, const tt_msg_STORED_t *m)
{
    snprintf(self->refused, sizeof self->refused, "%s", m->refused ? m->refused : "");
    if (m->have <= self->size)
        self->have = m->have;
    self->answered = true;
}

static tt_status_t s_on_loaded(transfer_t *self, tt_packet_t *packet)
{
    const tt_msg_LOADED_t *m = &packet->msg.LOADED;
    snprintf(self->refused, sizeof self->refused, "%s", m->refused ? m->refused : "");
    if (!self->refused[0] && (m->offset != self->have || packet->frame_count != 1))
        return TT_OK; /* the answer to a question that was repeated */
    if (!self->refused[0]) {
        TT_TRY(tt_buf_add(self->in, zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0])));
        self->have += zmq_msg_size(&packet->frame[0]);
        self->size = m->size;
    }
    self->answered = true;
    return TT_OK;
}

static tt_status_t s_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    transfer_t *self = ctx;
    if (packet->msg.type == TT_MSG_STORED && !self->in)
        s_on_stored(self, &packet->msg.STORED);
    else if (packet->msg.type == TT_MSG_LOADED && self->in)
        return s_on_loaded(self, packet);
    return TT_OK;
}

/* ---- asking --------------------------------------------------------------------------------------------------------- */

static void s_close(transfer_t *self)
{
    if (!self->sock)
        return;
    tt_loop_forget_sock(self->core->loop, self->sock);
    tt_sock_destroy(&self->sock);
}

static tt_status_t s_open(transfer_t *self)
{
    core_t *core = self->core;
    char identity[64], endpoint[300];
    s_close(self);
    snprintf(identity, sizeof identity, "learner/%u/%llx/files", tt_link_index(core->link),
        (unsigned long long)tt_link_instance(core->link));
    tt_link_where(core->link, endpoint, sizeof endpoint);
    const tt_sock_opts_t opts = {
        .name = "files", .identity = identity, .max_bytes = SOCK_MAX, .keys = tt_location_keys(core->location)};
    TT_TRY(tt_sock_new(&self->sock, TT_DEALER, &opts));
    tt_loop_sock(core->loop, self->sock, s_on_packet, self);
    return tt_sock_connect(self->sock, endpoint);
}

/*  A coordinator that is away is waited for when the caller can wait at all. */
static bool s_expired(const transfer_t *self)
{
    const bool away = self->patience_ms > SILENCE_MS && tt_link_silence_ms(self->core->link) > SILENCE_MS;
    return s_now_ms(self->core) - self->moved_ms > (away ? AWAY_MS : self->patience_ms);
}

/*  Ask until there is an answer; the answer may be that nothing has moved. */
static tt_status_t s_ask(transfer_t *self, const void *msg, const void *piece, size_t size)
{
    const uint32_t era = self->core->view.era;
    self->answered = false;
    for (int64_t sent_ms = 0; !self->answered;) {
        if (!sent_ms || s_now_ms(self->core) - sent_ms > AGAIN_MS) {
            if (sent_ms || !self->sock)
                TT_TRY(s_open(self));
            zmq_msg_t frame;
            tt_frame_new(&frame, size);
            if (size)
                memcpy(zmq_msg_data(&frame), piece, size);
            const tt_status_t status = tt_sock_send(self->sock, NULL, msg, &frame, piece != NULL);
            tt_frame_close(&frame);
            if (status != TT_OK && status != TT_AGAIN)
                return status;
            sent_ms = s_now_ms(self->core);
        }
        TT_TRY(core_wait(self->core, "%s", self->what));
        const view_t *view = &self->core->view;
        if (self->core->ending.leave || view->era != era || !view->member || view->rank != 0)
            return tt_err(TT_STOPPED, "it counts no more");
        if (!self->answered && s_expired(self)) /* we may have been held up ourselves */
            return tt_err(TT_TIMEOUT, "no answer from the coordinator for %lld ms",
                (long long)(s_now_ms(self->core) - self->moved_ms));
    }
    return self->refused[0] ? tt_err(TT_IO, "the coordinator says: %s", self->refused) : TT_OK;
}

/* ---- there and back ------------------------------------------------------------------------------------------------- */

static tt_status_t s_store(transfer_t *self, const char *name, bool best, const tt_buf_t *bytes)
{
    tt_msg_STORE_t msg = TT_MSG(STORE, .instance = tt_link_instance(self->core->link), .name = (char *)(uintptr_t)name,
        .size = bytes->size, .best = best);
    while (self->have < self->size) {
        const uint64_t before = self->have, left = self->size - before;
        msg.offset = before;
        TT_TRY(s_ask(self, &msg, (const char *)bytes->data + before, left < PIECE ? (size_t)left : PIECE));
        if (self->have > before)
            self->moved_ms = s_now_ms(self->core);
        core_progress(self->core);
    }
    return TT_OK;
}

tt_status_t snapshot_remote_store(core_t *core, const char *name, bool best, const tt_buf_t *bytes, int patience_ms)
{
    transfer_t self = {.core = core,
        .what = "storing a snapshot at the coordinator",
        .size = bytes->size,
        .moved_ms = s_now_ms(core),
        .patience_ms = patience_ms};
    const tt_status_t status = s_store(&self, name, best, bytes);
    s_close(&self);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", name);
}

static tt_status_t s_load(transfer_t *self, const char *path)
{
    tt_msg_LOAD_t msg = TT_MSG(LOAD, .instance = tt_link_instance(self->core->link), .path = (char *)(uintptr_t)path);
    do {
        msg.offset = self->have;
        TT_TRY(s_ask(self, &msg, NULL, 0));
        self->moved_ms = s_now_ms(self->core);
        core_progress(self->core);
    } while (self->have < self->size);
    return TT_OK;
}

tt_status_t snapshot_remote_load(core_t *core, const char *path, tt_buf_t *out)
{
    transfer_t self = {.core = core,
        .what = "loading a snapshot from the coordinator",
        .in = out,
        .moved_ms = s_now_ms(core),
        .patience_ms = 2 * SILENCE_MS};
    const tt_status_t status = s_load(&self, path);
    s_close(&self);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", path);
}
