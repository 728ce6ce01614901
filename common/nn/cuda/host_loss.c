/*  host_loss - a loss or a draw that is not there as a kernel, called on the host between two copies: any objective trains on a card, if not
 *  as fast as one whose loss is computed there. The same function on the same blocks as the CPU's, and so the same bits. */
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/cuda.h"

/*  Pinned copies of what the loss reads and writes. */
typedef struct {
    cuda_device_t *device;
    const tt_net_t *net;
    const tt_pass_t *pass;
    const cuda_loss_t *job;
    const uint32_t *row;
    const cuda_blocks_t *blocks;
    size_t sums; /* floats behind the parameters: statistics, and what rides */
    float *head[TT_STAGES_MAX], *d_head[TT_STAGES_MAX], *log_std[TT_STAGES_MAX];
    const void *input[TT_INPUTS_MAX];
} host_t;

static size_t s_column(const host_t *self, uint32_t s)
{
    return (size_t)TT_BLOCK * self->job->outs[s];
}

static tt_status_t s_stage(cuda_device_t *device, size_t floats, float **out)
{
    void *memory = NULL;
    TT_TRY(cuda_stage(device, tt_mul(floats, sizeof(float)), &memory));
    *out = memory;
    return TT_OK;
}

static tt_status_t s_fetch(cuda_device_t *device, size_t floats, const float *from, float **out)
{
    TT_TRY(s_stage(device, floats, out));
    return cuda_said(device, cudaMemcpyAsync(*out, from, floats * sizeof(float), cudaMemcpyDeviceToHost, device->work),
        "a copy from the card");
}

static tt_status_t s_send(cuda_device_t *device, size_t floats, const float *stage, float *to)
{
    return cuda_said(device, cudaMemcpyAsync(to, stage, floats * sizeof(float), cudaMemcpyHostToDevice, device->work),
        "a copy to the card");
}

static tt_status_t s_fetch_all(host_t *self)
{
    const cuda_loss_t *job = self->job;
    for (uint32_t s = 0; s < job->stages; s++) {
        const size_t floats = tt_mul(job->blocks.blocks, s_column(self, s));
        TT_TRY(s_fetch(self->device, floats, job->head[s], &self->head[s]));
        if (job->d_head[s])
            TT_TRY(s_stage(self->device, floats, &self->d_head[s]));
        if (job->log_std[s])
            TT_TRY(s_fetch(self->device, job->log_stds[s], job->log_std[s], &self->log_std[s]));
    }
    return cuda_said(self->device, cudaStreamSynchronize(self->device->work), "a forward");
}

/*  Gradients of a shard that the loss itself adds up. */
typedef struct {
    float *sums;
    float *d_log_std[TT_STAGES_MAX];
} shard_t;

static tt_status_t s_new_shard(const host_t *self, shard_t *out)
{
    const cuda_loss_t *job = self->job;
    TT_TRY(s_stage(self->device, self->sums, &out->sums));
    memset(out->sums, 0, self->sums * sizeof *out->sums);
    for (uint32_t s = 0; s < job->stages; s++) {
        out->d_log_std[s] = NULL;
        if (!job->d_head[s] || !job->log_stds[s])
            continue;
        TT_TRY(s_stage(self->device, job->log_stds[s], &out->d_log_std[s]));
        memset(out->d_log_std[s], 0, job->log_stds[s] * sizeof(float));
    }
    return TT_OK;
}

static void s_call(const host_t *self, uint32_t block, const shard_t *shard)
{
    tt_loss_block_t out = {.rows = self->blocks->rows[block],
        .row = self->row + self->blocks->first[block],
        .stats = shard->sums,
        .ride = self->job->ride_at ? shard->sums + TT_LOSS_STATS : NULL};
    for (uint32_t s = 0; s < self->job->stages; s++) {
        const size_t at = block * s_column(self, s);
        out.head[s] = self->head[s] + at;
        out.d_head[s] = self->d_head[s] ? self->d_head[s] + at : NULL;
        out.log_std[s] = self->log_std[s];
        out.d_log_std[s] = shard->d_log_std[s];
    }
    self->pass->objective->loss(self->pass->params, self->input, &out);
}

static tt_status_t s_send_shard(const host_t *self, uint32_t s, const shard_t *shard)
{
    const cuda_loss_t *job = self->job;
    float *grad = job->run.grad[s];
    TT_TRY(s_send(self->device, self->sums, shard->sums, grad + self->net->param_count));
    for (uint32_t i = 0; i < job->stages; i++)
        if (shard->d_log_std[i])
            TT_TRY(s_send(self->device, job->log_stds[i], shard->d_log_std[i],
                grad + self->net->log_std_at[self->pass->objective->stage[i].tower]));
    return TT_OK;
}

static tt_status_t s_shard(const host_t *self, uint32_t s)
{
    const uint32_t *of = self->blocks->shard_block + (s - self->job->run.lo);
    shard_t shard;
    if (of[0] == of[1])
        return TT_OK;
    TT_TRY(s_new_shard(self, &shard));
    for (uint32_t block = of[0]; block < of[1]; block++)
        s_call(self, block, &shard);
    return s_send_shard(self, s, &shard);
}

tt_status_t cuda_host_loss(cuda_device_t *device, const tt_net_t *net, const tt_pass_t *pass, const cuda_loss_t *job,
    const uint32_t *row, const cuda_blocks_t *blocks)
{
    host_t self = {.device = device,
        .net = net,
        .pass = pass,
        .job = job,
        .row = row,
        .blocks = blocks,
        .sums = TT_LOSS_STATS + net->spec.ride};
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        self.input[i] = pass->input[i] ? pass->input[i]->rows : NULL;
    TT_TRY(s_fetch_all(&self));
    for (uint32_t s = job->run.lo; s < job->run.hi; s++)
        TT_TRY(s_shard(&self, s));
    for (uint32_t s = 0; s < job->stages; s++)
        if (job->d_head[s])
            TT_TRY(s_send(device, tt_mul(job->blocks.blocks, s_column(&self, s)), self.d_head[s], job->d_head[s]));
    return TT_OK;
}

/* ---- a draw on the host --------------------------------------------------------------------------------------------- */

/*  The source's stage of a block, from pinned copies. */
static tt_loss_block_t s_source_block(const host_t *self, uint32_t block)
{
    const uint32_t s = self->job->source;
    const size_t at = block * s_column(self, s);
    tt_loss_block_t out = {.rows = self->blocks->rows[block], .row = self->row + self->blocks->first[block]};
    out.head[s] = self->head[s] + at;
    out.d_head[s] = self->d_head[s] ? self->d_head[s] + at : NULL;
    return out;
}

static host_t s_host_draw(cuda_device_t *device, const tt_pass_t *pass, const cuda_loss_t *job, const uint32_t *row,
    const cuda_blocks_t *blocks)
{
    host_t self = {.device = device, .pass = pass, .job = job, .row = row, .blocks = blocks};
    for (uint32_t i = 0; i < TT_INPUTS_MAX; i++)
        self.input[i] = pass->input[i] ? pass->input[i]->rows : NULL;
    return self;
}

tt_status_t cuda_host_draw(cuda_device_t *device, const tt_pass_t *pass, const cuda_loss_t *job, const uint32_t *row,
    const cuda_blocks_t *blocks)
{
    host_t self = s_host_draw(device, pass, job, row, blocks);
    const uint32_t s = job->source;
    const size_t column = (size_t)TT_BLOCK * job->numbers, floats = tt_mul(job->blocks.blocks, column);
    float *action = NULL;
    TT_TRY(s_fetch(device, tt_mul(job->blocks.blocks, s_column(&self, s)), job->head[s], &self.head[s]));
    TT_TRY(s_stage(device, floats, &action));
    memset(action, 0, floats * sizeof *action);
    TT_TRY(cuda_said(device, cudaStreamSynchronize(device->work), "a forward"));
    for (uint32_t b = 0; b < job->blocks.blocks; b++) {
        const tt_loss_block_t block = s_source_block(&self, b);
        pass->objective->draw(pass->params, self.input, &block, action + b * column);
    }
    return s_send(device, floats, action, job->action);
}

tt_status_t cuda_host_draw_back(cuda_device_t *device, const tt_pass_t *pass, const cuda_loss_t *job,
    const uint32_t *row, const cuda_blocks_t *blocks)
{
    host_t self = s_host_draw(device, pass, job, row, blocks);
    const uint32_t s = job->source;
    const size_t column = (size_t)TT_BLOCK * job->numbers, floats = tt_mul(job->blocks.blocks, s_column(&self, s));
    float *d_action = NULL;
    TT_TRY(s_fetch(device, floats, job->head[s], &self.head[s]));
    TT_TRY(s_fetch(device, floats, job->d_head[s], &self.d_head[s]));
    TT_TRY(s_fetch(device, tt_mul(job->blocks.blocks, column), job->d_action, &d_action));
    TT_TRY(cuda_said(device, cudaStreamSynchronize(device->work), "the way back to a draw"));
    for (uint32_t b = 0; b < job->blocks.blocks; b++) {
        const tt_loss_block_t block = s_source_block(&self, b);
        pass->objective->d_draw(pass->params, self.input, &block, d_action + b * column);
    }
    return s_send(device, floats, self.d_head[s], job->d_head[s]);
}
