#include "cli/graph.h"
#include <string.h>
#include "cli/figures.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/nn/layers.h"

enum { TEXT = 96 };

typedef struct {
    char words[TEXT]; /* as network.encoder has it                   */
    uint32_t shape[3];
    uint64_t params, flop; /* of a row on its way forward                */
    uint32_t nested;       /* residuals that it stands in                */
} row_t;

/*  "3x3 /2 pad 1" behind what stands in out. */
static void s_add_window(char *out, const tt_layer_t *layer)
{
    size_t used = strlen(out);
    used += (size_t)snprintf(out + used, TEXT - used, " %ux%u", layer->kernel[0], layer->kernel[1]);
    if (layer->stride[0] != 1 || layer->stride[1] != 1)
        used += (size_t)snprintf(out + used, TEXT - used, layer->stride[0] == layer->stride[1] ? " /%u" : " /%ux%u",
            layer->stride[0], layer->stride[1]);
    if (layer->pad[0] || layer->pad[1])
        snprintf(out + used, TEXT - used, layer->pad[0] == layer->pad[1] ? " pad %u" : " pad %ux%u", layer->pad[0],
            layer->pad[1]);
}

/*  "image" of the column "obs.image", as the list calls it. */
static const char *s_key(const tt_column_t *column)
{
    return strncmp(column->name, "obs.", 4) == 0 ? column->name + 4 : column->name;
}

static void s_words(const tt_layer_t *layer, const tt_columns_t *columns, char out[TEXT])
{
    static const char *const activations[] = {[TT_NN_TANH] = "tanh", [TT_NN_RELU] = "relu", [TT_NN_NONE] = ""};
    const char *activation = activations[layer->activation];
    out[0] = '\0';
    switch (layer->kind) {
    case TT_LAYER_CONV2D:
        snprintf(out, TEXT, "conv %u", layer->units);
        s_add_window(out, layer);
        break;
    case TT_LAYER_MAX_POOL:
    case TT_LAYER_AVG_POOL:
        snprintf(out, TEXT, layer->kind == TT_LAYER_MAX_POOL ? "max_pool" : "avg_pool");
        s_add_window(out, layer);
        break;
    case TT_LAYER_DENSE:
        snprintf(out, TEXT, "dense %u", layer->units);
        break;
    case TT_LAYER_LAYER_NORM:
        snprintf(out, TEXT, "layer_norm");
        break;
    case TT_LAYER_ACTIVATION:
        break;
    case TT_LAYER_RESIDUAL:
        snprintf(out, TEXT, "residual, the sum with");
        break;
    case TT_LAYER_CONCAT:
        snprintf(out, TEXT, "concat %s", s_key(&columns->at[layer->part]));
        break;
    case TT_LAYER_EMBED:
        snprintf(out, TEXT, "embed %s %u", s_key(&columns->at[layer->part]), layer->units);
        break;
    }
    const size_t used = strlen(out);
    snprintf(out + used, TEXT - used, "%s%s", used && *activation ? " " : "", activation);
}

static void s_describe(
    const tt_net_spec_t *net, const tt_columns_t *columns, uint32_t t, const tt_shape_t *shape, uint32_t l, row_t *out)
{
    const tt_tower_t *tower = &net->tower[t];
    const tt_layer_t *layer = &net->layer[tower->layer + l];
    tt_tensor_t weight = {0};
    *out = (row_t){0};
    s_words(layer, columns, out->words);
    tt_net_layer_shape(net, t, l, out->shape);
    if (tt_layer_weight(net, layer, &shape[l], &weight))
        out->params = tt_layer_params(&weight);
    if (layer->kind == TT_LAYER_CONV2D || layer->kind == TT_LAYER_DENSE)
        out->flop = (uint64_t)2 * weight.rows * weight.cols *
                    (layer->kind == TT_LAYER_CONV2D ? out->shape[0] * out->shape[1] : 1);
    for (uint32_t r = 0; r < l; r++)
        out->nested +=
            net->layer[tower->layer + r].kind == TT_LAYER_RESIDUAL && r + net->layer[tower->layer + r].span >= l;
}

static void s_shapes(const tt_net_spec_t *net, uint32_t t, tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1])
{
    const tt_status_t status = tt_layers_shapes(net, t, shape);
    TT_CHECK(status == TT_OK); /* it was checked with the config */
}

/*  "20 x 20 x 32", "512". Returns out. */
static const char *s_shape_text(const uint32_t shape[3], char out[40])
{
    if (shape[0] == 1 && shape[1] == 1)
        snprintf(out, 40, "%u", shape[2]);
    else
        snprintf(out, 40, "%u x %u x %u", shape[0], shape[1], shape[2]);
    return out;
}

static void s_print_input(FILE *out, const tt_net_spec_t *net, const tt_columns_t *columns, const tt_tower_t *tower)
{
    const uint32_t shape[] = {tower->height, tower->width, tower->channels};
    char text[40];
    fprintf(out, "#   %-12s ", tower->name);
    if (tower->blank)
        fprintf(out, "what its layers embed and append\n");
    else if (tower->height == 0)
        fprintf(out, "%u, the whole observation\n", net->obs);
    else
        fprintf(out, "%s, %s%s%s\n", s_shape_text(shape, text), columns->at[tower->part].name,
            tower->planes < 2                  ? ""
            : tower->planes == tower->channels ? ", channels first"
                                               : ", frames side by side",
            net->part[tower->part].bytes && net->part[tower->part].divisor == 255 ? ", divided by 255" : "");
}

static void s_print_row(FILE *out, const row_t *row)
{
    char shape[40], number[FIGURE], work[FIGURE];
    fprintf(out, "#     %*s%-*s %-14s", 2 * (int)row->nested, "", 26 - 2 * (int)row->nested, row->words,
        s_shape_text(row->shape, shape));
    if (row->params)
        fprintf(out, " %12s parameters", figure_count(row->params, number));
    if (row->flop)
        fprintf(out, " %10s", figure_amount(row->flop, "FLOP", work));
    fputc('\n', out);
}

void graph_print(FILE *out, const tt_net_spec_t *net, const tt_columns_t *columns, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    s_shapes(net, t, shape);
    s_print_input(out, net, columns, &net->tower[t]);
    for (uint32_t l = 0; l < net->tower[t].layers; l++) {
        row_t row;
        s_describe(net, columns, t, shape, l, &row);
        s_print_row(out, &row);
    }
}

json_t *graph_json(const tt_net_spec_t *net, const tt_columns_t *columns, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    json_t *layers = json_array();
    s_shapes(net, t, shape);
    for (uint32_t l = 0; l < net->tower[t].layers; l++) {
        row_t row;
        s_describe(net, columns, t, shape, l, &row);
        json_array_append_new(layers, json_pack("{s:s, s:[I,I,I], s:I, s:I}", "layer", row.words, "shape",
                                          (json_int_t)row.shape[0], (json_int_t)row.shape[1], (json_int_t)row.shape[2],
                                          "parameters", (json_int_t)row.params, "flop", (json_int_t)row.flop));
    }
    return layers;
}
