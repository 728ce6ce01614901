#include "common/onnx/policy.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/rl/policy.h"

#define ROWS            "batch"
#define MASK_ROWS       "mask_batch" /* as many, or one for all */
#define INPUTS(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define ATTRIBUTES(...) ((const tt_onnx_attribute_t[]){__VA_ARGS__, {0}})
#define AN_INT(name_, value_)                                       \
    {                                                               \
        .name = name_, .kind = TT_ONNX_A_INT, .integer = { value_ } \
    }

typedef struct {
    const tt_onnx_policy_t *of;
    tt_onnx_t *model;
    tt_onnx_net_t net;
    tt_policy_t policy; /* what the head consists of */
} self_t;

static tt_onnx_value_t s_name(const char *base, const char *what)
{
    tt_onnx_value_t out;
    const int length = snprintf(out.name, sizeof out.name, "%s%s", base, what);
    TT_CHECK(length < (int)sizeof out.name);
    return out;
}

/*  base <- op(base, ...): a value of the name "<base>/<what>". */
static tt_onnx_value_t s_node(
    const self_t *self, const char *op, const char *const *in, const char *what, const tt_onnx_attribute_t *attribute)
{
    const tt_onnx_value_t out = s_name(in[0], what);
    tt_onnx_node(self->model, op, in, out.name, attribute);
    return out;
}

static tt_onnx_value_t s_cast(const self_t *self, const tt_onnx_value_t *value, tt_onnx_type_t type, const char *what)
{
    return s_node(self, "Cast", INPUTS(value->name), what, ATTRIBUTES(AN_INT("to", type)));
}

static tt_onnx_value_t s_vector(
    const self_t *self, const char *base, const char *what, tt_onnx_type_t type, size_t count, const void *data)
{
    const tt_onnx_value_t out = s_name(base, what);
    tt_onnx_constant(self->model, out.name, &(tt_onnx_shape_t){.type = type, .rank = 1, .dim = {(int64_t)count}}, data);
    return out;
}

static tt_onnx_value_t s_number(
    const self_t *self, const char *base, const char *what, tt_onnx_type_t type, const void *data)
{
    const tt_onnx_value_t out = s_name(base, what);
    tt_onnx_constant(self->model, out.name, &(tt_onnx_shape_t){.type = type}, data);
    return out;
}

/*  "/3": the third of several of a kind. */
static const char *s_suffix(char out[16], uint32_t number)
{
    snprintf(out, 16, "/%u", number);
    return out;
}

/*  Columns first .. first + count - 1 of a value that has `of` of them. */
static tt_onnx_value_t s_slice(
    const self_t *self, const tt_onnx_value_t *value, const char *name, uint32_t first, uint32_t count, uint32_t of)
{
    if (first == 0 && count == of)
        return *value;
    int64_t *at = tt_array0(count, sizeof *at);
    for (uint32_t i = 0; i < count; i++)
        at[i] = first + i;
    const tt_onnx_value_t out = s_name(name, "/slice"),
                          index = s_vector(self, name, "/columns", TT_ONNX_INT64, count, at);
    free(at);
    tt_onnx_node(self->model, "Gather", INPUTS(value->name, index.name), out.name, ATTRIBUTES(AN_INT("axis", 1)));
    return out;
}

/* ---- what is seen ---------------------------------------------------------------------------------------------------- */

static uint32_t s_frames(const self_t *self)
{
    return self->of->columns->stack.frames;
}

/*  As Gymnasium has a leaf's numbers. */
static tt_onnx_type_t s_type(const tt_space_t *leaf)
{
    static const tt_onnx_type_t types[TT_DTYPE_COUNT] = {[TT_F32] = TT_ONNX_FLOAT,
        [TT_F64] = TT_ONNX_DOUBLE,
        [TT_U8] = TT_ONNX_UINT8,
        [TT_I32] = TT_ONNX_INT32,
        [TT_I64] = TT_ONNX_INT64,
        [TT_BOOL] = TT_ONNX_BOOL};
    if (leaf->kind == TT_SPACE_BOX)
        return types[leaf->dtype];
    return leaf->kind == TT_SPACE_MULTI_BINARY ? TT_ONNX_INT8 : TT_ONNX_INT64;
}

/*  frames: of an observation that is stacked, one more axis in front. */
static tt_onnx_shape_t s_shape(const tt_space_t *leaf, uint32_t frames)
{
    const bool one = leaf->kind == TT_SPACE_DISCRETE;
    tt_onnx_shape_t shape = {.type = s_type(leaf), .rank = 1, .rows = ROWS};
    if (frames > 1)
        shape.dim[shape.rank++] = frames;
    for (uint32_t i = 0; !one && i < leaf->rank; i++)
        shape.dim[shape.rank++] = leaf->shape[i];
    return shape;
}

/*  One-hot: each choice of each element stands beside the element's number, and equals it or not. */
static tt_onnx_value_t s_choices(
    const self_t *self, const tt_space_t *leaf, const tt_column_t *column, const tt_onnx_value_t *flat)
{
    const uint32_t elements = column->elements, frames = s_frames(self), flat_all = frames * column->flat;
    int64_t *element = tt_array0(flat_all, sizeof *element), *choice = tt_array0(flat_all, sizeof *choice);
    for (uint32_t e = 0, at = 0; e < frames * elements; e++)
        for (int64_t c = 0; c < leaf->n[e % elements]; c++, at++) {
            element[at] = e;
            choice[at] = c + (leaf->start ? leaf->start[e % elements] : 0);
        }
    const tt_onnx_value_t of = s_vector(self, column->name, "/elements", TT_ONNX_INT64, flat_all, element),
                          which = s_vector(self, column->name, "/choices", TT_ONNX_INT64, flat_all, choice);
    free(element);
    free(choice);
    const tt_onnx_value_t beside =
        s_node(self, "Gather", INPUTS(flat->name, of.name), "/beside", ATTRIBUTES(AN_INT("axis", 1)));
    const tt_onnx_value_t equal = s_node(self, "Equal", INPUTS(beside.name, which.name), "/equal", NULL);
    return s_cast(self, &equal, TT_ONNX_FLOAT, "/one_hot");
}

/*  In double, as Tutti does it. first: of the normaliser's numbers, where the column's begin. */
static tt_onnx_value_t s_normalise(
    const self_t *self, const tt_column_t *column, uint32_t first, const tt_onnx_value_t *value)
{
    const uint32_t numbers = s_frames(self) * column->elements;
    double *mean = tt_array0(numbers, sizeof *mean), *scale = tt_array0(numbers, sizeof *scale);
    const double high = (double)self->of->clip, low = -high;
    for (uint32_t i = 0; i < numbers; i++) {
        mean[i] = tt_norm_mean(self->of->norm, first + i % column->elements);
        scale[i] = 1.0 / sqrt(tt_norm_var(self->of->norm, first + i % column->elements) + 1e-8);
    }
    const tt_onnx_value_t means = s_vector(self, column->name, "/mean", TT_ONNX_DOUBLE, numbers, mean),
                          scales = s_vector(self, column->name, "/scale", TT_ONNX_DOUBLE, numbers, scale),
                          lows = s_number(self, column->name, "/low", TT_ONNX_DOUBLE, &low),
                          highs = s_number(self, column->name, "/high", TT_ONNX_DOUBLE, &high);
    free(mean);
    free(scale);
    const tt_onnx_value_t wide = s_cast(self, value, TT_ONNX_DOUBLE, "/double");
    const tt_onnx_value_t centred = s_node(self, "Sub", INPUTS(wide.name, means.name), "/centred", NULL);
    const tt_onnx_value_t scaled = s_node(self, "Mul", INPUTS(centred.name, scales.name), "/scaled", NULL);
    const tt_onnx_value_t clipped = s_node(self, "Clip", INPUTS(scaled.name, lows.name, highs.name), "/clipped", NULL);
    return s_cast(self, &clipped, TT_ONNX_FLOAT, "/normalised");
}

/*  A leaf as a part of a network's row: bytes, or floats. */
static tt_onnx_value_t s_part(const self_t *self, const tt_space_t *leaf, const tt_column_t *column, uint32_t scaled)
{
    const tt_onnx_shape_t shape = s_shape(leaf, s_frames(self));
    const tt_onnx_value_t input = s_name(column->name, "");
    tt_onnx_input(self->model, column->name, &shape);
    tt_onnx_value_t value = s_node(self, "Flatten", INPUTS(input.name), "/flat", ATTRIBUTES(AN_INT("axis", 1)));
    if (column->choice)
        return s_choices(self, leaf, column, &value);
    const tt_onnx_type_t wanted = tt_column_is_bytes(column) ? TT_ONNX_UINT8 : TT_ONNX_FLOAT;
    if (shape.type != wanted)
        value = s_cast(self, &value, wanted, "/as_read");
    return column->dtype == TT_F32 && self->of->norm ? s_normalise(self, column, scaled, &value) : value;
}

static void s_observation(self_t *self)
{
    const tt_columns_t *columns = self->of->columns;
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const char *in[TT_COLUMNS_MAX + 1] = {NULL};
    tt_onnx_value_t part[TT_COLUMNS_MAX];
    const uint32_t count = tt_space_leaves(self->of->obs, leaf, TT_COLUMNS_MAX);
    TT_CHECK(count == columns->obs_count);
    for (uint32_t c = 0, scaled = 0; c < count; c++) {
        part[c] = s_part(self, leaf[c], &columns->at[c], scaled);
        scaled += columns->at[c].dtype == TT_F32 ? columns->at[c].elements : 0;
        in[c] = part[c].name;
    }
    if (self->of->spec->parts || count == 1) {
        memcpy(self->net.part, part, count * sizeof *part);
        return;
    }
    self->net.part[0] = s_name("obs/all", ""); /* all of it is floats, and read as one */
    tt_onnx_node(self->model, "Concat", in, self->net.part[0].name, ATTRIBUTES(AN_INT("axis", 1)));
}

/*  An input that has a value when it is not given. */
static void s_mask(const self_t *self)
{
    const uint32_t bits = self->policy.mask_bits;
    uint8_t *all = tt_array0(bits, 1);
    memset(all, 1, bits);
    tt_onnx_input(
        self->model, "mask", &(tt_onnx_shape_t){.type = TT_ONNX_BOOL, .rank = 2, .rows = MASK_ROWS, .dim = {0, bits}});
    tt_onnx_constant(self->model, "mask", &(tt_onnx_shape_t){.type = TT_ONNX_BOOL, .rank = 2, .dim = {1, bits}}, all);
    free(all);
}

/* ---- what to do ------------------------------------------------------------------------------------------------------ */

/*  "logits" and the column "action.arm" to "logits.arm": an output that equals a value. */
static void s_output(const self_t *self, const char *what, const tt_column_t *column, const tt_onnx_value_t *value,
    const tt_onnx_shape_t *shape)
{
    const tt_onnx_value_t out = s_name(what, column->name + strlen("action"));
    tt_onnx_node(self->model, "Identity", INPUTS(value->name), out.name, NULL);
    tt_onnx_output(self->model, out.name, shape);
}

static tt_onnx_value_t s_best(const self_t *self, const tt_onnx_value_t *logits, int64_t axis, bool keep)
{
    return s_node(
        self, "ArgMax", INPUTS(logits->name), "/best", ATTRIBUTES(AN_INT("axis", axis), AN_INT("keepdims", keep)));
}

static tt_onnx_value_t s_reshape(
    const self_t *self, const tt_onnx_value_t *value, const char *what, uint32_t rank, const int64_t *dim)
{
    const tt_onnx_value_t shape = s_vector(self, value->name, "/shape", TT_ONNX_INT64, rank, dim);
    return s_node(self, "Reshape", INPUTS(value->name, shape.name), what, NULL);
}

/*  The best choice of each element, [batch][elements]. */
static tt_onnx_value_t s_each_best(
    const self_t *self, const tt_policy_part_t *part, const tt_column_t *column, const tt_onnx_value_t *logits)
{
    char number[16];
    bool alike = true;
    for (uint32_t e = 1; e < part->elements; e++)
        alike &= part->n[e] == part->n[0];
    if (alike) {
        const tt_onnx_value_t table = s_reshape(self, logits, "/table", 3, (int64_t[]){-1, part->elements, part->n[0]});
        return s_best(self, &table, 2, false);
    }
    tt_onnx_value_t *each = tt_array0(part->elements, sizeof *each);
    const char **in = tt_array0(part->elements + 1, sizeof *in);
    for (uint32_t e = 0, first = 0; e < part->elements; first += part->n[e++]) {
        const tt_onnx_value_t name = s_name(column->name, s_suffix(number, e));
        const tt_onnx_value_t own = s_slice(self, logits, name.name, first, part->n[e], part->out);
        each[e] = s_best(self, &own, 1, true);
        in[e] = each[e].name;
    }
    const tt_onnx_value_t out = s_name(column->name, "/best");
    tt_onnx_node(self->model, "Concat", in, out.name, ATTRIBUTES(AN_INT("axis", 1)));
    free(in);
    free(each);
    return out;
}

/*  What is not allowed is worth nothing. */
static tt_onnx_value_t s_allowed(
    const self_t *self, const tt_policy_part_t *part, const tt_column_t *column, const tt_onnx_value_t *logits)
{
    const float nothing = -INFINITY;
    if (!self->of->mask)
        return *logits;
    const tt_onnx_value_t name = s_name(column->name, "/mask"), mask = s_name("mask", ""),
                          own = s_slice(self, &mask, name.name, part->mask, part->out, self->policy.mask_bits),
                          least = s_number(self, column->name, "/forbidden", TT_ONNX_FLOAT, &nothing),
                          out = s_name(column->name, "/allowed");
    tt_onnx_node(self->model, "Where", INPUTS(own.name, logits->name, least.name), out.name, NULL);
    return out;
}

/*  As the env takes it: counted from its start, in its type and shape. */
static void s_action(
    const self_t *self, const tt_space_t *leaf, const tt_column_t *column, const tt_onnx_value_t *value)
{
    const tt_onnx_shape_t shape = s_shape(leaf, 1);
    tt_onnx_value_t out = *value;
    int64_t dim[TT_ONNX_RANK] = {-1};
    if (leaf->start && column->choice) {
        const tt_onnx_value_t start =
            s_vector(self, column->name, "/start", TT_ONNX_INT64, column->elements, leaf->start);
        out = s_node(self, "Add", INPUTS(out.name, start.name), "/from_start", NULL);
    }
    for (uint32_t i = 1; i < shape.rank; i++)
        dim[i] = shape.dim[i];
    if (shape.rank != 2)
        out = s_reshape(self, &out, "/shaped", shape.rank, dim);
    if (shape.type != (column->choice ? TT_ONNX_INT64 : TT_ONNX_FLOAT))
        out = s_cast(self, &out, shape.type, "/cast");
    s_output(self, "action", column, &out, &shape);
}

static void s_choice_part(const self_t *self, const tt_policy_part_t *part, const tt_space_t *leaf,
    const tt_onnx_value_t *head, const char *what)
{
    const tt_column_t *column = &self->of->columns->at[part->column];
    s_output(self, what, column, head,
        &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 2, .rows = ROWS, .dim = {0, part->out}});
    const tt_onnx_value_t allowed = s_allowed(self, part, column, head);
    const tt_onnx_value_t best = s_each_best(self, part, column, &allowed);
    s_action(self, leaf, column, &best);
}

static const tt_tensor_t *s_log_std(const self_t *self)
{
    for (size_t i = 0; i < self->of->tensors; i++)
        if (strcmp(self->of->tensor[i].name, "actor.log_std") == 0)
            return &self->of->tensor[i];
    return NULL;
}

/*  Each row's own, which stand at the end of its head; held as whoever samples holds them. */
static void s_own_std(const self_t *self, const tt_policy_part_t *part, const tt_onnx_value_t *all)
{
    static const float least = TT_LOG_STD_LEAST, most = TT_LOG_STD_MOST;
    const tt_column_t *column = &self->of->columns->at[part->column];
    const uint32_t first = self->policy.out - self->policy.own_std + part->log_std;
    const tt_onnx_value_t base = s_name(column->name, "/own_std"),
                          own = s_slice(self, all, base.name, first, part->elements, self->policy.out),
                          low = s_number(self, column->name, "/least_std", TT_ONNX_FLOAT, &least),
                          high = s_number(self, column->name, "/most_std", TT_ONNX_FLOAT, &most),
                          held = s_node(self, "Clip", INPUTS(own.name, low.name, high.name), "/held", NULL);
    s_output(self, "log_std", column, &held,
        &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 2, .rows = ROWS, .dim = {0, part->elements}});
}

static void s_box_part(
    const self_t *self, const tt_policy_part_t *part, const tt_space_t *leaf, const tt_onnx_value_t *head)
{
    const tt_column_t *column = &self->of->columns->at[part->column];
    const tt_tensor_t *log_std = s_log_std(self);
    const int64_t count = part->elements;
    s_output(self, "mean", column, head,
        &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 2, .rows = ROWS, .dim = {0, count}});
    if (self->of->squash) {
        const tt_onnx_value_t squashed = s_node(self, "Tanh", INPUTS(head->name), "/squashed", NULL);
        s_action(self, leaf, column, &squashed);
    } else
        s_action(self, leaf, column, head);
    if (!log_std)
        return;
    const tt_onnx_value_t own = s_vector(self, column->name, "/log_std", TT_ONNX_FLOAT, part->elements,
        self->of->params + log_std->offset + part->log_std);
    s_output(self, "log_std", column, &own, &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 1, .dim = {count}});
}

static void s_actions(self_t *self)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const tt_net_spec_t *spec = self->of->spec;
    const uint32_t actor = tt_net_tower(spec, "actor"), head = actor < spec->towers ? actor : tt_net_tower(spec, "q");
    const uint32_t count = tt_space_leaves(self->of->action, leaf, TT_COLUMNS_MAX);
    TT_CHECK(count == self->policy.parts && head < spec->towers);
    const tt_onnx_value_t all = s_name(tt_onnx_tower(&self->net, head), "");
    for (uint32_t p = 0; p < count; p++) {
        const tt_policy_part_t *part = &self->policy.part[p];
        const char *name = self->of->columns->at[part->column].name;
        const tt_onnx_value_t base = s_name(name, "/head"),
                              own = s_slice(self, &all, base.name, part->head, part->out, self->policy.out);
        if (part->box)
            s_box_part(self, part, leaf[part->number], &own);
        else
            s_choice_part(self, part, leaf[part->number], &own, head == actor ? "logits" : "q");
        if (part->box && self->policy.own_std)
            s_own_std(self, part, &all);
    }
}

static void s_value(self_t *self)
{
    const uint32_t critic = tt_net_tower(self->of->spec, "critic");
    if (!self->of->value || critic == self->of->spec->towers)
        return;
    const tt_onnx_value_t head = s_name(tt_onnx_tower(&self->net, critic), ""),
                          flat = s_reshape(self, &head, "/flat", 1, (int64_t[]){-1});
    tt_onnx_node(self->model, "Identity", INPUTS(flat.name), "value", NULL);
    tt_onnx_output(self->model, "value", &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 1, .rows = ROWS});
}

/*  Who runs the model keeps it between steps, and so must be told of it: an input without a value of its own. */
static void s_carry(self_t *self)
{
    const uint32_t floats = tt_onnx_carry(&self->net, "carry_out");
    const tt_onnx_shape_t shape = {.type = TT_ONNX_FLOAT, .rank = 2, .rows = ROWS, .dim = {0, floats}};
    if (!floats)
        return;
    tt_onnx_input(self->model, self->net.carry.name, &shape);
    tt_onnx_output(self->model, "carry_out", &shape);
    tt_onnx_meta(self->model, "carry", "zeros where an episode begins, and then carry_out of the step before");
}

void tt_onnx_policy(tt_onnx_t *model, const tt_onnx_policy_t *policy)
{
    self_t *self = tt_new0(sizeof *self);
    self->of = policy;
    self->model = model;
    self->net = (tt_onnx_net_t){.model = model,
        .spec = policy->spec,
        .tensor = policy->tensor,
        .tensors = policy->tensors,
        .params = policy->params};
    self->net.carry = s_name("carry", "");
    tt_policy_of(&self->policy, policy->columns);
    s_observation(self);
    if (policy->mask)
        s_mask(self);
    s_actions(self);
    s_value(self);
    s_carry(self);
    free(self);
}
