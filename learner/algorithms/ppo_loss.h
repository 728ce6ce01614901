/*  ppo_loss - PPO's loss and its derivatives, for blocks of rows; and, plain, A2C's.
 *
 *  Source:  Schulman et al. 2017, arXiv:1707.06347, equations 7 and 9; value clipping, advantage normalisation and the
 *           KL estimators as in CleanRL's ppo.py and ppo_continuous_action.py. For a row with ratio = pi(a) / pi_old(a)
 *           and normalised advantage A, summed with weight 1 / rows of the whole minibatch:
 *             max(-A ratio, -A clamp(ratio, 1 - c, 1 + c))  -  entropy_coef H  +  value_coef L
 *             L = (v - target)^2 / 2, or with clip_value half the larger of that and of the square at
 *                 v_old + clamp(v - v_old, -c, c)
 *           Plain: -A log pi(a) in place of the first term (Mnih et al. 2016, arXiv:1602.01783, algorithm S3); statistics of
 *           ratios are 0.
 *  Actions: log-probability and entropy are sums over parts and their elements, in order (common/rl/policy.h); a choice
 *           that is masked has probability, entropy and derivative 0.
 *  Numbers: log(ratio) is held within +-20 where it feeds the exponential, so that a policy that has run away gives a
 *           large gradient (which the norm clip tames) and not inf * 0.
 *  Sums:    over the rows of a block as a fixed binary tree.
 *  Threads: pure; called from the device's threads. */
#pragma once
#include <stdbool.h>
#include "common/nn/loss.h"

/*  What the loss needs of a row, side by side: one cache line fetch a row. */
typedef struct {
    float advantage, target; /* not normalised */
    float log_prob, value;   /* pi_old, v_old  */
} ppo_row_t;

/*  A policy (common/rl/policy.h) as plain data: what a head consists of. ppo_objective.h makes it. */
typedef struct {
    uint32_t box, bits, elements;
    uint32_t choices;             /* of the first element: place in ppo_policy_t.choices */
    uint32_t head, log_std, mask; /* as tt_policy_part_t                                 */
} ppo_part_t;

typedef struct {
    uint32_t parts, log_std, mask_bits;
    uint32_t own_std_at; /* of a head: each row's own log_std; 0 = there is none */
    ppo_part_t part[TT_COLUMNS_MAX];
    uint32_t choices[]; /* of every discrete element, part by part */
} ppo_policy_t;

/*  The tables that the loss reads. */
enum {
    PPO_IN_ROW,    /* ppo_row_t, by row of the batch                                           */
    PPO_IN_POLICY, /* a ppo_policy_t for all                                                   */
    PPO_IN_MASK,   /* [mask_bits] by row of the batch; none: all choices are allowed           */
    PPO_IN_ACTION  /* the first part's [elements], by row of the batch; then those of the others */
};

/*  The parameters of the loss. */
typedef struct {
    float mean, scale; /* normalised advantage = (advantage - mean) * scale */
    float weight;      /* 1 / rows of the minibatch                         */
    float clip, entropy_coef, value_coef;
    bool clip_value, plain;
} ppo_loss_t;

/*  Places in the statistics; each is a mean over the minibatch once all shards are summed. */
enum {
    PPO_POLICY_LOSS,
    PPO_VALUE_LOSS,
    PPO_ENTROPY,
    PPO_KL,     /* (ratio - 1) - log ratio, Schulman's k3 */
    PPO_OLD_KL, /* -log ratio, k1                         */
    PPO_CLIPPED,
    PPO_STATS
};

/*  The stages of its objective: the actor's head, then the critic's. */
enum { PPO_ACTOR, PPO_CRITIC };

#ifndef __cplusplus /* there it is a card's */
/*  A tt_loss_fn with a ppo_loss_t and those tables. */
void ppo_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
#endif
