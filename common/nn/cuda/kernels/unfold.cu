/*  unfold - pictures as matrices that a product can read, and back: a convolution is then a product, for who has a quick one (fast.h).
 *
 *  A thread has as many channels as are loaded at once: what costs time beside memory is finding out where they lie. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/grid.cuh"
#include "common/nn/cuda/kernels/threads.cuh"

namespace
{

template <uint32_t V> __device__ inline numbers_t<V> s_load(const float *at)
{
    return *reinterpret_cast<const numbers_t<V> *>(at);
}

template <uint32_t V> __device__ inline void s_store(float *at, const numbers_t<V> &numbers)
{
    *reinterpret_cast<numbers_t<V> *>(at) = numbers;
}

template <uint32_t V> __global__ void s_unfold(cuda_unfold_t job)
{
    const cuda_window_t &w = job.window;
    const uint32_t taps = w.kernel_h * w.kernel_w * w.in_c, positions = w.out_h * w.out_w;
    const number_t my = my_number(job.rows * positions, taps / V);
    if (my.i >= taps / V)
        return;
    const uint32_t tap = my.i * V, place = tap / w.in_c, p = my.row % positions;
    const uint32_t y = p / w.out_w * w.stride_h + place / w.kernel_w - w.pad_h; /* above or left of it: very large */
    const uint32_t x = p % w.out_w * w.stride_w + place % w.kernel_w - w.pad_w;
    numbers_t<V> numbers = {};
    if (y < w.in_h && x < w.in_w)
        numbers =
            s_load<V>(job.in + (((size_t)(my.row / positions) * w.in_h + y) * w.in_w + x) * w.in_c + tap % w.in_c);
    s_store<V>(job.out + (size_t)my.row * taps + tap, numbers);
}

/*  Places of the kernel that read row (column) `at`: every stride-th from `first` on, by outputs that go down from `out`. */
struct readers_t {
    uint32_t first, out;
};

__device__ inline readers_t s_readers(uint32_t at, uint32_t stride, uint32_t pad)
{
    return {(at + pad) % stride, (at + pad) / stride};
}

template <uint32_t V> __global__ void s_unfold_back(cuda_unfold_back_t job)
{
    const cuda_window_t &w = job.window;
    const uint32_t taps = w.kernel_h * w.kernel_w * w.in_c, count = w.in_h * w.in_w * w.in_c;
    const number_t my = my_number(job.rows, count / V);
    if (my.i >= count / V)
        return;
    const uint32_t number = my.i * V, c = number % w.in_c;
    const readers_t y = s_readers(number / w.in_c / w.in_w, w.stride_h, w.pad_h);
    const readers_t x = s_readers(number / w.in_c % w.in_w, w.stride_w, w.pad_w);
    numbers_t<V> sum = {};
    for (uint32_t kh = y.first, oy = y.out; kh < w.kernel_h; kh += w.stride_h, oy--)
        for (uint32_t kw = x.first, ox = x.out; kw < w.kernel_w && oy < w.out_h; kw += w.stride_w, ox--) {
            if (ox >= w.out_w) /* before the first, too: very large */
                continue;
            const size_t position = ((size_t)my.row * w.out_h + oy) * w.out_w + ox;
            const numbers_t<V> more = s_load<V>(job.d + position * taps + (kh * w.kernel_w + kw) * w.in_c + c);
            CUDA_UNROLL
            for (uint32_t v = 0; v < V; v++)
                sum.at[v] = __fadd_rn(sum.at[v], more.at[v]);
        }
    const size_t at = (size_t)my.row * count + number;
    const numbers_t<V> in = s_load<V>(job.in + at);
    CUDA_UNROLL
    for (uint32_t v = 0; v < V; v++)
        sum.at[v] = activated_back(job.before, in.at[v], sum.at[v]);
    s_store<V>(job.d_in + at, sum);
}

} // namespace

void cuda_unfold(cudaStream_t stream, const cuda_unfold_t *job)
{
    const cuda_window_t &w = job->window;
    const uint32_t rows = job->rows * w.out_h * w.out_w, taps = w.kernel_h * w.kernel_w * w.in_c;
    if (w.in_c % QUAD == 0)
        CUDA_LAUNCH_NUMBERS(s_unfold<QUAD>, stream, rows, taps / QUAD, *job);
    else
        CUDA_LAUNCH_NUMBERS(s_unfold<1>, stream, rows, taps, *job);
}

void cuda_unfold_back(cudaStream_t stream, const cuda_unfold_back_t *job)
{
    const cuda_window_t &w = job->window;
    const uint32_t count = w.in_h * w.in_w * w.in_c;
    if (w.in_c % QUAD == 0)
        CUDA_LAUNCH_NUMBERS(s_unfold_back<QUAD>, stream, job->rows, count / QUAD, *job);
    else
        CUDA_LAUNCH_NUMBERS(s_unfold_back<1>, stream, job->rows, count, *job);
}
