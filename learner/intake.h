/*  intake - the segments of the batches under way: what has come, what is missing, where every env stands.
 *
 *  What counts is (batch, env id), whoever sent it. A batch has one owner segment for each env; a pair that is there
 *  already is dropped and counted. Segments are kept as they came (the frame is taken); the batch is assembled from them
 *  in place (batch.h). Batches base .. base+lag are kept, and the env states at the starts of base-1 .. base+lag+1: a peer
 *  that is one optimiser step behind may still be in the update before, and its batch may have to be collected again.
 *
 *  Knows no sockets: learner.c hands segments in and sends what intake says. Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/wire/msg.h"
#include "common/net/net.h"
#include "common/wire/segment.h"

typedef struct {
    uint32_t N, T;               /* envs, steps                                     */
    const tt_columns_t *columns; /* borrowed                                        */
    uint32_t state_bytes;        /* of a saved env; 0 = cannot be saved                    */
    uint32_t lag;
} intake_cfg_t;

/*  One received segment. */
typedef struct {
    uint64_t instance, version; /* who collected it, with which weights           */
    uint32_t env_lo, env_count;
    uint32_t before, after; /* envs of its collector's range that are not in it */
    tt_segment_shape_t shape;
    tt_segment_t at;   /* pointers into the block                        */
    const void *block; /* aligned for floats                             */
    zmq_msg_t frame;   /* holds the block, unless `copy` does            */
    void *copy;
    size_t bytes;
} intake_segment_t;

/*  The segments of one batch. */
typedef struct {
    uint64_t batch;
    uint32_t filled;            /* envs that are there                 */
    uint32_t *owner;            /* [N] 1 + number of the segment, 0 = missing */
    intake_segment_t **segment; /* [segments] */
    uint32_t segments, room;
} intake_batch_t;

typedef struct intake intake_t; /* opaque */

intake_t *intake_new(const intake_cfg_t *cfg);
void intake_destroy(intake_t **self_p);

/*  Forget everything and expect batches from `base` on (a new era, a joiner). */
void intake_reset(intake_t *self, uint64_t base);

/*  Update `base - 1` is done: its segments are given back, and the states at the start of the batch before it. */
void intake_advance(intake_t *self, uint64_t base);

/*  Envs env_lo .. +env_count-1. */
typedef struct {
    uint32_t lo, count;
} intake_range_t;

/*  Take a segment; *frame is moved out when the segment is of use. `force` (composition of a batch, lag > 1; NULL
 *  otherwise): these of its envs replace what is there. *fresh (may be NULL) gets the number of envs that were taken.
 *  TT_OK also when all of it was there before (counted). TT_INVALID: it breaks the rules (the text says which), or it is
 *  beyond the credit; nothing was taken. */
tt_status_t intake_add(
    intake_t *self, const tt_msg_SEGMENT_t *msg, zmq_msg_t *frame, const intake_range_t *force, uint32_t *fresh);

/*  Disown what `keep` refuses in all batches from `first` on that are kept: where a second copy has other bits, an env must
 *  not go on from another trajectory than the one its new collector starts from. */
void intake_disown(
    intake_t *self, uint64_t first, bool (*keep)(const void *ctx, const intake_segment_t *segment), const void *ctx);

/*  Batches below this may be sent; first batch that is not complete. */
uint64_t intake_upto(const intake_t *self);
uint64_t intake_base(const intake_t *self);
/*  (batch, env) pairs dropped because they were there already. */
uint64_t intake_dropped(const intake_t *self);

/*  A batch in base .. base+lag, NULL otherwise. Borrowed until intake_advance, reset or the next add to it. */
const intake_batch_t *intake_batch(const intake_t *self, uint64_t batch);
bool intake_complete(const intake_t *self, uint64_t batch);
/*  The segment of an env, NULL when missing. */
const intake_segment_t *intake_owner(const intake_t *self, uint64_t batch, uint32_t env);

/*  Saved states at the start of `batch` for a range: count * state_bytes bytes into `out`.
 *  TT_AGAIN: not all there yet; TT_NOT_FOUND: given back already, or the envs cannot be saved. */
tt_status_t intake_states(const intake_t *self, uint64_t batch, uint32_t env_lo, uint32_t env_count, uint8_t *out);
/*  Set the states at the start of the base batch (from a snapshot). states[N][state_bytes]. */
void intake_put_states(intake_t *self, const uint8_t *states);
