#include "common/rl/gae.h"
#include "common/base/vmath.h"

TT_CLONES static void s_step(
    const tt_trajectories_t *in, float lambda, uint32_t t, const float *later, float *advantage, float *target)
{
    const size_t first = (size_t)t * in->N;
    const float gamma = in->gamma, decay = in->gamma * lambda;
    const float *reward = in->reward + first, *value = in->value + first;
    const uint8_t *terminated = in->terminated + first, *truncated = in->truncated + first;
    for (uint32_t e = 0; e < in->N; e++) {
        const float delta = reward[e] + gamma * advantage[e] - value[e];
        const float rest = later && !(terminated[e] | truncated[e]) ? decay * later[e] : 0;
        advantage[e] = delta + rest;
        target[e] = advantage[e] + value[e];
    }
}

tt_status_t tt_gae(const tt_trajectories_t *in, float lambda, float *advantage, float *target)
{
    uint32_t left = in->finals;
    for (uint32_t t = in->T; t-- > 0;) {
        float *now = advantage + (size_t)t * in->N;
        TT_TRY(tt_next_values(in, t, &left, now)); /* its place holds V' until the step turns that into the advantage */
        s_step(in, lambda, t, t + 1 == in->T ? NULL : now + in->N, now, target + (size_t)t * in->N);
    }
    return TT_OK;
}
