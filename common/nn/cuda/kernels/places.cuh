/*  places - a product whose left side lies in pictures: tiles of it, for convolutions and their gradients.
 *
 *  c(m, n) = a chain from 0 over k of a(m, k) b(k, n). A number of the left side lies at the sum of two *places*: where m begins,
 *  and what k adds to it; where the sum is outside the picture, there is no link of the chain.
 *
 *  A block of threads makes BM x BN sums, a thread TM x TN of them in registers; both sides come to shared memory DEEP steps of k
 *  at a time, twice: while one tile is worked on, the next one's numbers are on their way to registers. They come by fours, in one
 *  load where they lie so, and go on to the sums by fours: threads that are neighbours read neighbouring fours.
 *
 *  Where a picture is padded there is a bit for each number of the left side that is there; where all of a warp's are, nothing is
 *  asked. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

struct alignas(4 * sizeof(float)) four_t {
    float x[4];
};

struct alignas(16) place_t {
    int64_t at;
    int32_t y, x;
};

/*  Where m begins, and where its sums go. */
struct row_t {
    place_t place;
    uint64_t to;
};

/*  What step k adds to a place, and where b(k, 0) lies. */
struct alignas(16) step_t {
    int32_t at, y, x, b;
};

/*  Of a place and of a step: added to any that a picture has, and even to each other, it is none. */
enum { NOWHERE = INT32_MIN / 2 };

__host__ __device__ inline bool s_fours(uint32_t row, const void *p)
{
    return row % 4 == 0 && (uintptr_t)p % sizeof(four_t) == 0;
}

/*  The first of four numbers of a tile: its m or n, and its step. */
struct spot_t {
    int i, k;
};

/*  A job is a struct with
 *      m, n, k                       how large the product is;
 *      a, h, w                       the pictures of the left side and how large one is;
 *      padded                        some places are outside;
 *      b, b_n                        the right side; b(k, n) = b[step(k).b + n b_n];
 *      A_ALONG_K, B_ALONG_K          neighbours in memory are neighbours in k, and not in m or n;
 *      a_fours, b_fours, out_fours   four neighbours lie side by side and on 16 bytes, of a all at one place of the kernel;
 *      row(m), step(k)               as above, for m and k inside;
 *      end(to, n, sum)               what becomes of one sum, or of four;
 *      COLUMNS, end_column(n, sum)   and of a chain of additions of b(k, n), if there is one. */
template <class Job, int BM, int BN, int TM, int TN, int DEEP> struct product {
    static constexpr int THREADS = (BM / TM) * (BN / TN);
    static constexpr int A_ROW = BM / 4 + 1,
                         B_ROW = BN / 4 + 1; /* fours; one more, so that rows begin at other banks */
    static constexpr int A_FOURS = BM * DEEP / 4 / THREADS,
                         B_FOURS = BN * DEEP / 4 / THREADS;               /* that a thread brings */
    static constexpr int STEPS = THREADS > 2 * DEEP ? THREADS : 2 * DEEP; /* found at once: at least two tiles ahead */
    static constexpr uint32_t ALL = 0x0f0f0f0fu;
    static_assert(
        A_FOURS * THREADS * 4 == BM * DEEP && B_FOURS * THREADS * 4 == BN * DEEP, "each thread brings as many");
    static_assert(TM % 4 == 0 && TN % 4 == 0 && DEEP % 16 == 0 && THREADS % 32 == 0, "fours, words of bits, warps");

    /*  On its way to shared memory. */
    struct held_t {
        four_t a[A_FOURS], b[B_FOURS];
        uint32_t there[A_FOURS];
    };

    const Job &job;
    uint64_t m0;
    uint32_t n0;
    four_t *a,
        *b; /* shared: [2][DEEP][A_ROW], [2][DEEP][B_ROW]                                                        */
    uint32_t *
        there; /* shared: [2][BM / 4][DEEP] bytes, of four m at a step or of one at four steps, as the left side lies */
    place_t
        *row; /* shared: [BM]                                                                                      */
    uint64_t
        *to; /* shared: [BM]                                                                                      */
    step_t
        *step; /* shared: [2][STEPS]                                                                                */

    __device__ void rows() const
    {
        for (int m = (int)threadIdx.x; m < BM; m += THREADS) {
            const bool is = m0 + (uint64_t)m < job.m;
            const row_t mine = is ? job.row(m0 + (uint64_t)m) : row_t{{0, NOWHERE, 0}, 0};
            row[m] = mine.place;
            to[m] = mine.to;
        }
    }

    __device__ void steps(uint32_t k0) const
    {
        for (uint32_t k = k0 + threadIdx.x; k < k0 + STEPS; k += THREADS)
            step[k % (2 * STEPS)] = k < job.k ? job.step(k) : step_t{0, NOWHERE, 0, -1};
    }

    /*  Which four this thread brings in round `s`: neighbouring threads read neighbours in memory, and store to different banks. */
    template <bool ALONG_K, int ROWS> static __device__ spot_t spot(int s)
    {
        const int e = (int)threadIdx.x + THREADS * s;
        if (ALONG_K)
            return {e / 2 % ROWS, e % 2 * 4 + e / (2 * ROWS) * 8};
        return {e % (ROWS / 4) * 4, e / (ROWS / 4)};
    }

    __device__ bool inside(const place_t &from, const step_t &more) const
    {
        return (uint32_t)(from.y + more.y) < job.h && (uint32_t)(from.x + more.x) < job.w;
    }

    __device__ void fetch_a(uint32_t k0, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            const place_t from = row[at.i];
            const step_t more = step[(k0 + (uint32_t)at.k) % (2 * STEPS)];
            const bool is = inside(from, more);
            held.a[s] = is ? *(const four_t *)(job.a + from.at + more.at) : four_t{};
            held.there[s] = is ? 0xf : 0;
        }
    }

    /*  The plain way: each for itself. */
    __device__ void fetch_a_each(uint32_t k0, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            held.there[s] = 0;
            CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const place_t from = row[at.i + (Job::A_ALONG_K ? 0 : j)];
                const step_t more = step[(k0 + (uint32_t)(at.k + (Job::A_ALONG_K ? j : 0))) % (2 * STEPS)];
                const bool is = inside(from, more);
                held.a[s].x[j] = is ? job.a[from.at + more.at] : 0.0f;
                held.there[s] |= (uint32_t)is << j;
            }
        }
    }

    __device__ void fetch_b(uint32_t k0, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < B_FOURS; s++) {
            const spot_t at = spot<Job::B_ALONG_K, BN>(s);
            const uint32_t n = n0 + (uint32_t)at.i;
            const int32_t from = step[(k0 + (uint32_t)at.k) % (2 * STEPS)].b;
            const bool is = n < job.n && from >= 0;
            held.b[s] = is ? *(const four_t *)(job.b + from + (int64_t)n * job.b_n) : four_t{};
        }
    }

    __device__ void fetch_b_each(uint32_t k0, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < B_FOURS; s++) {
            const spot_t at = spot<Job::B_ALONG_K, BN>(s);
            CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const uint32_t n = n0 + (uint32_t)(at.i + (Job::B_ALONG_K ? 0 : j));
                const int32_t from = step[(k0 + (uint32_t)(at.k + (Job::B_ALONG_K ? j : 0))) % (2 * STEPS)].b;
                const bool is = n < job.n && from >= 0;
                held.b[s].x[j] = is ? job.b[from + (int64_t)n * job.b_n] : 0.0f;
            }
        }
    }

    __device__ void fetch(uint32_t k0, held_t &held) const
    {
        if (job.a_fours)
            fetch_a(k0, held);
        else
            fetch_a_each(k0, held);
        if (job.b_fours)
            fetch_b(k0, held);
        else
            fetch_b_each(k0, held);
    }

    template <bool ALONG_K, int ROW> static __device__ void keep_four(four_t *tile, spot_t at, const four_t &held)
    {
        if (!ALONG_K)
            tile[at.k * ROW + at.i / 4] = held;
        CUDA_UNROLL
        for (int j = 0; ALONG_K && j < 4; j++)
            ((float *)tile)[(at.k + j) * ROW * 4 + at.i] = held.x[j];
    }

    __device__ void keep(int half, const held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            const int byte = Job::A_ALONG_K ? (at.i * DEEP + at.k) / 4 : at.i / 4 * DEEP + at.k;
            keep_four<Job::A_ALONG_K, A_ROW>(a + half * DEEP * A_ROW, at, held.a[s]);
            if (job.padded)
                ((uint8_t *)there)[half * (BM / 4 * DEEP) + byte] = (uint8_t)held.there[s];
        }
        CUDA_UNROLL
        for (int s = 0; s < B_FOURS; s++)
            keep_four<Job::B_ALONG_K, B_ROW>(b + half * DEEP * B_ROW, spot<Job::B_ALONG_K, BN>(s), held.b[s]);
    }

    static __device__ int thread_m()
    {
        return (int)threadIdx.x / (BN / TN);
    }

    static __device__ int thread_n()
    {
        return (int)threadIdx.x % (BN / TN);
    }

    /*  Bits of the thread's rows, four rows after the other. */
    struct bits_t {
        uint32_t of[TM / 4][DEEP / 4];

        __device__ bool is(int i, int k) const
        {
            if (Job::A_ALONG_K)
                return of[i / 4][i % 4 * (DEEP / 16) + k / 16] >> (k / 4 % 4 * 8 + k % 4) & 1;
            return of[i / 4][k / 4] >> (k % 4 * 8 + i % 4) & 1;
        }
    };

    /*  False where all are there. */
    __device__ bool find(int half, bits_t &bits) const
    {
        uint32_t all = ALL;
        CUDA_UNROLL
        for (int g = 0; g < TM / 4; g++) {
            CUDA_UNROLL
            for (int w = 0; w < DEEP / 4; w++) {
                const int at = (half * (BM / 4) + g * (BM / TM) + thread_m()) * (DEEP / 4) + w;
                bits.of[g][w] = job.padded ? there[at] : ALL;
                all &= bits.of[g][w];
            }
        }
        return all != ALL;
    }

    template <bool SOME> __device__ void add_step(float (&sum)[TM][TN], int half, int k, const bits_t &bits) const
    {
        four_t left[TM / 4], right[TN / 4];
        CUDA_UNROLL
        for (int g = 0; g < TM / 4; g++)
            left[g] = a[(half * DEEP + k) * A_ROW + g * (BM / TM) + thread_m()];
        CUDA_UNROLL
        for (int g = 0; g < TN / 4; g++)
            right[g] = b[(half * DEEP + k) * B_ROW + g * (BN / TN) + thread_n()];
        CUDA_UNROLL
        for (int i = 0; i < TM; i++)
            if (!SOME || bits.is(i, k)) {
                CUDA_UNROLL
                for (int j = 0; j < TN; j++)
                    sum[i][j] = __fmaf_rn(left[i / 4].x[i % 4], right[j / 4].x[j % 4], sum[i][j]);
            }
    }

    /*  What is in shared memory, `left` steps. A warp goes one way: two would cost the sum of both. */
    __device__ void add_deep(float (&sum)[TM][TN], int half, uint32_t left) const
    {
        bits_t bits;
        const bool some = find(half, bits);
        if (left >= DEEP && (!job.padded || !__ballot_sync(0xffffffffu, some))) {
            CUDA_UNROLL
            for (int k = 0; k < DEEP; k++)
                add_step<false>(sum, half, k, bits);
        } else {
            CUDA_UNROLL
            for (int k = 0; k < DEEP; k++)
                if ((uint32_t)k < left)
                    add_step<true>(sum, half, k, bits);
        }
    }

    /*  A thread a column. */
    __device__ void add_column(float &column, int half, uint32_t left) const
    {
        const float *more = (const float *)(b + half * DEEP * B_ROW) + threadIdx.x;
        for (uint32_t k = 0; k < DEEP && k < left; k++)
            column = __fadd_rn(column, more[k * B_ROW * 4]);
    }

    __device__ void end_row(uint64_t at, const float (&sum)[TN]) const
    {
        CUDA_UNROLL
        for (int j = 0; j < TN; j += 4) {
            const uint32_t n = n0 + (uint32_t)(j * (BN / TN) + 4 * thread_n());
            if (job.out_fours && n < job.n)
                job.end(at, n, four_t{{sum[j], sum[j + 1], sum[j + 2], sum[j + 3]}});
            CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                if (!job.out_fours && n + (uint32_t)i < job.n)
                    job.end(at, n + (uint32_t)i, sum[j + i]);
        }
    }

    __device__ void end(const float (&sum)[TM][TN]) const
    {
        CUDA_UNROLL
        for (int i = 0; i < TM; i++) {
            const int m = i / 4 * (BM / TM) * 4 + thread_m() * 4 + i % 4;
            if (m0 + (uint64_t)m < job.m)
                end_row(to[m], sum[i]);
        }
    }

    /*  Of a block that has the first rows. */
    __device__ bool has_column() const
    {
        return Job::COLUMNS && m0 == 0 && threadIdx.x < BN;
    }

    __device__ void compute() const
    {
        static_assert(!Job::COLUMNS || THREADS >= BN, "a thread a column");
        float sum[TM][TN] = {}, column = 0.0f;
        held_t held;
        rows();
        steps(0);
        __syncthreads();
        fetch(0, held);
        int half = 0;
        for (uint32_t k = 0; k < job.k; k += DEEP, half ^= 1) {
            keep(half, held);
            __syncthreads(); /* the tile is whole, and nobody works on the one before, which is stored to next */
            if (k + DEEP < job.k)
                fetch(k + DEEP, held);
            if (k % STEPS == 0)
                steps(k + STEPS);
            add_deep(sum, half, job.k - k);
            if (has_column())
                add_column(column, half, job.k - k);
        }
        end(sum);
        if constexpr (Job::COLUMNS)
            if (has_column() && n0 + threadIdx.x < job.n)
                job.end_column(n0 + threadIdx.x, column);
    }
};

/*  The block's tile: m from m0 on, n from n0 on. */
template <class Job, int BM, int BN, int TM, int TN, int DEEP>
__device__ void product_tile(const Job &job, uint64_t m0, uint32_t n0)
{
    using tile_t = product<Job, BM, BN, TM, TN, DEEP>;
    CUDA_STATIC_SHARED(four_t, a, 2 * DEEP * tile_t::A_ROW);
    CUDA_STATIC_SHARED(four_t, b, 2 * DEEP * tile_t::B_ROW);
    CUDA_STATIC_SHARED(uint32_t, there, 2 * BM / 4 * DEEP / 4);
    CUDA_STATIC_SHARED(place_t, row, BM);
    CUDA_STATIC_SHARED(uint64_t, to, BM);
    CUDA_STATIC_SHARED(step_t, step, 2 * tile_t::STEPS);
    const tile_t tile = {job, m0, n0, a, b, there, row, to, step};
    tile.compute();
}

} // namespace
