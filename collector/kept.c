#include "collector/kept.h"
#include <stdlib.h>
#include "common/base/mem.h"

/*  Messages are moved by zmq_msg_move, as ZeroMQ asks for. */
static void s_move(kept_segment_t *to, kept_segment_t *from)
{
    to->msg = from->msg;
    zmq_msg_init(&to->frame);
    zmq_msg_move(&to->frame, &from->frame);
    tt_frame_close(&from->frame);
}

static void s_grow(kept_t *self)
{
    self->room = 2 * self->room + 4;
    kept_segment_t *at = tt_array0(self->room, sizeof *at);
    for (size_t i = 0; i < self->count; i++)
        s_move(&at[i], &self->at[i]);
    free(self->at);
    self->at = at;
}

void kept_add(kept_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame)
{
    TT_CHECK(self->count == 0 || self->at[self->count - 1].msg.batch + 1 == msg->batch);
    if (self->count == self->room)
        s_grow(self);
    kept_segment_t *segment = &self->at[self->count++];
    segment->msg = *msg;
    zmq_msg_init(&segment->frame);
    zmq_msg_move(&segment->frame, frame);
}

kept_segment_t *kept_find(const kept_t *self, uint64_t batch)
{
    if (self->count == 0 || batch < self->at[0].msg.batch || batch - self->at[0].msg.batch >= self->count)
        return NULL;
    return &self->at[batch - self->at[0].msg.batch];
}

void kept_drop(kept_t *self, uint64_t below)
{
    size_t gone = 0;
    while (gone < self->count && self->at[gone].msg.batch < below)
        tt_frame_close(&self->at[gone++].frame);
    for (size_t i = gone; gone && i < self->count; i++)
        s_move(&self->at[i - gone], &self->at[i]);
    self->count -= gone;
}

void kept_free(kept_t *self)
{
    kept_drop(self, UINT64_MAX);
    free(self->at);
    *self = (kept_t){0};
}
