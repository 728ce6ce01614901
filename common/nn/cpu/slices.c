/*  slices - shards of few rows side by side in one block.
 *
 *  A row's numbers depend on that row alone, so that it may go forward and back beside rows of other shards: weights are read once for
 *  all. A sum over rows does not: each shard has one of its own. Those of a dense layer's weights, of which there may be millions, are
 *  made a tile at a time for all shards and added up there, so that only the tree's sum is written to memory; everything else is few
 *  numbers, written to each shard's gradient and added up behind. */
#include <string.h>
#include "common/nn/cpu/cpu.h"
#include "common/nn/cpu/ops.h"

enum { COLUMNS = 128, LINES = 8 };

/*  Noisy layers have gradients of their deviations, which are each shard's own; sequences are blocks of their own (sequences.c). */
bool cpu_slices_may(const cpu_net_t *net)
{
    return !net->recurrent && !tt_net_noisy(net->spec);
}

/* ---- the loss ------------------------------------------------------------------------------------------------------- */

static void s_copy(const float *from, float *to, size_t outs, size_t rows)
{
    for (size_t a = 0; a < outs; a++)
        memcpy(to + a * TT_BLOCK, from + a * TT_BLOCK, rows * sizeof *to);
}

/*  Its rows come first in the columns, and zeros behind. */
static void s_show(const cpu_lane_t *lane, const tt_objective_stage_t *stage, size_t outs, const cpu_slice_t *slice,
    const float **head, float **d_head)
{
    float *to = lane->shown[stage->frame * TT_SETS_MAX + stage->set][stage->tower];
    memset(to, 0, outs * TT_BLOCK * sizeof *to);
    s_copy(*head + slice->first, to, outs, slice->rows);
    *head = to;
    if (*d_head)
        *d_head = lane->d_shown[stage->tower];
}

static void s_loss(
    const cpu_plan_t *plan, const cpu_block_t *block, const tt_loss_block_t *all, const cpu_slice_t *slice)
{
    const tt_objective_t *objective = plan->pass->objective;
    tt_loss_block_t out = *all;
    out.rows = (uint32_t)slice->rows;
    out.row = all->row + slice->first;
    cpu_show_sums(plan, slice, &out);
    for (uint32_t s = 0; s < objective->stages; s++)
        s_show(block->lane, &objective->stage[s], block->net->tower[0][objective->stage[s].tower].outs, slice,
            &out.head[s], &out.d_head[s]);
    objective->loss(plan->pass->params, plan->input, &out);
    for (uint32_t s = 0; s < objective->stages; s++)
        if (out.d_head[s])
            s_copy(out.d_head[s], all->d_head[s] + slice->first, block->net->tower[0][objective->stage[s].tower].outs,
                slice->rows);
}

void cpu_slices_loss(const cpu_plan_t *plan, const cpu_block_t *block, const tt_loss_block_t *all)
{
    for (uint32_t i = 0; i < block->slices; i++)
        s_loss(plan, block, all, &block->slice[i]);
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

void cpu_slices_add(const cpu_block_t *block, size_t first, size_t count)
{
    for (uint32_t width = 1; width < block->slices; width *= 2)
        for (uint32_t at = 0; at < block->slices && count; at += 2 * width)
            block->net->kernels->add(count, block->slice[at + width].grad + first, block->slice[at].grad + first);
}

/*  A tile of a layer's weights: inputs row .. row + rows - 1, outputs col .. col + cols - 1. */
typedef struct {
    size_t row, rows, col, cols;
} tile_t;

/*  Of a layer that is no wider than a tile, the first shard's part is where the sum goes. */
static void s_tile(
    const cpu_block_t *block, const cpu_layer_t *layer, const tile_t *at, const float *input, const float *d)
{
    const tt_kernels_t *kernels = block->net->kernels;
    const size_t floats = at->rows * at->cols;
    float *part[TT_BLOCK], *to = block->slice[0].grad + layer->weight_at + at->row * layer->out + at->col;
    for (uint32_t i = 0; i < block->slices; i++) {
        const cpu_slice_t *slice = &block->slice[i];
        part[i] = i == 0 && at->cols == layer->out ? to : block->lane->tile + i * floats;
        const tt_gemm_t job = {
            .kind = TT_GEMM_ADD,
            .first = true,
            .m = at->rows,
            .n = at->cols,
            .k = slice->rows,
            .a = input + slice->first * layer->in16 + at->row,
            .a_row = 1,
            .a_k = layer->in16,
            .b = d + slice->first * layer->out16 + at->col,
            .b_panel = 16,
            .b_k = layer->out16,
            .c = part[i],
            .c_row = at->cols,
        };
        kernels->gemm(&job);
    }
    for (uint32_t width = 1; width < block->slices; width *= 2)
        for (uint32_t i = 0; i < block->slices; i += 2 * width)
            kernels->add(floats, part[i + width], part[i]);
    for (size_t r = 0; part[0] != to && r < at->rows; r++)
        memcpy(to + r * layer->out, part[0] + r * at->cols, at->cols * sizeof *to);
}

static void s_tiles(const cpu_block_t *block, const cpu_layer_t *layer, const float *input, const float *d)
{
    for (tile_t at = {0}; at.col < layer->out; at.col += at.cols) {
        at.cols = layer->out - at.col < COLUMNS ? layer->out - at.col : COLUMNS;
        const size_t rows = CPU_TILE / block->slices / at.cols / LINES * LINES;
        for (at.row = 0; at.row < layer->in; at.row += at.rows) {
            at.rows = layer->in - at.row < rows ? layer->in - at.row : rows;
            s_tile(block, layer, &at, input, d);
        }
    }
}

static void s_bytes_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *d)
{
    for (uint32_t i = 0; i < block->slices; i++) {
        const cpu_slice_t *slice = &block->slice[i];
        const tt_gemm_t job = {
            .kind = TT_GEMM_ADD,
            .first = true,
            .m = layer->in,
            .n = layer->out,
            .k = slice->rows,
            .b = d + slice->first * layer->out16,
            .b_panel = 16,
            .b_k = layer->out16,
            .c = slice->grad + layer->weight_at,
            .c_row = layer->out,
        };
        cpu_bytes_param_grad(block->net->kernels, &job, (const uint8_t *const *)block->from + slice->first);
    }
    cpu_slices_add(block, layer->weight_at, layer->in * layer->out);
}

void cpu_slices_layer_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *input, const float *d)
{
    if (input)
        s_tiles(block, layer, input, d);
    else
        s_bytes_grad(block, layer, d);
    for (uint32_t i = 0; i < block->slices; i++) {
        const cpu_slice_t *slice = &block->slice[i];
        block->net->kernels->column_sum(
            slice->rows, layer->out, d + slice->first * layer->out16, layer->out16, true, slice->grad + layer->bias_at);
    }
    cpu_slices_add(block, layer->bias_at, layer->out);
}
