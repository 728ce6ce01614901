/*  continuous_mountain_car - MountainCarContinuous-v0: the weak car with a throttle; effort costs.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/continuous_mountain_car.py (MIT), under NumPy 2's promotion:
 *          a float32 scalar and a Python float give float32. Gymnasium's state is float64 after a reset and float32
 *          after a step, so the first step of an episode computes the position in double and every other in float. The
 *          throttle's part of the velocity is float in both, the cosine and the reward are double in both. */
#include "collector/envs/envs.h"
#include <math.h>

typedef struct {
    double position, velocity;
    double wide;          /* 1: as after a reset; 0: position and velocity are float's values */
    double goal_velocity; /* an argument: how fast it must be at the flag                     */
} car_t;

static const double s_low[2] = {-1.2, -0.07}, s_high[2] = {0.6, 0.07};
static const double s_push_low[1] = {-1}, s_push_high[1] = {1};
static const tt_env_option_t s_options[] = {
    {"goal_velocity", "0", "how fast the car must be at the flag, in units a step (its top speed is 0.07)"},
    {0},
};

static void s_observe(const car_t *self, float *obs)
{
    obs[0] = (float)self->position;
    obs[1] = (float)self->velocity;
}

static float s_thrust(float push, double slope)
{
    return push * 0.0015f - (float)(0.0025 * cos(slope));
}

static bool s_move_first(car_t *self, float push)
{
    double v = self->velocity + (double)s_thrust(push, 3 * self->position);
    v = v > 0.07 ? 0.07 : v < -0.07 ? -0.07 : v;
    double p = self->position + v;
    p = p > 0.6 ? 0.6 : p < -1.2 ? -1.2 : p;
    if (p == -1.2 && v < 0)
        v = 0;
    self->position = (double)(float)p;
    self->velocity = (double)(float)v;
    return p >= 0.45 && v >= self->goal_velocity;
}

static bool s_move_on(car_t *self, float push)
{
    const float position = (float)self->position;
    float v = (float)self->velocity + s_thrust(push, (double)(3 * position));
    v = v > 0.07f ? 0.07f : v < -0.07f ? -0.07f : v;
    float p = position + v;
    p = p > 0.6f ? 0.6f : p < -1.2f ? -1.2f : p;
    if (p == -1.2f && v < 0)
        v = 0;
    self->position = (double)p;
    self->velocity = (double)v;
    return p >= 0.45f && v >= (float)self->goal_velocity; /* NumPy compares in float */
}

static const char *s_car_init(void *state, const tt_env_arg_t *args)
{
    car_t *self = state;
    self->goal_velocity = tt_env_arg_number(args, "goal_velocity", 0.0);
    return isfinite(self->goal_velocity) ? NULL : "goal_velocity must be a number";
}

static void s_car_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    car_t *self = state;
    self->position = tt_env_uniform(rng, -0.6, -0.4);
    self->velocity = 0;
    self->wide = 1;
    s_observe(self, out->obs[0]);
}

static void s_car_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    car_t *self = state;
    const float push = *(const float *)action[0];
    out->terminated = self->wide != 0 ? s_move_first(self, push) : s_move_on(self, push);
    self->wide = 0;
    s_observe(self, out->obs[0]);
    /* a float's square is exact in double */
    out->reward = (out->terminated ? 100.0 : 0.0) - (double)push * (double)push * 0.1;
}

const tt_env_ops_t tt_env_continuous_mountain_car = {
    .abi = TT_ENV_ABI,
    .id = "MountainCarContinuous-v0",
    .summary = "swing a weak car up a hill by its throttle; effort costs",
    .obs = TT_BOX(2, s_low, s_high),
    .action = TT_BOX(1, s_push_low, s_push_high),
    .options = s_options,
    .reward_threshold = 90.0,
    .max_episode_steps = 999,
    .state_size = sizeof(car_t),
    .init = s_car_init,
    .plain = true,
    .reset = s_car_reset,
    .step = s_car_step,
};
