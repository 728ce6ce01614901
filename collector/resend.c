#include "collector/resend.h"
#include <stdlib.h>
#include "common/base/mem.h"

/*  Messages are moved by zmq_msg_move, as ZeroMQ asks for. */
static void s_move(resend_segment_t *to, resend_segment_t *from)
{
    to->msg = from->msg;
    zmq_msg_init(&to->frame);
    zmq_msg_move(&to->frame, &from->frame);
    tt_frame_close(&from->frame);
}

static void s_grow(resend_t *self)
{
    self->room = 2 * self->room + 4;
    resend_segment_t *at = tt_array0(self->room, sizeof *at);
    for (size_t i = 0; i < self->count; i++)
        s_move(&at[i], &self->at[i]);
    free(self->at);
    self->at = at;
}

void resend_add(resend_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame)
{
    /* no gap, ever: a batch that is skipped here is lost, and resend_find counts on it */
    const uint64_t newest = self->count ? self->at[self->count - 1].msg.batch : 0;
    TT_CHECK(self->count == 0 || newest == msg->batch || newest + 1 == msg->batch);
    if (self->count == self->room)
        s_grow(self);
    resend_segment_t *segment = &self->at[self->count++];
    segment->msg = *msg;
    zmq_msg_init(&segment->frame);
    zmq_msg_move(&segment->frame, frame);
}

/*  The first of this batch, or of those after it. */
static size_t s_first(const resend_t *self, uint64_t batch)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (self->at[middle].msg.batch < batch)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t resend_parts(const resend_t *self, uint64_t batch)
{
    return (uint32_t)(s_first(self, batch + 1) - s_first(self, batch));
}

resend_segment_t *resend_find(const resend_t *self, uint64_t batch, uint32_t part)
{
    const size_t at = s_first(self, batch) + part;
    return at < self->count && self->at[at].msg.batch == batch ? &self->at[at] : NULL;
}

void resend_drop(resend_t *self, uint64_t below)
{
    const size_t gone = s_first(self, below);
    for (size_t i = 0; i < gone; i++)
        tt_frame_close(&self->at[i].frame);
    for (size_t i = gone; gone && i < self->count; i++)
        s_move(&self->at[i - gone], &self->at[i]);
    self->count -= gone;
}

void resend_free(resend_t *self)
{
    resend_drop(self, UINT64_MAX);
    free(self->at);
    *self = (resend_t){0};
}
