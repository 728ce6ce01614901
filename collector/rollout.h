/*  rollout - plays one batch of a range of envs with one policy version, into one segment block, or several where one would be too
 *  large. The hot path.
 *
 *  Every number goes to its place in the block when it is made. Observations are stored raw; the network sees them
 *  normalised. What an env does and what its segment holds depends on (seed, env id, weights, normaliser, state at the
 *  start) only, not on the range it is in.
 *
 *  Where the envs come in shares (vec.h), each goes its round by itself, at its own pace until the end of the batch: some play while the
 *  policy acts for others, also from one call of rollout_play to the next. It acts at once for shares that lie side by side and are at the
 *  same step.
 *
 *  Shapes:  T steps, E envs of the range (segment.h).
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/blocks.h"
#include "collector/env.h"
#include "common/base/clock.h"
#include "common/nn/inference.h"
#include "common/rl/norm.h"
#include "common/rl/schedule.h"
#include "common/wire/segment.h"

typedef struct {
    const tt_env_ops_t *env;     /* borrowed                                        */
    const tt_env_arg_t *args;    /* borrowed; NULL = none                           */
    const tt_columns_t *columns; /* borrowed; of env's spaces, with estimates where the actor samples */
    tt_inference_t *net;         /* borrowed; the caller puts a version's parameters */
    const tt_norm_t *norm;       /* borrowed; NULL = observations as they are       */
    blocks_t *blocks;            /* borrowed                                        */
    float clip_obs;
    uint64_t seed;
    uint32_t env_lo, env_count, steps; /* the range, and T; all >= 1 but env_lo           */
    uint32_t segment_envs;             /* that one segment holds at most                  */
    uint64_t taken;                    /* steps that each env has taken before            */
    const tt_clock_t *clock;           /* of rollout_env_share; borrowed; NULL = real     */
    tt_actor_t actor;                  /* how to act                                      */
    uint32_t num_envs;                 /* of the job: for the numbers of rows; sampling reads it not */
    struct tt_vec *from;               /* tt_vec_cfg_t: states will be loaded; NULL = none */
} rollout_cfg_t;

typedef struct rollout rollout_t; /* opaque */

/*  A range of envs, reset. TT_INTERNAL: an env failed (the text names it); TT_INVALID: env and net do not fit. */
tt_status_t rollout_new(rollout_t **self_p, const rollout_cfg_t *cfg);
void rollout_destroy(rollout_t **self_p);
/*  The same, but for its envs, which are the caller's then: for the next range (cfg.from). NULL where self is, and where its envs have
 *  failed. */
struct tt_vec *rollout_leave(rollout_t **self_p);

/*  Bytes of one env's saved state, with what the policy carries on (segment.h); 0 = cannot be saved. */
size_t rollout_state_bytes(const rollout_t *self);
/*  Continue from saved states, [E][state_bytes]. TT_DATA: they are no such states; else as rollout_play. Abandons a batch in hand. No other begins
 *  before rollout_loaded has said that *all envs are there; it waits for a second at most, and *moves grows while they get on. */
tt_status_t rollout_load(rollout_t *self, const void *states, size_t bytes);
tt_status_t rollout_loaded(rollout_t *self, bool *all, uint64_t *moves);

/*  Start a batch with the parameters that net and norm hold now; they must not change until rollout_finish. */
tt_status_t rollout_begin(rollout_t *self);
/*  Play on until every env has made max_steps more steps of the batch in hand, or all T: *done. TT_INTERNAL: an env failed;
 *  TT_DIVERGED: the policy gives numbers that are not finite, and no env has seen them. */
tt_status_t rollout_play(rollout_t *self, uint32_t max_steps, bool *done);
/*  What a batch has become: its envs first .. first + shape.E - 1 of the range. The caller owns the frame. */
typedef struct {
    uint32_t first;
    tt_segment_shape_t shape;
    zmq_msg_t frame;
} rollout_segment_t;

/*  How many segments each batch of the range is. */
uint32_t rollout_segments(const rollout_t *self);
/*  Values of the last and final observations, if there are any, env states; the blocks become frames: out[rollout_segments].
 *  TT_DIVERGED: the policy gave numbers that are not finite; there are no frames. */
tt_status_t rollout_finish(rollout_t *self, rollout_segment_t *out);
/*  Is a batch in hand (begun, not finished)? Steps of it that everybody has made. */
bool rollout_in_hand(const rollout_t *self);
uint32_t rollout_played(const rollout_t *self);
/*  What part of the time of a step the envs took lately, 0 .. 1; the rest went to the policy. From a few steps of each
 *  batch. */
double rollout_env_share(const rollout_t *self);
