/*  compute - a learner's minibatches on its device: the batch's rows, what the loss reads, gradients, sums, steps.
 *
 *  It brings there what a tt_minibatch_t names on the host, each thing once: rows and inputs of a batch with its first
 *  step, those of a replay with every step. A batch, and what it or a minibatch names, is borrowed until the next one.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "learner/algorithm.h"
#include "learner/model.h"
#include "learner/results.h"
#include "learner/sequences.h"

typedef struct compute compute_t; /* opaque */

/*  Observations of a minibatch of units, by position: rows on the host, or rows of frames that the device has. Those of the run's shards
 *  are read; of the others only that they can be. Of sequences all are of TT_AT, in the order of sequences.h. */
typedef struct {
    const void *rows[TT_FRAMES];   /* side by side                         */
    tt_stored_t stored[TT_FRAMES]; /* where store is not NULL: instead     */
    const sequences_t *sequences;  /* NULL: units are rows                 */
} compute_units_t;

/*  The model is borrowed. */
tt_status_t compute_new(compute_t **self_p, const model_t *model);
void compute_destroy(compute_t **self_p);

/*  Hears from here on that evaluations, walks through sequences and gradients get on; nobody does at first. */
void compute_progress(compute_t *self, tt_progress_t progress);

/*  A batch comes: its rows go to the device, and the inputs of its first minibatch will be those of all. */
tt_status_t compute_batch(compute_t *self, const tt_batch_t *batch);
/*  The network over the rows of that batch, a piece at a time; a recurrent one some steps at a time, and of all towers that recur with
 *  TT_ROWS_OBS. */
tt_evaluator_t compute_evaluator(compute_t *self);

/*  The noise of noisy layers, of all sets, for an optimiser step of the run (position_t.made). */
tt_status_t compute_noise(compute_t *self, uint64_t step);
/*  The gradients of shards lo .. hi-1 of a minibatch; NULL: of nothing, a sum of zeros.
 *  units: of a REPLAY; BATCH: NULL. A network that remembers goes through their sequences first. */
tt_status_t compute_gradients(
    compute_t *self, const tt_minibatch_t *minibatch, const compute_units_t *units, uint32_t lo, uint32_t hi);
/*  Of that, the sum of a node of the run, for the all-reduce (as tt_sums_node; allreduce_node_fn). */
tt_status_t compute_node(void *self, uint32_t node, const float **out);

/*  A step of the optimiser of each group that is trained with the sum, then the sets that follow. sum: of all learners, on the host;
 *  NULL: what was computed is all there is. TT_INVALID: there is no such group. What the minibatch, its units and the sum name is free
 *  again; what came of it is queued behind the step (compute_results). */
tt_status_t compute_step(compute_t *self, const tt_minibatch_t *minibatch, const float *sum);
/*  Of steps, until they are settled. */
results_t *compute_results(compute_t *self);
