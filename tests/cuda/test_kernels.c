/*  The kernels of the CUDA backend besides products, on the simulated card: gathers, sums, the norm and optimisers, against
 *  the CPU's or against loops that do what nn.md says: the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/scale.h"
#include "common/base/shift.h"
#include "common/base/stack.h"
#include "common/base/vmath.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/math/opt.h"
#include "tests/cuda/card.h"

static const tt_kernels_t *const s_cpu = &tt_kernels_portable;

/* ---- rows of a table ------------------------------------------------------------------------------------------------ */

/*  Parts of a case, each from a multiple of 4 on. Returns how many numbers a row is. */
static uint32_t s_parts(uint32_t seed, cuda_gather_t *job)
{
    uint32_t obs = 0;
    job->parts = seed % 5 == 4 ? 16 : ops_pick(seed, 0, 1, 4);
    for (uint32_t p = 0; p < job->parts; p++) {
        const uint32_t elements = ops_pick(seed, 10 + p, 1, 20);
        const bool bytes = ops_pick(seed, 30 + p, 0, 1);
        job->part[p].at = (uint32_t)job->bytes;
        job->part[p].elements = elements;
        job->part[p].bytes = bytes;
        obs += elements;
        job->bytes += bytes ? (elements + 3) / 4 * 4 : 4 * (size_t)elements;
    }
    if (job->parts == 1 && job->part[0].bytes) /* rows of bytes alone lie close */
        job->bytes = job->part[0].elements;
    return obs;
}

/*  Of all parts, whatever they hold. */
static void s_widen(const cuda_gather_t *job, const uint8_t *row, float *to)
{
    for (uint32_t p = 0; p < job->parts; p++)
        for (uint32_t e = 0; e < job->part[p].elements; e++, to++) {
            if (job->part[p].bytes)
                *to = (float)row[job->part[p].at + e];
            else
                memcpy(to, row + job->part[p].at + 4 * (size_t)e, sizeof *to);
        }
}

static void s_gather(uint32_t seed)
{
    const uint32_t table = ops_pick(seed, 2, 1, 60);
    cuda_gather_t job = {.count = seed % 7 ? ops_pick(seed, 1, 1, 100) : 0};
    const uint32_t obs = s_parts(seed, &job);
    if (seed % 2 && job.count > table)
        job.count = table;
    float *numbers = card_numbers(seed, 0, table * job.bytes / 4 + 1),
          *expected = tt_array0((size_t)job.count * obs + 1, 4);
    const uint8_t *rows = (const uint8_t *)numbers;
    uint32_t *row = tt_array0(job.count + 1, sizeof *row);
    for (uint32_t i = 0; i < job.count; i++) {
        row[i] = seed % 2 ? i : ops_pick(seed, 200 + i, 0, table - 1);
        s_widen(&job, rows + row[i] * job.bytes, expected + (size_t)i * obs);
    }
    job.rows = card_put_bytes(rows, table * job.bytes);
    job.row = seed % 2 ? NULL : card_put_u32(row, job.count);
    job.out = card_room((size_t)job.count * obs);
    cuda_gather(card_stream(), &job);
    card_assert(expected, job.out, (size_t)job.count * obs, "gathered rows");
    free(numbers);
    free(expected);
    free(row);
}

static void test_gather(void **state)
{
    (void)state;
    card_each(s_gather, 20);
}

/* ---- rows of frames ------------------------------------------------------------------------------------------------- */

/*  Parts with holes between them, in frames and rows; in every other case all of it is a multiple of 4. */
static tt_stack_t s_stack_of(uint32_t seed, size_t *frame_bytes, size_t *row_bytes)
{
    const uint32_t unit = seed % 2 ? 4 : 1;
    tt_stack_t self = {.frames = ops_pick(seed, 0, 1, 5), .parts = ops_pick(seed, 1, 1, 4)};
    uint32_t from = 0, to = 0;
    for (uint32_t p = 0; p < self.parts; p++) {
        const uint32_t bytes = unit * ops_pick(seed, 10 + p, 1, 20);
        self.part[p] = (tt_stack_part_t){from + unit * (p % 2), to + unit * (p % 3), bytes};
        from = self.part[p].from + bytes;
        to = self.part[p].to + self.frames * bytes;
    }
    *frame_bytes = from;
    *row_bytes = to + unit * (seed % 3);
    return self;
}

static void s_stack(uint32_t seed)
{
    size_t frame_bytes, row_bytes;
    const tt_stack_t stack = s_stack_of(seed, &frame_bytes, &row_bytes);
    const uint32_t frames = ops_pick(seed, 2, 1, 30), count = seed % 7 ? ops_pick(seed, 3, 1, 40) : 0;
    uint8_t *frame = tt_array0(frames, frame_bytes), *rows = tt_array0(count + 1, row_bytes);
    const size_t numbers = (size_t)count * stack.frames;
    uint32_t *index = tt_array0(numbers + 1, sizeof *index);
    const void *list[5];
    for (size_t i = 0; i < frames * frame_bytes; i++)
        frame[i] = (uint8_t)ops_pick(seed, 4 + (uint32_t)i, 0, 255);
    memset(rows, 7, count * row_bytes);
    cuda_stack_t job = {.count = count,
        .frames = stack.frames,
        .parts = stack.parts,
        .frame_bytes = frame_bytes,
        .row_bytes = row_bytes};
    job.rows = card_put_bytes(rows, count * row_bytes);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < stack.frames; k++) {
            index[i * stack.frames + k] = ops_pick(seed, 5000 + i * stack.frames + k, 0, frames - 1);
            list[k] = frame + index[i * stack.frames + k] * frame_bytes;
        }
        tt_stack_row(&stack, list, rows + i * row_bytes);
    }
    for (uint32_t p = 0; p < stack.parts; p++) {
        job.part[p].from = stack.part[p].from;
        job.part[p].to = stack.part[p].to;
        job.part[p].bytes = stack.part[p].bytes;
    }
    job.frame = card_put_bytes(frame, frames * frame_bytes);
    job.index = card_put_u32(index, numbers);
    cuda_stack(card_stream(), &job);
    uint8_t *got = tt_array0(count + 1, row_bytes);
    card_get_bytes(got, job.rows, count * row_bytes);
    assert_memory_equal(got, rows, count * row_bytes);
    free(got);
    free(frame);
    free(rows);
    free(index);
}

static void test_stack(void **state)
{
    (void)state;
    card_each(s_stack, 24);
}

/*  Pictures between what stays, in frames and rows. By seed all of it is a multiple of 4, place by place or not; or one thing is not. */
static cuda_shift_t s_shift_of(uint32_t seed, uint32_t *planes)
{
    enum { PICTURE, FRAME, ROW, FROM, TO, THINGS };
    const uint32_t odd = seed % 3 ? THINGS : seed / 3 % THINGS;
    const bool words = seed % 3 == 2 || odd == FRAME || odd == FROM; /* which are read as such, were it not for that */
    cuda_shift_t job = {.count = seed % 7 ? ops_pick(seed, 3, 1, 40) : 0,
        .frames = ops_pick(seed, 0, 1, 4),
        .height = odd == PICTURE ? 5 : ops_pick(seed, 1, 1, 7),
        .width = odd == PICTURE ? 3 : (words ? 1 : 4) * ops_pick(seed, 2, 1, 6),
        .place = odd == PICTURE ? 1 : (words ? 4 : 1) * ops_pick(seed, 4, 1, 3),
        .from = 4 * ops_pick(seed, 5, 0, 3) + (odd == FROM),
        .to = 4 * ops_pick(seed, 6, 0, 3) + (odd == TO)};
    *planes = odd == PICTURE ? 1 : ops_pick(seed, 7, 1, 3);
    job.bytes = *planes * job.height * job.width * job.place;
    job.frame_bytes = (job.from + job.bytes + 3) / 4 * 4 + 4 * ops_pick(seed, 8, 0, 2) + (odd == FRAME);
    job.row_bytes = (job.to + job.frames * job.bytes + 3) / 4 * 4 + 4 * ops_pick(seed, 9, 0, 2) + (odd == ROW);
    return job;
}

static void s_shift(uint32_t seed)
{
    uint32_t planes;
    cuda_shift_t job = s_shift_of(seed, &planes);
    const uint32_t frames = ops_pick(seed, 10, 1, 20);
    uint8_t *frame = tt_array0(frames, job.frame_bytes), *rows = tt_array0(job.count + 1, job.row_bytes),
            *got = tt_array0(job.count + 1, job.row_bytes);
    uint32_t *index = tt_array0((size_t)job.count * job.frames + 1, sizeof *index);
    int8_t(*by)[2] = tt_array0(job.count + 1, sizeof *by);
    const tt_shift_t moved = {.at = job.to,
        .planes = planes * job.frames,
        .height = job.height,
        .width = job.width,
        .place = job.place,
        .by = (const int8_t(*)[2])by};
    for (size_t i = 0; i < frames * job.frame_bytes; i++)
        frame[i] = (uint8_t)ops_pick(seed, 20 + (uint32_t)i, 0, 255);
    memset(rows, 7, job.count * job.row_bytes);
    job.rows = card_put_bytes(rows, job.count * job.row_bytes);
    for (uint32_t i = 0; i < job.count; i++) {
        by[i][0] = (int8_t)((int)ops_pick(seed, 3000 + i, 0, 10) - 5);
        by[i][1] = (int8_t)((int)ops_pick(seed, 4000 + i, 0, 10) - 5);
        for (uint32_t k = 0; k < job.frames; k++) {
            const uint32_t at = i * job.frames + k;
            index[at] = ops_pick(seed, 5000 + at, 0, frames - 1);
            memcpy(rows + i * job.row_bytes + job.to + k * job.bytes, frame + index[at] * job.frame_bytes + job.from,
                job.bytes);
        }
        tt_shift_row(&moved, i, rows + i * job.row_bytes);
    }
    job.frame = card_put_bytes(frame, frames * job.frame_bytes);
    job.index = card_put_u32(index, (size_t)job.count * job.frames);
    job.by = (const int8_t *)card_put_bytes((const uint8_t *)by, job.count * sizeof *by);
    cuda_shift(card_stream(), &job);
    card_get_bytes(got, job.rows, job.count * job.row_bytes);
    assert_memory_equal(got, rows, job.count * job.row_bytes);
    free(got);
    free(frame);
    free(rows);
    free(index);
    free(by);
}

static void test_shift(void **state)
{
    (void)state;
    card_each(s_shift, 45);
}

/*  Doubles on the card, at a multiple of 8. */
static const double *s_put_doubles(const double *numbers, uint32_t count)
{
    uint8_t *bytes = tt_array0(count + 1, sizeof(double));
    memcpy(bytes + 4, numbers, count * sizeof(double));
    const uint8_t *there = card_put_bytes(bytes, count * sizeof(double) + 4) + 4;
    free(bytes);
    return (const double *)(const void *)there;
}

enum { SCALED_MAX = 24 };

/*  In every third case one of the runs is a picture of two lines, or of one, that was moved before. */
static void s_scale_moved(uint32_t seed, cuda_scale_t *job)
{
    const uint32_t r = seed / 3 % job->runs, count = job->run[r].count;
    int8_t by[2 * 40];
    if (seed % 3)
        return;
    for (uint32_t i = 0; i < 2 * job->count; i++)
        by[i] = (int8_t)((int)ops_pick(seed, 600 + i, 0, 4) - 2);
    job->moved.run = r;
    job->moved.numbers = count % 4 ? 1 : 2;
    job->moved.height = count % 2 ? 1 : 2;
    job->moved.width = count / job->moved.height / job->moved.numbers;
    job->by = (const int8_t *)card_put_bytes((const uint8_t *)by, 2 * job->count);
}

/*  Which of a run's means is that of its float e, of row i. */
static uint32_t s_mean_of(const cuda_scale_t *job, const int8_t *by, uint32_t i, uint32_t r, uint32_t e)
{
    if (!by || r != job->moved.run)
        return job->run[r].first + e;
    return job->run[r].first +
           tt_shift_from(e, job->moved.height, job->moved.width, job->moved.numbers, by[2 * i], by[2 * i + 1]);
}

/*  Runs of floats in rows of several frames each, with others between them that stay as they are. */
static void s_scale(uint32_t seed)
{
    double mean[SCALED_MAX], inv[SCALED_MAX];
    cuda_scale_t job = {.count = ops_pick(seed, 0, 1, 40),
        .frames = ops_pick(seed, 1, 1, 4),
        .runs = ops_pick(seed, 2, 1, 3),
        .but = ops_pick(seed, 3, 0, 5),
        .clip = 0.5f + (float)(seed % 3)};
    uint32_t floats = 0, row = 0;
    for (uint32_t r = 0; r < job.runs; r++) {
        const uint32_t count = ops_pick(seed, 10 + r, 1, 8), part = count + seed % 2;
        job.run[r] = (__typeof__(job.run[r])){row * 4, part * 4, floats, count};
        floats += count;
        row += part * job.frames;
    }
    float *numbers = card_numbers(seed, 1, (size_t)job.count * row);
    uint32_t *index = tt_array0(job.count, job.frames * sizeof *index);
    for (uint32_t f = 0; f < floats; f++) {
        mean[f] = (double)ops_pick(seed, 200 + f, 0, 1000) / 999 - 0.5;
        inv[f] = 1 / (1 + (double)ops_pick(seed, 300 + f, 0, 1000) / 997);
    }
    for (uint32_t i = 0; i < job.count * job.frames; i++)
        index[i] = ops_pick(seed, 400 + i, 0, 5);
    float *there = card_put(numbers, (size_t)job.count * row);
    job.rows = (uint8_t *)there;
    job.row_bytes = row * sizeof(float);
    job.index = card_put_u32(index, (size_t)job.count * job.frames);
    job.mean = s_put_doubles(mean, floats);
    job.inv = s_put_doubles(inv, floats);
    s_scale_moved(seed, &job);
    int8_t by[2 * 40];
    if (job.by)
        card_get_bytes(by, job.by, 2 * job.count);
    cuda_scale(card_stream(), &job);
    for (uint32_t i = 0; i < job.count * job.frames; i++)
        for (uint32_t r = 0; index[i] != job.but && r < job.runs; r++) {
            float *x = numbers + i / job.frames * row + (job.run[r].at + i % job.frames * job.run[r].step) / 4;
            for (uint32_t e = 0; e < job.run[r].count; e++) {
                const uint32_t of = s_mean_of(&job, job.by ? by : NULL, i / job.frames, r, e);
                x[e] = tt_scaled(x[e], mean[of], inv[of], job.clip);
            }
        }
    card_assert(numbers, there, (size_t)job.count * row, "scaled rows");
    free(numbers);
    free(index);
}

static void test_scale(void **state)
{
    (void)state;
    card_each(s_scale, 24);
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

static void s_cpu_fold(const card_run_t *run, const card_blocks_t *blocks, uint32_t n, const float *partial, size_t at)
{
    for (uint32_t s = run->run.lo; s < run->run.hi; s++)
        for (uint32_t i = 0; i < n; i++) {
            float sum = 0.0f;
            for (size_t b = blocks->shard_block[s - run->run.lo]; b < blocks->shard_block[s - run->run.lo + 1]; b++)
                sum += partial[b * n + i];
            run->here[s][at + i] = sum;
        }
}

static void s_fold(uint32_t seed)
{
    const uint32_t n = ops_pick(seed, 0, 0, 300), at = seed % 3, end = n + at + seed % 2;
    card_run_t run = card_run(seed, end + 1);
    card_blocks_t blocks = card_blocks(&run);
    float *partial = card_numbers(seed, 0, blocks.blocks * (size_t)n);
    cuda_fold(card_stream(), &run.run, &blocks.there, n, card_put(partial, blocks.blocks * (size_t)n), at);
    s_cpu_fold(&run, &blocks, n, partial, at);
    card_assert_run(&run, "sums over blocks");
    cuda_clear(card_stream(), &run.run, at, n);
    for (uint32_t s = run.run.lo; s < run.run.hi; s++)
        memset(run.here[s] + at, 0, n * sizeof(float));
    card_assert_run(&run, "cleared sums");
    free(partial);
    card_blocks_free(&blocks);
    card_run_free(&run);
}

static void test_fold_and_clear(void **state)
{
    (void)state;
    card_each(s_fold, 16);
}

/*  As cpu/sums.c adds. */
static void s_tree(uint32_t seed)
{
    const size_t count = ops_pick(seed, 0, 1, 300);
    card_run_t run = card_run(seed, count + 1);
    for (uint32_t width = 1; width <= (run.run.hi - run.run.lo) / 2; width *= 2) {
        const uint32_t step = 2 * width;
        cuda_tree_level(card_stream(), &run.run, width, count);
        for (uint32_t at = (run.run.lo + step - 1) / step * step; at + step <= run.run.hi; at += step)
            s_cpu->add(count, run.here[at + width], run.here[at]);
    }
    card_assert_run(&run, "the tree");
    card_run_free(&run);
}

static void test_tree(void **state)
{
    (void)state;
    card_each(s_tree, 16);
}

/* ---- norm ----------------------------------------------------------------------------------------------------------- */

/*  Aligned as its 8 bytes want it. */
static const cuda_step_t *s_step(const cuda_step_t *step)
{
    uint8_t bytes[4 + sizeof *step] = {0};
    memcpy(bytes + 4, step, sizeof *step);
    return (const cuda_step_t *)(const void *)(card_put_bytes(bytes, sizeof bytes) + 4);
}

/*  A norm in device memory, and what it says. */
typedef struct {
    cuda_norm_t there;
    float newest, bad;
    uint64_t bad_step;
} norm_t;

static norm_t s_norm_new(void)
{
    static const uint64_t none[2] = {0};
    norm_t self = {.there.newest = card_room(1), .there.bad = card_room(1), .there.parts = card_room(3)};
    uint8_t *room = card_put_bytes((const uint8_t *)none, sizeof none);
    self.there.bad_step = (uint64_t *)(room + 4);
    return self;
}

static void s_norm(norm_t *self, size_t count, const float *g, uint64_t number)
{
    self->there.step = s_step(&(cuda_step_t){.number = number});
    cuda_norm(card_stream(), count, g, &self->there);
    card_get_bytes(&self->newest, self->there.newest, sizeof self->newest);
    card_get_bytes(&self->bad_step, self->there.bad_step, sizeof self->bad_step);
    if (self->bad_step)
        card_get_bytes(&self->bad, self->there.bad, sizeof self->bad);
}

static const size_t s_counts[] = {0, 1, 15, 63, 64, 65, 130, 1000, 8191, 8192, 8193, 20000, 40000, TT_NORM_PART - 1,
    TT_NORM_PART, TT_NORM_PART + 1, 2 * TT_NORM_PART + 100};

static void s_norm_of(uint32_t seed)
{
    const size_t count = s_counts[seed % TT_COUNT(s_counts)];
    norm_t norm = s_norm_new();
    float *g = card_numbers(4 * seed, 0, count), *aligned = tt_aligned0((count + 64) * sizeof *aligned);
    memcpy(aligned, g, count * sizeof *g);
    const float expected = sqrtf(s_cpu->sum_squares(count, aligned));
    s_norm(&norm, count, card_put(g, count), 7);
    ops_assert_same(&expected, &norm.newest, 1, "the card", "norm");
    assert_int_equal(norm.bad_step, isfinite(expected) ? 0 : 7);
    free(g);
    free(aligned);
}

static void test_norm(void **state)
{
    (void)state;
    card_each(s_norm_of, 2 * TT_COUNT(s_counts));
}

/*  The first norm that is not finite stays until somebody reports it. */
static void s_first_bad(uint32_t seed)
{
    (void)seed;
    norm_t norm = s_norm_new();
    const float numbers[] = {3.0f, 4.0f, 0x1p100f, NAN};
    const float *there = card_put(numbers, 4);
    s_norm(&norm, 2, there, 1);
    assert_true(norm.newest == 5.0f && norm.bad_step == 0);
    s_norm(&norm, 3, there, 2);
    assert_true(isinf(norm.newest) && isinf(norm.bad) && norm.bad_step == 2);
    s_norm(&norm, 4, there, 3);
    assert_true(isnan(norm.newest) && isinf(norm.bad) && norm.bad_step == 2);
    s_norm(&norm, 2, there, 4);
    assert_true(norm.newest == 5.0f && isinf(norm.bad) && norm.bad_step == 2);
}

static void test_first_bad_norm(void **state)
{
    (void)state;
    card_each(s_first_bad, 1);
}

/* ---- optimisers ----------------------------------------------------------------------------------------------------- */

typedef struct {
    tt_opt_kind_t here;
    cuda_opt_kind_t there;
    bool s0, s1;
} kind_t;

static const kind_t s_kinds[] = {{TT_OPT_ADAM, CUDA_ADAM, true, true}, {TT_OPT_SGD, CUDA_SGD, false, false},
    {TT_OPT_SGD, CUDA_SGD, true, false}, {TT_OPT_RMSPROP, CUDA_RMSPROP, true, false},
    {TT_OPT_RMSPROP, CUDA_RMSPROP, true, true}};

/*  Numbers in memory that the CPU's kernels want. */
static float *s_aligned(uint32_t seed, uint32_t what, size_t count)
{
    float *numbers = card_numbers(seed, what, count), *aligned = tt_aligned0((count + 16) * sizeof *aligned);
    memcpy(aligned, numbers, count * sizeof *numbers);
    free(numbers);
    return aligned;
}

static void s_opt_one(uint32_t seed, const kind_t *kind, float max_norm, float norm)
{
    const size_t count = ops_pick(seed, 0, 1, 700);
    float *of[4], *to[4];
    for (uint32_t i = 0; i < 4; i++) { /* p, g, s0, s1 */
        of[i] = s_aligned(seed, i, count);
        to[i] = (i == 2 && !kind->s0) || (i == 3 && !kind->s1) ? NULL : card_put(of[i], count);
    }
    const tt_opt_step_t here = {.kind = kind->here,
        .count = count,
        .p = of[0],
        .g = of[1],
        .s0 = kind->s0 ? of[2] : NULL,
        .s1 = kind->s1 ? of[3] : NULL,
        .clip = tt_clip_factor(max_norm, norm),
        .lr = 3e-3f,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .root_scale = 3.3f,
        .alpha = 0.95f,
        .momentum = 0.8f,
        .eps = 1e-5f};
    const cuda_opt_t there = {.kind = kind->there,
        .count = count,
        .p = to[0],
        .g = to[1],
        .s0 = to[2],
        .s1 = to[3],
        .norm = card_put(&norm, 1),
        .step = s_step(&(cuda_step_t){.lr = here.lr, .root_scale = here.root_scale}),
        .max_norm = max_norm,
        .beta1 = here.beta1,
        .beta2 = here.beta2,
        .alpha = here.alpha,
        .momentum = here.momentum,
        .eps = here.eps};
    if (isfinite(norm))
        s_cpu->opt_step(&here);
    cuda_opt(card_stream(), &there);
    for (uint32_t i = 0; i < 4; i++) {
        if (to[i])
            card_assert(of[i], to[i], count, i ? "an optimiser's state" : "an optimiser's weights");
        free(of[i]);
    }
}

static void s_opt(uint32_t seed)
{
    const kind_t *kind = &s_kinds[seed % TT_COUNT(s_kinds)];
    s_opt_one(seed, kind, 0.5f, 0.75f);
    s_opt_one(seed, kind, 0.5f, 0.25f);
    s_opt_one(seed, kind, 0.0f, 3.0f);
    s_opt_one(seed, kind, 0.5f, seed % 2 ? NAN : INFINITY);
}

static void test_opt(void **state)
{
    (void)state;
    card_each(s_opt, 2 * TT_COUNT(s_kinds));
}

static void s_blend(uint32_t seed)
{
    const size_t count = ops_pick(seed, 0, 0, 700);
    const float tau = 0.005f;
    float *from = s_aligned(seed, 0, count), *to = s_aligned(seed, 1, count), *there = card_put(to, count);
    cuda_blend(card_stream(), count, tau, card_put(from, count), there);
    s_cpu->blend(count, tau, from, to);
    card_assert(to, there, count, "blend");
    free(from);
    free(to);
}

static void test_blend(void **state)
{
    (void)state;
    card_each(s_blend, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_shift),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_fold_and_clear),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_first_bad_norm),
        cmocka_unit_test(test_opt),
        cmocka_unit_test(test_blend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
