/*  batch - a tt_batch_t for the algorithm out of the segments of one batch.
 *
 *  Row r = t * N + env. Observations that are one plain vector stay where they came, as row pointers, unless they are
 *  normalised; others are copied, flattened and scaled with the given version (common/rl/rows.h). Where they are stacked each frame is read or copied
 *  once, and a row is a list of them. The other fields stay in place when
 *  one segment holds all envs, and are gathered otherwise.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/rl/norm.h"
#include "learner/algorithm.h"
#include "learner/intake.h"

typedef struct {
    uint32_t N, T;
    const tt_columns_t *columns; /* borrowed */
    bool scale_obs, scale_reward;
    float clip_obs, clip_reward;
} batch_cfg_t;

typedef struct batch batch_t; /* opaque */

batch_t *batch_new(const batch_cfg_t *cfg);
void batch_destroy(batch_t **self_p);

/*  Assemble a complete batch; *out is borrowed until the next assemble, and lives no longer than the intake's batch.
 *  obs_norm, reward_norm: what the batch is scaled with. */
void batch_assemble(batch_t *self, const intake_batch_t *from, const tt_norm_t *obs_norm, const tt_norm_t *reward_norm,
    tt_batch_t *out);

/*  As collected: what the observations' normaliser works on by row [T*N] (NULL when they are not scaled), rewards [T][N];
 *  and the oldest version that acted. Borrowed as above. */
const float *const *batch_raw_obs(const batch_t *self);
const float *batch_raw_reward(const batch_t *self);
/*  [N] steps of its episode that each env had behind it at the start. */
const uint32_t *batch_age(const batch_t *self);
uint64_t batch_oldest_version(const batch_t *self);
