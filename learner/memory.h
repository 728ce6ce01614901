/*  memory - experience that is trained on more than once, as the learner uses it: a replay (replay/replay.h), what its
 *  algorithm's feed says of it, and room for the observations of a minibatch.
 *
 *  Whatever it says is a function of the batches that went in and of the step: every learner comes to the same.
 *  Threads: an instance belongs to one thread; observations are read by the device until the next draw. */
#pragma once
#include "common/config/train.h"
#include "learner/algorithm.h"
#include "learner/intake.h"
#include "learner/replay/replay.h"

typedef struct memory memory_t; /* opaque */

/*  For an algorithm whose feed is a replay. The columns are borrowed. TT_CONFIG: the feed is out of limits. */
tt_status_t memory_new(
    memory_t **self_p, const tt_train_cfg_t *train, const tt_columns_t *columns, const tt_feed_t *feed, double gamma);
void memory_destroy(memory_t **self_p);
/*  Forget everything (a new era). */
void memory_reset(memory_t *self);

/*  A complete batch goes in, unless it is in already: what a joiner was sent may hold the batch in hand.
 *  broken[N]: the envs that do not go on from where the batch before left them. */
tt_status_t memory_insert(memory_t *self, const intake_batch_t *batch, const uint8_t *broken);
/*  Optimiser steps that update n owes for the rows of batch n, which is in; 0 while a stripe is empty. */
uint32_t memory_owed(const memory_t *self, uint64_t update);

/*  Scale what is gathered from now on by the normaliser of a version, as its block has it; where normalize.obs is off, nothing happens.
 *  TT_DATA: no such block. */
tt_status_t memory_scale(memory_t *self, const double *block);

/*  The minibatch of step `total`, borrowed until the next draw; drawn again, the same. */
tt_status_t memory_draw(memory_t *self, uint64_t total, const replay_sample_t **out);
/*  Read the observations of positions lo .. hi-1 of the minibatch just drawn to memory_obs: by frame, [units] rows (columns.h) side by side,
 *  normalised by what memory_scale was told last. */
void memory_gather(memory_t *self, uint32_t lo, uint32_t hi);
const void *const *memory_obs(const memory_t *self);

/*  What step `total` found by position (prioritised; else it is not read). Fails as replay_priorities does. */
tt_status_t memory_found(memory_t *self, uint64_t total, const float *x);

replay_t *memory_replay(memory_t *self);
/*  replay/rows and the like. made: optimiser steps of the run, each of which drew as many units as the next. */
void memory_metrics(const memory_t *self, uint64_t made, tt_metric_fn emit, void *ctx);
