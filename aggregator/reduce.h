/*  reduce - finishes the summation tree of every chunk and answers whoever took part; no sockets, no clock.
 *
 *  A sum is named by (era, generation, step, chunk). Only the (era, generation) of the newest roster counts: a newer one
 *  voids what is there, an older one is dropped. Of it the newest two steps are kept, because a learner may be one step behind. A sender
 *  of a chunk is answered once with the sum, also when it comes late; the same node from the same sender again (it lost
 *  the answer) is answered again.
 *
 *  Sums are made in place, in the memory of a received frame, and every answer refers to that one frame.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <zmq.h>
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/wire/msg.h"

typedef struct {
    uint32_t shards;    /* S, of the job: every GRAD must agree             */
    uint32_t chunks;    /* most chunks of a gradient                        */
    size_t chunk_bytes; /* largest frame                                    */
} reduce_limits_t;

/*  Sends one answer; takes *frame on TT_OK. TT_AGAIN: later (reduce_flush); anything else: the peer is gone. */
typedef tt_status_t (*reduce_send_fn)(void *ctx, const char *peer, const tt_msg_SUM_t *sum, zmq_msg_t *frame);

typedef struct reduce reduce_t; /* opaque */

/*  TT_INVALID: shards is no power of two. Caller owns *self_p. */
tt_status_t reduce_new(reduce_t **self_p, const reduce_limits_t *limits, reduce_send_fn send, void *ctx);
void reduce_destroy(reduce_t **self_p);

/*  The newest roster says so: from now on this (era, generation) counts. An older one changes nothing. */
void reduce_enter(reduce_t *self, uint32_t era, uint64_t generation);
/*  Within the generation other chunks are ours now: we may have missed any number of steps. */
void reduce_moved(reduce_t *self);

/*  Take one partial sum; *frame is taken (empty afterwards) in every case but one. TT_OK also when it was of an
 *  older generation and dropped. TT_AGAIN: it is ahead, of the generation or by more than a step: nothing changed, and the frame is left.
 *  TT_PROTOCOL: the text names peer and field; nothing changed. */
tt_status_t reduce_grad(reduce_t *self, const char *peer, const tt_msg_GRAD_t *grad, zmq_msg_t *frame);

/*  Try again the answers that could not be sent. Returns how many still wait for that. */
size_t reduce_flush(reduce_t *self);

/*  Sums finished and messages dropped as too old since the start. */
uint64_t reduce_sums(const reduce_t *self);
uint64_t reduce_dropped(const reduce_t *self);

/*  What the oldest unfinished sum lacks. */
typedef struct {
    uint64_t step;
    uint32_t chunk;
    uint32_t shard; /* the first shard that is not covered */
} reduce_gap_t;

/*  False: nothing is unfinished. */
bool reduce_gap(const reduce_t *self, reduce_gap_t *out);
