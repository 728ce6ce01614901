#include "common/rl/gae.h"
#include "common/base/vmath.h"

/*  advantage = V' of one step, for envs that go on or terminated; the truncated ones are filled in afterwards. */
static void s_next_values(const tt_gae_t *in, uint32_t t, float *next)
{
    const float *after = t + 1 == in->T ? in->last_value : in->value + (size_t)(t + 1) * in->N;
    for (uint32_t e = 0; e < in->N; e++)
        next[e] = in->terminated[(size_t)t * in->N + e] ? 0 : after[e];
}

/*  `left` counts the finals that lie at or before step t; walks down with it. */
static tt_status_t s_bootstrap(const tt_gae_t *in, uint32_t t, uint32_t *left, float *next)
{
    const size_t first = (size_t)t * in->N;
    for (uint32_t e = in->N; e-- > 0;) {
        if (!in->truncated[first + e])
            continue;
        if (in->or_flags) {
            next[e] = 0;
            continue;
        }
        while (*left > 0 && in->final_row[*left - 1] > first + e)
            --*left;
        if (*left == 0 || in->final_row[*left - 1] != first + e)
            return tt_err(
                TT_INVALID, "gae: step %u of env %u was truncated, but its final observation is missing", t, e);
        next[e] = in->terminated[first + e] ? 0 : in->final_value[*left - 1];
    }
    return TT_OK;
}

TT_CLONES static void s_step(const tt_gae_t *in, uint32_t t, const float *later, float *advantage, float *target)
{
    const size_t first = (size_t)t * in->N;
    const float gamma = in->gamma, decay = in->gamma * in->lambda;
    const float *reward = in->reward + first, *value = in->value + first;
    const uint8_t *terminated = in->terminated + first, *truncated = in->truncated + first;
    for (uint32_t e = 0; e < in->N; e++) {
        const float delta = reward[e] + gamma * advantage[e] - value[e];
        const float rest = later && !(terminated[e] | truncated[e]) ? decay * later[e] : 0;
        advantage[e] = delta + rest;
        target[e] = advantage[e] + value[e];
    }
}

tt_status_t tt_gae(const tt_gae_t *in, float *advantage, float *target)
{
    uint32_t left = in->finals;
    for (uint32_t t = in->T; t-- > 0;) {
        float *now = advantage + (size_t)t * in->N;
        s_next_values(in, t, now); /* the advantage's place holds V' until the step turns it into the advantage */
        TT_TRY(s_bootstrap(in, t, &left, now));
        s_step(in, t, t + 1 == in->T ? NULL : now + in->N, now, target + (size_t)t * in->N);
    }
    return TT_OK;
}
