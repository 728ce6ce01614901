/*  recurrent - recurrent towers on a card: all sequences of a run a step at a time, each step a product and a launch of cells. */
#include "common/nn/cuda/cuda.h"

/*  What is kept of each row (h, c and the gates are on the way back what they were), and what there is of a step. */
static size_t s_carve_cells(cuda_cells_t *self, const cuda_flow_t *flow, uint32_t t, char *memory, bool back)
{
    const cuda_tower_t *tower = &flow->net->tower[t];
    const size_t rows = flow->rows, count = flow->sequences.count, units = tower->gives, gates = tower->head.out;
    size_t at = 0;
    *self = (cuda_cells_t){.lstm = tower->kind == TT_TOWER_LSTM,
        .units = tower->gives,
        .carry_at = tower->carry_at,
        .gates = flow->hidden[t][0]};
    self->h = cuda_carve(memory, &at, rows, units);
    self->h_in = cuda_carve(memory, &at, rows, units);
    if (self->lstm) {
        self->c = cuda_carve(memory, &at, rows, units);
        self->c_in = cuda_carve(memory, &at, rows, units);
        self->c_now = cuda_carve(memory, &at, count, units);
    } else
        self->n_in = cuda_carve(memory, &at, rows, units);
    self->h_now = cuda_carve(memory, &at, count, units);
    self->hidden = cuda_carve(memory, &at, count, gates);
    self->d_hidden = self->gates;
    if (back && !self->lstm)
        self->d_hidden = cuda_carve(memory, &at, rows, gates);
    self->d_h = flow->d_trunk[t];
    return at;
}

tt_status_t cuda_cells(cuda_flow_t *self, const tt_net_t *net, const cuda_sequences_t *sequences, bool back)
{
    cuda_net_t *impl = net->impl;
    self->sequences = *sequences;
    for (uint32_t t = 0; t < net->spec.towers; t++) {
        cuda_cells_t *cells = &self->cells[t];
        if (!tt_tower_recurs(impl->tower[t].kind))
            continue;
        TT_TRY(cuda_room(self->device, &impl->recurrent[t], s_carve_cells(cells, self, t, NULL, back)));
        s_carve_cells(cells, self, t, impl->recurrent[t].memory, back);
        self->last[t] = cells->h;
    }
    return TT_OK;
}

/*  What is carried into the step, through the layer that reads it. */
static void s_carried(const cuda_flow_t *flow, const float *params, uint32_t t)
{
    const cuda_layer_t *layer = &flow->net->tower[t].head;
    const cuda_cells_t *cells = &flow->cells[t];
    cuda_gemm(flow->device->work, &(cuda_gemm_t){.kind = CUDA_SUM,
                                      .m = flow->sequences.count,
                                      .n = layer->out,
                                      .k = layer->in,
                                      .a = cells->h_now,
                                      .a_row = layer->in,
                                      .a_k = 1,
                                      .b = params + layer->weight_at,
                                      .b_k = layer->out,
                                      .b_col = 1,
                                      .c = cells->hidden,
                                      .c_row = layer->out,
                                      .bias = params + layer->bias_at});
}

void cuda_recurrent_forward(const cuda_flow_t *flow, const tt_net_t *net, uint32_t set, uint32_t t)
{
    const cuda_sequences_t *of = &flow->sequences;
    cuda_cells_begin(flow->device->work, of, &flow->cells[t]);
    for (uint32_t step = 0; step < of->length; step++) {
        s_carried(flow, net->params[set], t);
        cuda_cells_step(flow->device->work, of, &flow->cells[t], step);
    }
}

/*  And back to what was carried: beside what a GRU let through. */
static void s_carried_back(const cuda_flow_t *flow, const float *params, uint32_t t)
{
    const cuda_layer_t *layer = &flow->net->tower[t].head;
    const cuda_cells_t *cells = &flow->cells[t];
    cuda_gemm(flow->device->work, &(cuda_gemm_t){.kind = CUDA_D_NONE,
                                      .add = !cells->lstm,
                                      .m = flow->sequences.count,
                                      .n = layer->in,
                                      .k = layer->out,
                                      .a = cells->hidden,
                                      .a_row = layer->out,
                                      .a_k = 1,
                                      .b = params + layer->weight_at,
                                      .b_k = 1,
                                      .b_col = layer->out,
                                      .c = cells->h_now,
                                      .c_row = layer->in});
}

void cuda_recurrent_backward(const cuda_flow_t *flow, const tt_net_t *net, uint32_t t)
{
    const cuda_sequences_t *of = &flow->sequences;
    for (uint32_t step = of->length; step-- > 0;) {
        cuda_cells_back(flow->device->work, of, &flow->cells[t], step);
        if (step > 0)
            s_carried_back(flow, net->params[0], t);
    }
}
