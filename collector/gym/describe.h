/*  describe - what a worker says of its environment, as a table.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include "collector/env_batch.h"
#include "common/base/status.h"

/*  Fill in obs, action, mask and reward_threshold from {"obs":..., "action":..., "mask":..., "threshold":...}. Free with gym_describe_free, also when
 *  it failed. TT_INVALID: spaces that nobody supports, or no description at all. */
tt_status_t gym_describe(tt_env_ops_t *out, const json_t *about);
void gym_describe_free(tt_env_ops_t *self);
/*  Do two descriptions say the same spaces? */
bool gym_same_spaces(const json_t *a, const json_t *b);
