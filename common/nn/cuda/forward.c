/*  forward - rows through the network, for whoever asks for heads. */
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

enum { ROWS_AT_ONCE = 8192 }; /* so that a table of any length needs room for so many */

/*  Some rows of a table, on their way to the heads that somebody asks for. */
typedef struct {
    const tt_net_t *net;
    cuda_flow_t flow;
    cuda_forward_t job;
    bool carries; /* what is carried on is wanted */
} forward_t;

static tt_status_t s_launch_forward(void *given)
{
    forward_t *self = given;
    cuda_gather_rows(&self->flow, &self->job.from);
    cuda_towers_forward(&self->flow, self->net, &self->job);
    return cuda_launched(self->flow.device, "a forward");
}

/*  Where the network's own memory lies follows from the network; parameters and rows are read on the card. */
static tt_status_t s_forward_again(forward_t *self)
{
    cuda_key_t key = {0};
    cuda_key_add(&key, "forward", 7);
    cuda_key_add(&key, &self->net, sizeof self->net);
    cuda_key_add(&key, &self->job.set, sizeof self->job.set);
    cuda_key_add(&key, &self->job.towers, sizeof self->job.towers);
    cuda_key_add(&key, &self->job.from.count, sizeof self->job.from.count);
    cuda_key_add(&key, &self->job.from.rows, sizeof self->job.from.rows);
    cuda_key_add(&key, &self->flow.sequences.carry, sizeof self->flow.sequences.carry);
    cuda_key_add(&key, &self->carries, sizeof self->carries);
    return cuda_again(self->flow.device, &key, s_launch_forward, self);
}

tt_status_t cuda_hand_out(const cuda_flow_t *flow, const cuda_heads_t *heads)
{
    const char *first = NULL, *end = NULL;
    void *stage = NULL;
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++) {
        const char *head = (const char *)flow->heads[t];
        if (!heads->to[t])
            continue;
        first = first ? first : head;
        end = head + heads->steps * heads->rows * flow->net->tower[t].outs * sizeof(float);
    }
    if (!first)
        return TT_OK;
    TT_TRY(cuda_fetch(flow->device, first, (size_t)(end - first), &stage));
    for (uint32_t t = 0; t < TT_TOWERS_MAX; t++) {
        const size_t outs = flow->net->tower[t].outs, bytes = heads->rows * outs * sizeof(float);
        for (size_t k = 0; heads->to[t] && k < heads->steps; k++)
            cuda_land(
                flow->device, &(cuda_land_t){.from = (char *)stage + ((const char *)flow->heads[t] - first) + k * bytes,
                                  .to = heads->to[t] + (heads->at + k * heads->apart) * outs,
                                  .bytes = bytes});
    }
    return TT_OK;
}

/*  What rows carry into a step, and behind it room for what they carry out of it. */
static tt_status_t s_carry_in(forward_t *self, const tt_work_t *work, size_t at)
{
    cuda_flow_t *flow = &self->flow;
    cuda_room_t *room = &((cuda_net_t *)self->net->impl)->carried;
    const size_t floats = flow->net->carry, bytes = tt_mul(flow->rows, floats) * sizeof(float);
    TT_TRY(cuda_room(flow->device, room, 2 * bytes));
    TT_TRY(cuda_up(flow->device, room->memory, work->forward.carry.in + at * floats, bytes));
    TT_TRY(cuda_cells(flow, self->net,
        &(cuda_sequences_t){.count = flow->rows, .length = 1, .carry = room->memory, .carry_floats = (uint32_t)floats},
        false));
    for (uint32_t t = 0; work->forward.carry.out && t < self->net->spec.towers; t++)
        flow->cells[t].carry_out = (float *)room->memory + flow->rows * floats;
    return TT_OK;
}

static tt_status_t s_carry_out(cuda_stream_t *stream, const cuda_flow_t *flow, const tt_work_t *work, size_t at)
{
    const size_t floats = flow->net->carry;
    if (!work->forward.carry.out)
        return TT_OK;
    return cuda_down(stream, work->forward.carry.out + at * floats,
        (const float *)flow->net->carried.memory + flow->rows * floats, flow->rows * floats * sizeof(float));
}

static tt_status_t s_forward_rows(cuda_stream_t *stream, const tt_work_t *work, size_t at, uint32_t rows)
{
    const tt_table_t *obs = work->forward.obs;
    forward_t self = {.net = work->forward.net,
        .carries = work->forward.carry.out != NULL,
        .job = {.set = work->forward.set,
            .from = {.count = rows,
                .rows = (const uint8_t *)obs->copy + (work->forward.first + at) * obs->bytes,
                .bytes = obs->bytes}}};
    TT_TRY(cuda_flow(&self.flow, self.net, rows, false));
    if (self.flow.net->carry)
        TT_TRY(s_carry_in(&self, work, at));
    for (uint32_t t = 0; t < self.net->spec.towers; t++)
        if (work->forward.out[t] || (work->forward.carry.out && tt_tower_recurs(self.net->spec.tower[t].kind)))
            self.job.towers |= self.flow.net->tower[t].chain;
    TT_TRY(work->forward.again ? s_forward_again(&self) : s_launch_forward(&self));
    TT_TRY(s_carry_out(stream, &self.flow, work, at));
    return cuda_hand_out(&self.flow, &(cuda_heads_t){.to = work->forward.out, .at = at, .rows = rows, .steps = 1});
}

tt_status_t cuda_forward(cuda_stream_t *stream, const tt_work_t *work)
{
    const size_t rows = work->forward.rows;
    for (size_t at = 0; at < rows; at += ROWS_AT_ONCE)
        TT_TRY(s_forward_rows(stream, work, at, (uint32_t)(rows - at < ROWS_AT_ONCE ? rows - at : ROWS_AT_ONCE)));
    return TT_OK;
}
