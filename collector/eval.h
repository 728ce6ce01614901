/*  eval - how good a policy is when it always takes its most probable action (the mean, for continuous actions).
 *
 *  Episode k is the first one of env k under a seed of its own (stream TT_STREAM_EVAL), so its start is not one that
 *  training with the same seed has seen. Same policy, same seed: same returns, to the bit.
 *  Threads: one. */
#pragma once
#include "collector/env.h"
#include "common/nn/inference.h"
#include "common/rl/columns.h"
#include "common/rl/norm.h"

enum { EVAL_STEPS_MAX = 1000000 }; /* where an episode is cut unless somebody says otherwise */

typedef struct {
    const tt_env_ops_t *env; /* borrowed, as are the next four      */
    const tt_env_arg_t *args;
    const tt_columns_t *columns;
    tt_inference_t *net;
    const tt_norm_t *norm; /* NULL = observations as they are     */
    float clip_obs;
    bool squash; /* tt_actor_t                          */
    uint64_t seed;
    uint32_t episodes;  /* >= 1                                */
    uint32_t max_steps; /* an episode is cut there; 0 = never  */
    bool (*watch)(
        void *ctx, uint32_t ended); /* after every step: episodes that have ended; false = stop. NULL = nobody does */
    void *watch_ctx;
    /*  Of each episode, which are then played one after the other: what it begins with, and what each step comes to. obs[k]: a row of
     *  column k as it is stored. last: the episode is over. An error ends
     *  it all. NULL = nobody looks. */
    tt_status_t (*look)(void *ctx, const void *const *obs, bool last);
    void *look_ctx;
} eval_cfg_t;

typedef struct {
    double ret;
    uint32_t length;
    bool cut; /* by max_steps, not by the env or its time limit */
} eval_episode_t;

typedef struct {
    double mean, std, min, max, length; /* of the returns; of the lengths: their mean. std: population */
    uint32_t cut;
} eval_summary_t;

/*  Play; out[episodes] in order. TT_INVALID: env and net do not fit; TT_INTERNAL: the env failed; TT_DIVERGED: the policy
 *  gives numbers that are not finite; TT_STOPPED: `watch` said so. */
tt_status_t eval_play(const eval_cfg_t *cfg, eval_episode_t *out);
eval_summary_t eval_summary(const eval_episode_t *episode, uint32_t count);
