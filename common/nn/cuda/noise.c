/*  noise - what noisy layers multiply by, on a card: drawn on the host, for its logarithms and cosines are the host's, and mixed with the
 *  deviations where the parameters lie. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/noise.h"
#include "common/nn/spec.h"

typedef struct {
    uint32_t tower;
    tt_noisy_layer_t at;
    size_t noise; /* of inputs, and then of outputs */
} layer_t;

struct cuda_noise {
    uint32_t layers;
    layer_t *layer; /* owned */
    size_t floats;
    float *weights[TT_SETS_MAX]; /* as the parameters; only where noisy layers have theirs */
    float *noise[TT_SETS_MAX];
};

static void s_list(cuda_noise_t *self, const tt_net_t *net, uint32_t t, size_t first)
{
    for (uint32_t l = 0; net->spec.tower[t].noise > 0 && l < tt_spec_layers(&net->spec, t); l++) {
        const tt_noisy_layer_t at = tt_noisy_layer(net->tensors, &net->spec, t, first, l);
        self->layer[self->layers++] = (layer_t){.tower = t, .at = at, .noise = self->floats};
        self->floats += at.in + at.out;
    }
}

tt_status_t cuda_noise_new(cuda_noise_t **self_p, const tt_net_t *net)
{
    cuda_device_t *device = (cuda_device_t *)net->device;
    size_t tensors = 0;
    cuda_noise_t *self = *self_p = tt_new0(sizeof *self);
    self->layer = tt_array0((size_t)TT_TOWERS_MAX * (TT_HIDDEN_MAX + 1), sizeof *self->layer);
    for (uint32_t t = 0; t < net->spec.towers; tensors += tt_spec_tower_tensors(&net->spec, t++))
        s_list(self, net, t, tensors);
    for (uint32_t set = 0; self->layers && set < net->sets; set++) {
        void *memory = NULL;
        TT_TRY(cuda_alloc(device, &memory, tt_mul(net->param_count, sizeof(float))));
        self->weights[set] = memory;
        TT_TRY(cuda_alloc(device, &memory, tt_mul(self->floats, sizeof(float))));
        self->noise[set] = memory;
    }
    return TT_OK;
}

void cuda_noise_free(const tt_net_t *net, cuda_noise_t *self)
{
    for (uint32_t set = 0; set < net->sets; set++) {
        cuda_free((cuda_device_t *)net->device, self->weights[set]);
        cuda_free((cuda_device_t *)net->device, self->noise[set]);
    }
    free(self->layer);
    free(self);
}

static const cuda_noise_t *s_of(const tt_net_t *net)
{
    return ((const cuda_net_t *)net->impl)->noise;
}

const float *cuda_noise_weights(const tt_net_t *net, uint32_t set, uint32_t t)
{
    return net->spec.tower[t].noise > 0 ? s_of(net)->weights[set] : net->params[set];
}

/*  A layer's weight, and its bias. */
static void s_jobs(const layer_t *layer, const float *params, const float *noise, float *weights, cuda_noisy_t job[2])
{
    const uint32_t in = (uint32_t)layer->at.in, out = (uint32_t)layer->at.out;
    const float *inputs = noise + layer->noise, *outputs = inputs + in;
    job[0] = (cuda_noisy_t){.rows = in,
        .cols = out,
        .mean = params + layer->at.weight,
        .deviation = params + layer->at.d_weight,
        .in = inputs,
        .out_ = outputs,
        .out = weights + layer->at.weight};
    job[1] = (cuda_noisy_t){.rows = 1,
        .cols = out,
        .mean = params + layer->at.bias,
        .deviation = params + layer->at.d_bias,
        .out_ = outputs,
        .out = weights + layer->at.bias};
}

tt_status_t cuda_noise_refresh(const tt_net_t *net, uint32_t set, uint32_t groups)
{
    const cuda_noise_t *self = s_of(net);
    cuda_device_t *device = (cuda_device_t *)net->device;
    cuda_noisy_t job[2];
    for (uint32_t l = 0; l < self->layers; l++) {
        if (!(groups >> net->spec.tower[self->layer[l].tower].group & 1))
            continue;
        s_jobs(&self->layer[l], net->params[set], self->noise[set], self->weights[set], job);
        cuda_noisy(device->work, &job[0]);
        cuda_noisy(device->work, &job[1]);
    }
    return cuda_launched(device, "noisy weights");
}

static tt_status_t s_refresh(void *given)
{
    const tt_work_t *work = given;
    return cuda_noise_refresh(work->noise.net, work->noise.set, UINT32_MAX);
}

tt_status_t cuda_noise_draw(const tt_work_t *work)
{
    const tt_net_t *net = work->noise.net;
    const uint32_t set = work->noise.set;
    const cuda_noise_t *self = s_of(net);
    cuda_device_t *device = (cuda_device_t *)net->device;
    float *out = tt_array0(self->floats, sizeof *out);
    for (uint32_t l = 0; work->noise.drawn && l < self->layers; l++)
        tt_noise_draw(&work->noise.from, set, &self->layer[l].at, out + self->layer[l].noise);
    const tt_status_t status = cuda_up(device, self->noise[set], out, self->floats * sizeof *out);
    free(out);
    TT_TRY(status);
    tt_work_t again = *work;
    cuda_key_t key = {0};
    cuda_key_add(&key, "noise", 5);
    cuda_key_add(&key, &net, sizeof net);
    cuda_key_add(&key, &set, sizeof set);
    return cuda_again(device, &key, s_refresh, &again);
}

void cuda_noise_back(const tt_net_t *net, uint32_t groups, const cuda_run_t *run)
{
    const cuda_noise_t *self = s_of(net);
    const cuda_device_t *device = (const cuda_device_t *)net->device;
    cuda_noisy_t job[2];
    for (uint32_t l = 0; l < self->layers; l++) {
        const tt_noisy_layer_t *at = &self->layer[l].at;
        if (!(groups >> net->spec.tower[self->layer[l].tower].group & 1))
            continue;
        s_jobs(&self->layer[l], net->params[0], self->noise[0], self->weights[0], job);
        cuda_noisy_back(device->work, run, &job[0], at->weight, at->d_weight);
        cuda_noisy_back(device->work, run, &job[1], at->bias, at->d_bias);
    }
}
