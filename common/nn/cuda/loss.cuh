/*  loss - losses as kernels: what learner/algorithms/block.h is in CUDA, and the kernels around a loss: of all blocks of a run, and of a
 *  small network with its forward and the way back.
 *
 *  A block of TT_BLOCK rows is a warp, row r its lane r. Everything that does not hang on a row is the same in all lanes, so
 *  that they take every branch together and all of them are there for a shuffle. A lane reads and writes its own entries of
 *  columns alone; sums are written by lane 0: nothing has to be waited for.
 *  Threads: as kernels.h. */
#pragma once
#include "common/base/vmath.h"
#include "common/nn/cuda/kernels/mlp.cuh"
#include "common/nn/loss.h"

static_assert((int)TT_BLOCK == (int)CUDA_BLOCK && TT_BLOCK == 32, "a block of rows is a warp");

#define restrict __restrict__
#define BLOCK_FN     static __device__ __forceinline__
#define BLOCK_CLONES __device__ __forceinline__

/*  Rows: once or not at all, as the compiler sees, for what might come again it unrolls. Columns: some of them are on their way at once. */
#define EACH_ROW(r) for (unsigned r = block_lane(), r##_goes = 1; r##_goes; r##_goes = 0)
#define EACH_GIVEN_ROW(r, the_block) \
    for (unsigned r = block_lane(), r##_goes = r < (the_block)->rows; r##_goes; r##_goes = 0)
#define EACH_COLUMN(a, first, columns) CUDA_UNROLL_BY(4) for (unsigned a = (first); a < (columns); a++)
#define EACH_IN_TURN(a, numbers)       CUDA_UNROLL_BY(4) for (uint32_t a = 0; a < (numbers); a++)
/*  Of an action: each of them is another warp's. */
#define EACH_NUMBER(a, numbers) for (uint32_t a = blockIdx.y; a < (numbers); a += gridDim.y)

BLOCK_FN unsigned block_lane()
{
    return threadIdx.x % TT_BLOCK;
}

/*  This lane's number of a column; the index is always the lane. */
template <typename number_t> struct block_col_t {
    number_t number;
    __device__ number_t &operator[](size_t)
    {
        return number;
    }
    __device__ const number_t &operator[](size_t) const
    {
        return number;
    }
};
typedef block_col_t<float> col_t;
typedef const col_t &col_in;
typedef col_t &col_out;
typedef block_col_t<int32_t> choices_t;
typedef choices_t &choices_out;

/*  Every lane gets it. Half of a step's lanes add the other way round, which changes no bit. */
BLOCK_FN float block_sum(col_in col)
{
    float sum = col.number;
    for (int apart = TT_BLOCK / 2; apart; apart /= 2)
        sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, apart));
    return sum;
}

BLOCK_FN void block_add(float *to, float sum)
{
    if (block_lane() == 0)
        *to = __fadd_rn(*to, sum);
}

BLOCK_FN void block_zero(col_out col)
{
    col.number = 0;
}

BLOCK_FN void block_no_choices(choices_out col)
{
    col.number = 0;
}

BLOCK_FN void block_load(const float *from, col_out to)
{
    to.number = from[block_lane()];
}

/*  Some columns at once: they are on their way together. */
BLOCK_FN void block_copy(unsigned columns, const float *from, float *to)
{
    constexpr unsigned AT_ONCE = 8;
    for (unsigned a = 0; a < columns; a += AT_ONCE) {
        float some[AT_ONCE];
        CUDA_UNROLL
        for (unsigned c = 0; c < AT_ONCE; c++)
            some[c] = a + c < columns ? from[(a + c) * TT_BLOCK + block_lane()] : 0;
        CUDA_UNROLL
        for (unsigned c = 0; c < AT_ONCE; c++)
            if (a + c < columns)
                to[(a + c) * TT_BLOCK + block_lane()] = some[c];
    }
}

/*  Something that lies in memory, in registers for as long as it is worked on. */
#define BLOCK_OWN(type, name, from) \
    type name##_own = *(from);      \
    type *const name = &name##_own
#define BLOCK_MAKE(type, name, to) \
    type name##_own = {};          \
    type *const name = &name##_own
#define BLOCK_MADE(name, to) (*(to) = name##_own)

/* ---- the kernel around a loss --------------------------------------------------------------------------------------- */

#ifdef __CUDACC__
#define CUDA_LOSS_ARGUMENT const __grid_constant__ /* read where it lies, by addresses too: no copy a thread */
#else
#define CUDA_LOSS_ARGUMENT const
#endif

constexpr unsigned CUDA_LOSS_WARPS = 4;

/*  Blocks first .. end-1 of a run, those of the shards from `shard` on. */
struct cuda_loss_launch_t {
    cuda_loss_t job;
    cuda_shards_t shards;
    uint32_t shard, first, end;
};

/*  Each stage by its number as the compiler knows it: so `out` is registers, and nothing is made of stages that a loss does not see. */
BLOCK_FN void cuda_loss_stage(const cuda_loss_t *job, size_t b, uint32_t s, tt_loss_block_t *out)
{
    const size_t at = b * job->outs[s] * TT_BLOCK;
    out->head[s] = job->head[s] + at;
    out->d_head[s] = job->d_head[s] ? job->d_head[s] + at : NULL;
    out->log_std[s] = job->log_std[s];
    out->d_log_std[s] = job->d_log_std[s] ? job->d_log_std[s] + b * job->log_stds[s] : NULL;
}

BLOCK_FN void cuda_loss_clear(const cuda_loss_t *job, size_t b)
{
    if (block_lane() != 0)
        return;
    for (uint32_t s = 0; s < job->stages; s++)
        for (uint32_t i = 0; job->d_log_std[s] && i < job->log_stds[s]; i++)
            job->d_log_std[s][b * job->log_stds[s] + i] = 0;
}

/*  The sums of lane 0. */
BLOCK_FN void cuda_loss_stats(const float (&from)[TT_LOSS_STATS], float *to)
{
    if (block_lane() != 0)
        return;
    CUDA_UNROLL
    for (uint32_t i = 0; i < TT_LOSS_STATS; i++)
        to[i] = from[i];
}

typedef void cuda_loss_body_t(const void *params, const void *const *input, const tt_loss_block_t *block);

/*  One block a multiprocessor will do: with fewer registers for each thread, some would be spilled. */
template <cuda_loss_body_t loss>
__global__ void __launch_bounds__(CUDA_LOSS_WARPS *TT_BLOCK, 1)
    cuda_loss_kernel(CUDA_LOSS_ARGUMENT cuda_loss_launch_t given)
{
    const cuda_loss_t *job = &given.job;
    const size_t b = given.first + (size_t)blockIdx.x * CUDA_LOSS_WARPS + threadIdx.x / TT_BLOCK;
    if (b >= given.end)
        return;
    float stats[TT_LOSS_STATS] = {};
    tt_loss_block_t block = {};
    block.rows = job->blocks.rows[b];
    block.row = job->row + job->blocks.first[b];
    CUDA_UNROLL
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++)
        cuda_loss_stage(job, b, s, &block);
    block.stats = stats;
    if (job->ride_at)
        block.ride = given.shards.grad[job->blocks.shard[b] - given.shard] + job->ride_at;
    cuda_loss_clear(job, b);
    loss(job->params, job->input, &block);
    cuda_loss_stats(stats, job->stats + b * TT_LOSS_STATS);
}

static inline uint32_t cuda_loss_blocks(const cuda_shards_t *shards, uint32_t count)
{
    uint32_t blocks = 0;
    for (uint32_t s = 0; s < count; s++)
        blocks += cuda_blocks(shards->first[s + 1] - shards->first[s], TT_BLOCK);
    return blocks;
}

template <cuda_loss_body_t loss> static void cuda_loss_run(cudaStream_t stream, const cuda_loss_t *job)
{
    cuda_loss_launch_t launch = {};
    launch.job = *job;
    cuda_each_shards(&job->run, [&](uint32_t first, uint32_t some) {
        launch.shards = cuda_shards(&job->run, first, some);
        launch.shard = first;
        launch.first = launch.end;
        launch.end += cuda_loss_blocks(&launch.shards, some);
        if (launch.end > launch.first)
            CUDA_LAUNCH(cuda_loss_kernel<loss>, cuda_blocks(launch.end - launch.first, CUDA_LOSS_WARPS),
                CUDA_LOSS_WARPS * TT_BLOCK, 0, stream, launch);
    });
}

/* ---- a draw, and back ------------------------------------------------------------------------------------------------ */

/*  Blocks are numbered over the run, whatever shard they are of. */
BLOCK_FN tt_loss_block_t cuda_draw_block(const cuda_loss_t *job, size_t b)
{
    tt_loss_block_t block = {};
    block.rows = job->blocks.rows[b];
    block.row = job->row + job->blocks.first[b];
    CUDA_UNROLL
    for (uint32_t s = 0; s < TT_STAGES_MAX; s++)
        if (s == job->source)
            cuda_loss_stage(job, b, s, &block);
    return block;
}

typedef void cuda_draw_body_t(
    const void *params, const void *const *input, const tt_loss_block_t *block, float *action);
typedef void cuda_draw_back_body_t(
    const void *params, const void *const *input, const tt_loss_block_t *block, const float *d_action);

template <cuda_draw_body_t draw>
__global__ void __launch_bounds__(CUDA_LOSS_WARPS *TT_BLOCK, 1) cuda_draw_kernel(CUDA_LOSS_ARGUMENT cuda_loss_t job)
{
    const size_t b = (size_t)blockIdx.x * CUDA_LOSS_WARPS + threadIdx.x / TT_BLOCK;
    if (b >= job.blocks.blocks)
        return;
    const tt_loss_block_t block = cuda_draw_block(&job, b);
    draw(job.params, job.input, &block, job.action + b * job.numbers * TT_BLOCK);
}

template <cuda_draw_back_body_t back>
__global__ void __launch_bounds__(CUDA_LOSS_WARPS *TT_BLOCK, 1)
    cuda_draw_back_kernel(CUDA_LOSS_ARGUMENT cuda_loss_t job)
{
    const size_t b = (size_t)blockIdx.x * CUDA_LOSS_WARPS + threadIdx.x / TT_BLOCK;
    if (b >= job.blocks.blocks)
        return;
    const tt_loss_block_t block = cuda_draw_block(&job, b);
    back(job.params, job.input, &block, job.d_action + b * job.numbers * TT_BLOCK);
}

static inline dim3 cuda_draw_grid(const cuda_loss_t *job)
{
    return dim3(cuda_blocks(job->blocks.blocks, CUDA_LOSS_WARPS), job->numbers);
}

template <cuda_draw_body_t draw> static void cuda_draw_run(cudaStream_t stream, const cuda_loss_t *job)
{
    if (job->blocks.blocks)
        CUDA_LAUNCH(cuda_draw_kernel<draw>, cuda_draw_grid(job), CUDA_LOSS_WARPS * TT_BLOCK, 0, stream, *job);
}

template <cuda_draw_back_body_t back> static void cuda_draw_back_run(cudaStream_t stream, const cuda_loss_t *job)
{
    if (job->blocks.blocks)
        CUDA_LAUNCH(cuda_draw_back_kernel<back>, cuda_draw_grid(job), CUDA_LOSS_WARPS * TT_BLOCK, 0, stream, *job);
}

/*  Beside a draw, as BLOCK_CUDA_LOSS. */
#define BLOCK_CUDA_DRAW(objective, draw, back)                                                 \
    extern "C" void tt_cuda_draw_##objective(cudaStream_t stream, const cuda_loss_t *job)      \
    {                                                                                          \
        cuda_draw_run<draw>(stream, job);                                                      \
    }                                                                                          \
    extern "C" void tt_cuda_draw_back_##objective(cudaStream_t stream, const cuda_loss_t *job) \
    {                                                                                          \
        cuda_draw_back_run<back>(stream, job);                                                 \
    }

/* ---- with a small network around it -------------------------------------------------------------------------------- */

/*  Some shards of a run, one a block. */
struct cuda_fused_launch_t {
    cuda_fused_t job;
    cuda_shards_t shards;
};
static_assert(sizeof(cuda_fused_launch_t) <= 4096, "an argument of a kernel");

/*  What a loss adds up goes on in the gradient from block to block. */
BLOCK_FN tt_loss_block_t cuda_fused_loss(const mlp_block_t *block)
{
    const cuda_fused_t *job = block->job;
    tt_loss_block_t out = {};
    out.rows = block->rows;
    out.row = block->row;
    out.ride = job->loss.ride_at ? block->grad + job->loss.ride_at : NULL;
    CUDA_UNROLL
    for (uint32_t s = 0; s < CUDA_MLP_STAGES; s++) {
        const cuda_mlp_t *mlp = &job->mlp[job->place[s]];
        out.head[s] = block->shared + mlp->head_at;
        out.d_head[s] = mlp->grad ? block->shared + mlp->d_head_at : NULL;
        out.log_std[s] = job->loss.log_std[s];
        out.d_log_std[s] = mlp->grad && job->loss.log_stds[s] ? block->grad + mlp->log_std_at : NULL;
    }
    return out;
}

/*  The statistics stay in registers as well, but from block to block, where they are lane 0's. */
template <cuda_loss_body_t loss> BLOCK_FN void cuda_fused_step(const mlp_block_t *block)
{
    const cuda_fused_t *job = block->job;
    float stats[TT_LOSS_STATS] = {}, *const to = block->grad + job->stats_at;
    tt_loss_block_t seen = cuda_fused_loss(block);
    seen.stats = stats;
    CUDA_UNROLL
    for (uint32_t i = 0; i < TT_LOSS_STATS; i++)
        stats[i] = block->first || block_lane() != 0 ? 0 : to[i];
    loss(job->loss.params, job->loss.input, &seen);
    cuda_loss_stats(stats, to);
}

/*  One block a multiprocessor, as above: there are fewer shards than these. */
template <cuda_loss_body_t loss>
__global__ void __launch_bounds__(MLP_THREADS, 1) cuda_fused_kernel(CUDA_LOSS_ARGUMENT cuda_fused_launch_t given)
{
    CUDA_SHARED(float, shared);
    const cuda_fused_t *job = &given.job;
    const uint32_t end = given.shards.first[blockIdx.x + 1];
    mlp_block_t block = {job, shared, given.shards.grad[blockIdx.x], NULL, 0, true, {}};
    mlp_touch(&block);
    mlp_zero(mlp_team(1), block.grad, job->count); /* the first barrier is before whoever adds to it */
    for (uint32_t at = given.shards.first[blockIdx.x]; at < end; at += MLP_ROWS) {
        block.row = job->loss.row + at;
        block.rows = end - at < MLP_ROWS ? end - at : MLP_ROWS;
        mlp_forward(block);
        if (threadIdx.x < MLP_ROWS)
            cuda_fused_step<loss>(&block);
        __syncthreads(); /* derivatives of heads are there */
        mlp_backward(block);
        block.first = false;
    }
}

template <cuda_loss_body_t loss> static void cuda_fused_run(cudaStream_t stream, const cuda_fused_t *job)
{
    const auto kernel = cuda_fused_kernel<loss>;
    const size_t shared = job->floats * sizeof(float);
    cuda_fused_launch_t launch = {};
    launch.job = *job;
    (void)cudaFuncSetAttribute(
        reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, CUDA_MLP_SHARED);
    cuda_each_shards(&job->loss.run, [&](uint32_t first, uint32_t some) {
        launch.shards = cuda_shards(&job->loss.run, first, some);
        CUDA_LAUNCH(kernel, some, MLP_THREADS, shared, stream, launch);
    });
}

/*  Beside a loss: what the backend looks for by the name of its objective. One that draws is never fused. */
#define BLOCK_CUDA_LOSS(objective, loss)                                                  \
    extern "C" void tt_cuda_loss_##objective(cudaStream_t stream, const cuda_loss_t *job) \
    {                                                                                     \
        cuda_loss_run<loss>(stream, job);                                                 \
    }
#define BLOCK_CUDA(objective, loss)                                                         \
    BLOCK_CUDA_LOSS(objective, loss)                                                        \
    extern "C" void tt_cuda_fused_##objective(cudaStream_t stream, const cuda_fused_t *job) \
    {                                                                                       \
        cuda_fused_run<loss>(stream, job);                                                  \
    }
