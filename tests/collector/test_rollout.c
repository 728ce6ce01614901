/*  A rollout against a plain reference (one env at a time, one row at a time), cut into ranges, moved by saved states. */
#include "collector/rollout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "collector/registry.h"
#include "common/base/mem.h"
#include "tests/collector/range.h"
#include "tests/collector/world.h"

/* ---- the reference: written to be read, not to be fast -------------------------------------------------------------- */

/*  What an episode has shown, as a network reads it, and what the policy carries on. */
typedef struct {
    float frame[512][256];
    uint32_t count;
    float carry[64];
} past_t;

static void s_begin(past_t *past)
{
    past->count = 0;
    memset(past->carry, 0, sizeof past->carry);
}

/*  One row, as it is read: its value, 0 where there is none. carry: what goes into the step, and then what comes out. */
static float s_run(const world_t *w, const void *const *row, float *carry, float *head)
{
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(w->net));
    const tt_carry_t step = {carry, carry};
    float value = 0, *out[TT_TOWERS_MAX] = {NULL};
    if (w->columns->value >= 0)
        out[tt_net_tower(spec, "critic")] = &value;
    out[tt_net_tower(spec, tt_actor_head(&w->actor))] = head;
    assert_true(w->columns->carry <= TT_COUNT(((past_t *)NULL)->carry));
    assert_ok(tt_inference_run(w->net, row, 1, w->columns->carry ? &step : NULL, out));
    return value;
}

static void s_read(const world_t *w, const void *const *leaf, float *flat)
{
    float scaled[256];
    tt_columns_read(w->columns, leaf, flat);
    if (!w->norm)
        return;
    tt_columns_scaled(w->columns, leaf, scaled);
    tt_norm_scale(w->norm, scaled, 1, WORLD_CLIP, scaled);
    tt_columns_put_scaled(w->columns, scaled, flat);
}

/*  leaf[c] -> one row of observation column c, which comes behind the past. */
static float s_value_of(const world_t *w, past_t *past, const void *const *leaf, float *head)
{
    static const char zeros[4096];
    const void *row[TT_STACK_MAX], *none[TT_COLUMNS_MAX];
    float zero[256];
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
    return s_run(w, row, past->carry, head);
}

/*  The actions of one row, and the log-probability if there is one. */
static float s_act(
    const world_t *w, const float *head, const uint8_t *mask, const tt_dist_draw_t *draw, void *const *action)
{
    float log_prob = 0;
    if (w->actor.kind == TT_ACT_SAMPLE) {
        float log_std[8];
        assert_true(w->policy.log_std <= TT_COUNT(log_std));
        assert_ok(tt_inference_log_std(w->net, tt_net_tower(tt_net_spec(tt_inference_net(w->net)), "actor"), log_std));
        tt_policy_sample(&w->policy, head, log_std, mask, 1, draw, action, &log_prob);
        return log_prob;
    }
    if (tt_actor_has_twins(&w->actor)) {
        if (draw->clock[0] * WORLD_ENVS + draw->who[0] < w->actor.random_rows)
            tt_policy_any_squashed(&w->policy, 1, draw, action);
        else if (w->actor.kind == TT_ACT_MEAN)
            tt_policy_noisy_mean(&w->policy, head, 1, w->actor.sigma, draw, action);
        else
            tt_policy_sample(&w->policy, head, NULL, NULL, 1, draw, action, NULL);
        return 0;
    }
    const float epsilon = (float)tt_epsilon(&w->actor, draw->clock[0] * WORLD_ENVS + draw->who[0], WORLD_ENVS);
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
        assert_rows(&columns->at[c], array[c], row, leaf[c], 0, 1);
}

static void s_assert_reference(const world_t *w, const played_t *segment, uint32_t lo, uint32_t e)
{
    const tt_columns_t *columns = w->columns;
    const uint32_t E = segment->shape.E, who = lo + e;
    const bool estimates = w->actor.kind == TT_ACT_SAMPLE;
    RANGE range = range_open(w->env, WORLD_SEED, lo + e, 1);
    static past_t past;
    const void *leaf[TT_COLUMNS_MAX];
    uint32_t k = 0;
    s_begin(&past);
    for (uint32_t t = 0; t < w->steps; t++) {
        const size_t at = (size_t)t * E + e;
        const uint64_t clock = tt_vec_clock(range.vec, 0);
        const tt_dist_draw_t draw = {WORLD_SEED, TT_STREAM_ACTION, &who, &clock};
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
            assert_rows(&columns->at[columns->action + i], segment->at.column[columns->action + i], at, room[i], 0, 1);
        assert_ok(tt_vec_step(range.vec, (const void *const *)action, &reward, &terminated, &truncated));
        assert_true(!estimates || (segment->at.value[at] == value && segment->at.log_prob[at] == log_prob));
        assert_true(segment->at.reward[at] == reward);
        assert_int_equal(segment->at.terminated[at], terminated);
        assert_int_equal(segment->at.truncated[at], truncated);
        if (terminated && !truncated)
            s_begin(&past);
        if (!truncated)
            continue;
        while (segment->at.final_env[k] != e)
            k++;
        assert_true(k < segment->shape.K);
        assert_int_equal(segment->at.final_t[k], t);
        s_final(&range, leaf);
        s_assert_leaves(columns, segment->at.final, k, leaf);
        assert_true(!estimates || segment->at.final_value[k] == s_value_of(w, &past, leaf, NULL));
        s_begin(&past);
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
    tt_tower_kind_t rnn;
} case_t;

static const case_t s_cases[] = {
    {"CartPole-v1", 64, false, false, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"CartPole-v1", 200, true, false, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"Pendulum-v1", 450, false, true, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"MountainCar-v0", 401, true, true, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"Zoo-v0", 60, false, true, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"Zoo-v0", 60, true, true, {0}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"CartPole-v1", 64, false, false, {.kind = TT_ACT_ARGMAX, .epsilon = 1, .epsilon_end = 0.1, .epsilon_rows = 900}, 1,
        TT_PAD_RESET, TT_TOWER_MLP},
    {"MountainCar-v0", 401, true, true,
        {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_rows = 2000, .random_rows = 300}, 1, TT_PAD_RESET,
        TT_TOWER_MLP},
    {"Bridled", 64, false, false, {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_end = 0.5, .epsilon_power = 3}, 1,
        TT_PAD_RESET, TT_TOWER_MLP},
    {"Pendulum-v1", 450, true, true, {.kind = TT_ACT_MEAN, .sigma = 0.3f, .random_rows = 900}, 1, TT_PAD_RESET,
        TT_TOWER_MLP},
    {"Pendulum-v1", 210, false, true, {.kind = TT_ACT_SQUASHED, .random_rows = 900}, 1, TT_PAD_RESET, TT_TOWER_MLP},
    {"CartPole-v1", 64, true, false, {0}, 3, TT_PAD_RESET, TT_TOWER_MLP},
    {"CartPole-v1", 2, false, false, {0}, 5, TT_PAD_RESET, TT_TOWER_MLP},
    {"Pendulum-v1", 450, true, true, {0}, 4, TT_PAD_ZERO, TT_TOWER_MLP},
    {"Zoo-v0", 60, true, true, {0}, 2, TT_PAD_ZERO, TT_TOWER_MLP},
    {"Zoo-v0", 60, false, true, {0}, 7, TT_PAD_RESET, TT_TOWER_MLP},
    {"MountainCar-v0", 401, true, true,
        {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_rows = 2000, .random_rows = 300}, 4, TT_PAD_ZERO,
        TT_TOWER_MLP},
    {"CartPole-v1", 64, true, false, {0}, 1, TT_PAD_RESET, TT_TOWER_LSTM},
    {"Pendulum-v1", 450, false, true, {0}, 1, TT_PAD_RESET, TT_TOWER_GRU},
    {"Zoo-v0", 60, true, true, {0}, 2, TT_PAD_ZERO, TT_TOWER_LSTM},
    {"MountainCar-v0", 401, true, true,
        {.kind = TT_ACT_ARGMAX, .epsilon = 0.5, .epsilon_rows = 2000, .random_rows = 300}, 1, TT_PAD_RESET,
        TT_TOWER_LSTM},
};

static world_t s_open(const case_t *c)
{
    return world_recurrent(world_env(c->env), c->steps, c->normalise, c->actor, c->frames, c->pad, c->rnn);
}

static void test_same_as_the_plain_way(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        WORLD w = s_open(&s_cases[c]);
        ROLLOUT *rollout = world_rollout(&w, 3, 5);
        PLAYED segment = played_one(rollout, UINT32_MAX);
        if (s_cases[c].truncates)
            assert_true(segment.shape.K >= 5);
        for (uint32_t e = 0; e < 5; e++)
            s_assert_reference(&w, &segment, 3, e);
    }
}

/*  A segment has the frames before its first from the one before it, as far as they are of the same episode. */
static void s_assert_before(const played_t *first, const played_t *second)
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
                    assert_rows(
                        &columns->at[c], second->at.before[c], at, first->at.before[c], (before + T - k) * E + e, 1);
                else
                    assert_rows(&columns->at[c], second->at.before[c], at, there ? first->at.column[c] : zeros,
                        there ? (T - k) * E + e : 0, 1);
            }
}

static void test_a_segment_has_what_its_stacks_show(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        WORLD w = s_open(&s_cases[c]);
        assert_int_equal(w.columns->before, s_cases[c].frames > 1 && w.columns->value >= 0 ? s_cases[c].frames - 1 : 0);
        ROLLOUT *rollout = world_rollout(&w, 0, 6);
        PLAYED first = played_one(rollout, UINT32_MAX);
        for (int batch = 0; batch < 4; batch++) {
            played_t second = played_one(rollout, UINT32_MAX);
            s_assert_before(&first, &second);
            played_close(&first);
            first = second;
        }
    }
}

/*  A row of a segment by number as a network reads it, of envs that nothing is stacked in. */
static void s_row(const world_t *w, void *const *array, size_t row, float *flat)
{
    const void *leaf[TT_COLUMNS_MAX];
    for (uint32_t c = 0; c < w->columns->obs_count; c++)
        leaf[c] = (const char *)array[c] + row * w->columns->at[c].bytes;
    s_read(w, leaf, flat);
}

/*  Env e of a segment again, from what its segment says is carried; carry: on from there. */
static void s_assert_carried(const world_t *w, const played_t *segment, uint32_t e, float *carry)
{
    const uint32_t E = segment->shape.E, C = w->columns->carry;
    const tt_segment_t *at = &segment->at;
    float flat[256], head[64], into[64];
    const void *row = flat;
    uint32_t k = 0;
    assert_memory_equal(at->carry + (size_t)e * C, carry, C * sizeof *carry);
    for (uint32_t t = 0; t < w->steps; t++) {
        const size_t i = (size_t)t * E + e;
        s_row(w, at->column, i, flat);
        const float value = s_run(w, &row, carry, head);
        assert_true(!at->value || at->value[i] == value);
        if (at->truncated[i]) {
            while (at->final_t[k] != t || at->final_env[k] != e)
                k++;
            s_row(w, at->final, k, flat);
            memcpy(into, carry, sizeof into);
            assert_true(!at->value || at->final_value[k] == s_run(w, &row, into, head));
        }
        if (at->truncated[i] || at->terminated[i])
            memset(carry, 0, C * sizeof *carry);
    }
    s_row(w, at->last, e, flat);
    memcpy(into, carry, sizeof into);
    assert_true(!at->value || at->last_value[e] == s_run(w, &row, into, head));
    const size_t S = segment->shape.S, bytes = C * sizeof *carry;
    assert_memory_equal(at->states + (e + 1) * S - bytes, carry, bytes);
}

/*  From batch to batch: what a segment says, what values come of it, and what a saved env goes on with. */
static void test_what_is_carried(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        if (s_cases[c].rnn == TT_TOWER_MLP || s_cases[c].frames > 1)
            continue;
        float carry[6][64] = {{0}};
        bool goes_on = false;
        WORLD w = s_open(&s_cases[c]);
        ROLLOUT *rollout = world_rollout(&w, 0, 6);
        assert_int_equal(
            w.columns->carry, (w.rnn == TT_TOWER_LSTM ? 2 : 1) * (w.columns->value < 0 ? 1 : 2) * WORLD_UNITS);
        for (int batch = 0; batch < 3; batch++) {
            PLAYED segment = played_one(rollout, UINT32_MAX);
            for (uint32_t e = 0; e < 6; e++) {
                goes_on = goes_on || segment.at.carry[e * w.columns->carry] != 0;
                s_assert_carried(&w, &segment, e, carry[e]);
            }
        }
        assert_true(goes_on);
    }
}

static void test_ranges_and_slices_do_not_matter(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_COUNT(s_cases); c++) {
        WORLD w = s_open(&s_cases[c]);
        ROLLOUT *eight = world_rollout(&w, 0, 8), *low = world_rollout(&w, 0, 4), *high = world_rollout(&w, 4, 4);
        for (int batch = 0; batch < 3; batch++) {
            PLAYED whole = played_one(eight, UINT32_MAX), first = played_one(low, 1), second = played_one(high, 7);
            assert_part(&whole, 0, &first);
            assert_part(&whole, 4, &second);
        }
    }
}

/*  `parts` segments of at most `most` envs are, together, the one that there would be otherwise; batch after batch, with other numbers of
 *  finals. */
static void s_assert_cut(const case_t *c, uint32_t most, uint32_t parts)
{
    enum { MOST_PARTS = 8 };
    WORLD w = s_open(c);
    ROLLOUT *one = world_rollout(&w, 0, 8), *many = world_rollout_cut(&w, 0, 8, most);
    assert_int_equal(rollout_segments(many), parts);
    for (int batch = 0; batch < 3; batch++) {
        rollout_segment_t played[MOST_PARTS];
        uint32_t envs = 0;
        PLAYED whole = played_one(one, UINT32_MAX);
        played_all(many, 5, played);
        for (uint32_t p = 0; p < parts; p++) {
            PLAYED part = played_take(&played[p]);
            assert_int_equal(played[p].first, envs);
            assert_in_range(part.shape.E, 1, most);
            assert_part(&whole, envs, &part);
            envs += part.shape.E;
        }
        assert_int_equal(envs, 8);
    }
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
        WORLD w = s_open(&s_cases[c]);
        ROLLOUT *all = world_rollout(&w, 0, 6), *moved = world_rollout(&w, 2, 3);
        PLAYED before = played_one(all, UINT32_MAX), after = played_one(all, UINT32_MAX);
        const size_t each = rollout_state_bytes(moved);
        assert_true(each > 0);
        assert_ok(rollout_load(moved, before.at.states + 2 * each, 3 * each));
        PLAYED part = played_one(moved, UINT32_MAX);
        assert_part(&after, 2, &part);
        assert_int_equal(rollout_load(moved, before.at.states, 2 * each), TT_DATA);
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
        WORLD w = world_stacked(world_env("Pendulum-v1"), steps, false, (tt_actor_t){0}, FRAMES, TT_PAD_RESET);
        ROLLOUT *rollout = world_rollout(&w, 0, 1);
        PLAYED segment = played_one(rollout, UINT32_MAX);
        const size_t bytes = rollout_state_bytes(rollout);
        for (uint32_t k = 1; k < FRAMES; k++) {
            uint8_t copy[1024];
            assert_true(bytes <= sizeof copy);
            memcpy(copy, segment.at.states, bytes);
            memcpy(copy + BEFORE + (k - 1) * SEEN, &bad, sizeof bad);
            assert_int_equal(rollout_load(rollout, copy, bytes), k <= steps ? TT_DATA : TT_OK);
        }
    }
}

/*  What is carried into a saved env is a number; nothing is carried into an episode that begins, whatever a saved state says. */
static void test_damaged_carry(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, 3};
    for (uint32_t steps = 199; steps <= 200; steps++) { /* Pendulum is truncated after 200 */
        WORLD w =
            world_recurrent(world_env("Pendulum-v1"), steps, false, (tt_actor_t){0}, 1, TT_PAD_RESET, TT_TOWER_LSTM);
        ROLLOUT *rollout = world_rollout(&w, 0, 2);
        PLAYED segment = played_one(rollout, UINT32_MAX);
        const size_t each = rollout_state_bytes(rollout), C = w.columns->carry;
        assert_int_equal(each, tt_vec_save_size(w.env, 1) + C * sizeof(float));
        for (size_t i = 0; i < TT_COUNT(bad); i++) {
            memcpy(segment.at.states + 2 * each - sizeof bad[i], &bad[i], sizeof bad[i]);
            assert_int_equal(rollout_load(rollout, segment.at.states, 2 * each), isfinite(bad[i]) ? TT_OK : TT_DATA);
        }
        PLAYED next = played_one(rollout, UINT32_MAX);
        assert_int_equal(next.at.age[1], steps % 200);
        assert_true(next.at.carry[2 * C - 1] == (steps == 200 ? 0.0f : 3.0f));
    }
}

/*  Nothing but the greedy choice at epsilon 0, all alike at 1. */
static void test_epsilon_0_and_1(void **state)
{
    (void)state;
    enum { T = 500, E = 8 };
    for (int epsilon = 0; epsilon <= 1; epsilon++) {
        const tt_actor_t actor = {.kind = TT_ACT_ARGMAX, .epsilon_end = epsilon};
        WORLD w = world_acting(world_env("CartPole-v1"), T, actor);
        size_t left = 0;
        ROLLOUT *rollout = world_rollout(&w, 0, E);
        PLAYED segment = played_one(rollout, UINT32_MAX);
        const int32_t *action = segment.at.column[w.columns->action];
        const float *obs = segment.at.column[0];
        assert_null(segment.at.value);
        for (size_t i = 0; i < T * E; i++) {
            const void *row = obs + i * 4;
            float head[2];
            assert_ok(tt_inference_run(w.net, &row, 1, NULL, (float *const[]){head}));
            assert_true(epsilon || action[i] == (head[1] > head[0]));
            left += action[i] == 0;
        }
        assert_true(!epsilon || fabs((double)left / (T * E) - 0.5) < 0.03);
    }
}

/*  epsilon goes by the numbers of rows: the first so many of all envs together, over batches, and whoever plays them. */
static void test_random_rows_are_the_jobs(void **state)
{
    (void)state;
    enum { T = 10, RANDOM = 15 * WORLD_ENVS };
    const tt_actor_t actor = {.kind = TT_ACT_ARGMAX, .random_rows = RANDOM};
    WORLD w = world_acting(world_env("CartPole-v1"), T, actor);
    ROLLOUT *rollout = world_rollout(&w, 2, 3);
    uint32_t other = 0;
    for (uint32_t batch = 0; batch < 3; batch++) {
        PLAYED segment = played_one(rollout, UINT32_MAX);
        const int32_t *action = segment.at.column[w.columns->action];
        for (uint32_t i = 0; i < T * 3; i++) {
            const void *row = (const float *)segment.at.column[0] + (size_t)i * 4;
            float head[2];
            assert_ok(tt_inference_run(w.net, &row, 1, NULL, (float *const[]){head}));
            const bool best = action[i] == (head[1] > head[0]);
            const uint64_t number = (uint64_t)(batch * T + i / 3) * WORLD_ENVS + 2 + i % 3;
            assert_true(best || number < RANDOM);
            other += !best;
        }
    }
    assert_true(other > 10 && other < 35); /* half of 45 */
}

/*  Batches so short that every step of one may be a truncation: a segment has room for as many finals as it has rows. */
static void test_every_row_truncated(void **state)
{
    (void)state;
    for (uint32_t steps = 1; steps <= 3; steps++)
        for (uint32_t envs = 1; envs <= 6; envs++) {
            uint32_t most = 0;
            WORLD w = world_open("Pendulum-v1", steps, false); /* truncated after 200 steps, all envs at once */
            ROLLOUT *rollout = world_rollout(&w, 0, envs);
            for (uint32_t played = 0; played < 201; played += steps) {
                PLAYED segment = played_one(rollout, UINT32_MAX);
                most = segment.shape.K > most ? segment.shape.K : most;
            }
            assert_int_equal(most, envs);
        }
}

static void test_abandoned_batch_leaves_no_trace(void **state)
{
    (void)state;
    WORLD w = world_open("CartPole-v1", 100, false);
    assert_no_trace(&w, 4, 17);
}

static void s_assert_diverged(tt_actor_t actor)
{
    WORLD w = world_acting(world_env(tt_actor_has_twins(&actor) ? "Pendulum-v1" : "CartPole-v1"), 8, actor);
    const size_t count = tt_net_param_count(tt_net_spec(tt_inference_net(w.net)));
    float *params = tt_array0(count, sizeof *params);
    for (size_t i = 0; i < count; i++)
        params[i] = NAN;
    assert_ok(tt_inference_put(w.net, params));
    free(params);
    ROLLOUT *rollout = world_rollout(&w, 0, 2);
    bool done;
    assert_ok(rollout_begin(rollout));
    assert_int_equal(rollout_play(rollout, 8, &done), TT_DIVERGED);
    assert_string_equal(tt_err_text(), "the policy gives numbers that are not finite");
}

static void test_diverged_policy_is_an_error(void **state)
{
    (void)state;
    s_assert_diverged((tt_actor_t){0});
    s_assert_diverged((tt_actor_t){.kind = TT_ACT_ARGMAX});
    s_assert_diverged((tt_actor_t){.kind = TT_ACT_SQUASHED});
    s_assert_diverged((tt_actor_t){.kind = TT_ACT_MEAN});
}

static void test_net_must_fit_the_env(void **state)
{
    (void)state;
    WORLD w = world_open("CartPole-v1", 8, false);
    const tt_env_ops_t *acrobot;
    tt_columns_t *other;
    assert_ok(tt_env_find(&acrobot, "Acrobot-v1"));
    assert_ok(tt_columns_new(&other, &acrobot->obs, &acrobot->action, false, true));
    const rollout_cfg_t cfg = {.env = w.env,
        .columns = other,
        .net = w.net,
        .blocks = w.blocks,
        .clip_obs = WORLD_CLIP,
        .seed = WORLD_SEED,
        .env_count = 2,
        .segment_envs = 2,
        .steps = 8};
    rollout_t *rollout = NULL;
    assert_int_equal(rollout_new(&rollout, &cfg), TT_INVALID);
    assert_null(rollout);
    tt_columns_destroy(&other);
}

static void test_net_must_carry_what_the_job_does(void **state)
{
    (void)state;
    WORLD w = world_recurrent(world_env("CartPole-v1"), 8, false, (tt_actor_t){0}, 1, TT_PAD_RESET, TT_TOWER_GRU);
    WORLD plain = world_open("CartPole-v1", 8, false);
    tt_inference_t *const nets[] = {w.net, plain.net};
    const tt_columns_t *const columns[] = {plain.columns, w.columns};
    for (int i = 0; i < 2; i++) {
        const rollout_cfg_t cfg = {.env = w.env,
            .columns = columns[i],
            .net = nets[i],
            .blocks = w.blocks,
            .seed = WORLD_SEED,
            .env_count = 2,
            .segment_envs = 2,
            .num_envs = 2,
            .steps = 8};
        rollout_t *rollout = NULL;
        assert_int_equal(rollout_new(&rollout, &cfg), TT_INVALID);
        assert_non_null(strstr(tt_err_text(), i ? "carries 0 numbers from step to step, the job's 10" : "the job's 0"));
        assert_null(rollout);
    }
}

/*  Towers are found by their names. */
static void test_net_must_have_an_actor_and_a_critic(void **state)
{
    (void)state;
    WORLD w = world_open("CartPole-v1", 8, false);
    const tt_net_spec_t spec = {.obs = 4, .towers = 1, .tower = {{.name = "actor", .out = 2}}};
    tt_inference_destroy(&w.net);
    assert_ok(tt_inference_new(&w.net, "cpu", 0, &spec));
    const rollout_cfg_t cfg = {.env = w.env,
        .columns = w.columns,
        .net = w.net,
        .blocks = w.blocks,
        .seed = WORLD_SEED,
        .env_count = 2,
        .segment_envs = 2,
        .num_envs = 2,
        .steps = 8};
    rollout_t *rollout = NULL;
    assert_int_equal(rollout_new(&rollout, &cfg), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "'critic'"));
    assert_null(rollout);
}

/*  Frames outlive the rollout and the pool they came from. */
static void test_frames_outlive_the_pool(void **state)
{
    (void)state;
    WORLD w = world_open("CartPole-v1", 8, false);
    rollout_t *rollout = world_rollout(&w, 0, 2);
    PLAYED segment = played_one(rollout, UINT32_MAX);
    rollout_destroy(&rollout);
    blocks_destroy(&w.blocks);
    assert_ok(tt_segment_check(&segment.shape, zmq_msg_data(&segment.frame), zmq_msg_size(&segment.frame)));
}

/*  Every look at it takes a microsecond, and a step of CartPole two thousand. */
static tt_clock_t s_looks;
static int64_t s_look(const tt_clock_t *clock)
{
    (void)clock;
    tt_clock_turn(&s_looks, 1000);
    return s_looks.fake_ns;
}

static const tt_env_ops_t *s_quick;
static void s_slow_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    tt_clock_turn(&s_looks, 2000000);
    s_quick->step(state, action, rng, out);
}

static void test_time_of_a_slow_env_is_the_envs(void **state)
{
    (void)state;
    WORLD w = world_open("CartPole-v1", 8, false);
    s_quick = w.env;
    tt_env_ops_t slow = *s_quick;
    slow.step = s_slow_step;
    slow.step_many = NULL;
    w.env = &slow;
    s_looks = tt_clock_fake(1);
    s_looks.now_ns = s_look;
    w.clock = &s_looks;
    ROLLOUT *rollout = world_rollout(&w, 0, 8);
    assert_true(rollout_env_share(rollout) == 0.5); /* not known yet */
    PLAYED segment = played_one(rollout, UINT32_MAX);
    (void)segment; /* played, and closed at the end */
    assert_true(rollout_env_share(rollout) > 0.99 && rollout_env_share(rollout) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_plain_way),
        cmocka_unit_test(test_a_segment_has_what_its_stacks_show),
        cmocka_unit_test(test_what_is_carried),
        cmocka_unit_test(test_ranges_and_slices_do_not_matter),
        cmocka_unit_test(test_several_segments_are_the_one),
        cmocka_unit_test(test_saved_states_continue_elsewhere),
        cmocka_unit_test(test_damaged_frames),
        cmocka_unit_test(test_damaged_carry),
        cmocka_unit_test(test_epsilon_0_and_1),
        cmocka_unit_test(test_random_rows_are_the_jobs),
        cmocka_unit_test(test_every_row_truncated),
        cmocka_unit_test(test_abandoned_batch_leaves_no_trace),
        cmocka_unit_test(test_diverged_policy_is_an_error),
        cmocka_unit_test(test_net_must_fit_the_env),
        cmocka_unit_test(test_net_must_carry_what_the_job_does),
        cmocka_unit_test(test_net_must_have_an_actor_and_a_critic),
        cmocka_unit_test(test_frames_outlive_the_pool),
        cmocka_unit_test(test_time_of_a_slow_env_is_the_envs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
