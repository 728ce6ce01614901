/*  fast_conv - a convolution as products: what its places read is unfolded into a matrix, as many pictures at a time as stay in a card's
 *  second-level cache, and multiplied there.
 *
 *  No library of convolutions: cuDNN's would read pictures where they lie, but is a gigabyte more to install, and weights have another order
 *  there (docs/rationale.md). */
#include "common/base/mem.h"
#include "common/nn/cuda/fast_products.h"

/*  Floats that are unfolded at once, 128 MiB: so few as a card's second-level cache holds would be many small products. */
#ifndef CUDA_FAST_UNFOLDED
#define CUDA_FAST_UNFOLDED (32u << 20)
#endif

/*  Its shards, and how they are cut. */
typedef struct {
    cuda_fast_t *fast;
    const cuda_run_t *run;
    uint32_t positions, taps; /* of a picture's output; numbers that one of them reads */
    uint32_t most;            /* pictures at once                                      */
} conv_t;

static conv_t s_conv(const cuda_dense_t *dense, const cuda_run_t *run, const cuda_window_t *w)
{
    conv_t self = {
        .fast = dense->fast, .run = run, .positions = w->out_h * w->out_w, .taps = w->kernel_h * w->kernel_w * w->in_c};
    const uint64_t floats = (uint64_t)self.positions * self.taps;
    self.most = floats < CUDA_FAST_UNFOLDED ? (uint32_t)(CUDA_FAST_UNFOLDED / floats) : 1;
    return self;
}

/*  Pictures of one shard, counted from the run's. */
typedef struct {
    uint32_t shard, first, count;
    bool later; /* not the shard's first */
} piece_t;

static piece_t s_begin(const conv_t *self)
{
    return (piece_t){.shard = self->run->lo};
}

static bool s_next(const conv_t *self, piece_t *piece)
{
    const uint32_t begin = cuda_first_row(self->run, self->run->lo);
    piece->later = piece->count > 0;
    piece->first += piece->count;
    while (piece->shard < self->run->hi && piece->first == cuda_first_row(self->run, piece->shard + 1) - begin) {
        piece->shard++;
        piece->later = false;
    }
    if (piece->shard == self->run->hi)
        return false;
    const uint32_t left = cuda_first_row(self->run, piece->shard + 1) - begin - piece->first;
    piece->count = left < self->most ? left : self->most;
    return true;
}

/*  A shard with `rows` pictures: the positions of a whole piece, and of what is left. */
static void s_counts(const conv_t *self, uint32_t rows, uint32_t *whole, uint32_t *left)
{
    if (rows >= self->most)
        *whole = self->most * self->positions;
    *left = rows % self->most * self->positions;
}

static bool s_goes(const conv_t *self, const cuda_gemm_t *job, bool sums)
{
    if (!self->fast || !self->run || (uint64_t)self->run->rows * self->positions > INT32_MAX)
        return false;
    const fast_rows_t rows = fast_rows(self->run);
    fast_question_t question = {.job = *job, .sums = sums};
    *(sums ? &question.job.k : &question.job.m) = rows.least * self->positions;
    s_counts(self, rows.least, &question.count[0], &question.count[1]);
    s_counts(self, rows.most, &question.count[0], &question.count[2]);
    return rows.least && fast_goes(self->fast, &question);
}

/*  Room for what a piece reads, and for what comes to biases; NULL: it has failed. */
static float *s_room(const conv_t *self, uint32_t outs)
{
    const uint32_t most = fast_rows(self->run).most, rows = most < self->most ? most : self->most;
    const size_t read = tt_mul(tt_mul(rows, self->positions), self->taps);
    const size_t biases = tt_mul((size_t)(self->run->hi - self->run->lo) * CUDA_BIAS_PIECES, outs);
    const size_t floats = read > biases ? read : biases;
    return fast_room(self->fast, tt_mul(floats, sizeof(float))) ? self->fast->sums.memory : NULL;
}

static void s_unfold(
    cudaStream_t stream, const cuda_window_t *window, const float *in, const piece_t *piece, float *room)
{
    const cuda_unfold_t job = {.window = *window,
        .rows = piece->count,
        .in = in + (size_t)piece->first * window->in_h * window->in_w * window->in_c,
        .out = room};
    cuda_unfold(stream, &job);
}

/*  Floats before the piece, of a picture's `width` a position. */
static size_t s_at(const conv_t *self, const piece_t *piece, uint32_t width)
{
    return (size_t)piece->first * self->positions * width;
}

void cuda_conv2d(const cuda_dense_t *dense, cudaStream_t stream, const cuda_conv_t *job)
{
    static const cuda_kind_t kinds[] = {
        [CUDA_ACT_TANH] = CUDA_TANH, [CUDA_ACT_RELU] = CUDA_RELU, [CUDA_ACT_NONE] = CUDA_SUM};
    const conv_t self = s_conv(dense, dense->run, &job->window);
    const uint32_t outs = job->window.out_c;
    cuda_gemm_t products = {.kind = kinds[job->act],
        .n = outs,
        .k = self.taps,
        .a_row = self.taps,
        .a_k = 1,
        .b = job->weight,
        .b_k = outs,
        .b_col = 1,
        .c = job->out,
        .c_row = outs,
        .bias = job->bias};
    if (!s_goes(&self, &products, false)) {
        cuda_conv(stream, job);
        return;
    }
    float *room = s_room(&self, outs);
    for (piece_t piece = s_begin(&self); room && s_next(&self, &piece);) {
        s_unfold(stream, &job->window, job->in, &piece, room);
        cuda_gemm_t product = products;
        product.m = piece.count * self.positions;
        product.a = room;
        product.c += s_at(&self, &piece, outs);
        fast_multiply(self.fast, &product, false);
    }
    products.m = job->rows * self.positions;
    if (room)
        cuda_ends(stream, &products, job->out);
}

void cuda_conv2d_back(const cuda_dense_t *dense, cudaStream_t stream, const cuda_conv_back_t *job)
{
    const cuda_window_t *w = &job->window;
    const conv_t self = s_conv(dense, dense->run, w);
    const size_t read = (size_t)w->in_h * w->in_w * w->in_c;
    const cuda_gemm_t products = {.kind = CUDA_D_NONE,
        .n = self.taps,
        .k = w->out_c,
        .a = job->d,
        .a_row = w->out_c,
        .a_k = 1,
        .b = job->weight,
        .b_k = 1,
        .b_col = w->out_c,
        .c_row = self.taps};
    if (!s_goes(&self, &products, false)) {
        cuda_conv_back(stream, job);
        return;
    }
    float *room = s_room(&self, w->out_c);
    for (piece_t piece = s_begin(&self); room && s_next(&self, &piece);) {
        cuda_gemm_t product = products;
        product.m = piece.count * self.positions;
        product.a += s_at(&self, &piece, w->out_c);
        product.c = room;
        fast_multiply(self.fast, &product, false);
        const cuda_unfold_back_t back = {.window = *w,
            .before = job->before,
            .rows = piece.count,
            .d = room,
            .in = job->in + piece.first * read,
            .d_in = job->d_in + piece.first * read};
        cuda_unfold_back(stream, &back);
    }
}

/*  The biases' gradients are sums over all positions. */
static void s_bias(const conv_t *self, cudaStream_t stream, const cuda_conv_grads_t *job, float *room)
{
    const cuda_outer_t outer = {
        .n = job->window.out_c, .d = job->d, .d_row = job->window.out_c, .bias_at = job->bias_at};
    cuda_run_t run = *self->run;
    run.rows *= self->positions;
    run.length = (run.length ? run.length : 1) * self->positions;
    cuda_bias_grads(stream, &run, &outer, room);
}

void cuda_conv2d_grads(
    const cuda_dense_t *dense, cudaStream_t stream, const cuda_run_t *run, const cuda_conv_grads_t *job)
{
    const uint32_t outs = job->window.out_c;
    const conv_t self = s_conv(dense, run, &job->window);
    const cuda_gemm_t products = {.m = self.taps,
        .n = outs,
        .a_row = 1,
        .a_k = self.taps,
        .b = job->d,
        .b_k = outs,
        .b_col = 1,
        .c = run->grad[run->lo] + job->at,
        .c_row = outs};
    if (!s_goes(&self, &products, true)) {
        cuda_conv_grads(stream, run, job);
        return;
    }
    float *room = s_room(&self, outs);
    for (piece_t piece = s_begin(&self); room && s_next(&self, &piece);) {
        s_unfold(stream, &job->window, job->in, &piece, room);
        cuda_gemm_t product = products;
        product.k = piece.count * self.positions;
        product.a = room;
        product.b += s_at(&self, &piece, outs);
        product.c = run->grad[piece.shard] + job->at;
        fast_multiply(self.fast, &product, piece.later);
    }
    if (room)
        s_bias(&self, stream, job, room);
}
