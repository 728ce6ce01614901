/*  kept - segments that were sent and may be needed again: kept until rank 0 has trained on them. In order of batches,
 *  without gaps.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/net/net.h"
#include "common/wire/msg.h"

typedef struct {
    tt_msg_SEGMENT_t msg;
    zmq_msg_t frame;
} kept_segment_t;

typedef struct {
    kept_segment_t *at; /* [count] ascending batches */
    size_t count, room;
} kept_t;

/*  Keep the next one; *frame is taken. */
void kept_add(kept_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame);
/*  NULL when it is not there. Borrowed until the next call that changes something. */
kept_segment_t *kept_find(const kept_t *self, uint64_t batch);
/*  Forget batches below this. UINT64_MAX: all. */
void kept_drop(kept_t *self, uint64_t below);
void kept_free(kept_t *self);
