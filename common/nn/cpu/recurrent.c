/*  recurrent - a step of a recurrent tower, a block of rows at once: two products, of what is read and of what is carried, and what the
 *  gates make of them (kernels_recurrent.h). */
#include <string.h>
#include "common/nn/cpu/cpu.h"

static void s_units_in(const cpu_tower_t *tower, const float *from, float *to)
{
    if (from)
        memcpy(to, from, tower->units * sizeof *to);
    else
        memset(to, 0, tower->units * sizeof *to);
    memset(to + tower->units, 0, (tower->units16 - tower->units) * sizeof *to);
}

void cpu_carry_in(const cpu_tower_t *tower, const float *row, float *h, float *c)
{
    s_units_in(tower, row, h);
    if (tower->lstm)
        s_units_in(tower, row ? row + tower->units : NULL, c);
}

void cpu_carry_out(const cpu_tower_t *tower, const float *h, const float *c, float *row)
{
    memcpy(row, h, tower->units * sizeof *row);
    if (tower->lstm)
        memcpy(row + tower->units, c, tower->units * sizeof *row);
}

void cpu_recurrent_forward(const cpu_block_t *block, uint32_t set, uint32_t t)
{
    const cpu_tower_t *tower = &block->net->tower[set][t];
    const cpu_lane_t *lane = block->lane;
    const tt_cell_t cell = {
        .rows = block->rows,
        .units = tower->units,
        .row = tower->units16,
        .gates_row = tower->gates16,
        .gates = lane->hidden[t][0],
        .hh = lane->hidden[t][1],
        .h_before = lane->carried[t][0],
        .c_before = lane->carried[t][1],
        .h = lane->last[t],
        .c = lane->carried[t][1],
        .squashed = lane->d[0], /* nobody goes back */
    };
    cpu_layer_forward(block, &tower->layer[0], TT_GEMM_SUM, cpu_tower_input(block, t), cell.gates);
    cpu_layer_forward(block, &tower->layer[1], TT_GEMM_SUM, cell.h_before, cell.hh);
    (tower->lstm ? block->net->kernels->lstm : block->net->kernels->gru)(&cell);
}
