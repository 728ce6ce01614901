/*  shelf - the frames of a replay in the memory of a learner's device, so that a minibatch sends their numbers and not them.
 *
 *  The replay stays what it is: what a shelf has is a copy, by the replay's places. It is never saved or sent.
 *  Threads: an instance belongs to one thread, the device's. */
#pragma once
#include "common/nn/device.h"
#include "common/rl/norm.h"
#include "learner/sequences.h"
#include "learner/replay/replay.h"

typedef struct shelf shelf_t; /* opaque */

/*  For a replay of this setup, of which nothing is there before shelf_follow; columns and device are borrowed. TT_UNAVAILABLE: the device
 *  has no room for it. */
tt_status_t shelf_new(shelf_t **self_p, const replay_t *like, const tt_columns_t *columns, tt_device_t *device);
void shelf_destroy(shelf_t **self_p);
/*  Bytes on the device; and what they would be. */
uint64_t shelf_bytes(const shelf_t *self);
uint64_t shelf_needs(const replay_t *replay, const tt_columns_t *columns);

/*  Batches from `from` on came in since (replay_show); 0 after a load, or with another replay. Waits for the stream, so that the replay
 *  may change again. */
tt_status_t shelf_follow(shelf_t *self, const replay_t *replay, tt_stream_t *stream, uint64_t from);

/*  A minibatch by position; rows of positions lo .. hi-1 are wanted, what stands at others can be read and is not theirs. */
typedef struct {
    const uint64_t *unit;
    uint32_t count, lo, hi;
} shelf_units_t;

/*  Their rows in a frame of their units, as the replay that was followed has it. norm NULL: nothing is scaled. Borrowed until the next call
 *  with this frame. */
void shelf_rows(shelf_t *self, const replay_t *replay, const shelf_units_t *units, replay_frame_t frame,
    const tt_norm_t *norm, float clip, tt_stored_t *out);
/*  The same of a run's sequences, as sequences.h has them. */
void shelf_sequences(shelf_t *self, const replay_t *replay, const sequences_t *sequences, const tt_norm_t *norm,
    float clip, tt_stored_t *out);
