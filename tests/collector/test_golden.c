/*  The native envs against Gymnasium's own steps (tests/golden/gymnasium/record.py): every step from its recorded state,
 *  next state, observation, reward and end, bit for bit; with the arguments that an env takes, too. Those without velocities
 *  observe what Gymnasium's env does times the mask of RL Baselines3 Zoo's MaskVelocityWrapper.
 *
 *  The envs call libm's sin, cos, pow and powf, whose last bits are not fixed by any standard: another libm, or glibc's
 *  variant for a CPU without FMA, may round a few results the other way. libm.bin tells: where this libm gives the
 *  recording one's bits, equality is asked for; elsewhere 1e-12 in double and one unit of float32 in observations. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/registry.h"
#include "common/base/buf.h"
#include "tests/test.h"

#define DIR TT_SOURCE_DIR "/tests/golden/gymnasium/"

typedef struct {
    tt_buf_t file;
    uint32_t rows, starts, state_n, obs_n, action_n;
    const uint8_t *start, *terminated;
    const double *states, *next, *reward;
    const void *action;
    const float *obs;
} golden_t;

static const void *take(const golden_t *g, size_t *at, size_t size)
{
    const void *block = g->file.data + *at;
    *at += (size + 7) & ~(size_t)7;
    assert_true(*at <= g->file.size);
    return block;
}

static void open_golden(golden_t *g, const char *id)
{
    char path[512];
    snprintf(path, sizeof path, DIR "%s.bin", id);
    tt_buf_init(&g->file, 4 << 20);
    assert_ok(tt_buf_read_file(&g->file, path));
    assert_memory_equal(g->file.data, "TTGYM\0\0\1", 8);
    const uint32_t *head = (const uint32_t *)(g->file.data + 8);
    g->rows = head[0], g->starts = head[1], g->state_n = head[2], g->obs_n = head[3], g->action_n = head[4];
    assert_true(g->rows >= 2000);
    size_t at = 32;
    const size_t rows = g->rows, doubles = rows * sizeof(double);
    g->start = take(g, &at, rows);
    g->states = take(g, &at, g->starts * g->state_n * sizeof(double));
    g->action = take(g, &at, rows * (g->action_n ? g->action_n : 1) * 4);
    g->next = take(g, &at, doubles * g->state_n);
    g->reward = take(g, &at, doubles);
    g->obs = take(g, &at, rows * g->obs_n * sizeof(float));
    g->terminated = take(g, &at, rows);
    assert_int_equal(at, g->file.size);
}

/*  --- which libm --- */

static void add(uint64_t *sum, uint64_t i, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *sum += bits * (2 * i + 1);
}

static bool libm_is_the_recorded(void)
{
    volatile double two = 2; /* libm's own pow, whatever the envs make of it */
    uint64_t sum[4] = {0};
    for (uint64_t i = 0; i < UINT64_C(1) << 18; i++) {
        const double unit = (double)((i * UINT64_C(0x9E3779B97F4A7C15)) >> 11) * 0x1p-53;
        const double x = i % 2 == 0 ? unit * 20 - 10 : unit - 0.5;
        add(&sum[0], i, sin(x));
        add(&sum[1], i, cos(x));
        add(&sum[2], i, pow(x, two));
        add(&sum[3], i, (double)powf((float)x, (float)two));
    }
    tt_buf_t file;
    tt_buf_init(&file, 64);
    assert_ok(tt_buf_read_file(&file, DIR "libm.bin"));
    assert_int_equal(file.size, sizeof sum);
    const bool same = memcmp(file.data, sum, sizeof sum) == 0;
    tt_buf_free(&file);
    return same;
}

/*  --- one env --- */

static bool near_f64(double a, double b, bool exact)
{
    if (exact)
        return memcmp(&a, &b, sizeof a) == 0;
    return fabs(a - b) <= 1e-12 * fmax(1, fabs(b));
}

static bool near_f32(float a, float b, bool exact)
{
    if (exact)
        return memcmp(&a, &b, sizeof a) == 0;
    return fabsf(a - b) <= FLT_EPSILON * fmaxf(1, fabsf(b));
}

static void compare(const golden_t *g, const char *id, uint32_t row, bool exact, const double *state, const float *obs,
    double reward, bool terminated)
{
    for (uint32_t k = 0; k < g->state_n; k++) {
        const double expected = g->next[(size_t)row * g->state_n + k];
        if (!near_f64(state[k], expected, exact))
            fail_msg("%s, row %u: state[%u] is %a, Gymnasium's %a", id, row, k, state[k], expected);
    }
    for (uint32_t k = 0; k < g->obs_n; k++) {
        const float expected = g->obs[(size_t)row * g->obs_n + k];
        if (!near_f32(obs[k], expected, exact))
            fail_msg("%s, row %u: obs[%u] is %a, Gymnasium's %a", id, row, k, (double)obs[k], (double)expected);
    }
    if (!near_f64(reward, g->reward[row], exact))
        fail_msg("%s, row %u: reward is %a, Gymnasium's %a", id, row, reward, g->reward[row]);
    if (terminated != (g->terminated[row] != 0))
        fail_msg("%s, row %u: terminated is %d, Gymnasium's %d", id, row, terminated, g->terminated[row]);
}

enum { BATCH = 100, MOST_STATE = 64, MOST_OBS = 8 };

/*  One step of one env. */
static tt_env_out_t step_one(const tt_env_ops_t *ops, void *state, const void *action, float *obs)
{
    void *leaf = obs;
    tt_env_out_t out = {.obs = &leaf};
    ops->step(state, &action, NULL, &out);
    return out;
}

/*  A native env's state begins with the doubles that the recording lists. */
static void step_each(const golden_t *g, const tt_env_ops_t *ops, const char *states, uint32_t row, uint32_t count,
    const char *action, size_t action_size, bool exact)
{
    for (uint32_t i = 0; i < count; i++) {
        _Alignas(16) char state[MOST_STATE];
        float obs[MOST_OBS];
        memcpy(state, states + i * ops->state_size, ops->state_size);
        const tt_env_out_t out = step_one(ops, state, action + i * action_size, obs);
        compare(g, ops->id, row + i, exact, (const double *)state, obs, out.reward, out.terminated);
    }
}

/*  The same rows in one call: vector code, where the compiler made some. */
static void step_together(const golden_t *g, const tt_env_ops_t *ops, char *states, uint32_t row, uint32_t count,
    const char *action, bool exact)
{
    float obs[BATCH * MOST_OBS], reward[BATCH];
    uint8_t terminated[BATCH] = {0}, truncated[BATCH] = {0};
    void *leaf = obs;
    const void *actions = action;
    const tt_env_many_t out = {.obs = &leaf, .reward = reward, .terminated = terminated, .truncated = truncated};
    ops->step_many(states, count, &actions, &out);
    for (uint32_t i = 0; i < count; i++)
        compare(g, ops->id, row + i, exact, (const double *)(states + i * ops->state_size), obs + i * g->obs_n,
            (double)reward[i], terminated[i]);
}

/*  As NumPy multiplies float32. */
static void hide(golden_t *g, const float *mask)
{
    float *obs = (float *)(uintptr_t)g->obs; /* of the file's bytes, which are ours */
    for (size_t i = 0; i < (size_t)g->rows * g->obs_n; i++)
        obs[i] = obs[i] * mask[i % g->obs_n];
}

/*  `key`: NULL, or an argument that the recorded env was made with; the file is called after it. `of`, `mask`: NULL, or the recorded env,
 *  whose observations are multiplied. */
static void check_env(const char *id, const char *of, const float *mask, const char *key, const char *value, bool exact)
{
    golden_t g = {0};
    const tt_env_ops_t *ops = NULL;
    const tt_env_arg_t args[] = {{key, value}, {0}};
    char file[64];
    snprintf(file, sizeof file, key ? "%s.%s=%s" : "%s", of ? of : id, key, value);
    open_golden(&g, file);
    if (mask)
        hide(&g, mask);
    assert_ok(tt_env_find(&ops, id));
    assert_int_equal(ops->obs.shape[0], g.obs_n);
    assert_int_equal(ops->action.kind, g.action_n ? TT_SPACE_BOX : TT_SPACE_DISCRETE);
    assert_true(ops->state_size <= MOST_STATE && g.state_n * sizeof(double) <= ops->state_size && g.obs_n <= MOST_OBS);
    const size_t size = g.action_n ? g.action_n * 4 : 4;
    uint32_t start = 0;
    for (uint32_t row = 0; row < g.rows; row += BATCH) {
        _Alignas(16) char states[BATCH * MOST_STATE] = {0};
        const uint32_t count = g.rows - row < BATCH ? g.rows - row : BATCH;
        const char *action = (const char *)g.action + row * size;
        for (uint32_t i = row; i < row + count; i++) {
            const double *from = g.start[i] ? g.states + (size_t)g.state_n * start : g.next + (i - 1) * g.state_n;
            start += g.start[i];
            if (ops->init)
                assert_null(ops->init(states + (i - row) * ops->state_size, args));
            memcpy(states + (i - row) * ops->state_size, from, g.state_n * sizeof(double));
        }
        step_each(&g, ops, states, row, count, action, size, exact);
        if (ops->step_many)
            step_together(&g, ops, states, row, count, action, exact);
    }
    assert_int_equal(start, g.starts);
    tt_buf_free(&g.file);
}

static bool s_exact;

static int find_libm(void **state)
{
    (void)state;
    s_exact = libm_is_the_recorded();
    print_message("libm: %s\n", s_exact ? "the recording's; equal bits required" : "another; 1e-12 allowed");
    return 0;
}

#define ENV_TEST(name, id, key, value)                  \
    static void test_##name(void **state)               \
    {                                                   \
        (void)state;                                    \
        check_env(id, NULL, NULL, key, value, s_exact); \
    }
ENV_TEST(cartpole, "CartPole-v1", NULL, NULL)
ENV_TEST(acrobot, "Acrobot-v1", NULL, NULL)
ENV_TEST(mountain_car, "MountainCar-v0", NULL, NULL)
ENV_TEST(continuous_mountain_car, "MountainCarContinuous-v0", NULL, NULL)
ENV_TEST(pendulum, "Pendulum-v1", NULL, NULL)
ENV_TEST(mountain_car_fast, "MountainCar-v0", "goal_velocity", "0.03")
ENV_TEST(continuous_mountain_car_fast, "MountainCarContinuous-v0", "goal_velocity", "0.03")
ENV_TEST(pendulum_light, "Pendulum-v1", "g", "1.62")

static const float s_cartpole_mask[4] = {1, 0, 1, 0}, s_pendulum_mask[3] = {1, 1, 0};

#define NO_VEL_TEST(name, id, of, mask, key, value)   \
    static void test_##name(void **state)             \
    {                                                 \
        (void)state;                                  \
        check_env(id, of, mask, key, value, s_exact); \
    }
NO_VEL_TEST(cartpole_no_vel, "CartPoleNoVel-v1", "CartPole-v1", s_cartpole_mask, NULL, NULL)
NO_VEL_TEST(pendulum_no_vel, "PendulumNoVel-v1", "Pendulum-v1", s_pendulum_mask, NULL, NULL)
NO_VEL_TEST(pendulum_no_vel_light, "PendulumNoVel-v1", "Pendulum-v1", s_pendulum_mask, "g", "1.62")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cartpole),
        cmocka_unit_test(test_acrobot),
        cmocka_unit_test(test_mountain_car),
        cmocka_unit_test(test_continuous_mountain_car),
        cmocka_unit_test(test_pendulum),
        cmocka_unit_test(test_mountain_car_fast),
        cmocka_unit_test(test_continuous_mountain_car_fast),
        cmocka_unit_test(test_pendulum_light),
        cmocka_unit_test(test_cartpole_no_vel),
        cmocka_unit_test(test_pendulum_no_vel),
        cmocka_unit_test(test_pendulum_no_vel_light),
    };
    return cmocka_run_group_tests(tests, find_libm, NULL);
}
