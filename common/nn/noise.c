#include "common/nn/noise.h"
#include <math.h>
#include "common/base/vmath.h"
#include "common/nn/spec.h"

tt_noisy_layer_t tt_noisy_layer(
    const tt_tensor_t *tensors, const tt_net_spec_t *spec, uint32_t t, size_t first, uint32_t l)
{
    const tt_tensor_t *mean = &tensors[first + 2 * (size_t)l];
    const tt_tensor_t *deviation = &tensors[first + tt_spec_deviations(spec, t) + 2 * (size_t)l];
    return (tt_noisy_layer_t){.number = (uint32_t)(mean - tensors),
        .in = mean->rows,
        .out = mean->cols,
        .weight = mean[0].offset,
        .bias = mean[1].offset,
        .d_weight = deviation[0].offset,
        .d_bias = deviation[1].offset};
}

/*  Four a draw: count / 4 of them fit below the counter's step, for a layer has at most 2^20 inputs. */
static void s_draw(const tt_noise_t *noise, uint32_t who, float *out, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        float z[4];
        tt_draw(word, noise->seed, noise->stream, who, noise->clock << 20 | i / 4);
        tt_normals(word, z);
        for (size_t k = 0; k < 4 && i + k < count; k++)
            out[i + k] = copysignf(sqrtf(fabsf(z[k])), z[k]);
    }
}

/*  Its inputs' noise by the number of its weight, the outputs' by that of its bias. */
void tt_noise_draw(const tt_noise_t *noise, uint32_t set, const tt_noisy_layer_t *layer, float *out)
{
    const uint32_t who = set << 16 | layer->number;
    s_draw(noise, who, out, layer->in);
    s_draw(noise, who + 1, out + layer->in, layer->out);
}
