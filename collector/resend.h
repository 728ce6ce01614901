/*  resend - segments that were sent and may be needed again: kept until rank 0 has trained on them. In order of batches,
 *  without gaps; of a batch one or more, in the order in which they came.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/net/net.h"
#include "common/wire/msg.h"

typedef struct {
    tt_msg_SEGMENT_t msg;
    zmq_msg_t frame;
} resend_segment_t;

typedef struct {
    resend_segment_t *at; /* [count] by batch */
    size_t count, room;
} resend_t;

/*  Keep the next one; *frame is taken. */
void resend_add(resend_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame);
/*  How many there are of a batch. */
uint32_t resend_parts(const resend_t *self, uint64_t batch);
/*  The part-th of these; NULL when it is not there. Borrowed until the next call that changes something. */
resend_segment_t *resend_find(const resend_t *self, uint64_t batch, uint32_t part);
/*  Forget batches below this. UINT64_MAX: all. */
void resend_drop(resend_t *self, uint64_t below);
void resend_free(resend_t *self);
