/*  acrobot - Acrobot-v1: swing a two-link arm above a line by a motor in its elbow.
 *
 *  Source: Gymnasium 1.4.0, gymnasium/envs/classic_control/acrobot.py (MIT), after Sutton & Barto's book; one step of
 *          classic Runge-Kutta over 0.2 s in double. Every expression keeps Gymnasium's order of operations.
 *  Masses, lengths and moments of inertia are 1, centres of mass at 0.5; the factors below are their products. */
#include "collector/envs/envs.h"
#include <math.h>
#include <string.h>
#include "collector/envs/numpy.h"

enum { THETA1, THETA2, DTHETA1, DTHETA2, DIMS };

typedef struct {
    double s[DIMS]; /* rad, rad, rad/s, rad/s */
} acrobot_t;

static const double s_g = 9.8, s_dt = 0.2;
static const double s_top[DIMS] = {M_PI, M_PI, 4 * M_PI, 9 * M_PI};

/*  The derivative of s under a torque at the elbow. */
static void s_derive(double out[DIMS], const double s[DIMS], double torque)
{
    const double cos2 = cos(s[THETA2]), sin2 = sin(s[THETA2]);
    const double d1 = 0.25 + (1.25 + 1.0 * cos2) + 1.0 + 1.0;
    const double d2 = (0.25 + 0.5 * cos2) + 1.0;
    const double phi2 = 0.5 * s_g * cos(s[THETA1] + s[THETA2] - M_PI / 2.0);
    const double phi1 = -0.5 * np_square(s[DTHETA2]) * sin2 - 1.0 * s[DTHETA2] * s[DTHETA1] * sin2 +
                        1.5 * s_g * cos(s[THETA1] - M_PI / 2) + phi2;
    const double ddtheta2 =
        (torque + d2 / d1 * phi1 - 0.5 * np_square(s[DTHETA1]) * sin2 - phi2) / (0.25 + 1.0 - np_square(d2) / d1);
    out[THETA1] = s[DTHETA1];
    out[THETA2] = s[DTHETA2];
    out[DTHETA1] = -(d2 * ddtheta2 + phi1) / d1;
    out[DTHETA2] = ddtheta2;
}

static void s_runge_kutta(double s[DIMS], double torque)
{
    double k[4][DIMS], at[DIMS];
    s_derive(k[0], s, torque);
    for (int stage = 1; stage < 4; stage++) {
        const double h = stage < 3 ? s_dt / 2.0 : s_dt;
        for (int i = 0; i < DIMS; i++)
            at[i] = s[i] + h * k[stage - 1][i];
        s_derive(k[stage], at, torque);
    }
    for (int i = 0; i < DIMS; i++)
        s[i] = s[i] + s_dt / 6.0 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
}

/*  By repeated subtraction, as Gymnasium does: fmod would round otherwise. |x| < 10 here, so it ends. */
static double s_wrap(double x)
{
    while (x > M_PI)
        x = x - 2 * M_PI;
    while (x < -M_PI)
        x = x + 2 * M_PI;
    return x;
}

static double s_bound(double x, double top)
{
    return x < -top ? -top : x > top ? top : x;
}

static void s_observe(const acrobot_t *self, float *obs)
{
    obs[0] = (float)cos(self->s[THETA1]);
    obs[1] = (float)sin(self->s[THETA1]);
    obs[2] = (float)cos(self->s[THETA2]);
    obs[3] = (float)sin(self->s[THETA2]);
    obs[4] = (float)self->s[DTHETA1];
    obs[5] = (float)self->s[DTHETA2];
}

static void s_acrobot_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    acrobot_t *self = state;
    for (int i = 0; i < DIMS; i++)
        self->s[i] = (double)(float)tt_env_uniform(rng, -0.1, 0.1); /* Gymnasium's first state is float32 */
    s_observe(self, out->obs[0]);
}

static void s_acrobot_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    (void)rng;
    acrobot_t *self = state;
    s_runge_kutta(self->s, *(const int32_t *)action[0] - 1.0);
    self->s[THETA1] = s_wrap(self->s[THETA1]);
    self->s[THETA2] = s_wrap(self->s[THETA2]);
    self->s[DTHETA1] = s_bound(self->s[DTHETA1], s_top[DTHETA1]);
    self->s[DTHETA2] = s_bound(self->s[DTHETA2], s_top[DTHETA2]);
    s_observe(self, out->obs[0]);
    out->terminated = -cos(self->s[THETA1]) - cos(self->s[THETA2] + self->s[THETA1]) > 1.0;
    out->reward = out->terminated ? 0.0 : -1.0;
}

static void s_acrobot_save(const void *state, void *bytes)
{
    memcpy(bytes, state, sizeof(acrobot_t));
}

/*  s_wrap relies on angles within reach: a state from outside is checked. */
static int s_acrobot_load(void *state, const void *bytes)
{
    acrobot_t other;
    memcpy(&other, bytes, sizeof other);
    for (int i = 0; i < DIMS; i++) {
        if (!(fabs(other.s[i]) <= s_top[i]))
            return -1;
    }
    *(acrobot_t *)state = other;
    return 0;
}

static const double s_low[6] = {-1, -1, -1, -1, -4 * M_PI, -9 * M_PI}, s_high[6] = {1, 1, 1, 1, 4 * M_PI, 9 * M_PI};
static const int64_t s_actions[] = {3};

const tt_env_ops_t tt_env_acrobot = {
    .abi = TT_ENV_ABI,
    .id = "Acrobot-v1",
    .summary = "swing a two-link arm above a line by its elbow",
    .obs = TT_BOX(6, s_low, s_high),
    .action = TT_CHOICES(s_actions),
    .reward_threshold = -100.0,
    .max_episode_steps = 500,
    .state_size = sizeof(acrobot_t),
    .reset = s_acrobot_reset,
    .step = s_acrobot_step,
    .save_size = sizeof(acrobot_t),
    .save = s_acrobot_save,
    .load = s_acrobot_load,
};
