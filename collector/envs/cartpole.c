/*  cartpole - CartPole-v1: keep a pole upright on a cart that is pushed left or right. CartPoleNoVel-v1: without seeing how fast they move.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/cartpole.py (MIT). Explicit Euler, state in double,
 *          observations in float32. Every expression keeps Gymnasium's order of operations: bits depend on it. */
#include "collector/envs/envs.h"
#include <math.h>
#include "collector/envs/no_vel.h"

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

/*  Accelerations of cart and pole from the pole's motion and the push. */
static inline void accelerate(
    double *x_acc, double *theta_acc, double theta_dot, double sine, double cosine, int32_t action)
{
    const double total = s_mass_pole + s_mass_cart, pole_moment = s_mass_pole * s_half_length;
    const double force = action == 1 ? s_force : -s_force;
    const double temp = (force + pole_moment * (theta_dot * theta_dot) * sine) / total;
    *theta_acc =
        (s_gravity * sine - cosine * temp) / (s_half_length * (4.0 / 3.0 - s_mass_pole * (cosine * cosine) / total));
    *x_acc = temp - pole_moment * *theta_acc * cosine / total;
}

static inline bool move(cartpole_t *self, double x_acc, double theta_acc, float *obs)
{
    const double x = self->s[X] + s_tau * self->s[X_DOT], theta = self->s[THETA] + s_tau * self->s[THETA_DOT];
    self->s[X] = x;
    self->s[X_DOT] = self->s[X_DOT] + s_tau * x_acc;
    self->s[THETA] = theta;
    self->s[THETA_DOT] = self->s[THETA_DOT] + s_tau * theta_acc;
    observe(self, obs);
    /* |, not ||: no branch, so that the loop over many envs never mispredicts */
    return (x < -s_x_limit) | (x > s_x_limit) | (theta < -s_theta_limit) | (theta > s_theta_limit);
}

static void s_cartpole_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    cartpole_t *self = state;
    for (int i = 0; i < 4; i++)
        self->s[i] = tt_env_uniform(rng, -0.05, 0.05);
    observe(self, out->obs[0]);
}

static void s_cartpole_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    cartpole_t *self = state;
    const double sine = sin(self->s[THETA]), cosine = cos(self->s[THETA]);
    double x_acc, theta_acc;
    accelerate(&x_acc, &theta_acc, self->s[THETA_DOT], sine, cosine, *(const int32_t *)action[0]);
    out->reward = 1.0; /* the step that ends the episode counts, too */
    out->terminated = move(self, x_acc, theta_acc, out->obs[0]);
}

enum { BLOCK = 32 };

/*  Three short loops instead of one long: the one in the middle, with its four divisions, becomes vector code. */
static void s_step_block(cartpole_t *self, uint32_t count, const int32_t *action, float *obs, uint8_t *terminated)
{
    double sine[BLOCK], cosine[BLOCK], theta_dot[BLOCK], x_acc[BLOCK], theta_acc[BLOCK];
    for (uint32_t i = 0; i < count; i++) {
        sine[i] = sin(self[i].s[THETA]);
        cosine[i] = cos(self[i].s[THETA]);
        theta_dot[i] = self[i].s[THETA_DOT];
    }
    for (uint32_t i = 0; i < count; i++)
        accelerate(&x_acc[i], &theta_acc[i], theta_dot[i], sine[i], cosine[i], action[i]);
    for (uint32_t i = 0; i < count; i++)
        terminated[i] = move(&self[i], x_acc[i], theta_acc[i], obs + 4 * (size_t)i);
}

static void s_cartpole_step_many(void *states, uint32_t count, const void *const *action, const tt_env_many_t *out)
{
    cartpole_t *self = states;
    const int32_t *push = action[0];
    float *obs = out->obs[0];
    for (uint32_t at = 0; at < count; at += BLOCK)
        s_step_block(
            self + at, count - at < BLOCK ? count - at : BLOCK, push + at, obs + 4 * (size_t)at, out->terminated + at);
    for (uint32_t i = 0; i < count; i++)
        out->reward[i] = 1.0f;
}

static const float s_shown[4] = {[X] = 1, [THETA] = 1};
TT_NO_VEL_CALLS(cartpole, 4, s_shown)

static void s_cartpole_no_vel_step_many(
    void *states, uint32_t count, const void *const *action, const tt_env_many_t *out)
{
    s_cartpole_step_many(states, count, action, out);
    no_vel_hide(out->obs[0], count, s_shown, 4);
}

static const double s_low[4] = {-4.8, -INFINITY, -2 * 12 * 2 * M_PI / 360, -INFINITY};
static const double s_high[4] = {4.8, INFINITY, 2 * 12 * 2 * M_PI / 360, INFINITY};
static const int64_t s_actions[] = {2};

#define CARTPOLE(name, its_id, words)      \
    const tt_env_ops_t tt_env_##name = {   \
        .abi = TT_ENV_ABI,                 \
        .id = its_id,                      \
        .summary = words,                  \
        .obs = TT_BOX(4, s_low, s_high),   \
        .action = TT_CHOICES(s_actions),   \
        .reward_threshold = 475.0,         \
        .max_episode_steps = 500,          \
        .state_size = sizeof(cartpole_t),  \
        .reset = s_##name##_reset,         \
        .step = s_##name##_step,           \
        .step_many = s_##name##_step_many, \
    }
CARTPOLE(cartpole, "CartPole-v1", "balance a pole on a cart that is pushed left or right");
CARTPOLE(cartpole_no_vel, "CartPoleNoVel-v1", "CartPole-v1 without the two velocities");
