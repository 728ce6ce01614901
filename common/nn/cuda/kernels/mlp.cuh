/*  mlp - a block of rows through small networks and back, by one block of threads: what cuda_fused_t asks for, but for the loss
 *  (loss.cuh has the kernel).
 *
 *  Numbers of the rows lie in shared memory in columns, a unit's rows side by side; weights are read where they lie, which is the
 *  first-level cache once mlp_touch has been there. Every sum is one thread's and one chain, in the order of dense.cu: of a layer
 *  over what it reads, of what goes back over the outputs, of a weight over the rows. The last goes on from block to block through
 *  the gradient itself, each number of which is one thread's.
 *  What comes to a layer's units takes the place of what they gave.
 *  Two trained stages go side by side, each by half of the threads, so that there are half as many barriers to wait at. */
#pragma once
#include "common/nn/cuda/kernels/unit.cuh"

#define MLP_FN static __device__ __forceinline__

constexpr unsigned MLP_THREADS = 512; /* so that two times 64 units times 32 rows are eight sums a thread */
constexpr unsigned MLP_ROWS = CUDA_BLOCK;
constexpr unsigned MLP_STEPS = 4; /* of a chain whose weights are on their way at once */

/*  Instructions that are fetched once had better run often: the cache for them is as small as one such loop, unrolled. */
#define MLP_ROLLED CUDA_UNROLL_BY(1)

/*  A block of rows on its way. */
struct mlp_block_t {
    const cuda_fused_t *job;
    float *shared;
    float *grad; /* of the shard */
    const uint32_t *row;
    uint32_t rows;                  /* 1 .. MLP_ROWS */
    bool first;                     /* of the shard: its gradient is zeros */
    float touched[CUDA_MLP_STAGES]; /* weights, of mlp_touch */
};

/*  Threads of a stage, which of them this one is, and of which of those side by side. */
struct mlp_team_t {
    uint32_t me, threads, number;
};

MLP_FN four_t mlp_load(const float *from)
{
    return *reinterpret_cast<const four_t *>(from);
}

/*  Layer l's units, or for l = 0 the observation: what layer l reads. */
MLP_FN float *mlp_input(const mlp_block_t &block, const cuda_mlp_t &mlp, uint32_t l)
{
    return block.shared + mlp.input_at[l];
}

/*  A number of each line of the weights, which are on their way to the first-level cache then, all at once and not line by line as
 *  a layer comes to them. */
MLP_FN void mlp_touch(mlp_block_t *block)
{
    constexpr uint32_t LINE = 32;
    CUDA_UNROLL
    for (uint32_t i = 0; i < CUDA_MLP_STAGES; i++) {
        const cuda_mlp_t &mlp = block->job->mlp[i];
        const uint32_t at = mlp.layer[0].weight_at + threadIdx.x * LINE;
        const bool there = i < block->job->stages && at < mlp.layer[mlp.layers].bias_at;
        block->touched[i] = there ? mlp.params[at] : 0.0f;
    }
}

/*  Their sum is nobody's, but what nothing is made of is not loaded: it goes where behind the next barrier is what the first layer
 *  gives. */
MLP_FN void mlp_touched(const mlp_block_t &block)
{
    const uint32_t at = block.job->mlp[0].input_at[1] + threadIdx.x;
    if (at >= block.job->floats)
        return;
    float sum = 0.0f;
    for (const float one : block.touched)
        sum += one;
    block.shared[at] = sum;
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/*  Behind the last row: zeros. */
MLP_FN float mlp_observed(const mlp_block_t &block, uint32_t frame, uint32_t r, uint32_t k)
{
    const cuda_fused_t *job = block.job;
    if (r >= block.rows)
        return 0.0f;
    const uint8_t *row = job->rows[frame] + block.row[r] * job->row_bytes[frame];
    return job->bytes ? (float)row[k] : reinterpret_cast<const float *>(row)[k];
}

MLP_FN void mlp_gather(const mlp_block_t &block, uint32_t frame)
{
    const uint32_t obs = block.job->obs;
    for (uint32_t e = threadIdx.x; e < obs * MLP_ROWS; e += MLP_THREADS) {
        const uint32_t r = e / obs, k = e % obs;
        block.shared[k * CUDA_MLP_COLUMN + r] = mlp_observed(block, frame, r, k);
    }
}

/*  Each sum becomes end(c, sum): one loop an activation, for a choice a number is a branch a number. */
template <typename end_t> MLP_FN void mlp_each(float (&sum)[CUDA_MLP_PER], end_t end)
{
    CUDA_UNROLL
    for (unsigned c = 0; c < CUDA_MLP_PER; c++)
        sum[c] = end(c, sum[c]);
}

/*  As ended(). h: on the way back, what the units gave, `CUDA_MLP_COLUMN` apart. */
MLP_FN void mlp_end(cuda_kind_t kind, const float *h, float (&sum)[CUDA_MLP_PER])
{
    if (kind == CUDA_TANH)
        mlp_each(sum, [](unsigned, float x) { return tt_tanhf(x); });
    else if (kind == CUDA_RELU)
        mlp_each(sum, [](unsigned, float x) { return tt_reluf(x); });
    else if (kind == CUDA_D_TANH)
        mlp_each(sum, [=](unsigned c, float x) { return tt_tanh_back(h[c * CUDA_MLP_COLUMN], x); });
    else if (kind == CUDA_D_RELU)
        mlp_each(sum, [=](unsigned c, float x) { return tt_relu_back(h[c * CUDA_MLP_COLUMN], x); });
}

/*  STEPS steps of the chains of CUDA_MLP_PER rows. */
template <unsigned STEPS, bool SKIP>
MLP_FN void mlp_steps(const float *x, const float *weight, uint32_t outs, float (&sum)[CUDA_MLP_PER])
{
    float w[STEPS];
    CUDA_UNROLL
    for (unsigned k = 0; k < STEPS; k++)
        w[k] = weight[k * outs];
    CUDA_UNROLL
    for (unsigned k = 0; k < STEPS; k++) {
        four_t some[CUDA_MLP_PER / 4];
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER / 4; c++)
            some[c] = mlp_load(x + k * CUDA_MLP_COLUMN + 4 * c);
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            if (!SKIP || some[c / 4].x[c % 4] != 0.0f)
                sum[c] = __fmaf_rn(some[c / 4].x[c % 4], w[k], sum[c]);
    }
}

/*  A thread has a unit of CUDA_MLP_PER rows: a weight is loaded once for all of them. */
template <bool SKIP>
MLP_FN void mlp_layer(const mlp_team_t &team, const cuda_mlp_layer_t &layer, const cuda_mlp_t &mlp, uint32_t rows,
    const float *x, float *out)
{
    const uint32_t outs = layer.out;
    MLP_ROLLED
    for (uint32_t e = team.me; e < outs * (MLP_ROWS / CUDA_MLP_PER); e += team.threads) {
        const uint32_t j = e % outs, r = e / outs * CUDA_MLP_PER;
        const float *weight = mlp.params + layer.weight_at + j, *from = x + r;
        float sum[CUDA_MLP_PER], *to = out + j * CUDA_MLP_COLUMN + r;
        if (r >= rows)
            continue;
        for (float &one : sum)
            one = mlp.params[layer.bias_at + j];
        uint32_t k = 0;
        MLP_ROLLED
        for (; k + MLP_STEPS <= layer.in; k += MLP_STEPS) {
            mlp_steps<MLP_STEPS, SKIP>(from, weight, outs, sum);
            from += MLP_STEPS * CUDA_MLP_COLUMN;
            weight += MLP_STEPS * outs;
        }
        MLP_ROLLED
        for (; k < layer.in; k++, from += CUDA_MLP_COLUMN, weight += outs)
            mlp_steps<1, SKIP>(from, weight, outs, sum);
        mlp_end(mlp.forward, to, sum);
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c += 4)
            *reinterpret_cast<four_t *>(to + c) = {sum[c], sum[c + 1], sum[c + 2], sum[c + 3]};
    }
}

/*  A lane's part of dots of a row with outputs a .. a+outs-1, as of dots() in dense.cu: also the zeros behind the last number. */
MLP_FN void mlp_dots(
    const cuda_mlp_layer_t &head, const float *weight, uint32_t outs, const float *x, float (&sum)[OUTS])
{
    const uint32_t end = (head.in + LANES - 1) / LANES * LANES;
    MLP_ROLLED
    for (uint32_t k = threadIdx.x % LANES; k < end; k += LANES) {
        const bool there = k < head.in;
        const float number = there ? x[k * CUDA_MLP_COLUMN] : 0.0f, *from = weight + k * head.out;
        CUDA_UNROLL
        for (unsigned c = 0; c < OUTS; c++)
            if (c < outs)
                sum[c] = __fmaf_rn(number, there ? from[c] : 0.0f, sum[c]);
    }
}

/*  Half a warp a row. Columns as a loss sees them: zeros behind the last row. */
MLP_FN void mlp_head(const mlp_team_t &team, const cuda_mlp_layer_t &head, const float *params, uint32_t rows,
    const float *x, float *out)
{
    static_assert(MLP_ROWS % (MLP_THREADS / LANES) == 0, "every thread makes as many rounds");
    MLP_ROLLED
    for (uint32_t row = team.me / LANES; row < MLP_ROWS; row += team.threads / LANES) {
        MLP_ROLLED
        for (uint32_t a = 0; a < head.out; a += OUTS) {
            const uint32_t outs = head.out - a; /* of which OUTS at most are made */
            float sum[OUTS] = {};
            mlp_dots(head, params + head.weight_at + a, outs, x + row, sum);
            CUDA_UNROLL
            for (unsigned c = 0; c < OUTS; c++) {
                if (c >= outs)
                    break;
                const float dot = sum_of_lanes(sum[c]);
                if (threadIdx.x % LANES == 0)
                    out[(a + c) * MLP_ROWS + row] = row < rows ? __fadd_rn(dot, params[head.bias_at + a + c]) : 0.0f;
            }
        }
    }
}

MLP_FN void mlp_zero(const mlp_team_t &team, float *to, size_t count)
{
    for (size_t i = team.me; i < count; i += team.threads)
        to[i] = 0.0f;
}

/*  Stages that go side by side from the i-th on: two that are trained, whose rows are those of one frame. */
MLP_FN uint32_t mlp_beside(const cuda_fused_t *job, uint32_t i)
{
    return i + 1 < job->stages && job->mlp[i].grad ? 2 : 1;
}

MLP_FN mlp_team_t mlp_team(uint32_t stages)
{
    static_assert((MLP_THREADS & (MLP_THREADS - 1)) == 0, "halves by bits: a division is 20 instructions");
    const uint32_t threads = stages > 1 ? MLP_THREADS / 2 : MLP_THREADS;
    return {threadIdx.x & (threads - 1), threads, threadIdx.x < threads ? 0u : 1u};
}

/*  The one of them that is this thread's. */
MLP_FN const cuda_mlp_t &mlp_mine(const cuda_fused_t *job, uint32_t i, const mlp_team_t &team)
{
    return job->mlp[i + team.number];
}

/*  Layers of the deepest. */
MLP_FN uint32_t mlp_most_layers(const cuda_fused_t *job, uint32_t i, uint32_t stages)
{
    const uint32_t one = job->mlp[i].layers, other = job->mlp[i + stages - 1].layers;
    return one < other ? other : one;
}

MLP_FN void mlp_layer_of(const mlp_block_t &block, const mlp_team_t &team, const cuda_mlp_t &mlp, uint32_t l)
{
    const float *x = mlp_input(block, mlp, l);
    float *out = mlp_input(block, mlp, l + 1);
    if (l == 0 && block.job->skip_zeros)
        mlp_layer<true>(team, mlp.layer[l], mlp, block.rows, x, out);
    else
        mlp_layer<false>(team, mlp.layer[l], mlp, block.rows, x, out);
}

MLP_FN void mlp_forward_stages(const mlp_block_t &block, uint32_t first, uint32_t stages)
{
    const mlp_team_t team = mlp_team(stages);
    const cuda_mlp_t &mlp = mlp_mine(block.job, first, team);
    const uint32_t most = mlp_most_layers(block.job, first, stages);
    MLP_ROLLED
    for (uint32_t l = 0; l < most; l++) {
        if (l < mlp.layers)
            mlp_layer_of(block, team, mlp, l);
        __syncthreads(); /* the layer is whole */
    }
    const cuda_mlp_layer_t &head = mlp.layer[mlp.layers];
    mlp_head(team, head, mlp.params, block.rows, mlp_input(block, mlp, mlp.layers), block.shared + mlp.head_at);
    if (mlp.grad)
        mlp_zero(team, block.shared + mlp.d_head_at, (size_t)head.out * MLP_ROWS);
    __syncthreads(); /* the head is, and the next stage may take the place of what it was made of */
}

MLP_FN void mlp_forward(const mlp_block_t &block)
{
    const cuda_fused_t *job = block.job;
    MLP_ROLLED
    for (uint32_t i = 0, stages; i < job->stages; i += stages) {
        if (i == 0 || job->mlp[i].frame != job->mlp[i - 1].frame) {
            mlp_gather(block, job->mlp[i].frame);
            if (i == 0 && block.first)
                mlp_touched(block);
            __syncthreads(); /* the rows are there */
        }
        stages = mlp_beside(job, i);
        mlp_forward_stages(block, i, stages);
    }
}

/* ---- back ----------------------------------------------------------------------------------------------------------- */

/*  A step of four rows of PER weights' chains, and of a bias's: of the first `left`, or of all. */
template <unsigned PER, bool SKIP, bool ALL>
MLP_FN void mlp_grad_step(const float *x, const four_t &d, uint32_t left, float (&sum)[PER], float &bias)
{
    four_t some[PER];
    CUDA_UNROLL
    for (unsigned c = 0; c < PER; c++)
        some[c] = mlp_load(x + c * CUDA_MLP_COLUMN);
    CUDA_UNROLL
    for (unsigned q = 0; q < 4; q++) {
        if (!ALL && q >= left)
            break;
        bias = __fadd_rn(bias, d.x[q]);
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            if (!SKIP || some[c].x[q] != 0.0f)
                sum[c] = __fmaf_rn(some[c].x[q], d.x[q], sum[c]);
    }
}

template <unsigned PER, bool SKIP>
MLP_FN void mlp_grad_chains(const float *x, const float *d, uint32_t rows, float (&sum)[PER], float &bias)
{
    uint32_t r = 0;
    MLP_ROLLED
    for (; r + 4 <= rows; r += 4)
        mlp_grad_step<PER, SKIP, true>(x + r, mlp_load(d + r), 4, sum, bias);
    if (r < rows)
        mlp_grad_step<PER, SKIP, false>(x + r, mlp_load(d + r), rows - r, sum, bias);
}

/*  What came to units, and how far from one's rows to the next one's. */
struct mlp_came_t {
    const float *d;
    uint32_t apart;
};

/*  A thread has PER weights of an output, whose numbers that came to it are loaded once for all of them. Of the last ones some may not
 *  be there: their columns are, and nothing of them is kept. */
template <unsigned PER, bool SKIP>
MLP_FN void mlp_grads(const mlp_block_t &block, const mlp_team_t &team, const cuda_mlp_layer_t &layer, const float *x,
    const mlp_came_t &came)
{
    const uint32_t groups = (layer.in + PER - 1) / PER, outs = layer.out;
    MLP_ROLLED
    for (uint32_t e = team.me; e < groups * outs; e += team.threads) {
        const uint32_t j = e % outs, i = e / outs * PER;
        float *weight = block.grad + layer.weight_at + (size_t)i * outs + j, *to = block.grad + layer.bias_at + j;
        float sum[PER] = {}, bias = 0.0f;
        if (!block.first) {
            bias = i == 0 ? *to : 0.0f;
            CUDA_UNROLL
            for (unsigned c = 0; c < PER; c++)
                sum[c] = i + c < layer.in ? weight[(size_t)c * outs] : 0.0f;
        }
        mlp_grad_chains<PER, SKIP>(x + i * CUDA_MLP_COLUMN, came.d + j * came.apart, block.rows, sum, bias);
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            if (i + c < layer.in)
                weight[(size_t)c * outs] = sum[c];
        if (i == 0)
            *to = bias;
    }
}

/*  Small ones a weight a thread: there would be nothing to do for most. */
template <bool SKIP>
MLP_FN void mlp_grads_of(const mlp_block_t &block, const mlp_team_t &team, const cuda_mlp_layer_t &layer,
    const float *x, const mlp_came_t &came)
{
    if (layer.in * layer.out < CUDA_MLP_PER * team.threads / 2)
        mlp_grads<1, SKIP>(block, team, layer, x, came);
    else
        mlp_grads<CUDA_MLP_PER, SKIP>(block, team, layer, x, came);
}

/*  Weights [unit][outputs]: four of a unit's, if they lie so. */
template <bool FOURS> MLP_FN four_t mlp_weights(const float *from, uint32_t left)
{
    if constexpr (FOURS)
        return mlp_load(from);
    four_t some = {};
    CUDA_UNROLL
    for (unsigned q = 0; q < 4; q++)
        if (q < left)
            some.x[q] = from[q];
    return some;
}

/*  Four outputs' steps of CUDA_MLP_PER units' chains, whose next weights are at weight[]. */
template <bool FOURS>
MLP_FN void mlp_back_step(
    const float *(&weight)[CUDA_MLP_PER], uint32_t left, const mlp_came_t &came, float (&sum)[CUDA_MLP_PER])
{
    four_t w[CUDA_MLP_PER];
    CUDA_UNROLL
    for (unsigned c = 0; c < CUDA_MLP_PER; c++) {
        w[c] = mlp_weights<FOURS>(weight[c], left);
        weight[c] += 4;
    }
    CUDA_UNROLL
    for (unsigned q = 0; q < 4; q++) {
        if (!FOURS && q >= left)
            break;
        const float number = came.d[q * came.apart];
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            sum[c] = __fmaf_rn(number, w[c].x[q], sum[c]);
    }
}

/*  A thread has CUDA_MLP_PER units of a row, so that a warp's threads read the same weights, and d side by side. What came to units takes
 *  the place of what they gave, h. Behind the last unit its own weights are read again, for a column that is nobody's. */
template <bool FOURS>
MLP_FN void mlp_input_grads(
    const mlp_team_t &team, const cuda_mlp_layer_t &layer, const cuda_mlp_t &mlp, const mlp_came_t &came, float *h)
{
    const uint32_t groups = (layer.in + CUDA_MLP_PER - 1) / CUDA_MLP_PER, outs = layer.out;
    MLP_ROLLED
    for (uint32_t e = team.me; e < groups * MLP_ROWS; e += team.threads) {
        const uint32_t r = e % MLP_ROWS, i = e / MLP_ROWS * CUDA_MLP_PER, last = layer.in - 1;
        const float *weight[CUDA_MLP_PER];
        float sum[CUDA_MLP_PER] = {}, *to = h + i * CUDA_MLP_COLUMN + r;
        mlp_came_t from = {came.d + r, came.apart};
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            weight[c] = mlp.params + layer.weight_at + (i + c < last ? i + c : last) * outs;
        CUDA_UNROLL_BY(2)
        for (uint32_t j = 0; j < outs; j += 4, from.d += 4 * from.apart)
            mlp_back_step<FOURS>(weight, outs - j, from, sum);
        mlp_end(mlp.backward, to, sum);
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            to[c * CUDA_MLP_COLUMN] = sum[c];
    }
}

MLP_FN bool mlp_in_fours(const cuda_mlp_layer_t &layer, const float *params)
{
    return layer.out % 4 == 0 && reinterpret_cast<uintptr_t>(params + layer.weight_at) % sizeof(four_t) == 0;
}

/*  Gradients of layer l, or of the head. One that reads the observation is no layer: its zeros count. */
MLP_FN void mlp_layer_grads(
    const mlp_block_t &block, const mlp_team_t &team, const cuda_mlp_t &mlp, uint32_t l, const mlp_came_t &came)
{
    const float *x = mlp_input(block, mlp, l);
    if (l == 0 && mlp.layers && block.job->skip_zeros)
        mlp_grads_of<true>(block, team, mlp.layer[l], x, came);
    else
        mlp_grads_of<false>(block, team, mlp.layer[l], x, came);
}

MLP_FN void mlp_layer_back(const mlp_team_t &team, const cuda_mlp_t &mlp, uint32_t l, const mlp_came_t &came, float *h)
{
    if (mlp_in_fours(mlp.layer[l], mlp.params))
        mlp_input_grads<true>(team, mlp.layer[l], mlp, came, h);
    else
        mlp_input_grads<false>(team, mlp.layer[l], mlp, came, h);
}

MLP_FN void mlp_backward_stages(const mlp_block_t &block, uint32_t first, uint32_t stages)
{
    const mlp_team_t team = mlp_team(stages);
    const cuda_mlp_t &mlp = mlp_mine(block.job, first, team);
    const uint32_t most = mlp_most_layers(block.job, first, stages);
    mlp_came_t came = {block.shared + mlp.d_head_at, MLP_ROWS};
    MLP_ROLLED
    for (uint32_t back = 0; back <= most; back++) {
        const uint32_t l = mlp.layers - back;
        const bool goes = back <= mlp.layers;
        float *h = mlp_input(block, mlp, goes ? l : 0);
        if (goes)
            mlp_layer_grads(block, team, mlp, l, came);
        if (back == most)
            break;
        __syncthreads(); /* what the units gave is read */
        if (goes && l)
            mlp_layer_back(team, mlp, l, came, h);
        __syncthreads(); /* what came to them is whole */
        came = {h, CUDA_MLP_COLUMN};
    }
}

MLP_FN void mlp_backward(const mlp_block_t &block)
{
    MLP_ROLLED
    for (uint32_t i = 0, stages; i < block.job->stages; i += stages) {
        stages = mlp_beside(block.job, i);
        if (block.job->mlp[i].grad)
            mlp_backward_stages(block, i, stages);
    }
    __syncthreads(); /* the next block's rows may take the place of these */
}
