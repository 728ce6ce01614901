/*  noise - what noisy layers multiply by: mean + deviation x noise, kept beside the parameters of each set, and the deviations'
 *  gradient.
 *
 *  The noise of a weight is f(input's normal) f(output's normal), f(x) = sign(x) sqrt|x|, that of a bias f(output's normal). It is
 *  one for all rows, so the kernels never see it: they read weights. The deviation's gradient is the weight's times the noise, closed
 *  shard by shard. Plain C, one rounding an operation, as PyTorch computes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/vmath.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/spec.h"

/*  A layer: where its tensors lie, what they are numbered, and where its noise lies, of inputs and then of outputs. */
typedef struct {
    uint32_t tower, number;
    size_t in, out, weight, bias, d_weight, d_bias, noise;
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
        const tt_tensor_t *mean = &net->tensors[first + 2 * (size_t)l];
        const tt_tensor_t *deviation = &net->tensors[first + tt_spec_deviations(&net->spec, t) + 2 * (size_t)l];
        self->layer[self->layers++] = (layer_t){.tower = t,
            .number = (uint32_t)(mean - net->tensors),
            .in = mean->rows,
            .out = mean->cols,
            .weight = mean[0].offset,
            .bias = mean[1].offset,
            .d_weight = deviation[0].offset,
            .d_bias = deviation[1].offset,
            .noise = at};
        at += mean->rows + mean->cols;
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
    const float *in = noise + layer->noise, *out = in + layer->in;
    for (size_t k = 0; k < layer->in; k++)
        for (size_t o = 0; o < layer->out; o++) {
            const size_t i = k * layer->out + o;
            weights[layer->weight + i] = params[layer->weight + i] + params[layer->d_weight + i] * (in[k] * out[o]);
        }
    for (size_t o = 0; o < layer->out; o++)
        weights[layer->bias + o] = params[layer->bias + o] + params[layer->d_bias + o] * out[o];
}

void cpu_noise_refresh(const tt_net_t *net, uint32_t set, uint32_t groups)
{
    const cpu_noise_t *self = ((const cpu_net_t *)net->impl)->noise;
    for (uint32_t l = 0; l < self->layers; l++)
        if (groups >> net->spec.tower[self->layer[l].tower].group & 1)
            s_mix(&self->layer[l], self->noise[set], net->params[set], self->weights[set]);
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
static void s_draw_layer(const tt_noise_t *noise, uint32_t set, const layer_t *layer, float *out)
{
    const uint32_t who = set << 16 | layer->number;
    s_draw(noise, who, out, layer->in);
    s_draw(noise, who + 1, out + layer->in, layer->out);
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
            s_draw_layer(&work->noise.from, set, layer, out);
        else
            memset(out, 0, (layer->in + layer->out) * sizeof(float));
    }
    cpu_net_refresh_noisy(net, set);
    return TT_OK;
}

/* ---- back ----------------------------------------------------------------------------------------------------------- */

TT_CLONES static void s_back(const layer_t *layer, const float *noise, float *grad)
{
    const float *in = noise + layer->noise, *out = in + layer->in;
    for (size_t k = 0; k < layer->in; k++)
        for (size_t o = 0; o < layer->out; o++) {
            const size_t i = k * layer->out + o;
            grad[layer->d_weight + i] = grad[layer->weight + i] * (in[k] * out[o]);
        }
    for (size_t o = 0; o < layer->out; o++)
        grad[layer->d_bias + o] = grad[layer->bias + o] * out[o];
}

void cpu_noise_back(const tt_net_t *net, float *grad)
{
    const cpu_noise_t *self = ((const cpu_net_t *)net->impl)->noise;
    for (uint32_t l = 0; l < self->layers; l++)
        s_back(&self->layer[l], self->noise[0], grad);
}
