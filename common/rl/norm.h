/*  norm - running mean and variance, for observations and for rewards.
 *
 *  Formulas: moments of a batch, then Chan, Golub and LeVeque 1979 to join them with what was there; everything in
 *            double, rows in the order they are given ((step, env id)), so equal batches give equal bits.
 *  As:       Gymnasium's RunningMeanStd and Stable-Baselines3's VecNormalize: version 0 is mean 0, variance 1 with the
 *            weight of 1e-4 of a row; population variance; epsilon 1e-8 under the root.
 *  Layout:   the flat block that travels with the weights and lies in snapshots, in doubles:
 *            count, mean[dims], m2[dims]; m2 = count * variance. tt_norm_block_count(dims) of them.
 *  Threads:  scaling reads only; everything else belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct tt_norm tt_norm_t; /* opaque */

/*  For rows of `dims` numbers, at version 0; 0 where there is nothing to scale. Caller owns. */
tt_norm_t *tt_norm_new(uint32_t dims);
void tt_norm_destroy(tt_norm_t **self_p);
double tt_norm_count(const tt_norm_t *self);
double tt_norm_mean(const tt_norm_t *self, uint32_t dim);
double tt_norm_var(const tt_norm_t *self, uint32_t dim);
/*  What tt_norm_scale takes a number by (common/base/scale.h): mean[dims] and inv[dims], until the next merge or load. */
const double *tt_norm_means(const tt_norm_t *self);
const double *tt_norm_invs(const tt_norm_t *self);

/*  Join `rows` rows with what was seen before. row[k] -> dims floats, in order. No rows: nothing happens. */
void tt_norm_merge(tt_norm_t *self, const float *const *row, size_t rows);
/*  The same for one array of doubles, dims = 1. */
void tt_norm_merge_f64(tt_norm_t *self, const double *x, size_t count);

/*  out = clip((in - mean) / sqrt(var + 1e-8), -clip, clip) for `rows` contiguous rows; out may be in. */
void tt_norm_scale(const tt_norm_t *self, const float *in, size_t rows, float clip, float *out);
/*  Rewards, dims = 1: out = clip(in / sqrt(var + 1e-8), -clip, clip): scaled, not centred. */
void tt_norm_scale_reward(const tt_norm_t *self, const float *in, size_t count, float clip, float *out);

size_t tt_norm_block_count(uint32_t dims);
void tt_norm_save(const tt_norm_t *self, double *block);
/*  TT_DATA: `count` is not the block's size, or a number is not finite or negative where it cannot be. */
tt_status_t tt_norm_load(tt_norm_t *self, const double *block, size_t count);

/* ---- discounted returns, whose variance scales the rewards ---------------------------------------------------------- */

/*  R_e <- gamma R_e + reward for every env and step; these R are what tt_norm_merge_f64 sees; R_e <- 0 after the end of
 *  an episode, terminated or truncated. Source: VecNormalize.step_wait (Stable-Baselines3). */
typedef struct tt_returns tt_returns_t; /* opaque: one double an env */

tt_returns_t *tt_returns_new(uint32_t envs, double gamma);
void tt_returns_destroy(tt_returns_t **self_p);
/*  Before a batch: R_e <- 0 where broken[e], for an env that does not go on from where the batch before left it. */
void tt_returns_forget(tt_returns_t *self, const uint8_t *broken);
/*  A whole batch of raw rewards, [T][envs], merged into norm (dims = 1) in (step, env id) order. */
void tt_returns_feed(tt_returns_t *self, tt_norm_t *norm, uint32_t T, const float *reward, const uint8_t *terminated,
    const uint8_t *truncated);
/*  The accumulators, [envs]: to save, and to restore. */
double *tt_returns_state(tt_returns_t *self);
