/*  mlp - a block of rows through small networks and back, by one block of threads: what cuda_fused_t asks for, but for the loss
 *  (loss.cuh has the kernel).
 *
 *  Numbers of the rows lie in shared memory in columns, a unit's rows side by side; weights are read where they lie, which is the
 *  first-level cache after the first time. Every sum is one thread's and one chain, in the order of dense.cu: of a layer over what it
 *  reads, of what goes back over the outputs, of a weight over the rows. The last goes on from block to block through the gradient
 *  itself, each number of which is one thread's.
 *  What comes to a layer's units takes the place of what they gave. */
#pragma once
#include "common/nn/cuda/kernels/unit.cuh"

#define MLP_FN static __device__ __forceinline__

constexpr unsigned MLP_THREADS = 512; /* so that 64 units times 32 rows are CUDA_MLP_PER sums a thread */
constexpr unsigned MLP_ROWS = CUDA_BLOCK;

/*  Four neighbours: one load. */
struct alignas(4 * sizeof(float)) mlp_four_t {
    float x[4];
};

/*  A block of rows on its way. */
struct mlp_block_t {
    const cuda_fused_t *job;
    float *shared;
    float *grad; /* of the shard */
    const uint32_t *row;
    uint32_t rows; /* 1 .. MLP_ROWS */
};

MLP_FN mlp_four_t mlp_load(const float *from)
{
    return *reinterpret_cast<const mlp_four_t *>(from);
}

/*  Layer l's units, or for l = 0 the observation: what layer l reads. */
MLP_FN float *mlp_input(const mlp_block_t &block, const cuda_mlp_t &mlp, uint32_t l)
{
    uint32_t at = mlp.hidden_at;
    for (uint32_t i = 0; i + 1 < l; i++)
        at += (mlp.layer[i].out + CUDA_MLP_PER - 1) / CUDA_MLP_PER * CUDA_MLP_PER * CUDA_MLP_COLUMN;
    return block.shared + (l ? at : 0);
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/*  Behind the last row: zeros. */
MLP_FN void mlp_gather(const mlp_block_t &block, uint32_t frame)
{
    const cuda_fused_t *job = block.job;
    const uint32_t obs = job->obs;
    for (uint32_t e = threadIdx.x; e < obs * MLP_ROWS; e += MLP_THREADS) {
        const uint32_t r = e / obs, k = e % obs;
        float number = 0.0f;
        if (r < block.rows) {
            const uint8_t *row = job->rows[frame] + block.row[r] * job->row_bytes[frame];
            number = job->bytes ? (float)row[k] : reinterpret_cast<const float *>(row)[k];
        }
        block.shared[k * CUDA_MLP_COLUMN + r] = number;
    }
}

/*  A thread has a unit of CUDA_MLP_PER rows: a weight is loaded once for all of them. */
template <bool SKIP>
MLP_FN void mlp_layer(
    const cuda_mlp_layer_t &layer, const float *params, cuda_kind_t kind, uint32_t rows, const float *x, float *out)
{
    for (uint32_t e = threadIdx.x; e < layer.out * (MLP_ROWS / CUDA_MLP_PER); e += MLP_THREADS) {
        const uint32_t j = e % layer.out, r = e / layer.out * CUDA_MLP_PER;
        const float *weight = params + layer.weight_at + j;
        float sum[CUDA_MLP_PER];
        if (r >= rows)
            continue;
        for (float &one : sum)
            one = params[layer.bias_at + j];
        for (uint32_t k = 0; k < layer.in; k++, weight += layer.out) {
            mlp_four_t some[CUDA_MLP_PER / 4];
            CUDA_UNROLL
            for (unsigned c = 0; c < CUDA_MLP_PER / 4; c++)
                some[c] = mlp_load(x + k * CUDA_MLP_COLUMN + r + 4 * c);
            CUDA_UNROLL
            for (unsigned c = 0; c < CUDA_MLP_PER; c++)
                if (!SKIP || some[c / 4].x[c % 4] != 0.0f)
                    sum[c] = __fmaf_rn(some[c / 4].x[c % 4], *weight, sum[c]);
        }
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            out[j * CUDA_MLP_COLUMN + r + c] = ended(kind, sum[c], 0.0f);
    }
}

/*  Half a warp a row, as dots() of dense.cu: also the zeros behind the last number of a row. Columns as a loss sees them: zeros
 *  behind the last row. */
MLP_FN void mlp_head(const cuda_mlp_layer_t &head, const float *params, uint32_t rows, const float *x, float *out)
{
    const unsigned lane = threadIdx.x % LANES;
    const float *weight = params + head.weight_at;
    static_assert(MLP_ROWS % (MLP_THREADS / LANES) == 0, "every thread makes as many rounds");
    for (uint32_t row = threadIdx.x / LANES; row < MLP_ROWS; row += MLP_THREADS / LANES)
        for (uint32_t a = 0; a < head.out; a += OUTS) {
            float sum[OUTS] = {};
            for (uint32_t k = lane; k < (head.in + LANES - 1) / LANES * LANES; k += LANES) {
                const float number = k < head.in ? x[k * CUDA_MLP_COLUMN + row] : 0.0f;
                CUDA_UNROLL
                for (unsigned c = 0; c < OUTS; c++) {
                    const bool there = k < head.in && a + c < head.out;
                    sum[c] = __fmaf_rn(number, there ? weight[(size_t)k * head.out + a + c] : 0.0f, sum[c]);
                }
            }
            CUDA_UNROLL
            for (unsigned c = 0; c < OUTS; c++) {
                const float dot = sum_of_lanes(sum[c]);
                if (lane == 0 && a + c < head.out)
                    out[(a + c) * MLP_ROWS + row] = row < rows ? __fadd_rn(dot, params[head.bias_at + a + c]) : 0.0f;
            }
        }
}

MLP_FN void mlp_zero(float *to, size_t count)
{
    for (size_t i = threadIdx.x; i < count; i += MLP_THREADS)
        to[i] = 0.0f;
}

MLP_FN void mlp_forward_stage(const mlp_block_t &block, const cuda_mlp_t &mlp)
{
    for (uint32_t l = 0; l < mlp.layers; l++) {
        const float *x = mlp_input(block, mlp, l);
        float *out = mlp_input(block, mlp, l + 1);
        if (l == 0 && block.job->skip_zeros)
            mlp_layer<true>(mlp.layer[l], mlp.params, mlp.forward, block.rows, x, out);
        else
            mlp_layer<false>(mlp.layer[l], mlp.params, mlp.forward, block.rows, x, out);
        __syncthreads(); /* the layer is whole */
    }
    const cuda_mlp_layer_t &head = mlp.layer[mlp.layers];
    mlp_head(head, mlp.params, block.rows, mlp_input(block, mlp, mlp.layers), block.shared + mlp.head_at);
    if (mlp.grad)
        mlp_zero(block.shared + mlp.d_head_at, (size_t)head.out * MLP_ROWS);
    __syncthreads(); /* the head is, and the next stage may take the place of what it was made of */
}

MLP_FN void mlp_forward(const mlp_block_t &block)
{
    const cuda_fused_t *job = block.job;
    for (uint32_t i = 0; i < job->stages; i++) {
        if (i == 0 || job->mlp[i].frame != job->mlp[i - 1].frame) {
            mlp_gather(block, job->mlp[i].frame);
            __syncthreads(); /* the rows are there */
        }
        mlp_forward_stage(block, job->mlp[i]);
    }
}

/* ---- back ----------------------------------------------------------------------------------------------------------- */

/*  A step of four rows of PER weights' chains, and of a bias's. */
template <unsigned PER, bool SKIP>
MLP_FN void mlp_grad_step(const float *x, const mlp_four_t &d, uint32_t left, float (&sum)[PER], float &bias)
{
    mlp_four_t some[PER];
    CUDA_UNROLL
    for (unsigned c = 0; c < PER; c++)
        some[c] = mlp_load(x + c * CUDA_MLP_COLUMN);
    CUDA_UNROLL
    for (unsigned q = 0; q < 4; q++) {
        if (q >= left)
            break;
        bias = __fadd_rn(bias, d.x[q]);
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            if (!SKIP || some[c].x[q] != 0.0f)
                sum[c] = __fmaf_rn(some[c].x[q], d.x[q], sum[c]);
    }
}

/*  A thread has PER weights of an output: d, the numbers that came to it `apart` floats from the next one's, is loaded once for all of
 *  them. Of the last ones some may not be there: their columns are, and nothing of them is kept. */
template <unsigned PER, bool SKIP>
MLP_FN void mlp_grads(
    const cuda_mlp_layer_t &layer, uint32_t rows, const float *x, const float *d, uint32_t apart, float *grad)
{
    const uint32_t groups = (layer.in + PER - 1) / PER;
    for (uint32_t e = threadIdx.x; e < groups * layer.out; e += MLP_THREADS) {
        const uint32_t j = e % layer.out, i = e / layer.out * PER;
        float *weight = grad + layer.weight_at + (size_t)i * layer.out + j, *to = grad + layer.bias_at + j;
        float sum[PER], bias = i == 0 ? *to : 0.0f;
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            sum[c] = i + c < layer.in ? weight[(size_t)c * layer.out] : 0.0f;
        for (uint32_t r = 0; r < rows; r += 4)
            mlp_grad_step<PER, SKIP>(x + i * CUDA_MLP_COLUMN + r, mlp_load(d + j * apart + r), rows - r, sum, bias);
        CUDA_UNROLL
        for (unsigned c = 0; c < PER; c++)
            if (i + c < layer.in)
                weight[(size_t)c * layer.out] = sum[c];
        if (i == 0)
            *to = bias;
    }
}

/*  Small ones a weight a thread: there would be nothing to do for most. */
template <bool SKIP>
MLP_FN void mlp_grads_of(
    const cuda_mlp_layer_t &layer, uint32_t rows, const float *x, const float *d, uint32_t apart, float *grad)
{
    if (layer.in * layer.out < CUDA_MLP_PER * MLP_THREADS / 2)
        mlp_grads<1, SKIP>(layer, rows, x, d, apart, grad);
    else
        mlp_grads<CUDA_MLP_PER, SKIP>(layer, rows, x, d, apart, grad);
}

/*  Weights [unit][outputs]: four of a unit's, if they lie so. */
template <bool FOURS> MLP_FN mlp_four_t mlp_weights(const float *from, uint32_t left)
{
    if constexpr (FOURS)
        return mlp_load(from);
    mlp_four_t some = {};
    CUDA_UNROLL
    for (unsigned q = 0; q < 4; q++)
        if (q < left)
            some.x[q] = from[q];
    return some;
}

/*  A thread has CUDA_MLP_PER units of a row, so that a warp's threads read the same weights, and d side by side. What came to units takes
 *  the place of what they gave, h. Behind the last unit its own weights are read again, for a column that is nobody's. */
template <bool FOURS>
MLP_FN void mlp_input_grads(
    const cuda_mlp_layer_t &layer, const float *params, cuda_kind_t kind, const float *d, uint32_t apart, float *h)
{
    const uint32_t groups = (layer.in + CUDA_MLP_PER - 1) / CUDA_MLP_PER;
    for (uint32_t e = threadIdx.x; e < groups * MLP_ROWS; e += MLP_THREADS) {
        const uint32_t r = e % MLP_ROWS, i = e / MLP_ROWS * CUDA_MLP_PER, last = layer.in - 1 - i;
        const float *weight = params + layer.weight_at + (size_t)i * layer.out;
        float sum[CUDA_MLP_PER] = {};
        for (uint32_t j = 0; j < layer.out; j += 4) {
            const uint32_t left = layer.out - j;
            mlp_four_t w[CUDA_MLP_PER];
            CUDA_UNROLL
            for (unsigned c = 0; c < CUDA_MLP_PER; c++)
                w[c] = mlp_weights<FOURS>(weight + (size_t)(c < last ? c : last) * layer.out + j, left);
            CUDA_UNROLL
            for (unsigned q = 0; q < 4; q++) {
                if (!FOURS && q >= left)
                    break;
                const float number = d[(j + q) * apart + r];
                CUDA_UNROLL
                for (unsigned c = 0; c < CUDA_MLP_PER; c++)
                    sum[c] = __fmaf_rn(number, w[c].x[q], sum[c]);
            }
        }
        CUDA_UNROLL
        for (unsigned c = 0; c < CUDA_MLP_PER; c++)
            h[(i + c) * CUDA_MLP_COLUMN + r] = ended(kind, sum[c], h[(i + c) * CUDA_MLP_COLUMN + r]);
    }
}

MLP_FN bool mlp_in_fours(const cuda_mlp_layer_t &layer, const float *params)
{
    return layer.out % 4 == 0 && reinterpret_cast<uintptr_t>(params + layer.weight_at) % sizeof(mlp_four_t) == 0;
}

MLP_FN void mlp_backward_stage(const mlp_block_t &block, const cuda_mlp_t &mlp)
{
    const float *d = block.shared + mlp.d_head_at;
    uint32_t apart = MLP_ROWS;
    for (uint32_t l = mlp.layers;; l--) {
        const cuda_mlp_layer_t &layer = mlp.layer[l];
        float *x = mlp_input(block, mlp, l);
        if (l == 0)
            break;
        mlp_grads_of<false>(layer, block.rows, x, d, apart, block.grad);
        __syncthreads(); /* what the units gave is read */
        if (mlp_in_fours(layer, mlp.params))
            mlp_input_grads<true>(layer, mlp.params, mlp.backward, d, apart, x);
        else
            mlp_input_grads<false>(layer, mlp.params, mlp.backward, d, apart, x);
        __syncthreads(); /* what came to them is whole */
        d = x;
        apart = CUDA_MLP_COLUMN;
    }
    /* a head that reads the observation is no layer: its zeros count */
    if (mlp.layers && block.job->skip_zeros)
        mlp_grads_of<true>(mlp.layer[0], block.rows, block.shared, d, apart, block.grad);
    else
        mlp_grads_of<false>(mlp.layer[0], block.rows, block.shared, d, apart, block.grad);
}

MLP_FN void mlp_backward(const mlp_block_t &block)
{
    for (uint32_t i = 0; i < block.job->stages; i++)
        if (block.job->mlp[i].grad)
            mlp_backward_stage(block, block.job->mlp[i]);
    __syncthreads(); /* the next block's rows may take the place of these */
}
