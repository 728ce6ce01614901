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
    TT_CHECK(self->count == 0 || self->at[self->count - 1].msg.batch + 1 == msg->batch);
    if (self->count == self->room)
        s_grow(self);
    resend_segment_t *segment = &self->at[self->count++];
    segment->msg = *msg;
    zmq_msg_init(&segment->frame);
    zmq_msg_move(&segment->frame, frame);
}

resend_segment_t *resend_find(const resend_t *self, uint64_t batch)
{
    if (self->count == 0 || batch < self->at[0].msg.batch || batch - self->at[0].msg.batch >= self->count)
        return NULL;
    return &self->at[batch - self->at[0].msg.batch];
}

void resend_drop(resend_t *self, uint64_t below)
{
    size_t gone = 0;
    while (gone < self->count && self->at[gone].msg.batch < below)
        tt_frame_close(&self->at[gone++].frame);
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
