/*  results - what optimiser steps came to: queued behind each on the device, and handed over in their order when somebody waits.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/clock.h"
#include "learner/model.h"

/*  Of a step; borrowed for the call. */
typedef struct {
    tt_status_t taken; /* TT_INVALID (with words): it was not, a norm is not finite */
    float rate;        /* of its first group                                        */
    bool ends;         /* tt_minibatch_t.ends                                       */
    tt_result_t result;
} results_step_t;

/*  What it returns, if not TT_OK, ends the handing over. */
typedef tt_status_t (*result_fn)(void *ctx, const results_step_t *step);

typedef struct results results_t; /* opaque */

/*  Model and clock are borrowed. */
results_t *results_new(const model_t *model, const tt_clock_t *clock);
/*  Waits. */
void results_destroy(results_t **self_p);

/*  Behind the step that this minibatch's `sums` were taken for. */
tt_status_t results_queue(results_t *self, const tt_sums_t *sums, const tt_minibatch_t *minibatch);
/*  Steps whose result was not handed over. */
uint32_t results_count(const results_t *self);
/*  It has failed; or as many are queued as are done in a moment, by how long it took before: whoever waits is to get on. Never changes what is computed. */
bool results_due(const results_t *self);
/*  Wait for all, and hand them over. What the device says, or else what on_result returned: what was not handed over then is dropped, and every
 *  later call fails with the same words, until results_drop. */
tt_status_t results_settle(results_t *self, result_fn on_result, void *ctx);
/*  TT_OK, or what results_settle failed with: for who was not told then. */
tt_status_t results_check(const results_t *self);
/*  Nobody wants them any more. */
void results_drop(results_t *self);
