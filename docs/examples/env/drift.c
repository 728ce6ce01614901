/*  drift - an environment of one's own: a boat in a gusty channel that should end each trip in mid-stream.
 *
 *  Build:  cc -O2 -shared -fPIC -I PREFIX/include/tutti drift.c -o drift.so     (in the source tree: -I .)
 *  Try:    tutti envs ./drift.so && tutti bench envs ./drift.so
 *  Train:  env: ./drift.so in a config
 *
 *  The page that goes with it: docs/guide/add-an-env.md */
#include <math.h>
#include "collector/env.h"

/*  All that an episode needs lives here: no globals, no pointers. So it can be copied, and Tutti moves it between
 *  processes without our help. */
typedef struct {
    double offset, speed; /* metres from mid-stream, metres a second */
} drift_t;

static const double s_dt = 0.1, s_bank = 5.0;

static void observe(const drift_t *self, float *obs)
{
    obs[0] = (float)self->offset;
    obs[1] = (float)self->speed;
}

static void drift_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)
{
    drift_t *self = state;
    self->offset = tt_env_uniform(rng, -2.0, 2.0);
    self->speed = 0.0;
    observe(self, out->obs[0]);
}

/*  Rudder in -1..1. Randomness comes from rng alone: then a step can be played again, anywhere, with the same gusts. */
static void drift_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    drift_t *self = state;
    const double rudder = (double)*(const float *)action[0], gust = tt_env_uniform(rng, -1.0, 1.0);
    self->speed += s_dt * (2.0 * rudder + gust - 0.2 * self->speed);
    self->offset += s_dt * self->speed;
    const bool aground = fabs(self->offset) >= s_bank;
    out->reward = aground ? -50.0 : 1.0 - fabs(self->offset) / s_bank - 0.1 * rudder * rudder;
    out->terminated = aground; /* the end for good; the time limit below is not our business here */
    observe(self, out->obs[0]);
}

static const double s_rudder_low[1] = {-1.0}, s_rudder_high[1] = {1.0};

static const tt_env_ops_t s_ops = {
    .abi = TT_ENV_ABI,
    .id = "Drift-v0",
    .summary = "hold a boat in mid-stream against gusts",
    .obs = TT_BOX(2, NULL, NULL), /* two floats without bounds */
    .action = TT_BOX(1, s_rudder_low, s_rudder_high),
    .reward_threshold = 80.0,
    .max_episode_steps = 100,
    .state_size = sizeof(drift_t),
    .reset = drift_reset,
    .step = drift_step,
};

/*  The one name that Tutti looks for. */
const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    return &s_ops;
}
