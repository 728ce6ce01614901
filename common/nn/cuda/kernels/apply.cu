/*  apply - the norm of a gradient, one step of an optimiser, and sets that follow. */
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/nn/math/opt.h"

namespace
{

/* ---- norm ----------------------------------------------------------------------------------------------------------- */

constexpr unsigned LANES = 64;         /* chains of the sum of squares                              */
constexpr unsigned NORM_THREADS = 512; /* of which two warps add and all load                       */
constexpr unsigned AHEAD = 16;         /* floats that a thread has under way                        */
constexpr unsigned TILE = NORM_THREADS * AHEAD;
static_assert(TILE % LANES == 0, "a tile begins with lane 0");

__device__ void load_tile(size_t left, const float *g, float (&held)[AHEAD])
{
    CUDA_UNROLL
    for (unsigned i = 0; i < AHEAD; i++) {
        const unsigned e = threadIdx.x + i * NORM_THREADS;
        held[i] = e < left ? g[e] : 0.0f;
    }
}

/*  Lane by lane through a tile of `there` numbers. */
__device__ float square_tile(size_t there, const float *tile, float sum)
{
    if (there >= TILE) { /* written out, so that its loads are ahead of its multiply-adds */
        CUDA_UNROLL
        for (unsigned e = 0; e < TILE; e += LANES)
            sum = __fmaf_rn(tile[threadIdx.x + e], tile[threadIdx.x + e], sum);
        return sum;
    }
    for (unsigned e = threadIdx.x; e < there; e += LANES)
        sum = __fmaf_rn(tile[e], tile[e], sum);
    return sum;
}

/*  64 -> 16 as (0 + 1) + (2 + 3), then 16 -> 8 -> 4 -> 2 -> 1, by one thread: 64 numbers. */
__device__ float sum_of_lanes(float *lane)
{
    for (unsigned i = 0; i < 16; i++)
        lane[i] = __fadd_rn(__fadd_rn(lane[i], lane[i + 16]), __fadd_rn(lane[i + 32], lane[i + 48]));
    for (unsigned half = 8; half; half /= 2)
        for (unsigned i = 0; i < half; i++)
            lane[i] = __fadd_rn(lane[i], lane[i + half]);
    return lane[0];
}

__device__ bool finite(float x)
{
    return __fsub_rn(x, x) == 0.0f;
}

__device__ void put_norm(const cuda_norm_t &out, float norm)
{
    *out.newest = norm;
    if (!finite(norm) && !*out.bad_step) {
        *out.bad = norm;
        *out.bad_step = out.step->number;
    }
}

/*  A block a part, for each lane is one chain: what it waits for is multiply-adds if loads are far enough ahead. All threads
 *  have the next tile on its way to their registers while two warps go through the one in shared memory. */
__device__ float part_squares(size_t count, const float *g)
{
    CUDA_STATIC_SHARED(float, tile, TILE);
    CUDA_STATIC_SHARED(float, lane, LANES);
    float held[AHEAD], sum = 0.0f;
    load_tile(count, g, held);
    for (size_t at = 0; at < count; at += TILE) {
        const size_t left = count - at;
        CUDA_UNROLL
        for (unsigned i = 0; i < AHEAD; i++)
            tile[threadIdx.x + i * NORM_THREADS] = held[i];
        __syncthreads(); /* the tile is whole */
        if (left > TILE)
            load_tile(left - TILE, g + at + TILE, held);
        if (threadIdx.x < LANES)
            sum = square_tile(left, tile, sum);
        __syncthreads(); /* nobody reads it any more */
    }
    if (threadIdx.x < LANES)
        lane[threadIdx.x] = sum;
    __syncthreads(); /* all lanes are there */
    return threadIdx.x == 0 ? sum_of_lanes(lane) : 0.0f;
}

__global__ void norm(size_t count, const float *g, cuda_norm_t out)
{
    const float sum = part_squares(count, g);
    if (threadIdx.x == 0)
        put_norm(out, tt_sqrtf(sum));
}

__global__ void squares(size_t count, const float *g, float *parts)
{
    const size_t at = (size_t)blockIdx.x * TT_NORM_PART, left = count - at;
    const float sum = part_squares(left < TT_NORM_PART ? left : (size_t)TT_NORM_PART, g + at);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/*  One thread's. */
__global__ void norm_of_parts(unsigned parts, cuda_norm_t out)
{
    float sum = out.parts[0];
    CUDA_UNROLL_BY(32) /* their loads at once */
    for (unsigned i = 1; i < parts; i++)
        sum = __fadd_rn(sum, out.parts[i]);
    put_norm(out, tt_sqrtf(sum));
}

/* ---- optimisers ----------------------------------------------------------------------------------------------------- */

__device__ float stepped(const cuda_opt_t &o, size_t i, float g)
{
    const float lr = o.step->lr;
    const tt_adam_t adam = {lr, o.beta1, o.beta2, o.step->root_scale, o.eps};
    const tt_rmsprop_t rmsprop = {lr, o.alpha, o.momentum, o.eps};
    switch (o.kind) {
    case CUDA_ADAM:
        return tt_adam(&adam, o.p[i], g, &o.s0[i], &o.s1[i]);
    case CUDA_RMSPROP:
        return tt_rmsprop(&rmsprop, o.p[i], g, &o.s0[i], o.s1 ? &o.s1[i] : nullptr);
    case CUDA_SGD:
        break;
    }
    return tt_sgd(lr, o.momentum, o.p[i], g, o.s0 ? &o.s0[i] : nullptr);
}

__global__ void opt(cuda_opt_t job)
{
    const size_t i = cuda_thread();
    const float norm = *job.norm;
    if (i < job.count && finite(norm))
        job.p[i] = stepped(job, i, __fmul_rn(job.g[i], tt_clip_factor(job.max_norm, norm)));
}

__global__ void blend(size_t count, float tau, const float *from, float *to)
{
    const size_t i = cuda_thread();
    if (i < count)
        to[i] = __fmaf_rn(tau, __fsub_rn(from[i], to[i]), to[i]);
}

} // namespace

void cuda_norm(cudaStream_t stream, size_t count, const float *g, const cuda_norm_t *out)
{
    const unsigned parts = cuda_blocks(count, TT_NORM_PART);
    if (parts <= 1) {
        CUDA_LAUNCH(norm, 1, NORM_THREADS, 0, stream, count, g, *out);
        return;
    }
    CUDA_LAUNCH(squares, parts, NORM_THREADS, 0, stream, count, g, out->parts);
    CUDA_LAUNCH(norm_of_parts, 1, 1, 0, stream, parts, *out);
}

void cuda_opt(cudaStream_t stream, const cuda_opt_t *job)
{
    if (job->count)
        CUDA_LAUNCH(opt, cuda_blocks(job->count, CUDA_THREADS), CUDA_THREADS, 0, stream, *job);
}

void cuda_blend(cudaStream_t stream, size_t count, float tau, const float *from, float *to)
{
    if (count)
        CUDA_LAUNCH(blend, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, count, tau, from, to);
}
