/*  schedule - how collectors act, as data, and what of it changes while they do.
 *
 *  A row's number is clock * num_envs + env: steps that its env has taken before, and its id in the job. So what a row is
 *  acted with depends on nothing but the settings and its own number: not on who plays it, when, or again after a kill.
 *
 *  Threads: pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/limits.h"

typedef enum {     /* order of actor.kind's choices                                        */
    TT_ACT_SAMPLE, /* drawn from the distribution that the head of an actor gives          */
    TT_ACT_ARGMAX, /* the best by the head "q"; with probability epsilon any that is allowed */
    TT_ACT_SQUASHED, /* as SAMPLE, of numbers that are squashed, but nothing is estimated; before random_rows evenly within bounds */
    TT_ACT_MEAN /* as SQUASHED, but the means are all that the head gives: noise is added once they are squashed */
} tt_act_t;

typedef struct {
    int kind;                        /* tt_act_t                                                       */
    double epsilon, epsilon_end;     /* ARGMAX: probability of a uniform choice, at first and later on */
    uint64_t epsilon_rows;           /* from the one to the other in a straight line; 0 = at once      */
    uint64_t random_rows;            /* epsilon is 1 before that row                                   */
    float sigma;                     /* MEAN: deviation of the noise, of numbers within -1 and 1        */
    float epsilon_power;             /* of env i of N: epsilon ^ (1 + epsilon_power i / (N - 1)); 0 = of all the same */
    bool squash;                     /* SAMPLE: numbers of boxes go through tanh onto the bounds, not cut there */
    bool state_std;                  /* SAMPLE: deviations of numbers come from the network (policy.h) */
    float noisy;                     /* ARGMAX: > 0: towers with a head have noisy layers (common/nn/nn.h) */
    bool dueling;                    /* ARGMAX: "q" is made of a value and advantages (common/nn/nn.h)  */
    uint32_t quantiles;              /* ARGMAX: > 0: "q" is made of so many numbers of each choice (common/nn/nn.h) */
    uint32_t atoms;                  /* ARGMAX: > 0: the same, of so many probabilities                 */
    float v_min, v_max;              /* of the first and the last atom                                  */
    char groups[TT_GROUPS_TEXT_MAX]; /* parts of the weights, in words (common/job/groups.h); "" = one */
} tt_actor_t;

/*  Do two critics read its actions, beside the observation, which are numbers within bounds? */
bool tt_actor_has_twins(const tt_actor_t *actor);
/*  The head that they act by: "actor" or "q". */
const char *tt_actor_head(const tt_actor_t *actor);
/*  epsilon of row number `row` of a job of so many envs, 0 .. 1: in double, by one multiplication and one addition, and our own power, so the
 *  same everywhere. Env 0 explores most, the last one least (Horgan et al. 2018, "Distributed Prioritized Experience Replay", section 4). */
double tt_epsilon(const tt_actor_t *actor, uint64_t row, uint32_t num_envs);
