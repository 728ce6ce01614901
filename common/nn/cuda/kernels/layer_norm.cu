/*  layer_norm - a layer norm of each row, and back. Sums of a row run in 16 lanes, i mod 16, that are added 16 -> 8 -> 4 -> 2 -> 1: 16
 *  threads have a row, half a warp. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

enum { LANES = 16, ROWS = 8, THREADS = LANES * ROWS };

/*  The same in all 16 threads. Every thread of the warp must come here. */
__device__ float s_sum(float x)
{
    for (int half = LANES / 2; half; half /= 2)
        x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, half));
    return x;
}

/*  Threads whose row does not exist do another's work, and keep it to themselves. */
struct mine_t {
    size_t row;
    uint32_t lane;
    bool there;
};

__device__ mine_t s_mine(uint32_t rows)
{
    const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / LANES;
    return {row < rows ? row : rows - 1, threadIdx.x % LANES, row < rows};
}

__global__ void s_forward(cuda_layer_norm_t job)
{
    const mine_t my = s_mine(job.rows);
    const float *x = job.x + my.row * job.count;
    const float count = (float)job.count;
    float sum = 0.0f, squares = 0.0f;
    for (uint32_t i = my.lane; i < job.count; i += LANES)
        sum = __fadd_rn(sum, x[i]);
    const float mean = __fdiv_rn(s_sum(sum), count);
    for (uint32_t i = my.lane; i < job.count; i += LANES) {
        const float off = __fsub_rn(x[i], mean);
        squares = __fmaf_rn(off, off, squares);
    }
    const float deviation = __fsqrt_rn(__fadd_rn(__fdiv_rn(s_sum(squares), count), 1e-5f));
    const float scale = __fdiv_rn(1.0f, deviation);
    for (uint32_t i = my.lane; my.there && i < job.count; i += LANES) {
        const float z = __fmul_rn(__fsub_rn(x[i], mean), scale);
        job.y[my.row * job.count + i] = activated(job.act, __fmaf_rn(z, job.gain[i], job.bias[i]));
    }
    if (my.there && my.lane == 0) {
        job.moments[my.row * CUDA_NORM_MOMENTS] = mean;
        job.moments[my.row * CUDA_NORM_MOMENTS + 1] = scale;
    }
}

/*  d_x = (g - mean g - z mean(g z)) scale, where g = d gain and z = (x - mean) scale. */
__global__ void s_back(cuda_layer_norm_back_t job)
{
    const mine_t my = s_mine(job.rows);
    const float *x = job.x + my.row * job.count, *d = job.d + my.row * job.count;
    const float mean = job.moments[my.row * CUDA_NORM_MOMENTS], scale = job.moments[my.row * CUDA_NORM_MOMENTS + 1];
    float sum = 0.0f, along = 0.0f;
    for (uint32_t i = my.lane; i < job.count; i += LANES) {
        const float g = __fmul_rn(d[i], job.gain[i]);
        sum = __fadd_rn(sum, g);
        along = __fmaf_rn(g, __fmul_rn(__fsub_rn(x[i], mean), scale), along);
    }
    if (job.count % LANES && my.lane >= job.count % LANES)
        along =
            __fadd_rn(along, 0.0f); /* lanes of the last vector that do not exist have products of 0: -0 becomes 0 */
    const float level = __fdiv_rn(s_sum(sum), (float)job.count), slope = __fdiv_rn(s_sum(along), (float)job.count);
    for (uint32_t i = my.lane; my.there && i < job.count; i += LANES) {
        const float z = __fmul_rn(__fsub_rn(x[i], mean), scale), g = __fmul_rn(d[i], job.gain[i]);
        const float back = __fmul_rn(__fmaf_rn(-z, slope, __fsub_rn(g, level)), scale);
        job.d_x[my.row * job.count + i] = activated_back(job.before, x[i], back);
    }
}

__global__ void s_grads(cuda_shards_t shards, cuda_layer_norm_grads_t job)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x, s = blockIdx.y;
    if (i >= job.count)
        return;
    float gain = 0.0f, bias = 0.0f;
    for (size_t r = shards.first[s]; r < shards.first[s + 1]; r++) {
        const float mean = job.moments[r * CUDA_NORM_MOMENTS], scale = job.moments[r * CUDA_NORM_MOMENTS + 1];
        const float back = job.d[r * job.count + i];
        const float z = __fmul_rn(__fsub_rn(job.x[r * job.count + i], mean), scale);
        gain = __fmaf_rn(back, z, gain);
        bias = __fadd_rn(bias, back);
    }
    shards.grad[s][job.gain_at + i] = gain;
    shards.grad[s][job.bias_at + i] = bias;
}

} // namespace

void cuda_layer_norm(cudaStream_t stream, const cuda_layer_norm_t *job)
{
    if (job->rows)
        CUDA_LAUNCH(s_forward, (job->rows - 1) / ROWS + 1, THREADS, 0, stream, *job);
}

void cuda_layer_norm_back(cudaStream_t stream, const cuda_layer_norm_back_t *job)
{
    if (job->rows)
        CUDA_LAUNCH(s_back, (job->rows - 1) / ROWS + 1, THREADS, 0, stream, *job);
}

void cuda_layer_norm_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_layer_norm_grads_t *job)
{
    cuda_each_shards(run, [&](uint32_t shard, uint32_t shards) {
        const dim3 grid(cuda_blocks(job->count, THREADS), shards);
        const cuda_shards_t these = cuda_shards(run, shard, shards);
        CUDA_LAUNCH(s_grads, grid, THREADS, 0, stream, these, *job);
    });
}
