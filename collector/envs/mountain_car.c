/*  mountain_car - MountainCar-v0: an engine too weak for the hill must swing up to the flag.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/mountain_car.py (MIT); double throughout. */
#include "collector/envs/envs.h"
#include <math.h>

typedef struct {
    double position, velocity;
} mountain_car_t;

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
    return position >= s_goal && velocity >= 0;
}

static void s_mountain_car_reset(void *state, tt_env_rng_t *rng, float *obs)
{
    mountain_car_t *self = state;
    self->position = tt_env_uniform(rng, -0.6, -0.4);
    self->velocity = 0;
    observe(self, obs);
}

static bool s_mountain_car_step(void *state, const void *action, tt_env_rng_t *rng, float *obs, double *reward)
{
    (void)rng;
    *reward = -1.0;
    return move(state, *(const int32_t *)action, obs);
}

static void s_mountain_car_step_many(
    void *states, uint32_t count, const void *action, float *obs, float *reward, uint8_t *terminated)
{
    mountain_car_t *self = states;
    const int32_t *push = action;
    for (uint32_t i = 0; i < count; i++) {
        terminated[i] = move(&self[i], push[i], obs + 2 * (size_t)i);
        reward[i] = -1.0f;
    }
}

static const float s_low[2] = {-1.2f, -0.07f}, s_high[2] = {0.6f, 0.07f};

const tt_env_ops_t tt_env_mountain_car = {
    .abi = TT_ENV_ABI,
    .id = "MountainCar-v0",
    .summary = "swing a weak car up a hill: left, coast or right",
    .obs = {TT_SPACE_BOX, 2, s_low, s_high},
    .action = {TT_SPACE_DISCRETE, 3, NULL, NULL},
    .reward_threshold = -110.0,
    .max_episode_steps = 200,
    .state_size = sizeof(mountain_car_t),
    .reset = s_mountain_car_reset,
    .step = s_mountain_car_step,
    .step_many = s_mountain_car_step_many,
};
