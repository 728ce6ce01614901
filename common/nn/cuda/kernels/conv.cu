/*  conv - convolutions of all pictures of a run: forward, and the gradient of what they read, as products over places.
 *
 *  m is a number's position in all pictures, n a channel. Forward, k is (kh, kw, c). On the way back a number is gathered from all that
 *  read it, k is (kh, kw, o): only every stride-th place of the kernel read it, the same for all numbers of one *phase* (row and
 *  column modulo the strides), so that a phase is a product of its own and leaves out only what the borders lack. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/places.cuh"

namespace
{

enum { DEEP = 16 };
/*  Threads of a launch that keep a card busy: 16 warps for each of its multiprocessors. */
constexpr uint64_t ENOUGH = CUDA_MULTIPROCESSORS * 16 * 32;

struct forward_t {
    static constexpr bool A_ALONG_K = true, B_ALONG_K = false, COLUMNS = false;
    cuda_conv_t c;
    uint64_t m;
    uint32_t n, k, h, w;
    const float *a, *b;
    int64_t b_n;
    bool padded, a_fours, b_fours, out_fours;

    __device__ row_t row(uint64_t i) const
    {
        const cuda_window_t &s = c.window;
        const uint32_t positions = s.out_h * s.out_w, p = (uint32_t)(i % positions);
        const int32_t y = (int32_t)(p / s.out_w * s.stride_h) - (int32_t)s.pad_h;
        const int32_t x = (int32_t)(p % s.out_w * s.stride_w) - (int32_t)s.pad_w;
        const int64_t first = (int64_t)(i / positions) * s.in_h + y;
        return {{a + (first * s.in_w + x) * s.in_c, y, x}, i * n};
    }
    __device__ step_t step(uint32_t i) const
    {
        const cuda_window_t &s = c.window;
        const uint32_t place = i / s.in_c, kh = place / s.kernel_w, kw = place % s.kernel_w;
        const uint32_t at = (kh * s.in_w + kw) * s.in_c + i % s.in_c;
        return {(int32_t)at, (int32_t)kh, (int32_t)kw, (int32_t)(i * s.out_c)};
    }
    __device__ void end(uint64_t to, uint32_t o, float sum) const
    {
        c.out[to + o] = activated(c.act, __fadd_rn(sum, c.bias[o]));
    }
    __device__ void end(uint64_t to, uint32_t o, four_t sum) const
    {
        CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            sum.x[j] = activated(c.act, __fadd_rn(sum.x[j], c.bias[o + (uint32_t)j]));
        *(four_t *)(c.out + to + o) = sum;
    }
};

__host__ __device__ forward_t s_forward(const cuda_conv_t &c)
{
    const cuda_window_t &s = c.window;
    return {c, (uint64_t)c.rows * s.out_h * s.out_w, s.out_c, s.kernel_h * s.kernel_w * s.in_c, s.in_h, s.in_w, c.in,
        c.weight, 1, s.pad_h || s.pad_w, s_fours(s.in_c, c.in), s_fours(s.out_c, c.weight), s_fours(s.out_c, c.out)};
}

/*  Rows (columns) of one phase: `first` + stride t; the places of the kernel that read them are k0 + stride i, at position out0 + t - i. */
struct phase_t {
    uint32_t first, count, k0, places, out0;
};

__host__ __device__ inline phase_t s_phase(uint32_t first, uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    const uint32_t k0 = (first + pad) % stride;
    return {first, first < in ? (in - first + stride - 1) / stride : 0, k0,
        k0 < kernel ? (kernel - k0 + stride - 1) / stride : 0, (first + pad - k0) / stride};
}

struct back_t {
    static constexpr bool A_ALONG_K = true, B_ALONG_K = true, COLUMNS = false;
    cuda_conv_back_t c;
    phase_t y, x;
    uint64_t m;
    uint32_t n, k, h, w;
    const float *a, *b;
    int64_t b_n;
    bool padded, a_fours, b_fours, out_fours;

    __device__ row_t row(uint64_t i) const
    {
        const cuda_window_t &s = c.window;
        const uint32_t t = (uint32_t)(i / x.count % y.count), u = (uint32_t)(i % x.count);
        const int32_t oy = (int32_t)(y.out0 + t), ox = (int32_t)(x.out0 + u);
        const uint64_t picture = i / x.count / y.count;
        const uint64_t to = (picture * s.in_h + y.first + t * s.stride_h) * s.in_w + x.first + u * s.stride_w;
        return {{a + (((int64_t)picture * h + oy) * w + ox) * s.out_c, oy, ox}, to * n};
    }
    __device__ step_t step(uint32_t i) const
    {
        const cuda_window_t &s = c.window;
        const uint32_t place = i / s.out_c, o = i % s.out_c, py = place / x.places, px = place % x.places;
        const uint32_t weight = (y.k0 + py * s.stride_h) * s.kernel_w + x.k0 + px * s.stride_w;
        return {(int32_t)o - (int32_t)((py * w + px) * s.out_c), -(int32_t)py, -(int32_t)px,
            (int32_t)(weight * s.in_c * s.out_c + o)};
    }
    __device__ void end(uint64_t to, uint32_t channel, float sum) const
    {
        c.d_in[to + channel] = activated_back(c.before, c.in[to + channel], sum);
    }
    __device__ void end(uint64_t to, uint32_t channel, four_t sum) const
    {
        const four_t in = *(const four_t *)(c.in + to + channel);
        CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            sum.x[j] = activated_back(c.before, in.x[j], sum.x[j]);
        *(four_t *)(c.d_in + to + channel) = sum;
    }
};

__host__ __device__ back_t s_back(const cuda_conv_back_t &c, uint32_t phase)
{
    const cuda_window_t &s = c.window;
    const phase_t y = s_phase(phase / s.stride_w, s.in_h, s.kernel_h, s.stride_h, s.pad_h);
    const phase_t x = s_phase(phase % s.stride_w, s.in_w, s.kernel_w, s.stride_w, s.pad_w);
    return {c, y, x, (uint64_t)c.rows * y.count * x.count, s.in_c, y.places * x.places * s.out_c, s.out_h, s.out_w, c.d,
        c.weight, s.out_c, true, s_fours(s.out_c, c.d), s_fours(s.out_c, c.weight),
        s_fours(s.in_c, c.in) && s_fours(s.in_c, c.d_in)};
}

template <int BM, int BN, int TM, int TN> __global__ void s_forward_tiles(cuda_conv_t c)
{
    const forward_t job = s_forward(c);
    product_tile<forward_t, BM, BN, TM, TN, DEEP>(job, (uint64_t)blockIdx.x * BM, blockIdx.y * BN);
}

template <int BM, int BN, int TM, int TN> __global__ void s_back_tiles(cuda_conv_back_t c)
{
    const back_t job = s_back(c, blockIdx.z);
    if ((uint64_t)blockIdx.x * BM < job.m) /* phases are not all as large */
        product_tile<back_t, BM, BN, TM, TN, DEEP>(job, (uint64_t)blockIdx.x * BM, blockIdx.y * BN);
}

template <int BM, int BN, int TM, int TN> struct tiles_t {
    static constexpr uint64_t THREADS = (BM / TM) * (BN / TN);

    static dim3 grid(uint64_t m, uint32_t n, uint32_t phases)
    {
        return dim3((unsigned)((m + BM - 1) / BM), (n + BN - 1) / BN, phases);
    }
    /*  A card has enough to do. */
    static bool fill(uint64_t m, uint32_t n, uint32_t phases)
    {
        return (m + BM - 1) / BM * ((n + BN - 1) / BN) * phases * THREADS >= ENOUGH;
    }
    static void launch(cudaStream_t stream, const cuda_conv_t &c)
    {
        const forward_t all = s_forward(c);
        const auto kernel = s_forward_tiles<BM, BN, TM, TN>;
        CUDA_LAUNCH(kernel, grid(all.m, all.n, 1), (BM / TM) * (BN / TN), 0, stream, c);
    }
    static void launch(cudaStream_t stream, const cuda_conv_back_t &c)
    {
        const back_t largest = s_back(c, 0);
        const auto kernel = s_back_tiles<BM, BN, TM, TN>;
        CUDA_LAUNCH(kernel, grid(largest.m, largest.n, c.window.stride_h * c.window.stride_w), (BM / TM) * (BN / TN), 0,
            stream, c);
    }
};

/*  Tiles by what a product is wide, and small ones where large ones would leave some of a card idle. */
template <class Job> void s_launch(cudaStream_t stream, const Job &job, uint64_t m, uint32_t n, uint32_t phases)
{
    if (n <= 16 && tiles_t<128, 16, 8, 4>::fill(m, n, phases))
        tiles_t<128, 16, 8, 4>::launch(stream, job);
    else if (n <= 16)
        tiles_t<64, 16, 4, 4>::launch(stream, job);
    else if (n <= 32 && tiles_t<128, 32, 8, 4>::fill(m, n, phases))
        tiles_t<128, 32, 8, 4>::launch(stream, job);
    else if (n <= 32)
        tiles_t<64, 32, 4, 4>::launch(stream, job);
    else if (tiles_t<64, 64, 8, 4>::fill(m, n, phases))
        tiles_t<64, 64, 8, 4>::launch(stream, job);
    else
        tiles_t<32, 64, 4, 4>::launch(stream, job);
}

} // namespace

void cuda_conv(cudaStream_t stream, const cuda_conv_t *job)
{
    const forward_t all = s_forward(*job);
    if (job->rows)
        s_launch(stream, *job, all.m, all.n, 1);
}

void cuda_conv_back(cudaStream_t stream, const cuda_conv_back_t *job)
{
    const back_t largest = s_back(*job, 0);
    if (job->rows)
        s_launch(stream, *job, largest.m, largest.n, job->window.stride_h * job->window.stride_w);
}
