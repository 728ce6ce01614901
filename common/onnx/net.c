#include "common/onnx/net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/nn/atoms.h"
#include "common/nn/layers.h"
#include "common/nn/spec.h"
#include "common/nn/tensor.h"

#define INPUTS(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define ATTRIBUTES(...) ((const tt_onnx_attribute_t[]){__VA_ARGS__, {0}})
#define AN_INT(name_, value_)                                       \
    {                                                               \
        .name = name_, .kind = TT_ONNX_A_INT, .integer = { value_ } \
    }

static tt_onnx_value_t s_name(const char *base, const char *what)
{
    tt_onnx_value_t out;
    const int length = snprintf(out.name, sizeof out.name, "%s%s", base, what);
    TT_CHECK(length < (int)sizeof out.name);
    return out;
}

/*  value <- op(value), called after what made it. */
static void s_pass(tt_onnx_net_t *self, const char *op, tt_onnx_value_t *value, const tt_onnx_attribute_t *attribute)
{
    char what[40];
    snprintf(what, sizeof what, "/%s", op);
    const tt_onnx_value_t out = s_name(value->name, what);
    tt_onnx_node(self->model, op, INPUTS(value->name), out.name, attribute);
    *value = out;
}

static void s_activate(tt_onnx_net_t *self, tt_nn_activation_t activation, tt_onnx_value_t *value)
{
    if (activation != TT_NN_NONE)
        s_pass(self, activation == TT_NN_RELU ? "Relu" : "Tanh", value, NULL);
}

static void s_flatten(tt_onnx_net_t *self, tt_onnx_value_t *value)
{
    s_pass(self, "Flatten", value, ATTRIBUTES(AN_INT("axis", 1)));
}

/* ---- weights --------------------------------------------------------------------------------------------------------- */

static const tt_tensor_t *s_tensor(const tt_onnx_net_t *self, const char *name)
{
    for (size_t i = 0; i < self->tensors; i++)
        if (strcmp(self->tensor[i].name, name) == 0)
            return &self->tensor[i];
    return NULL;
}

/*  "actor.0" and ".weight", as files hold it. */
static tt_onnx_value_t s_weight(tt_onnx_net_t *self, const char *module, const char *what)
{
    const tt_onnx_value_t out = s_name(module, what);
    const tt_tensor_t *tensor = s_tensor(self, out.name);
    TT_CHECK(tensor);
    const size_t count = tt_tensor_count(tensor);
    uint64_t dim[4];
    tt_onnx_shape_t shape = {.type = TT_ONNX_FLOAT, .rank = tt_tensor_shape(tensor, dim)};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = (int64_t)dim[i];
    float *data = tt_array0(count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = self->params[tensor->offset + tt_tensor_at(tensor, i)];
    tt_onnx_constant(self->model, out.name, &shape, data);
    free(data);
    return out;
}

/*  value <- op(value, weight, bias). */
static void s_weigh(tt_onnx_net_t *self, const char *op, const char *module, tt_onnx_value_t *value,
    const tt_onnx_attribute_t *attribute)
{
    const tt_onnx_value_t weight = s_weight(self, module, ".weight"), bias = s_weight(self, module, ".bias");
    const tt_onnx_value_t out = s_name(module, "/out");
    tt_onnx_node(self->model, op, INPUTS(value->name, weight.name, bias.name), out.name, attribute);
    *value = out;
}

static void s_dense(tt_onnx_net_t *self, const char *module, tt_onnx_value_t *value)
{
    s_weigh(self, "Gemm", module, value, ATTRIBUTES(AN_INT("transB", 1)));
}

/* ---- the observation ------------------------------------------------------------------------------------------------- */

/*  A part as plain floats, and divided as an encoder reads it. */
static const tt_onnx_value_t *s_plain(tt_onnx_net_t *self, uint32_t p)
{
    if (*self->plain[p].name)
        return &self->plain[p];
    self->plain[p] = self->part[p];
    if (self->spec->parts && self->spec->part[p].bytes)
        s_pass(self, "Cast", &self->plain[p], ATTRIBUTES(AN_INT("to", TT_ONNX_FLOAT)));
    return &self->plain[p];
}

static const tt_onnx_value_t *s_divided(tt_onnx_net_t *self, uint32_t p)
{
    const tt_part_t part = self->spec->parts ? self->spec->part[p] : (tt_part_t){.bytes = false};
    if (*self->divided[p].name)
        return &self->divided[p];
    self->divided[p] = *s_plain(self, p);
    if (!part.bytes || part.divisor == 1.0f)
        return &self->divided[p];
    const tt_onnx_value_t divisor = s_name(self->part[p].name, "/divisor"),
                          out = s_name(self->part[p].name, "/divided");
    tt_onnx_constant(self->model, divisor.name, &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT}, &part.divisor);
    tt_onnx_node(self->model, "Div", INPUTS(self->divided[p].name, divisor.name), out.name, NULL);
    self->divided[p] = out;
    return &self->divided[p];
}

/*  All parts side by side, read by `read`. */
static tt_onnx_value_t s_whole(
    tt_onnx_net_t *self, const char *name, const tt_onnx_value_t *(*read)(tt_onnx_net_t *self, uint32_t p))
{
    const char *in[TT_PARTS_MAX + 1] = {NULL};
    if (self->spec->parts <= 1)
        return *read(self, 0);
    for (uint32_t p = 0; p < self->spec->parts; p++)
        in[p] = read(self, p)->name;
    const tt_onnx_value_t out = s_name(name, "");
    tt_onnx_node(self->model, "Concat", in, out.name, ATTRIBUTES(AN_INT("axis", 1)));
    return out;
}

static void s_reshape(tt_onnx_net_t *self, const char *name, tt_onnx_value_t *value, uint32_t rank, const int64_t *dim)
{
    const tt_onnx_value_t shape = s_name(name, "/shape"), out = s_name(name, "/shaped");
    tt_onnx_constant(self->model, shape.name, &(tt_onnx_shape_t){.type = TT_ONNX_INT64, .rank = 1, .dim = {rank}}, dim);
    tt_onnx_node(self->model, "Reshape", INPUTS(value->name, shape.name), out.name, NULL);
    *value = out;
}

/*  [rows][elements] as [rows][channels][height][width]. In a plane the channels are last. */
static tt_onnx_value_t s_picture(tt_onnx_net_t *self, const tt_tower_t *tower)
{
    const int64_t height = tower->height, width = tower->width, planes = tower->planes ? tower->planes : 1;
    const int64_t last = tower->channels / planes;
    tt_onnx_value_t out = *s_divided(self, tower->part);
    if (last > 1) {
        const tt_onnx_value_t name = s_name(tower->name, "/planes");
        s_reshape(self, name.name, &out, 5, (int64_t[]){-1, planes, height, width, last});
        s_pass(self, "Transpose", &out,
            ATTRIBUTES({.name = "perm", .kind = TT_ONNX_A_INTS, .integer = {0, 1, 4, 2, 3}, .integers = 5}));
    }
    const tt_onnx_value_t name = s_name(tower->name, "/picture");
    s_reshape(self, name.name, &out, 4, (int64_t[]){-1, tower->channels, height, width});
    return out;
}

/* ---- encoders -------------------------------------------------------------------------------------------------------- */

/*  A layer in hand. */
typedef struct {
    tt_onnx_net_t *self;
    const tt_tower_t *tower;
    uint32_t t;
    const tt_shape_t *shape; /* what comes to each layer of the tower */
    const tt_layer_t *layer;
    char module[64]; /* of the layer: "encoder.4.1" */
} turn_t;

static void s_window(const turn_t *turn, tt_onnx_value_t *value)
{
    const tt_layer_t *layer = turn->layer;
    const bool mean = layer->kind == TT_LAYER_AVG_POOL;
    const int64_t pad[2] = {layer->pad[0], layer->pad[1]};
    const tt_onnx_attribute_t *attribute = ATTRIBUTES({.name = "kernel_shape",
                                                          .kind = TT_ONNX_A_INTS,
                                                          .integer = {layer->kernel[0], layer->kernel[1]},
                                                          .integers = 2},
        {.name = "strides", .kind = TT_ONNX_A_INTS, .integer = {layer->stride[0], layer->stride[1]}, .integers = 2},
        {.name = "pads", .kind = TT_ONNX_A_INTS, .integer = {pad[0], pad[1], pad[0], pad[1]}, .integers = 4},
        AN_INT(mean ? "count_include_pad" : NULL, 1));
    if (layer->kind == TT_LAYER_CONV2D)
        s_weigh(turn->self, "Conv", turn->module, value, attribute);
    else {
        const tt_onnx_value_t out = s_name(turn->module, "/out");
        tt_onnx_node(turn->self->model, mean ? "AveragePool" : "MaxPool", INPUTS(value->name), out.name, attribute);
        *value = out;
    }
}

static void s_norm(const turn_t *turn, tt_onnx_value_t *value)
{
    s_weigh(turn->self, "LayerNormalization", turn->module, value,
        ATTRIBUTES(AN_INT("axis", 1), {.name = "epsilon", .kind = TT_ONNX_A_FLOAT, .number = 1e-5f}));
}

static void s_concat(const turn_t *turn, tt_onnx_value_t *value)
{
    const tt_onnx_value_t out = s_name(turn->module, "/out");
    const char *part = s_divided(turn->self, turn->layer->part)->name;
    const char *const *in = *value->name ? INPUTS(value->name, part) : INPUTS(part);
    tt_onnx_node(turn->self->model, "Concat", in, out.name, ATTRIBUTES(AN_INT("axis", 1)));
    *value = out;
}

/*  Rows or columns first .. first + count - 1 of a value. */
static tt_onnx_value_t s_slice(
    tt_onnx_net_t *self, const char *of, const char *name, int64_t axis, uint32_t first, uint32_t count)
{
    const tt_onnx_shape_t one = {.type = TT_ONNX_INT64, .rank = 1, .dim = {1}};
    const tt_onnx_value_t from = s_name(name, "/from"), to = s_name(name, "/to"), along = s_name(name, "/axis"),
                          out = s_name(name, "/slice");
    tt_onnx_constant(self->model, from.name, &one, &(int64_t){first});
    tt_onnx_constant(self->model, to.name, &one, &(int64_t){first + count});
    tt_onnx_constant(self->model, along.name, &one, &axis);
    tt_onnx_node(self->model, "Slice", INPUTS(of, from.name, to.name, along.name), out.name, NULL);
    return out;
}

/*  A group of `count` columns that is one-hot, from `first` on, in a table whose rows are its choices: [rows][units], zeros where there
 *  is none. */
static tt_onnx_value_t s_look_up(const turn_t *turn, uint32_t group, const char *table, uint32_t first, uint32_t count)
{
    tt_onnx_t *model = turn->self->model;
    char number[16];
    snprintf(number, sizeof number, "/%u", group);
    const tt_onnx_value_t name = s_name(turn->module, number), there = s_name(name.name, "/there"),
                          choice = s_name(name.name, "/choice"), row = s_name(name.name, "/row"),
                          out = s_name(name.name, "/out");
    const tt_onnx_value_t hot =
        s_slice(turn->self, s_plain(turn->self, turn->layer->part)->name, name.name, 1, first, count);
    tt_onnx_node(model, "ArgMax", INPUTS(hot.name), choice.name, ATTRIBUTES(AN_INT("axis", 1), AN_INT("keepdims", 0)));
    tt_onnx_node(model, "Gather", INPUTS(table, choice.name), row.name, ATTRIBUTES(AN_INT("axis", 0)));
    tt_onnx_node(model, "ReduceMax", INPUTS(hot.name), there.name,
        ATTRIBUTES({.name = "axes", .kind = TT_ONNX_A_INTS, .integer = {1}, .integers = 1}));
    tt_onnx_node(model, "Mul", INPUTS(row.name, there.name), out.name, NULL);
    return out;
}

/*  A table each of the elements has, as the choices of all stand one below the other; frames of a stack share them. */
static void s_embed(const turn_t *turn, tt_onnx_value_t *value)
{
    const tt_layer_t *layer = turn->layer;
    const tt_net_spec_t *spec = turn->self->spec;
    const uint32_t elements = spec->parts ? spec->part[layer->part].elements : spec->obs;
    const tt_onnx_value_t all = s_weight(turn->self, turn->module, ".weight"), out = s_name(turn->module, "/out");
    tt_onnx_value_t table[TT_EMBEDDED_MAX], *found = tt_array0(elements, sizeof *found);
    const char **in = tt_array0((size_t)elements + 2, sizeof *in);
    uint32_t groups = 0, used = 0;
    if (*value->name)
        in[used++] = value->name;
    for (uint32_t c = 0, first = 0; c < layer->choices; first += spec->choice[layer->choice + c++]) {
        char name[24];
        snprintf(name, sizeof name, "/table%u", c);
        table[c] =
            s_slice(turn->self, all.name, s_name(turn->module, name).name, 0, first, spec->choice[layer->choice + c]);
    }
    for (uint32_t at = 0; at < elements; groups++) {
        const uint32_t c = groups % layer->choices, n = spec->choice[layer->choice + c];
        found[groups] = s_look_up(turn, groups, table[c].name, at, n);
        in[used++] = found[groups].name;
        at += n;
    }
    tt_onnx_node(turn->self->model, "Concat", in, out.name, ATTRIBUTES(AN_INT("axis", 1)));
    free(in);
    free(found);
    *value = out;
}

static void s_layers(turn_t *turn, uint32_t first, uint32_t end, tt_onnx_value_t *value);

/*  value <- value + what the layers that it spans make of it. */
static void s_residual(const turn_t *turn, uint32_t l, tt_onnx_value_t *value)
{
    turn_t inside = *turn;
    tt_onnx_value_t sum = s_name(turn->module, "/out"), inner = *value;
    s_layers(&inside, l + 1, l + 1 + turn->layer->span, &inner);
    tt_onnx_node(turn->self->model, "Add", INPUTS(value->name, inner.name), sum.name, NULL);
    *value = sum;
}

static void s_layer(turn_t *turn, uint32_t l, tt_onnx_value_t *value)
{
    tt_onnx_net_t *self = turn->self;
    const tt_layer_kind_t kind = turn->layer->kind;
    if ((kind == TT_LAYER_DENSE || tt_layer_appends(kind)) && turn->shape[l].picture)
        s_flatten(self, value);
    if (tt_layer_looks(kind))
        s_window(turn, value);
    else if (kind == TT_LAYER_DENSE)
        s_dense(self, turn->module, value);
    else if (kind == TT_LAYER_LAYER_NORM)
        s_norm(turn, value);
    else if (kind == TT_LAYER_CONCAT)
        s_concat(turn, value);
    else if (kind == TT_LAYER_EMBED)
        s_embed(turn, value);
    else if (kind == TT_LAYER_RESIDUAL)
        s_residual(turn, l, value);
    else { /* nothing but an activation: a name of its own, as what it reads may be read by another, too */
        const tt_onnx_value_t out = s_name(turn->module, "");
        tt_onnx_node(self->model, "Identity", INPUTS(value->name), out.name, NULL);
        *value = out;
    }
    s_activate(self, turn->layer->activation, value);
}

static void s_layers(turn_t *turn, uint32_t first, uint32_t end, tt_onnx_value_t *value)
{
    for (uint32_t l = first; l < end; l++) {
        char number[TT_MODULE_TEXT];
        turn->layer = &turn->self->spec->layer[turn->tower->layer + l];
        tt_layers_module(turn->self->spec, turn->t, l, number);
        snprintf(turn->module, sizeof turn->module, "%s.%s", turn->tower->name, number);
        const uint32_t behind = turn->layer->kind == TT_LAYER_RESIDUAL ? turn->layer->span : 0;
        s_layer(turn, l, value);
        l += behind;
    }
}

static tt_onnx_value_t s_encoder(tt_onnx_net_t *self, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_tower_t *tower = &self->spec->tower[t];
    const tt_status_t status = tt_layers_shapes(self->spec, t, shape);
    TT_CHECK(status == TT_OK);
    turn_t turn = {.self = self, .tower = tower, .t = t, .shape = shape};
    const bool whole = !tower->height && !tower->blank;
    if (whole && !*self->whole_divided.name)
        self->whole_divided = s_whole(self, "observation/divided", s_divided);
    tt_onnx_value_t value = {""}; /* blank: nothing yet */
    if (!tower->blank)
        value = whole ? self->whole_divided : s_picture(self, tower);
    s_layers(&turn, 0, tower->layers, &value);
    if (shape[tower->layers].picture)
        s_flatten(self, &value);
    return value;
}

/* ---- towers ---------------------------------------------------------------------------------------------------------- */

/*  What a tower reads: the observation, or a trunk. */
static tt_onnx_value_t s_read(tt_onnx_net_t *self, const tt_tower_t *tower)
{
    if (tower->from)
        return s_name(tt_onnx_tower(self, tower->from - 1), "");
    if (!*self->whole.name)
        self->whole = s_whole(self, "observation", s_plain);
    return self->whole;
}

static tt_onnx_value_t s_mlp(tt_onnx_net_t *self, uint32_t t)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    char module[48];
    tt_onnx_value_t value = s_read(self, tower);
    for (uint32_t l = 0; l < tt_spec_layers(self->spec, t); l++) {
        snprintf(module, sizeof module, "%s.%u", tower->name, 2 * l); /* an activation is a module, too */
        s_dense(self, module, &value);
        if (l < tower->hidden_count)
            s_activate(self, tower->activation, &value);
    }
    return value;
}

/*  value + (advantage - its mean over the choices), of each of a choice's n numbers: [rows][choices n] as [rows][choices][n]. */
static tt_onnx_value_t s_dueling(tt_onnx_net_t *self, uint32_t t)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const int64_t n = self->spec->tower[tower->value].out;
    const tt_onnx_value_t mean = s_name(tower->name, "/mean"), centred = s_name(tower->name, "/centred");
    tt_onnx_value_t out = s_name(tower->name, "/out"), value = s_name(tt_onnx_tower(self, tower->value), ""),
                    advantage = s_name(tt_onnx_tower(self, tower->advantage), "");
    if (n > 1) {
        s_reshape(self, self->spec->tower[tower->value].name, &value, 3, (int64_t[]){-1, 1, n});
        s_reshape(self, self->spec->tower[tower->advantage].name, &advantage, 3, (int64_t[]){-1, tower->out / n, n});
    }
    tt_onnx_node(self->model, "ReduceMean", INPUTS(advantage.name), mean.name,
        ATTRIBUTES({.name = "axes", .kind = TT_ONNX_A_INTS, .integer = {1}, .integers = 1}));
    tt_onnx_node(self->model, "Sub", INPUTS(advantage.name, mean.name), centred.name, NULL);
    tt_onnx_node(self->model, "Add", INPUTS(value.name, centred.name), out.name, NULL);
    if (n > 1)
        s_reshape(self, tower->name, &out, 2, (int64_t[]){-1, tower->out});
    return out;
}

/*  The head [rows][out n] that a tower is made of as [rows][out][n]. */
static tt_onnx_value_t s_parts(tt_onnx_net_t *self, const tt_tower_t *tower)
{
    const int64_t n = self->spec->tower[tower->value].out / tower->out;
    tt_onnx_value_t head = s_name(tt_onnx_tower(self, tower->value), "");
    s_reshape(self, tower->name, &head, 3, (int64_t[]){-1, tower->out, n});
    return head;
}

static tt_onnx_value_t s_mean(tt_onnx_net_t *self, uint32_t t)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const tt_onnx_value_t out = s_name(tower->name, "/out"), head = s_parts(self, tower);
    tt_onnx_node(self->model, "ReduceMean", INPUTS(head.name), out.name,
        ATTRIBUTES({.name = "axes", .kind = TT_ONNX_A_INTS, .integer = {2}, .integers = 1}, AN_INT("keepdims", 0)));
    return out;
}

/*  The probabilities times the atoms. */
static tt_onnx_value_t s_atoms(tt_onnx_net_t *self, uint32_t t)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    const uint32_t n = self->spec->tower[tower->value].out / tower->out;
    const float apart = tt_atoms_apart(tower->low, tower->high, n);
    float atom[TT_ATOMS_MAX];
    for (uint32_t i = 0; i < n; i++)
        atom[i] = tt_atom(tower->low, apart, i);
    const tt_onnx_value_t atoms = s_name(tower->name, "/atoms"), shares = s_name(tower->name, "/shares");
    tt_onnx_value_t head = s_parts(self, tower), out = s_name(tower->name, "/expected");
    tt_onnx_constant(
        self->model, atoms.name, &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 2, .dim = {n, 1}}, atom);
    tt_onnx_node(self->model, "Softmax", INPUTS(head.name), shares.name, ATTRIBUTES(AN_INT("axis", 2)));
    tt_onnx_node(self->model, "MatMul", INPUTS(shares.name, atoms.name), out.name, NULL);
    s_reshape(self, out.name, &out, 2, (int64_t[]){-1, tower->out});
    return out;
}

/* ---- recurrent towers ------------------------------------------------------------------------------------------------ */

/*  A tower in hand. */
typedef struct {
    tt_onnx_net_t *self;
    const tt_tower_t *tower;
    uint32_t at;               /* column of what is carried from which on its own begins */
    tt_onnx_value_t ih, hh, h; /* what both layers give, and what is carried into it */
} step_t;

/*  "<tower>/<what>" = op(in). */
static tt_onnx_value_t s_op(const step_t *step, const char *op, const char *const *in, const char *what)
{
    const tt_onnx_value_t out = s_name(step->tower->name, what);
    tt_onnx_node(step->self->model, op, in, out.name, NULL);
    return out;
}

/*  Units' worth of columns of a value, `count` from number `first` on. */
static tt_onnx_value_t s_gates(
    const step_t *step, const tt_onnx_value_t *of, const char *what, uint32_t first, uint32_t count)
{
    const uint32_t units = step->tower->hidden[0];
    return s_slice(step->self, of->name, s_name(step->tower->name, what).name, 1, first * units, count * units);
}

static tt_onnx_value_t s_carried(const step_t *step, const char *what, uint32_t first)
{
    const uint32_t units = step->tower->hidden[0];
    return s_slice(
        step->self, step->self->carry.name, s_name(step->tower->name, what).name, 1, step->at + first * units, units);
}

/*  All gates' numbers of what a layer reads. */
static tt_onnx_value_t s_side(
    const step_t *step, const char *weight, const char *bias, const char *in, const char *what)
{
    const tt_onnx_value_t weights = s_weight(step->self, step->tower->name, weight),
                          biases = s_weight(step->self, step->tower->name, bias), out = s_name(step->tower->name, what);
    tt_onnx_node(
        step->self->model, "Gemm", INPUTS(in, weights.name, biases.name), out.name, ATTRIBUTES(AN_INT("transB", 1)));
    return out;
}

static step_t s_step(tt_onnx_net_t *self, uint32_t t)
{
    const tt_tower_t *tower = &self->spec->tower[t];
    step_t step = {.self = self, .tower = tower};
    for (uint32_t before = 0; before < t; before++)
        step.at += tt_tower_carry(&self->spec->tower[before]);
    const tt_onnx_value_t in = s_read(self, tower);
    step.h = s_carried(&step, "/h", 0);
    step.ih = s_side(&step, ".weight_ih_l0", ".bias_ih_l0", in.name, "/ih");
    step.hh = s_side(&step, ".weight_hh_l0", ".bias_hh_l0", step.h.name, "/hh");
    return step;
}

/*  c <- f c + i g; h <- o tanh(c). */
static tt_onnx_value_t s_lstm(tt_onnx_net_t *self, uint32_t t)
{
    const step_t step = s_step(self, t);
    const tt_onnx_value_t c = s_carried(&step, "/c", 1);
    const tt_onnx_value_t all = s_op(&step, "Add", INPUTS(step.ih.name, step.hh.name), "/gates");
    const tt_onnx_value_t open = s_gates(&step, &all, "/open", 0, 2), in = s_gates(&step, &all, "/in", 2, 1),
                          out = s_gates(&step, &all, "/out", 3, 1);
    const tt_onnx_value_t both = s_op(&step, "Sigmoid", INPUTS(open.name), "/i_f"),
                          g = s_op(&step, "Tanh", INPUTS(in.name), "/g"),
                          o = s_op(&step, "Sigmoid", INPUTS(out.name), "/o");
    const tt_onnx_value_t i = s_gates(&step, &both, "/i", 0, 1), f = s_gates(&step, &both, "/f", 1, 1);
    const tt_onnx_value_t kept = s_op(&step, "Mul", INPUTS(f.name, c.name), "/kept"),
                          added = s_op(&step, "Mul", INPUTS(i.name, g.name), "/added");
    self->cell[t] = s_op(&step, "Add", INPUTS(kept.name, added.name), "/c_out");
    const tt_onnx_value_t shown = s_op(&step, "Tanh", INPUTS(self->cell[t].name), "/shown");
    return s_op(&step, "Mul", INPUTS(o.name, shown.name), "/h_out");
}

/*  n = tanh(n of what it reads + r (n of what it carries)); h <- n + z (h - n). */
static tt_onnx_value_t s_gru(tt_onnx_net_t *self, uint32_t t)
{
    const step_t step = s_step(self, t);
    const tt_onnx_value_t open_ih = s_gates(&step, &step.ih, "/ih_open", 0, 2),
                          open_hh = s_gates(&step, &step.hh, "/hh_open", 0, 2),
                          new_ih = s_gates(&step, &step.ih, "/ih_new", 2, 1),
                          new_hh = s_gates(&step, &step.hh, "/hh_new", 2, 1);
    const tt_onnx_value_t open = s_op(&step, "Add", INPUTS(open_ih.name, open_hh.name), "/open");
    const tt_onnx_value_t both = s_op(&step, "Sigmoid", INPUTS(open.name), "/r_z");
    const tt_onnx_value_t r = s_gates(&step, &both, "/r", 0, 1), z = s_gates(&step, &both, "/z", 1, 1);
    const tt_onnx_value_t past = s_op(&step, "Mul", INPUTS(r.name, new_hh.name), "/past");
    const tt_onnx_value_t sum = s_op(&step, "Add", INPUTS(new_ih.name, past.name), "/new");
    const tt_onnx_value_t n = s_op(&step, "Tanh", INPUTS(sum.name), "/n");
    const tt_onnx_value_t apart = s_op(&step, "Sub", INPUTS(step.h.name, n.name), "/apart");
    const tt_onnx_value_t kept = s_op(&step, "Mul", INPUTS(z.name, apart.name), "/kept");
    return s_op(&step, "Add", INPUTS(n.name, kept.name), "/h_out");
}

/* ---- all of them ----------------------------------------------------------------------------------------------------- */

static tt_onnx_value_t (*const s_towers[])(tt_onnx_net_t *self, uint32_t t) = {
    [TT_TOWER_MLP] = s_mlp,
    [TT_TOWER_DUELING] = s_dueling,
    [TT_TOWER_MEAN] = s_mean,
    [TT_TOWER_ATOMS] = s_atoms,
    [TT_TOWER_ENCODER] = s_encoder,
    [TT_TOWER_LSTM] = s_lstm,
    [TT_TOWER_GRU] = s_gru,
};

const char *tt_onnx_tower(tt_onnx_net_t *self, uint32_t t)
{
    if (!*self->tower[t].name)
        self->tower[t] = s_towers[self->spec->tower[t].kind](self, t);
    return self->tower[t].name;
}

uint32_t tt_onnx_carry(tt_onnx_net_t *self, const char *out)
{
    const char *in[2 * TT_TOWERS_MAX + 1] = {NULL};
    uint32_t count = 0, floats = 0, left_out = 0;
    for (uint32_t t = 0; t < self->spec->towers; t++) {
        const bool made = *self->tower[t].name;
        left_out += made ? 0 : tt_tower_carry(&self->spec->tower[t]);
        if (!made || !tt_tower_recurs(self->spec->tower[t].kind))
            continue;
        TT_CHECK(!left_out);
        in[count++] = self->tower[t].name;
        if (*self->cell[t].name)
            in[count++] = self->cell[t].name;
        floats += tt_tower_carry(&self->spec->tower[t]);
    }
    if (floats)
        tt_onnx_node(self->model, "Concat", in, out, ATTRIBUTES(AN_INT("axis", 1)));
    return floats;
}
