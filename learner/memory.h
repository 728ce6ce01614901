/*  memory - experience that is trained on more than once, as the learner uses it: a replay (replay/replay.h), what its
 *  algorithm's feed says of it, and where the observations of a minibatch come from: room on the host, or frames that the learner's
 *  device has, too (shelf.h).
 *
 *  Whatever it says is a function of the batches that went in and of the step: every learner comes to the same.
 *  Threads: an instance belongs to one thread; observations are read by the device until the next draw. */
#pragma once
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/compute.h"
#include "learner/intake.h"
#include "learner/replay/replay.h"

typedef struct memory memory_t; /* opaque */

/*  For an algorithm whose feed is a replay. The columns are borrowed. TT_CONFIG: the feed is out of limits. */
tt_status_t memory_new(
    memory_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed, double gamma);
void memory_destroy(memory_t **self_p);
/*  Keep the frames in this device's memory, too, where replay.memory says so: once, before anything goes in. Both are borrowed. The bits do
 *  not depend on it. TT_UNSUPPORTED: `both`, and the device has no room. */
tt_status_t memory_place(memory_t *self, tt_device_t *device, tt_stream_t *stream);
/*  Bytes that such a copy takes on a device; 0: its setup is out of limits. */
uint64_t memory_copy_bytes(const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed);
/*  Forget everything (a new era). */
void memory_reset(memory_t *self);

/*  A complete batch goes in, unless it is in already: what a joiner was sent may hold the batch in hand, and that may have been
 *  composed anew (compose.h). broken[N]: the envs that do not go on from where the batch before left them. TT_UNAVAILABLE: it is in as
 *  it was composed before, of other rows, and nothing comes out again. */
tt_status_t memory_insert(memory_t *self, const intake_batch_t *batch, const uint8_t *broken);
/*  A saved replay replaces what is here (replay_load), or one that came in pieces (replay_warm_finish). */
tt_status_t memory_load(memory_t *self, const void *block, size_t size, const replay_pieces_t *pieces);
tt_status_t memory_take(memory_t *self, replay_warm_t *warm, const void *block, size_t size);
/*  Optimiser steps that update n owes for the rows of batch n, which is in; 0 while a stripe is empty. */
uint32_t memory_owed(const memory_t *self, uint64_t update);

/*  Scale what is gathered from now on by the normaliser of a version, as its block has it; where normalize.obs is off, nothing happens.
 *  TT_DATA: no such block. */
tt_status_t memory_scale(memory_t *self, const double *block);

/*  The minibatch of step `total`, borrowed until the next draw; drawn again, the same. */
tt_status_t memory_draw(memory_t *self, uint64_t total, const replay_sample_t **out);
/*  The observations of the minibatch just drawn, of which positions lo .. hi-1 are read, normalised by what memory_scale was told last,
 *  and pictures shifted as far as the feed says. */
const compute_units_t *memory_units(memory_t *self, uint32_t lo, uint32_t hi);

/*  What step `total` found by position, of sequences [length][units] (prioritised; else it is not read). Fails as replay_priorities does. */
tt_status_t memory_found(memory_t *self, uint64_t total, const float *x);

/*  To be read; it is changed by the functions above alone. */
const replay_t *memory_replay(const memory_t *self);
/*  replay/rows and the like. made: optimiser steps of the run, each of which drew as many units as the next. */
void memory_metrics(const memory_t *self, uint64_t made, tt_metric_fn emit, void *ctx);
