/*  opt - one step of an optimiser for one parameter, in C17 and CUDA C++: operation by operation what a lane of
 *  cpu/kernels_impl.h does.
 *
 *  g is the gradient after the clip. State is passed by address and may lie anywhere.
 *  Threads: functions of their arguments. */
#pragma once
#include <stddef.h>
#include "common/base/portable_fn.h"

enum {
    TT_NORM_PART = 1 << 16
}; /* floats of which one chain in 64 is: sums of squares are parts, added first to last */

/*  clip_grad_norm_: max_norm / (norm + 1e-6), at most 1; max_norm 0: no clip. */
TT_MATH_FN float tt_clip_factor(float max_norm, float norm)
{
    if (!(max_norm > 0.0f))
        return 1.0f;
    const float factor = tt_divf(max_norm, norm + 1e-6f);
    return factor < 1.0f ? factor : 1.0f;
}

/*  A moment that fades away becomes 0 before it is too small for full precision. NaN stays. */
TT_MATH_FN float tt_settled(float moment)
{
    const float minus = 0.0f - moment, size = moment > minus ? moment : minus;
    return size - 0x1p-100f <= 0.0f ? 0.0f : moment;
}

/*  torch.optim.Adam: m += (g - m)(1 - b1); v = b2 v + (1 - b2) g^2; p -= lr' m / (sqrt(v) root_scale + eps). */
typedef struct {
    float lr, beta1, beta2, root_scale, eps;
} tt_adam_t;

TT_MATH_FN float tt_adam(const tt_adam_t *o, float p, float g, float *m, float *v)
{
    const float mean = tt_fmaf(g - *m, 1.0f - o->beta1, *m);
    const float square = tt_fmaf(g * (1.0f - o->beta2), g, *v * o->beta2);
    const float denominator = tt_fmaf(tt_sqrtf(square), o->root_scale, o->eps);
    *m = tt_settled(mean);
    *v = tt_settled(square);
    return p - tt_divf(mean * o->lr, denominator);
}

/*  torch.optim.SGD: buf = momentum buf + g; p -= lr buf. buf NULL: no momentum. */
TT_MATH_FN float tt_sgd(float lr, float momentum, float p, float g, float *buf)
{
    float step = g;
    if (buf) {
        step = tt_fmaf(*buf, momentum, g);
        *buf = tt_settled(step);
    }
    return tt_fmaf(-lr, step, p);
}

/*  torch.optim.RMSprop: v = alpha v + (1 - alpha) g^2; step = g / (sqrt(v) + eps), then as SGD. */
typedef struct {
    float lr, alpha, momentum, eps;
} tt_rmsprop_t;

TT_MATH_FN float tt_rmsprop(const tt_rmsprop_t *o, float p, float g, float *v, float *buf)
{
    const float square = tt_fmaf(g * (1.0f - o->alpha), g, *v * o->alpha);
    *v = tt_settled(square);
    return tt_sgd(o->lr, o->momentum, p, tt_divf(g, tt_sqrtf(square) + o->eps), buf);
}
