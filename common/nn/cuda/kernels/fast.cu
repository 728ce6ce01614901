/*  fast - what goes with products that another library makes (fast.h): their ends, and the gradients of biases. */
#include "common/nn/cuda/kernels/ended.cuh"
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/nn/cuda/kernels/threads.cuh"

namespace
{

struct ends_t {
    cuda_gemm_t job;
    const float *sum;
};

__global__ void ends(ends_t ends)
{
    const cuda_gemm_t &job = ends.job;
    const number_t my = my_number(job.m, job.n);
    if (my.i >= job.n)
        return;
    const size_t at = (size_t)my.row * job.n + my.i;
    const bool back = job.kind == CUDA_D_TANH || job.kind == CUDA_D_RELU;
    const float sum = job.bias ? __fadd_rn(ends.sum[at], job.bias[my.i]) : ends.sum[at];
    const float out = ended(job.kind, sum, back ? job.h[at] : 0.0f);
    job.c[at] = job.add ? __fadd_rn(job.c[at], out) : out;
}

constexpr unsigned COLUMNS = 32; /* of a block; rows of memory are read as wide */
constexpr unsigned CHAINS = 8;   /* of a column                                 */
constexpr unsigned BIAS_THREADS = COLUMNS * CHAINS;

/*  Piece z of a shard's rows; room NULL: all of them. */
__global__ void bias_grads(cuda_outer_t job, cuda_shards_t shards, float *room)
{
    CUDA_STATIC_SHARED(float, chain, COLUMNS *CHAINS);
    const unsigned j = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS, mine = threadIdx.x / COLUMNS;
    const uint32_t first = shards.first[blockIdx.y], rows = shards.first[blockIdx.y + 1] - first;
    const uint32_t end = first + (uint32_t)((uint64_t)rows * (blockIdx.z + 1) / gridDim.z);
    float sum = 0;
    if (j < job.n)
        for (uint32_t row = first + (uint32_t)((uint64_t)rows * blockIdx.z / gridDim.z) + mine; row < end;
             row += CHAINS)
            sum = __fadd_rn(sum, job.d[row * job.d_row + j]);
    chain[threadIdx.x] = sum;
    __syncthreads();
    if (mine != 0 || j >= job.n)
        return;
    for (unsigned c = 1; c < CHAINS; c++)
        sum = __fadd_rn(sum, chain[c * COLUMNS + threadIdx.x]);
    (room ? room + ((size_t)blockIdx.y * gridDim.z + blockIdx.z) * job.n : shards.grad[blockIdx.y] + job.bias_at)[j] =
        sum;
}

__global__ void bias_pieces(cuda_outer_t job, cuda_shards_t shards, const float *room)
{
    const size_t j = cuda_thread();
    if (j >= job.n)
        return;
    const float *piece = room + (size_t)blockIdx.y * CUDA_BIAS_PIECES * job.n + j;
    float sum = piece[0];
    CUDA_UNROLL_BY(8) /* their loads at once */
    for (unsigned i = 1; i < CUDA_BIAS_PIECES; i++)
        sum = __fadd_rn(sum, piece[i * (size_t)job.n]);
    shards.grad[blockIdx.y][job.bias_at + j] = sum;
}

} // namespace

void cuda_ends(cudaStream_t stream, const cuda_gemm_t *job, const float *sum)
{
    const ends_t all = {*job, sum};
    if (job->kind != CUDA_D_NONE || sum != job->c)
        CUDA_LAUNCH_NUMBERS(ends, stream, job->m, job->n, all);
}

void cuda_bias_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job, float *room)
{
    cuda_each_shards(run, [&](uint32_t at, uint32_t count) {
        const cuda_shards_t shards = cuda_shards(run, at, count);
        CUDA_LAUNCH(bias_grads, dim3(cuda_blocks(job->n, COLUMNS), count, room ? CUDA_BIAS_PIECES : 1), BIAS_THREADS, 0,
            stream, *job, shards, room);
        if (room)
            CUDA_LAUNCH(bias_pieces, dim3(cuda_blocks(job->n, CUDA_THREADS), count), CUDA_THREADS, 0, stream, *job,
                shards, room);
    });
}
