/*  vec - a contiguous range of envs moved together: time limits, automatic reset, counters, save and load.
 *
 *  Same-step autoreset: when env e ends at step t, obs_out holds the first observation of its next episode, and the
 *  observation it ended in is in `finals` when it was truncated. Randomness is keyed by the global env id, and all
 *  counters belong to the saved state, so a range can be continued or played again anywhere with the same bits.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/env.h"
#include "common/base/status.h"

typedef struct tt_vec tt_vec_t; /* opaque */

/*  Envs lo .. lo+count-1 of `ops`, all reset, the first observations in tt_vec_obs(). Caller owns *self_p. `clock`: steps
 *  that each has taken before, 0 at the start of a run: none of the draws of these steps, or of the resets that were
 *  among them, is drawn again. TT_INTERNAL: the env's init failed (the text names it). */
tt_status_t tt_vec_new(
    tt_vec_t **self_p, const tt_env_ops_t *ops, uint64_t seed, uint32_t lo, uint32_t count, uint64_t clock);
void tt_vec_destroy(tt_vec_t **self_p);

/*  Current observations [count][obs.n], borrowed until the next step, load or destroy. */
const float *tt_vec_obs(const tt_vec_t *self);

/*  Number of steps env i (0-based in the range) has taken since the run began: the counter of its action draws. */
uint64_t tt_vec_clock(const tt_vec_t *self, uint32_t i);

/*  Steps that env i has taken in its episode. */
uint32_t tt_vec_age(const tt_vec_t *self, uint32_t i);

/*  One step each. action [count] int32 or [count][n] float (clipped here to the box's bounds, the caller's array is
 *  not changed). Writes reward[count] and the flags [count] (0 or 1; both may be set); obs are in tt_vec_obs() after.
 *  TT_INVALID: a choice out of range or an action that is not a number (nothing has moved then).
 *  TT_INTERNAL: an observation or reward is not finite (the text names env, id, step and episode); only destroy the
 *  vec then. */
tt_status_t tt_vec_step(tt_vec_t *self, const void *action, float *reward, uint8_t *terminated, uint8_t *truncated);

/*  After a step: the final observation [obs.n] of env i if it was truncated in that step. Borrowed until the next. */
const float *tt_vec_final_obs(const tt_vec_t *self, uint32_t i);

/*  Bytes that continue env i elsewhere: tt_vec_save_size() each (0 when the env cannot be saved). */
size_t tt_vec_save_size(const tt_env_ops_t *ops);
void tt_vec_save(const tt_vec_t *self, uint32_t i, void *bytes);
/*  TT_DATA: the bytes are not such a state. */
tt_status_t tt_vec_load(tt_vec_t *self, uint32_t i, const void *bytes);
