#include "common/nn/cpu/encoder.h"
#include <string.h>
#include "common/nn/spec.h"

/*  A layer at a row: what comes to it and what it gives; on the way back, with the derivative of its own activation, what came to
 *  that, and where what comes to its input goes (NULL: nobody wants it). */
typedef struct {
    const cpu_block_t *block;
    const cpu_encoder_t *self;
    const cpu_encoder_lane_t *lane;
    const cpu_op_t *op;
    const cpu_slice_t *slice; /* on the way back: the row's */
    size_t row;
    const cpu_value_t *in, *out;
    const float *x;
    float *y, *d, *d_x;
    uint8_t *which;
    float *moments;
} turn_t;

static float *s_value(const turn_t *turn, uint32_t v)
{
    return turn->lane->value[v] + turn->row * turn->self->value[v].stride;
}

static float *s_derivative(const turn_t *turn, uint32_t v)
{
    return turn->lane->d[v] + turn->row * turn->self->value[v].d_stride;
}

static const tt_kernels_t *s_kernels(const turn_t *turn)
{
    return turn->block->net->kernels;
}

/* ---- what is read ---------------------------------------------------------------------------------------------------- */

/*  The part, and where in a row it begins. */
static tt_part_t s_part(const tt_net_spec_t *spec, uint32_t p, size_t *offset)
{
    *offset = 0;
    if (!spec->parts)
        return (tt_part_t){.elements = spec->obs};
    for (uint32_t before = 0; before < p; before++)
        *offset += tt_spec_part_bytes(&spec->part[before]);
    return spec->part[p];
}

static void s_float_planes(size_t planes, size_t deep, size_t pixels, const float *in, float *out)
{
    for (size_t p = 0; p < pixels; p++)
        for (size_t k = 0; k < planes; k++)
            for (size_t c = 0; c < deep; c++)
                *out++ = in[(k * pixels + p) * deep + c];
}

static void s_read_part(const turn_t *turn, uint32_t p, float *to)
{
    size_t offset = 0;
    const tt_part_t part = s_part(turn->self->spec, p, &offset);
    const char *from = (const char *)turn->block->from[turn->row] + offset;
    if (part.bytes)
        cpu_widen(s_kernels(turn), part.elements, (const uint8_t *)from, part.divisor, to);
    else
        memcpy(to, from, part.elements * sizeof *to);
}

static void s_read_planes(const turn_t *turn, float *to)
{
    const tt_tower_t *tower = turn->self->tower;
    const size_t pixels = (size_t)tower->height * tower->width;
    const size_t deep = tower->channels / tower->planes;
    size_t offset = 0;
    const tt_part_t part = s_part(turn->self->spec, tower->part, &offset);
    const char *from = (const char *)turn->block->from[turn->row] + offset;
    if (part.bytes)
        cpu_widen_planes(s_kernels(turn), tower->planes, deep, pixels, (const uint8_t *)from, part.divisor, to);
    else
        s_float_planes(tower->planes, deep, pixels, (const float *)(const void *)from, to);
}

/*  A row to value 0. */
static void s_read(const turn_t *turn)
{
    const tt_net_spec_t *spec = turn->self->spec;
    const tt_tower_t *tower = turn->self->tower;
    float *to = s_value(turn, 0);
    if (tower->blank)
        return;
    if (tower->height && tower->planes > 1)
        s_read_planes(turn, to);
    else if (tower->height)
        s_read_part(turn, tower->part, to);
    for (uint32_t p = 0; !tower->height && p < (spec->parts ? spec->parts : 1); p++) {
        s_read_part(turn, p, to);
        to += spec->parts ? spec->part[p].elements : spec->obs;
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------------- */

static void s_conv(const turn_t *turn)
{
    const cpu_op_t *op = turn->op;
    cpu_conv_forward(
        s_kernels(turn), &op->window, op->layer->activation, op->packed, op->params + op->bias_at, turn->x, turn->y);
}

static void s_activate(const turn_t *turn, const float *x)
{
    if (turn->out->activation != TT_NN_NONE || x != turn->y)
        cpu_activate(s_kernels(turn), turn->out->activation, turn->out->count, x, turn->y);
}

static void s_pool(const turn_t *turn)
{
    cpu_pool_forward(s_kernels(turn), &turn->op->window, turn->x, turn->y, turn->which);
    s_activate(turn, turn->y);
}

static void s_norm(const turn_t *turn)
{
    const cpu_op_t *op = turn->op;
    cpu_norm_forward(s_kernels(turn), turn->in->count, turn->x, op->params + op->weight_at, op->params + op->bias_at,
        turn->y, turn->moments);
    s_activate(turn, turn->y);
}

static void s_only_activate(const turn_t *turn)
{
    s_activate(turn, turn->x);
}

static void s_residual(const turn_t *turn)
{
    const float *inner = s_value(turn, turn->op->inner);
    for (size_t i = 0; i < turn->out->count; i++)
        turn->y[i] = turn->x[i] + inner[i];
    s_activate(turn, turn->y);
}

/*  The choices of a row, in their order: each a row of the table, or NOTHING. */
typedef struct {
    const float *hot, *end; /* groups, one-hot: what is left of them */
    const uint32_t *sizes;  /* of the groups, which come again in each frame */
    uint32_t count, next;
    size_t first; /* of the next group in the table */
} choices_t;

enum { NOTHING = -1 };

static choices_t s_choices(const turn_t *turn)
{
    const tt_layer_t *layer = turn->op->layer;
    size_t offset = 0;
    const tt_part_t part = s_part(turn->self->spec, layer->part, &offset);
    const float *hot = (const float *)(const void *)((const char *)turn->block->from[turn->row] + offset);
    return (choices_t){.hot = hot,
        .end = hot + part.elements,
        .sizes = turn->self->spec->choice + layer->choice,
        .count = layer->choices};
}

static bool s_next_choice(choices_t *self, ptrdiff_t *row)
{
    if (self->hot == self->end)
        return false;
    const size_t n = self->sizes[self->next];
    size_t i = 0;
    while (i < n && self->hot[i] == 0.0f)
        i++;
    *row = i < n ? (ptrdiff_t)(self->first + i) : NOTHING;
    self->hot += n;
    self->next = (self->next + 1) % self->count;
    self->first = self->next ? self->first + n : 0;
    return true;
}

/*  Nothing is multiplied: a table's row is what comes out. */
static void s_embed(const turn_t *turn)
{
    const size_t units = turn->op->layer->units;
    const float *table = turn->op->params + turn->op->weight_at;
    choices_t choices = s_choices(turn);
    float *to = turn->y + turn->in->count;
    memcpy(turn->y, turn->x, turn->in->count * sizeof *turn->y);
    for (ptrdiff_t row; s_next_choice(&choices, &row); to += units)
        if (row == NOTHING)
            memset(to, 0, units * sizeof *to);
        else
            memcpy(to, table + (size_t)row * units, units * sizeof *to);
    s_activate(turn, turn->y);
}

static void s_concat(const turn_t *turn)
{
    memcpy(turn->y, turn->x, turn->in->count * sizeof *turn->y);
    s_read_part(turn, turn->op->layer->part, turn->y + turn->in->count);
    s_activate(turn, turn->y);
}

/* ---- back ------------------------------------------------------------------------------------------------------------ */

static bool s_first(const turn_t *turn)
{
    return turn->block->first && turn->row == turn->slice->first;
}

/*  With the derivative of what gave the input. */
static void s_give(const turn_t *turn, const float *d)
{
    if (turn->d_x && (turn->in->activation != TT_NN_NONE || d != turn->d_x))
        cpu_activate_back(s_kernels(turn), turn->in->activation, turn->in->count, turn->x, d, turn->d_x);
}

static void s_conv_back(const turn_t *turn)
{
    const cpu_op_t *op = turn->op;
    cpu_conv_param_grad(s_kernels(turn), &op->window, turn->x, turn->d, s_first(turn),
        turn->slice->grad + op->weight_at, turn->slice->grad + op->bias_at);
    if (turn->d_x)
        cpu_conv_input_grad(
            s_kernels(turn), &op->window, op->packed_back, turn->d, turn->in->activation, turn->x, turn->d_x);
}

static void s_pool_back(const turn_t *turn)
{
    if (turn->d_x)
        cpu_pool_backward(s_kernels(turn), &turn->op->window, turn->d, turn->which, turn->d_x);
    s_give(turn, turn->d_x);
}

static void s_norm_back(const turn_t *turn)
{
    const cpu_op_t *op = turn->op;
    float *d_x = s_derivative(turn, op->in), *grad = turn->slice->grad;
    cpu_norm_backward(s_kernels(turn), turn->in->count, turn->x, turn->moments, op->params + op->weight_at, turn->d,
        s_first(turn), grad + op->weight_at, grad + op->bias_at, d_x);
    s_give(turn, d_x);
}

/*  Activations, and what stands in front of an appended part. */
static void s_pass_back(const turn_t *turn)
{
    s_give(turn, turn->d);
}

/*  A chain for each weight, over the rows that chose it. */
static void s_embed_back(const turn_t *turn)
{
    const size_t units = turn->op->layer->units;
    float *table = turn->slice->grad + turn->op->weight_at;
    const float *d = turn->d + turn->in->count;
    choices_t choices = s_choices(turn);
    if (s_first(turn))
        memset(table, 0, turn->op->weights * sizeof *table);
    for (ptrdiff_t row; s_next_choice(&choices, &row); d += units)
        if (row != NOTHING)
            s_kernels(turn)->add(units, d, table + (size_t)row * units);
    s_give(turn, turn->d);
}

/*  Behind what it spans: the sum's derivatives are the last layer's. */
static void s_residual_back(const turn_t *turn)
{
    const uint32_t inner = turn->op->inner;
    const cpu_value_t *value = &turn->self->value[inner];
    if (value->wanted)
        cpu_activate_back(
            s_kernels(turn), value->activation, value->count, s_value(turn, inner), turn->d, s_derivative(turn, inner));
}

/*  Before it: they are added to what came through the layers. Nobody reads turn->d after this. */
static void s_residual_begin_back(const turn_t *turn)
{
    if (!turn->d_x)
        return;
    cpu_activate_back(s_kernels(turn), turn->in->activation, turn->in->count, turn->x, turn->d, turn->d);
    s_kernels(turn)->add(turn->in->count, turn->d, turn->d_x);
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

static const struct {
    void (*forward)(const turn_t *turn);
    void (*back)(const turn_t *turn);
} s_kinds[] = {
    [TT_LAYER_CONV2D] = {s_conv, s_conv_back},
    [TT_LAYER_MAX_POOL] = {s_pool, s_pool_back},
    [TT_LAYER_DENSE] = {NULL, NULL}, /* of a block */
    [TT_LAYER_LAYER_NORM] = {s_norm, s_norm_back},
    [TT_LAYER_ACTIVATION] = {s_only_activate, s_pass_back},
    [TT_LAYER_RESIDUAL] = {s_residual, s_residual_back},
    [TT_LAYER_CONCAT] = {s_concat, s_pass_back},
    [TT_LAYER_AVG_POOL] = {s_pool, s_pool_back}, /* its `which` is NULL */
    [TT_LAYER_EMBED] = {s_embed, s_embed_back},
};

static void s_set(turn_t *turn, const cpu_step_t *step)
{
    const uint32_t v = step->op + 1;
    turn->op = &turn->self->op[step->op];
    turn->in = &turn->self->value[turn->op->in];
    turn->out = &turn->self->value[v];
    turn->x = s_value(turn, turn->op->in);
    turn->y = s_value(turn, v);
    turn->d = turn->lane->d[v] ? s_derivative(turn, v) : NULL;
    turn->d_x = turn->in->wanted ? s_derivative(turn, turn->op->in) : NULL;
    turn->which = turn->lane->which[v] ? turn->lane->which[v] + turn->row * turn->out->stride : NULL;
    turn->moments = turn->lane->moments[v] ? turn->lane->moments[v] + turn->row * CPU_NORM_MOMENTS : NULL;
}

static bool s_is_dense(const cpu_encoder_t *self, uint32_t step)
{
    return self->op[self->step[step].op].layer->kind == TT_LAYER_DENSE;
}

static void s_rows_forward(turn_t *turn, uint32_t from, uint32_t to)
{
    for (turn->row = 0; turn->row < turn->block->rows; turn->row++) {
        if (from == 0)
            s_read(turn);
        for (uint32_t s = from; s < to; s++) {
            s_set(turn, &turn->self->step[s]);
            if (!turn->self->step[s].begin)
                s_kinds[turn->op->layer->kind].forward(turn);
        }
    }
}

void cpu_encoder_forward(const cpu_block_t *block, uint32_t set, uint32_t t)
{
    static const tt_gemm_kind_t kinds[] = {
        [TT_NN_TANH] = TT_GEMM_TANH, [TT_NN_RELU] = TT_GEMM_RELU, [TT_NN_NONE] = TT_GEMM_SUM};
    const cpu_encoder_t *self = block->net->tower[set][t].encoder;
    turn_t turn = {.block = block, .self = self, .lane = block->lane->encoder[t]};
    uint32_t from = 0;
    for (uint32_t s = 0; s <= self->steps; s++) {
        if (s < self->steps && !s_is_dense(self, s))
            continue;
        if (from < s || s == 0)
            s_rows_forward(&turn, from, s);
        if (s == self->steps)
            break;
        turn.row = 0;
        s_set(&turn, &self->step[s]);
        cpu_layer_forward(block, &turn.op->dense, kinds[turn.out->activation], turn.x, turn.y);
        from = s + 1;
    }
}

static void s_row_back(turn_t *turn, uint32_t from, uint32_t to)
{
    for (uint32_t s = to; s-- > from;) {
        s_set(turn, &turn->self->step[s]);
        if (!turn->out->wanted)
            continue;
        if (turn->self->step[s].begin)
            s_residual_begin_back(turn);
        else
            s_kinds[turn->op->layer->kind].back(turn);
    }
}

static void s_rows_back(turn_t *turn, uint32_t from, uint32_t to)
{
    const cpu_block_t *block = turn->block;
    for (turn->slice = block->slice; turn->slice < block->slice + block->slices; turn->slice++)
        for (turn->row = turn->slice->first; turn->row < turn->slice->first + turn->slice->rows; turn->row++)
            s_row_back(turn, from, to);
}

static void s_dense_back(turn_t *turn, uint32_t s)
{
    static const tt_gemm_kind_t kinds[] = {
        [TT_NN_TANH] = TT_GEMM_D_TANH, [TT_NN_RELU] = TT_GEMM_D_RELU, [TT_NN_NONE] = TT_GEMM_D_NONE};
    turn->row = 0;
    s_set(turn, &turn->self->step[s]);
    cpu_layer_param_grad(turn->block, &turn->op->dense, turn->x, turn->d);
    if (turn->d_x)
        cpu_layer_input_grad(turn->block, &turn->op->dense, kinds[turn->in->activation], turn->d, turn->x, turn->d_x);
}

void cpu_encoder_backward(const cpu_block_t *block, uint32_t t)
{
    const cpu_encoder_t *self = block->net->tower[0][t].encoder;
    turn_t turn = {.block = block, .self = self, .lane = block->lane->encoder[t]};
    uint32_t to = self->steps;
    for (uint32_t s = self->steps; s-- > 0;) {
        if (!s_is_dense(self, s))
            continue;
        s_rows_back(&turn, s + 1, to);
        s_dense_back(&turn, s);
        to = s;
    }
    s_rows_back(&turn, 0, to);
    for (uint32_t l = 0; l < self->ops; l++)
        if (self->op[l].layer->kind != TT_LAYER_DENSE) {
            cpu_slices_add(block, self->op[l].weight_at, self->op[l].weights);
            cpu_slices_add(block, self->op[l].bias_at, self->op[l].biases);
        }
}
