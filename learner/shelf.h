/*  shelf - the frames of a replay in the memory of a learner's device, so that a minibatch sends their numbers and not them.
 *
 *  The replay stays what it is: what a shelf has is a copy, by the replay's places. It is never saved or sent.
 *  Threads: an instance belongs to one thread, the device's. */
#pragma once
#include "common/nn/device.h"
#include "common/rl/norm.h"
#include "learner/replay/replay.h"

typedef struct shelf shelf_t; /* opaque */

/*  For this replay, which holds nothing yet or is shown whole by shelf_follow; replay, columns and device are borrowed. TT_UNAVAILABLE: the device has no
 *  room for it. */
tt_status_t shelf_new(shelf_t **self_p, const replay_t *replay, const tt_columns_t *columns, tt_device_t *device);
void shelf_destroy(shelf_t **self_p);
/*  Bytes on the device. */
uint64_t shelf_bytes(const shelf_t *self);

/*  Batches from `from` on came in since (replay_show); 0 after a load. Waits for the stream, so that the replay may change again. */
tt_status_t shelf_follow(shelf_t *self, tt_stream_t *stream, uint64_t from);

/*  Rows lo .. hi-1 of `units` in a frame of their units, to out, which has `units` rows; what stands at other positions can be read, and is
 *  not theirs. norm NULL: nothing is scaled. Borrowed until the next call with this frame. */
void shelf_rows(shelf_t *self, const uint64_t *unit, uint32_t units, uint32_t lo, uint32_t hi, replay_frame_t frame,
    const tt_norm_t *norm, float clip, tt_stored_t *out);
