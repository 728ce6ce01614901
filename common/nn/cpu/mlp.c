/*  mlp - a block of rows through both networks and back.
 *
 *  A block is TT_BLOCK rows: its activations (some 34 KiB for 4-64-64) stay in the nearest caches from the forward to
 *  the backward pass, and a gradient is loaded and stored once a block. A row's numbers depend on that row alone; a sum
 *  over rows is one chain in the order of the rows, carried from block to block through the gradient buffer. */
#include <string.h>
#include "common/nn/cpu/cpu.h"

static tt_gemm_kind_t s_forward_kind(const tt_net_t *net)
{
    return net->spec.activation == TT_NN_TANH ? TT_GEMM_TANH : TT_GEMM_RELU;
}

static tt_gemm_kind_t s_backward_kind(const tt_net_t *net)
{
    return net->spec.activation == TT_NN_TANH ? TT_GEMM_D_TANH : TT_GEMM_D_RELU;
}

/*  What goes into layer l of tower t; l = layers is the head's input. */
static const float *s_layer_input(const cpu_lane_t *lane, int t, uint32_t l)
{
    return l ? lane->hidden[t][l - 1] : lane->x;
}

/*  lane->x through tower t into lane->out[t]. */
static void s_tower_forward(const tt_net_t *net, const cpu_lane_t *lane, int t, size_t rows)
{
    const cpu_net_t *self = net->impl;
    const cpu_tower_t *tower = &self->tower[t];
    for (uint32_t l = 0; l < tower->layers; l++) {
        const cpu_layer_t *layer = &tower->layer[l];
        const tt_gemm_t job = {
            .kind = s_forward_kind(net),
            .m = rows,
            .n = layer->out16,
            .k = layer->in,
            .a = s_layer_input(lane, t, l),
            .a_row = layer->in16,
            .a_k = 1,
            .b = layer->weight,
            .b_panel = layer->weight_panel,
            .b_k = layer->weight_k,
            .c = lane->hidden[t][l],
            .c_row = layer->out16,
            .bias = layer->bias,
        };
        self->kernels->gemm(&job);
    }
    self->kernels->dots(rows, tower->in16, s_layer_input(lane, t, tower->layers), tower->head, tower->head_bias,
        tower->outs, lane->out[t]);
}

/*  lane->out columns to row-major. */
static void s_put_rows(const float *columns, size_t outs, size_t rows, float *out)
{
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < rows; r++)
            out[r * outs + a] = columns[a * TT_BLOCK + r];
}

tt_status_t cpu_forward(
    tt_net_t *net, uint32_t lane_number, const float *const *obs, size_t rows, float *head, float *value)
{
    const cpu_net_t *self = net->impl;
    const cpu_lane_t *lane = &self->lanes[lane_number];
    float *out[2] = {head, value};
    for (size_t at = 0; at < rows; at += TT_BLOCK) {
        const size_t block = rows - at < TT_BLOCK ? rows - at : TT_BLOCK;
        self->kernels->gather(block, net->spec.obs, obs + at, lane->x, self->obs16);
        for (int t = 0; t < 2; t++) {
            const size_t outs = self->tower[t].outs;
            if (!out[t])
                continue;
            s_tower_forward(net, lane, t, block);
            s_put_rows(lane->out[t], outs, block, out[t] + at * outs);
        }
    }
    return TT_OK;
}

/*  One chain over the rows is the rule for every sum over them, so there are no lanes here. */
static void s_head_bias_grad(const cpu_tower_t *tower, const float *d_out, size_t rows, bool first, float *grad)
{
    for (size_t a = 0; a < tower->outs; a++) {
        float sum = first ? 0.0f : grad[tower->bias_at + a];
        for (size_t r = 0; r < rows; r++)
            sum += d_out[a * TT_BLOCK + r];
        grad[tower->bias_at + a] = sum;
    }
}

/*  The head's weights stand transposed in lane->head_grad until the shard ends: with two outputs, [in][out] would leave
 *  seven lanes of eight idle. */
static void s_head_weight_grad(const tt_net_t *net, const cpu_lane_t *lane, int t, size_t rows, bool first)
{
    const cpu_net_t *self = net->impl;
    const cpu_tower_t *tower = &self->tower[t];
    const tt_gemm_t job = {
        .kind = TT_GEMM_ADD,
        .first = first,
        .m = tower->outs,
        .n = tower->in16,
        .k = rows,
        .a = lane->d_out[t],
        .a_row = TT_BLOCK,
        .a_k = 1,
        .b = s_layer_input(lane, t, tower->layers),
        .b_panel = 16,
        .b_k = tower->in16,
        .c = lane->head_grad[t],
        .c_row = tower->in16,
    };
    self->kernels->gemm(&job);
}

static void s_head_input_grad(const tt_net_t *net, const cpu_lane_t *lane, int t, size_t rows, float *d)
{
    const cpu_net_t *self = net->impl;
    const cpu_tower_t *tower = &self->tower[t];
    const tt_gemm_t job = {
        .kind = s_backward_kind(net),
        .m = rows,
        .n = tower->in16,
        .k = tower->outs,
        .a = lane->d_out[t],
        .a_row = 1,
        .a_k = TT_BLOCK,
        .b = tower->head,
        .b_panel = 16,
        .b_k = tower->in16,
        .c = d,
        .c_row = tower->in16,
        .h = s_layer_input(lane, t, tower->layers),
        .h_row = tower->in16,
    };
    self->kernels->gemm(&job);
}

static void s_layer_param_grad(const tt_kernels_t *kernels, const cpu_layer_t *layer, const float *input,
    const float *d, size_t rows, bool first, float *grad)
{
    const tt_gemm_t job = {
        .kind = TT_GEMM_ADD,
        .first = first,
        .m = layer->in,
        .n = layer->out,
        .k = rows,
        .a = input,
        .a_row = 1,
        .a_k = layer->in16,
        .b = d,
        .b_panel = 16,
        .b_k = layer->out16,
        .c = grad + layer->weight_at,
        .c_row = layer->out,
    };
    kernels->gemm(&job);
    kernels->column_sum(rows, layer->out, d, layer->out16, first, grad + layer->bias_at);
}

static void s_layer_input_grad(
    const tt_net_t *net, const cpu_layer_t *layer, const float *input, const float *d, size_t rows, float *d_input)
{
    const cpu_net_t *self = net->impl;
    const tt_gemm_t job = {
        .kind = s_backward_kind(net),
        .m = rows,
        .n = layer->in16,
        .k = layer->out,
        .a = d,
        .a_row = layer->out16,
        .a_k = 1,
        .b = layer->transposed,
        .b_panel = 16 * layer->out,
        .b_k = 16,
        .c = d_input,
        .c_row = layer->in16,
        .h = input,
        .h_row = layer->in16,
    };
    self->kernels->gemm(&job);
}

static void s_tower_backward(const tt_net_t *net, const cpu_lane_t *lane, int t, size_t rows, bool first, float *grad)
{
    const cpu_net_t *self = net->impl;
    const cpu_tower_t *tower = &self->tower[t];
    s_head_bias_grad(tower, lane->d_out[t], rows, first, grad);
    s_head_weight_grad(net, lane, t, rows, first);
    float *d = lane->d[0], *d_input = lane->d[1];
    if (tower->layers)
        s_head_input_grad(net, lane, t, rows, d);
    for (uint32_t l = tower->layers; l-- > 0;) {
        const float *input = s_layer_input(lane, t, l);
        s_layer_param_grad(self->kernels, &tower->layer[l], input, d, rows, first, grad);
        if (l > 0)
            s_layer_input_grad(net, &tower->layer[l], input, d, rows, d_input);
        float *swap = d;
        d = d_input;
        d_input = swap;
    }
}

/*  The rows behind the last one hold what the bias made of them: the loss is promised zeros. */
static void s_clear_behind(float *columns, size_t outs, size_t rows)
{
    if (rows < TT_BLOCK)
        for (size_t a = 0; a < outs; a++)
            memset(columns + a * TT_BLOCK + rows, 0, (TT_BLOCK - rows) * sizeof(float));
}

static void s_call_loss(const tt_net_t *net, const cpu_lane_t *lane, const uint32_t *row, size_t rows, tt_loss_fn loss,
    const void *ctx, float *grad)
{
    const cpu_net_t *self = net->impl;
    const bool gaussian = net->spec.log_std > 0;
    for (int t = 0; t < 2; t++)
        s_clear_behind(lane->out[t], self->tower[t].outs, rows);
    const tt_loss_block_t block = {
        .rows = (uint32_t)rows,
        .row = row,
        .head = lane->out[0],
        .value = lane->out[1],
        .log_std = gaussian ? net->params + self->log_std_at : NULL,
        .d_head = lane->d_out[0],
        .d_value = lane->d_out[1],
        .d_log_std = gaussian ? grad + self->log_std_at : NULL,
        .stats = grad + net->param_count,
    };
    loss(ctx, &block);
}

/*  log_std, the statistics and the padding are added to by others and start from zero. */
static void s_clear_sums(const tt_net_t *net, float *grad)
{
    const cpu_net_t *self = net->impl;
    if (net->spec.log_std)
        memset(grad + self->log_std_at, 0, net->spec.log_std * sizeof(float));
    memset(grad + net->param_count, 0, (tt_net_grad_count(&net->spec) - net->param_count) * sizeof(float));
}

static void s_put_head_grad(const cpu_tower_t *tower, const float *head_grad, float *grad)
{
    for (size_t k = 0; k < tower->in; k++)
        for (size_t a = 0; a < tower->outs; a++)
            grad[tower->weight_at + k * tower->outs + a] = head_grad[a * tower->in16 + k];
}

tt_status_t cpu_shard_grad(tt_net_t *net, uint32_t lane_number, const float *const *obs, const uint32_t *row,
    size_t rows, tt_loss_fn loss, const void *ctx, float *grad)
{
    const cpu_net_t *self = net->impl;
    const cpu_lane_t *lane = &self->lanes[lane_number];
    if (rows == 0) {
        memset(grad, 0, tt_net_grad_count(&net->spec) * sizeof(float));
        return TT_OK;
    }
    s_clear_sums(net, grad);
    for (size_t at = 0; at < rows; at += TT_BLOCK) {
        const size_t block = rows - at < TT_BLOCK ? rows - at : TT_BLOCK;
        self->kernels->gather(block, net->spec.obs, obs + at, lane->x, self->obs16);
        s_tower_forward(net, lane, 0, block);
        s_tower_forward(net, lane, 1, block);
        s_call_loss(net, lane, row + at, block, loss, ctx, grad);
        s_tower_backward(net, lane, 0, block, at == 0, grad);
        s_tower_backward(net, lane, 1, block, at == 0, grad);
    }
    for (int t = 0; t < 2; t++)
        s_put_head_grad(&self->tower[t], lane->head_grad[t], grad);
    return TT_OK;
}
