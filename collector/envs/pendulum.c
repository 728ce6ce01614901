/*  pendulum - Pendulum-v1: swing a pendulum up and hold it there by a limited torque. PendulumNoVel-v1: without seeing how fast it turns.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/pendulum.py (MIT), under NumPy 2's promotion: the state is
 *          double, what is computed from the torque alone is float (a float32 scalar and a Python float give float32). */
#include "collector/envs/envs.h"
#include <math.h>
#include <string.h>
#include "collector/envs/no_vel.h"
#include "collector/envs/numpy.h"

typedef struct {
    double theta, speed; /* rad, 0 = upright, not wrapped; rad/s */
    double g;            /* an argument, m/s^2                   */
} pendulum_t;

enum { SAVED = 2 * sizeof(double) }; /* theta and speed; the rest is the config's */

static const double s_dt = 0.05, s_top_speed = 8;
static const double s_low[3] = {-1, -1, -8}, s_high[3] = {1, 1, 8};
static const double s_torque_low[1] = {-2}, s_torque_high[1] = {2};
static const tt_env_option_t s_options[] = {
    {"g", "10.0", "gravity, in metres a second squared"},
    {0},
};

static void s_observe(const pendulum_t *self, float *obs)
{
    obs[0] = (float)cos(self->theta);
    obs[1] = (float)sin(self->theta);
    obs[2] = (float)self->speed;
}

static const char *s_pendulum_init(void *state, const tt_env_arg_t *args)
{
    pendulum_t *self = state;
    self->g = tt_env_arg_number(args, "g", 10.0);
    return isfinite(self->g) ? NULL : "g must be a number";
}

static void s_pendulum_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    pendulum_t *self = state;
    self->theta = tt_env_uniform(rng, -M_PI, M_PI);
    self->speed = tt_env_uniform(rng, -1.0, 1.0);
    s_observe(self, out->obs[0]);
}

static void s_pendulum_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    pendulum_t *self = state;
    const float u = *(const float *)action[0];
    const double angle = np_mod(self->theta + M_PI, 2 * M_PI) - M_PI;
    out->reward = -(np_square(angle) + 0.1 * np_square(self->speed) + (double)(0.001f * np_squaref(u)));

    const double speed = self->speed + (3 * self->g / 2.0 * sin(self->theta) + (double)(3.0f * u)) * s_dt;
    self->speed = speed < -s_top_speed ? -s_top_speed : speed > s_top_speed ? s_top_speed : speed;
    self->theta = self->theta + self->speed * s_dt;
    s_observe(self, out->obs[0]);
}

static void s_pendulum_save(const void *state, void *bytes)
{
    memcpy(bytes, state, SAVED);
}

static int s_pendulum_load(void *state, const void *bytes)
{
    memcpy(state, bytes, SAVED);
    return 0;
}

static const float s_shown[3] = {1, 1, 0};
TT_NO_VEL_CALLS(pendulum, 3, s_shown)

#define PENDULUM(name, its_id, words)                     \
    const tt_env_ops_t tt_env_##name = {                  \
        .abi = TT_ENV_ABI,                                \
        .id = its_id,                                     \
        .summary = words,                                 \
        .obs = TT_BOX(3, s_low, s_high),                  \
        .action = TT_BOX(1, s_torque_low, s_torque_high), \
        .options = s_options,                             \
        .reward_threshold = NAN,                          \
        .max_episode_steps = 200,                         \
        .state_size = sizeof(pendulum_t),                 \
        .init = s_pendulum_init,                          \
        .plain = true,                                    \
        .reset = s_##name##_reset,                        \
        .step = s_##name##_step,                          \
        .save_size = SAVED,                               \
        .save = s_pendulum_save,                          \
        .load = s_pendulum_load,                          \
    }
PENDULUM(pendulum, "Pendulum-v1", "swing a pendulum up and hold it by a limited torque");
PENDULUM(pendulum_no_vel, "PendulumNoVel-v1", "Pendulum-v1 without the velocity");
