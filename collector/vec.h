/*  vec - a contiguous range of envs moved together: time limits, automatic reset, counters, save and load.
 *
 *  Same-step autoreset: when env e ends at step t, tt_vec_obs holds the first observation of its next episode, and what it
 *  ended in is in tt_vec_final when it was truncated. Randomness is keyed by the global env id, and all counters belong to
 *  the saved state, so a range can be continued or played again anywhere with the same bits.
 *
 *  Arrays are columns as they are stored (common/rl/columns.h), a row an env, whatever an env reads and writes: numbers are
 *  converted, choices moved to their `start`, boxes clipped here.
 *
 *  What moves together is all of them or, where a batch has such (env_batch.h), a share: actions of one are made while others play.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/env_batch.h"
#include "common/base/status.h"
#include "common/rl/columns.h"

typedef struct {
    const tt_env_ops_t *ops;     /* borrowed, as are the next two                                       */
    const tt_env_arg_t *args;    /* of the config; NULL = none                                          */
    const tt_columns_t *columns; /* of the ops' spaces                                                  */
    uint64_t seed;
    bool squash;        /* tt_actor_t: boxes of actions are squashed and not clipped                  */
    uint32_t lo, count; /* envs lo .. lo + count - 1                                           */
    uint64_t clock;     /* steps that each has taken before, 0 at the start of a run: none of the draws of these
                                    steps, or of the resets that were among them, is drawn again        */
    /* A range of the same ops and args which is over, and may be drawn upon: only destroy it then. The caller loads a state into every
     * env first: a batch begins no episodes. NULL = none. */
    struct tt_vec *from;
} tt_vec_cfg_t;

typedef struct tt_vec tt_vec_t; /* opaque */

/*  Has the action a box to squash, and each of its boxes bounds to squash it onto? TT_CONFIG: it has not, in words. */
tt_status_t tt_vec_check_squash(const tt_env_ops_t *ops);

/*  All reset, the first observations in tt_vec_obs. Caller owns *self_p. TT_INTERNAL: the env's init failed, or what it
 *  began with is not in its spaces (the text names it). TT_CONFIG: an argument that it does not take, or nothing to squash. */
tt_status_t tt_vec_new(tt_vec_t **self_p, const tt_vec_cfg_t *cfg);
void tt_vec_destroy(tt_vec_t **self_p);

/*  How many shares there are, and the envs of each, in order. 1: share 0 is all of them. */
uint32_t tt_vec_shares(const tt_vec_t *self);
void tt_vec_share(const tt_vec_t *self, uint32_t share, uint32_t *first, uint32_t *count);

/*  Steps that a share has been sent since the vec was made. */
uint64_t tt_vec_moves(const tt_vec_t *self, uint32_t share);

/*  Current observations: [columns->obs_count] arrays [count][elements]; the current mask [count][mask_bits], NULL when the
 *  env has none. Borrowed until the next step, load or destroy; rows of a share that is under way are not to be read. */
void *const *tt_vec_obs(const tt_vec_t *self);
const uint8_t *tt_vec_mask(const tt_vec_t *self);

/*  Number of steps env i (0-based in the range) has taken since the run began: the counter of its action draws. */
uint64_t tt_vec_clock(const tt_vec_t *self, uint32_t i);

/*  Steps that env i has taken in its episode. */
uint32_t tt_vec_age(const tt_vec_t *self, uint32_t i);

/*  Where observations are stacked: column[c] -> the row of env i, and of those after it whose shares have made as many moves, of each observation
 *  column as it was k steps ago, k = 1 .. stack.frames - 1. It is of the env's episode where k is at most its age. Borrowed until the next step, load or
 *  destroy. */
void tt_vec_before(const tt_vec_t *self, uint32_t i, uint32_t k, void *column[TT_COLUMNS_MAX]);

/*  One step each. action[k]: array [count][elements] of action column k (boxes are clipped to their bounds here, or squashed, the
 *  caller's array is not changed). Writes reward[count] and the flags [count] (0 or 1; both may be set).
 *  TT_INVALID: a choice out of range or not allowed by the mask, or an action that is not a number (nothing has moved then).
 *  TT_INTERNAL: an observation is not in its space, an observation or reward is not finite, or a mask leaves no choice (the
 *  text names env, id, step and episode), or a batch says that its env failed. TT_UNAVAILABLE: it was lost by a mishap. Only destroy
 *  the vec then. */
tt_status_t tt_vec_step(
    tt_vec_t *self, const void *const *action, float *reward, uint8_t *terminated, uint8_t *truncated);

/*  The same in two parts, for the envs of one share, which is not under way. The arrays are those of all envs [count], of which these rows
 *  are read (by send) and written (until recv has named it). Between the two others may be sent, and received. Save, load and tt_vec_step
 *  want nothing to be under way; destroy does not. */
tt_status_t tt_vec_send(
    tt_vec_t *self, uint32_t share, const void *const *action, float *reward, uint8_t *terminated, uint8_t *truncated);
/*  One that is over: *share; of several, in turn. One must be under way. waits = false: TT_AGAIN where it would have to wait. */
tt_status_t tt_vec_recv(tt_vec_t *self, bool waits, uint32_t *share);

/*  After a step: what env i was cut at if it was truncated in that step: the row of that column (an observation's leaf, or the
 *  mask). Where it was terminated: what it ended in, not checked. Borrowed until the next. */
const void *tt_vec_final(const tt_vec_t *self, uint32_t i, uint32_t column);

/*  Bytes that continue env i elsewhere, the frames that its stack shows among them: tt_vec_save_size() each (0 when the env cannot be saved). TT_INTERNAL, TT_UNAVAILABLE: as
 *  tt_vec_step. */
size_t tt_vec_save_size(const tt_env_ops_t *ops, uint32_t frames);
tt_status_t tt_vec_save(const tt_vec_t *self, uint32_t i, void *bytes);
/*  Begin with each of them that is to go on from a state, then ask again and again until *all are loaded; before that the vec may only be
 *  destroyed. loaded waits for a second at most, and *moves grows while they get on. TT_DATA: the bytes are not such a state; else as tt_vec_step. */
tt_status_t tt_vec_begin_load(tt_vec_t *self, uint32_t i, const void *bytes);
tt_status_t tt_vec_loaded(tt_vec_t *self, bool *all, uint64_t *moves);
