/*  A rollout against a plain reference (one env at a time, one row at a time), cut into ranges, moved by saved states. */
#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "collector/registry.h"
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "common/rl/policy.h"
#include "tests/collector/herd.h"
#include "tests/collector/range.h"
#include "tests/collector/zoo.h"

enum { SEED = 5, CLIP = 10, NUM_ENVS = 8 };

typedef struct {
    const tt_env_ops_t *env;
    tt_columns_t *columns;
    tt_policy_t policy;
    tt_inference_t *net;
    tt_norm_t *norm; /* NULL = off */
    blocks_t *blocks;
    uint32_t steps;
    tt_actor_t actor;
    uint32_t frames; /* 0: nothing is stacked */
    tt_pad_t pad;
} world_t;

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

static void s_open_stacked(world_t *w, const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor,
    uint32_t frames, tt_pad_t pad)
{
    *w = (world_t){.env = env, .steps = steps, .blocks = blocks_new(), .actor = actor, .frames = frames, .pad = pad};
    const bool estimates = actor.kind == TT_ACT_SAMPLE;
    assert_ok(tt_columns_new_stacked(&w->columns, &w->env->obs, &w->env->action, w->env->mask, estimates, frames, pad));
    tt_policy_of(&w->policy, w->columns);
    const uint32_t hidden[] = {32, 32};
    tt_net_spec_t spec =
        estimates ? tt_net_actor_critic(w->columns->flat, hidden, 2, TT_NN_TANH, w->policy.out, w->policy.log_std)
                  : tt_net_one("q", w->columns->flat, hidden, 2, TT_NN_TANH, w->policy.out);
    tt_train_parts(&spec, w->columns, false);
    spec.stack = w->columns->stack;
    assert_ok(tt_inference_new(&w->net, &spec));
    assert_ok(tt_net_init(tt_inference_net(w->net), tt_inference_stream(w->net), SEED, (const float[]){0.5f, 1.0f},
        -0.3f, TT_NO_PROGRESS));
    w->norm = normalise ? s_norm(w->columns->scaled) : NULL;
}

static void s_open_env(world_t *w, const tt_env_ops_t *env, uint32_t steps, bool normalise, tt_actor_t actor)
{
    s_open_stacked(w, env, steps, normalise, actor, 1, TT_PAD_RESET);
}

/*  CartPole that must not be pushed to the left when it goes there too fast. */
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

static const tt_env_ops_t *s_env(const char *id)
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

static void s_open(world_t *w, const char *env, uint32_t steps, bool normalise)
{
    s_open_env(w, s_env(env), steps, normalise, (tt_actor_t){0});
}

static void s_close(world_t *w)
{
    tt_norm_destroy(&w->norm);
    tt_inference_destroy(&w->net);
    tt_columns_destroy(&w->columns);
    blocks_destroy(&w->blocks);
}

static rollout_t *s_rollout_cut(const world_t *w, uint32_t lo, uint32_t count, uint32_t most)
{
    const rollout_cfg_t cfg = {.env = w->env,
        .columns = w->columns,
        .net = w->net,
        .norm = w->norm,
        .blocks = w->blocks,
        .clip_obs = CLIP,
        .seed = SEED,
        .env_lo = lo,
        .env_count = count,
        .segment_envs = most,
        .steps = w->steps,
        .actor = w->actor,
        .num_envs = NUM_ENVS};
    rollout_t *rollout;
    assert_ok(rollout_new(&rollout, &cfg));
    return rollout;
}

static rollout_t *s_rollout(const world_t *w, uint32_t lo, uint32_t count)
{
    return s_rollout_cut(w, lo, count, count);
}

typedef struct {
    tt_segment_shape_t shape;
    zmq_msg_t frame;
    tt_segment_t at;
} segment_t;

/*  `slice` steps at a time: looking at sockets in between must not change anything. */
static void s_play_all(rollout_t *rollout, uint32_t slice, rollout_segment_t *out)
{
    bool done = false;
    assert_ok(rollout_begin(rollout));
    while (!done)
        assert_ok(rollout_play(rollout, slice, &done));
    assert_ok(rollout_finish(rollout, out));
    assert_false(rollout_in_hand(rollout));
}

static segment_t s_segment(rollout_segment_t *played)
{
    segment_t segment = {.shape = played->shape, .frame = played->frame};
    assert_ok(tt_segment_check(&segment.shape, zmq_msg_data(&segment.frame), zmq_msg_size(&segment.frame)));
    tt_segment_map(&segment.shape, zmq_msg_data(&segment.frame), &segment.at);
    return segment;
}

static segment_t s_play(rollout_t *rollout, uint32_t slice)
{
    rollout_segment_t played;
    assert_int_equal(rollout_segments(rollout), 1);
    s_play_all(rollout, slice, &played);
    return s_segment(&played);
}

#define assert_bits(a, b, count) assert_memory_equal((a), (b), (count) * sizeof *(a))

/*  Rows of a column: `count` of them from number `a` of one array, and from `b` of the other. */
static void s_assert_rows(
    const tt_column_t *column, const void *one, size_t a, const void *other, size_t b, size_t count)
{
    const char *x = (const char *)one + a * column->bytes, *y = (const char *)other + b * column->bytes;
    if (memcmp(x, y, count * column->bytes) != 0)
        fail_msg("%s differs", column->name);
}

/*  The envs `from`.. of one segment must be the other's. */
static void s_assert_part(const segment_t *whole, uint32_t from, const segment_t *part)
{
    const uint32_t T = whole->shape.T, W = whole->shape.E, E = part->shape.E, S = whole->shape.S;
    const tt_columns_t *columns = whole->shape.columns;
    for (uint32_t c = 0; c < columns->count; c++) {
        const tt_column_t *column = &columns->at[c];
        for (size_t t = 0; t < T; t++)
            s_assert_rows(column, whole->at.column[c], t * W + from, part->at.column[c], t * E, E);
        if (column->keep)
            s_assert_rows(column, whole->at.last[c], from, part->at.last[c], 0, E);
    }
    for (uint32_t c = 0; c < columns->obs_count; c++)
        for (size_t b = 0; b < columns->before; b++)
            s_assert_rows(&columns->at[c], whole->at.before[c], b * W + from, part->at.before[c], b * E, E);
    assert_bits(whole->at.age + from, part->at.age, E);
    assert_bits(whole->at.states + (size_t)from * S, part->at.states, (size_t)E * S);
    uint32_t k = 0;
    for (uint32_t i = 0; i < whole->shape.K; i++) {
        if (whole->at.final_env[i] < from || whole->at.final_env[i] >= from + E)
            continue;
        assert_true(k < part->shape.K);
        assert_int_equal(part->at.final_t[k], whole->at.final_t[i]);
        assert_int_equal(part->at.final_env[k], whole->at.final_env[i] - from);
        for (uint32_t c = 0; c < columns->count; c++)
            if (columns->at[c].keep)
                s_assert_rows(&columns->at[c], whole->at.final[c], i, part->at.final[c], k, 1);
        k++;
    }
    assert_int_equal(k, part->shape.K);
}

/* ---- the reference: written to be read, not to be fast -------------------------------------------------------------- */

/*  What an episode has shown, as a network reads it. */
typedef struct {
    float frame[512][256];
    uint32_t count;
} past_t;

static void s_read(const world_t *w, const void *const *leaf, float *flat)
{
    float scaled[256];
    tt_columns_read(w->columns, leaf, flat);
    if (!w->norm)
        return;
    tt_columns_scaled(w->columns, leaf, scaled);
    tt_norm_scale(w->norm, scaled, 1, CLIP, scaled);
    tt_columns_put_scaled(w->columns, scaled, flat);
}

/*  leaf[c] -> one row of observation column c, which comes behind the past. */
static float s_value_of(const world_t *w, past_t *past, const void *const *leaf, float *head)
{
    static const char zeros[4096];
    const void *row[TT_STACK_MAX], *none[TT_COLUMNS_MAX];
    float zero[256], value;
    const uint32_t frames = w->frames;
    for (uint32_t c = 0; c < TT_COLUMNS_MAX; c++)
        none[c] = zeros;
    tt_columns_read(w->columns, none, zero);
    assert_true(past->count < TT_COUNT(past->frame));
    s_read(w, leaf, past->frame[past->count]);
    for (uint32_t k = 0; k < frames; k++) /* from the newest */
        row[frames - 1 - k] = k <= past->count         ? past->frame[past->count - k]
                              : w->pad == TT_PAD_RESET ? past->frame[0]
                                                       : zero;
    assert_ok(tt_inference_run(w->net, row, 1, (float *const[]){head, &value}));
    return value;
}

/*  The actions of one row, and the log-probability if there is one. */
static float s_act(
    const world_t *w, const float *head, const uint8_t *mask, const tt_dist_draw_t *draw, void *const *action)
{
    float log_prob = 0;
    if (w->actor.kind == TT_ACT_SAMPLE) {
        float log_std[8];
        assert_true(w->policy.log_std <= TT_COUNT(log_std));
        assert_ok(tt_inference_log_std(w->net, 0, log_std));
        tt_policy_sample(&w->policy, head, log_std, mask, 1, draw, action, &log_prob);
        return log_prob;
    }
    const float epsilon = (float)tt_epsilon(&w->actor, draw->clock[0] * NUM_ENVS + draw->who[0], NUM_ENVS);
    tt_policy_explore(&w->policy, head, mask, 1, &epsilon, draw, action[0]);
    return 0;
}

/*  What env 0 of the range shows now, and what it was cut at; mask included. */
static void s_now(const range_t *range, const void **leaf)
{
    const tt_columns_t *columns = range->columns;
    for (uint32_t c = 0; c < columns->action; c++)
        leaf[c] = (int)c == columns->mask ? (const void *)tt_vec_mask(range->vec) : tt_vec_obs(range->vec)[c];
}

static void s_final(const range_t *range, const void **leaf)
{
    for (uint32_t c = 0; c < range->columns->action; c++)
        leaf[c] = tt_vec_final(range->vec, 0, c);
}

static void s_assert_leaves(const tt_columns_t *columns, void *const *array, size_t row, const void *const *leaf)
{
    for (uint32_t c = 0; c < columns->action; c++)
        s_assert_rows(&columns->at[c], array[c], row, leaf[c], 0, 1);
}

static void s_assert_reference(const world_t *w, const segment_t *segment, uint32_t lo, uint32_t e)
{
    const tt_columns_t *columns = w->columns;
    const uint32_t E = segment->shape.E, who = lo + e;
    const bool estimates = w->actor.kind == TT_ACT_SAMPLE;
    RANGE range = range_open(w->env, SEED, lo + e, 1);
    static past_t past;
    const void *leaf[TT_COLUMNS_MAX];
    uint32_t k = 0;
    past.count = 0;
    for (uint32_t t = 0; t < w->steps; t++) {
        const size_t at = (size_t)t * E + e;
        const uint64_t clock = tt_vec_clock(range.vec, 0);
        const tt_dist_draw_t draw = {SEED, TT_STREAM_ACTION, &who, &clock};
        double room[TT_COLUMNS_MAX][32];
        void *action[TT_COLUMNS_MAX];
        float head[64], reward;
        uint8_t terminated, truncated;
        s_now(&range, leaf);
        s_assert_leaves(columns, segment->at.column, at, leaf);
        const float value = s_value_of(w, &past, leaf, head);
        past.count++;
        for (uint32_t i = 0; i < columns->action_count; i++)
            action[i] = room[i];
        const float log_prob = s_act(w, head, tt_vec_mask(range.vec), &draw, action);
        for (uint32_t i = 0; i < columns->action_count; i++)
            s_assert_rows(
                &columns->at[columns->action + i], segment->at.column[columns->action + i], at, room[i], 0, 1);
        assert_ok(tt_vec_step(range.vec, (const void *const *)action, &reward, &terminated, &truncated));
        assert_true(!estimates || (segment->at.value[at] == value && segment->at.log_prob[at] == log_prob));
        assert_true(segment->at.reward[at] == reward);
        assert_int_equal(segment->at.terminated[at], terminated);
        assert_int_equal(segment->at.truncated[at], truncated);
        if (terminated && !truncated)
            past.count = 0;
        if (!truncated)
            continue;
        while (segment->at.final_env[k] != e)
            k++;
        assert_true(k < segment->shape.K);
        assert_int_equal(segment->at.final_t[k], t);
        s_final(&range, leaf);
        s_assert_leaves(columns, segment->at.final, k, leaf);
        assert_true(!estimates || segment->at.final_value[k] == s_value_of(w, &past, leaf, NULL));
        past.count = 0;
        k++;
    }
    s_now(&range, leaf);
    s_assert_leaves(columns, segment->at.last, e, leaf);
    assert_true(!estimates || segment->at.last_value[e] == s_value_of(w, &past, leaf, NULL));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *env;
    uint32_t steps;
    bool normalise, truncates;
    tt_actor_t actor;
    uint32_t frames;
    tt_pad_t pad;
} case_t;

static const case_t s_cases[] = {
    {"CartPole-v1", 64, false, false, {0}, 1, TT_PAD_RESET},
    {"CartPole-v1", 200, true, false, {0}, 1, TT_PAD_RESET},
    {"Pendulum-v1", 450, false, true, {0}, 1, TT_PAD_RESET},
    {"MountainCar-v0", 401, true, true, {0}, 1, TT_PAD_RESET},
    {"Zoo-v0", 60, false, true, {0}, 1, TT_PAD_RESET},
    {"Zoo-v0", 60, true, true, {0}, 1, TT_PAD_RESET},
    {"CartPole-v1", 64, false, false, {.kind = TT_ACT_ARGMAX, .epsilon = 1, .epsilon_end = 0.1, .epsilon_rows = 900}, 1,
        TT_PAD_RESET},
    {"MountainCar-v0", 401, true, true,
        {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_rows = 2000, .random_rows = 300}, 1, TT_PAD_RESET},
    {"Bridled", 64, false, false, {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_end = 0.5, .epsilon_power = 3}, 1,
        TT_PAD_RESET},
    {"CartPole-v1", 64, true, false, {0}, 3, TT_PAD_RESET},
    {"CartPole-v1", 2, false, false, {0}, 5, TT_PAD_RESET},
    {"Pendulum-v1", 450, true, true, {0}, 4, TT_PAD_ZERO},
    {"Zoo-v0", 60, true, true, {0}, 2, TT_PAD_ZERO},
    {"Zoo-v0", 60, false, true, {0}, 7, TT_PAD_RESET},
    {"MountainCar-v0", 401, true, true,
        {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_rows = 2000, .random_rows = 300}, 4, TT_PAD_ZERO},
};

static void s_open_case(world_t *w, const case_t *c)
{
    s_open_stacked(w, s_env(c->env), c->steps, c->normalise, c->actor, c->frames ? c->frames : 1, c->pad);
}

static void test_same_as_the_plain_way(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        world_t w;
        s_open_case(&w, &s_cases[c]);
        rollout_t *rollout = s_rollout(&w, 3, 5);
        segment_t segment = s_play(rollout, UINT32_MAX);
        if (s_cases[c].truncates)
            assert_true(segment.shape.K >= 5);
        for (uint32_t e = 0; e < 5; e++)
            s_assert_reference(&w, &segment, 3, e);
        tt_frame_close(&segment.frame);
        rollout_destroy(&rollout);
        s_close(&w);
    }
}

/*  A segment has the frames before its first from the one before it, as far as they are of the same episode. */
static void s_assert_before(const segment_t *first, const segment_t *second)
{
    static const char zeros[4096];
    const tt_columns_t *columns = first->shape.columns;
    const uint32_t E = first->shape.E, before = columns->before;
    for (uint32_t c = 0; c < columns->obs_count; c++)
        for (uint32_t k = 1; k <= before; k++)
            for (uint32_t e = 0; e < E; e++) {
                const bool there = second->at.age[e] >= k;
                const uint32_t T = first->shape.T, at = (before - k) * E + e;
                if (there && k > T)
                    s_assert_rows(
                        &columns->at[c], second->at.before[c], at, first->at.before[c], (before + T - k) * E + e, 1);
                else
                    s_assert_rows(&columns->at[c], second->at.before[c], at, there ? first->at.column[c] : zeros,
                        there ? (T - k) * E + e : 0, 1);
            }
}

static void test_a_segment_has_what_its_stacks_show(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        world_t w;
        s_open_case(&w, &s_cases[c]);
        assert_int_equal(w.columns->before, s_cases[c].frames > 1 && w.columns->value >= 0 ? s_cases[c].frames - 1 : 0);
        rollout_t *rollout = s_rollout(&w, 0, 6);
        segment_t first = s_play(rollout, UINT32_MAX);
        for (int batch = 0; batch < 4; batch++) {
            segment_t second = s_play(rollout, UINT32_MAX);
            s_assert_before(&first, &second);
            tt_frame_close(&first.frame);
            first = second;
        }
        tt_frame_close(&first.frame);
        rollout_destroy(&rollout);
        s_close(&w);
    }
}

static void test_ranges_and_slices_do_not_matter(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        world_t w;
        s_open_case(&w, &s_cases[c]);
        rollout_t *eight = s_rollout(&w, 0, 8), *low = s_rollout(&w, 0, 4), *high = s_rollout(&w, 4, 4);
        for (int batch = 0; batch < 3; batch++) {
            segment_t whole = s_play(eight, UINT32_MAX), first = s_play(low, 1), second = s_play(high, 7);
            s_assert_part(&whole, 0, &first);
            s_assert_part(&whole, 4, &second);
            tt_frame_close(&whole.frame);
            tt_frame_close(&first.frame);
            tt_frame_close(&second.frame);
        }
        rollout_destroy(&eight);
        rollout_destroy(&low);
        rollout_destroy(&high);
        s_close(&w);
    }
}

/*  `parts` segments of at most `most` envs are, together, the one that there would be otherwise; batch after batch, with other numbers of
 *  finals. */
static void s_assert_cut(const case_t *c, uint32_t most, uint32_t parts)
{
    enum { MOST_PARTS = 8 };
    world_t w;
    s_open_case(&w, c);
    rollout_t *one = s_rollout(&w, 0, 8), *many = s_rollout_cut(&w, 0, 8, most);
    assert_int_equal(rollout_segments(many), parts);
    for (int batch = 0; batch < 3; batch++) {
        rollout_segment_t played[MOST_PARTS];
        uint32_t envs = 0;
        segment_t whole = s_play(one, UINT32_MAX);
        s_play_all(many, 5, played);
        for (uint32_t p = 0; p < parts; p++) {
            segment_t part = s_segment(&played[p]);
            assert_int_equal(played[p].first, envs);
            assert_in_range(part.shape.E, 1, most);
            s_assert_part(&whole, envs, &part);
            envs += part.shape.E;
            tt_frame_close(&part.frame);
        }
        assert_int_equal(envs, 8);
        tt_frame_close(&whole.frame);
    }
    rollout_destroy(&one);
    rollout_destroy(&many);
    s_close(&w);
}

static void test_several_segments_are_the_one(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        s_assert_cut(&s_cases[c], 3, 3);
        s_assert_cut(&s_cases[c], 1, 8);
    }
}

static void test_saved_states_continue_elsewhere(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        world_t w;
        s_open_case(&w, &s_cases[c]);
        rollout_t *all = s_rollout(&w, 0, 6), *moved = s_rollout(&w, 2, 3);
        segment_t before = s_play(all, UINT32_MAX), after = s_play(all, UINT32_MAX);
        const size_t each = rollout_state_bytes(moved);
        assert_true(each > 0);
        assert_ok(rollout_load(moved, before.at.states + 2 * each, 3 * each));
        segment_t part = s_play(moved, UINT32_MAX);
        s_assert_part(&after, 2, &part);
        assert_int_equal(rollout_load(moved, before.at.states, 2 * each), TT_DATA);
        tt_frame_close(&before.frame);
        tt_frame_close(&after.frame);
        tt_frame_close(&part.frame);
        rollout_destroy(&all);
        rollout_destroy(&moved);
        s_close(&w);
    }
}

/*  Frames that a stack shows are looked at, those that it cannot show are not. */
static void test_damaged_frames(void **state)
{
    (void)state;
    enum {
        FRAMES = 4,
        SEEN = 3 * sizeof(float),
        BEFORE = 32 + SEEN
    }; /* behind the head and what is seen now, newest first */
    const float bad = NAN;
    for (uint32_t steps = 1; steps <= 2; steps++) {
        world_t w;
        s_open_stacked(&w, s_env("Pendulum-v1"), steps, false, (tt_actor_t){0}, FRAMES, TT_PAD_RESET);
        rollout_t *rollout = s_rollout(&w, 0, 1);
        segment_t segment = s_play(rollout, UINT32_MAX);
        const size_t bytes = rollout_state_bytes(rollout);
        for (uint32_t k = 1; k < FRAMES; k++) {
            uint8_t copy[1024];
            assert_true(bytes <= sizeof copy);
            memcpy(copy, segment.at.states, bytes);
            memcpy(copy + BEFORE + (k - 1) * SEEN, &bad, sizeof bad);
            assert_int_equal(rollout_load(rollout, copy, bytes), k <= steps ? TT_DATA : TT_OK);
        }
        tt_frame_close(&segment.frame);
        rollout_destroy(&rollout);
        s_close(&w);
    }
}

static void s_open_argmax(world_t *w, const char *env, uint32_t steps, tt_actor_t actor)
{
    actor.kind = TT_ACT_ARGMAX;
    s_open_env(w, s_env(env), steps, false, actor);
}

/*  Nothing but the greedy choice at epsilon 0, all alike at 1. */
static void test_epsilon_0_and_1(void **state)
{
    (void)state;
    enum { T = 500, E = 8 };
    for (int epsilon = 0; epsilon <= 1; epsilon++) {
        world_t w;
        size_t left = 0;
        s_open_argmax(&w, "CartPole-v1", T, (tt_actor_t){.epsilon_end = epsilon});
        rollout_t *rollout = s_rollout(&w, 0, E);
        segment_t segment = s_play(rollout, UINT32_MAX);
        const int32_t *action = segment.at.column[w.columns->action];
        const float *obs = segment.at.column[0];
        assert_null(segment.at.value);
        for (size_t i = 0; i < T * E; i++) {
            const void *row = obs + i * 4;
            float head[2];
            assert_ok(tt_inference_run(w.net, &row, 1, (float *const[]){head}));
            assert_true(epsilon || action[i] == (head[1] > head[0]));
            left += action[i] == 0;
        }
        assert_true(!epsilon || fabs((double)left / (T * E) - 0.5) < 0.03);
        tt_frame_close(&segment.frame);
        rollout_destroy(&rollout);
        s_close(&w);
    }
}

/*  epsilon goes by the numbers of rows: the first so many of all envs together, over batches, and whoever plays them. */
static void test_random_rows_are_the_jobs(void **state)
{
    (void)state;
    enum { T = 10, RANDOM = 15 * NUM_ENVS };
    world_t w;
    s_open_argmax(&w, "CartPole-v1", T, (tt_actor_t){.random_rows = RANDOM});
    rollout_t *rollout = s_rollout(&w, 2, 3);
    uint32_t other = 0;
    for (uint32_t batch = 0; batch < 3; batch++) {
        segment_t segment = s_play(rollout, UINT32_MAX);
        const int32_t *action = segment.at.column[w.columns->action];
        for (uint32_t i = 0; i < T * 3; i++) {
            const void *row = (const float *)segment.at.column[0] + (size_t)i * 4;
            float head[2];
            assert_ok(tt_inference_run(w.net, &row, 1, (float *const[]){head}));
            const bool best = action[i] == (head[1] > head[0]);
            const uint64_t number = (uint64_t)(batch * T + i / 3) * NUM_ENVS + 2 + i % 3;
            assert_true(best || number < RANDOM);
            other += !best;
        }
        tt_frame_close(&segment.frame);
    }
    assert_true(other > 10 && other < 35); /* half of 45 */
    rollout_destroy(&rollout);
    s_close(&w);
}

/*  Batches so short that every step of one may be a truncation: a segment has room for as many finals as it has rows. */
static void test_every_row_truncated(void **state)
{
    (void)state;
    for (uint32_t steps = 1; steps <= 3; steps++)
        for (uint32_t envs = 1; envs <= 6; envs++) {
            world_t w;
            uint32_t most = 0;
            s_open(&w, "Pendulum-v1", steps, false); /* truncated after 200 steps, all envs at once */
            rollout_t *rollout = s_rollout(&w, 0, envs);
            for (uint32_t played = 0; played < 201; played += steps) {
                segment_t segment = s_play(rollout, UINT32_MAX);
                most = segment.shape.K > most ? segment.shape.K : most;
                tt_frame_close(&segment.frame);
            }
            assert_int_equal(most, envs);
            rollout_destroy(&rollout);
            s_close(&w);
        }
}

/*  A batch that is given up in the middle leaves no trace when the envs are loaded again. */
static void test_abandoned_batch_leaves_no_trace(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, "CartPole-v1", 100, false);
    rollout_t *a = s_rollout(&w, 0, 4), *b = s_rollout(&w, 0, 4);
    segment_t first = s_play(a, UINT32_MAX), second = s_play(a, UINT32_MAX);
    bool done;
    assert_ok(rollout_begin(b));
    assert_ok(rollout_play(b, 17, &done));
    assert_false(done);
    assert_int_equal(rollout_played(b), 17);
    assert_ok(rollout_load(b, first.at.states, 4 * rollout_state_bytes(b)));
    assert_false(rollout_in_hand(b));
    segment_t again = s_play(b, UINT32_MAX);
    s_assert_part(&second, 0, &again);
    tt_frame_close(&first.frame);
    tt_frame_close(&second.frame);
    tt_frame_close(&again.frame);
    rollout_destroy(&a);
    rollout_destroy(&b);
    s_close(&w);
}

/* ---- shares -------------------------------------------------------------------------------------------------------- */

enum { BATCHES = 3, CUTS = 3 };

/*  Batches of 7 envs of a herd, which is cut into segments of `most`, moves in shares so wide, and is looked at after each `slice` steps. */
static void s_play_herd(
    const world_t *w, uint32_t wide, uint32_t most, uint32_t slice, segment_t segment[BATCHES][CUTS], uint32_t *parts)
{
    herd.wide = wide;
    rollout_t *rollout = s_rollout_cut(w, 0, 7, most);
    *parts = rollout_segments(rollout);
    assert_true(*parts <= CUTS);
    for (int b = 0; b < BATCHES; b++) {
        rollout_segment_t played[CUTS];
        s_play_all(rollout, slice, played);
        for (uint32_t p = 0; p < *parts; p++)
            segment[b][p] = s_segment(&played[p]);
    }
    rollout_destroy(&rollout);
}

static void s_assert_shares_are_the_whole(const world_t *w, uint32_t wide, uint32_t most, uint32_t slice)
{
    segment_t whole[BATCHES][CUTS], shares[BATCHES][CUTS];
    uint32_t parts;
    s_play_herd(w, 0, most, 1, whole, &parts);
    assert_int_equal(herd.apart, 0);
    s_play_herd(w, wide, most, slice, shares, &parts);
    assert_true(herd.apart >= BATCHES * w->steps);
    herd.apart = 0;
    for (int b = 0; b < BATCHES; b++)
        for (uint32_t p = 0; p < parts; p++) {
            assert_int_equal(whole[b][p].shape.K, shares[b][p].shape.K);
            s_assert_part(&whole[b][p], 0, &shares[b][p]);
            tt_frame_close(&whole[b][p].frame);
            tt_frame_close(&shares[b][p].frame);
        }
}

/*  Every number: actions, estimates, truncations in their order, stacks, states; with one segment, and with such as do not end where a share does. */
static void test_shares_are_the_whole(void **state)
{
    (void)state;
    const tt_actor_t actors[] = {{0}, {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_end = 0.5}};
    for (size_t a = 0; a < TT_COUNT(actors); a++)
        for (uint32_t frames = 1; frames <= 3; frames += 2)
            for (int way = 0; way < 8; way++) {
                world_t w;
                memset(&herd, 0, sizeof herd);
                herd.begins = way & 1;
                herd.swaps = way & 2;
                herd.ready = way & 4;
                s_open_stacked(&w, &herd_ops.env, 10, true, actors[a], frames, TT_PAD_ZERO);
                s_assert_shares_are_the_whole(&w, 3, 7, 1);
                s_assert_shares_are_the_whole(&w, 1, 7, UINT32_MAX);
                s_assert_shares_are_the_whole(&w, 4, 3, 4);
                s_close(&w);
            }
    memset(&herd, 0, sizeof herd);
}

/*  A batch is given up while shares play, of which some are ahead of others: what comes of it is nobody's, and stacks go on as if it had
 *  not been. */
static void s_abandon_shares(uint32_t frames)
{
    world_t w;
    bool done;
    memset(&herd, 0, sizeof herd);
    herd.wide = 3;
    herd.swaps = true;
    s_open_stacked(&w, &herd_ops.env, 10, false, (tt_actor_t){0}, frames, TT_PAD_ZERO);
    rollout_t *a = s_rollout(&w, 0, 7), *b = s_rollout(&w, 0, 7);
    segment_t first = s_play(a, UINT32_MAX), second = s_play(a, UINT32_MAX);
    assert_ok(rollout_begin(b));
    assert_ok(rollout_play(b, 4, &done));
    assert_int_equal(rollout_played(b), 4);
    assert_ok(rollout_load(b, first.at.states, 7 * rollout_state_bytes(b)));
    assert_false(rollout_in_hand(b));
    segment_t again = s_play(b, UINT32_MAX);
    s_assert_part(&second, 0, &again);
    tt_frame_close(&first.frame);
    tt_frame_close(&second.frame);
    tt_frame_close(&again.frame);
    rollout_destroy(&a);
    rollout_destroy(&b);
    s_close(&w);
}

static void test_shares_that_play_are_abandoned(void **state)
{
    (void)state;
    s_abandon_shares(1);
    s_abandon_shares(3);
}

/*  Who leaves in the middle of a step waits for it, so that the envs are whole and may be drawn upon; of those that fail in it nothing stays. */
static void test_shares_that_play_are_left(void **state)
{
    (void)state;
    world_t w;
    bool done;
    memset(&herd, 0, sizeof herd);
    herd.wide = 3;
    s_open_env(&w, &herd_ops.env, 10, false, (tt_actor_t){0});
    rollout_t *rollout = s_rollout(&w, 0, 7);
    assert_ok(rollout_begin(rollout));
    assert_ok(rollout_play(rollout, 1, &done));
    tt_vec_t *vec = rollout_leave(&rollout);
    assert_non_null(vec);
    char state_of_0[256];
    assert_ok(tt_vec_save(vec, 0, state_of_0));
    tt_vec_destroy(&vec);
    rollout = s_rollout(&w, 0, 7);
    assert_ok(rollout_begin(rollout));
    assert_ok(rollout_play(rollout, 1, &done));
    herd.fail_recv = "it was killed";
    assert_null(rollout_leave(&rollout));
    assert_int_equal(herd.opened, herd.closed);
    s_close(&w);
    memset(&herd, 0, sizeof herd);
}

static void s_assert_diverged(tt_actor_t actor)
{
    world_t w;
    s_open_env(&w, s_env("CartPole-v1"), 8, false, actor);
    const size_t count = tt_net_param_count(tt_net_spec(tt_inference_net(w.net)));
    float *params = tt_array0(count, sizeof *params);
    for (size_t i = 0; i < count; i++)
        params[i] = NAN;
    assert_ok(tt_inference_put(w.net, params));
    free(params);
    rollout_t *rollout = s_rollout(&w, 0, 2);
    rollout_segment_t played;
    bool done;
    assert_ok(rollout_begin(rollout));
    assert_ok(rollout_play(rollout, 8, &done));
    assert_int_equal(rollout_finish(rollout, &played), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "try a smaller algorithm.learning_rate"));
    rollout_destroy(&rollout);
    s_close(&w);
}

static void test_diverged_policy_is_an_error(void **state)
{
    (void)state;
    s_assert_diverged((tt_actor_t){0});
    s_assert_diverged((tt_actor_t){.kind = TT_ACT_ARGMAX});
}

static void test_net_must_fit_the_env(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, "CartPole-v1", 8, false);
    const tt_env_ops_t *acrobot;
    tt_columns_t *other;
    assert_ok(tt_env_find(&acrobot, "Acrobot-v1"));
    assert_ok(tt_columns_new(&other, &acrobot->obs, &acrobot->action, false, true));
    const rollout_cfg_t cfg = {.env = w.env,
        .columns = other,
        .net = w.net,
        .blocks = w.blocks,
        .clip_obs = CLIP,
        .seed = SEED,
        .env_count = 2,
        .segment_envs = 2,
        .steps = 8};
    rollout_t *rollout = NULL;
    assert_int_equal(rollout_new(&rollout, &cfg), TT_INVALID);
    assert_null(rollout);
    tt_columns_destroy(&other);
    s_close(&w);
}

/*  Towers are found by their names. */
static void test_net_must_have_an_actor_and_a_critic(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, "CartPole-v1", 8, false);
    const tt_net_spec_t spec = {.obs = 4, .towers = 1, .tower = {{.name = "actor", .out = 2}}};
    tt_inference_destroy(&w.net);
    assert_ok(tt_inference_new(&w.net, &spec));
    const rollout_cfg_t cfg = {.env = w.env,
        .columns = w.columns,
        .net = w.net,
        .blocks = w.blocks,
        .seed = SEED,
        .env_count = 2,
        .segment_envs = 2,
        .num_envs = 2,
        .steps = 8};
    rollout_t *rollout = NULL;
    assert_int_equal(rollout_new(&rollout, &cfg), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "'critic'"));
    assert_null(rollout);
    s_close(&w);
}

/*  Frames outlive the rollout and the pool they came from. */
static void test_frames_outlive_the_pool(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, "CartPole-v1", 8, false);
    rollout_t *rollout = s_rollout(&w, 0, 2);
    segment_t segment = s_play(rollout, UINT32_MAX);
    rollout_destroy(&rollout);
    blocks_destroy(&w.blocks);
    assert_ok(tt_segment_check(&segment.shape, zmq_msg_data(&segment.frame), zmq_msg_size(&segment.frame)));
    tt_frame_close(&segment.frame);
    s_close(&w);
}

/*  CartPole whose steps take their time. */
static const tt_env_ops_t *s_quick;
static void s_slow_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    s_quick->step(state, action, rng, out);
}

static void test_time_of_a_slow_env_is_the_envs(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, "CartPole-v1", 8, false);
    s_quick = w.env;
    tt_env_ops_t slow = *s_quick;
    slow.step = s_slow_step;
    slow.step_many = NULL;
    w.env = &slow;
    rollout_t *rollout = s_rollout(&w, 0, 8);
    assert_true(rollout_env_share(rollout) == 0.5); /* not known yet */
    segment_t segment = s_play(rollout, UINT32_MAX);
    tt_frame_close(&segment.frame);
    assert_true(rollout_env_share(rollout) > 0.6 && rollout_env_share(rollout) < 1);
    rollout_destroy(&rollout);
    s_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_plain_way),
        cmocka_unit_test(test_a_segment_has_what_its_stacks_show),
        cmocka_unit_test(test_ranges_and_slices_do_not_matter),
        cmocka_unit_test(test_several_segments_are_the_one),
        cmocka_unit_test(test_saved_states_continue_elsewhere),
        cmocka_unit_test(test_damaged_frames),
        cmocka_unit_test(test_epsilon_0_and_1),
        cmocka_unit_test(test_random_rows_are_the_jobs),
        cmocka_unit_test(test_every_row_truncated),
        cmocka_unit_test(test_abandoned_batch_leaves_no_trace),
        cmocka_unit_test(test_shares_are_the_whole),
        cmocka_unit_test(test_shares_that_play_are_abandoned),
        cmocka_unit_test(test_shares_that_play_are_left),
        cmocka_unit_test(test_diverged_policy_is_an_error),
        cmocka_unit_test(test_net_must_fit_the_env),
        cmocka_unit_test(test_net_must_have_an_actor_and_a_critic),
        cmocka_unit_test(test_frames_outlive_the_pool),
        cmocka_unit_test(test_time_of_a_slow_env_is_the_envs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
