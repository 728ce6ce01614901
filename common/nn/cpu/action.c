/*  action - towers that read an action behind the observation or a trunk: what they read, and the ways back from there. */
#include <string.h>
#include "common/nn/cpu/cpu.h"

/*  Zeros stand behind a row since its memory was taken. */
void cpu_join(const cpu_block_t *block, const float *given, const uint32_t *row)
{
    const cpu_net_t *net = block->net;
    const cpu_lane_t *lane = block->lane;
    const uint32_t from = net->action_from;
    const float *read = from ? lane->last[from - 1] : lane->x;
    const size_t stride = from ? net->tower[0][from - 1].gives16 : net->obs16;
    const size_t at = net->action_at, numbers = net->spec->action;
    for (size_t r = 0; r < block->rows; r++) {
        float *to = lane->joined + r * net->joined16;
        memcpy(to, read + r * stride, at * sizeof *to);
        for (size_t a = 0; a < numbers; a++)
            to[at + a] = given ? given[row[r] * numbers + a] : lane->action[a * TT_BLOCK + r];
    }
}

/*  Some inputs of the first layer, whole panels of its transposed weights: what comes to them, d_input[rows][columns]. */
typedef struct {
    tt_gemm_kind_t kind;
    size_t panel, columns;
    const float *h; /* as d_input; NULL: the kind does not read it */
} inputs_t;

static void s_input_grad(
    const cpu_block_t *block, const cpu_layer_t *layer, const inputs_t *inputs, const float *d, float *d_input)
{
    const tt_gemm_t job = {
        .kind = inputs->kind,
        .m = block->rows,
        .n = inputs->columns,
        .k = layer->out,
        .a = d,
        .a_row = layer->out16,
        .a_k = 1,
        .b = layer->transposed + inputs->panel * 16 * layer->out,
        .b_panel = 16 * layer->out,
        .b_k = 16,
        .c = d_input,
        .c_row = inputs->columns,
        .h = inputs->h ? inputs->h : d_input,
        .h_row = inputs->columns,
    };
    block->net->kernels->gemm(&job);
}

void cpu_beside_grad(const cpu_block_t *block, uint32_t t, const float *d, float *d_trunk)
{
    const cpu_tower_t *towers = block->net->tower[0];
    const uint32_t from = towers[t].from;
    const inputs_t inputs = {
        .kind = towers[from].backward, .columns = towers[from].gives16, .h = block->lane->last[from]};
    s_input_grad(block, &towers[t].layer[0], &inputs, d, d_trunk);
}

/*  Of the first layer only those inputs are asked for among which the action lies. Returns where it begins in a row of d_input. */
static size_t s_action_grad(
    const cpu_block_t *block, const cpu_layer_t *layer, size_t columns, const float *d, float *d_input)
{
    const inputs_t inputs = {.kind = TT_GEMM_D_NONE, .panel = block->net->action_at / 16, .columns = columns};
    s_input_grad(block, layer, &inputs, d, d_input);
    return block->net->action_at % 16;
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
    const size_t columns = block->net->joined16 - block->net->action_at / 16 * 16;
    const size_t at = s_action_grad(block, &tower->layer[0], columns, d, next);
    for (size_t a = 0; a < block->net->spec->action; a++) {
        float *to = lane->d_action + a * TT_BLOCK;
        for (size_t r = 0; r < TT_BLOCK; r++) {
            const float came = r < block->rows ? next[r * columns + at + a] : 0.0f;
            to[r] = more ? to[r] + came : came;
        }
    }
}
