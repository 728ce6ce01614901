/*  steps - a network that remembers, over all steps of a table: as many at a time as are done in a moment. */
#pragma once
#include "common/base/progress.h"
#include "learner/model.h"

/*  tt_net_walk of all of it; waits, and tells of each piece. */
tt_status_t steps_run(const model_t *model, uint32_t set, const tt_table_t *obs, const tt_walk_t *steps,
    float *const *out, tt_progress_t progress);
