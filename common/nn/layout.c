/*  layout - the tensors of a network: how many, how large, what they are called, and where each lies in the flat vector. */
#include <stdio.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/layers.h"
#include "common/nn/spec.h"

/*  Layers of an encoder that have weights, or tensors of all of them. */
static uint32_t s_encoder_count(const tt_net_spec_t *spec, const tt_tower_t *tower, bool tensors)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < tower->layers; l++) {
        tt_tensor_t weight;
        if (tt_layer_weight(spec, &spec->layer[tower->layer + l], &(tt_shape_t){0}, &weight))
            count += tensors ? tt_layer_tensors(weight.kind) : 1;
    }
    return count;
}

uint32_t tt_spec_layers(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->kind == TT_TOWER_ENCODER)
        return s_encoder_count(spec, tower, false);
    if (tt_tower_recurs(tower->kind))
        return 2; /* of what it reads, and of what it carries */
    return tt_tower_is_made(tower->kind) ? 0 : tower->hidden_count + (tower->out > 0);
}

size_t tt_spec_deviations(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->kind == TT_TOWER_ENCODER)
        return s_encoder_count(spec, tower, true);
    return 2 * (size_t)tt_spec_layers(spec, t) + (tower->log_std > 0);
}

size_t tt_spec_tower_tensors(const tt_net_spec_t *spec, uint32_t t)
{
    const bool noisy = spec->tower[t].noise > 0;
    return tt_spec_deviations(spec, t) + (noisy ? 2 * (size_t)tt_spec_layers(spec, t) : 0);
}

/*  Numbers of a unit that decide what it remembers. */
static uint32_t s_gates(tt_tower_kind_t kind)
{
    return kind == TT_TOWER_LSTM ? 4 : 3;
}

uint32_t tt_spec_gives(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->kind != TT_TOWER_ENCODER)
        return tower->hidden[tower->hidden_count - 1];
    const tt_shape_t end = tt_layers_end(spec, t);
    return (uint32_t)tt_shape_elements(&end);
}

/*  What goes into the first layer, but for an action. */
static uint32_t s_read(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    return tower->from ? tt_spec_gives(spec, tower->from - 1) : spec->obs;
}

uint32_t tt_spec_before_action(const tt_net_spec_t *spec)
{
    for (uint32_t t = 0; t < spec->towers; t++)
        if (spec->tower[t].action)
            return s_read(spec, &spec->tower[t]); /* all read the same */
    return 0;
}

/*  What goes into a layer; layer hidden_count is the head. */
static uint32_t s_in(const tt_net_spec_t *spec, const tt_tower_t *tower, uint32_t layer)
{
    if (layer) /* of a recurrent one: what it carries */
        return tower->hidden[layer - 1];
    return s_read(spec, tower) + (tower->action ? spec->action : 0);
}

static uint32_t s_units(const tt_tower_t *tower, uint32_t layer)
{
    if (tt_tower_recurs(tower->kind))
        return s_gates(tower->kind) * tower->hidden[0];
    return layer < tower->hidden_count ? tower->hidden[layer] : tower->out;
}

/*  Weights and biases of an encoder, or the multiply-adds of a row on its way through it: a convolution has its weights at each
 *  position. */
static uint64_t s_encoder_sum(const tt_net_spec_t *spec, uint32_t t, bool work)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_tower_t *tower = &spec->tower[t];
    uint64_t sum = 0;
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK);
    for (uint32_t l = 0; l < tower->layers; l++) {
        const tt_layer_t *layer = &spec->layer[tower->layer + l];
        const uint64_t positions = (uint64_t)shape[l + 1].height * shape[l + 1].width;
        tt_tensor_t weight;
        if (!tt_layer_weight(spec, layer, &shape[l], &weight))
            continue;
        if (!work)
            sum += tt_layer_params(&weight);
        else if (weight.kind == TT_TENSOR_KERNEL || weight.kind == TT_TENSOR_DENSE)
            sum += (uint64_t)weight.rows * weight.cols * positions;
    }
    return sum;
}

/*  No product overflows 64 bits with checked units: TT_TOWERS_MAX * (TT_HIDDEN_MAX + 1) layers of at most 2^32 + 2^16 floats, and
 *  encoders' layers of at most TT_PARAMS_MAX. */
uint64_t tt_spec_tower_params(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->kind == TT_TOWER_ENCODER)
        return s_encoder_sum(spec, t, false);
    const uint64_t times = tower->noise > 0 ? 2 : 1;
    uint64_t count = tower->log_std;
    for (uint32_t l = 0; l < tt_spec_layers(spec, t); l++)
        count += times * ((uint64_t)s_in(spec, tower, l) + 1) * s_units(tower, l);
    return count;
}

uint64_t tt_net_tower_work(const tt_net_spec_t *spec, uint32_t t)
{
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->kind == TT_TOWER_ENCODER)
        return s_encoder_sum(spec, t, true);
    uint64_t sum = 0;
    for (uint32_t l = 0; l < tt_spec_layers(spec, t); l++)
        sum += (uint64_t)s_in(spec, tower, l) * s_units(tower, l);
    return sum;
}

void tt_net_layer_shape(const tt_net_spec_t *spec, uint32_t t, uint32_t layer, uint32_t out[3])
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK && layer < spec->tower[t].layers);
    out[0] = shape[layer + 1].height;
    out[1] = shape[layer + 1].width;
    out[2] = shape[layer + 1].channels;
}

/*  Where a group begins and, when it is the last, where the vector ends. */
static uint64_t s_span(const tt_net_spec_t *spec, uint32_t group, uint64_t *count)
{
    uint64_t first = 0;
    *count = 0;
    for (uint32_t t = 0; t < spec->towers && spec->tower[t].group <= group; t++) {
        const tt_tower_t *tower = &spec->tower[t];
        if (t && tower->group != spec->tower[t - 1].group) {
            first = (first + *count + TT_GROUP_ALIGN - 1) / TT_GROUP_ALIGN * TT_GROUP_ALIGN;
            *count = 0;
        }
        *count += tt_spec_tower_params(spec, t);
    }
    return first;
}

uint64_t tt_spec_params(const tt_net_spec_t *spec)
{
    uint64_t count = 0;
    const uint64_t first = s_span(spec, spec->tower[spec->towers - 1].group, &count);
    return first + count;
}

/*  "<tower>.<module>.bias", behind its weight. */
static void s_name_bias(tt_tensor_t *bias, const tt_tensor_t *weight, const char *tower, const char *module)
{
    *bias = *weight;
    snprintf(bias->name, sizeof bias->name, "%s.%s.bias", tower, module);
    bias->rows = 1;
    if (weight->kind == TT_TENSOR_NORM)
        return;
    bias->kind = TT_TENSOR_VECTOR;
    memset(bias->kernel, 0, sizeof bias->kernel);
    memset(bias->picture, 0, sizeof bias->picture);
}

/*  "<tower>.<module>.weight", and the bias of a layer that has one. Returns how many they are. */
static size_t s_name_layer(tt_tensor_t *tensors, const tt_tensor_t *weight, const char *tower, const char *module)
{
    const uint32_t count = tt_layer_tensors(weight->kind);
    tensors[0] = *weight;
    snprintf(tensors[0].name, sizeof tensors[0].name, "%s.%s.weight", tower, module);
    if (count > 1)
        s_name_bias(&tensors[1], weight, tower, module);
    return count;
}

static size_t s_name_encoder(const tt_net_spec_t *spec, uint32_t t, tt_tensor_t *tensors)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_tower_t *tower = &spec->tower[t];
    size_t count = 0;
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK);
    for (uint32_t l = 0; l < tower->layers; l++) {
        char module[TT_MODULE_TEXT];
        tt_tensor_t weight;
        if (!tt_layer_weight(spec, &spec->layer[tower->layer + l], &shape[l], &weight))
            continue;
        tt_layers_module(spec, t, l, module);
        count += s_name_layer(tensors + count, &weight, tower->name, module);
    }
    return count;
}

/*  Of each weight and bias of a noisy tower one more of its shape, "<tensor>_sigma". */
static size_t s_name_deviations(const tt_net_spec_t *spec, uint32_t t, const tt_tensor_t *means, tt_tensor_t *tensors)
{
    const size_t count = spec->tower[t].noise > 0 ? 2 * (size_t)tt_spec_layers(spec, t) : 0;
    for (size_t i = 0; i < count; i++) {
        tensors[i] = means[i];
        const size_t length = strlen(means[i].name);
        snprintf(tensors[i].name + length, sizeof tensors[i].name - length, "_sigma");
    }
    return count;
}

/*  The first layer behind an encoder reads what may be a picture. */
static void s_put_picture(const tt_net_spec_t *spec, const tt_tower_t *tower, tt_tensor_t *weight)
{
    if (tower->from && spec->tower[tower->from - 1].kind == TT_TOWER_ENCODER)
        memcpy(weight->picture, (const tt_shape_t[]){tt_layers_end(spec, tower->from - 1)}[0].order,
            sizeof weight->picture);
}

/*  "<tower>.0.weight", ".0.bias", ".2.weight" ...: the numbers of an nn.Sequential that has an activation between. */
static size_t s_name_mlp(const tt_net_spec_t *spec, uint32_t t, tt_tensor_t *tensors)
{
    const tt_tower_t *tower = &spec->tower[t];
    size_t count = 0;
    for (uint32_t l = 0; l < tt_spec_layers(spec, t); l++) {
        char module[TT_MODULE_TEXT];
        tt_tensor_t weight = {.kind = TT_TENSOR_DENSE, .rows = s_in(spec, tower, l), .cols = s_units(tower, l)};
        if (l == 0)
            s_put_picture(spec, tower, &weight);
        snprintf(module, sizeof module, "%u", 2 * l);
        count += s_name_layer(tensors + count, &weight, tower->name, module);
    }
    if (tower->log_std) {
        tensors[count] = (tt_tensor_t){.kind = TT_TENSOR_VECTOR, .rows = 1, .cols = tower->log_std};
        snprintf(tensors[count].name, sizeof tensors[count].name, "%s.%s", tower->name,
            tower->log_alpha ? "log_alpha" : "log_std");
        count++;
    }
    return count + s_name_deviations(spec, t, tensors, tensors + count);
}

/*  As torch.nn.LSTM and torch.nn.GRU call those of their first layer. */
static size_t s_name_recurrent(const tt_net_spec_t *spec, uint32_t t, tt_tensor_t *tensors)
{
    static const char *const sides[] = {"ih", "hh"};
    const tt_tower_t *tower = &spec->tower[t];
    for (uint32_t l = 0; l < 2; l++) {
        tt_tensor_t *weight = tensors + 2 * l, *bias = weight + 1;
        *weight = (tt_tensor_t){.kind = TT_TENSOR_DENSE, .rows = s_in(spec, tower, l), .cols = s_units(tower, l)};
        if (l == 0)
            s_put_picture(spec, tower, weight);
        snprintf(weight->name, sizeof weight->name, "%s.weight_%s_l0", tower->name, sides[l]);
        *bias = (tt_tensor_t){.kind = TT_TENSOR_VECTOR, .rows = 1, .cols = weight->cols};
        snprintf(bias->name, sizeof bias->name, "%s.bias_%s_l0", tower->name, sides[l]);
    }
    return 4;
}

static size_t s_name_tower(const tt_net_spec_t *spec, uint32_t t, tt_tensor_t *tensors)
{
    if (tt_tower_recurs(spec->tower[t].kind))
        return s_name_recurrent(spec, t, tensors);
    return spec->tower[t].kind == TT_TOWER_ENCODER ? s_name_encoder(spec, t, tensors) : s_name_mlp(spec, t, tensors);
}

static size_t s_place(tt_tensor_t *tensors, size_t count, size_t offset, bool whole_lines)
{
    for (size_t i = 0; i < count; i++) {
        const size_t size = (size_t)tensors[i].rows * tensors[i].cols;
        if ((size % 16 == 0) == whole_lines) {
            tensors[i].offset = offset;
            offset += size;
        }
    }
    return offset;
}

size_t tt_spec_tensors(const tt_net_spec_t *spec, tt_tensor_t *tensors)
{
    size_t count = 0, offset = 0;
    for (uint32_t t = 0; t < spec->towers;) {
        const size_t first = count;
        const uint32_t group = spec->tower[t].group;
        for (; t < spec->towers && spec->tower[t].group == group; t++)
            count += s_name_tower(spec, t, tensors + count);
        offset = s_place(tensors + first, count - first, tt_align(offset, TT_GROUP_ALIGN), true);
        offset = s_place(tensors + first, count - first, offset, false);
    }
    return count;
}

uint32_t tt_net_groups(const tt_net_spec_t *spec)
{
    return spec->tower[spec->towers - 1].group + 1;
}

void tt_net_group_span(const tt_net_spec_t *spec, uint32_t group, size_t *first, size_t *count)
{
    uint64_t floats = 0;
    const uint32_t groups = tt_net_groups(spec);
    TT_CHECK(group < groups);
    *first = (size_t)s_span(spec, group, &floats);
    *count = (size_t)floats;
}

size_t tt_net_param_count(const tt_net_spec_t *spec)
{
    return tt_spec_check(spec) == TT_OK ? (size_t)tt_spec_params(spec) : 0;
}

size_t tt_net_stats_offset(const tt_net_spec_t *spec)
{
    return tt_net_param_count(spec);
}

size_t tt_net_grad_count(const tt_net_spec_t *spec)
{
    return tt_align(tt_net_param_count(spec) + TT_LOSS_STATS + spec->ride, 16);
}
