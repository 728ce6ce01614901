/*  slow_drift - the boat of drift.c behind a simulator that takes a millisecond a step: slow on purpose, as a physics engine, a
 *  game or a machine is. What is waited for is somebody else's work, so that more collectors help on any computer.
 *
 *  Build:  cc -O2 -shared -fPIC -I PREFIX/include/tutti slow_drift.c -o slow_drift.so     (in the source tree: -I .) */
#include <time.h>
#define tutti_env drift_env
#include "drift.c"
#undef tutti_env

static void slow_drift_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    drift_step(state, action, rng, out);
}

const tt_env_ops_t *tutti_env(void);
const tt_env_ops_t *tutti_env(void)
{
    static tt_env_ops_t ops;
    ops = *drift_env();
    ops.id = "SlowDrift-v0";
    ops.summary = "drift, a millisecond a step";
    ops.step = slow_drift_step;
    return &ops;
}
