#include "common/rl/trajectories.h"

static tt_status_t s_final_value(const tt_trajectories_t *in, uint32_t t, uint32_t env, uint32_t *left, float *value)
{
    const size_t row = (size_t)t * in->N + env;
    while (*left > 0 && in->final_row[*left - 1] > row)
        --*left;
    if (*left == 0 || in->final_row[*left - 1] != row)
        return tt_err(TT_INVALID, "step %u of env %u was truncated, but its final observation is missing", t, env);
    *value = in->final_value[*left - 1];
    return TT_OK;
}

tt_status_t tt_next_values(const tt_trajectories_t *in, uint32_t t, uint32_t *left, float *next)
{
    const size_t first = (size_t)t * in->N;
    const float *after = t + 1 == in->T ? in->last_value : in->value + first + in->N;
    for (uint32_t e = in->N; e-- > 0;) {
        next[e] = after[e];
        if (in->truncated[first + e] && !in->or_flags)
            TT_TRY(s_final_value(in, t, e, left, &next[e]));
        if (in->terminated[first + e] || (in->truncated[first + e] && in->or_flags))
            next[e] = 0;
    }
    return TT_OK;
}
