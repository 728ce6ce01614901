/*  sequences - the sequences of a shard through an objective.
 *
 *  Up to TT_SEQUENCES of them go side by side, a *group*. Its rows are in the order (step, sequence), so that the rows of a step lie
 *  together and blocks of TT_BLOCK rows run through the steps. Only what recurs goes step by step: the product of what is carried, and
 *  the gates. Everything else (the towers before and behind, the products of what is read, the gradients of both matrices) takes blocks
 *  of rows, whatever step they are of. The phases of a group:
 *
 *    read     blocks: gather, the towers before the recurrent ones, the product of what these read, which is kept
 *    walk     steps: what is carried, its product, the gates
 *    see      blocks: the towers behind, the loss, and back through these
 *    return   steps, from the last: what came to a step's h from behind and from the step after; what comes to the gates
 *    learn    blocks: gradients of the recurrent towers' weights; the towers before once more (the same bits again: nothing of them was
 *             kept), and back
 *
 *  A tower with a head that reads no recurrent one is seen with the others, and goes back with the trunk that it may share with a
 *  recurrent one: what came to its head is kept until then.
 *
 *  Memory of a row in a group, in floats: of an LSTM of H units 9 H, of a GRU 9 H. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"

/*  What is kept of a recurrent tower. Rows in the group's order. */
typedef struct {
    float *gates; /* [rows][gates16]: the product of what is read, what the gates gave, what came to them            */
    float *hh;    /* of a GRU as `gates`, of what is carried; of an LSTM [sequences][gates16], a step's               */
    float *h;     /* [rows][units16]: what it gives                                                                   */
    float *
        h_before; /* [rows][units16]: what is carried into a row                                                      */
    float *
        c_before; /* of an LSTM: [rows + sequences][units16]                                                          */
    float *
        squashed; /* of an LSTM: [rows][units16]                                                                      */
    float *d_h;   /* [rows][units16]: what came to h                                                                  */
    float *d_before
        [2]; /* [sequences][units16]: what a step leaves for h and c of the one before                           */
} activations_t;

typedef struct {
    const cpu_plan_t *plan;
    const cpu_net_t *net;
    cpu_lane_t lane;   /* a copy: in it a recurrent tower's last and d_trunk are a block's rows of what is kept */
    cpu_slice_t shard; /* its rows in the block in hand */
    bool first;        /* group of the shard           */
    uint32_t sequences, steps; /* of it                        */
    uint32_t rows;
    const uint32_t *row;               /* [sequences][steps] their numbers */
    uint32_t *number;                  /* [rows] the same in the group's order */
    activations_t acts[TT_TOWERS_MAX]; /* of recurrent towers          */
    float *d_out[TT_TOWERS_MAX];       /* [blocks][outs][TT_BLOCK], of heads that no recurrent tower is before */
} group_t;

/* ---- which towers, as bits ------------------------------------------------------------------------------------------ */

/*  Recurrent ones that the stages take. */
static uint32_t s_recurrent(const cpu_plan_t *plan)
{
    return plan->forward[0] & ((const cpu_net_t *)plan->net->impl)->recurrent;
}

/*  Those that recurrent ones take, without these. */
static uint32_t s_before(const cpu_plan_t *plan)
{
    const cpu_net_t *net = plan->net->impl;
    const uint32_t recurrent = s_recurrent(plan);
    uint32_t towers = 0;
    for (uint32_t t = 0; recurrent >> t; t++)
        towers |= recurrent >> t & 1 ? net->tower[0][t].chain & ~recurrent : 0;
    return towers;
}

static bool s_reads_obs(const cpu_net_t *net, uint32_t towers)
{
    bool reads = false;
    for (uint32_t t = 0; towers >> t; t++)
        reads |= towers >> t & 1 && net->tower[0][t].reads_obs && !net->tower[0][t].made;
    return reads;
}

/*  Those that go back when a loss was seen: what they give depends on a recurrent one, and none depends on them. */
static bool s_is_behind(const cpu_net_t *net, uint32_t t)
{
    return !net->tower[0][t].units && net->tower[0][t].chain & net->recurrent;
}

/*  Those that go back at the end: trained, and neither recurrent nor behind. */
static uint32_t s_apart(const cpu_plan_t *plan)
{
    const cpu_net_t *net = plan->net->impl;
    uint32_t towers = plan->back & ~net->recurrent;
    for (uint32_t t = 0; t < plan->net->spec.towers; t++)
        towers &= ~((uint32_t)s_is_behind(net, t) << t);
    return towers;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

/*  The next floats of it, whole cache lines; without memory it is only counted. */
static float *s_take(float *memory, size_t *at, size_t rows, size_t cols)
{
    float *part = memory ? memory + *at : NULL;
    *at += tt_align(rows * cols, 16);
    return part;
}

static void s_take_tower(group_t *self, uint32_t t, float *memory, size_t *at)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const size_t rows = self->rows, sequences = self->sequences, units = tower->units16;
    activations_t *acts = &self->acts[t];
    acts->gates = s_take(memory, at, rows, tower->gates16);
    acts->hh = s_take(memory, at, tower->lstm ? sequences : rows, tower->gates16);
    acts->h = s_take(memory, at, rows, units);
    acts->h_before = s_take(memory, at, rows, units);
    acts->c_before = s_take(memory, at, tower->lstm ? rows + sequences : 0, units);
    acts->squashed = s_take(memory, at, tower->lstm ? rows : 0, units);
    acts->d_h = s_take(memory, at, rows, units);
    for (int i = 0; i < 2; i++)
        acts->d_before[i] = s_take(memory, at, sequences, units);
}

/*  Returns how many floats a group takes. */
static size_t s_carve(group_t *self, float *memory)
{
    const uint32_t apart = s_apart(self->plan), recurrent = s_recurrent(self->plan);
    const size_t blocks = (self->rows + TT_BLOCK - 1) / TT_BLOCK;
    size_t at = 0;
    self->number = (uint32_t *)(void *)s_take(memory, &at, self->rows, 1);
    for (uint32_t t = 0; t < self->plan->net->spec.towers; t++) {
        if (recurrent >> t & 1)
            s_take_tower(self, t, memory, &at);
        if (apart >> t & 1)
            self->d_out[t] = s_take(memory, &at, blocks * TT_BLOCK, self->net->tower[0][t].outs);
    }
    return at;
}

/*  Sequences of a shard differ by one at most. */
void cpu_sequences_reserve(const cpu_plan_t *plan, const tt_sums_t *sums)
{
    const tt_pass_t *pass = plan->pass;
    const cpu_net_t *net = plan->net->impl;
    tt_device_t *device = plan->net->device;
    if (!pass->rows || !pass->length)
        return;
    const uint32_t most = (pass->rows / pass->length + sums->shards - 1) / sums->shards;
    group_t group = {.plan = plan, .net = net, .sequences = most < TT_SEQUENCES ? most : TT_SEQUENCES};
    group.steps = pass->length;
    group.rows = group.sequences * group.steps;
    const size_t room = s_carve(&group, NULL);
    for (uint32_t i = 0; i < device->lanes; i++) {
        cpu_lane_t *lane = &net->lanes[i];
        if (lane->sequences_room >= room)
            continue;
        device->ops->free(device, lane->sequences);
        lane->sequences = cpu_new_floats(device, 1, room);
        lane->sequences_room = room;
    }
}

/* ---- blocks and steps ----------------------------------------------------------------------------------------------- */

/*  Rows from `at` on: the shard's, of which there is one such block at a time. */
static cpu_block_t s_block(group_t *self, uint32_t at)
{
    self->shard.rows = self->rows - at < TT_BLOCK ? self->rows - at : TT_BLOCK;
    return (cpu_block_t){
        .net = self->net,
        .lane = &self->lane,
        .rows = self->shard.rows,
        .first = self->first && at == 0,
        .slices = 1,
        .slice = &self->shard,
    };
}

/*  The rows of a step. */
static cpu_block_t s_step(const group_t *self)
{
    return (cpu_block_t){.net = self->net, .lane = &self->lane, .rows = self->sequences};
}

static bool s_begins(const group_t *self, size_t k)
{
    return self->plan->pass->begins->rows[self->number[k]] != 0;
}

/* ---- read, walk ----------------------------------------------------------------------------------------------------- */

static void s_number(group_t *self)
{
    for (uint32_t s = 0; s < self->steps; s++)
        for (uint32_t q = 0; q < self->sequences; q++)
            self->number[s * self->sequences + q] = self->row[q * self->steps + s];
}

static void s_read(group_t *self)
{
    const uint32_t before = s_before(self->plan), recurrent = s_recurrent(self->plan);
    for (uint32_t at = 0; recurrent && at < self->rows; at += TT_BLOCK) {
        cpu_block_t block = s_block(self, at);
        cpu_gather(&block, self->plan->pass->obs[TT_AT], self->number + at, 0);
        cpu_towers_forward(&block, 0, before);
        for (uint32_t t = 0; recurrent >> t; t++) {
            const cpu_tower_t *tower = &self->net->tower[0][t];
            if (recurrent >> t & 1)
                cpu_layer_forward(&block, &tower->layer[0], TT_GEMM_SUM, cpu_tower_input(&block, t),
                    self->acts[t].gates + at * tower->gates16);
        }
        cpu_tell(self->plan, &self->lane);
    }
}

/*  Rows of a step, from row `at` of the group on, as the kernels have them. */
static tt_cell_t s_cell(const group_t *self, uint32_t t, size_t at)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const activations_t *acts = &self->acts[t];
    const size_t units = at * tower->units16;
    return (tt_cell_t){
        .rows = self->sequences,
        .units = tower->units,
        .row = tower->units16,
        .gates_row = tower->gates16,
        .gates = acts->gates + at * tower->gates16,
        .hh = tower->lstm ? acts->hh : acts->hh + at * tower->gates16,
        .h_before = acts->h_before + units,
        .c_before = tower->lstm ? acts->c_before + units : NULL,
        .h = acts->h + units,
        .c = tower->lstm ? acts->c_before + units + self->sequences * tower->units16 : NULL,
        .squashed = tower->lstm ? acts->squashed + units : NULL,
        .d_h = acts->d_h + units,
        .d_c = acts->d_before[1],
    };
}

/*  c came from the step before by itself. */
static void s_carry(group_t *self, uint32_t t, uint32_t step)
{
    const tt_table_t *carry = self->plan->pass->carry;
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const activations_t *acts = &self->acts[t];
    const size_t first = step * self->sequences, units = tower->units16;
    if (step)
        memcpy(acts->h_before + first * units, acts->h + (first - self->sequences) * units,
            self->sequences * units * sizeof(float));
    for (size_t k = first; k < first + self->sequences; k++) {
        const bool begins = s_begins(self, k);
        if (step && !begins)
            continue;
        const void *row =
            begins ? NULL : carry->rows + self->number[k] * carry->bytes + tower->carry_at * sizeof(float);
        cpu_carry_in(tower, row, acts->h_before + k * units, tower->lstm ? acts->c_before + k * units : NULL);
    }
}

static void s_walk(group_t *self, uint32_t t)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const cpu_block_t block = s_step(self);
    for (uint32_t step = 0; step < self->steps; step++) {
        const tt_cell_t cell = s_cell(self, t, step * self->sequences);
        s_carry(self, t, step);
        cpu_layer_forward(&block, &tower->layer[1], TT_GEMM_SUM, cell.h_before, cell.hh);
        (tower->lstm ? self->net->kernels->lstm : self->net->kernels->gru)(&cell);
        cpu_tell(self->plan, &self->lane);
    }
}

/* ---- see ------------------------------------------------------------------------------------------------------------ */

/*  What came to a block's heads apart: kept, and there again. */
static void s_copy_heads(const group_t *self, uint32_t at, uint32_t apart, bool keep)
{
    for (uint32_t t = 0; apart >> t; t++) {
        const size_t floats = self->net->tower[0][t].outs * TT_BLOCK;
        if (!(apart >> t & 1) || !floats)
            continue;
        float *stored = self->d_out[t] + at / TT_BLOCK * floats, *lane = self->lane.d_out[t];
        memcpy(keep ? stored : lane, keep ? lane : stored, floats * sizeof *lane);
    }
}

/*  To those behind, the recurrent towers are trunks that were computed. */
static void s_show(group_t *self, uint32_t at)
{
    const uint32_t recurrent = s_recurrent(self->plan);
    for (uint32_t t = 0; recurrent >> t; t++) {
        const size_t first = at * self->net->tower[0][t].units16;
        if (!(recurrent >> t & 1))
            continue;
        self->lane.last[t] = self->acts[t].h + first;
        self->lane.d_trunk[t] = self->acts[t].d_h + first;
    }
}

static void s_see_block(group_t *self, uint32_t at, uint32_t seen, uint32_t apart)
{
    const cpu_plan_t *plan = self->plan;
    cpu_block_t block = s_block(self, at);
    s_show(self, at);
    if (s_reads_obs(self->net, seen))
        cpu_gather(&block, plan->pass->obs[TT_AT], self->number + at, 0);
    cpu_towers_forward(&block, 0, seen);
    cpu_loss(plan, &block, self->number + at);
    for (uint32_t i = 0; i < plan->net->spec.towers; i++) {
        const uint32_t t = self->net->back[i];
        if (plan->back >> t & 1 && s_is_behind(self->net, t))
            cpu_back(&block, t);
    }
    s_copy_heads(self, at, apart, true);
}

static void s_see(group_t *self)
{
    const uint32_t seen = self->plan->near & ~self->net->recurrent, apart = s_apart(self->plan);
    for (uint32_t at = 0; at < self->rows; at += TT_BLOCK) {
        s_see_block(self, at, seen, apart);
        cpu_tell(self->plan, &self->lane);
    }
}

/* ---- return --------------------------------------------------------------------------------------------------------- */

/*  What a step leaves for the one before: nothing where an episode began with it. */
static void s_leave(const group_t *self, uint32_t t, const tt_cell_t *cell, size_t first)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const cpu_block_t block = s_step(self);
    const size_t units = tower->units16;
    float *const *to = self->acts[t].d_before;
    cpu_layer_input_grad(
        &block, &tower->layer[1], TT_GEMM_D_NONE, tower->lstm ? cell->gates : cell->hh, cell->h_before, to[0]);
    if (!tower->lstm)
        self->net->kernels->add(self->sequences * units, cell->d_h, to[0]);
    for (size_t q = 0; q < self->sequences; q++)
        for (int i = 0; i < 2 && s_begins(self, first + q); i++)
            memset(to[i] + q * units, 0, units * sizeof(float));
}

static void s_return(group_t *self, uint32_t t)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    float *const *before = self->acts[t].d_before;
    const size_t floats = self->sequences * tower->units16;
    for (int i = 0; i < 2; i++)
        memset(before[i], 0, floats * sizeof(float));
    for (uint32_t step = self->steps; step-- > 0;) {
        const tt_cell_t cell = s_cell(self, t, step * self->sequences);
        self->net->kernels->add(floats, before[0], cell.d_h);
        (tower->lstm ? self->net->kernels->lstm_back : self->net->kernels->gru_back)(&cell);
        if (step)
            s_leave(self, t, &cell, step * self->sequences);
        cpu_tell(self->plan, &self->lane);
    }
}

/* ---- learn ---------------------------------------------------------------------------------------------------------- */

static void s_learn_recurrent(const group_t *self, cpu_block_t *block, uint32_t t, size_t at)
{
    const cpu_tower_t *tower = &self->net->tower[0][t];
    const activations_t *acts = &self->acts[t];
    const float *d_ih = acts->gates + at * tower->gates16;
    const float *d_hh = tower->lstm ? d_ih : acts->hh + at * tower->gates16;
    cpu_layer_param_grad(block, &tower->layer[0], cpu_tower_input(block, t), d_ih);
    cpu_layer_param_grad(block, &tower->layer[1], acts->h_before + at * tower->units16, d_hh);
    if (!tower->reads_obs)
        cpu_give_to_trunk(block, t, d_ih, self->lane.d[0]);
}

static void s_learn_block(group_t *self, uint32_t at, uint32_t apart)
{
    const cpu_plan_t *plan = self->plan;
    cpu_block_t block = s_block(self, at);
    cpu_gather(&block, plan->pass->obs[TT_AT], self->number + at, 0);
    cpu_towers_forward(&block, 0, apart);
    s_copy_heads(self, at, apart, false);
    for (uint32_t i = 0; i < plan->net->spec.towers; i++) {
        const uint32_t t = self->net->back[i];
        if (apart >> t & 1)
            cpu_back(&block, t);
        else if (plan->back & self->net->recurrent & 1u << t)
            s_learn_recurrent(self, &block, t, at);
    }
}

static void s_learn(group_t *self)
{
    const uint32_t apart = s_apart(self->plan);
    if (!(apart | (self->plan->back & self->net->recurrent)))
        return;
    for (uint32_t at = 0; at < self->rows; at += TT_BLOCK) {
        s_learn_block(self, at, apart);
        cpu_tell(self->plan, &self->lane);
    }
}

/* ---- a group -------------------------------------------------------------------------------------------------------- */

static void s_group(group_t *self)
{
    const uint32_t recurrent = s_recurrent(self->plan);
    s_number(self);
    s_read(self);
    for (uint32_t t = 0; recurrent >> t; t++)
        if (recurrent >> t & 1)
            s_walk(self, t);
    s_see(self);
    for (uint32_t t = 0; recurrent >> t; t++)
        if (recurrent & self->plan->back & 1u << t)
            s_return(self, t);
    s_learn(self);
}

void cpu_sequences(const cpu_plan_t *plan, const cpu_lane_t *lane, uint32_t first, uint32_t end, float *grad)
{
    const uint32_t steps = plan->pass->length;
    for (uint32_t at = first; at < end; at += TT_SEQUENCES * steps) {
        const uint32_t left = (end - at) / steps;
        group_t group = {
            .plan = plan,
            .net = plan->net->impl,
            .lane = *lane,
            .shard = {.grad = grad},
            .first = at == first,
            .sequences = left < TT_SEQUENCES ? left : TT_SEQUENCES,
            .steps = steps,
            .row = plan->pass->row + at,
        };
        group.rows = group.sequences * steps;
        s_carve(&group, lane->sequences);
        s_group(&group);
    }
}
