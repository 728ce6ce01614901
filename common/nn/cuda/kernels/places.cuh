/*  places - a product whose left side lies in pictures: tiles of it, for convolutions and their gradients.
 *
 *  c(m, n) = a chain from 0 over k of a(m, k) b(k, n). A number of the left side lies at the sum of two *places*: where m begins,
 *  and what k adds to it; where the sum is outside the picture, there is no link of the chain.
 *
 *  A block of threads makes BM x BN sums, a thread TM x TN of them in registers; both sides come to shared memory DEEP steps of k
 *  at a time, twice: while one tile is worked on, the next one's numbers are on their way to registers. They come by fours, in one
 *  load where they lie so, and go on to the sums by fours: threads that are neighbours read neighbouring fours.
 *
 *  Where a picture is padded, and in the last tile of k, there is a bit for each number of the left side that is there; where all of
 *  a warp's are, nothing is asked. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include "common/nn/cuda/kernels/grid.cuh"

namespace
{

/*  at: the number itself, inside or not. */
struct alignas(16) place_t {
    const float *at;
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
    /* fours of a row; one more, so that rows begin at other banks */
    static constexpr int A_ROW = BM / 4 + 1, B_ROW = BN / 4 + 1;
    /* fours that a thread brings */
    static constexpr int A_FOURS = BM * DEEP / 4 / THREADS, B_FOURS = BN * DEEP / 4 / THREADS;
    /* found at once: at least two tiles ahead */
    static constexpr int STEPS = THREADS > 2 * DEEP ? THREADS : 2 * DEEP;
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
    /* shared memory */
    four_t *a, *b;   /* [2][DEEP][A_ROW], [2][DEEP][B_ROW]                                               */
    uint32_t *there; /* [2][BM / 4][DEEP] bytes, of four m at a step or of one at four steps, as a lies */
    place_t *row;    /* [BM]                                                                             */
    uint64_t *to;    /* [BM]                                                                             */
    step_t *step;    /* [2][STEPS]                                                                       */

    __device__ void rows() const
    {
        for (int m = (int)threadIdx.x; m < BM; m += THREADS) {
            const bool is = m0 + (uint64_t)m < job.m;
            const row_t mine = is ? job.row(m0 + (uint64_t)m) : row_t{{job.a, NOWHERE, 0}, 0};
            row[m] = mine.place;
            to[m] = mine.to;
        }
    }

    __device__ void steps(uint32_t k0) const
    {
        for (uint32_t k = k0 + threadIdx.x; k < k0 + STEPS; k += THREADS)
            step[k % (2 * STEPS)] = k < job.k ? job.step(k) : step_t{0, NOWHERE, 0, -1};
    }

    /*  Which four this thread brings in round `s`: neighbouring threads read neighbours in memory, and store to different banks.
     *  Rounds are a constant apart, so that one address does for all. */
    template <bool ALONG_K, int ROWS> static __device__ spot_t spot(int s)
    {
        constexpr int LINE = ALONG_K ? 2 * ROWS : ROWS / 4; /* threads that have all rows */
        constexpr int ROUNDS = THREADS < LINE ? LINE / THREADS : 1, LINES = THREADS < LINE ? 1 : THREADS / LINE;
        static_assert(LINE % THREADS == 0 || THREADS % LINE == 0, "rounds and lines are whole");
        const int t = (int)threadIdx.x, i = LINES > 1 ? t % LINE : t + s % ROUNDS * THREADS;
        const int line = (LINES > 1 ? t / LINE : 0) + s / ROUNDS * LINES;
        if (ALONG_K)
            return {i / 2, t % 2 * 4 + line * 8};
        return {i * 4, line};
    }

    /*  A place of a picture. It came by way of shared memory, and loads from anywhere would be slower. */
    static __device__ const float *number(const place_t &from, const step_t &more)
    {
        const float *at = from.at + more.at;
#ifdef __CUDACC__
        __builtin_assume(__isGlobal(at));
#endif
        return at;
    }

    __device__ bool inside(const place_t &from, const step_t &more) const
    {
        return (uint32_t)(from.y + more.y) < job.h && (uint32_t)(from.x + more.x) < job.w;
    }

    __device__ void fetch_a(const step_t *now, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            const place_t from = row[at.i];
            const step_t more = now[at.k];
            const bool is = inside(from, more);
            if (is)
                held.a[s] = *(const four_t *)number(from, more);
            held.there[s] = is ? 0xf : 0;
        }
    }

    /*  The plain way: each for itself. */
    __device__ void fetch_a_each(const step_t *now, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            held.there[s] = 0;
            CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const place_t from = row[at.i + (Job::A_ALONG_K ? 0 : j)];
                const step_t more = now[at.k + (Job::A_ALONG_K ? j : 0)];
                const bool is = inside(from, more);
                if (is)
                    held.a[s].x[j] = *number(from, more);
                held.there[s] |= (uint32_t)is << j;
            }
        }
    }

    __device__ void fetch_b(const step_t *now, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < B_FOURS; s++) {
            const spot_t at = spot<Job::B_ALONG_K, BN>(s);
            const uint32_t n = n0 + (uint32_t)at.i;
            const int32_t from = now[at.k].b;
            if (n < job.n && from >= 0)
                held.b[s] = *(const four_t *)(job.b + (int64_t)n * job.b_n + from);
        }
    }

    __device__ void fetch_b_each(const step_t *now, held_t &held) const
    {
        CUDA_UNROLL
        for (int s = 0; s < B_FOURS; s++) {
            const spot_t at = spot<Job::B_ALONG_K, BN>(s);
            CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const uint32_t n = n0 + (uint32_t)(at.i + (Job::B_ALONG_K ? 0 : j));
                const int32_t from = now[at.k + (Job::B_ALONG_K ? j : 0)].b;
                if (n < job.n && from >= 0)
                    held.b[s].x[j] = job.b[(int64_t)n * job.b_n + from];
            }
        }
    }

    /*  What is outside stays what it was: of it nothing is kept. */
    __device__ void fetch(uint32_t k0, held_t &held) const
    {
        const step_t *now = step + k0 % (2 * STEPS);
        if (job.a_fours)
            fetch_a(now, held);
        else
            fetch_a_each(now, held);
        if (job.b_fours)
            fetch_b(now, held);
        else
            fetch_b_each(now, held);
    }

    template <bool ALONG_K, int ROW> static __device__ void keep_four(four_t *tile, spot_t at, const four_t &held)
    {
        if (!ALONG_K)
            tile[at.k * ROW + at.i / 4] = held;
        CUDA_UNROLL
        for (int j = 0; ALONG_K && j < 4; j++)
            ((float *)tile)[(at.k + j) * ROW * 4 + at.i] = held.x[j];
    }

    /*  Of the tile from k0 on: something may not be there. */
    __device__ bool asked(uint32_t k0) const
    {
        return job.padded || job.k - k0 < DEEP;
    }

    __device__ void keep(int half, const held_t &held, bool bits) const
    {
        CUDA_UNROLL
        for (int s = 0; s < A_FOURS; s++) {
            const spot_t at = spot<Job::A_ALONG_K, BM>(s);
            const int byte = Job::A_ALONG_K ? (at.i * DEEP + at.k) / 4 : at.i / 4 * DEEP + at.k;
            keep_four<Job::A_ALONG_K, A_ROW>(a + half * DEEP * A_ROW, at, held.a[s]);
            if (bits)
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

    __device__ bits_t find(int half) const
    {
        bits_t bits;
        CUDA_UNROLL
        for (int g = 0; g < TM / 4; g++) {
            CUDA_UNROLL
            for (int w = 0; w < DEEP / 4; w++)
                bits.of[g][w] = there[(half * (BM / 4) + g * (BM / TM) + thread_m()) * (DEEP / 4) + w];
        }
        return bits;
    }

    /*  Of a thread of the warp: something is not. */
    __device__ bool misses(int half) const
    {
        const bits_t bits = find(half);
        uint32_t all = ALL;
        CUDA_UNROLL
        for (int g = 0; g < TM / 4; g++) {
            CUDA_UNROLL
            for (int w = 0; w < DEEP / 4; w++)
                all &= bits.of[g][w];
        }
        return __ballot_sync(0xffffffffu, all != ALL) != 0;
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

    /*  Steps that are there, by fours, so that what they load is on its way at once. */
    __device__ void add_some(float (&sum)[TM][TN], int half, uint32_t left) const
    {
        const bits_t bits = find(half);
        CUDA_UNROLL
        for (int k = 0; k < DEEP; k += 4)
            if ((uint32_t)k < left) {
                CUDA_UNROLL
                for (int i = 0; i < 4; i++)
                    add_step<true>(sum, half, k + i, bits);
            }
    }

    /*  What is in shared memory, `left` steps. A warp goes one way: two would cost the sum of both. */
    __device__ void add_deep(float (&sum)[TM][TN], int half, uint32_t left, bool asked) const
    {
        if (asked && misses(half)) {
            add_some(sum, half, left);
            return;
        }
        CUDA_UNROLL
        for (int k = 0; k < DEEP; k++)
            add_step<false>(sum, half, k, bits_t{});
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

    /*  The tile from k on, which lies in shared memory. */
    __device__ void work(uint32_t k, float (&sum)[TM][TN], float &column) const
    {
        const int half = (int)(k / DEEP % 2);
        if (k % STEPS == 0)
            steps(k + STEPS);
        add_deep(sum, half, job.k - k, asked(k));
        if (has_column())
            add_column(column, half, job.k - k);
    }

    __device__ void compute() const
    {
        static_assert(!Job::COLUMNS || THREADS >= BN, "a thread a column");
        float sum[TM][TN] = {}, column = 0.0f;
        held_t held = {};
        rows();
        steps(0);
        __syncthreads();
        for (uint32_t k = 0;; k += DEEP) {
            if (k < job.k)
                fetch(k, held);
            if (k)
                work(k - DEEP, sum, column);
            if (k >= job.k)
                break;
            keep((int)(k / DEEP % 2), held, asked(k));
            __syncthreads(); /* the tile is whole, and nobody works on the one before, which is stored to next */
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
