/*  dqn_stage - a block of rows for the losses of Q-learning (dqn_loss.h), by formula: what units have, what heads gave for
 *  them, and what a loss made of it.
 *  Threads: none. */
#pragma once
#include "learner/algorithms/dqn_objective.h"

enum {
    DQN_UNITS = 64,
    DQN_CHOICES = 17,
    DQN_NUMBERS = 55,
    DQN_HEADS = 3
}; /* choices, and numbers of a head's row: at most */

typedef struct {
    bool twice, squared, masked; /* what is asked for; twice: double DQN */
    float rescale;
    tt_values_t how; /* not dueling */
    uint32_t choices, rows;
    /* What dqn_stage_fill gives, and a test may change. */
    int32_t action[DQN_UNITS];
    float ret[DQN_UNITS], discount[DQN_UNITS], weight[DQN_UNITS];
    uint8_t mask[DQN_UNITS * DQN_CHOICES];         /* [unit][choices] */
    uint32_t position[TT_BLOCK];                   /* of a row's unit */
    float head[DQN_HEADS][DQN_NUMBERS * TT_BLOCK]; /* by stage, in columns */
    /* What the loss gives. */
    float d_head[DQN_NUMBERS * TT_BLOCK], stats[TT_LOSS_STATS], ride[DQN_UNITS];
} dqn_stage_t;

/*  Numbers of a choice: its quantiles, its atoms, or its value. */
uint32_t dqn_stage_each(const dqn_stage_t *self);
/*  For what is asked for. Every fourth unit is an end; each may do something. */
void dqn_stage_fill(dqn_stage_t *self);
/*  The loss of the block; statistics are added to what is there. ride: what rides is asked for too. */
void dqn_stage_run(dqn_stage_t *self, bool ride);

/*  Number i of choice a, as a head gave it for row r. */
double dqn_stage_number(const dqn_stage_t *self, const float *head, uint32_t a, uint32_t i, uint32_t r);
/*  The choice of row r whose value is the greatest of those that are allowed, by the head that chooses; of equals the lowest. */
uint32_t dqn_stage_best(const dqn_stage_t *self, uint32_t r,
    double (*value)(const dqn_stage_t *self, const float *head, uint32_t a, uint32_t r));
/*  The action of row r's unit, and its weight in the mean over units. */
uint32_t dqn_stage_action(const dqn_stage_t *self, uint32_t r);
double dqn_stage_weight(const dqn_stage_t *self, uint32_t r);
