/*  pool - the largest number of each window, or their mean, and back to it.
 *
 *  On the way back a number is gathered from the windows that it lies in, in the order (y, x): those that took another one add
 *  nothing. On the CPU they add 0, which is the same, for a sum of additions that began at 0 is never -0. */
#include "common/nn/cuda/kernels/activation.cuh"
#include "common/nn/cuda/kernels/threads.cuh"

namespace
{

/*  first .. end - 1 */
struct range_t {
    uint32_t first, end;
};

/*  Places of the window that lie inside the picture at position i. */
__device__ range_t s_inside(uint32_t i, uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    const uint32_t at = i * stride, edge = in + pad;
    return {at < pad ? pad - at : 0, at + kernel < edge ? kernel : edge - at};
}

/*  Positions whose windows hold row (column) i. */
__device__ range_t s_holders(uint32_t i, uint32_t out, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    const uint32_t last = (i + pad) / stride;
    return {i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1, last < out ? last + 1 : out};
}

__device__ float s_share(const cuda_window_t &s)
{
    return __fdiv_rn(1.0f, (float)(s.kernel_h * s.kernel_w));
}

/*  A window: where its places lie, and what is inside. */
struct view_t {
    const float *in; /* of its channel: what place (0, 0) would read */
    int64_t row, column;
    range_t kh, kw;
};

__device__ float s_largest(const cuda_window_t &s, const view_t &view, uint8_t *which)
{
    float best = 0.0f;
    uint32_t number = 0;
    bool any = false;
    for (uint32_t kh = view.kh.first; kh < view.kh.end; kh++)
        for (uint32_t kw = view.kw.first; kw < view.kw.end; kw++) {
            const float x = view.in[kh * view.row + kw * view.column];
            if (!any || (!(x <= best) && best == best)) { /* of NaN the first */
                best = x;
                number = kh * s.kernel_w + kw;
            }
            any = true;
        }
    *which = (uint8_t)number;
    return best;
}

__device__ float s_mean(const cuda_window_t &s, const view_t &view)
{
    float sum = 0.0f;
    bool any = false;
    for (uint32_t kh = view.kh.first; kh < view.kh.end; kh++)
        for (uint32_t kw = view.kw.first; kw < view.kw.end; kw++) {
            const float x = view.in[kh * view.row + kw * view.column];
            sum = any ? __fadd_rn(sum, x) : x; /* -0 stays what it is */
            any = true;
        }
    return __fmul_rn(sum, s_share(s));
}

__global__ void s_forward(cuda_pool_t job)
{
    const cuda_window_t &s = job.window;
    const uint32_t outs = s.out_h * s.out_w * s.in_c;
    const number_t my = my_number(job.rows, outs);
    if (my.i >= outs)
        return;
    const uint32_t c = my.i % s.in_c, x = my.i / s.in_c % s.out_w, y = my.i / s.in_c / s.out_w;
    const int64_t first_y = (int64_t)y * s.stride_h - s.pad_h, first_x = (int64_t)x * s.stride_w - s.pad_w;
    const float *picture = job.in + (size_t)my.row * s.in_h * s.in_w * s.in_c + c;
    const view_t view = {picture + (first_y * s.in_w + first_x) * s.in_c, (int64_t)s.in_w * s.in_c, s.in_c,
        s_inside(y, s.in_h, s.kernel_h, s.stride_h, s.pad_h), s_inside(x, s.in_w, s.kernel_w, s.stride_w, s.pad_w)};
    const size_t to = (size_t)my.row * outs + my.i;
    job.out[to] = activated(job.act, job.which ? s_largest(s, view, &job.which[to]) : s_mean(s, view));
}

__global__ void s_back(cuda_pool_back_t job)
{
    const cuda_window_t &s = job.window;
    const uint32_t ins = s.in_h * s.in_w * s.in_c;
    const number_t my = my_number(job.rows, ins);
    if (my.i >= ins)
        return;
    const uint32_t c = my.i % s.in_c, ix = my.i / s.in_c % s.in_w, iy = my.i / s.in_c / s.in_w;
    const range_t ys = s_holders(iy, s.out_h, s.kernel_h, s.stride_h, s.pad_h);
    const range_t xs = s_holders(ix, s.out_w, s.kernel_w, s.stride_w, s.pad_w);
    const float share = s_share(s);
    float sum = 0.0f;
    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++) {
            const size_t at = (((size_t)my.row * s.out_h + y) * s.out_w + x) * s.in_c + c;
            const uint32_t place = (iy + s.pad_h - y * s.stride_h) * s.kernel_w + ix + s.pad_w - x * s.stride_w;
            if (!job.which)
                sum = __fadd_rn(sum, __fmul_rn(job.d[at], share));
            else if (job.which[at] == place)
                sum = __fadd_rn(sum, job.d[at]);
        }
    const size_t to = (size_t)my.row * ins + my.i;
    job.d_in[to] = activated_back(job.before, job.in[to], sum);
}

} // namespace

void cuda_pool(cudaStream_t stream, const cuda_pool_t *job)
{
    const cuda_window_t &s = job->window;
    CUDA_LAUNCH_NUMBERS(s_forward, stream, job->rows, s.out_h * s.out_w * s.in_c, *job);
}

void cuda_pool_back(cudaStream_t stream, const cuda_pool_back_t *job)
{
    const cuda_window_t &s = job->window;
    CUDA_LAUNCH_NUMBERS(s_back, stream, job->rows, s.in_h * s.in_w * s.in_c, *job);
}
