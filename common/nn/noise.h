/*  noise - of noisy layers: where a layer's tensors lie, and what is drawn for it. The same on every device.
 *
 *  The noise of a weight is f(input's normal) f(output's normal), f(x) = sign(x) sqrt|x|, that of a bias f(output's normal). It is
 *  one for all rows.
 *  Threads: pure. */
#pragma once
#include "common/nn/nn.h"

typedef struct {
    uint32_t number; /* of its weight among the tensors */
    size_t in, out, weight, bias, d_weight, d_bias;
} tt_noisy_layer_t;

/*  Layer l of tower t, whose tensors begin at number `first`. */
tt_noisy_layer_t tt_noisy_layer(
    const tt_tensor_t *tensors, const tt_net_spec_t *spec, uint32_t t, size_t first, uint32_t l);
/*  f(normal) of its inputs and, behind them, of its outputs. */
void tt_noise_draw(const tt_noise_t *noise, uint32_t set, const tt_noisy_layer_t *layer, float *out);
