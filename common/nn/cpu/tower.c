/*  tower - a block of rows through one tower and back.
 *
 *  A block is TT_BLOCK rows: its activations (some 34 KiB for two towers of 4-64-64) stay in the nearest caches from the
 *  forward to the backward pass, and a gradient is loaded and stored once a block. A row's numbers depend on that row
 *  alone; a sum over rows is one chain in the order of the rows, carried from block to block through the gradient buffer. */
#include "common/nn/cpu/cpu.h"
#include "common/nn/cpu/encoder.h"

/*  What goes into layer l of tower t; l = layers is the head's input. NULL: the rows' bytes. */
static const float *s_layer_input(const cpu_block_t *block, uint32_t t, uint32_t l)
{
    const cpu_lane_t *lane = block->lane;
    if (l)
        return lane->hidden[t][l - 1];
    const cpu_tower_t *towers = block->net->tower[0];
    if (towers[t].action)
        return lane->joined;
    if (towers[t].reads_obs)
        return block->net->bits && towers[t].layers ? NULL : lane->x;
    return lane->last[towers[t].from];
}

const float *cpu_tower_input(const cpu_block_t *block, uint32_t t)
{
    return s_layer_input(block, t, 0);
}

void cpu_layer_forward(
    const cpu_block_t *block, const cpu_layer_t *layer, tt_gemm_kind_t kind, const float *input, float *out)
{
    const tt_gemm_t job = {
        .kind = kind,
        .m = block->rows,
        .n = layer->out16,
        .k = layer->in,
        .a = input,
        .a_row = layer->in16,
        .a_k = 1,
        .b = layer->weight,
        .b_panel = layer->weight_panel,
        .b_k = layer->weight_k,
        .c = out,
        .c_row = layer->out16,
        .bias = layer->bias,
    };
    if (input)
        block->net->kernels->gemm(&job);
    else
        cpu_bytes_forward(block->net->kernels, &job, (const uint8_t *const *)block->from);
}

/*  lane->x or a trunk's last layer through tower t of a set: its hidden layers, and its head (a trunk has none) to out. */
static void s_mlp_forward(const cpu_block_t *block, uint32_t set, uint32_t t, float *out)
{
    const cpu_net_t *self = block->net;
    const cpu_tower_t *tower = &self->tower[set][t];
    for (uint32_t l = 0; l < tower->layers; l++)
        cpu_layer_forward(
            block, &tower->layer[l], tower->forward, s_layer_input(block, t, l), block->lane->hidden[t][l]);
    if (tower->outs)
        self->kernels->dots(block->rows, tower->in16, s_layer_input(block, t, tower->layers), tower->head,
            tower->head_bias, tower->outs, out);
}

static void s_made_forward(const cpu_block_t *block, const cpu_tower_t *tower, float *const *heads, float *out)
{
    const float *head = heads[tower->value];
    if (tower->made == TT_TOWER_MEAN)
        cpu_mean_forward(head, tower->outs, cpu_parts(block, tower), out);
    else if (tower->made == TT_TOWER_ATOMS)
        cpu_atoms_forward(head, tower->outs, cpu_parts(block, tower), tower->low, tower->high, out);
    else
        cpu_dueling_forward(head, heads[tower->advantage], tower->outs, block->net->tower[0][tower->value].outs, out);
}

static void s_forward(const cpu_block_t *block, uint32_t view, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[view % TT_SETS_MAX][t];
    float *const *out = block->lane->out[view];
    if (tower->encoder)
        cpu_encoder_forward(block, view % TT_SETS_MAX, t);
    else if (tower->units)
        cpu_recurrent_forward(block, view % TT_SETS_MAX, t);
    else if (tower->made)
        s_made_forward(block, tower, out, out[t]);
    else
        s_mlp_forward(block, view % TT_SETS_MAX, t, out[t]);
}

void cpu_towers_forward(const cpu_block_t *block, uint32_t view, uint32_t towers)
{
    for (uint32_t t = 0; towers >> t; t++)
        if (towers >> t & 1)
            s_forward(block, view, t);
}

/* ---- back -------------------------------------------------------------------------------------------------------- */

/*  One chain over the rows is the rule for every sum over them, so there are no lanes here. */
static void s_head_bias_grad(const cpu_tower_t *tower, const float *d_out, const cpu_block_t *block)
{
    for (const cpu_slice_t *slice = block->slice; slice < block->slice + block->slices; slice++)
        for (size_t a = 0; a < tower->outs; a++) {
            float *to = slice->grad + tower->bias_at + a, sum = block->first ? 0.0f : *to;
            for (size_t r = slice->first; r < slice->first + slice->rows; r++)
                sum += d_out[a * TT_BLOCK + r];
            *to = sum;
        }
    cpu_slices_add(block, tower->bias_at, tower->outs);
}

static void s_head_slice_grad(const cpu_block_t *block, const cpu_slice_t *slice, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    const tt_gemm_t job = {
        .kind = TT_GEMM_ADD,
        .first = block->first,
        .m = tower->outs,
        .n = tower->in16,
        .k = slice->rows,
        .a = block->lane->d_out[t] + slice->first,
        .a_row = TT_BLOCK,
        .a_k = 1,
        .b = s_layer_input(block, t, tower->layers) + slice->first * tower->in16,
        .b_panel = 16,
        .b_k = tower->in16,
        .c = block->lane->head_grad[t],
        .c_row = tower->in16,
    };
    block->net->kernels->gemm(&job);
}

/*  The head's weights stand transposed in lane->head_grad until the shard ends: with two outputs, [in][out] would leave
 *  seven lanes of eight idle. */
static void s_head_weight_grad(const cpu_block_t *block, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    for (uint32_t i = 0; i < block->slices; i++) {
        s_head_slice_grad(block, &block->slice[i], t);
        if (block->slices > 1)
            cpu_tower_put_head_grad(tower, block->lane->head_grad[t], block->slice[i].grad);
    }
    cpu_slices_add(block, tower->weight_at, tower->in * tower->outs);
}

/*  `kind`: with the derivative of what gave the input h. */
static void s_head_input_grad(const cpu_block_t *block, uint32_t t, tt_gemm_kind_t kind, const float *h, float *d_input)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    const tt_gemm_t job = {
        .kind = kind,
        .m = block->rows,
        .n = tower->in16,
        .k = tower->outs,
        .a = block->lane->d_out[t],
        .a_row = 1,
        .a_k = TT_BLOCK,
        .b = tower->head,
        .b_panel = 16,
        .b_k = tower->in16,
        .c = d_input,
        .c_row = tower->in16,
        .h = h,
        .h_row = tower->in16,
    };
    block->net->kernels->gemm(&job);
}

void cpu_layer_param_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *input, const float *d)
{
    if (block->slices > 1) {
        cpu_slices_layer_grad(block, layer, input, d);
        return;
    }
    float *grad = block->slice[0].grad;
    const tt_gemm_t job = {
        .kind = TT_GEMM_ADD,
        .first = block->first,
        .m = layer->in,
        .n = layer->out,
        .k = block->rows,
        .a = input,
        .a_row = 1,
        .a_k = layer->in16,
        .b = d,
        .b_panel = 16,
        .b_k = layer->out16,
        .c = grad + layer->weight_at,
        .c_row = layer->out,
    };
    const tt_kernels_t *kernels = block->net->kernels;
    if (input)
        kernels->gemm(&job);
    else
        cpu_bytes_param_grad(kernels, &job, (const uint8_t *const *)block->from);
    kernels->column_sum(block->rows, layer->out, d, layer->out16, block->first, grad + layer->bias_at);
}

void cpu_layer_input_grad(const cpu_block_t *block, const cpu_layer_t *layer, tt_gemm_kind_t kind, const float *d,
    const float *h, float *d_input)
{
    const tt_gemm_t job = {
        .kind = kind,
        .m = block->rows,
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
        .h = h,
        .h_row = layer->in16,
    };
    block->net->kernels->gemm(&job);
}

void cpu_tower_input_grad(const cpu_block_t *block, uint32_t t, uint32_t l, const float *d, float *d_input)
{
    const cpu_tower_t *towers = block->net->tower[0], *tower = &towers[t];
    const tt_gemm_kind_t kind = l ? tower->backward : towers[tower->from].backward;
    const float *h = s_layer_input(block, t, l);
    if (l == tower->layers)
        s_head_input_grad(block, t, kind, h, d_input);
    else
        cpu_layer_input_grad(block, &tower->layer[l], kind, d, h, d_input);
}

/*  Its first reader writes, later ones are added. */
void cpu_give_to_trunk(cpu_block_t *block, uint32_t t, const float *d, float *scratch)
{
    const cpu_tower_t *towers = block->net->tower[0];
    const uint32_t from = towers[t].from;
    float *sum = block->lane->d_trunk[from];
    const bool more = block->filled >> from & 1;
    if (towers[t].action)
        cpu_beside_grad(block, t, d, more ? scratch : sum);
    else
        cpu_tower_input_grad(block, t, 0, d, more ? scratch : sum);
    if (more)
        block->net->kernels->add(block->rows * towers[from].gives16, scratch, sum);
    block->filled |= 1u << from;
}

void cpu_tower_backward(cpu_block_t *block, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    const cpu_lane_t *lane = block->lane;
    float *d = tower->outs ? lane->d[0] : lane->d_trunk[t], *next = lane->d[1];
    if (tower->outs) {
        s_head_bias_grad(tower, lane->d_out[t], block);
        s_head_weight_grad(block, t);
        if (tower->layers)
            cpu_tower_input_grad(block, t, tower->layers, NULL, d);
    }
    for (uint32_t l = tower->layers; l-- > 0;) {
        cpu_layer_param_grad(block, &tower->layer[l], s_layer_input(block, t, l), d);
        if (l > 0) {
            cpu_tower_input_grad(block, t, l, d, next);
            d = next;
            next = next == lane->d[0] ? lane->d[1] : lane->d[0];
        }
    }
    if (!tower->reads_obs)
        cpu_give_to_trunk(block, t, d, next);
}

void cpu_tower_put_head_grad(const cpu_tower_t *tower, const float *head_grad, float *grad)
{
    for (size_t k = 0; k < tower->in; k++)
        for (size_t a = 0; a < tower->outs; a++)
            grad[tower->weight_at + k * tower->outs + a] = head_grad[a * tower->in16 + k];
}
