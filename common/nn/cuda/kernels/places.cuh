/*  places - a product whose left side lies in pictures: tiles of it, for convolutions and their gradients.
 *
 *  c(m, n) = a chain from 0 over k of a(m, k) b(k, n). A number of the left side lies at the sum of two *places*: where m begins,
 *  and what k adds to it; where the sum is outside the picture, there is no link of the chain. So padding, borders and the ends of
 *  m and k are one and the same.
 *
 *  A block of threads makes BM x BN sums, a thread TM x TN of them in registers; both sides come to shared memory 16 steps of k
 *  at a time, with a bit for each number of the left side that is there. Where all are, nothing is asked. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

struct place_t {
    int64_t at;
    int32_t y, x;
};

/*  What step k adds to a place, and where b(k, 0) lies. */
struct step_t {
    place_t a;
    int64_t b;
};

/*  Added to any place that a picture has, and even to itself, it is none. */
__device__ inline place_t nowhere()
{
    return {0, INT32_MIN / 2, 0};
}

enum { PLACES_DEEP = 16, PLACES_PAD = 4 };

/*  A job is a struct with
 *      m, n, k              how large the product is;
 *      a, h, w              the pictures of the left side and how large one is;
 *      b, b_n               the right side; b(k, n) = b[step(k).b + n b_n];
 *      A_ALONG_K, B_ALONG_K neighbours in memory are neighbours in k, and not in m or n;
 *      row(m), step(k)      as above, for m and k inside;
 *      to(m)                where the sums of m go, the first of them;
 *      end(to, n, sum)      what becomes of one. */
template <class Job, int BM, int BN, int TM, int TN> struct product {
    static constexpr int THREADS = (BM / TM) * (BN / TN);
    static constexpr int A_ROW = BM + PLACES_PAD, B_ROW = BN + PLACES_PAD;

    const Job &job;
    uint64_t m0;
    uint32_t n0;
    float *a, *b;    /* shared: [PLACES_DEEP][A_ROW], [PLACES_DEEP][B_ROW] */
    uint32_t *there; /* shared: [BM] bits, by k                          */
    place_t *row;    /* shared: [BM]                                     */
    step_t *step;    /* shared: [PLACES_DEEP]                            */

    __device__ bool inside(int m, int k, int64_t *at) const
    {
        const place_t from = row[m], more = step[k].a;
        *at = from.at + more.at;
        return (uint32_t)(from.y + more.y) < job.h && (uint32_t)(from.x + more.x) < job.w;
    }

    __device__ void rows() const
    {
        for (int m = (int)threadIdx.x; m < BM; m += THREADS)
            row[m] = m0 + (uint64_t)m < job.m ? job.row(m0 + (uint64_t)m) : nowhere();
    }

    __device__ void steps(uint32_t k0) const
    {
        for (int k = (int)threadIdx.x; k < PLACES_DEEP; k += THREADS)
            step[k] = k0 + (uint32_t)k < job.k ? job.step(k0 + (uint32_t)k) : step_t{nowhere(), -1};
    }

    __device__ void load_a() const
    {
        for (int e = (int)threadIdx.x; e < BM * PLACES_DEEP; e += THREADS) {
            const int m = Job::A_ALONG_K ? e / PLACES_DEEP : e % BM, k = Job::A_ALONG_K ? e % PLACES_DEEP : e / BM;
            int64_t at;
            a[k * A_ROW + m] = inside(m, k, &at) ? job.a[at] : 0.0f;
        }
    }

    __device__ void load_b() const
    {
        for (int e = (int)threadIdx.x; e < BN * PLACES_DEEP; e += THREADS) {
            const int n = Job::B_ALONG_K ? e / PLACES_DEEP : e % BN, k = Job::B_ALONG_K ? e % PLACES_DEEP : e / BN;
            const bool is = n0 + (uint32_t)n < job.n && step[k].b >= 0;
            b[k * B_ROW + n] = is ? job.b[step[k].b + (int64_t)(n0 + (uint32_t)n) * job.b_n] : 0.0f;
        }
    }

    __device__ void find() const
    {
        for (int m = (int)threadIdx.x; m < BM; m += THREADS) {
            uint32_t bits = 0;
            int64_t at;
            for (int k = 0; k < PLACES_DEEP; k++)
                bits |= (uint32_t)inside(m, k, &at) << k;
            there[m] = bits;
        }
    }

    template <bool ALL> __device__ void add(float (&sum)[TM][TN], const uint32_t (&bits)[TM], int m, int n) const
    {
        CUDA_UNROLL
        for (int k = 0; k < PLACES_DEEP; k++) {
            float left[TM], right[TN];
            CUDA_UNROLL
            for (int i = 0; i < TM; i++)
                left[i] = a[k * A_ROW + m + i];
            CUDA_UNROLL
            for (int j = 0; j < TN; j++)
                right[j] = b[k * B_ROW + n + j];
            CUDA_UNROLL
            for (int i = 0; i < TM; i++)
                if (ALL || (bits[i] >> k & 1)) {
                    CUDA_UNROLL
                    for (int j = 0; j < TN; j++)
                        sum[i][j] = __fmaf_rn(left[i], right[j], sum[i][j]);
                }
        }
    }

    /*  What is in shared memory; m and n: of the thread's first sum. */
    __device__ void add_deep(float (&sum)[TM][TN], int m, int n) const
    {
        uint32_t bits[TM], all = (1u << PLACES_DEEP) - 1, some = 0;
        CUDA_UNROLL
        for (int i = 0; i < TM; i++) {
            bits[i] = there[m + i];
            all &= bits[i];
            some |= bits[i];
        }
        if (all == (1u << PLACES_DEEP) - 1)
            add<true>(sum, bits, m, n);
        else if (some)
            add<false>(sum, bits, m, n);
    }

    __device__ void end(const float (&sum)[TM][TN], int m, int n) const
    {
        CUDA_UNROLL
        for (int i = 0; i < TM; i++) {
            if (m0 + (uint64_t)(m + i) >= job.m)
                return;
            const uint64_t to = job.to(m0 + (uint64_t)(m + i));
            CUDA_UNROLL
            for (int j = 0; j < TN; j++)
                if (n0 + (uint32_t)(n + j) < job.n)
                    job.end(to, n0 + (uint32_t)(n + j), sum[i][j]);
        }
    }

    __device__ void compute() const
    {
        const int m = (int)threadIdx.x / (BN / TN) * TM, n = (int)threadIdx.x % (BN / TN) * TN;
        float sum[TM][TN] = {};
        rows();
        for (uint32_t k = 0; k < job.k; k += PLACES_DEEP) {
            steps(k);
            __syncthreads();
            load_a();
            load_b();
            find();
            __syncthreads();
            add_deep(sum, m, n);
        }
        end(sum, m, n);
    }
};

/*  The block's tile: m from m0 on, n from n0 on. */
template <class Job, int BM, int BN, int TM, int TN>
__device__ void product_tile(const Job &job, uint64_t m0, uint32_t n0)
{
    CUDA_STATIC_SHARED(float, a, PLACES_DEEP *(BM + PLACES_PAD));
    CUDA_STATIC_SHARED(float, b, PLACES_DEEP *(BN + PLACES_PAD));
    CUDA_STATIC_SHARED(uint32_t, there, BM);
    CUDA_STATIC_SHARED(place_t, row, BM);
    CUDA_STATIC_SHARED(step_t, step, PLACES_DEEP);
    const product<Job, BM, BN, TM, TN> tile = {job, m0, n0, a, b, there, row, step};
    tile.compute();
}

} // namespace
