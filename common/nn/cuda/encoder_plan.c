#include "common/nn/cuda/encoder_plan.h"
#include <stdlib.h>
#include "common/base/mem.h"

/*  Rows of a convolution whose gradients lie apart before they are added: so many that these stay in the second-level cache of a
 *  large card. */
enum { PARTIAL_FLOATS = 1 << 23, ALIGN = 256 };

static const cuda_act_t s_act[] = {
    [TT_NN_TANH] = CUDA_ACT_TANH, [TT_NN_RELU] = CUDA_ACT_RELU, [TT_NN_NONE] = CUDA_ACT_NONE};

/* ---- steps and values ---------------------------------------------------------------------------------------------------- */

/*  Layers first .. end-1 on a value; returns the one that the last of them gives. Residuals lie at most TT_RESIDUALS_DEEP deep. */
static uint32_t s_plan_span(cuda_encoder_t *self, uint32_t first, uint32_t end, uint32_t value)
{
    for (uint32_t l = first; l < end; l++) {
        encoder_op_t *op = &self->op[l];
        const uint32_t own = l;
        op->in = value;
        if (op->layer->kind == TT_LAYER_RESIDUAL) {
            self->step[self->steps++] = (encoder_step_t){.op = own, .begin = true};
            l += op->layer->span;
            op->inner = s_plan_span(self, own + 1, l + 1, value);
        }
        self->step[self->steps++] = (encoder_step_t){.op = own};
        value = own + 1;
    }
    return value;
}

static void s_plan_values(cuda_encoder_t *self, const tt_shape_t *shape)
{
    for (uint32_t v = 0; v <= self->ops; v++) {
        self->value[v].count = (size_t)tt_shape_elements(&shape[v]);
        self->value[v].act = v ? s_act[self->op[v - 1].layer->activation] : CUDA_ACT_NONE;
    }
    for (uint32_t s = 0; s < self->steps; s++) {
        const encoder_op_t *op = &self->op[self->step[s].op];
        if (!self->step[s].begin)
            self->value[self->step[s].op + 1].wanted =
                op->weights || self->value[op->in].wanted || self->value[op->inner].wanted;
    }
}

/* ---- derivatives ------------------------------------------------------------------------------------------------------------ */

/*  The first free place. */
static void s_take_place(cuda_encoder_t *self, bool *taken, uint32_t v)
{
    uint32_t place = 0;
    while (taken[place])
        place++;
    TT_CHECK(place < ENCODER_PLACES);
    taken[place] = true;
    self->value[v].place = place;
    if (self->widest[place] < self->value[v].count)
        self->widest[place] = self->value[v].count;
    if (self->places <= place)
        self->places = place + 1;
}

/*  The way back: the derivatives of a value have a place from whoever writes them to whoever needs them last. A residual's stay until
 *  they have gone around what it spans. */
static void s_plan_derivatives(cuda_encoder_t *self)
{
    bool taken[ENCODER_PLACES + 1] = {false};
    for (uint32_t s = self->steps; s-- > 0;) {
        const encoder_step_t *step = &self->step[s];
        const encoder_op_t *op = &self->op[step->op];
        const uint32_t out = step->op + 1;
        const bool residual = op->layer->kind == TT_LAYER_RESIDUAL;
        const uint32_t written = residual ? op->inner : op->in;
        if (!self->value[out].wanted)
            continue;
        if (!step->begin && self->value[written].wanted)
            s_take_place(self, taken, written);
        if ((step->begin || !residual) && out != self->last)
            taken[self->value[out].place] = false;
    }
}

/* ---- the whole ---------------------------------------------------------------------------------------------------------------- */

static cuda_window_t s_window(const tt_layer_t *layer, const tt_shape_t *in, const tt_shape_t *out)
{
    return (cuda_window_t){
        .in_h = in->height,
        .in_w = in->width,
        .in_c = in->channels,
        .out_h = out->height,
        .out_w = out->width,
        .out_c = out->channels,
        .kernel_h = layer->kernel[0],
        .kernel_w = layer->kernel[1],
        .stride_h = layer->stride[0],
        .stride_w = layer->stride[1],
        .pad_h = layer->pad[0],
        .pad_w = layer->pad[1],
    };
}

static void s_plan_ops(cuda_encoder_t *self, const tt_shape_t *shape, const tt_tensor_t *tensors)
{
    for (uint32_t l = 0; l < self->ops; l++) {
        encoder_op_t *op = &self->op[l];
        tt_tensor_t weight;
        op->layer = &self->spec->layer[self->tower->layer + l];
        op->window = s_window(op->layer, &shape[l], &shape[l + 1]);
        if (!tt_layer_weight(self->spec, op->layer, &shape[l], &weight))
            continue;
        op->weights = true;
        op->weight_at = tensors[0].offset;
        const uint32_t count = tt_layer_tensors(weight.kind);
        op->bias_at = count > 1 ? tensors[1].offset : 0;
        tensors += count;
    }
}

cuda_encoder_t *cuda_encoder_new(const tt_net_spec_t *spec, uint32_t t, const tt_tensor_t *tensors)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_status_t status = tt_layers_shapes(spec, t, shape);
    TT_CHECK(status == TT_OK);
    cuda_encoder_t *self = tt_new0(sizeof *self);
    self->spec = spec;
    self->tower = &spec->tower[t];
    self->ops = self->tower->layers;
    s_plan_ops(self, shape, tensors);
    self->last = s_plan_span(self, 0, self->ops, 0);
    s_plan_values(self, shape);
    s_plan_derivatives(self);
    return self;
}

void cuda_encoder_free(cuda_encoder_t *self)
{
    free(self);
}

size_t cuda_encoder_width(const cuda_encoder_t *self)
{
    return self->value[self->last].count;
}

tt_nn_activation_t cuda_encoder_activation(const cuda_encoder_t *self)
{
    return self->op[self->last - 1].layer->activation;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

/*  Some of it; NULL as long as there is none and only bytes are counted. */
static void *s_carve(encoder_memory_t *out, char *memory, size_t bytes)
{
    char *at = memory ? memory + out->bytes : NULL;
    out->bytes += tt_align(bytes, ALIGN);
    return at;
}

/*  Of the convolution whose rows give most. */
static size_t s_partial(const cuda_encoder_t *self, uint32_t rows)
{
    size_t most = 0;
    for (uint32_t l = 0; l < self->ops; l++) {
        const size_t row = self->op[l].layer->kind == TT_LAYER_CONV2D ? cuda_conv_row_floats(&self->op[l].window) : 0;
        const size_t fit = row && PARTIAL_FLOATS / row ? PARTIAL_FLOATS / row : 1;
        const size_t floats = row * (fit < rows ? fit : rows);
        most = floats > most ? floats : most;
    }
    return most;
}

void encoder_memory(const cuda_encoder_t *self, uint32_t rows, bool back, void *memory, encoder_memory_t *out)
{
    *out = (encoder_memory_t){0};
    for (uint32_t v = 0; v <= self->ops; v++) {
        const tt_layer_kind_t kind = v ? self->op[v - 1].layer->kind : TT_LAYER_ACTIVATION;
        const size_t numbers = rows * self->value[v].count;
        out->value[v] = s_carve(out, memory, numbers * sizeof(float));
        if (kind == TT_LAYER_MAX_POOL)
            out->which[v] = s_carve(out, memory, numbers);
        if (kind == TT_LAYER_LAYER_NORM)
            out->moments[v] = s_carve(out, memory, (size_t)rows * CUDA_NORM_MOMENTS * sizeof(float));
        if (kind == TT_LAYER_EMBED)
            out->chosen[v] =
                s_carve(out, memory, (size_t)rows * encoder_groups(self, &self->op[v - 1]) * sizeof(uint32_t));
    }
    for (uint32_t p = 0; back && p < self->places; p++)
        out->place[p] = s_carve(out, memory, rows * self->widest[p] * sizeof(float));
    out->partial_floats = back ? s_partial(self, rows) : 0;
    out->partial = s_carve(out, memory, out->partial_floats * sizeof(float));
}

size_t cuda_encoder_bytes(const cuda_encoder_t *self, uint32_t rows, bool back)
{
    encoder_memory_t memory;
    encoder_memory(self, rows, back, NULL, &memory);
    return memory.bytes;
}
