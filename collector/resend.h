/*  resend - segments that were sent and may be needed again: kept until rank 0 has trained on them. In order of batches,
 *  without gaps.
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
    resend_segment_t *at; /* [count] ascending batches */
    size_t count, room;
} resend_t;

/*  Keep the next one; *frame is taken. */
void resend_add(resend_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame);
/*  NULL when it is not there. Borrowed until the next call that changes something. */
resend_segment_t *resend_find(const resend_t *self, uint64_t batch);
/*  Forget batches below this. UINT64_MAX: all. */
void resend_drop(resend_t *self, uint64_t below);
void resend_free(resend_t *self);
