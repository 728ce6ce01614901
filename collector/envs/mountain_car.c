/*  mountain_car - MountainCar-v0: an engine too weak for the hill must swing up to the flag.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/mountain_car.py (MIT); double throughout. */
#include "collector/envs/envs.h"
#include <math.h>
#include <string.h>

typedef struct {
    double position, velocity;
    double goal_velocity; /* an argument: how fast it must be at the flag */
    double zero;          /* fills the state up to a multiple of 16 bytes */
} mountain_car_t;

enum { SAVED = 2 * sizeof(double) }; /* position and velocity; the rest is the config's */

static const double s_left = -1.2, s_right = 0.6, s_top_speed = 0.07, s_goal = 0.5;
static const double s_force = 0.001, s_gravity = 0.0025;

static inline double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static inline void observe(const mountain_car_t *self, float *obs)
{
    obs[0] = (float)self->position;
    obs[1] = (float)self->velocity;
}

static inline bool move(mountain_car_t *self, int32_t action, float *obs)
{
    double velocity = self->velocity + ((action - 1) * s_force + cos(3 * self->position) * -s_gravity);
    velocity = clip(velocity, -s_top_speed, s_top_speed);
    const double position = clip(self->position + velocity, s_left, s_right);
    if (position == s_left && velocity < 0)
        velocity = 0; /* the left wall stops it */
    self->position = position;
    self->velocity = velocity;
    observe(self, obs);
    return position >= s_goal && velocity >= self->goal_velocity;
}

static const char *s_mountain_car_init(void *state, const tt_env_arg_t *args)
{
    mountain_car_t *self = state;
    self->goal_velocity = tt_env_arg_number(args, "goal_velocity", 0.0);
    return isfinite(self->goal_velocity) ? NULL : "goal_velocity must be a number";
}

static void s_mountain_car_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    mountain_car_t *self = state;
    self->position = tt_env_uniform(rng, -0.6, -0.4);
    self->velocity = 0;
    observe(self, out->obs[0]);
}

static void s_mountain_car_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    out->reward = -1.0;
    out->terminated = move(state, *(const int32_t *)action[0], out->obs[0]);
}

static void s_mountain_car_step_many(void *states, uint32_t count, const void *const *action, const tt_env_many_t *out)
{
    mountain_car_t *self = states;
    const int32_t *push = action[0];
    float *obs = out->obs[0];
    for (uint32_t i = 0; i < count; i++) {
        out->terminated[i] = move(&self[i], push[i], obs + 2 * (size_t)i);
        out->reward[i] = -1.0f;
    }
}

static void s_mountain_car_save(const void *state, void *bytes)
{
    memcpy(bytes, state, SAVED);
}

static int s_mountain_car_load(void *state, const void *bytes)
{
    memcpy(state, bytes, SAVED);
    return 0;
}

static const double s_low[2] = {-1.2, -0.07}, s_high[2] = {0.6, 0.07};
static const int64_t s_actions[] = {3};
static const tt_env_option_t s_options[] = {
    {"goal_velocity", "0", "how fast the car must be at the flag, in units a step (its top speed is 0.07)"},
    {0},
};

const tt_env_ops_t tt_env_mountain_car = {
    .abi = TT_ENV_ABI,
    .id = "MountainCar-v0",
    .summary = "swing a weak car up a hill: left, coast or right",
    .obs = TT_BOX(2, s_low, s_high),
    .action = TT_CHOICES(s_actions),
    .options = s_options,
    .reward_threshold = -110.0,
    .max_episode_steps = 200,
    .state_size = sizeof(mountain_car_t),
    .init = s_mountain_car_init,
    .plain = true,
    .reset = s_mountain_car_reset,
    .step = s_mountain_car_step,
    .step_many = s_mountain_car_step_many,
    .save_size = SAVED,
    .save = s_mountain_car_save,
    .load = s_mountain_car_load,
};
