/*  vec: limits, autoreset, counters, save and load, and what it refuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "tests/collector/load.h"
#include "tests/collector/range.h"

/*  A toy whose every number can be told by hand: the state counts up by one a step; the action is added to the reward.
 *  An episode is terminated when the count reaches s_end, and cut by the env itself at s_cut (0 = never). */
typedef struct {
    double count, noise;
} toy_t;

static double s_end, s_cut;
static float s_bad_obs, s_bad_reward;

static void toy_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    toy_t *self = state;
    float *obs = out->obs[0];
    self->count = 0;
    self->noise = tt_env_uniform(rng, 0, 1);
    obs[0] = 0;
    obs[1] = (float)self->noise;
}

static void toy_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    toy_t *self = state;
    float *obs = out->obs[0];
    self->count++;
    self->noise += tt_env_uniform(rng, 0, 1);
    obs[0] = (float)self->count + s_bad_obs;
    obs[1] = (float)self->noise;
    out->reward = (double)*(const float *)action[0] + (double)s_bad_reward;
    out->terminated = s_end != 0 && self->count >= s_end;
    out->truncated = s_cut != 0 && self->count >= s_cut;
}

static const double s_alow[1] = {-1}, s_ahigh[1] = {2};
static const tt_env_ops_t s_toy = {
    .abi = TT_ENV_ABI,
    .id = "Toy-v0",
    .summary = "counts",
    .obs = TT_BOX(2, NULL, NULL),
    .action = TT_BOX(1, s_alow, s_ahigh),
    .reward_threshold = NAN,
    .max_episode_steps = 5,
    .state_size = sizeof(toy_t),
    .reset = toy_reset,
    .step = toy_step,
};

static int setup(void **state)
{
    (void)state;
    s_end = s_cut = 0;
    s_bad_obs = s_bad_reward = 0;
    return 0;
}

typedef struct {
    float action[8], reward[8];
    uint8_t terminated[8], truncated[8];
} io_t;

static tt_status_t step(const range_t *range, io_t *io)
{
    return range_step(range, io->action, io->reward, io->terminated, io->truncated);
}

static void test_time_limit_truncates_and_resets_in_the_same_step(void **state)
{
    (void)state;
    io_t io = {0};
    RANGE range = range_open(&s_toy, 1, 0, 2);
    const float first = range_obs(&range)[1];
    for (int t = 1; t <= 5; t++) {
        assert_int_equal(tt_vec_clock(range.vec, 0), t - 1);
        assert_ok(step(&range, &io));
        assert_int_equal(io.truncated[0], t == 5);
        assert_int_equal(io.terminated[0], 0);
        assert_true(range_obs(&range)[0] == (t == 5 ? 0 : (float)t));
    }
    assert_true(*(const float *)tt_vec_final(range.vec, 1, 0) == 5); /* where the episode stood */
    assert_true(range_obs(&range)[1] != first);                      /* another episode, another start */
    assert_int_equal(tt_vec_clock(range.vec, 0), 5);                 /* goes on across episodes */
}

/*  An env that begins anew in a run that is under way: its draws and episodes are none of those that were. */
static void test_envs_that_begin_later(void **state)
{
    (void)state;
    io_t io = {0};
    RANGE first = range_open(&s_toy, 1, 0, 1);
    RANGE later = {0};
    assert_ok(range_try(&later, &s_toy, NULL, (tt_vec_cfg_t){.seed = 1, .count = 1, .clock = 12}));
    assert_int_equal(tt_vec_clock(later.vec, 0), 12);
    assert_int_equal(tt_vec_age(later.vec, 0), 0);
    const float start = range_obs(&later)[1];
    for (int t = 0; t < 12; t++) { /* two episodes and a bit: starts 0, 1 and 2 */
        assert_true(range_obs(&first)[1] != start);
        assert_int_equal(tt_vec_age(first.vec, 0), t % 5);
        assert_ok(step(&first, &io));
    }
    assert_ok(step(&later, &io));
    assert_int_equal(tt_vec_clock(later.vec, 0), 13);
    assert_int_equal(tt_vec_age(later.vec, 0), 1);
}

static void test_termination_is_not_truncation(void **state)
{
    (void)state;
    io_t io = {0};
    s_end = 3;
    RANGE range = range_open(&s_toy, 1, 0, 1);
    for (int t = 1; t <= 3; t++) {
        assert_ok(step(&range, &io));
        assert_int_equal(io.terminated[0], t == 3);
        assert_int_equal(io.truncated[0], 0);
    }
    s_end = 5; /* both at once: both are said */
    for (int t = 1; t <= 5; t++)
        assert_ok(step(&range, &io));
    assert_int_equal(io.terminated[0], 1);
    assert_int_equal(io.truncated[0], 1);
}

/*  A cut of the env's own, at the very first step as well: the next episode begins, and what it was cut at is kept. */
static void test_an_env_may_cut_its_episode(void **state)
{
    (void)state;
    io_t io = {0};
    RANGE range = range_open(&s_toy, 1, 0, 2);
    s_cut = 1;
    for (int t = 0; t < 3; t++) {
        assert_ok(step(&range, &io));
        assert_true(io.truncated[0] == 1 && io.terminated[0] == 0);
        assert_true(*(const float *)tt_vec_final(range.vec, 1, 0) == 1);
        assert_int_equal(tt_vec_age(range.vec, 0), 0);
    }
    s_cut = 6; /* the limit of 5 comes before it */
    for (int t = 1; t <= 5; t++)
        assert_ok(step(&range, &io));
    assert_int_equal(io.truncated[0], 1);
}

static void test_actions_are_clipped_to_the_box(void **state)
{
    (void)state;
    io_t io = {.action = {-7, 0.5f, INFINITY}};
    RANGE range = range_open(&s_toy, 1, 0, 3);
    assert_ok(step(&range, &io));
    assert_true(io.reward[0] == -1 && io.reward[1] == 0.5f && io.reward[2] == 2);
    assert_true(io.action[0] == -7); /* the caller's is left alone */
    io.action[1] = NAN;
    assert_int_equal(step(&range, &io), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "env 1 of Toy-v0"));
}

/*  Numbers in double, each with bounds of its own. */
static const double s_low[2] = {-3, 10}, s_high[2] = {-1, 10.5};
static double s_seen[2];

static void wide_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    memcpy(s_seen, action[0], sizeof s_seen);
    const float none = 0;
    const void *const nothing = &none;
    toy_step(state, &nothing, rng, out);
}

static tt_env_ops_t s_wide(void)
{
    tt_env_ops_t ops = s_toy;
    ops.id = "Wide-v0";
    ops.action =
        (tt_space_t){.kind = TT_SPACE_BOX, .dtype = TT_F64, .rank = 1, .shape = {2}, .low = s_low, .high = s_high};
    ops.step = wide_step;
    return ops;
}

static range_t squashed(const tt_env_ops_t *ops, uint32_t count)
{
    range_t self;
    assert_ok(range_try(&self, ops, NULL, (tt_vec_cfg_t){.seed = 1, .count = count, .squash = true}));
    return self;
}

/*  0 is the middle, and nothing lies beyond the bounds, which what is far away comes to within a millionth. */
static void test_actions_are_squashed_onto_the_box(void **state)
{
    (void)state;
    io_t io = {.action = {0, 0.5f, -0.5f, INFINITY, -1e30f}};
    RANGE range = squashed(&s_toy, 5);
    assert_ok(step(&range, &io));
    assert_true(io.reward[0] == 0.5f && io.reward[3] <= 2 && io.reward[4] >= -1);
    for (int i = 1; i <= 4; i++)
        assert_true(fabs((double)io.reward[i] - (0.5 + 1.5 * tanh((double)io.action[i]))) < 1e-6);
    assert_true(io.action[4] == -1e30f); /* the caller's is left alone */
    io.action[1] = NAN;
    assert_int_equal(step(&range, &io), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "env 1 of Toy-v0 is not a number"));
}

static void test_each_number_is_squashed_onto_its_own_bounds(void **state)
{
    (void)state;
    io_t io = {.action = {1, -2}};
    const tt_env_ops_t ops = s_wide();
    RANGE range = squashed(&ops, 1);
    assert_ok(step(&range, &io));
    assert_true(fabs(s_seen[0] - (-2 + tanh(1.0))) < 1e-6 && fabs(s_seen[1] - (10.25 + 0.25 * tanh(-2.0))) < 1e-6);
    for (float far = 4; far < 1e30f; far *= 3) {
        io.action[0] = far;
        io.action[1] = -far;
        assert_ok(step(&range, &io));
        assert_true(s_seen[0] <= -1 && s_seen[0] >= -1.01 && s_seen[1] >= 10 && s_seen[1] < 10.01);
    }
}

static void refuse_squash(const tt_env_ops_t *ops, const char *words)
{
    RANGE range;
    assert_int_equal(range_try(&range, ops, NULL, (tt_vec_cfg_t){.seed = 1, .count = 1, .squash = true}), TT_CONFIG);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' lacks '%s'", tt_err_text(), words);
}

static void test_what_cannot_be_squashed(void **state)
{
    (void)state;
    static const double high[2] = {-1, INFINITY};
    const tt_env_ops_t *cartpole = NULL;
    tt_env_ops_t ops = s_wide();
    ops.action.high = high;
    refuse_squash(&ops, "element 1 of a box of Wide-v0's action has no bounds");
    ops.action.low = ops.action.high = NULL;
    refuse_squash(&ops, "element 0 of a box of Wide-v0's action has no bounds");
    assert_ok(tt_env_find(&cartpole, "CartPole-v1"));
    refuse_squash(cartpole, "there is no box in CartPole-v1's action");
}

static void test_a_choice_out_of_range_is_refused(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = NULL;
    int32_t action[2] = {1, 2};
    float reward[2];
    uint8_t terminated[2], truncated[2];
    assert_ok(tt_env_find(&ops, "CartPole-v1"));
    RANGE range = range_open(ops, 1, 0, 2);
    assert_int_equal(range_step(&range, action, reward, terminated, truncated), TT_INVALID);
    action[1] = -1;
    assert_int_equal(range_step(&range, action, reward, terminated, truncated), TT_INVALID);
}

static void test_what_is_not_finite_is_named(void **state)
{
    (void)state;
    io_t io = {0};
    RANGE range = range_open(&s_toy, 1, 40, 2);
    s_bad_obs = INFINITY;
    assert_int_equal(step(&range, &io), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "Toy-v0: observation[0] of env 40"));
    s_bad_obs = 0;
    s_bad_reward = NAN;
    assert_int_equal(step(&range, &io), TT_INTERNAL);
    assert_non_null(strstr(tt_err_text(), "Toy-v0: reward"));
    s_bad_reward = 1e38f * 1e38f;
    assert_int_equal(step(&range, &io), TT_INTERNAL);
}

/*  Any cut of the ids gives the same bits: env e is a function of (seed, e) alone. */
static void test_a_range_is_a_part_of_the_whole(void **state)
{
    (void)state;
    io_t a = {0}, b = {0};
    RANGE whole = range_open(&s_toy, 7, 0, 8);
    RANGE part = range_open(&s_toy, 7, 3, 2);
    for (int t = 0; t < 23; t++) {
        assert_ok(step(&whole, &a));
        assert_ok(step(&part, &b));
        assert_memory_equal(range_obs(&part), range_obs(&whole) + 3 * 2, 2 * 2 * sizeof(float));
    }
    assert_true(range_obs(&whole)[1] != range_obs(&whole)[3]); /* and the envs differ */
}

static void fill_actions(const tt_env_ops_t *ops, void *action, uint32_t lo, uint32_t count, uint32_t t)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t h = ((lo + i) * 2654435761u) ^ (t * 40503u) ^ (t << 13);
        if (ops->action.kind == TT_SPACE_DISCRETE)
            ((int32_t *)action)[i] = (int32_t)((h >> 7) % (uint64_t)ops->action.n[0]);
        else
            ((float *)action)[i] = (float)(h % 1000) / 200.0f - 2.5f;
    }
}

/*  Moves envs 2..4 of 6 into a range of their own in mid-episode, then goes on with both: the same bits, past resets. */
static void check_move(const tt_env_ops_t *ops)
{
    enum { N = 6, LO = 2, M = 3, BEFORE = 137, AFTER = 1200 };
    void *action = calloc(N, sizeof(float)); /* every env here has an action of one number */
    float reward[N], reward_moved[M];
    uint8_t end[2][N], end_moved[2][M];
    const size_t size = tt_vec_save_size(ops, 1);
    char *bytes = malloc(size + 1); /* at an odd address */
    assert_true(size > 0);
    RANGE whole = range_open(ops, 99, 0, N);
    RANGE moved = range_open(ops, 99, LO, M);
    const size_t row = whole.columns->at[0].bytes;
    for (uint32_t t = 0; t < BEFORE; t++) {
        fill_actions(ops, action, 0, N, t);
        assert_ok(range_step(&whole, action, reward, end[0], end[1]));
    }
    for (uint32_t i = 0; i < M; i++) {
        tt_vec_save(whole.vec, LO + i, bytes + 1);
        assert_ok(vec_load(moved.vec, i, bytes + 1));
        assert_int_equal(tt_vec_clock(moved.vec, i), BEFORE);
    }
    for (uint32_t t = BEFORE; t < BEFORE + AFTER; t++) {
        assert_memory_equal(range_obs(&moved), (const char *)range_obs(&whole) + LO * row, M * row);
        fill_actions(ops, action, 0, N, t);
        assert_ok(range_step(&whole, action, reward, end[0], end[1]));
        fill_actions(ops, action, LO, M, t);
        assert_ok(range_step(&moved, action, reward_moved, end_moved[0], end_moved[1]));
        assert_memory_equal(reward_moved, reward + LO, sizeof reward_moved);
        assert_memory_equal(end_moved[0], end[0] + LO, M);
        assert_memory_equal(end_moved[1], end[1] + LO, M);
    }
    free(bytes);
    free(action);
}

static void test_a_moved_range_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    check_move(&s_toy);
    for (size_t i = 0; i < count; i++)
        check_move(envs[i]);
}

static void test_foreign_and_damaged_states_are_refused(void **state)
{
    (void)state;
    unsigned char good[256], bad[256];
    const size_t size = tt_vec_save_size(&s_toy, 1);
    assert_true(size <= sizeof good);
    RANGE range = range_open(&s_toy, 1, 0, 1);
    tt_vec_save(range.vec, 0, good);
    static const size_t at[] = {
        0, 4, 15, 31, 28, 35}; /* magic, env, clock, steps, columns, an observation's exponent */
    for (size_t k = 0; k < TT_COUNT(at); k++) {
        memcpy(bad, good, size);
        bad[at[k]] ^= 0xff;
        if (at[k] == 35)
            memcpy(bad + 32, &(uint32_t){0x7fc00000}, 4);
        assert_int_equal(vec_load(range.vec, 0, bad), TT_DATA);
        assert_non_null(strstr(tt_err_text(), "Toy-v0"));
    }
    assert_ok(vec_load(range.vec, 0, good));
    tt_env_ops_t other = s_toy;
    other.id = "Toy-v1";
    RANGE second = range_open(&other, 1, 0, 1);
    assert_int_equal(vec_load(second.vec, 0, good), TT_DATA);
}

/*  A state as it was saved before there were columns: the elements of the observation stand where now its columns' hash does. */
static void test_states_of_the_first_form_are_taken(void **state)
{
    (void)state;
    enum { MAGIC_AT = 3, COLUMNS_AT = 28 };
    char bytes[256], after[256];
    io_t io = {0};
    RANGE a = range_open(&s_toy, 1, 0, 1);
    RANGE b = range_open(&s_toy, 1, 0, 1);
    for (int t = 0; t < 7; t++)
        assert_ok(step(&a, &io));
    tt_vec_save(a.vec, 0, bytes);
    assert_memory_equal(bytes, "TTE2", 4);
    bytes[MAGIC_AT] = '1';
    memcpy(bytes + COLUMNS_AT, &(uint32_t){3}, 4);
    assert_int_equal(vec_load(b.vec, 0, bytes), TT_DATA);
    memcpy(bytes + COLUMNS_AT, &(uint32_t){2}, 4);
    assert_ok(vec_load(b.vec, 0, bytes));
    tt_vec_save(a.vec, 0, bytes);
    tt_vec_save(b.vec, 0, after);
    assert_memory_equal(bytes, after, tt_vec_save_size(&s_toy, 1));
}

/*  step_many and step are two ways to say the same. */
static void test_step_many_equals_step(void **state)
{
    (void)state;
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    for (size_t e = 0; e < count; e++) {
        tt_env_ops_t plain = *envs[e];
        plain.step_many = NULL;
        io_t a = {0}, b = {0};
        RANGE many = range_open(envs[e], 5, 0, 8);
        RANGE each = range_open(&plain, 5, 0, 8);
        for (uint32_t t = 0; t < 2000; t++) {
            fill_actions(envs[e], a.action, 0, 8, t);
            memcpy(b.action, a.action, sizeof a.action);
            assert_ok(step(&many, &a));
            assert_ok(step(&each, &b));
            assert_memory_equal(&a, &b, sizeof a);
            assert_memory_equal(range_obs(&many), range_obs(&each), 8 * envs[e]->obs.shape[0] * sizeof(float));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_time_limit_truncates_and_resets_in_the_same_step, setup),
        cmocka_unit_test_setup(test_envs_that_begin_later, setup),
        cmocka_unit_test_setup(test_termination_is_not_truncation, setup),
        cmocka_unit_test_setup(test_an_env_may_cut_its_episode, setup),
        cmocka_unit_test_setup(test_actions_are_clipped_to_the_box, setup),
        cmocka_unit_test_setup(test_actions_are_squashed_onto_the_box, setup),
        cmocka_unit_test_setup(test_each_number_is_squashed_onto_its_own_bounds, setup),
        cmocka_unit_test_setup(test_what_cannot_be_squashed, setup),
        cmocka_unit_test_setup(test_a_choice_out_of_range_is_refused, setup),
        cmocka_unit_test_setup(test_what_is_not_finite_is_named, setup),
        cmocka_unit_test_setup(test_a_range_is_a_part_of_the_whole, setup),
        cmocka_unit_test_setup(test_a_moved_range_goes_on_with_the_same_bits, setup),
        cmocka_unit_test_setup(test_foreign_and_damaged_states_are_refused, setup),
        cmocka_unit_test_setup(test_states_of_the_first_form_are_taken, setup),
        cmocka_unit_test_setup(test_step_many_equals_step, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
