/*  sac_loss - soft actor-critic on blocks of units: the action that is drawn, the critics' loss, the actor's and that of the entropy's weight.
 *
 *  Source:  Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", arXiv:1812.05905, equations 5, 7, 9 and 18 and appendix
 *           C; two critics of which the lesser counts, as in its section 5. For a unit with action a, return R over n rows and discount g of
 *           what follows:
 *             draw     u = mean + deviation z,  y = tanh u,  log pi = sum of log N(u) - log(1 - y^2)
 *             critics  target = R + g (min q'(next, y) - alpha log pi);   w / 2 sum over both of (q(at, a) - target)^2
 *             actor    w (alpha log pi - min q(at, y)), alpha held;       weight: -w log alpha (log pi + target entropy), log pi held
 *           with w = the unit's weight / units and no derivative through the target. Of equal critics the first counts.
 *  Actions: numbers within -1 and 1, before they are brought to the bounds of the space: those of a row are tanh of what is stored.
 *  Sums:    over the units of a block as a fixed binary tree.
 *  Threads: pure; called from the device's threads. */
#pragma once
#include <stdbool.h>
#include "learner/algorithms/twin_loss.h"

/*  The parameters of the losses and the draw. */
typedef struct {
    twin_loss_t of; /* numbers: a head has as many means, then as many log deviations */
    float target_entropy;
    bool tuned; /* the entropy's weight is trained */
} sac_loss_t;

/*  Places in the statistics of the actor's loss; each is a mean over the minibatch once all shards are summed. */
enum { SAC_ACTOR_LOSS, SAC_ALPHA_LOSS, SAC_ALPHA, SAC_ENTROPY /* -log pi */, SAC_ACTOR_STATS };

/*  The stages of its objective; the first is drawn from. */
enum { SAC_ACTOR, SAC_Q1, SAC_Q2, SAC_ACTOR_STAGES };

#ifndef __cplusplus /* there they are a card's */
/*  Both are a tt_loss_fn with a sac_loss_t and those tables. */
void sac_critic_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
void sac_actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block);
/*  A tt_draw_fn of both, and the way back through it, of the actor's. */
void sac_draw(const void *params, const void *const *input, const tt_loss_block_t *block, float *action);
void sac_draw_back(const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action);
#endif
