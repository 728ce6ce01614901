#define TT_LOG_COMPONENT "feed"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "learner/core.h"

enum { ATTACHED_MAX = 8192, WARNINGS_MAX = 100 };

/* ---- CREDIT and ACK ---------------------------------------------------------------------------------------------- */

static void s_forget(core_t *self, size_t i)
{
    self->feed.attached[i] = self->feed.attached[--self->feed.count];
}

/*  false: the peer is gone. */
static bool s_send(core_t *self, const attached_t *to, const void *message)
{
    const tt_status_t status = tt_sock_send(self->socks.data, to->peer, message, NULL, 0);
    if (status == TT_OK)
        return true;
    log_debug("%s: %s", to->peer, tt_err_text());
    return status != TT_UNAVAILABLE; /* a full queue: it attaches again and gets the newest credit */
}

static bool s_may_have_credit(const core_t *self, const attached_t *to)
{
    return self->at.holds && self->view.member && to->era == self->view.era && to->epoch <= self->view.epoch;
}

static bool s_credit(core_t *self, const attached_t *to)
{
    const tt_msg_CREDIT_t message = TT_MSG(CREDIT, .era = self->view.era, .epoch = to->epoch,
        .upto = intake_upto(self->data.intake), .base = intake_base(self->data.intake));
    return s_send(self, to, &message);
}

void feed_credit_all(core_t *self)
{
    for (size_t i = 0; i < self->feed.count;)
        if (s_may_have_credit(self, &self->feed.attached[i]) && !s_credit(self, &self->feed.attached[i]))
            s_forget(self, i);
        else
            i++;
}

void feed_ack_all(core_t *self)
{
    const tt_msg_ACK_t message = TT_MSG(ACK, .era = self->view.era, .below = self->at.update);
    for (size_t i = 0; i < self->feed.count;)
        if (s_may_have_credit(self, &self->feed.attached[i]) && !s_send(self, &self->feed.attached[i], &message))
            s_forget(self, i);
        else
            i++;
}

void feed_on_roster(core_t *self)
{
    for (size_t i = 0; i < self->feed.count;)
        if (self->feed.attached[i].epoch <= self->view.epoch &&
            !view_has_collector(&self->view, self->feed.attached[i].instance))
            s_forget(self, i);
        else
            i++;
    feed_credit_all(self);
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

/*  A peer may be wrong a thousand times a second: the log hears of the first hundred. */
static void s_warn(core_t *self, const char *peer)
{
    if (self->feed.warnings++ < WARNINGS_MAX)
        log_warn("%s: %s; dropped", peer, tt_err_text());
}

/*  So many at once: one of them is not of the roster, whatever epoch it says it knows. */
static bool s_make_room(core_t *self, const char *peer)
{
    for (size_t i = 0; i < self->feed.count; i++)
        if (!view_has_collector(&self->view, self->feed.attached[i].instance)) {
            s_forget(self, i);
            return true;
        }
    tt_err(TT_DENIED, "ATTACH: %d have attached already", ATTACHED_MAX);
    s_warn(self, peer);
    return false;
}

static void s_on_attach(core_t *self, const char *peer, const tt_msg_ATTACH_t *msg)
{
    size_t i = 0;
    while (i < self->feed.count && strcmp(self->feed.attached[i].peer, peer) != 0)
        i++;
    if (i == ATTACHED_MAX) {
        if (!s_make_room(self, peer))
            return;
        i = self->feed.count;
    }
    if (i == self->feed.count) {
        self->feed.attached = tt_realloc(self->feed.attached, tt_mul(i + 1, sizeof *self->feed.attached));
        self->feed.count++;
    }
    attached_t *attached = &self->feed.attached[i];
    *attached = (attached_t){.instance = msg->instance, .era = msg->era, .epoch = msg->epoch};
    memcpy(attached->peer, peer, strnlen(peer, sizeof attached->peer - 1));
    if (s_may_have_credit(self, attached) && !s_credit(self, attached))
        s_forget(self, i);
}

static void s_on_segment(core_t *self, tt_packet_t *packet)
{
    const tt_msg_SEGMENT_t *msg = &packet->msg.SEGMENT;
    if (!self->at.holds || msg->era != self->view.era) {
        log_debug("%s: segment of era %u, batch %llu: void", packet->peer, msg->era, (unsigned long long)msg->batch);
        return;
    }
    if (!compose_fence(self, msg)) {
        log_debug("%s: segment of batch %llu: its range has moved", packet->peer, (unsigned long long)msg->batch);
        return;
    }
    if (packet->frame_count != 1) {
        tt_err(TT_PROTOCOL, "SEGMENT without its body");
        s_warn(self, packet->peer);
        return;
    }
    uint32_t fresh = 0;
    if (intake_add(self->data.intake, msg, &packet->frame[0], NULL, &fresh) != TT_OK) {
        s_warn(self, packet->peer);
        return;
    }
    if (fresh) {
        core_progress(self);
        fetch_retry(self);
    }
}

tt_status_t feed_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    core_t *self = ctx;
    switch (packet->msg.type) {
    case TT_MSG_ATTACH:
        s_on_attach(self, packet->peer, &packet->msg.ATTACH);
        return TT_OK;
    case TT_MSG_SEGMENT:
        if (self->control.welcome)
            s_on_segment(self, packet);
        return TT_OK;
    case TT_MSG_FETCH:
        fetch_take(self, packet->peer, &packet->msg.FETCH);
        return TT_OK;
    default:
        log_warn("%s sent %s; ignored", packet->peer, tt_msg_name(packet->msg.type));
        return TT_OK;
    }
}

void feed_close(feed_t *self)
{
    free(self->attached);
    *self = (feed_t){0};
}
