/*  noise - what noisy layers multiply by: mean + deviation x noise, kept beside the parameters of each set, and the deviations'
 *  gradient.
 *
 *  What is drawn: common/nn/noise.h. The deviation's gradient is the weight's times the noise, closed
 *  shard by shard. Plain C, one rounding an operation, as PyTorch computes it. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/noise.h"
#include "common/nn/spec.h"

typedef struct {
    uint32_t tower;
    tt_noisy_layer_t at;
    size_t noise; /* where its noise lies, of inputs and then of outputs */
} layer_t;

struct cpu_noise {
    uint32_t layers;
    layer_t *layer;              /* owned                                                             */
    float *weights[TT_SETS_MAX]; /* device memory: as the parameters; only where noisy layers have theirs */
    float *noise[TT_SETS_MAX];   /* device memory                                                     */
};

static size_t s_list(cpu_noise_t *self, const tt_net_t *net, uint32_t t, size_t first, size_t at)
{
    const uint32_t layers = net->spec.tower[t].noise > 0 ? tt_spec_layers(&net->spec, t) : 0;
    for (uint32_t l = 0; l < layers; l++) {
        layer_t *layer = &self->layer[self->layers++];
        *layer = (layer_t){t, tt_noisy_layer(net->tensors, &net->spec, t, first, l), at};
        at += layer->at.in + layer->at.out;
    }
    return at;
}

cpu_noise_t *cpu_noise_new(const tt_net_t *net)
{
    size_t tensors = 0, floats = 0;
    cpu_noise_t *self = tt_new0(sizeof *self);
    self->layer = tt_array0(TT_TOWERS_MAX * (TT_HIDDEN_MAX + 1), sizeof *self->layer);
    for (uint32_t t = 0; t < net->spec.towers; tensors += tt_spec_tower_tensors(&net->spec, t++))
        floats = s_list(self, net, t, tensors, floats);
    for (uint32_t set = 0; self->layers && set < net->sets; set++) {
        self->weights[set] = cpu_new_floats(net->device, 1, net->param_count);
        self->noise[set] = cpu_new_floats(net->device, 1, floats);
    }
    return self;
}

void cpu_noise_free(const tt_net_t *net, cpu_noise_t *self)
{
    for (uint32_t set = 0; set < net->sets; set++) {
        net->device->ops->free(net->device, self->weights[set]);
        net->device->ops->free(net->device, self->noise[set]);
    }
    free(self->layer);
    free(self);
}

const float *cpu_noise_weights(const tt_net_t *net, uint32_t set, uint32_t t)
{
    const cpu_net_t *self = net->impl;
    return net->spec.tower[t].noise > 0 ? self->noise->weights[set] : net->params[set];
}

/* ---- weights -------------------------------------------------------------------------------------------------------- */

/*  out[k][o] = mean + deviation x (in[k] x out[o]). */
TT_CLONES static void s_mix(const layer_t *layer, const float *noise, const float *params, float *weights)
{
    const float *in = noise + layer->noise, *out = in + layer->at.in;
    for (size_t k = 0; k < layer->at.in; k++)
        for (size_t o = 0; o < layer->at.out; o++) {
            const size_t i = k * layer->at.out + o;
            weights[layer->at.weight + i] =
                params[layer->at.weight + i] + params[layer->at.d_weight + i] * (in[k] * out[o]);
        }
    for (size_t o = 0; o < layer->at.out; o++)
        weights[layer->at.bias + o] = params[layer->at.bias + o] + params[layer->at.d_bias + o] * out[o];
}

void cpu_noise_refresh(const tt_net_t *net, uint32_t set, uint32_t groups)
{
    const cpu_noise_t *self = ((const cpu_net_t *)net->impl)->noise;
    for (uint32_t l = 0; l < self->layers; l++)
        if (groups >> net->spec.tower[self->layer[l].tower].group & 1)
            s_mix(&self->layer[l], self->noise[set], net->params[set], self->weights[set]);
}

tt_status_t cpu_noise(const tt_work_t *work)
{
    const tt_net_t *net = work->noise.net;
    const uint32_t set = work->noise.set;
    const cpu_noise_t *self = ((const cpu_net_t *)net->impl)->noise;
    for (uint32_t l = 0; l < self->layers; l++) {
        const layer_t *layer = &self->layer[l];
        float *out = self->noise[set] + layer->noise;
        if (work->noise.drawn)
            tt_noise_draw(&work->noise.from, set, &layer->at, out);
        else
            memset(out, 0, (layer->at.in + layer->at.out) * sizeof(float));
    }
    cpu_net_refresh_noisy(net, set);
    return TT_OK;
}

/* ---- back ----------------------------------------------------------------------------------------------------------- */

TT_CLONES static void s_back(const layer_t *layer, const float *noise, float *grad)
{
    const float *in = noise + layer->noise, *out = in + layer->at.in;
    for (size_t k = 0; k < layer->at.in; k++)
        for (size_t o = 0; o < layer->at.out; o++) {
            const size_t i = k * layer->at.out + o;
            grad[layer->at.d_weight + i] = grad[layer->at.weight + i] * (in[k] * out[o]);
        }
    for (size_t o = 0; o < layer->at.out; o++)
        grad[layer->at.d_bias + o] = grad[layer->at.bias + o] * out[o];
}

void cpu_noise_back(const tt_net_t *net, uint32_t groups, float *grad)
{
    const cpu_noise_t *self = ((const cpu_net_t *)net->impl)->noise;
    for (uint32_t l = 0; l < self->layers; l++)
        if (groups >> net->spec.tower[self->layer[l].tower].group & 1)
            s_back(&self->layer[l], self->noise[0], grad);
}
