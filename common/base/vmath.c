#include "common/base/vmath.h"

TT_CLONES void tt_vexp(float *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = tt_expf(in[i]);
}

TT_CLONES void tt_vlog(float *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = tt_logf(in[i]);
}

TT_CLONES void tt_vsincos_turn(float *restrict sin_out, float *restrict cos_out, const float *turn, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tt_sincos_turnf(&sin_out[i], &cos_out[i], turn[i]);
}
