#include "common/rl/vtrace.h"
#include "common/base/vmath.h"

TT_CLONES static void s_step(const tt_trajectories_t *in, const tt_vtrace_t *how, uint32_t t, const float *later,
    float *advantage, float *target)
{
    const size_t first = (size_t)t * in->N;
    const float gamma = in->gamma, *reward = in->reward + first, *value = in->value + first;
    const uint8_t *terminated = in->terminated + first, *truncated = in->truncated + first;
    for (uint32_t e = 0; e < in->N; e++) {
        const float ratio = how->ratio ? how->ratio[first + e] : 1, next = advantage[e];
        const float rho = tt_vtrace_cut(ratio, how->rho), c = how->lambda * tt_vtrace_cut(ratio, how->c);
        const bool goes_on = later && !(terminated[e] | truncated[e]);
        const float corrected = goes_on ? later[e] : next; /* v_{t+1} */
        const float delta = rho * (reward[e] + gamma * next - value[e]);
        target[e] = value[e] + (delta + gamma * c * (corrected - next));
        advantage[e] = reward[e] + gamma * corrected - value[e];
    }
}

tt_status_t tt_vtrace(const tt_trajectories_t *in, const tt_vtrace_t *how, float *advantage, float *target)
{
    uint32_t left = in->finals;
    for (uint32_t t = in->T; t-- > 0;) {
        float *next = advantage + (size_t)t * in->N, *now = target + (size_t)t * in->N;
        TT_TRY(
            tt_next_values(in, t, &left, next)); /* its place holds V' until the step turns that into the advantage */
        s_step(in, how, t, t + 1 == in->T ? NULL : now + in->N, next, now);
    }
    return TT_OK;
}
