/*  action - towers that read an action behind the observation: what they read, and the way back to it. */
#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  Zeros stand behind a row since its memory was taken. */
void cpu_join(const cpu_block_t *block, const float *given, const uint32_t *row)
{
    const cpu_net_t *net = block->net;
    const cpu_lane_t *lane = block->lane;
    const size_t obs = net->spec->obs, numbers = net->spec->action;
    for (size_t r = 0; r < block->rows; r++) {
        float *to = lane->joined + r * net->joined16;
        memcpy(to, lane->x + r * net->obs16, obs * sizeof *to);
        for (size_t a = 0; a < numbers; a++)
            to[obs + a] = given ? given[row[r] * numbers + a] : lane->action[a * TT_BLOCK + r];
    }
}

/*  Of the first layer only those inputs are asked for among which the action lies: whole panels of the transposed weights. Returns where
 *  it begins in a row of d_input. */
static size_t s_first_input_grad(const cpu_block_t *block, const cpu_layer_t *layer, const float *d, float *d_input)
{
    const size_t panel = block->net->spec->obs / 16, columns = layer->in16 - panel * 16;
    const tt_gemm_t job = {
        .kind = TT_GEMM_D_NONE,
        .m = block->rows,
        .n = columns,
        .k = layer->out,
        .a = d,
        .a_row = layer->out16,
        .a_k = 1,
        .b = layer->transposed + panel * 16 * layer->out,
        .b_panel = 16 * layer->out,
        .b_k = 16,
        .c = d_input,
        .c_row = columns,
        .h = d_input, /* D_NONE does not read it */
        .h_row = columns,
    };
    block->net->kernels->gemm(&job);
    return block->net->spec->obs - panel * 16;
}

void cpu_tower_through(const cpu_block_t *block, uint32_t t, bool more)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    const cpu_lane_t *lane = block->lane;
    float *d = lane->d[0], *next = lane->d[1];
    cpu_tower_input_grad(block, t, tower->layers, NULL, d);
    for (uint32_t l = tower->layers - 1; l > 0; l--) {
        cpu_tower_input_grad(block, t, l, d, next);
        float *const free = d;
        d = next;
        next = free;
    }
    const cpu_layer_t *layer = &tower->layer[0];
    const size_t at = s_first_input_grad(block, layer, d, next), row = layer->in16 - block->net->spec->obs / 16 * 16;
    for (size_t a = 0; a < block->net->spec->action; a++) {
        float *to = lane->d_action + a * TT_BLOCK;
        for (size_t r = 0; r < TT_BLOCK; r++) {
            const float came = r < block->rows ? next[r * row + at + a] : 0.0f;
            to[r] = more ? to[r] + came : came;
        }
    }
}
