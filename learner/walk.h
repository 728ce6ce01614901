/*  walk - a network over the sequences of a minibatch before it is trained on them, step by step, as its envs went: what it remembers
 *  where the rows begin that are trained on, and heads of other sets and of what follows a row, which the loss then knows
 *  (tt_objective_stage_t.known).
 *
 *  No gradient goes back through it. Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/progress.h"
#include "learner/model.h"
#include "learner/sequences.h"

typedef struct walk walk_t; /* opaque */

/*  The model is borrowed. */
walk_t *walk_new(const model_t *model);
void walk_destroy(walk_t **self_p);

/*  For the known stages of an objective, whose frame is TT_NEXT. obs: the sequences' observations, as sequences.h has them, on the device. Waits. */
tt_status_t walk_run(walk_t *self, const sequences_t *sequences, const tt_table_t *obs, const tt_objective_t *objective,
    tt_progress_t progress);
/*  Of the last run, borrowed until the next: what set 0 carries into the first row that is trained on, [units][carries]; the heads of a
 *  known stage, [length][units][A]. Those of the run's units; what stands for others is not theirs. */
const float *walk_carry(const walk_t *self);
const float *walk_head(const walk_t *self, uint32_t stage);
