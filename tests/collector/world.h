/*  world - what rollouts of a test are made of: an environment, its columns, a network, a normaliser, blocks. And what they play.
 *
 *  Threads: one. */
#pragma once
#include "collector/rollout.h"
#include "common/rl/policy.h"
#include "tests/test.h"

enum { WORLD_SEED = 5, WORLD_CLIP = 10, WORLD_ENVS = 8 /* of the job */, WORLD_UNITS = 5 };

typedef struct {
    const tt_env_ops_t *env;
    tt_columns_t *columns;
    tt_policy_t policy;
    tt_inference_t *net;
    tt_norm_t *norm; /* NULL = off */
    blocks_t *blocks;
    uint32_t steps;
    tt_actor_t actor;
    uint32_t frames; /* that are stacked; 1: none are */
    tt_pad_t pad;
    tt_tower_kind_t rnn;     /* MLP: nothing recurs */
    const tt_clock_t *clock; /* of rollouts; NULL: the real one */
} world_t;

/*  An environment by its id; "Zoo-v0", and "Bridled": CartPole that must not be pushed to the left when it goes there too fast. */
const tt_env_ops_t *world_env(const char *id);
/*  normalise: by one that has seen something. */
world_t world_stacked(
    const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor, uint32_t frames, tt_pad_t pad);
/*  The same with a layer that remembers, LSTM or GRU, of WORLD_UNITS: one for the policy and one for the values, where they are estimated. */
world_t world_recurrent(const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor, uint32_t frames,
    tt_pad_t pad, tt_tower_kind_t rnn);
/*  Nothing is stacked or normalised. */
world_t world_acting(const tt_env_ops_t *env, uint32_t steps, tt_actor_t actor);
/*  Nothing is stacked; the actor samples. */
world_t world_open(const char *env, uint32_t steps, bool normalise);
void world_close(world_t *self);

/*  Envs lo .. lo + count - 1, in one segment, or in such of `most` envs. They do without the world, but not without its members. */
rollout_t *world_rollout(const world_t *self, uint32_t lo, uint32_t count);
rollout_t *world_rollout_cut(const world_t *self, uint32_t lo, uint32_t count, uint32_t most);

/*  A segment that was played. */
typedef struct {
    tt_segment_shape_t shape;
    zmq_msg_t frame;
    tt_segment_t at;
} played_t;

/*  A batch, `slice` steps at a time: looking at sockets in between must not change anything. out: [rollout_segments]. */
void played_all(rollout_t *rollout, uint32_t slice, rollout_segment_t *out);
/*  Takes the frame. */
played_t played_take(rollout_segment_t *segment);
/*  A batch that is one segment. */
played_t played_one(rollout_t *rollout, uint32_t slice);
void played_close(played_t *self);

/*  Rows of a column: `count` of them from number `a` of one array, and from `b` of the other. */
void assert_rows(const tt_column_t *column, const void *one, size_t a, const void *other, size_t b, size_t count);
/*  The envs `from`.. of one segment are the other's. */
void assert_part(const played_t *whole, uint32_t from, const played_t *part);
/*  A batch that is given up after so many steps leaves no trace when the envs are loaded again. */
void assert_no_trace(const world_t *self, uint32_t envs, uint32_t steps);

/*  WORLD name = ...: closed at the end of the block; declared first, closed last. */
#define WORLD   __attribute__((cleanup(world_close))) world_t
#define ROLLOUT __attribute__((cleanup(rollout_destroy))) rollout_t
#define PLAYED  __attribute__((cleanup(played_close))) played_t
