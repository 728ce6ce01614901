/*  net - what the CPU backend keeps beside the parameters: padded or panelled copies where the parameters themselves
 *  do not suit the kernels, transposed copies for the way back, and a workspace for each lane. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/encoder.h"
#include "common/nn/spec.h"

/*  Up to here a weight matrix is read in place: its rows are few cache lines apart. Wider ones are kept in panels, for a
 *  power-of-two stride would put a whole panel into a few sets of the first-level cache. */
enum { IN_PLACE_COLS = 64 };

static size_t s_whole(size_t units)
{
    return tt_align(units, 16);
}

float *cpu_new_floats(tt_device_t *device, size_t rows, size_t cols)
{
    void *memory = NULL;
    const tt_status_t status = device->ops->alloc(device, &memory, tt_mul(tt_mul(rows, cols), sizeof(float)));
    TT_CHECK(status == TT_OK); /* here it is the host's */
    return memory;
}

/*  Tensors of a tower come as weight, bias, weight, bias ... `back`: the gradient of its input is wanted. */
void cpu_layer_build(cpu_layer_t *layer, tt_device_t *device, const tt_tensor_t *weight, const tt_tensor_t *bias,
    const float *params, bool back)
{
    layer->in = weight->rows;
    layer->out = weight->cols;
    layer->in16 = s_whole(layer->in);
    layer->out16 = s_whole(layer->out);
    layer->weight_at = weight->offset;
    layer->bias_at = bias->offset;
    if (layer->out == layer->out16)
        layer->bias = params + layer->bias_at;
    else
        layer->bias = layer->packed_bias = cpu_new_floats(device, 1, layer->out16);
    if (layer->out == layer->out16 && layer->out <= IN_PLACE_COLS) {
        layer->weight = params + layer->weight_at;
        layer->weight_panel = 16;
        layer->weight_k = layer->out;
    } else {
        layer->weight = layer->packed = cpu_new_floats(device, layer->in, layer->out16);
        layer->weight_panel = 16 * layer->in;
        layer->weight_k = 16;
    }
    if (back)
        layer->transposed = cpu_new_floats(device, layer->out, layer->in16);
}

static void s_build_head(cpu_tower_t *tower, tt_device_t *device, const tt_tensor_t *weight, const tt_tensor_t *bias)
{
    tower->in = weight->rows;
    tower->in16 = s_whole(tower->in);
    tower->outs = weight->cols;
    tower->weight_at = weight->offset;
    tower->bias_at = bias->offset;
    tower->head = cpu_new_floats(device, tower->outs, tower->in16);
    tower->head_bias = cpu_new_floats(device, 1, tower->outs);
}

/*  It has no tensors. */
static const tt_tensor_t *s_build_made(
    const tt_tower_t *spec, const cpu_tower_t *towers, cpu_tower_t *tower, const tt_tensor_t *tensors)
{
    tower->made = spec->kind;
    tower->low = spec->low;
    tower->high = spec->high;
    tower->outs = spec->out;
    tower->value = spec->value;
    tower->advantage = spec->advantage;
    tower->chain |= towers[tower->value].chain | towers[tower->advantage].chain;
    tower->near |= towers[tower->value].near | towers[tower->advantage].near;
    return tensors;
}

static const tt_tensor_t *s_build_encoder(
    const tt_net_t *net, uint32_t set, uint32_t t, cpu_tower_t *tower, const tt_tensor_t *tensors)
{
    static const tt_gemm_kind_t back[] = {
        [TT_NN_TANH] = TT_GEMM_D_TANH, [TT_NN_RELU] = TT_GEMM_D_RELU, [TT_NN_NONE] = TT_GEMM_D_NONE};
    tower->encoder = cpu_encoder_new(net, set, t, tensors);
    const cpu_value_t *last = &tower->encoder->value[tower->encoder->last];
    tower->gives16 = last->stride;
    tower->backward = back[last->activation];
    return tensors + tt_spec_tower_tensors(&net->spec, t);
}

/*  What its layers give is the gates', what the tower gives is what it carries. */
static void s_build_recurrent(const tt_net_t *net, uint32_t t, cpu_tower_t *tower)
{
    const tt_net_spec_t *spec = &net->spec;
    tower->lstm = spec->tower[t].kind == TT_TOWER_LSTM;
    tower->units = spec->tower[t].hidden[0];
    tower->units16 = s_whole(tower->units);
    tower->gates16 = tower->layer[0].out16;
    for (uint32_t before = 0; before < t; before++)
        tower->carry_at += tt_tower_carry(&spec->tower[before]);
    tower->gives16 = tower->units16;
    tower->backward = TT_GEMM_D_NONE;
}

/*  Only set 0 is trained, so that only there the way back needs copies. Returns the tensors behind the tower's. */
static const tt_tensor_t *s_build_tower(
    const tt_net_t *net, uint32_t set, uint32_t t, cpu_tower_t *towers, const tt_tensor_t *tensors)
{
    cpu_tower_t *tower = &towers[t];
    const tt_tower_t *spec = &net->spec.tower[t];
    const bool tanh = spec->activation == TT_NN_TANH;
    tower->forward = tanh ? TT_GEMM_TANH : TT_GEMM_RELU;
    tower->backward = tanh ? TT_GEMM_D_TANH : TT_GEMM_D_RELU;
    tower->group = spec->group;
    tower->reads_obs = spec->from == 0;
    tower->action = spec->action;
    tower->from = tower->reads_obs ? 0 : spec->from - 1;
    tower->chain = 1u << t | (tower->reads_obs ? 0 : towers[tower->from].chain);
    tower->near = 1u << t | (tower->reads_obs || tt_tower_recurs(spec->kind) ? 0 : towers[tower->from].near);
    if (tt_tower_is_made(spec->kind))
        return s_build_made(spec, towers, tower, tensors);
    if (spec->kind == TT_TOWER_ENCODER)
        return s_build_encoder(net, set, t, tower, tensors);
    tower->layers = tt_tower_recurs(spec->kind) ? tt_spec_layers(&net->spec, t) : spec->hidden_count;
    const float *weights = cpu_noise_weights(net, set, t);
    for (uint32_t l = 0; l < tower->layers; l++)
        cpu_layer_build(&tower->layer[l], net->device, &tensors[2 * l], &tensors[2 * l + 1], weights,
            set == 0 && (l > 0 || !tower->reads_obs || tower->action));
    if (spec->out)
        s_build_head(tower, net->device, &tensors[2 * tower->layers], &tensors[2 * tower->layers + 1]);
    tower->gives16 = tower->layers ? tower->layer[tower->layers - 1].out16 : 0;
    if (tt_tower_recurs(spec->kind))
        s_build_recurrent(net, t, tower);
    return tensors + tt_spec_tower_tensors(&net->spec, t);
}

/*  Tower t behind all that read it. */
static uint32_t s_list_back(cpu_net_t *self, uint32_t towers, uint32_t t, uint32_t count)
{
    for (uint32_t r = t + 1; r < towers; r++)
        if (!self->tower[0][r].reads_obs && self->tower[0][r].from == t)
            count = s_list_back(self, towers, r, count);
    self->back[count] = t;
    return count + 1;
}

static void s_build_towers(cpu_net_t *self, const tt_net_t *net)
{
    uint32_t count = 0;
    self->tower = tt_array0(net->sets, sizeof *self->tower);
    for (uint32_t set = 0; set < net->sets; set++) {
        const tt_tensor_t *tensors = net->tensors;
        for (uint32_t t = 0; t < net->spec.towers; t++)
            tensors = s_build_tower(net, set, t, self->tower[set], tensors);
    }
    for (uint32_t t = net->spec.towers; t-- > 0;) /* one that is made of a made one before that */
        if (self->tower[0][t].made)
            self->back[count++] = t;
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (self->tower[0][t].reads_obs && !self->tower[0][t].made)
            count = s_list_back(self, net->spec.towers, t, count);
}

/*  Buffers start a few cache lines apart from one another modulo 4 KiB, so that a row of one does not evict, or alias
 *  with, the same row of the next. Without memory yet it only counts. */
float *cpu_carve(const cpu_lane_t *lane, size_t *at, size_t floats)
{
    float *part = lane->memory ? lane->memory + *at : NULL;
    *at += s_whole(floats) + 5 * 16;
    return part;
}

/*  Heads of the views that are not trained. */
static void s_carve_views(const tt_net_t *net, const cpu_net_t *self, cpu_lane_t *lane, size_t *at)
{
    for (uint32_t view = 1; view < CPU_VIEWS; view++)
        for (uint32_t t = 0; view % TT_SETS_MAX < net->sets && t < net->spec.towers; t++)
            lane->out[view][t] = cpu_carve(lane, at, TT_BLOCK * self->tower[0][t].outs);
}

static void s_carve_slices(const tt_net_t *net, const cpu_net_t *self, cpu_lane_t *lane, size_t *at)
{
    if (!cpu_slices_may(self))
        return;
    lane->tile = cpu_carve(lane, at, CPU_TILE);
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        const size_t floats = TT_BLOCK * self->tower[0][t].outs;
        lane->d_shown[t] = cpu_carve(lane, at, floats);
        for (uint32_t view = 0; view < CPU_VIEWS; view++)
            if (view % TT_SETS_MAX < net->sets)
                lane->shown[view][t] = cpu_carve(lane, at, floats);
    }
}

static void s_carve_recurrent(const cpu_tower_t *tower, cpu_lane_t *lane, uint32_t t, size_t *at)
{
    for (int i = 0; i < 1 + tower->lstm; i++)
        lane->carried[t][i] = cpu_carve(lane, at, TT_BLOCK * tower->units16);
    lane->last[t] = cpu_carve(lane, at, TT_BLOCK * tower->units16);
}

/*  Its layers have their memory already, but for an encoder's. */
static void s_carve_trunk(const cpu_tower_t *tower, cpu_lane_t *lane, uint32_t t, size_t *at)
{
    lane->d_trunk[t] = cpu_carve(lane, at, TT_BLOCK * tower->gives16);
    if (tower->units) {
        s_carve_recurrent(tower, lane, t, at);
        return;
    }
    if (tower->encoder)
        cpu_encoder_carve(tower->encoder, lane->encoder[t], lane, at, lane->d_trunk[t]);
    lane->last[t] = tower->encoder ? lane->encoder[t]->value[tower->encoder->last] : lane->hidden[t][tower->layers - 1];
}

/*  Floats of a row that what comes back through a tower may have: what a trunk gives comes to it by this way, too. */
static size_t s_widest(const tt_net_t *net, const cpu_net_t *self)
{
    size_t widest = 0;
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        const cpu_tower_t *tower = &self->tower[0][t];
        widest = tower->gives16 > widest ? tower->gives16 : widest;
        for (uint32_t l = 0; l < tower->layers; l++)
            widest = tower->layer[l].out16 > widest ? tower->layer[l].out16 : widest;
    }
    const size_t panels = self->joined16 - self->action_at / 16 * 16; /* action.c */
    return panels > widest ? panels : widest;
}

static size_t s_carve_lane(const tt_net_t *net, const cpu_net_t *self, cpu_lane_t *lane)
{
    size_t at = 0;
    lane->x = self->flat ? cpu_carve(lane, &at, TT_BLOCK * self->obs16) : NULL;
    if (self->joined16) {
        lane->joined = cpu_carve(lane, &at, TT_BLOCK * self->joined16);
        lane->action = cpu_carve(lane, &at, TT_BLOCK * net->spec.action);
        lane->d_action = cpu_carve(lane, &at, TT_BLOCK * net->spec.action);
    }
    if (net->spec.stack.frames > 1)
        lane->stacked = cpu_carve(lane, &at, TT_BLOCK * self->stacked / sizeof(float));
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        const cpu_tower_t *tower = &self->tower[0][t];
        for (uint32_t l = 0; l < tower->layers; l++)
            lane->hidden[t][l] = cpu_carve(lane, &at, TT_BLOCK * tower->layer[l].out16);
        if (tower->outs == 0) {
            s_carve_trunk(tower, lane, t, &at);
            continue;
        }
        lane->out[0][t] = cpu_carve(lane, &at, TT_BLOCK * tower->outs);
        lane->d_out[t] = cpu_carve(lane, &at, TT_BLOCK * tower->outs);
        lane->head_grad[t] = cpu_carve(lane, &at, tower->outs * tower->in16);
    }
    for (int i = 0; i < 2; i++)
        lane->d[i] = cpu_carve(lane, &at, TT_BLOCK * s_widest(net, self));
    s_carve_views(net, self, lane, &at);
    s_carve_slices(net, self, lane, &at);
    return at;
}

static void s_build_lane(const tt_net_t *net, const cpu_net_t *self, cpu_lane_t *lane)
{
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (self->tower[0][t].encoder)
            lane->encoder[t] = tt_new0(sizeof *lane->encoder[t]);
    lane->memory = cpu_new_floats(net->device, 1, s_carve_lane(net, self, lane));
    s_carve_lane(net, self, lane);
}

static bool s_has_parts(const tt_net_spec_t *spec)
{
    bool bytes = false;
    for (uint32_t p = 0; p < spec->parts; p++)
        bytes |= spec->part[p].bytes;
    return bytes;
}

/*  Bits, and other small numbers: where bytes are divided, most of them are not 0. */
static bool s_has_bits(const tt_net_spec_t *spec)
{
    return spec->parts == 1 && spec->part[0].bytes && spec->part[0].divisor == 1.0f;
}

static bool s_has_flat(const tt_net_spec_t *spec)
{
    bool flat = false;
    for (uint32_t t = 0; t < spec->towers; t++) {
        const tt_tower_t *tower = &spec->tower[t];
        const bool reads = (tower->kind == TT_TOWER_MLP || tt_tower_recurs(tower->kind)) && tower->from == 0;
        flat |= reads && (tower->action || !(s_has_bits(spec) && tower->hidden_count));
    }
    return flat;
}

tt_status_t cpu_net_new(tt_net_t *net)
{
    cpu_net_t *self = tt_new0(sizeof *self);
    self->kernels = ((const cpu_device_t *)net->device)->kernels;
    self->spec = &net->spec;
    self->parts = s_has_parts(&net->spec);
    self->bits = s_has_bits(&net->spec);
    self->flat = s_has_flat(&net->spec);
    self->obs16 = s_whole(net->spec.obs);
    self->action_at = tt_spec_before_action(&net->spec);
    self->joined16 = self->action_at ? s_whole(self->action_at + net->spec.action) : 0;
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (net->spec.tower[t].action) {
            self->acting |= 1u << t;
            self->action_from = net->spec.tower[t].from;
        }
    self->stacked = tt_align(tt_net_row_bytes(&net->spec), 64);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        self->recurrent |= (uint32_t)tt_tower_recurs(net->spec.tower[t].kind) << t;
    self->carry = tt_net_carry(&net->spec);
    self->noise = cpu_noise_new(net);
    net->impl = self; /* parameters of 0 have copies of 0 */
    s_build_towers(self, net);
    self->lanes = tt_array0(net->device->lanes, sizeof *self->lanes);
    for (uint32_t i = 0; i < net->device->lanes; i++) {
        self->lanes[i].number = i;
        s_build_lane(net, self, &self->lanes[i]);
    }
    return TT_OK;
}

void cpu_layer_free(tt_device_t *device, cpu_layer_t *layer)
{
    device->ops->free(device, layer->packed);
    device->ops->free(device, layer->packed_bias);
    device->ops->free(device, layer->transposed);
}

static void s_free_tower(tt_device_t *device, cpu_tower_t *tower)
{
    for (uint32_t l = 0; l < tower->layers; l++)
        cpu_layer_free(device, &tower->layer[l]);
    if (tower->encoder)
        cpu_encoder_free(device, tower->encoder);
    device->ops->free(device, tower->head);
    device->ops->free(device, tower->head_bias);
}

void cpu_net_free(tt_net_t *net)
{
    cpu_net_t *self = net->impl;
    if (!self)
        return;
    for (uint32_t i = 0; i < net->device->lanes; i++) {
        net->device->ops->free(net->device, self->lanes[i].memory);
        net->device->ops->free(net->device, self->lanes[i].sequences);
        for (uint32_t t = 0; t < net->spec.towers; t++)
            free(self->lanes[i].encoder[t]);
    }
    free(self->lanes);
    for (uint32_t set = 0; set < net->sets; set++)
        for (uint32_t t = 0; t < net->spec.towers; t++)
            s_free_tower(net->device, &self->tower[set][t]);
    free(self->tower);
    cpu_noise_free(net, self->noise);
    free(self);
    net->impl = NULL;
}

void cpu_layer_refresh(const tt_kernels_t *kernels, const cpu_layer_t *layer, const float *params)
{
    const float *weight = params + layer->weight_at;
    if (layer->packed)
        kernels->pack(layer->in, layer->out, weight, layer->packed);
    if (layer->packed_bias)
        memcpy(layer->packed_bias, params + layer->bias_at, layer->out * sizeof(float));
    if (layer->transposed)
        kernels->transpose(layer->in, layer->out, weight, layer->transposed);
}

static void s_refresh_head(const cpu_tower_t *tower, const float *params)
{
    const float *weight = params + tower->weight_at;
    for (size_t k = 0; k < tower->in; k++)
        for (size_t a = 0; a < tower->outs; a++)
            tower->head[a * tower->in16 + k] = weight[k * tower->outs + a];
    memcpy(tower->head_bias, params + tower->bias_at, tower->outs * sizeof(float));
}

static void s_refresh_tower(const tt_net_t *net, uint32_t set, uint32_t t)
{
    const cpu_net_t *self = net->impl;
    const cpu_tower_t *tower = &self->tower[set][t];
    const float *weights = cpu_noise_weights(net, set, t);
    for (uint32_t l = 0; l < tower->layers; l++)
        cpu_layer_refresh(self->kernels, &tower->layer[l], weights);
    if (tower->head)
        s_refresh_head(tower, weights);
    if (tower->encoder)
        cpu_encoder_refresh(self->kernels, tower->encoder);
}

void cpu_net_refresh(const tt_net_t *net, uint32_t set, uint32_t groups)
{
    cpu_noise_refresh(net, set, groups);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (groups >> net->spec.tower[t].group & 1)
            s_refresh_tower(net, set, t);
}

void cpu_net_refresh_noisy(const tt_net_t *net, uint32_t set)
{
    cpu_noise_refresh(net, set, UINT32_MAX);
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (net->spec.tower[t].noise > 0)
            s_refresh_tower(net, set, t);
}
