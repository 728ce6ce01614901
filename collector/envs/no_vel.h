/*  no_vel - an env that shows everything but its velocities: CartPoleNoVel-v1 is CartPole-v1, whose policy must remember. All else is the
 *  original's.
 *
 *  Source: MaskVelocityWrapper of RL Baselines3 Zoo 2.8.0 (MIT): observation * mask, so that a velocity to the left is -0.
 *  TT_NO_VEL_CALLS(cartpole, 4, s_shown) defines s_cartpole_no_vel_reset and s_cartpole_no_vel_step of s_cartpole_reset and
 *  s_cartpole_step. */
#pragma once
#include "collector/env.h"

static inline void no_vel_hide(float *obs, uint32_t count, const float *shown, uint32_t width)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < width; k++)
            obs[(size_t)i * width + k] *= shown[k];
}

#define TT_NO_VEL_CALLS(name, width, shown)                                                                          \
    static void s_##name##_no_vel_reset(void *state, tt_env_rng_t *rng, tt_env_out_t *out)                           \
    {                                                                                                                \
        s_##name##_reset(state, rng, out);                                                                           \
        no_vel_hide(out->obs[0], 1, shown, width);                                                                   \
    }                                                                                                                \
    static void s_##name##_no_vel_step(void *state, const void *const *action, tt_env_rng_t *rng, tt_env_out_t *out) \
    {                                                                                                                \
        s_##name##_step(state, action, rng, out);                                                                    \
        no_vel_hide(out->obs[0], 1, shown, width);                                                                   \
    }
