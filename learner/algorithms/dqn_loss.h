/*  dqn_loss - the temporal difference error of Q-learning and its derivatives, for blocks of units.
 *
 *  Source:  Mnih et al. 2015, "Human-level control through deep reinforcement learning"; double: van Hasselt et al. 2016,
 *           arXiv:1509.06461. For a unit with action a, return R over n rows, discount g of what follows, and weight w:
 *             target = R + g max_b q_target(next, b),   double: R + g q_target(next, argmax_b q(next, b))
 *             d = q(at, a) - target                     w / units * (huber: d^2 / 2 or |d| - 1/2;  mse: d^2)
 *           with no derivative through the target; PyTorch's smooth_l1_loss and mse_loss. Rescaled (Pohlen et al. 2018,
 *           arXiv:1805.11593, proposition A.2): target = h(R + g h^-1(q_target(next, b))), h(x) = sign(x) (sqrt(|x| + 1) - 1) + e x.
 *  Choices: of equals the lowest; one that is masked at `next` is never the best.
 *  Stages:  0 q(at), trained; 1 q_target(next); double: 2 q(next).
 *  Sums:    over the units of a block as a fixed binary tree.
 *  Threads: pure; called from the device's threads, each writes the riding floats of its own units. */
#pragma once
#include <stdbool.h>
#include "common/nn/loss.h"

/*  The tables that the loss reads, by position in the minibatch. */
enum {
    DQN_IN_ACTION,   /* int32_t                                                 */
    DQN_IN_RETURN,   /* float, of these three                                   */
    DQN_IN_DISCOUNT, /* of what follows                                         */
    DQN_IN_WEIGHT,
    DQN_IN_MASK, /* [choices] bytes at `next`, 1 = allowed; none: all are   */
    DQN_INPUTS
};

/*  The parameters of the loss. */
typedef struct {
    uint32_t choices;   /* floats of a head, or so many times `quantiles` or `atoms` */
    uint32_t quantiles; /* of a choice; 0: it has one value, or atoms                */
    uint32_t atoms;     /* >= 2; the same                                            */
    float low, high;    /* the first and the last atom                               */
    float scale;        /* 1 / units                                                 */
    float rescale;      /* e of h, or of every quantile's or atom's; 0: h(x) = x     */
    bool squared;       /* mse                                            */
} dqn_loss_t;

/*  Places in the statistics; each is a mean over the minibatch once all shards are summed. */
enum {
    DQN_LOSS,
    DQN_ERROR, /* |d|; of quantiles and atoms, of their means */
    DQN_Q,     /* q(at, a) */
    DQN_TARGET,
    DQN_STATS
};

/*  The stages of its objective; the third is double's. */
enum { DQN_Q_AT, DQN_TARGET_NEXT, DQN_Q_NEXT };

#ifndef __cplusplus /* there they are a card's */
/*  Both are a tt_loss_fn with a dqn_loss_t and those tables. ride[position] = |d|, where there is one. */
void dqn_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
void dqn_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
/*  The same of quantiles (dqn_quantile_loss.c). */
void dqn_quantile_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
void dqn_quantile_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
/*  The same of atoms (dqn_atoms_loss.c). */
void dqn_atoms_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
void dqn_atoms_double_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
#endif
