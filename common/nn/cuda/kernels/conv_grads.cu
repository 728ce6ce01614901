/*  conv_grads - the gradients of a convolution's weights and bias, by shard.
 *
 *  First what each row gives, all rows and weights at the same time: a product over places in which m is (kh, kw, c), n an output
 *  channel and k a position; whoever has the first m adds up what the bias gets. Then a thread for each weight adds up its rows in
 *  their order. What lies between is as large as the weights for each row: so many rows go at once that it stays in a large cache
 *  (encoder.c). */
#include "common/nn/cuda/kernels/places.cuh"
#include "common/nn/cuda/kernels_encoder.h"

namespace
{

enum { THREADS = 128 };

/*  Of one row. */
struct grads_t {
    static constexpr bool A_ALONG_K = false, B_ALONG_K = false, COLUMNS = true;
    cuda_window_t s;
    uint64_t m;
    uint32_t n, k, h, w;
    const float *a, *b;
    int64_t b_n;
    bool padded, a_fours, b_fours, out_fours;
    float *out, *bias;

    __device__ row_t row(uint64_t i) const
    {
        const uint32_t at = (uint32_t)i, place = at / s.in_c, kh = place / s.kernel_w, kw = place % s.kernel_w;
        return {{a + ((int64_t)kh * w + kw) * s.in_c + at % s.in_c, (int32_t)kh, (int32_t)kw}, i * n};
    }
    __device__ step_t step(uint32_t p) const
    {
        const int32_t y = (int32_t)(p / s.out_w * s.stride_h) - (int32_t)s.pad_h;
        const int32_t x = (int32_t)(p % s.out_w * s.stride_w) - (int32_t)s.pad_w;
        return {(y * (int32_t)w + x) * (int32_t)s.in_c, y, x, (int32_t)(p * n)};
    }
    __device__ void end(uint64_t to, uint32_t o, float sum) const
    {
        out[to + o] = sum;
    }
    __device__ void end(uint64_t to, uint32_t o, const four_t &sum) const
    {
        *(four_t *)(out + to + o) = sum;
    }
    __device__ void end_column(uint32_t o, float sum) const
    {
        bias[o] = sum;
    }
};

/*  Rows first .. first + count - 1 of the run. */
struct some_t {
    cuda_conv_grads_t job;
    uint32_t first, count;
};

__host__ __device__ size_t s_weights(const cuda_window_t &s)
{
    return (size_t)s.kernel_h * s.kernel_w * s.in_c * s.out_c;
}

__host__ __device__ uint32_t s_tiles(const cuda_window_t &s, uint32_t tile)
{
    return (s.kernel_h * s.kernel_w * s.in_c + tile - 1) / tile;
}

/*  Biases lie behind the weights of all rows. */
__host__ __device__ float *s_biases(const some_t &some)
{
    return some.job.partial + some.count * s_weights(some.job.window);
}

__device__ grads_t s_grads(const some_t &some, uint32_t r)
{
    const cuda_window_t &s = some.job.window;
    const size_t in = (size_t)s.in_h * s.in_w * s.in_c, out = (size_t)s.out_h * s.out_w * s.out_c;
    const size_t row = (size_t)some.first + r;
    const float *a = some.job.in + row * in, *b = some.job.d + row * out;
    float *to = some.job.partial + r * s_weights(s);
    return {s, (uint64_t)s.kernel_h * s.kernel_w * s.in_c, s.out_c, s.out_h * s.out_w, s.in_h, s.in_w, a, b, 1,
        s.pad_h || s.pad_w, s_fours(s.in_c, a), s_fours(s.out_c, b), s_fours(s.out_c, to), to,
        s_biases(some) + (size_t)r * s.out_c};
}

template <int BM, int BN, int TM, int TN, int DEEP> __global__ void s_weight_tiles(some_t some)
{
    const grads_t job = s_grads(some, blockIdx.x / s_tiles(some.job.window, BM));
    const uint32_t tile = blockIdx.x % s_tiles(some.job.window, BM);
    product_tile<grads_t, BM, BN, TM, TN, DEEP>(job, (uint64_t)tile * BM, blockIdx.y * BN);
}

template <int BM, int BN, int TM, int TN, int DEEP>
static void s_launch_weights(cudaStream_t stream, const some_t &some)
{
    const dim3 grid(some.count * s_tiles(some.job.window, BM), (some.job.window.out_c + BN - 1) / BN);
    const auto kernel = s_weight_tiles<BM, BN, TM, TN, DEEP>;
    CUDA_LAUNCH(kernel, grid, (BM / TM) * (BN / TN), 0, stream, some);
}

/*  sum + more[0] + more[n] ..., `count` of them: eight are on their way at once. */
__device__ float add_all(float sum, const float *more, size_t n, uint32_t count)
{
    constexpr uint32_t AHEAD = 8;
    uint32_t r = 0;
    for (; r + AHEAD <= count; r += AHEAD) {
        float held[AHEAD];
        CUDA_UNROLL
        for (uint32_t i = 0; i < AHEAD; i++)
            held[i] = more[(r + i) * n];
        CUDA_UNROLL
        for (uint32_t i = 0; i < AHEAD; i++)
            sum = __fadd_rn(sum, held[i]);
    }
    for (; r < count; r++)
        sum = __fadd_rn(sum, more[r * n]);
    return sum;
}

/*  grad[s][at + i]: on from what stands there unless the shard begins among these rows. */
__global__ void s_add_rows(
    cuda_shards_t shards, uint32_t first, uint32_t count, size_t n, const float *partial, size_t at)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const uint32_t begin = shards.first[blockIdx.y], stop = shards.first[blockIdx.y + 1];
    if (i >= n)
        return;
    float *to = shards.grad[blockIdx.y] + at + i;
    if (begin == stop && first == 0)
        *to = 0.0f;
    const uint32_t from = begin > first ? begin : first, end = stop < first + count ? stop : first + count;
    if (from >= end)
        return;
    const float *more = partial + (size_t)(from - first) * n + i;
    float sum = from == begin ? *more : __fadd_rn(*to, *more);
    *to = add_all(sum, more + n, n, end - from - 1);
}

void s_add(cudaStream_t stream, const cuda_run_t &run, const some_t &some, size_t n, const float *partial, size_t at)
{
    cuda_each_shards(&run, [&](uint32_t shard, uint32_t shards) {
        const dim3 grid(cuda_blocks(n, THREADS), shards);
        const cuda_shards_t these = cuda_shards(&run, shard, shards);
        CUDA_LAUNCH(s_add_rows, grid, THREADS, 0, stream, these, some.first, some.count, n, partial, at);
    });
}

void s_some(cudaStream_t stream, const cuda_run_t &run, const some_t &some)
{
    const cuda_window_t &s = some.job.window;
    if (some.count && s.out_c <= 16)
        s_launch_weights<32, 16, 4, 4, 32>(stream, some);
    else if (some.count && s.out_c <= 32)
        s_launch_weights<64, 32, 8, 4, 16>(stream, some);
    else if (some.count)
        s_launch_weights<64, 64, 8, 4, 16>(stream, some);
    s_add(stream, run, some, s_weights(s), some.job.partial, some.job.at);
    s_add(stream, run, some, s.out_c, s_biases(some), some.job.bias_at);
}

} // namespace

/*  A run without rows has shards to be cleared. */
void cuda_conv_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_conv_grads_t *job)
{
    const uint32_t rows = cuda_first_row(run, run->hi) - cuda_first_row(run, run->lo);
    const size_t fit = job->partial_floats / cuda_conv_row_floats(&job->window);
    const size_t pieces = (rows + fit - 1) / fit,
                 each = pieces ? (rows + pieces - 1) / pieces : 0; /* alike: none is small */
    some_t some = {*job, 0, 0};
    do {
        some.count = rows - some.first < each ? rows - some.first : (uint32_t)each;
        s_some(stream, *run, some);
        some.first += some.count;
    } while (some.first < rows);
}
