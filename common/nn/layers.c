#include "common/nn/layers.h"
#include <stdio.h>
#include <string.h>

uint64_t tt_shape_elements(const tt_shape_t *shape)
{
    return (uint64_t)shape->height * shape->width * shape->channels;
}

static tt_shape_t s_vector(uint32_t elements)
{
    return (tt_shape_t){.height = 1, .width = 1, .channels = elements};
}

static tt_shape_t s_picture(uint32_t height, uint32_t width, uint32_t channels)
{
    return (tt_shape_t){height, width, channels, true, {height, width, channels}};
}

static const tt_layer_t *s_layer(const tt_net_spec_t *spec, uint32_t t, uint32_t layer)
{
    return &spec->layer[spec->tower[t].layer + layer];
}

/* ---- what each kind makes of what comes to it ---------------------------------------------------------------------- */

static tt_status_t s_check_units(const tt_layer_t *layer, uint64_t in)
{
    if (layer->units < 1 || layer->units > TT_UNITS_MAX)
        return tt_err(TT_INVALID, "it has %u units; 1 to %d are possible", layer->units, TT_UNITS_MAX);
    if (in > TT_PARAMS_MAX || in * layer->units > TT_PARAMS_MAX)
        return tt_err(TT_INVALID, "%llu numbers for each of %u units are more than the %d weights that are possible",
            (unsigned long long)in, layer->units, TT_PARAMS_MAX);
    return TT_OK;
}

/*  A window of a pooling layer always has a position inside the picture, so that something can be chosen. */
static tt_status_t s_check_window(const tt_layer_t *layer, const tt_shape_t *in)
{
    const uint8_t *kernel = layer->kernel, *stride = layer->stride, *pad = layer->pad;
    const bool pool = tt_layer_pools(layer->kind);
    if (!in->picture)
        return tt_err(TT_INVALID, "it needs a picture, and a vector of %u numbers comes to it", in->channels);
    if (!kernel[0] || !kernel[1] || !stride[0] || !stride[1])
        return tt_err(TT_INVALID, "a kernel of %u x %u and a stride of %u x %u; 1 to 255 are possible", kernel[0],
            kernel[1], stride[0], stride[1]);
    for (int i = 0; i < 2; i++)
        if (pool ? 2 * pad[i] > kernel[i] : pad[i] >= kernel[i])
            return tt_err(TT_INVALID, "padding of %u x %u for a kernel of %u x %u: it must be %s", pad[0], pad[1],
                kernel[0], kernel[1], pool ? "at most half of it" : "smaller");
    if (in->height + 2u * pad[0] < kernel[0] || in->width + 2u * pad[1] < kernel[1])
        return tt_err(TT_INVALID, "a kernel of %u x %u does not fit a picture of %u x %u with padding of %u x %u",
            kernel[0], kernel[1], in->height, in->width, pad[0], pad[1]);
    return TT_OK;
}

static tt_shape_t s_windows(const tt_layer_t *layer, const tt_shape_t *in, uint32_t channels)
{
    return s_picture((in->height + 2u * layer->pad[0] - layer->kernel[0]) / layer->stride[0] + 1,
        (in->width + 2u * layer->pad[1] - layer->kernel[1]) / layer->stride[1] + 1, channels);
}

static tt_status_t s_conv(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    (void)spec;
    TT_TRY(s_check_window(layer, in));
    TT_TRY(s_check_units(layer, (uint64_t)layer->kernel[0] * layer->kernel[1] * in->channels));
    *out = s_windows(layer, in, layer->units);
    return TT_OK;
}

static tt_status_t s_pool(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    enum { POSITIONS = 256 }; /* one byte says which is the largest; a mean has the same room */
    (void)spec;
    TT_TRY(s_check_window(layer, in));
    if (layer->kernel[0] * layer->kernel[1] > POSITIONS)
        return tt_err(TT_INVALID, "a window of %u x %u; %d positions are possible", layer->kernel[0], layer->kernel[1],
            POSITIONS);
    *out = s_windows(layer, in, in->channels);
    return TT_OK;
}

static tt_status_t s_dense(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    (void)spec;
    TT_TRY(s_check_units(layer, tt_shape_elements(in)));
    *out = s_vector(layer->units);
    return TT_OK;
}

static tt_status_t s_same(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    (void)spec;
    if (layer->kind == TT_LAYER_ACTIVATION && layer->activation == TT_NN_NONE)
        return tt_err(TT_INVALID, "it is nothing but an activation, and has none");
    *out = *in;
    return TT_OK;
}

/*  The part that a layer takes something of. */
static tt_status_t s_find_part(const tt_net_spec_t *spec, const tt_layer_t *layer, tt_part_t *out)
{
    const uint32_t parts = spec->parts ? spec->parts : 1;
    if (layer->part >= parts)
        return tt_err(TT_INVALID, "it appends part %u of an observation of %u", layer->part, parts);
    *out = spec->parts ? spec->part[layer->part] : (tt_part_t){.elements = spec->obs};
    return TT_OK;
}

/*  What there is, and `more` numbers behind it. */
static tt_status_t s_append(const tt_shape_t *in, uint64_t more, tt_shape_t *out)
{
    const uint64_t elements = tt_shape_elements(in) + more;
    if (elements > TT_ACTIVATIONS_MAX)
        return tt_err(
            TT_INVALID, "%llu numbers side by side; %d are possible", (unsigned long long)elements, TT_ACTIVATIONS_MAX);
    *out = s_vector((uint32_t)elements);
    memcpy(out->order, in->order, sizeof out->order);
    return TT_OK;
}

static tt_status_t s_concat(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    tt_part_t part = {0};
    TT_TRY(s_find_part(spec, layer, &part));
    return s_append(in, part.elements, out);
}

/*  Rows of the table: choices of all its elements. */
static uint32_t s_table_rows(const tt_net_spec_t *spec, const tt_layer_t *layer)
{
    uint32_t rows = 0;
    for (uint32_t c = 0; c < layer->choices; c++)
        rows += spec->choice[layer->choice + c];
    return rows;
}

static tt_status_t s_check_choices(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_part_t *part)
{
    uint64_t sum = 0;
    if (spec->choices > TT_EMBEDDED_MAX || layer->choice > spec->choices || layer->choices < 1 ||
        layer->choices > spec->choices - layer->choice)
        return tt_err(TT_INVALID, "it embeds choices %u to %u of %u; at most %d are possible", layer->choice,
            layer->choice + layer->choices, spec->choices, TT_EMBEDDED_MAX);
    for (uint32_t c = 0; c < layer->choices; c++) {
        const uint32_t n = spec->choice[layer->choice + c];
        if (n < 1 || n > TT_CHOICES_MAX)
            return tt_err(TT_INVALID, "it embeds a choice of %u; 1 to %d are possible", n, TT_CHOICES_MAX);
        sum += n;
    }
    if (part->bytes || part->elements % sum)
        return tt_err(TT_INVALID, "it embeds choices of %llu together, and part %u has %u %s", (unsigned long long)sum,
            layer->part, part->elements, part->bytes ? "bytes" : "floats");
    return TT_OK;
}

static tt_status_t s_embed(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out)
{
    tt_part_t part = {0};
    TT_TRY(s_find_part(spec, layer, &part));
    TT_TRY(s_check_choices(spec, layer, &part));
    const uint32_t rows = s_table_rows(spec, layer);
    TT_TRY(s_check_units(layer, rows));
    return s_append(in, (uint64_t)(part.elements / rows) * layer->choices * layer->units, out);
}

static const struct {
    const char *name;
    tt_status_t (*shape)(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_shape_t *out);
} s_kinds[] = {
    [TT_LAYER_CONV2D] = {"conv2d", s_conv},
    [TT_LAYER_MAX_POOL] = {"max_pool", s_pool},
    [TT_LAYER_DENSE] = {"dense", s_dense},
    [TT_LAYER_LAYER_NORM] = {"layer_norm", s_same},
    [TT_LAYER_ACTIVATION] = {"activation", s_same},
    [TT_LAYER_RESIDUAL] = {"residual", s_same},
    [TT_LAYER_CONCAT] = {"concat", s_concat},
    [TT_LAYER_AVG_POOL] = {"avg_pool", s_pool},
    [TT_LAYER_EMBED] = {"embed", s_embed},
};

static const char *s_name(tt_layer_kind_t kind)
{
    return (size_t)kind < TT_COUNT(s_kinds) ? s_kinds[kind].name : "unknown";
}

bool tt_layer_weight(const tt_net_spec_t *spec, const tt_layer_t *layer, const tt_shape_t *in, tt_tensor_t *weight)
{
    const uint32_t elements = (uint32_t)tt_shape_elements(in);
    switch (layer->kind) {
    case TT_LAYER_CONV2D:
        *weight = (tt_tensor_t){.kind = TT_TENSOR_KERNEL,
            .rows = layer->kernel[0] * layer->kernel[1] * in->channels,
            .cols = layer->units,
            .kernel = {layer->kernel[0], layer->kernel[1]}};
        return true;
    case TT_LAYER_DENSE:
        *weight = (tt_tensor_t){.kind = TT_TENSOR_DENSE, .rows = elements, .cols = layer->units};
        break;
    case TT_LAYER_LAYER_NORM:
        *weight = (tt_tensor_t){.kind = TT_TENSOR_NORM, .rows = 1, .cols = elements};
        break;
    case TT_LAYER_EMBED:
        *weight = (tt_tensor_t){.kind = TT_TENSOR_TABLE, .rows = s_table_rows(spec, layer), .cols = layer->units};
        return true;
    default:
        return false;
    }
    memcpy(weight->picture, in->order, sizeof weight->picture);
    return true;
}

uint64_t tt_layer_params(const tt_tensor_t *weight)
{
    return ((uint64_t)weight->rows + tt_layer_tensors(weight->kind) - 1) * weight->cols;
}

/* ---- one after the other ------------------------------------------------------------------------------------------- */

/*  Residuals that are open, the outermost first. */
typedef struct {
    struct {
        uint32_t layer, end; /* behind its last layer                   */
        uint32_t module;     /* the next number of a module inside it   */
    } open[TT_RESIDUALS_DEEP + 1];
    uint32_t depth;
} nest_t;

static tt_status_t s_open(const tt_net_spec_t *spec, uint32_t t, uint32_t l, nest_t *nest)
{
    const tt_layer_t *layer = s_layer(spec, t, l);
    const uint32_t end = nest->depth ? nest->open[nest->depth - 1].end : spec->tower[t].layers;
    if (layer->span < 1 || layer->span > end - l - 1)
        return tt_err(TT_INVALID, "it spans %u layers, and %u follow%s", layer->span, end - l - 1,
            nest->depth ? " in the residual that it lies in" : "");
    if (nest->depth == TT_RESIDUALS_DEEP)
        return tt_err(TT_INVALID, "residuals lie in one another at most %d deep", TT_RESIDUALS_DEEP);
    nest->open[nest->depth].layer = l;
    nest->open[nest->depth].module = 0;
    nest->open[nest->depth++].end = l + 1 + layer->span;
    return TT_OK;
}

static bool s_other_order(const tt_shape_t *a, const tt_shape_t *b)
{
    return !a->picture && memcmp(a->order, b->order, sizeof a->order) != 0;
}

static bool s_alike(const tt_shape_t *a, const tt_shape_t *b)
{
    return a->height == b->height && a->width == b->width && a->channels == b->channels && a->picture == b->picture;
}

/*  Residuals that end with layer l. */
static tt_status_t s_close(const tt_net_spec_t *spec, uint32_t t, uint32_t l, nest_t *nest, const tt_shape_t *shape)
{
    for (; nest->depth && nest->open[nest->depth - 1].end == l + 1; nest->depth--) {
        const uint32_t residual = nest->open[nest->depth - 1].layer;
        const tt_shape_t *in = &shape[residual + 1], *out = &shape[l + 1];
        if (s_alike(in, out) && s_other_order(in, out))
            return tt_err(TT_INVALID,
                "network: %s: layer %u (residual): it would add numbers of a flattened picture and those of a dense "
                "layer",
                spec->tower[t].name, residual + 1);
        if (!s_alike(in, out))
            return tt_err(TT_INVALID,
                "network: %s: layer %u (residual): %u x %u x %u comes to it, and what it spans makes %u x %u x %u of "
                "it: it "
                "has to keep the shape",
                spec->tower[t].name, residual + 1, in->height, in->width, in->channels, out->height, out->width,
                out->channels);
    }
    return TT_OK;
}

static tt_status_t s_step(
    const tt_net_spec_t *spec, uint32_t t, uint32_t l, nest_t *nest, const tt_shape_t *in, tt_shape_t *out)
{
    const tt_layer_t *layer = s_layer(spec, t, l);
    if ((size_t)layer->kind >= TT_COUNT(s_kinds))
        return tt_err(TT_INVALID, "kind %d is unknown", (int)layer->kind);
    if (layer->activation != TT_NN_TANH && layer->activation != TT_NN_RELU && layer->activation != TT_NN_NONE)
        return tt_err(TT_INVALID, "activation %d is unknown", (int)layer->activation);
    if (!tt_shape_elements(in) && !tt_layer_appends(layer->kind))
        return tt_err(TT_INVALID, "nothing comes to it");
    TT_TRY(s_kinds[layer->kind].shape(spec, layer, in, out));
    return layer->kind == TT_LAYER_RESIDUAL ? s_open(spec, t, l, nest) : TT_OK;
}

static tt_shape_t s_begin(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    if (tower->height)
        return s_picture(tower->height, tower->width, tower->channels);
    return s_vector(tower->blank ? 0 : spec->obs);
}

tt_status_t tt_layers_shapes(const tt_net_spec_t *spec, uint32_t t, tt_shape_t *shape)
{
    const tt_tower_t *tower = &spec->tower[t];
    nest_t nest = {.depth = 0};
    shape[0] = s_begin(spec, tower);
    for (uint32_t l = 0; l < tower->layers; l++) {
        const tt_status_t status = s_step(spec, t, l, &nest, &shape[l], &shape[l + 1]);
        if (status != TT_OK)
            return tt_err_wrap(
                status, "network: %s: layer %u (%s)", tower->name, l + 1, s_name(s_layer(spec, t, l)->kind));
        TT_TRY(s_close(spec, t, l, &nest, shape));
    }
    return TT_OK;
}

tt_shape_t tt_layers_end(const tt_net_spec_t *spec, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK);
    return shape[spec->tower[t].layers];
}

/* ---- an encoder ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_check_picture(const tt_net_spec_t *spec, const tt_tower_t *tower)
{
    const uint32_t parts = spec->parts ? spec->parts : 1;
    if (!tower->height)
        return tower->width || tower->channels ? tt_err(TT_INVALID, "network: %s: a picture of 0 x %u x %u",
                                                     tower->name, tower->width, tower->channels)
                                               : TT_OK;
    if (tower->blank)
        return tt_err(TT_INVALID, "network: %s reads a picture, and nothing", tower->name);
    if (tower->part >= parts)
        return tt_err(TT_INVALID, "network: %s reads part %u of an observation of %u", tower->name, tower->part, parts);
    const uint32_t there = spec->parts ? spec->part[tower->part].elements : spec->obs;
    const uint64_t area = (uint64_t)tower->height * tower->width;
    if (tower->planes && tower->channels % tower->planes)
        return tt_err(TT_INVALID, "network: %s: %u channels in %u planes", tower->name, tower->channels, tower->planes);
    if (!area || !tower->channels || area > there || area * tower->channels != there)
        return tt_err(TT_INVALID,
            "network: %s: a picture of %u x %u x %u, and the observation's part %u has %u numbers", tower->name,
            tower->height, tower->width, tower->channels, tower->part, there);
    return TT_OK;
}

/*  A block of rows keeps all of them, for the way back. */
static tt_status_t s_check_numbers(const tt_tower_t *tower, const tt_shape_t *shape)
{
    uint64_t numbers = 0;
    for (uint32_t l = 0; l <= tower->layers; l++)
        numbers += tt_shape_elements(&shape[l]);
    if (numbers > TT_ACTIVATIONS_MAX)
        return tt_err(TT_INVALID, "network: %s: a row has %llu numbers between all layers; %d are possible",
            tower->name, (unsigned long long)numbers, TT_ACTIVATIONS_MAX);
    return TT_OK;
}

tt_status_t tt_layers_check(const tt_net_spec_t *spec, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_tower_t *tower = &spec->tower[t];
    if (tower->from || tower->hidden_count || tower->out || tower->log_std)
        return tt_err(
            TT_INVALID, "network: %s is an encoder: it reads the observation, and has layers and no head", tower->name);
    if (tower->layers < 1 || tower->layer > spec->layers || tower->layers > spec->layers - tower->layer)
        return tt_err(TT_INVALID, "network: %s: layers %u to %u of %u", tower->name, tower->layer,
            tower->layer + tower->layers, spec->layers);
    TT_TRY(s_check_picture(spec, tower));
    TT_TRY(tt_layers_shapes(spec, t, shape));
    return s_check_numbers(tower, shape);
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

/*  The last layer of the residual at `layer`. */
static uint32_t s_residual_end(const tt_net_spec_t *spec, uint32_t t, uint32_t layer)
{
    return layer + s_layer(spec, t, layer)->span;
}

/*  How many modules stand for a layer, without those inside it; *before of them stand before the one that has its name. */
static uint32_t s_modules(const tt_layer_t *layer, const tt_shape_t *in, uint32_t *before)
{
    const bool vector = layer->kind == TT_LAYER_DENSE || tt_layer_appends(layer->kind);
    *before = vector && in->picture; /* a Flatten */
    return *before + 1 + (layer->kind != TT_LAYER_ACTIVATION && layer->activation != TT_NN_NONE);
}

void tt_layers_module(const tt_net_spec_t *spec, uint32_t t, uint32_t layer, char out[TT_MODULE_TEXT])
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    uint32_t number[TT_RESIDUALS_DEEP + 2], next[TT_RESIDUALS_DEEP + 2] = {0}, end[TT_RESIDUALS_DEEP + 2] = {0},
                                                                     depth = 0;
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK);
    for (uint32_t l = 0; l <= layer; l++) {
        uint32_t before = 0;
        while (depth && end[depth] < l)
            depth--;
        const uint32_t modules = s_modules(s_layer(spec, t, l), &shape[l], &before);
        number[depth] = next[depth] + before;
        next[depth] += modules;
        if (s_layer(spec, t, l)->kind == TT_LAYER_RESIDUAL && l < layer) {
            end[++depth] = s_residual_end(spec, t, l);
            next[depth] = 0;
        }
    }
    size_t at = 0;
    for (uint32_t d = 0; d <= depth; d++)
        at += (size_t)snprintf(out + at, TT_MODULE_TEXT - at, d ? ".%u" : "%u", number[d]);
}
