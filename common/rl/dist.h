/*  dist - action distributions: categorical over logits, and a Gaussian with independent dimensions.
 *
 *  Shapes:   rows = states (envs), A = choices or dimensions; logits, mean, action: row-major [rows][A];
 *            log_std[A], the same for every row.
 *  Draws:    row i uses Philox words of (seed, stream, who[i], clock[i] * 2^8 + k), so a row's action depends on nothing
 *            but its own numbers; neighbours and their count do not matter, to the bit.
 *  Numbers:  log-probabilities and entropies in nats. A row with a NaN gives an action in range (discrete) and a
 *            log-probability of NaN, never undefined behaviour.
 *  Threads:  pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/rng.h"
#include "common/rl/gauss.h"

/*  Which draws to use: the collector's are TT_STREAM_ACTION, env ids and the envs' step counters. */
typedef struct {
    uint64_t seed;
    tt_rng_stream_t stream;
    const uint32_t *who;   /* [rows] */
    const uint64_t *clock; /* [rows], below 2^48 */
} tt_dist_draw_t;

/*  Block k of four words of a row's step: for those who draw more than one thing in a step. */
void tt_dist_words(const tt_dist_draw_t *draw, size_t row, uint64_t k, uint32_t word[4]);

/* ---- categorical: p_a = exp(logit_a) / sum exp(logit) --------------------------------------------------------------- */

/*  Draw by inversion of the cumulative sum. log_prob may be NULL, as in every function here that has it as output. */
void tt_cat_sample(
    const float *logits, size_t rows, uint32_t A, const tt_dist_draw_t *draw, int32_t *action, float *log_prob);
/*  log p of given actions (0 .. A-1). */
void tt_cat_log_prob(const float *logits, size_t rows, uint32_t A, const int32_t *action, float *log_prob);

/* ---- Gaussian: a_i = mean_i + exp(log_std_i) z_i -------------------------------------------------------------------- */

/*  Draw by Box and Muller; |z| <= 5.8. The action is not clipped, and log_prob is that of the unclipped action. */
void tt_gauss_sample(const float *mean, const float *log_std, size_t rows, uint32_t A, const tt_dist_draw_t *draw,
    float *action, float *log_prob);
/*  One row of it, mean[A] to action[A], from block k on; it takes (A + 3) / 4 blocks. */
void tt_gauss_sample_row(const float *mean, const float *log_std, uint32_t A, const tt_dist_draw_t *draw, size_t row,
    uint64_t k, float *action);
/*  log p of given actions; greedy action = mean. */
void tt_gauss_log_prob(
    const float *mean, const float *log_std, size_t rows, uint32_t A, const float *action, float *log_prob);
