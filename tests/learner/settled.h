/*  settled - optimiser steps that are waited for one by one. */
#pragma once
#include "learner/compute.h"

static inline tt_status_t settled_take(void *ctx, const results_step_t *step)
{
    *(tt_result_t *)ctx = step->result;
    return step->taken;
}

/*  compute_step, and what came of it: borrowed until the next. */
static inline tt_status_t settled_step(
    compute_t *compute, const tt_minibatch_t *minibatch, const float *sum, tt_result_t *out)
{
    TT_TRY(compute_step(compute, minibatch, sum));
    return results_settle(compute_results(compute), settled_take, out);
}
