/*  dense - products: of a layer, of what goes back through it, of what its weights get; and heads.
 *
 *  A block of 16 x 16 threads computes a tile of the product, each thread PER x PER elements, each element as one chain in the
 *  order of k: a split along k would be another sum. Tiles of both factors, some steps of k deep, lie in shared memory,
 *  [k][row of the factor], twice: while one is worked on the next one's loads are on their way to registers.
 *
 *  Large tiles load and read less for a multiply-add: of 128 x 128 elements four vectors of four numbers for 64 of them. Small
 *  ones are more blocks, without which most of a card would be idle, and deeper, since waiting for memory is what they do. All
 *  give the same bits. */
#include "common/nn/cuda/kernels/unit.cuh"

namespace
{

constexpr unsigned SIDE = 16;  /* threads of a block, along either axis */
constexpr unsigned STEPS = 16; /* of k that are written out one by one */
static_assert(SIDE * SIDE == CUDA_THREADS && SIDE == STEPS, "carrier_t counts on it");

/*  Elements of a thread along either axis: 1, 2, 4, 8, in groups of GROUP that stand SIDE groups apart. A load of shared memory is a vector
 *  of four: of neighbouring elements in large tiles, [k][element], of neighbouring steps in small ones, [element][k]. Four floats more a
 *  row, and what a warp loads or stores meets different banks. */
template <unsigned PER> struct tile_t {
    static constexpr bool DEEP = PER <= 2;
    static constexpr unsigned GROUP = DEEP ? 1 : 4, AT_ONCE = DEEP ? 4 : 1;
    static constexpr unsigned DEPTH = PER == 8 ? 16 : PER == 4 ? 32 : 64; /* steps of k                               */
    static constexpr unsigned ROUNDS = PER * DEPTH / SIDE;                /* numbers of a factor that a thread brings */
    static constexpr unsigned ROW = (DEEP ? DEPTH : SIDE * PER) + 4;
    static constexpr unsigned STEP = DEEP ? 1 : ROW, NEXT = DEEP ? ROW : 1; /* to the next step, to the next element */
    static constexpr unsigned SIZE = (DEEP ? SIDE * PER : DEPTH) * ROW;
};

/*  A warp is 4 x 8 threads: all that it loads of either factor at once are eight vectors, or four. */
__device__ inline unsigned thread_i()
{
    return threadIdx.x / 64 * 4 + threadIdx.x % 32 / 8;
}

__device__ inline unsigned thread_j()
{
    return threadIdx.x / 32 % 2 * 8 + threadIdx.x % 8;
}

/*  Where element e of a thread stands, counted from its first. */
template <unsigned PER> __device__ constexpr unsigned place_of(unsigned e)
{
    return e / tile_t<PER>::GROUP * SIDE * tile_t<PER>::GROUP + e % tile_t<PER>::GROUP;
}

/*  One factor: number i of step k is p[i * along + k * step], i < count. */
struct factor_t {
    const float *p;
    size_t along, step;
    uint32_t count;
};

/*  What a thread brings of a factor's tiles. Neighbouring threads read neighbouring memory: a row of the tile where that is how the
 *  factor lies; where its steps are neighbours (ALONG), eight, a sector, in each of four rows a warp. Of its rounds PER go through 16
 *  steps. */
template <unsigned PER, bool ALONG> struct carrier_t {
    static constexpr unsigned NEXT_I = ALONG ? SIDE : 0, NEXT_K = ALONG ? 0 : SIDE / PER; /* from a round to the next */
    const float *from; /* of round 0 of the tile that is fetched next */
    uint32_t inside;   /* bits by round: the factor has this row      */
    float held[tile_t<PER>::ROUNDS];

    static __device__ unsigned i()
    {
        return ALONG ? threadIdx.x % 32 / 8 + 4 * (threadIdx.x / 64) : threadIdx.x % (SIDE * PER);
    }
    static __device__ unsigned k()
    {
        return ALONG ? threadIdx.x % 8 + 8 * (threadIdx.x / 32 % 2) : threadIdx.x / (SIDE * PER);
    }

    __device__ carrier_t(const factor_t &f, uint32_t first)
        : from(f.p + ((size_t)first + i()) * f.along + k() * f.step), inside(0)
    {
        CUDA_UNROLL
        for (unsigned r = 0; r < PER; r++)
            inside |= (uint32_t)(i() + r * NEXT_I < f.count - first) << r;
    }

    /*  Numbers of the next tile, of which `left` steps are there. Behind the factor's end: 0, of which nothing is kept. */
    __device__ void fetch(const factor_t &f, uint32_t left)
    {
        const size_t apart = ALONG ? NEXT_I * f.along : NEXT_K * f.step;
        CUDA_UNROLL
        for (unsigned s = 0; s < tile_t<PER>::ROUNDS; s++) {
            const unsigned r = s % PER, deep = s / PER * SIDE;
            const bool there = (inside >> r & 1) && k() + r * NEXT_K + deep < left;
            held[s] = there ? from[r * apart + deep * f.step] : 0.0f;
        }
        from += tile_t<PER>::DEPTH * f.step;
    }

    __device__ void keep(float *tile) const
    {
        constexpr unsigned STEP = tile_t<PER>::STEP, NEXT = tile_t<PER>::NEXT;
        tile += k() * STEP + i() * NEXT;
        CUDA_UNROLL
        for (unsigned s = 0; s < tile_t<PER>::ROUNDS; s++)
            tile[s % PER * (NEXT_K * STEP + NEXT_I * NEXT) + s / PER * SIDE * STEP] = held[s];
    }
};

/*  What a thread has of the product: its elements from (i, j) on, and of the sum of b over k, if asked for. */
template <unsigned PER> struct sums_t {
    uint32_t i, j;
    float sum[PER][PER];
    float column[PER];
};

/*  A thread's elements of a tile, of the steps that are loaded at once. */
template <unsigned PER> struct operand_t {
    float x[PER][tile_t<PER>::AT_ONCE];

    __device__ operand_t(const float *tile, unsigned thread)
    {
        using of = tile_t<PER>;
        tile += thread * of::GROUP * of::NEXT;
        CUDA_UNROLL
        for (unsigned e = 0; e < PER; e += of::GROUP) {
            const four_t four = *reinterpret_cast<const four_t *>(tile + place_of<PER>(e) * of::NEXT);
            CUDA_UNROLL
            for (unsigned q = 0; q < 4; q++)
                x[of::DEEP ? e : e + q][of::DEEP ? q : 0] = four.x[q];
        }
    }
};

/*  `there` steps of those that are loaded at once. One that is not there is not made: one more 0 would turn -0 into 0. */
template <unsigned PER, bool SKIP>
__device__ void some_steps(const float *a_tile, const float *b_tile, unsigned there, bool columns, sums_t<PER> &mine)
{
    const operand_t<PER> a(a_tile, thread_i()), b(b_tile, thread_j());
    CUDA_UNROLL
    for (unsigned q = 0; q < tile_t<PER>::AT_ONCE; q++) {
        if (q >= there)
            break;
        CUDA_UNROLL
        for (unsigned r = 0; r < PER; r++) {
            CUDA_UNROLL
            for (unsigned c = 0; c < PER; c++)
                if (!SKIP || a.x[r][q] != 0.0f)
                    mine.sum[r][c] = __fmaf_rn(a.x[r][q], b.x[c][q], mine.sum[r][c]);
        }
        CUDA_UNROLL
        for (unsigned c = 0; columns && c < PER; c++)
            mine.column[c] = __fadd_rn(mine.column[c], b.x[c][q]);
    }
}

/*  `steps` of a tile. */
template <unsigned PER, bool SKIP>
__device__ void work(const float *a, const float *b, uint32_t steps, bool columns, sums_t<PER> &mine)
{
    constexpr unsigned STEP = tile_t<PER>::STEP, AT_ONCE = tile_t<PER>::AT_ONCE;
    uint32_t done = 0;
    for (; done + STEPS <= steps; done += STEPS, a += STEPS * STEP, b += STEPS * STEP) {
        CUDA_UNROLL
        for (unsigned s = 0; s < STEPS; s += AT_ONCE)
            some_steps<PER, SKIP>(a + s * STEP, b + s * STEP, AT_ONCE, columns, mine);
    }
    for (; done < steps; done += AT_ONCE, a += AT_ONCE * STEP, b += AT_ONCE * STEP)
        some_steps<PER, SKIP>(a, b, steps - done, columns, mine);
}

/*  A tile of the product of all `steps`, from (first_i, first_j) on: the chains of `mine` go on from what they hold. */
template <unsigned PER, bool SKIP, bool A_ALONG, bool B_ALONG>
__device__ void product(const factor_t &a, const factor_t &b, uint32_t first_i, uint32_t first_j, uint32_t steps,
    bool columns, sums_t<PER> &mine)
{
    constexpr unsigned DEPTH = tile_t<PER>::DEPTH, SIZE = tile_t<PER>::SIZE;
    CUDA_STATIC_SHARED(four_t, a_shared, 2 * SIZE / 4);
    CUDA_STATIC_SHARED(four_t, b_shared, 2 * SIZE / 4);
    float *a_tile = a_shared->x, *b_tile = b_shared->x;
    carrier_t<PER, A_ALONG> a_side(a, first_i);
    carrier_t<PER, B_ALONG> b_side(b, first_j);
    a_side.fetch(a, steps);
    b_side.fetch(b, steps);
    unsigned half = 0;
    for (uint32_t k = 0; k < steps; k += DEPTH, half = SIZE - half) {
        a_side.keep(a_tile + half);
        b_side.keep(b_tile + half);
        __syncthreads(); /* the tile is whole, and nobody works on the one before, which is stored to next */
        const uint32_t left = steps - k;
        if (left > DEPTH) {
            a_side.fetch(a, left - DEPTH);
            b_side.fetch(b, left - DEPTH);
        }
        work<PER, SKIP>(a_tile + half, b_tile + half, left < DEPTH ? left : DEPTH, columns, mine);
    }
}

/*  The tile of a block whose number is `tile`, `across` of them side by side. */
template <unsigned PER>
__device__ sums_t<PER> sums_of(unsigned tile, unsigned across, uint32_t *first_i, uint32_t *first_j)
{
    constexpr unsigned GROUP = tile_t<PER>::GROUP;
    *first_i = tile / across * SIDE * PER;
    *first_j = tile % across * SIDE * PER;
    return {*first_i + thread_i() * GROUP, *first_j + thread_j() * GROUP, {}, {}};
}

/*  Which tiles a product of m x n, `times` of them, is cut into: those that take least by what a multiprocessor needs for a step of k
 *  of one, in cycles on paper (its loads from shared memory, or with large ones its multiply-adds), as many at once as a card has multiprocessors. */
unsigned per_of(uint32_t m, uint32_t n, uint32_t times)
{
    static const uint64_t cycles[] = {6, 12, 36, 130};
    unsigned best = 1;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t tiles = (uint64_t)cuda_blocks(m, SIDE << i) * cuda_blocks(n, SIDE << i) * times;
        const uint64_t takes = (tiles + CUDA_MULTIPROCESSORS - 1) / CUDA_MULTIPROCESSORS * cycles[i];
        if (takes < least) {
            least = takes;
            best = 1u << i;
        }
    }
    return best;
}

/* ---- layers --------------------------------------------------------------------------------------------------------- */

template <unsigned PER> __device__ void begin(const cuda_gemm_t &job, sums_t<PER> &mine)
{
    const bool biased = job.kind == CUDA_TANH || job.kind == CUDA_RELU || job.kind == CUDA_SUM;
    CUDA_UNROLL
    for (unsigned c = 0; biased && c < PER; c++) {
        const size_t j = mine.j + place_of<PER>(c);
        const float bias = j < job.n ? job.bias[j] : 0.0f;
        CUDA_UNROLL
        for (unsigned r = 0; r < PER; r++)
            mine.sum[r][c] = bias;
    }
}

/*  Of some rows what their ends read, all of it at once: a store may be to where the next load is from, for all that the compiler knows. */
template <unsigned PER> __device__ void end(const cuda_gemm_t &job, const sums_t<PER> &mine)
{
    constexpr unsigned ROWS = PER < 4 ? PER : 4;
    const bool back = job.kind == CUDA_D_TANH || job.kind == CUDA_D_RELU;
    CUDA_UNROLL
    for (unsigned first = 0; first < PER; first += ROWS) {
        float h[ROWS][PER], before[ROWS][PER];
        CUDA_UNROLL
        for (unsigned e = 0; e < ROWS * PER; e++) {
            const size_t i = mine.i + place_of<PER>(first + e / PER), j = mine.j + place_of<PER>(e % PER);
            const bool there = i < job.m && j < job.n;
            h[e / PER][e % PER] = back && there ? job.h[i * job.h_row + j] : 0.0f;
            before[e / PER][e % PER] = job.add && there ? job.c[i * job.c_row + j] : 0.0f;
        }
        CUDA_UNROLL
        for (unsigned e = 0; e < ROWS * PER; e++) {
            const size_t i = mine.i + place_of<PER>(first + e / PER), j = mine.j + place_of<PER>(e % PER);
            if (i >= job.m || j >= job.n)
                continue;
            const float out = ended(job.kind, mine.sum[first + e / PER][e % PER], h[e / PER][e % PER]);
            job.c[i * job.c_row + j] = job.add ? __fadd_rn(before[e / PER][e % PER], out) : out;
        }
    }
}

template <unsigned PER, bool SKIP, bool B_ALONG> __global__ void gemm(cuda_gemm_t job, unsigned across)
{
    uint32_t first_i, first_j;
    sums_t<PER> mine = sums_of<PER>(blockIdx.x, across, &first_i, &first_j);
    const factor_t a = {job.a, job.a_row, job.a_k, job.m}, b = {job.b, job.b_col, job.b_k, job.n};
    begin(job, mine);
    product<PER, SKIP, true, B_ALONG>(a, b, first_i, first_j, job.k, false, mine);
    end(job, mine);
}

template <unsigned PER> void launch_gemm(cudaStream_t stream, const cuda_gemm_t &job)
{
    const unsigned across = cuda_blocks(job.n, SIDE * PER);
    const auto kernel = job.skip_zeros ? gemm<PER, true, false>
                        : job.b_k == 1 ? gemm<PER, false, true>
                                       : gemm<PER, false, false>;
    CUDA_LAUNCH(kernel, cuda_blocks(job.m, SIDE * PER) * across, CUDA_THREADS, 0, stream, job, across);
}

/* ---- what weights and biases get ------------------------------------------------------------------------------------ */

/*  The first row of tiles has the biases' sums, of the same numbers: threads of the first row keep them. */
template <unsigned PER> __device__ void put(const cuda_outer_t &job, const sums_t<PER> &mine, float *grad)
{
    CUDA_UNROLL
    for (unsigned c = 0; c < PER; c++) {
        const size_t j = mine.j + place_of<PER>(c);
        CUDA_UNROLL
        for (unsigned r = 0; r < PER; r++) {
            const size_t i = mine.i + place_of<PER>(r);
            if (i < job.m && j < job.n)
                grad[job.at + i * job.n + j] = mine.sum[r][c];
        }
        if (mine.i == 0 && j < job.n)
            grad[job.bias_at + j] = mine.column[c];
    }
}

template <unsigned PER, bool SKIP> __global__ void outer(cuda_outer_t job, cuda_shards_t shards, unsigned across)
{
    uint32_t first_i, first_j;
    sums_t<PER> mine = sums_of<PER>(blockIdx.x, across, &first_i, &first_j);
    const size_t row = shards.first[blockIdx.y];
    const uint32_t rows = shards.first[blockIdx.y + 1] - shards.first[blockIdx.y];
    const factor_t x = {job.x + row * job.x_row, 1, job.x_row, job.m},
                   d = {job.d + row * job.d_row, 1, job.d_row, job.n};
    product<PER, SKIP, false, false>(x, d, first_i, first_j, rows, first_i == 0, mine);
    put(job, mine, shards.grad[blockIdx.y]);
}

template <unsigned PER> void launch_outer(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t &job)
{
    const unsigned across = cuda_blocks(job.n, SIDE * PER);
    const unsigned tiles = cuda_blocks(job.m, SIDE * PER) * across;
    const auto kernel = job.skip_zeros ? outer<PER, true> : outer<PER, false>;
    cuda_each_shards(run, [&](uint32_t at, uint32_t count) {
        CUDA_LAUNCH(kernel, dim3(tiles, count), CUDA_THREADS, 0, stream, job, cuda_shards(run, at, count), across);
    });
}

/* ---- heads ---------------------------------------------------------------------------------------------------------- */

constexpr unsigned AHEAD = 4; /* numbers of a lane that are loaded at once */

/*  Outputs a .. a + OUTS - 1 of one row. The CPU's rows end with zeros up to a whole vector, and their products count:
 *  they turn -0 into 0. */
__device__ void lane_sums(const cuda_dots_t &job, const float *x, uint32_t a, float (&sum)[OUTS])
{
    for (uint32_t at = 0; at < job.k; at += AHEAD * LANES) {
        float number[AHEAD], weight[AHEAD][OUTS];
        CUDA_UNROLL
        for (unsigned s = 0; s < AHEAD; s++) {
            const uint32_t k = at + s * LANES + threadIdx.x % LANES;
            number[s] = k < job.k ? x[k] : 0.0f;
            CUDA_UNROLL
            for (unsigned c = 0; c < OUTS; c++)
                weight[s][c] = k < job.k && a + c < job.outs ? job.w[(size_t)k * job.outs + a + c] : 0.0f;
        }
        CUDA_UNROLL
        for (unsigned s = 0; s < AHEAD; s++) {
            CUDA_UNROLL
            for (unsigned c = 0; c < OUTS; c++)
                if (at + s * LANES < job.k)
                    sum[c] = __fmaf_rn(number[s], weight[s][c], sum[c]);
        }
    }
}

/*  Half a warp a row. Those behind the last row compute it once more, for a shuffle wants all of a warp. */
__global__ void dots(cuda_dots_t job)
{
    const size_t mine = cuda_thread() / LANES, row = mine < job.rows ? mine : job.rows - 1;
    for (uint32_t a = 0; a < job.outs; a += OUTS) {
        float sum[OUTS] = {};
        lane_sums(job, job.x + row * job.k, a, sum);
        CUDA_UNROLL
        for (unsigned c = 0; c < OUTS; c++) {
            const float dot = sum_of_lanes(sum[c]);
            if (threadIdx.x % LANES == 0 && mine < job.rows && a + c < job.outs)
                job.out[cuda_place(job.slot, row, job.outs, a + c)] = __fadd_rn(dot, job.bias[a + c]);
        }
    }
}

__global__ void rows_of_columns(uint32_t rows, const uint32_t *slot, uint32_t outs, const float *columns, float *out)
{
    const size_t e = cuda_thread();
    if (e < (size_t)rows * outs)
        out[e] = columns[cuda_place(slot, e / outs, outs, (uint32_t)(e % outs))];
}

__global__ void add_rows(size_t count, const float *more, float *out)
{
    const size_t e = cuda_thread();
    if (e < count)
        out[e] = __fadd_rn(out[e], more[e]);
}

} // namespace

void cuda_gemm(cudaStream_t stream, const cuda_gemm_t *job)
{
    if (!job->m || !job->n)
        return;
    switch (per_of(job->m, job->n, 1)) {
    case 8:
        return launch_gemm<8>(stream, *job);
    case 4:
        return launch_gemm<4>(stream, *job);
    case 2:
        return launch_gemm<2>(stream, *job);
    default:
        return launch_gemm<1>(stream, *job);
    }
}

void cuda_outer(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job)
{
    if (!job->m || !job->n)
        return;
    switch (per_of(job->m, job->n, run->hi - run->lo)) {
    case 8:
        return launch_outer<8>(stream, run, *job);
    case 4:
        return launch_outer<4>(stream, run, *job);
    case 2:
        return launch_outer<2>(stream, run, *job);
    default:
        return launch_outer<1>(stream, run, *job);
    }
}

void cuda_dots(cudaStream_t stream, const cuda_dots_t *job)
{
    if (job->rows)
        CUDA_LAUNCH(dots, cuda_blocks(job->rows, CUDA_THREADS / LANES), CUDA_THREADS, 0, stream, *job);
}

void cuda_rows_of_columns(
    cudaStream_t stream, uint32_t rows, const uint32_t *slot, uint32_t outs, const float *columns, float *out)
{
    const size_t count = (size_t)rows * outs;
    if (count)
        CUDA_LAUNCH(
            rows_of_columns, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, rows, slot, outs, columns, out);
}

void cuda_add_rows(cudaStream_t stream, size_t count, const float *more, float *out)
{
    if (count)
        CUDA_LAUNCH(add_rows, cuda_blocks(count, CUDA_THREADS), CUDA_THREADS, 0, stream, count, more, out);
}
