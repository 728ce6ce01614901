/*  forward - rows through the towers whose heads somebody asks for, on all lanes: near-equal runs of whole blocks. A row's
 *  result does not depend on the rows beside it. */
#include "common/nn/cpu/cpu.h"

typedef struct {
    const tt_work_t *work;
    uint32_t wanted; /* towers, as bits */
} job_t;

/*  Columns to row-major. */
static void s_put_rows(const float *columns, size_t outs, size_t rows, float *out)
{
    for (size_t a = 0; a < outs; a++)
        for (size_t r = 0; r < rows; r++)
            out[r * outs + a] = columns[a * TT_BLOCK + r];
}

/*  What the block's rows carry into tower t. */
static void s_carry_in(const cpu_block_t *block, uint32_t t, const float *in)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    float *const *carried = block->lane->carried[t];
    for (size_t r = 0; r < block->rows; r++)
        cpu_carry_in(tower, in + r * block->net->carry + tower->carry_at, carried[0] + r * tower->units16,
            tower->lstm ? carried[1] + r * tower->units16 : NULL);
}

static void s_carry_out(const cpu_block_t *block, uint32_t t, float *out)
{
    const cpu_tower_t *tower = &block->net->tower[0][t];
    const cpu_lane_t *lane = block->lane;
    for (size_t r = 0; r < block->rows; r++)
        cpu_carry_out(tower, lane->last[t] + r * tower->units16,
            tower->lstm ? lane->carried[t][1] + r * tower->units16 : NULL,
            out + r * block->net->carry + tower->carry_at);
}

/*  All of them in before any is out: these may be the same rows. */
static void s_towers(const job_t *job, const cpu_block_t *block, size_t at)
{
    const tt_carry_t *carry = &job->work->forward.carry;
    const uint32_t recurrent = block->net->recurrent & job->wanted;
    for (uint32_t t = 0; recurrent >> t; t++)
        if (recurrent >> t & 1)
            s_carry_in(block, t, carry->in + at * block->net->carry);
    cpu_towers_forward(block, job->work->forward.set, job->wanted);
    for (uint32_t t = 0; carry->out && recurrent >> t; t++)
        if (recurrent >> t & 1)
            s_carry_out(block, t, carry->out + at * block->net->carry);
}

static void s_block(const job_t *job, cpu_block_t *block, size_t at)
{
    const tt_work_t *work = job->work;
    const uint32_t set = work->forward.set;
    cpu_gather(block, work->forward.obs, NULL, work->forward.first + at);
    s_towers(job, block, at);
    for (uint32_t t = 0; t < work->forward.net->spec.towers; t++) {
        const size_t outs = block->net->tower[set][t].outs;
        if (work->forward.out[t])
            s_put_rows(block->lane->out[set][t], outs, block->rows, work->forward.out[t] + at * outs);
    }
}

static void s_blocks(const job_t *job, uint32_t lane, size_t lo, size_t hi)
{
    const cpu_net_t *self = job->work->forward.net->impl;
    const size_t rows = job->work->forward.rows;
    for (size_t at = lo * TT_BLOCK; at < rows && at < hi * TT_BLOCK; at += TT_BLOCK) {
        cpu_block_t block = {
            .net = self, .lane = &self->lanes[lane], .rows = rows - at < TT_BLOCK ? rows - at : TT_BLOCK};
        s_block(job, &block, at);
    }
}

static void s_lane(void *ctx, uint32_t lane, uint32_t lanes)
{
    const job_t *job = ctx;
    const size_t blocks = (job->work->forward.rows + TT_BLOCK - 1) / TT_BLOCK;
    s_blocks(job, lane, blocks * lane / lanes, blocks * (lane + 1) / lanes);
}

tt_status_t cpu_forward(const tt_work_t *work)
{
    const tt_net_t *net = work->forward.net;
    const cpu_net_t *self = net->impl;
    job_t job = {.work = work};
    for (uint32_t t = 0; t < net->spec.towers; t++)
        if (work->forward.out[t] || (work->forward.carry.out && self->recurrent >> t & 1))
            job.wanted |= self->tower[0][t].chain;
    if (work->forward.rows <= TT_BLOCK)
        s_blocks(&job, 0, 0, 1); /* nothing to share */
    else
        cpu_pool_run(((const cpu_device_t *)net->device)->pool, s_lane, &job, TT_NO_PROGRESS);
    return TT_OK;
}
