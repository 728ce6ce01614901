/*  cartpole - CartPole-v1: keep a pole upright on a cart that is pushed left or right.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/cartpole.py (MIT). Explicit Euler, state in double,
 *          observations in float32. Every expression keeps Gymnasium's order of operations: bits depend on it. */
#include "collector/envs/envs.h"
#include <math.h>

enum { X, X_DOT, THETA, THETA_DOT };

typedef struct {
    double s[4]; /* m, m/s, rad, rad/s */
} cartpole_t;

static const double s_gravity = 9.8, s_mass_cart = 1.0, s_mass_pole = 0.1, s_half_length = 0.5;
static const double s_force = 10.0, s_tau = 0.02, s_x_limit = 2.4, s_theta_limit = 12 * 2 * M_PI / 360;

static inline void observe(const cartpole_t *self, float *obs)
{
    for (int i = 0; i < 4; i++)
        obs[i] = (float)self->s[i];
}

static inline bool move(cartpole_t *self, int32_t action, float *obs)
{
    const double total = s_mass_pole + s_mass_cart, pole_moment = s_mass_pole * s_half_length;
    const double x = self->s[X], x_dot = self->s[X_DOT], theta = self->s[THETA], theta_dot = self->s[THETA_DOT];
    const double force = action == 1 ? s_force : -s_force;
    const double cosine = cos(theta), sine = sin(theta);

    const double temp = (force + pole_moment * (theta_dot * theta_dot) * sine) / total;
    const double theta_acc =
        (s_gravity * sine - cosine * temp) / (s_half_length * (4.0 / 3.0 - s_mass_pole * (cosine * cosine) / total));
    const double x_acc = temp - pole_moment * theta_acc * cosine / total;

    const double x_new = x + s_tau * x_dot, theta_new = theta + s_tau * theta_dot;
    self->s[X] = x_new;
    self->s[X_DOT] = x_dot + s_tau * x_acc;
    self->s[THETA] = theta_new;
    self->s[THETA_DOT] = theta_dot + s_tau * theta_acc;
    observe(self, obs);
    /* single & and |: no branch, so that the loop over many envs never mispredicts */
    return (x_new < -s_x_limit) | (x_new > s_x_limit) | (theta_new < -s_theta_limit) | (theta_new > s_theta_limit);
}

static void cartpole_reset(void *state, tt_env_rng_t *rng, float *obs)
{
    cartpole_t *self = state;
    for (int i = 0; i < 4; i++)
        self->s[i] = tt_env_uniform(rng, -0.05, 0.05);
    observe(self, obs);
}

static bool cartpole_step(void *state, const void *action, tt_env_rng_t *rng, float *obs, double *reward)
{
    (void)rng;
    *reward = 1.0; /* the step that ends the episode counts, too */
    return move(state, *(const int32_t *)action, obs);
}

static void cartpole_step_many(
    void *states, uint32_t count, const void *action, float *obs, float *reward, uint8_t *terminated)
{
    cartpole_t *self = states;
    const int32_t *push = action;
    for (uint32_t i = 0; i < count; i++) {
        terminated[i] = move(&self[i], push[i], obs + 4 * (size_t)i);
        reward[i] = 1.0f;
    }
}

static const float s_low[4] = {-4.8f, -INFINITY, (float)(-2 * 12 * 2 * M_PI / 360), -INFINITY};
static const float s_high[4] = {4.8f, INFINITY, (float)(2 * 12 * 2 * M_PI / 360), INFINITY};

const tt_env_ops_t tt_env_cartpole = {
    .abi = TT_ENV_ABI,
    .id = "CartPole-v1",
    .summary = "balance a pole on a cart that is pushed left or right",
    .obs = {TT_SPACE_BOX, 4, s_low, s_high},
    .action = {TT_SPACE_DISCRETE, 2, NULL, NULL},
    .reward_threshold = 475.0,
    .max_episode_steps = 500,
    .state_size = sizeof(cartpole_t),
    .reset = cartpole_reset,
    .step = cartpole_step,
    .step_many = cartpole_step_many,
};
