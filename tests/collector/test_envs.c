/*  The tables of the native envs against Gymnasium's registry and spaces (tests/golden/gymnasium/specs.txt), where their
 *  episodes begin, and finding them by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "collector/registry.h"
#include "tests/collector/load.h"
#include "tests/collector/range.h"

/*  --- spaces, limits, thresholds --- */

static void check_line(const char *line, const tt_env_ops_t **ops, uint32_t *obs, uint32_t *push)
{
    char id[64];
    unsigned limit;
    double threshold;
    float low, high;
    if (sscanf(line, "env %63s %u %lf", id, &limit, &threshold) == 3) {
        assert_ok(tt_env_find(ops, id));
        *obs = *push = 0;
        assert_int_equal((*ops)->max_episode_steps, limit);
        assert_true(isnan(threshold) ? isnan((*ops)->reward_threshold) : (*ops)->reward_threshold == threshold);
    } else if (sscanf(line, "obs %f %f", &low, &high) == 2) {
        assert_true(*obs < (*ops)->obs.shape[0]);
        assert_true((float)(*ops)->obs.low[*obs] == low && (float)(*ops)->obs.high[*obs] == high);
        ++*obs;
    } else if (sscanf(line, "action %u", &limit) == 1) {
        assert_int_equal((*ops)->action.kind, TT_SPACE_DISCRETE);
        assert_int_equal((*ops)->action.n[0], limit);
        assert_int_equal(*obs, (*ops)->obs.shape[0]);
    } else {
        assert_int_equal(sscanf(line, "push %f %f", &low, &high), 2);
        assert_int_equal((*ops)->action.kind, TT_SPACE_BOX);
        assert_true((float)(*ops)->action.low[*push] == low && (float)(*ops)->action.high[*push] == high);
        assert_int_equal(++*push, (*ops)->action.shape[0]);
        assert_int_equal(*obs, (*ops)->obs.shape[0]);
    }
}

static void test_tables_say_what_gymnasium_says(void **state)
{
    (void)state;
    FILE *file = fopen(TT_SOURCE_DIR "/tests/golden/gymnasium/specs.txt", "r");
    assert_non_null(file);
    char line[256];
    const tt_env_ops_t *ops = NULL;
    uint32_t obs = 0, push = 0, lines = 0;
    for (; fgets(line, sizeof line, file); lines++)
        check_line(line, &ops, &obs, &push);
    fclose(file);
    assert_true(lines >= 5 * 3);
}

/*  But for its id, its words and what it shows. */
static void test_without_velocities_it_is_the_same(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"CartPole-v1", "CartPoleNoVel-v1"}, {"Pendulum-v1", "PendulumNoVel-v1"}};
    for (size_t i = 0; i < TT_COUNT(pairs); i++) {
        const tt_env_ops_t *all = NULL, *less = NULL;
        assert_ok(tt_env_find(&all, pairs[i][0]));
        assert_ok(tt_env_find(&less, pairs[i][1]));
        assert_memory_equal(&less->obs, &all->obs, sizeof all->obs);
        assert_memory_equal(&less->action, &all->action, sizeof all->action);
        assert_memory_equal(&less->reward_threshold, &all->reward_threshold, sizeof all->reward_threshold);
        assert_int_equal(less->max_episode_steps, all->max_episode_steps);
        assert_int_equal(less->state_size, all->state_size);
        assert_int_equal(less->save_size, all->save_size);
        assert_true(less->options == all->options && less->init == all->init && less->plain == all->plain);
        assert_true(less->save == all->save && less->load == all->load && !less->step_many == !all->step_many);
    }
}

/*  --- resets --- */

typedef struct {
    const char *id;
    uint32_t n; /* doubles of the state that are drawn or fixed */
    double low[4], high[4];
    uint32_t hidden; /* bits of the numbers that the observation hides */
} start_t;

/*  Gymnasium 1.4.0: the bounds of each env's reset(). */
static const start_t s_starts[] = {
    {"CartPole-v1", 4, {-0.05, -0.05, -0.05, -0.05}, {0.05, 0.05, 0.05, 0.05}, 0},
    {"Acrobot-v1", 4, {-0.1, -0.1, -0.1, -0.1}, {0.1, 0.1, 0.1, 0.1}, 0},
    {"MountainCar-v0", 2, {-0.6, 0}, {-0.4, 0}, 0},
    {"MountainCarContinuous-v0", 2, {-0.6, 0}, {-0.4, 0}, 0},
    {"Pendulum-v1", 2, {-3.14159265358979312, -1}, {3.14159265358979312, 1}, 0},
    {"CartPoleNoVel-v1", 4, {-0.05, -0.05, -0.05, -0.05}, {0.05, 0.05, 0.05, 0.05}, 1 << 1 | 1 << 3},
    {"PendulumNoVel-v1", 2, {-3.14159265358979312, -1}, {3.14159265358979312, 1}, 1 << 2},
};

static uint32_t lcg(tt_env_rng_t *rng)
{
    rng->seed = rng->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(rng->seed >> 32);
}

static void check_start(const start_t *start)
{
    enum { TIMES = 2000 };
    _Alignas(16) unsigned char state[256] = {0};
    double sum[4] = {0}, least[4], most[4];
    float obs[16];
    void *leaf = obs;
    const tt_env_ops_t *ops = NULL;
    tt_env_rng_t rng = {.next = lcg, .seed = 5};
    assert_ok(tt_env_find(&ops, start->id));
    for (int t = 0; t < TIMES; t++) {
        ops->reset(state, &rng, &(tt_env_out_t){.obs = &leaf});
        for (uint32_t k = 0; k < start->n; k++) {
            double x;
            memcpy(&x, state + k * sizeof x, sizeof x);
            assert_true(x >= (double)(float)start->low[k] && x <= (double)(float)start->high[k]);
            sum[k] += x;
            least[k] = t ? fmin(least[k], x) : x;
            most[k] = t ? fmax(most[k], x) : x;
        }
        for (uint32_t k = 0; k < ops->obs.shape[0]; k++)
            assert_true(obs[k] >= (float)ops->obs.low[k] && obs[k] <= (float)ops->obs.high[k] &&
                        (!(start->hidden >> k & 1) || obs[k] == 0));
    }
    for (uint32_t k = 0; k < start->n; k++) { /* uniform: reaches both ends, and the mean is in the middle */
        const double width = start->high[k] - start->low[k], middle = (start->high[k] + start->low[k]) / 2;
        assert_true(least[k] <= start->low[k] + 0.01 * width && most[k] >= start->high[k] - 0.01 * width);
        assert_true(fabs(sum[k] / TIMES - middle) <= 0.03 * width);
    }
}

static void test_episodes_begin_where_gymnasiums_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(s_starts); i++)
        check_start(&s_starts[i]);
}

/*  --- names --- */

static void test_a_wrong_name_gets_the_nearest(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = NULL;
    assert_int_equal(tt_env_find(&ops, "CartPole-v0"), TT_NOT_FOUND);
    assert_non_null(strstr(tt_err_text(), "'CartPole-v1'"));
    assert_int_equal(tt_env_find(&ops, "something else entirely"), TT_NOT_FOUND);
    assert_null(strstr(tt_err_text(), "did you mean"));
    assert_null(ops);
}

static void test_ids_are_distinct(void **state)
{
    (void)state;
    size_t count;
    const tt_env_ops_t *const *envs = tt_envs(&count);
    assert_true(count >= 5);
    for (size_t i = 0; i < count; i++) {
        const tt_env_ops_t *ops = NULL;
        assert_ok(tt_env_find(&ops, envs[i]->id));
        assert_ptr_equal(ops, envs[i]);
        assert_true(!ops->step_many || ops->state_size % 16 == 0);
    }
}

/*  Acrobot's angles are wrapped by repeated subtraction: a state far out must not come in. */
static void test_acrobot_refuses_angles_out_of_reach(void **state)
{
    (void)state;
    const tt_env_ops_t *ops = NULL;
    unsigned char bytes[256];
    assert_ok(tt_env_find(&ops, "Acrobot-v1"));
    RANGE range = range_open(ops, 1, 0, 1);
    static const double bad[] = {1e300, -4, INFINITY, NAN};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        tt_vec_save(range.vec, 0, bytes);
        memcpy(bytes + tt_vec_save_size(ops, 1) - 4 * sizeof(double), &bad[i], sizeof(double));
        assert_int_equal(vec_load(range.vec, 0, bytes), TT_DATA);
    }
}

/*  --- arguments --- */

static tt_status_t open_with(range_t *range, const char *id, const char *key, const char *value)
{
    const tt_env_ops_t *ops = NULL;
    const tt_env_arg_t args[] = {{key, value}, {0}};
    assert_ok(tt_env_find(&ops, id));
    return range_try(range, ops, args, (tt_vec_cfg_t){.seed = 1, .count = 1});
}

static void test_an_argument_changes_the_env(void **state)
{
    (void)state;
    float torque = 0, reward[2];
    uint8_t terminated, truncated;
    RANGE earth = {0};
    RANGE moon = {0};
    assert_ok(open_with(&earth, "Pendulum-v1", "g", "10.0"));
    assert_ok(open_with(&moon, "Pendulum-v1", "g", "1.62"));
    assert_memory_equal(range_obs(&earth), range_obs(&moon), 3 * sizeof(float)); /* they begin alike */
    assert_ok(range_step(&earth, &torque, &reward[0], &terminated, &truncated));
    assert_ok(range_step(&moon, &torque, &reward[1], &terminated, &truncated));
    assert_true(range_obs(&earth)[2] != range_obs(&moon)[2]);
    char bytes[256]; /* a state of the one is none of the other */
    tt_vec_save(earth.vec, 0, bytes);
    assert_int_equal(vec_load(moon.vec, 0, bytes), TT_DATA);
}

static void test_a_wrong_argument_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *id, *key, *value, *words;
        tt_status_t status;
    } cases[] = {
        {"Pendulum-v1", "gg", "1", "env.args.gg: Pendulum-v1 has no such argument; it takes g", TT_CONFIG},
        {"MountainCar-v0", "goal.velocity", "1", "did you mean 'goal_velocity'?", TT_CONFIG},
        {"CartPole-v1", "g", "1", "env.args.g: CartPole-v1 takes no arguments", TT_CONFIG},
        {"Pendulum-v1", "g", "much", "init of env 0 failed: g must be a number", TT_INTERNAL},
        {"MountainCar-v0", "goal_velocity", "inf", "goal_velocity must be a number", TT_INTERNAL},
        {"MountainCarContinuous-v0", "goal_velocity", "", "goal_velocity must be a number", TT_INTERNAL},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        RANGE range = {0};
        assert_int_equal(open_with(&range, cases[i].id, cases[i].key, cases[i].value), cases[i].status);
        if (!strstr(tt_err_text(), cases[i].words))
            fail_msg("'%s' lacks '%s'", tt_err_text(), cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_say_what_gymnasium_says),
        cmocka_unit_test(test_without_velocities_it_is_the_same),
        cmocka_unit_test(test_episodes_begin_where_gymnasiums_do),
        cmocka_unit_test(test_a_wrong_name_gets_the_nearest),
        cmocka_unit_test(test_ids_are_distinct),
        cmocka_unit_test(test_an_argument_changes_the_env),
        cmocka_unit_test(test_a_wrong_argument_is_named),
        cmocka_unit_test(test_acrobot_refuses_angles_out_of_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
