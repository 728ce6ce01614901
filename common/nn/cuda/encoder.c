#include "common/nn/cuda/encoder.h"
#include "common/nn/cuda/encoder_plan.h"
#include "common/nn/spec.h"

/*  A layer at all rows: what comes to it and what it gives; on the way back, with the derivative of its own activation, what came to
 *  that, and where what comes to its input goes (NULL: nobody wants it). */
typedef struct {
    const cuda_encoder_t *self;
    cudaStream_t stream;
    const cuda_dense_t *dense;
    const float *params;
    const cuda_rows_t *read; /* forward */
    const cuda_run_t *run;   /* back    */
    uint32_t rows;
    encoder_memory_t memory;
    const float *d_last;
    const encoder_op_t *op;
    const encoder_value_t *in, *out;
    const float *x, *d;
    float *y, *d_x;
    uint8_t *which;
    float *moments;
    uint32_t *chosen;
} turn_t;

static const float *s_derivative(const turn_t *turn, uint32_t v)
{
    return v == turn->self->last ? turn->d_last : turn->memory.place[turn->self->value[v].place];
}

static void s_set(turn_t *turn, const encoder_step_t *step)
{
    const cuda_encoder_t *self = turn->self;
    const encoder_memory_t *memory = &turn->memory;
    const uint32_t v = step->op + 1;
    turn->op = &self->op[step->op];
    turn->in = &self->value[turn->op->in];
    turn->out = &self->value[v];
    turn->x = memory->value[turn->op->in];
    turn->y = memory->value[v];
    turn->d = s_derivative(turn, v);
    turn->d_x = turn->in->wanted ? memory->place[turn->in->place] : NULL;
    turn->which = memory->which[v];
    turn->moments = memory->moments[v];
    turn->chosen = memory->chosen[v];
}

/* ---- what is read -------------------------------------------------------------------------------------------------------- */

/*  The byte of a row where part p begins. */
static size_t s_part_at(const tt_net_spec_t *spec, uint32_t p)
{
    size_t at = 0;
    for (uint32_t before = 0; before < p; before++)
        at += tt_spec_part_bytes(&spec->part[before]);
    return at;
}

/*  Part p as `planes` planes to out, or as a vector. */
static void s_read_part(const turn_t *turn, uint32_t p, cuda_widen_t job)
{
    const tt_net_spec_t *spec = turn->self->spec;
    const tt_part_t part = spec->parts ? spec->part[p] : (tt_part_t){.elements = spec->obs};
    job.at = s_part_at(spec, p);
    job.bytes_each = part.bytes;
    job.divisor = part.divisor;
    job.count = turn->rows;
    job.rows = turn->read->rows;
    job.row_bytes = turn->read->bytes;
    job.row = turn->read->row;
    if (!job.planes) {
        job.planes = job.pixels = 1;
        job.deep = part.elements;
    }
    cuda_widen(turn->stream, &job);
}

/*  To value 0. */
static void s_read(const turn_t *turn)
{
    const tt_net_spec_t *spec = turn->self->spec;
    const tt_tower_t *tower = turn->self->tower;
    cuda_widen_t job = {.act = CUDA_ACT_NONE, .out = turn->memory.value[0], .out_row = turn->self->value[0].count};
    if (tower->blank)
        return;
    if (tower->height && tower->planes > 1) {
        job.planes = tower->planes;
        job.pixels = tower->height * tower->width;
        job.deep = tower->channels / tower->planes;
    }
    if (tower->height)
        s_read_part(turn, tower->part, job);
    for (uint32_t p = 0; !tower->height && p < (spec->parts ? spec->parts : 1); p++) {
        s_read_part(turn, p, job);
        job.out += spec->parts ? spec->part[p].elements : spec->obs;
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

static void s_conv(const turn_t *turn)
{
    const encoder_op_t *op = turn->op;
    const cuda_conv_t job = {.window = op->window,
        .act = turn->out->act,
        .rows = turn->rows,
        .in = turn->x,
        .weight = turn->params + op->weight_at,
        .bias = turn->params + op->bias_at,
        .out = turn->y};
    cuda_conv2d(turn->dense, turn->stream, &job);
}

static void s_pool(const turn_t *turn)
{
    const cuda_pool_t job = {.window = turn->op->window,
        .act = turn->out->act,
        .rows = turn->rows,
        .in = turn->x,
        .out = turn->y,
        .which = turn->which};
    cuda_pool(turn->stream, &job);
}

static void s_dense(const turn_t *turn)
{
    static const cuda_kind_t kinds[] = {
        [CUDA_ACT_TANH] = CUDA_TANH, [CUDA_ACT_RELU] = CUDA_RELU, [CUDA_ACT_NONE] = CUDA_SUM};
    const uint32_t units = turn->op->layer->units;
    const cuda_gemm_t job = {.kind = kinds[turn->out->act],
        .m = turn->rows,
        .n = units,
        .k = (uint32_t)turn->in->count,
        .a = turn->x,
        .a_row = turn->in->count,
        .a_k = 1,
        .b = turn->params + turn->op->weight_at,
        .b_k = units,
        .b_col = 1,
        .c = turn->y,
        .c_row = units,
        .bias = turn->params + turn->op->bias_at};
    cuda_dense(turn->dense, turn->stream, &job);
}

static void s_norm(const turn_t *turn)
{
    const cuda_layer_norm_t job = {.act = turn->out->act,
        .rows = turn->rows,
        .count = (uint32_t)turn->in->count,
        .x = turn->x,
        .gain = turn->params + turn->op->weight_at,
        .bias = turn->params + turn->op->bias_at,
        .y = turn->y,
        .moments = turn->moments};
    cuda_layer_norm(turn->stream, &job);
}

/*  What comes to the layer, and `more`, to where its rows lie. */
static void s_activate(const turn_t *turn, const float *more)
{
    const cuda_activate_t job = {.act = turn->out->act,
        .rows = turn->rows,
        .count = (uint32_t)turn->in->count,
        .x = turn->x,
        .more = more,
        .y = turn->y,
        .y_row = turn->out->count};
    cuda_activate(turn->stream, &job);
}

static void s_only_activate(const turn_t *turn)
{
    s_activate(turn, NULL);
}

static void s_residual(const turn_t *turn)
{
    s_activate(turn, turn->memory.value[turn->op->inner]);
}

static void s_concat(const turn_t *turn)
{
    s_activate(turn, NULL);
    const cuda_widen_t job = {.act = turn->out->act, .out = turn->y + turn->in->count, .out_row = turn->out->count};
    s_read_part(turn, turn->op->layer->part, job);
}

/*  The choices of a frame, one after the other: sizes, and where each begins in the table. */
typedef struct {
    const uint32_t *sizes;
    uint32_t groups, frames, deep;
} choices_t;

static choices_t s_choices(const turn_t *turn)
{
    const tt_layer_t *layer = turn->op->layer;
    choices_t out = {.sizes = turn->self->spec->choice + layer->choice, .groups = encoder_groups(turn->self, turn->op)};
    out.frames = out.groups / layer->choices;
    for (uint32_t c = 0; c < layer->choices; c++)
        out.deep += out.sizes[c];
    return out;
}

static void s_choose(const turn_t *turn)
{
    const tt_layer_t *layer = turn->op->layer;
    const choices_t choices = s_choices(turn);
    cuda_choose_t job = {.count = turn->rows,
        .frames = choices.frames,
        .choices = layer->choices,
        .deep = choices.deep,
        .rows = turn->read->rows,
        .row_bytes = turn->read->bytes,
        .row = turn->read->row,
        .at = s_part_at(turn->self->spec, layer->part),
        .chosen = turn->chosen};
    for (; job.choice < layer->choices; job.choice++) {
        job.n = choices.sizes[job.choice];
        cuda_choose(turn->stream, &job);
        job.first += job.n;
        job.at += job.n * sizeof(float);
    }
}

static void s_embed(const turn_t *turn)
{
    const cuda_embed_t job = {.act = turn->out->act,
        .rows = turn->rows,
        .groups = encoder_groups(turn->self, turn->op),
        .units = turn->op->layer->units,
        .chosen = turn->chosen,
        .table = turn->params + turn->op->weight_at,
        .out = turn->y + turn->in->count,
        .out_row = turn->out->count};
    s_activate(turn, NULL);
    s_choose(turn);
    cuda_embed(turn->stream, &job);
}

/* ---- back -------------------------------------------------------------------------------------------------------------------- */

static void s_conv_back(const turn_t *turn)
{
    const encoder_op_t *op = turn->op;
    const cuda_conv_grads_t grads = {.window = op->window,
        .in = turn->x,
        .d = turn->d,
        .at = op->weight_at,
        .bias_at = op->bias_at,
        .partial = turn->memory.partial,
        .partial_floats = turn->memory.partial_floats};
    cuda_conv2d_grads(turn->dense, turn->stream, turn->run, &grads);
    const cuda_conv_back_t job = {.window = op->window,
        .before = turn->in->act,
        .rows = turn->rows,
        .d = turn->d,
        .weight = turn->params + op->weight_at,
        .in = turn->x,
        .d_in = turn->d_x};
    if (turn->d_x)
        cuda_conv2d_back(turn->dense, turn->stream, &job);
}

static void s_pool_back(const turn_t *turn)
{
    const cuda_pool_back_t job = {.window = turn->op->window,
        .before = turn->in->act,
        .rows = turn->rows,
        .d = turn->d,
        .in = turn->x,
        .which = turn->which,
        .d_in = turn->d_x};
    if (turn->d_x)
        cuda_pool_back(turn->stream, &job);
}

static void s_dense_back(const turn_t *turn)
{
    static const cuda_kind_t kinds[] = {
        [CUDA_ACT_TANH] = CUDA_D_TANH, [CUDA_ACT_RELU] = CUDA_D_RELU, [CUDA_ACT_NONE] = CUDA_D_NONE};
    const uint32_t inputs = (uint32_t)turn->in->count, units = turn->op->layer->units;
    const cuda_outer_t grads = {.m = inputs,
        .n = units,
        .x = turn->x,
        .d = turn->d,
        .x_row = inputs,
        .d_row = units,
        .at = turn->op->weight_at,
        .bias_at = turn->op->bias_at};
    cuda_dense_grads(turn->dense, turn->stream, turn->run, &grads);
    const cuda_gemm_t job = {.kind = kinds[turn->in->act],
        .m = turn->rows,
        .n = inputs,
        .k = units,
        .a = turn->d,
        .a_row = units,
        .a_k = 1,
        .b = turn->params + turn->op->weight_at,
        .b_k = 1,
        .b_col = units,
        .c = turn->d_x,
        .c_row = inputs,
        .h = turn->x,
        .h_row = inputs};
    if (turn->d_x)
        cuda_dense(turn->dense, turn->stream, &job);
}

static void s_norm_back(const turn_t *turn)
{
    const uint32_t count = (uint32_t)turn->in->count;
    const cuda_layer_norm_grads_t grads = {.count = count,
        .x = turn->x,
        .moments = turn->moments,
        .d = turn->d,
        .gain_at = turn->op->weight_at,
        .bias_at = turn->op->bias_at};
    cuda_layer_norm_grads(turn->stream, turn->run, &grads);
    const cuda_layer_norm_back_t job = {.before = turn->in->act,
        .rows = turn->rows,
        .count = count,
        .x = turn->x,
        .moments = turn->moments,
        .gain = turn->params + turn->op->weight_at,
        .d = turn->d,
        .d_x = turn->d_x};
    if (turn->d_x)
        cuda_layer_norm_back(turn->stream, &job);
}

/*  The layer's derivatives to value v, as far as this goes, with the derivative of what gave it. */
static void s_give(const turn_t *turn, uint32_t v, bool add)
{
    const encoder_value_t *value = &turn->self->value[v];
    const cuda_activate_back_t job = {.before = value->act,
        .add = add,
        .rows = turn->rows,
        .count = (uint32_t)value->count,
        .d = turn->d,
        .x = turn->memory.value[v],
        .d_row = turn->out->count,
        .d_x = turn->memory.place[value->place]};
    if (value->wanted)
        cuda_activate_back(turn->stream, &job);
}

/*  Activations, and what stands in front of an appended part. */
static void s_pass_back(const turn_t *turn)
{
    s_give(turn, turn->op->in, false);
}

static void s_embed_back(const turn_t *turn)
{
    const choices_t choices = s_choices(turn);
    cuda_embed_grads_t job = {.groups = choices.groups,
        .choices = turn->op->layer->choices,
        .units = turn->op->layer->units,
        .chosen = turn->chosen,
        .d = turn->d + turn->in->count,
        .d_row = turn->out->count,
        .at = turn->op->weight_at};
    for (; job.choice < job.choices; job.choice++) {
        job.n = choices.sizes[job.choice];
        cuda_embed_grads(turn->stream, turn->run, &job);
        job.first += job.n;
    }
    s_pass_back(turn);
}

/*  Behind what it spans: the sum's derivatives are the last layer's. */
static void s_residual_back(const turn_t *turn)
{
    s_give(turn, turn->op->inner, false);
}

/*  Before it: they are added to what came through the layers. */
static void s_residual_begin_back(const turn_t *turn)
{
    s_give(turn, turn->op->in, true);
}

/* ---- steps --------------------------------------------------------------------------------------------------------------------- */

static const struct {
    void (*forward)(const turn_t *turn);
    void (*back)(const turn_t *turn);
} s_kinds[] = {
    [TT_LAYER_CONV2D] = {s_conv, s_conv_back},
    [TT_LAYER_MAX_POOL] = {s_pool, s_pool_back},
    [TT_LAYER_DENSE] = {s_dense, s_dense_back},
    [TT_LAYER_LAYER_NORM] = {s_norm, s_norm_back},
    [TT_LAYER_ACTIVATION] = {s_only_activate, s_pass_back},
    [TT_LAYER_RESIDUAL] = {s_residual, s_residual_back},
    [TT_LAYER_CONCAT] = {s_concat, s_pass_back},
    [TT_LAYER_AVG_POOL] = {s_pool, s_pool_back}, /* its `which` is NULL */
    [TT_LAYER_EMBED] = {s_embed, s_embed_back},
};

const float *cuda_encoder_forward(const cuda_encoder_t *self, cudaStream_t stream, const cuda_dense_t *dense,
    const float *params, const cuda_rows_t *rows, void *memory)
{
    turn_t turn = {.self = self, .stream = stream, .dense = dense, .params = params, .read = rows, .rows = rows->count};
    encoder_memory(self, rows->count, false, memory, &turn.memory);
    s_read(&turn);
    for (uint32_t s = 0; s < self->steps; s++) {
        s_set(&turn, &self->step[s]);
        if (!self->step[s].begin)
            s_kinds[turn.op->layer->kind].forward(&turn);
    }
    return turn.memory.value[self->last];
}

void cuda_encoder_backward(const cuda_encoder_t *self, cudaStream_t stream, const cuda_dense_t *dense,
    const float *params, const cuda_run_t *run, const float *d, void *memory)
{
    const uint32_t rows = cuda_first_row(run, run->hi) - cuda_first_row(run, run->lo);
    turn_t turn = {
        .self = self, .stream = stream, .dense = dense, .params = params, .run = run, .rows = rows, .d_last = d};
    encoder_memory(self, turn.rows, true, memory, &turn.memory);
    for (uint32_t s = self->steps; s-- > 0;) {
        s_set(&turn, &self->step[s]);
        if (!turn.out->wanted)
            continue;
        if (self->step[s].begin)
            s_residual_begin_back(&turn);
        else
            s_kinds[turn.op->layer->kind].back(&turn);
    }
}
