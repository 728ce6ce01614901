/*  encoder_net - what an encoder is made of: steps, values, copies of its weights, and its part of a lane's memory. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/encoder.h"
#include "common/nn/layers.h"

/* ---- steps and values ---------------------------------------------------------------------------------------------- */

/*  Layers first .. end-1 on a value; returns the one that the last of them gives. Residuals lie at most TT_RESIDUALS_DEEP deep. */
static uint32_t s_plan_span(cpu_encoder_t *self, uint32_t first, uint32_t end, uint32_t value)
{
    for (uint32_t l = first; l < end; l++) {
        cpu_op_t *op = &self->op[l];
        const uint32_t residual = l;
        op->in = value;
        if (op->layer->kind == TT_LAYER_RESIDUAL) {
            self->step[self->steps++] = (cpu_step_t){.op = l, .begin = true};
            l += op->layer->span;
            op->inner = s_plan_span(self, residual + 1, l + 1, value);
        }
        self->step[self->steps++] = (cpu_step_t){.op = residual};
        value = residual + 1;
    }
    return value;
}

static void s_plan_values(cpu_encoder_t *self, const tt_shape_t *shape)
{
    for (uint32_t v = 0; v <= self->ops; v++) {
        self->value[v].count = (size_t)tt_shape_elements(&shape[v]);
        self->value[v].stride = tt_align(self->value[v].count, 16);
        self->value[v].activation = v ? self->op[v - 1].layer->activation : TT_NN_NONE;
    }
    for (uint32_t s = 0; s < self->steps; s++) {
        const cpu_op_t *op = &self->op[self->step[s].op];
        if (!self->step[s].begin)
            self->value[self->step[s].op + 1].wanted =
                op->weights > 0 || self->value[op->in].wanted || self->value[op->inner].wanted;
    }
}

/*  A value's derivatives may take turns when all who touch them belong to the same run of steps. */
static void s_touch(cpu_encoder_t *self, uint32_t *home, uint32_t value, uint32_t run)
{
    if (home[value] && home[value] != run)
        self->value[value].d_stride = self->value[value].stride;
    home[value] = run;
}

static void s_plan_derivatives(cpu_encoder_t *self)
{
    uint32_t home[CPU_VALUES] = {0}, run = 1;
    for (uint32_t s = 0; s < self->steps; s++) {
        const cpu_step_t *step = &self->step[s];
        const cpu_op_t *op = &self->op[step->op];
        const bool dense = op->layer->kind == TT_LAYER_DENSE, residual = op->layer->kind == TT_LAYER_RESIDUAL;
        run += dense;
        s_touch(self, home, step->op + 1, run);
        if (!residual || step->begin)
            s_touch(self, home, op->in, run);
        else
            s_touch(self, home, op->inner, run);
        if (dense) /* of all rows at once */
            self->value[op->in].d_stride = self->value[op->in].stride;
        run += dense;
    }
    self->value[self->last].d_stride = self->value[self->last].stride;
}

static cpu_window_t s_window(const tt_layer_t *layer, const tt_shape_t *in, const tt_shape_t *out)
{
    return (cpu_window_t){
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

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/*  Returns the tensors behind the layer's. */
static const tt_tensor_t *s_take_tensors(cpu_op_t *op, const tt_tensor_t *tensors, const float *params)
{
    op->weight_at = tensors[0].offset;
    if (op->biases)
        op->bias_at = tensors[1].offset;
    op->params = params;
    return tensors + tt_layer_tensors(tensors[0].kind);
}

static void s_make_copies(
    const cpu_encoder_t *self, cpu_op_t *op, tt_device_t *device, const tt_tensor_t *pair, bool trained)
{
    const bool back = trained && self->value[op->in].wanted;
    if (op->layer->kind == TT_LAYER_DENSE)
        cpu_layer_build(&op->dense, device, &pair[0], &pair[1], op->params, back);
    if (op->layer->kind != TT_LAYER_CONV2D)
        return;
    op->packed = cpu_new_floats(device, 1, cpu_conv_packed(&op->window));
    if (back)
        op->packed_back = cpu_new_floats(device, 1, cpu_conv_packed_back(&op->window));
}

static void s_plan(cpu_encoder_t *self, const tt_net_t *net, uint32_t t)
{
    tt_shape_t shape[TT_ENCODER_LAYERS_MAX + 1];
    const tt_status_t status = tt_layers_shapes(&net->spec, t, shape);
    TT_CHECK(status == TT_OK);
    for (uint32_t l = 0; l < self->ops; l++) {
        cpu_op_t *op = &self->op[l];
        tt_tensor_t weight;
        op->layer = &net->spec.layer[self->tower->layer + l];
        if (tt_layer_weight(&net->spec, op->layer, &shape[l], &weight)) {
            op->weights = (size_t)weight.rows * weight.cols;
            op->biases = (size_t)tt_layer_params(&weight) - op->weights;
        }
        op->window = s_window(op->layer, &shape[l], &shape[l + 1]);
    }
    self->last = s_plan_span(self, 0, self->ops, 0);
    s_plan_values(self, shape);
    s_plan_derivatives(self);
}

cpu_encoder_t *cpu_encoder_new(const tt_net_t *net, uint32_t set, uint32_t t, const tt_tensor_t *tensors)
{
    cpu_encoder_t *self = tt_new0(sizeof *self);
    self->spec = &net->spec;
    self->tower = &net->spec.tower[t];
    self->ops = self->tower->layers;
    s_plan(self, net, t);
    for (uint32_t l = 0; l < self->ops; l++)
        if (self->op[l].weights) {
            const tt_tensor_t *pair = tensors;
            tensors = s_take_tensors(&self->op[l], tensors, net->params[set]);
            s_make_copies(self, &self->op[l], net->device, pair, set == 0);
        }
    return self;
}

void cpu_encoder_free(tt_device_t *device, cpu_encoder_t *self)
{
    for (uint32_t l = 0; l < self->ops; l++) {
        cpu_layer_free(device, &self->op[l].dense);
        device->ops->free(device, self->op[l].packed);
        device->ops->free(device, self->op[l].packed_back);
    }
    free(self);
}

void cpu_encoder_refresh(const tt_kernels_t *kernels, const cpu_encoder_t *self)
{
    for (uint32_t l = 0; l < self->ops; l++) {
        const cpu_op_t *op = &self->op[l];
        if (op->layer->kind == TT_LAYER_DENSE)
            cpu_layer_refresh(kernels, &op->dense, op->params);
        if (op->packed)
            cpu_conv_pack(kernels, &op->window, op->params + op->weight_at, op->packed);
        if (op->packed_back)
            cpu_conv_pack_back(kernels, &op->window, op->params + op->weight_at, op->packed_back);
    }
}

void cpu_encoder_clear(const cpu_encoder_t *self, float *grad)
{
    for (const cpu_op_t *op = self->op; op < self->op + self->ops; op++) {
        memset(grad + op->weight_at, 0, op->weights * sizeof *grad);
        memset(grad + op->bias_at, 0, op->biases * sizeof *grad);
    }
}

/* ---- a lane's memory ------------------------------------------------------------------------------------------------- */

static bool s_needs_d(const cpu_encoder_t *self, uint32_t v)
{
    bool norm = false; /* it writes them anyway */
    for (uint32_t l = 0; l < self->ops; l++)
        norm |= self->op[l].layer->kind == TT_LAYER_LAYER_NORM && self->op[l].in == v;
    return norm || self->value[v].wanted;
}

void cpu_encoder_carve(
    const cpu_encoder_t *self, cpu_encoder_lane_t *out, const cpu_lane_t *lane, size_t *at, float *d_last)
{
    for (uint32_t v = 0; v <= self->ops; v++) {
        const cpu_value_t *value = &self->value[v];
        const tt_layer_kind_t kind = v ? self->op[v - 1].layer->kind : TT_LAYER_ACTIVATION;
        out->value[v] = cpu_carve(lane, at, TT_BLOCK * value->stride);
        out->d[v] = d_last;
        if (v != self->last)
            out->d[v] = s_needs_d(self, v)
                            ? cpu_carve(lane, at, value->d_stride ? TT_BLOCK * value->stride : value->stride)
                            : NULL;
        if (kind == TT_LAYER_MAX_POOL)
            out->which[v] = (uint8_t *)cpu_carve(lane, at, TT_BLOCK * value->stride / sizeof(float));
        if (kind == TT_LAYER_LAYER_NORM)
            out->moments[v] = cpu_carve(lane, at, TT_BLOCK * CPU_NORM_MOMENTS);
    }
}
