/*  net - what stands beside a network's parameters on a card: which towers read what, and room for the rows of a run. Parameters are
 *  read where they lie; there are no copies in other orders. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"
#include "common/nn/math/opt.h"
#include "common/nn/spec.h"

static cuda_layer_t s_layer(const tt_tensor_t *tensor)
{
    return (cuda_layer_t){
        .in = tensor[0].rows, .out = tensor[0].cols, .weight_at = tensor[0].offset, .bias_at = tensor[1].offset};
}

static cuda_kind_t s_back(tt_nn_activation_t activation)
{
    static const cuda_kind_t back[] = {
        [TT_NN_TANH] = CUDA_D_TANH, [TT_NN_RELU] = CUDA_D_RELU, [TT_NN_NONE] = CUDA_D_NONE};
    return back[activation];
}

static void s_build_mlp(cuda_tower_t *self, const tt_tower_t *spec, const tt_tensor_t *tensors)
{
    self->forward = spec->activation == TT_NN_TANH ? CUDA_TANH : CUDA_RELU;
    self->backward = s_back(spec->activation);
    self->noisy = spec->noise > 0;
    self->layers = spec->hidden_count;
    for (uint32_t l = 0; l < self->layers; l++)
        self->layer[l] = s_layer(&tensors[2 * (size_t)l]);
    if (spec->out)
        self->head = s_layer(&tensors[2 * (size_t)self->layers]);
    self->gives = self->layers ? self->layer[self->layers - 1].out : 0;
}

/*  Nothing stands between what it gives and those who read it. */
static void s_build_recurrent(cuda_net_t *net, cuda_tower_t *self, const tt_tower_t *spec, const tt_tensor_t *tensors)
{
    self->forward = CUDA_SUM;
    self->backward = CUDA_D_NONE;
    self->layers = 1;
    self->layer[0] = s_layer(&tensors[0]);
    self->head = s_layer(&tensors[2]);
    self->gives = spec->hidden[0];
    self->carry_at = net->carry;
    net->carry += tt_tower_carry(spec);
}

static void s_build_made(cuda_net_t *net, cuda_tower_t *self, const tt_tower_t *spec)
{
    self->value = spec->value;
    self->advantage = spec->advantage;
    self->chain |= net->tower[self->value].chain | net->tower[self->advantage].chain;
}

static void s_build_encoder(cuda_tower_t *self, const tt_net_t *net, uint32_t t, const tt_tensor_t *tensors)
{
    self->encoder = cuda_encoder_new(&net->spec, t, tensors);
    self->gives = (uint32_t)cuda_encoder_width(self->encoder);
    self->backward = s_back(cuda_encoder_activation(self->encoder));
}

static void s_build_tower(cuda_net_t *self, const tt_net_t *net, uint32_t t, const tt_tensor_t *tensors)
{
    cuda_tower_t *tower = &self->tower[t];
    const tt_tower_t *spec = &net->spec.tower[t];
    tower->kind = spec->kind;
    tower->outs = spec->out;
    tower->reads_obs = spec->from == 0;
    tower->from = tower->reads_obs ? 0 : spec->from - 1;
    tower->chain = 1u << t | (tower->reads_obs ? 0 : self->tower[tower->from].chain);
    if (tt_tower_is_made(spec->kind))
        s_build_made(self, tower, spec);
    else if (spec->kind == TT_TOWER_ENCODER)
        s_build_encoder(tower, net, t, tensors);
    else if (tt_tower_recurs(spec->kind))
        s_build_recurrent(self, tower, spec, tensors);
    else
        s_build_mlp(tower, spec, tensors);
    if (spec->action) {
        self->acting |= 1u << t;
        self->action_from = spec->from;
    }
    self->flat |= spec->kind != TT_TOWER_ENCODER && !tt_tower_is_made(spec->kind) && tower->reads_obs;
}

/*  Tower t behind all that read it. */
static void s_list_back(cuda_net_t *self, uint32_t towers, uint32_t t)
{
    for (uint32_t r = t + 1; r < towers; r++)
        if (!self->tower[r].reads_obs && self->tower[r].from == t)
            s_list_back(self, towers, r);
    self->back[self->backs++] = t;
}

static void s_list(cuda_net_t *self, uint32_t towers)
{
    for (uint32_t t = towers; t-- > 0;) /* one that is made of a made one before that */
        if (tt_tower_is_made(self->tower[t].kind))
            self->back[self->backs++] = t;
    for (uint32_t t = 0; t < towers; t++)
        if (self->tower[t].reads_obs && !tt_tower_is_made(self->tower[t].kind))
            s_list_back(self, towers, t);
}

static tt_status_t s_new_steps(cuda_net_t *self, const tt_net_t *net)
{
    void *memory = NULL;
    TT_TRY(cuda_alloc((cuda_device_t *)net->device, &memory, tt_net_groups(&net->spec) * sizeof *self->steps));
    self->steps = memory;
    TT_TRY(cuda_alloc((cuda_device_t *)net->device, &memory, (net->param_count / TT_NORM_PART + 1) * sizeof(float)));
    self->norm_parts = memory;
    return TT_OK;
}

tt_status_t cuda_net_new(tt_net_t *net)
{
    cuda_net_t *self = tt_new0(sizeof *self);
    const tt_tensor_t *tensors = net->tensors;
    const char *fused = getenv("TT_CUDA_FUSED");
    net->impl = self;
    self->spec = &net->spec;
    self->bits = net->spec.parts == 1 && net->spec.part[0].bytes && net->spec.part[0].divisor == 1.0f;
    self->fused = !fused || strcmp(fused, "off") != 0;
    for (uint32_t t = 0; t < net->spec.towers; tensors += tt_spec_tower_tensors(&net->spec, t++))
        s_build_tower(self, net, t, tensors);
    s_list(self, net->spec.towers);
    self->action_at = tt_spec_before_action(&net->spec);
    TT_TRY(s_new_steps(self, net));
    return cuda_noise_new(&self->noise, net);
}

void cuda_net_free(tt_net_t *net)
{
    cuda_net_t *self = net->impl;
    cuda_device_t *device = (cuda_device_t *)net->device;
    if (!self)
        return;
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        if (self->tower[t].encoder)
            cuda_encoder_free(self->tower[t].encoder);
        cuda_free(device, self->encoder[t].memory);
        cuda_free(device, self->recurrent[t].memory);
    }
    cuda_free(device, self->carried.memory);
    cuda_free(device, self->walked.memory);
    cuda_free(device, self->activations.memory);
    cuda_free(device, self->lists.memory);
    cuda_free(device, self->columns.memory);
    cuda_free(device, self->partials.memory);
    cuda_free(device, self->steps);
    cuda_free(device, self->norm_parts);
    if (self->noise)
        cuda_noise_free(net, self->noise);
    free(self);
    net->impl = NULL;
}

/* ---- room ----------------------------------------------------------------------------------------------------------- */

/*  Work that is queued may still read what grows: it is waited for. */
tt_status_t cuda_room(cuda_device_t *device, cuda_room_t *room, size_t bytes)
{
    if (bytes <= room->bytes)
        return TT_OK;
    TT_TRY(cuda_said(device, cudaStreamSynchronize(device->work), "its work"));
    cuda_free(device, room->memory);
    *room = (cuda_room_t){0};
    TT_TRY(cuda_alloc(device, &room->memory, bytes));
    room->bytes = bytes;
    return TT_OK;
}

float *cuda_carve(char *memory, size_t *at, size_t rows, size_t cols)
{
    float *part = memory ? (float *)(void *)(memory + *at) : NULL;
    *at += tt_align(tt_mul(tt_mul(rows, cols), sizeof(float)), 256);
    return part;
}

static size_t s_widest(const cuda_net_t *self, uint32_t towers)
{
    size_t widest = 1;
    for (uint32_t t = 0; t < towers; t++) {
        const cuda_tower_t *tower = &self->tower[t];
        widest = tower->gives > widest ? tower->gives : widest;
        for (uint32_t l = 0; l < tower->layers; l++)
            widest = tower->layer[l].out > widest ? tower->layer[l].out : widest;
    }
    return widest;
}

static size_t s_carve_flow(cuda_flow_t *self, char *memory, bool back)
{
    const cuda_net_t *net = self->net;
    const size_t rows = self->rows;
    size_t at = 0;
    self->x = cuda_carve(memory, &at, rows, net->flat ? net->spec->obs : 0);
    if (net->acting) {
        self->joined = cuda_carve(memory, &at, rows, (size_t)net->action_at + net->spec->action);
        self->d_action = cuda_carve(memory, &at, rows, net->spec->action);
    }
    for (uint32_t t = 0; t < net->spec->towers; t++) {
        const cuda_tower_t *tower = &net->tower[t];
        for (uint32_t l = 0; l < tower->layers; l++)
            self->hidden[t][l] = cuda_carve(memory, &at, rows, tower->layer[l].out);
        if (back && !tower->outs)
            self->d_trunk[t] = cuda_carve(memory, &at, rows, tower->gives);
        if (tower->layers)
            self->last[t] = self->hidden[t][tower->layers - 1];
    }
    for (uint32_t t = 0; t < net->spec->towers; t++)
        self->heads[t] = cuda_carve(memory, &at, rows, net->tower[t].outs);
    for (int i = 0; back && i < 2; i++)
        self->d[i] = cuda_carve(memory, &at, rows, s_widest(net, net->spec->towers));
    return at;
}

tt_status_t cuda_flow(cuda_flow_t *self, const tt_net_t *net, uint32_t rows, bool back)
{
    cuda_net_t *impl = net->impl;
    cuda_device_t *device = (cuda_device_t *)net->device;
    *self = (cuda_flow_t){.net = impl, .device = device, .rows = rows};
    TT_TRY(cuda_room(device, &impl->activations, s_carve_flow(self, NULL, back)));
    s_carve_flow(self, impl->activations.memory, back);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (impl->tower[t].encoder)
            TT_TRY(cuda_room(device, &impl->encoder[t], cuda_encoder_bytes(impl->tower[t].encoder, rows, back)));
    return TT_OK;
}
