/*  kernels - what the CUDA backend asks of a GPU: one function for each kind of launch, in kernels/ one .cu a family.
 *
 *  Bits:    every kernel computes what the CPU's kernels do (cpu/kernels.h), in the same order: an element of a product is one
 *           chain of fused multiply-adds in the order of k, and one thread's; a sum over rows is one chain in their order; the
 *           rest is one correctly rounded operation at a time. No float atomics, no libm, no contraction but what is written.
 *  Memory:  pointers are device memory unless said otherwise; arrays of rows are plain, [rows][width], with nothing between or
 *           behind. What a job itself consists of is read by the call.
 *  Errors:  a launch that fails is seen by cudaGetLastError, which the caller asks after it.
 *  Threads: the device's owner. Work is queued on the stream, nothing waits.
 *
 *  C and C++: the backend is C, the kernels are CUDA C++; the same .cu files are compiled by nvcc for cards and by the host's
 *  compiler against tests/simt, a stand-in for the runtime. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

/*  Rows of shards lo .. hi-1 of a minibatch: shard s of `shards` has rows [s rows / shards, (s + 1) rows / shards), or, where these are
 *  sequences of `length`, as many of these. Arrays of the run begin with the first row of shard lo. grad[s]: the gradient buffer of shard s,
 *  for lo <= s < hi. */
typedef struct {
    uint32_t shards, rows, lo, hi;
    float *const *grad;
    uint32_t length; /* 0: rows are by themselves */
} cuda_run_t;

/*  The first row of a shard in the minibatch. */
static inline uint32_t cuda_first_row(const cuda_run_t *run, uint32_t shard)
{
    const uint32_t length = run->length ? run->length : 1;
    return (uint32_t)((uint64_t)shard * (run->rows / length) / run->shards) * length;
}

enum { CUDA_BLOCK = 32 }; /* TT_BLOCK of nn.h, which is C alone: tests/cuda/card.c compares them */

/*  The run in blocks of TT_BLOCK rows as a loss sees them: a shard begins with a new one, and its last may be short. Numbers per
 *  row of a block stand in *columns*: of head a, [block][a][TT_BLOCK]. */
typedef struct {
    uint32_t blocks;
    const uint32_t *first;       /* [blocks] first row, counted from the run's                                 */
    const uint32_t *rows;        /* [blocks] 1 .. TT_BLOCK                                                     */
    const uint32_t *shard;       /* [blocks]                                                                   */
    const uint32_t *shard_block; /* [hi - lo + 1] the first block of each shard of the run, and the end        */
    const uint32_t *slot;        /* [rows of the run] block * TT_BLOCK + place in it                           */
} cuda_blocks_t;

/* ---- products (dense.cu) -------------------------------------------------------------------------------------------- */

typedef enum {
    CUDA_TANH,   /* c = tanh(sum), a chain that begins with the bias          */
    CUDA_RELU,   /* c = max(0, sum), as this one does                         */
    CUDA_SUM,    /* c = sum, and this one                                     */
    CUDA_D_TANH, /* c = sum (1 - h^2)                                         */
    CUDA_D_RELU, /* c = h > 0 ? sum : 0                                       */
    CUDA_D_NONE  /* c = sum                                                   */
} cuda_kind_t;

/*  c[i][j] = kind(sum over k of a(i, k) b(k, j)): a chain from 0 or the bias, k = 0, 1, ...;
 *  a(i, k) = a[i a_row + k a_k], b(k, j) = b[k b_k + j b_col], c[i c_row + j], h[i h_row + j], bias[j].
 *  add: c += what came out (what a trunk's later readers give). skip_zeros: where a(i, k) is 0 nothing is multiplied: rows that were
 *  bytes. */
typedef struct {
    cuda_kind_t kind;
    bool add, skip_zeros;
    uint32_t m, n, k;
    const float *a;
    size_t a_row, a_k;
    const float *b;
    size_t b_k, b_col;
    float *c;
    size_t c_row;
    const float *bias, *h;
    size_t h_row;
} cuda_gemm_t;
void cuda_gemm(cudaStream_t stream, const cuda_gemm_t *job);

/*  Gradients of weights and biases, by shard: grad[s][at + i n + j] = a chain over the shard's rows r of x[r][i] d[r][j], and
 *  grad[s][bias_at + j] = a chain of additions of d[r][j]. An empty shard's are 0. */
typedef struct {
    bool skip_zeros; /* of x */
    uint32_t m, n;
    const float *x, *d;
    size_t x_row, d_row;
    size_t at, bias_at;
} cuda_outer_t;
void cuda_outer(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job);

/*  A head: dot products in 16 lanes that are added 16 -> 8 -> 4 -> 2 -> 1, plus bias. w[k][outs]. slot NULL: out[rows][outs];
 *  else columns, by the rows' slots. */
typedef struct {
    uint32_t rows, k, outs;
    const float *x, *w, *bias;
    const uint32_t *slot;
    float *out;
} cuda_dots_t;
void cuda_dots(cudaStream_t stream, const cuda_dots_t *job);

/*  Columns [blocks][outs][TT_BLOCK] to [rows][outs]. */
void cuda_rows_of_columns(
    cudaStream_t stream, uint32_t rows, const uint32_t *slot, uint32_t outs, const float *columns, float *out);
/*  And back, of rows row[i] of `from` (NULL: row i): what stands behind a block's last row stays as it is. */
void cuda_columns_of_rows(cudaStream_t stream, uint32_t rows, const uint32_t *row, const uint32_t *slot, uint32_t outs,
    const float *from, float *columns);
/*  out[rows][n] += more. */
void cuda_add_rows(cudaStream_t stream, size_t count, const float *more, float *out);

/*  What ends products that another library made (fast.h), sum[m][n]: as cuda_gemm with these sums, bias added behind them. sum may be
 *  job->c. job->c_row and h_row: n. */
void cuda_ends(cudaStream_t stream, const cuda_gemm_t *job, const float *sum);
/*  The biases' part of cuda_outer, in another order: of a shard's rows, 8 chains of every eighth, added up one after the other. room: rows are
 *  many, and a shard's are so many pieces, each added up like that, and then these; floats for CUDA_BIAS_PIECES times n of each shard of the
 *  run, or of CUDA_SHARDS of them (grid.cuh) where there are more. NULL: one piece. */
enum { CUDA_BIAS_PIECES = 64 };
void cuda_bias_grads(cudaStream_t stream, const cuda_run_t *run, const cuda_outer_t *job, float *room);

/* ---- what is read (gather.cu) --------------------------------------------------------------------------------------- */

/*  out[i][obs] = row `row[i]` (NULL: row i) as one vector of floats: floats as they are, bytes as the plain numbers they hold. Parts lie
 *  behind one another in a row of `bytes`, the floats' aligned to 4. */
typedef struct {
    uint32_t count, parts;
    const uint8_t *rows;
    size_t bytes;
    const uint32_t *row;
    struct {
        uint32_t at; /* byte of the row        */
        uint32_t elements;
        bool bytes;
    } part[TT_PARTS_MAX];
    float *out;
} cuda_gather_t;
void cuda_gather(cudaStream_t stream, const cuda_gather_t *job);

/*  Rows made of frames, as tt_stack_row makes them: of each row `frames` numbers of frames, each of frame_bytes. Part p begins at `from`
 *  in a frame; its bytes of all frames stand side by side from `to` on in a row. What lies between parts stays as it is. */
typedef struct {
    uint32_t count, frames, parts;
    const uint8_t *frame;
    size_t frame_bytes, row_bytes;
    const uint32_t *index; /* [count][frames] */
    struct {
        uint32_t from, to, bytes;
    } part[TT_PARTS_MAX];
    uint8_t *rows;
} cuda_stack_t;
void cuda_stack(cudaStream_t stream, const cuda_stack_t *job);

/*  One part of such rows, which is a picture, [bytes / (height width place)][height][width][place] in a frame: each row's is moved by its
 *  own (y, x) of by[count][2] as it is made (tt_shift_from). */
typedef struct {
    uint32_t count, frames;
    const uint8_t *frame;
    size_t frame_bytes, row_bytes;
    const uint32_t *index;    /* [count][frames] */
    uint32_t from, to, bytes; /* of a part, as above */
    uint32_t height, width, place;
    const int8_t *by;
    uint8_t *rows;
} cuda_shift_t;
void cuda_shift(cudaStream_t stream, const cuda_shift_t *job);

/*  Floats of rows that were made of frames, normalised where they stand (tt_scaled). Run p of frame k has `count` floats from byte
 *  at + k step of a row on; their means and the others are those from `first` on, by where a float stood in its frame: of a picture that
 *  was moved, somewhere else. */
typedef struct {
    uint32_t count, frames, runs;
    uint8_t *rows;
    size_t row_bytes;
    const uint32_t *index; /* [count][frames]                              */
    uint32_t but;          /* where a frame's number is this, nothing is done */
    const double *mean, *inv;
    float clip;
    struct {
        uint32_t at, step, first, count;
    } run[TT_PARTS_MAX];
    const int8_t *by; /* of rows, as above; NULL: nothing was moved */
    struct {
        uint32_t run, height, width, numbers; /* that run is the picture, with so many floats a place */
    } moved;
} cuda_scale_t;
void cuda_scale(cudaStream_t stream, const cuda_scale_t *job);

/* ---- what is read and an action side by side (action.cu) ------------------------------------------------------------ */

/*  out[i][read + numbers] = x[i], and behind it an action: given[row[i]], or (NULL) columns by the row's slot. */
typedef struct {
    uint32_t rows, read, numbers;
    const float *x, *given;
    const uint32_t *row, *slot;
    const float *columns;
    float *out;
} cuda_join_t;
void cuda_join(cudaStream_t stream, const cuda_join_t *job);

/* ---- dueling, means, atoms, noise (heads.cu) ------------------------------------------------------------------------- */

/*  q[a] = v + (adv[a] - mean adv), a mean being a chain over a, from the first, divided by their number; of choices of n numbers each, `outs`
 *  in all, so for each of the n by itself. slot NULL: arrays are [rows][outs] and [rows][n]; else columns. */
typedef struct {
    uint32_t rows, outs, n;
    const uint32_t *slot;
    const float *value, *advantage;
    float *q;
} cuda_dueling_t;
void cuda_dueling(cudaStream_t stream, const cuda_dueling_t *job);
/*  As cpu_dueling_backward; arrays are [rows][outs] and [rows][n]. */
void cuda_dueling_back(cudaStream_t stream, uint32_t rows, uint32_t outs, uint32_t n, const float *d_q, float *d_value,
    float *d_advantage);
/*  As cpu_atoms_forward, n atoms a choice: the head is [rows][outs n], or columns. */
typedef struct {
    uint32_t rows, outs, n;
    const uint32_t *slot;
    float low, high;
    const float *head;
    float *q;
} cuda_atoms_t;
void cuda_atoms(cudaStream_t stream, const cuda_atoms_t *job);
/*  As cpu_mean_forward, n numbers a part: the head is [rows][outs n], or columns; and as cpu_mean_backward, arrays of rows. */
void cuda_mean(
    cudaStream_t stream, uint32_t rows, const uint32_t *slot, uint32_t outs, uint32_t n, const float *head, float *q);
void cuda_mean_back(cudaStream_t stream, uint32_t rows, uint32_t outs, uint32_t n, const float *d_q, float *d_head);
/*  A tensor of noisy weights, rows x cols (a bias: one row and in NULL): out = mean + deviation (in[i] out_[j]); in and out_: the
 *  noise after f. */
typedef struct {
    uint32_t rows, cols;
    const float *mean, *deviation, *in, *out_;
    float *out;
} cuda_noisy_t;
void cuda_noisy(cudaStream_t stream, const cuda_noisy_t *job);
/*  Of every shard of the run: the gradient of the deviation at sigma_at is that of the mean at mean_at times the noise. */
void cuda_noisy_back(
    cudaStream_t stream, const cuda_run_t *run, const cuda_noisy_t *job, size_t mean_at, size_t sigma_at);

/* ---- sums (tree.cu) -------------------------------------------------------------------------------------------------- */

/*  grad[s][at + i] = a chain from 0 over the shard's blocks b of partial[b][n]. */
void cuda_fold(cudaStream_t stream, const cuda_run_t *run, const cuda_blocks_t *blocks, uint32_t n,
    const float *partial, size_t at);
/*  One level of the tree: grad[s] += grad[s + width] for s = lo', lo' + 2 width ... with all of [s, s + 2 width) inside the run. */
void cuda_tree_level(cudaStream_t stream, const cuda_run_t *run, uint32_t width, size_t count);
/*  grad[s][at .. at + count) = 0 of every shard of the run. */
void cuda_clear(cudaStream_t stream, const cuda_run_t *run, size_t at, size_t count);

/* ---- optimisers (apply.cu) ------------------------------------------------------------------------------------------- */

/*  What differs from one step of an optimiser to the next; in device memory, so that a recorded step can be launched again. */
typedef struct {
    float lr, root_scale;
    uint64_t number; /* of the step, from 1 */
} cuda_step_t;

/*  Norms as backend.h has them (tt_norms_t), in device memory. */
typedef struct {
    float *newest; /* of the group                                      */
    float *bad;    /* the first that is not finite since the last report */
    uint64_t *bad_step;
    const cuda_step_t *step;
    float *parts; /* room for the sums of TT_NORM_PART (math/opt.h) numbers each; of one part NULL will do */
} cuda_norm_t;
/*  The norm of count floats as sum_squares of the CPU's kernels adds them up. */
void cuda_norm(cudaStream_t stream, size_t count, const float *g, const cuda_norm_t *out);

typedef enum { CUDA_ADAM, CUDA_SGD, CUDA_RMSPROP } cuda_opt_kind_t;

/*  As tt_opt_step_t of the CPU, but that clip follows from the norm on the device; nothing is done where that is not finite. */
typedef struct {
    cuda_opt_kind_t kind;
    size_t count;
    float *p;
    const float *g;
    float *s0, *s1;
    const float *norm;
    const cuda_step_t *step;
    float max_norm, beta1, beta2, alpha, momentum, eps;
} cuda_opt_t;
void cuda_opt(cudaStream_t stream, const cuda_opt_t *job);
/*  to = fma(tau, from - to, to). */
void cuda_blend(cudaStream_t stream, size_t count, float tau, const float *from, float *to);

/* ---- losses (learner/algorithms, loss.cuh) --------------------------------------------------------------------------- */

/*  What tt_loss_block_t shows of each block, for all blocks. Arrays of stages and inputs as there; d_log_std and stats: partial sums,
 *  [blocks][log_stds] and [blocks][TT_LOSS_STATS], written, for cuda_fold. A loss of the objective "ppo" is the symbol
 *  tt_cuda_loss_ppo. */
typedef struct {
    cuda_run_t run;
    cuda_blocks_t blocks;
    const uint32_t *row; /* [rows of the run] the numbers given in the pass */
    const void *params;  /* aligned to 16                                   */
    const void *input[TT_INPUTS_MAX];
    uint32_t stages;
    uint32_t outs[TT_STAGES_MAX]; /* of each stage's head           */
    uint32_t log_stds[TT_STAGES_MAX];
    const float *head[TT_STAGES_MAX];
    float *d_head[TT_STAGES_MAX]; /* NULL without grad              */
    const float *log_std[TT_STAGES_MAX];
    float *d_log_std[TT_STAGES_MAX];
    float *stats;
    size_t ride_at;           /* of a gradient buffer; 0: nothing rides */
    uint32_t source, numbers; /* the stage that is drawn from; of an action                                */
    float *action;            /* columns of what is drawn; NULL: nothing is                                */
    float *d_action;          /* what came to it; NULL: no gradient goes there                             */
} cuda_loss_t;
typedef void (*cuda_loss_fn)(cudaStream_t stream, const cuda_loss_t *job);
/*  Of the stages both see the source alone: the one writes `action`, the other adds to the source's d_head. Symbols
 *  tt_cuda_draw_sac_actor and tt_cuda_draw_back_sac_actor. */
typedef struct {
    cuda_loss_fn draw, back;
} cuda_draw_fns_t;

/* ---- small networks at once (kernels/mlp.cuh, loss.cuh) -------------------------------------------------------------- */

enum {
    CUDA_MLP_STAGES =
        4, /* of an objective                                                                            */
    CUDA_MLP_LAYERS =
        5, /* of a tower, with the head                                                                  */
    CUDA_MLP_COLUMN = 36, /* floats from one unit's rows to the next one's in shared memory: vectors of eight units that
                             follow one another then meet 32 different banks                                            */
    CUDA_MLP_PER = 8, /* rows or units of a thread; what a layer has in shared memory is made up to so many units   */
    CUDA_MLP_SHARED =
        96 * 1024 /* bytes of it, which every card has that we build for (sm_89 and sm_120: 99 KiB)      */
};

typedef struct {
    uint32_t in, out;
    uint32_t weight_at, bias_at;
} cuda_mlp_layer_t;

/*  A stage: a tower that is an MLP and reads the observation as one vector. Places are floats of a block's shared memory; what
 *  hidden layers give stands in columns CUDA_MLP_COLUMN apart. */
typedef struct {
    const float *params;
    uint32_t frame;
    bool grad;
    cuda_kind_t forward, backward;
    uint32_t layers; /* hidden ones */
    cuda_mlp_layer_t layer[CUDA_MLP_LAYERS];
    uint32_t input_at[CUDA_MLP_LAYERS + 1]; /* of each layer: 0, then what hidden layers give, layer by layer */
    uint32_t head_at, d_head_at;
    size_t log_std_at; /* of a gradient */
} cuda_mlp_t;

/*  All that becomes of a run: every float of its shards' gradients, from the observations on, is written. Stages in an order in which
 *  those that are trained come last, and those of one frame side by side. An objective's is the symbol tt_cuda_fused_ppo; of its
 *  loss neither blocks nor heads, derivatives and partial sums are read: they lie in shared memory and in the gradients. */
typedef struct {
    cuda_loss_t loss;
    size_t count, stats_at; /* floats of a gradient; where statistics begin */
    uint32_t obs;
    bool bytes, skip_zeros; /* rows are bytes; and zeros are left out of the first layers' chains */
    const uint8_t *rows[2]; /* by frame: table, and bytes of its rows */
    size_t row_bytes[2];
    uint32_t stages;
    cuda_mlp_t mlp[CUDA_MLP_STAGES];
    uint32_t place[CUDA_MLP_STAGES]; /* of each of the objective's stages, among these */
    uint32_t floats;                 /* of shared memory, of which the observations' columns are the first */
} cuda_fused_t;
typedef void (*cuda_fused_fn)(cudaStream_t stream, const cuda_fused_t *job);

#ifdef __cplusplus
}
#endif
