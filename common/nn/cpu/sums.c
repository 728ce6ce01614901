/*  sums - the gradients of a run of shards on all lanes, and the tree's additions: those inside a block of several small shards there
 *  (slices.c), those inside a lane's part on that lane, the others when all are done. */
#include <string.h>
#include "common/nn/cpu/cpu.h"
#include "common/nn/tree.h"

typedef struct {
    uint32_t lo, hi;
} run_t;

static run_t s_part(uint32_t lo, uint32_t hi, uint32_t part, uint32_t parts)
{
    const uint64_t width = hi - lo;
    return (run_t){lo + (uint32_t)(width * part / parts), lo + (uint32_t)(width * (part + 1) / parts)};
}

static bool s_within_a_part(uint32_t lo, uint32_t hi, uint32_t parts, uint32_t from, uint32_t to)
{
    for (uint32_t p = 0; p < parts; p++) {
        const run_t part = s_part(lo, hi, p, parts);
        if (from >= part.lo && to <= part.hi)
            return true;
    }
    return false;
}

typedef struct {
    const tt_work_t *work;
    cpu_plan_t plan;
    uint32_t length, runs; /* rows that stay together, and how many such the pass has */
    bool together;         /* shards may share a block                                */
} job_t;

/*  The first row of a shard. */
static uint32_t s_first(const job_t *job, uint32_t shard)
{
    return tt_sums_first(job->work->compute.sums->shards, job->runs, shard) * job->length;
}

/*  Shards lo .. hi-1, a node of the tree, are one block. */
static bool s_are_together(const job_t *job, uint32_t lo, uint32_t hi)
{
    return job->together && s_first(job, hi) - s_first(job, lo) <= TT_BLOCK;
}

static void s_add(const job_t *job, uint32_t from, uint32_t to)
{
    const tt_sums_t *sums = job->work->compute.sums;
    const tt_kernels_t *kernels = ((const cpu_net_t *)sums->net->impl)->kernels;
    for (uint32_t i = 0; i < job->plan.spans; i++) {
        const tt_span_t *span = &job->plan.span[i];
        kernels->add(span->count, sums->leaf[from] + span->first, sums->leaf[to] + span->first);
    }
}

/*  Every addition of the tree inside [lo, hi), but for those that were made before: inside one of the `parts` near-equal parts of it or,
 *  in such a part (parts = 0), inside a block. */
static void s_sum(const job_t *job, uint32_t lo, uint32_t hi, uint32_t parts)
{
    for (uint32_t width = 1; width <= (hi - lo) / 2; width *= 2) {
        const uint32_t step = 2 * width;
        for (uint32_t at = (lo + step - 1) / step * step; at + step <= hi; at += step)
            if (!(parts ? s_within_a_part(lo, hi, parts, at, at + step) : s_are_together(job, at, at + step)))
                s_add(job, at + width, at);
    }
}

/*  The largest node of the tree that begins with shard s, ends before `hi` and is a block; or the shard. */
static uint32_t s_node_from(const job_t *job, uint32_t s, uint32_t hi)
{
    uint32_t width = 1;
    while (s % (2 * width) == 0 && s + 2 * width <= hi && s_are_together(job, s, s + 2 * width))
        width *= 2;
    return s + width;
}

static void s_block(const job_t *job, const cpu_lane_t *lane, uint32_t lo, uint32_t hi)
{
    cpu_slice_t slice[TT_BLOCK];
    const uint32_t first = s_first(job, lo);
    for (uint32_t s = lo; s < hi; s++)
        slice[s - lo] = (cpu_slice_t){
            s_first(job, s) - first, s_first(job, s + 1) - s_first(job, s), job->work->compute.sums->leaf[s]};
    cpu_shards(&job->plan, lane, first, slice, hi - lo);
}

void cpu_tell(const cpu_plan_t *plan, const cpu_lane_t *lane)
{
    cpu_pool_tell(((const cpu_device_t *)plan->net->device)->pool, lane->number);
}

/*  One lane: its part of the run, and what can be added inside it. */
static void s_lane(void *ctx, uint32_t lane, uint32_t lanes)
{
    const job_t *job = ctx;
    const tt_sums_t *sums = job->work->compute.sums;
    const cpu_net_t *self = sums->net->impl;
    const run_t run = s_part(job->work->compute.lo, job->work->compute.hi, lane, lanes);
    for (uint32_t s = run.lo, end; s < run.hi; s = end) {
        end = s_node_from(job, s, run.hi);
        if (end - s > 1)
            s_block(job, &self->lanes[lane], s, end);
        else
            cpu_shard(&job->plan, &self->lanes[lane], s_first(job, s), s_first(job, end), sums->leaf[s]);
        cpu_tell(&job->plan, &self->lanes[lane]);
    }
    s_sum(job, run.lo, run.hi, 0);
}

tt_status_t cpu_compute(const tt_work_t *work)
{
    tt_sums_t *sums = work->compute.sums;
    const uint32_t lo = work->compute.lo, hi = work->compute.hi;
    TT_TRY(tt_work_check_rows(work));
    TT_TRY(tt_work_reserve(work));
    const cpu_device_t *device = (const cpu_device_t *)sums->net->device;
    const tt_pass_t *pass = work->compute.pass;
    job_t job = {.work = work, .length = pass->length ? pass->length : 1};
    job.runs = pass->rows / job.length;
    job.together = cpu_slices_may(sums->net->impl) && pass->rows >= sums->shards; /* none without a row */
    cpu_plan(&job.plan, sums->net, pass);
    cpu_sequences_reserve(&job.plan, sums);
    cpu_pool_run(device->pool, s_lane, &job, pass->progress);
    s_sum(&job, lo, hi, device->base.lanes);
    sums->root = sums->leaf[0];
    sums->groups = job.plan.groups;
    return TT_OK;
}

void cpu_sums_fill(const tt_sums_t *sums, uint32_t groups, float *grad)
{
    tt_span_t span[TT_SPANS_MAX];
    const uint32_t spans = tt_work_missing(sums, groups, span);
    for (uint32_t i = 0; i < spans; i++)
        memset(grad + span[i].first, 0, span[i].count * sizeof(float));
}

tt_status_t cpu_node(const tt_work_t *work)
{
    const tt_sums_t *sums = work->node.sums;
    uint32_t lo, hi;
    tt_tree_span(sums->shards, work->node.node, &lo, &hi);
    cpu_sums_fill(sums, UINT32_MAX, sums->leaf[lo]);
    *work->node.out = work->node.node == 1 ? sums->root : sums->leaf[lo];
    return TT_OK;
}

tt_status_t cpu_sum(const tt_work_t *work)
{
    work->sum.sums->root = work->sum.sum;
    work->sum.sums->groups = UINT32_MAX;
    return TT_OK;
}
