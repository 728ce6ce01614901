/*  dense - products: of a layer, of what goes back through it, of what its weights get; and heads.
 *
 *  A block of 16 x 16 threads computes a tile of the product, each thread PER x PER elements side by side, each element as one
 *  chain in the order of k: a split along k would be another sum. Tiles of both factors, DEPTH steps of k, lie in shared memory,
 *  [k][row of the factor], twice: while one is worked on the next one's loads are on their way to registers.
 *
 *  Wide tiles (64 x 64) read 8 numbers for 16 multiply-adds, as two vectors of four. Narrow ones (16 x 16) have sixteen times
 *  the blocks: small products would leave most of a card idle otherwise. Both give the same bits. */
#include "common/nn/cuda/kernels/unit.cuh"

namespace
{

constexpr unsigned SIDE = 16;        /* threads of a block, along either axis        */
constexpr unsigned DEPTH = 16;       /* steps of k in a tile                         */
constexpr unsigned PER_NARROW = 1;   /* elements of a thread, along either axis      */
constexpr unsigned PER_WIDE = 4;     /* so that a tile's row is read as vectors      */
constexpr uint64_t WIDE_BLOCKS = 32; /* tiles below which narrow ones are worth more */
constexpr uint32_t WIDE_LEAST = 32;  /* and rows or columns                          */
static_assert(SIDE * SIDE == CUDA_THREADS && SIDE == DEPTH, "place_of() counts on it");

/*  One factor: number i of step k is p[i * along + k * step], i < count. */
struct factor_t {
    const float *p;
    size_t along, step;
    uint32_t count;
};

/*  PER neighbours of a tile's row: one load of shared memory. */
template <unsigned PER> struct alignas(PER * sizeof(float)) some_t {
    float x[PER];
};

/*  A row of a tile, and 4 floats more: threads that store eight steps of four rows then meet 32 different banks. */
template <unsigned PER> constexpr unsigned STRIDE = SIDE *PER + 4;

struct place_t {
    unsigned i, k;
};

/*  The number of a tile that this thread brings in round `s`. Neighbouring threads read neighbouring memory: a row of the
 *  tile where that is how the factor lies; where its steps are neighbours, eight (a sector) in each of four rows a warp. */
template <unsigned PER> __device__ place_t place_of(const factor_t &f, unsigned s)
{
    const unsigned t = threadIdx.x;
    if (f.step == 1)
        return {t % 32 / 8 + 4 * (t / 64) + 16 * s, t % 8 + 8 * (t / 32 % 2)};
    const unsigned e = t + CUDA_THREADS * s;
    return {e % (SIDE * PER), e / (SIDE * PER)};
}

/*  This thread's numbers of the tile from (first, step) on; `left` steps are there. Behind the factor's end: 0, of which
 *  nothing is kept. */
template <unsigned PER>
__device__ void fetch(const factor_t &f, uint32_t first, uint32_t step, uint32_t left, float (&held)[PER])
{
    CUDA_UNROLL
    for (unsigned s = 0; s < PER; s++) {
        const place_t at = place_of<PER>(f, s);
        const bool there = at.i < f.count - first && at.k < left;
        held[s] = there ? f.p[((size_t)first + at.i) * f.along + ((size_t)step + at.k) * f.step] : 0.0f;
    }
}

template <unsigned PER> __device__ void keep(const factor_t &f, some_t<PER> *tile, const float (&held)[PER])
{
    CUDA_UNROLL
    for (unsigned s = 0; s < PER; s++) {
        const place_t at = place_of<PER>(f, s);
        const unsigned e = at.k * STRIDE<PER> + at.i;
        tile[e / PER].x[e % PER] = held[s];
    }
}

/*  What a thread has of the product: its elements from (i, j) on, and of the sum of b over k, if asked for. */
template <unsigned PER> struct sums_t {
    uint32_t i, j;
    float sum[PER][PER];
    float column[PER];
};

template <unsigned PER, bool SKIP>
__device__ void one_step(const some_t<PER> *a_row, const some_t<PER> *b_row, bool columns, sums_t<PER> &mine)
{
    const some_t<PER> a = a_row[threadIdx.x / SIDE], b = b_row[threadIdx.x % SIDE];
    CUDA_UNROLL
    for (unsigned r = 0; r < PER; r++) {
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            if (!SKIP || a.x[r] != 0.0f)
                mine.sum[r][c] = __fmaf_rn(a.x[r], b.x[c], mine.sum[r][c]);
    }
    CUDA_UNROLL
    for (unsigned c = 0; columns && c < PER; c++)
        mine.column[c] = __fadd_rn(mine.column[c], b.x[c]);
}

/*  A tile of the product of all `steps`, from (first_i, first_j) on: the chains of `mine` go on from what they hold. Only
 *  the last tile of k is short, and a step that is not there is not made: one more 0 would turn -0 into 0. */
template <unsigned PER, bool SKIP>
__device__ void product(const factor_t &a, const factor_t &b, uint32_t first_i, uint32_t first_j, uint32_t steps,
    bool columns, sums_t<PER> &mine)
{
    constexpr unsigned ROW = STRIDE<PER> / PER, TILE = DEPTH * ROW;
    CUDA_STATIC_SHARED(some_t<PER>, a_tile, 2 * TILE);
    CUDA_STATIC_SHARED(some_t<PER>, b_tile, 2 * TILE);
    float a_held[PER], b_held[PER];
    fetch<PER>(a, first_i, 0, steps, a_held);
    fetch<PER>(b, first_j, 0, steps, b_held);
    unsigned half = 0;
    for (uint32_t k = 0; k < steps; k += DEPTH, half ^= TILE) {
        keep<PER>(a, a_tile + half, a_held);
        keep<PER>(b, b_tile + half, b_held);
        __syncthreads(); /* the tile is whole, and nobody works on the one before, which is stored to next */
        const uint32_t left = steps - k;
        if (left > DEPTH) {
            fetch<PER>(a, first_i, k + DEPTH, left - DEPTH, a_held);
            fetch<PER>(b, first_j, k + DEPTH, left - DEPTH, b_held);
        }
        if (left >= DEPTH) {
            CUDA_UNROLL
            for (unsigned s = 0; s < DEPTH; s++)
                one_step<PER, SKIP>(a_tile + half + s * ROW, b_tile + half + s * ROW, columns, mine);
        } else {
            for (unsigned s = 0; s < left; s++)
                one_step<PER, SKIP>(a_tile + half + s * ROW, b_tile + half + s * ROW, columns, mine);
        }
    }
}

/*  The tile of a block whose number is `tile`, `across` of them side by side. */
template <unsigned PER>
__device__ sums_t<PER> sums_of(unsigned tile, unsigned across, uint32_t *first_i, uint32_t *first_j)
{
    *first_i = tile / across * SIDE * PER;
    *first_j = tile % across * SIDE * PER;
    return {*first_i + threadIdx.x / SIDE * PER, *first_j + threadIdx.x % SIDE * PER, {}, {}};
}

bool wide(uint32_t m, uint32_t n, uint32_t times)
{
    const uint64_t tiles = (uint64_t)cuda_blocks(m, SIDE * PER_WIDE) * cuda_blocks(n, SIDE * PER_WIDE) * times;
    return m >= WIDE_LEAST && n >= WIDE_LEAST && tiles >= WIDE_BLOCKS;
}

/* ---- layers --------------------------------------------------------------------------------------------------------- */

template <unsigned PER> __device__ void begin(const cuda_gemm_t &job, sums_t<PER> &mine)
{
    const bool biased = job.kind == CUDA_TANH || job.kind == CUDA_RELU || job.kind == CUDA_SUM;
    for (unsigned c = 0; biased && c < PER && mine.j + c < job.n; c++)
        for (unsigned r = 0; r < PER; r++)
            mine.sum[r][c] = job.bias[mine.j + c];
}

template <unsigned PER> __device__ void end(const cuda_gemm_t &job, const sums_t<PER> &mine)
{
    const bool back = job.kind == CUDA_D_TANH || job.kind == CUDA_D_RELU;
    CUDA_UNROLL
    for (unsigned r = 0; r < PER; r++) {
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++) {
            const size_t i = mine.i + r, j = mine.j + c;
            if (i >= job.m || j >= job.n)
                continue;
            float *to = job.c + i * job.c_row + j;
            const float out = ended(job.kind, mine.sum[r][c], back ? job.h[i * job.h_row + j] : 0.0f);
            *to = job.add ? __fadd_rn(*to, out) : out;
        }
    }
}

template <unsigned PER, bool SKIP> __global__ void gemm(cuda_gemm_t job, unsigned across)
{
    uint32_t first_i, first_j;
    sums_t<PER> mine = sums_of<PER>(blockIdx.x, across, &first_i, &first_j);
    const factor_t a = {job.a, job.a_row, job.a_k, job.m}, b = {job.b, job.b_col, job.b_k, job.n};
    begin(job, mine);
    product<PER, SKIP>(a, b, first_i, first_j, job.k, false, mine);
    end(job, mine);
}

template <unsigned PER, bool SKIP> void launch_gemm(cudaStream_t stream, const cuda_gemm_t &job)
{
    const unsigned across = cuda_blocks(job.n, SIDE * PER);
    const auto kernel = gemm<PER, SKIP>;
    CUDA_LAUNCH(kernel, cuda_blocks(job.m, SIDE * PER) * across, CUDA_THREADS, 0, stream, job, across);
}

/* ---- what weights and biases get ------------------------------------------------------------------------------------ */

/*  The first row of tiles has the biases' sums, of the same numbers: its first 16 threads keep them. */
template <unsigned PER> __device__ void put(const cuda_outer_t &job, const sums_t<PER> &mine, float *grad)
{
    CUDA_UNROLL
    for (unsigned c = 0; c < PER; c++) {
        const size_t j = mine.j + c;
        CUDA_UNROLL
        for (unsigned r = 0; r < PER; r++) {
            const size_t i = mine.i + r;
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
    product<PER, SKIP>(x, d, first_i, first_j, rows, first_i == 0, mine);
    put(job, mine, shards.grad[blockIdx.y]);
}

template <unsigned PER, bool SKIP>
void launch_outer(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t &job)
{
    const unsigned across = cuda_blocks(job.n, SIDE * PER);
    const unsigned tiles = cuda_blocks(job.m, SIDE * PER) * across;
    const auto kernel = outer<PER, SKIP>;
    cuda_each_shards(run, [&](uint32_t at, uint32_t count) {
        CUDA_LAUNCH(kernel, dim3(tiles, count), CUDA_THREADS, 0, stream, job, cuda_shards(run, at, count), across);
    });
}

/* ---- heads ---------------------------------------------------------------------------------------------------------- */

/*  Outputs a .. a + OUTS - 1 of one row. The CPU's rows end with zeros up to a whole vector, and their products count:
 *  they turn -0 into 0. */
__device__ void lane_sums(const cuda_dots_t &job, const float *x, uint32_t a, float (&sum)[OUTS])
{
    for (uint32_t at = 0; at < job.k; at += LANES) {
        const uint32_t k = at + threadIdx.x % LANES;
        const float number = k < job.k ? x[k] : 0.0f;
        CUDA_UNROLL
        for (unsigned c = 0; c < OUTS; c++) {
            const bool there = k < job.k && a + c < job.outs;
            sum[c] = __fmaf_rn(number, there ? job.w[(size_t)k * job.outs + a + c] : 0.0f, sum[c]);
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
    if (wide(job->m, job->n, 1))
        (job->skip_zeros ? launch_gemm<PER_WIDE, true> : launch_gemm<PER_WIDE, false>)(stream, *job);
    else
        (job->skip_zeros ? launch_gemm<PER_NARROW, true> : launch_gemm<PER_NARROW, false>)(stream, *job);
}

void cuda_outer(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job)
{
    if (!job->m || !job->n)
        return;
    if (wide(job->m, job->n, run->hi - run->lo))
        (job->skip_zeros ? launch_outer<PER_WIDE, true> : launch_outer<PER_WIDE, false>)(stream, run, *job);
    else
        (job->skip_zeros ? launch_outer<PER_NARROW, true> : launch_outer<PER_NARROW, false>)(stream, run, *job);
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
