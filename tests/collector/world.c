#include "tests/collector/world.h"
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "tests/collector/zoo.h"

/* ---- environments ------------------------------------------------------------------------------------------------ */

static const tt_env_ops_t *s_free_pole;
static tt_env_ops_t s_bridled;

static void s_forbid(tt_env_out_t *out)
{
    out->mask[0] = ((const float *)out->obs[0])[1] > -0.1f;
}

static void s_bridled_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    s_free_pole->reset(state, rng, out);
    s_forbid(out);
}

static void s_bridled_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    s_free_pole->step(state, action, rng, out);
    s_forbid(out);
}

const tt_env_ops_t *world_env(const char *id)
{
    const tt_env_ops_t *ops = &zoo_env;
    if (strcmp(id, "Bridled") == 0) {
        assert_ok(tt_env_find(&s_free_pole, "CartPole-v1"));
        s_bridled = *s_free_pole;
        s_bridled.id = "Bridled";
        s_bridled.mask = true;
        s_bridled.reset = s_bridled_reset;
        s_bridled.step = s_bridled_step;
        s_bridled.step_many = NULL;
        return &s_bridled;
    }
    if (strcmp(id, zoo_env.id) != 0)
        assert_ok(tt_env_find(&ops, id));
    return ops;
}

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

/*  A normaliser that has seen something. */
static tt_norm_t *s_norm(uint32_t dims)
{
    tt_norm_t *norm = tt_norm_new(dims);
    float *rows = tt_array0(64 * (size_t)dims, sizeof *rows);
    const float *row[64];
    for (uint32_t i = 0; i < 64 * dims; i++)
        rows[i] = (float)((i * 37) % 101) * 0.01f;
    for (uint32_t i = 0; i < 64; i++)
        row[i] = rows + i * dims;
    tt_norm_merge(norm, row, 64);
    free(rows);
    return norm;
}

world_t world_recurrent(const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor, uint32_t frames,
    tt_pad_t pad, tt_tower_kind_t rnn)
{
    world_t w = {
        .env = env, .steps = steps, .blocks = blocks_new(), .actor = actor, .frames = frames, .pad = pad, .rnn = rnn};
    const bool estimates = actor.kind == TT_ACT_SAMPLE;
    assert_ok(tt_columns_new_stacked(&w.columns, &env->obs, &env->action, env->mask, estimates, frames, pad));
    w.columns->state_std = actor.kind == TT_ACT_SQUASHED;
    w.columns->no_std = actor.kind == TT_ACT_MEAN;
    tt_policy_of(&w.policy, w.columns);
    const uint32_t hidden[] = {32, 32};
    tt_net_spec_t spec =
        estimates ? tt_net_actor_critic(w.columns->flat, hidden, 2, TT_NN_TANH, w.policy.out, w.policy.log_std)
                  : tt_net_one(tt_actor_head(&actor), w.columns->flat, hidden, 2, TT_NN_TANH, w.policy.out);
    tt_train_parts(&spec, w.columns, false);
    spec.stack = w.columns->stack;
    if (rnn != TT_TOWER_MLP) {
        tt_net_put_recurrent(&spec, rnn, WORLD_UNITS, true);
        tt_columns_put_carry(w.columns, tt_net_carry(&spec));
    }
    assert_ok(tt_inference_new(&w.net, "cpu", 0, &spec));
    assert_ok(tt_net_init(tt_inference_net(w.net), tt_inference_stream(w.net), WORLD_SEED,
        (const float[]){0.5f, rnn == TT_TOWER_MLP ? 1.0f : 0.5f, 1.0f, 1.0f}, -0.3f, TT_NO_PROGRESS));
    w.norm = normalise ? s_norm(w.columns->scaled) : NULL;
    return w;
}

world_t world_stacked(
    const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor, uint32_t frames, tt_pad_t pad)
{
    return world_recurrent(env, steps, normalise, actor, frames, pad, TT_TOWER_MLP);
}

world_t world_acting(const tt_env_ops_t *env, uint32_t steps, tt_actor_t actor)
{
    return world_stacked(env, steps, false, actor, 1, TT_PAD_RESET);
}

world_t world_open(const char *env, uint32_t steps, bool normalise)
{
    return world_stacked(world_env(env), steps, normalise, (tt_actor_t){0}, 1, TT_PAD_RESET);
}

void world_close(world_t *self)
{
    tt_norm_destroy(&self->norm);
    tt_inference_destroy(&self->net);
    tt_columns_destroy(&self->columns);
    blocks_destroy(&self->blocks);
}

rollout_t *world_rollout_cut(const world_t *self, uint32_t lo, uint32_t count, uint32_t most)
{
    const rollout_cfg_t cfg = {.env = self->env,
        .columns = self->columns,
        .net = self->net,
        .norm = self->norm,
        .blocks = self->blocks,
        .clip_obs = WORLD_CLIP,
        .seed = WORLD_SEED,
        .env_lo = lo,
        .env_count = count,
        .segment_envs = most,
        .steps = self->steps,
        .actor = self->actor,
        .num_envs = WORLD_ENVS,
        .clock = self->clock};
    rollout_t *rollout;
    assert_ok(rollout_new(&rollout, &cfg));
    return rollout;
}

rollout_t *world_rollout(const world_t *self, uint32_t lo, uint32_t count)
{
    return world_rollout_cut(self, lo, count, count);
}

/* ---- what is played ---------------------------------------------------------------------------------------------- */

void played_all(rollout_t *rollout, uint32_t slice, rollout_segment_t *out)
{
    bool done = false;
    assert_ok(rollout_begin(rollout));
    while (!done)
        assert_ok(rollout_play(rollout, slice, &done));
    assert_ok(rollout_finish(rollout, out));
    assert_false(rollout_in_hand(rollout));
}

played_t played_take(rollout_segment_t *segment)
{
    played_t self = {.shape = segment->shape, .frame = segment->frame};
    assert_ok(tt_segment_check(&self.shape, zmq_msg_data(&self.frame), zmq_msg_size(&self.frame)));
    tt_segment_map(&self.shape, zmq_msg_data(&self.frame), &self.at);
    return self;
}

played_t played_one(rollout_t *rollout, uint32_t slice)
{
    rollout_segment_t segment;
    assert_int_equal(rollout_segments(rollout), 1);
    played_all(rollout, slice, &segment);
    return played_take(&segment);
}

void played_close(played_t *self)
{
    tt_frame_close(&self->frame);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

#define assert_bits(a, b, count) assert_memory_equal((a), (b), (count) * sizeof *(a))

void assert_rows(const tt_column_t *column, const void *one, size_t a, const void *other, size_t b, size_t count)
{
    const char *x = (const char *)one + a * column->bytes, *y = (const char *)other + b * column->bytes;
    if (memcmp(x, y, count * column->bytes) != 0)
        fail_msg("%s differs", column->name);
}

static void s_assert_columns(const played_t *whole, uint32_t from, const played_t *part)
{
    const uint32_t T = whole->shape.T, W = whole->shape.E, E = part->shape.E;
    const tt_columns_t *columns = whole->shape.columns;
    for (uint32_t c = 0; c < columns->count; c++) {
        const tt_column_t *column = &columns->at[c];
        for (size_t t = 0; t < T; t++)
            assert_rows(column, whole->at.column[c], t * W + from, part->at.column[c], t * E, E);
        if (column->keep)
            assert_rows(column, whole->at.last[c], from, part->at.last[c], 0, E);
    }
    for (uint32_t c = 0; c < columns->obs_count; c++)
        for (size_t b = 0; b < columns->before; b++)
            assert_rows(&columns->at[c], whole->at.before[c], b * W + from, part->at.before[c], b * E, E);
}

static void s_assert_finals(const played_t *whole, uint32_t from, const played_t *part)
{
    const tt_columns_t *columns = whole->shape.columns;
    uint32_t k = 0;
    for (uint32_t i = 0; i < whole->shape.K; i++) {
        if (whole->at.final_env[i] < from || whole->at.final_env[i] >= from + part->shape.E)
            continue;
        assert_true(k < part->shape.K);
        assert_int_equal(part->at.final_t[k], whole->at.final_t[i]);
        assert_int_equal(part->at.final_env[k], whole->at.final_env[i] - from);
        for (uint32_t c = 0; c < columns->count; c++)
            if (columns->at[c].keep)
                assert_rows(&columns->at[c], whole->at.final[c], i, part->at.final[c], k, 1);
        k++;
    }
    assert_int_equal(k, part->shape.K);
}

void assert_part(const played_t *whole, uint32_t from, const played_t *part)
{
    const uint32_t E = part->shape.E, S = whole->shape.S;
    s_assert_columns(whole, from, part);
    assert_bits(whole->at.age + from, part->at.age, E);
    const size_t C = whole->shape.columns->carry;
    if (C)
        assert_bits(whole->at.carry + from * C, part->at.carry, E * C);
    assert_bits(whole->at.states + (size_t)from * S, part->at.states, (size_t)E * S);
    s_assert_finals(whole, from, part);
}

void assert_no_trace(const world_t *self, uint32_t envs, uint32_t steps)
{
    bool done;
    ROLLOUT *a = world_rollout(self, 0, envs), *b = world_rollout(self, 0, envs);
    PLAYED first = played_one(a, UINT32_MAX), second = played_one(a, UINT32_MAX);
    assert_ok(rollout_begin(b));
    assert_ok(rollout_play(b, steps, &done));
    assert_false(done);
    assert_int_equal(rollout_played(b), steps);
    assert_ok(rollout_load(b, first.at.states, envs * rollout_state_bytes(b)));
    assert_false(rollout_in_hand(b));
    PLAYED again = played_one(b, UINT32_MAX);
    assert_part(&second, 0, &again);
}
