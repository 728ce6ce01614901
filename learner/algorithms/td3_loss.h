/*  td3_loss - twin delayed deep deterministic policy gradient on blocks of units: the action that is drawn, the critics' loss, and the actor's.
 *
 *  Source:  Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic Methods", arXiv:1802.09477, algorithm 1 and equations
 *           9, 10 and 14. For a unit with action a, return R over n rows and discount g of what follows:
 *             next     y' = tanh mean'(next) + z noise, z noise within -clip and clip and y' within -1 and 1
 *             critics  target = R + g min q'(next, y');   w / 2 sum over both of (q(at, a) - target)^2
 *             actor    y = tanh mean(at);   -w q1(at, y)
 *           with w = the unit's weight / units and no derivative through the target. Primes are of set 1.
 *  Actions: numbers within -1 and 1, before they are brought to the bounds of the space: those of a row are tanh of what is stored.
 *  Sums:    over the units of a block as a fixed binary tree.
 *  Threads: pure; called from the device's threads. */
#pragma once
#include "learner/algorithms/twin_loss.h"

/*  The parameters of the losses and the draws. */
typedef struct {
    twin_loss_t of; /* numbers: a head has as many means        */
    float noise;    /* deviation of what is added to a next action */
    float clip;     /* the most of it                           */
} td3_loss_t;

/*  Places in the statistics of the actor's loss; each is a mean over the minibatch once all shards are summed. */
enum { TD3_ACTOR_LOSS, TD3_ACTOR_STATS };

/*  The stages of its objective; the first is drawn from. */
enum { TD3_ACTOR, TD3_Q, TD3_ACTOR_STAGES };

#ifndef __cplusplus /* there they are a card's */
/*  Both are a tt_loss_fn with a td3_loss_t and the tables of twin_loss.h; the actor's reads no noise. */
void td3_critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
void td3_actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
/*  The tt_draw_fn of each, and the way back through the actor's. */
void td3_draw_next(const void *params, const void *const *input, const tt_loss_block_t *block, float *action);
void td3_draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action);
void td3_draw_back(const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action);
#endif
