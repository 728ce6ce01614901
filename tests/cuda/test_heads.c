/*  The kernels that make values of heads, and noisy weights, on the simulated card, against the CPU's: the same bits. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/cpu/cpu.h"
#include "tests/cuda/card.h"

/* ---- rows and columns ----------------------------------------------------------------------------------------------- */

static size_t s_column(const card_blocks_t *blocks, size_t row, size_t outs, size_t a)
{
    return (blocks->slot[row] / TT_BLOCK * outs + a) * TT_BLOCK + blocks->slot[row] % TT_BLOCK;
}

/*  [rows][outs] as columns, zeros behind the rows of a block. */
static float *s_columns(const card_blocks_t *blocks, size_t rows, size_t outs, const float *from)
{
    float *columns = tt_array0(blocks->blocks * outs * TT_BLOCK + 1, sizeof *columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t a = 0; a < outs; a++)
            columns[s_column(blocks, r, outs, a)] = from[r * outs + a];
    return columns;
}

static float *s_rows(const card_blocks_t *blocks, size_t rows, size_t outs, const float *columns)
{
    float *out = tt_array0(rows * outs + 1, sizeof *out);
    for (size_t r = 0; r < rows; r++)
        for (size_t a = 0; a < outs; a++)
            out[r * outs + a] = columns[s_column(blocks, r, outs, a)];
    return out;
}

/*  Rows and columns of one thing, here and there. */
typedef struct {
    size_t outs;
    float *rows, *columns;
} both_t;

static both_t s_both(const card_run_t *run, const card_blocks_t *blocks, uint32_t seed, uint32_t what, size_t outs)
{
    float *rows = card_numbers(seed, what, run->rows * outs);
    return (both_t){outs, rows, s_columns(blocks, run->rows, outs, rows)};
}

static void s_forget(both_t *both)
{
    free(both->rows);
    free(both->columns);
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/*  Values q [rows][outs] of a head, and of another one where there are two; as the CPU has them of a block of columns, or on
 *  the card: of rows, or of columns where slot says which. */
typedef struct {
    size_t rows, outs, n;
    const uint32_t *slot;
    const float *head, *value;
    float *q;
} values_t;

typedef void values_fn(const values_t *values);

static void s_forward(const char *what, values_fn *cpu, values_fn *card, const card_run_t *run,
    const card_blocks_t *blocks, const both_t *head, const both_t *value, size_t outs, size_t n)
{
    const size_t count = run->rows * outs, all = blocks->blocks * outs * TT_BLOCK;
    float *columns = tt_array0(all + 1, sizeof *columns), *q = card_room(count), *there = card_room(all);
    for (size_t b = 0; b < blocks->blocks; b++)
        cpu(&(values_t){.rows = TT_BLOCK,
            .outs = outs,
            .n = n,
            .head = head->columns + b * head->outs * TT_BLOCK,
            .value = value ? value->columns + b * value->outs * TT_BLOCK : NULL,
            .q = columns + b * outs * TT_BLOCK});
    float *rows = s_rows(blocks, run->rows, outs, columns);
    values_t values = {.rows = run->rows, .outs = outs, .n = n, .q = q};
    values.head = card_put(head->rows, run->rows * head->outs);
    values.value = value ? card_put(value->rows, run->rows * value->outs) : NULL;
    card(&values);
    card_assert(rows, q, count, what);
    values.slot = blocks->there.slot;
    values.head = card_put(head->columns, blocks->blocks * head->outs * TT_BLOCK);
    values.value = value ? card_put(value->columns, blocks->blocks * value->outs * TT_BLOCK) : NULL;
    values.q = there;
    card(&values);
    float *got = card_get(there, all), *of = s_rows(blocks, run->rows, outs, got);
    ops_assert_same(rows, of, count, "the card, in columns", what);
    free(columns);
    free(rows);
    free(got);
    free(of);
}

/* ---- dueling -------------------------------------------------------------------------------------------------------- */

static void s_cpu_dueling(const values_t *of)
{
    cpu_dueling_forward(of->value, of->head, of->outs, of->n, of->q);
}

static void s_card_dueling(const values_t *of)
{
    cuda_dueling(card_stream(), &(cuda_dueling_t){.rows = (uint32_t)of->rows,
                                    .outs = (uint32_t)of->outs,
                                    .n = (uint32_t)of->n,
                                    .slot = of->slot,
                                    .value = of->value,
                                    .advantage = of->head,
                                    .q = of->q});
}

static void s_back(const card_run_t *run, const card_blocks_t *blocks, const both_t *d_q, size_t n)
{
    const size_t outs = d_q->outs, count = run->rows * outs, all = blocks->blocks * outs * TT_BLOCK;
    float *d_value = tt_array0(blocks->blocks * n * TT_BLOCK + 1, sizeof *d_value);
    float *d_advantage = tt_array0(all + 1, sizeof *d_advantage);
    for (size_t b = 0; b < blocks->blocks; b++)
        cpu_dueling_backward(
            d_q->columns + b * outs * TT_BLOCK, outs, n, d_value + b * n * TT_BLOCK, d_advantage + b * outs * TT_BLOCK);
    float *value_rows = s_rows(blocks, run->rows, n, d_value), *rows = s_rows(blocks, run->rows, outs, d_advantage);
    float *there = card_room(run->rows * n), *others = card_room(count);
    cuda_dueling_back(card_stream(), run->rows, (uint32_t)outs, (uint32_t)n, card_put(d_q->rows, count), there, others);
    card_assert(value_rows, there, run->rows * n, "dueling, back to the value");
    card_assert(rows, others, count, "dueling, back to the advantages");
    free(d_value);
    free(d_advantage);
    free(value_rows);
    free(rows);
}

static void s_dueling(uint32_t seed)
{
    card_run_t run = card_run(seed, 1);
    card_blocks_t blocks = card_blocks(&run);
    const size_t n = seed % 2 ? 1 : ops_pick(seed, 1, 2, 5), outs = n * ops_pick(seed, 0, 1, 9);
    both_t value = s_both(&run, &blocks, seed, 0, n), advantage = s_both(&run, &blocks, seed, 1, outs);
    both_t d_q = s_both(&run, &blocks, seed, 2, outs);
    s_forward("dueling", s_cpu_dueling, s_card_dueling, &run, &blocks, &advantage, &value, advantage.outs, value.outs);
    s_back(&run, &blocks, &d_q, n);
    s_forget(&value);
    s_forget(&advantage);
    s_forget(&d_q);
    card_blocks_free(&blocks);
    card_run_free(&run);
}

static void test_dueling(void **state)
{
    (void)state;
    card_each(s_dueling, 12);
}

/* ---- means ---------------------------------------------------------------------------------------------------------- */

static void s_cpu_mean(const values_t *of)
{
    cpu_mean_forward(of->head, of->outs, of->n, of->q);
}

static void s_card_mean(const values_t *of)
{
    cuda_mean(card_stream(), (uint32_t)of->rows, of->slot, (uint32_t)of->outs, (uint32_t)of->n, of->head, of->q);
}

static void s_mean_back(const card_run_t *run, const card_blocks_t *blocks, const both_t *d_q, size_t n)
{
    const size_t outs = d_q->outs, count = run->rows * outs * n, all = blocks->blocks * outs * n * TT_BLOCK;
    float *d_head = tt_array0(all + 1, sizeof *d_head), *there = card_room(count);
    for (size_t b = 0; b < blocks->blocks; b++)
        cpu_mean_backward(d_q->columns + b * outs * TT_BLOCK, outs, n, d_head + b * outs * n * TT_BLOCK);
    float *rows = s_rows(blocks, run->rows, outs * n, d_head);
    cuda_mean_back(card_stream(), run->rows, (uint32_t)outs, (uint32_t)n, card_put(d_q->rows, run->rows * outs), there);
    card_assert(rows, there, count, "means, back");
    free(d_head);
    free(rows);
}

static void s_means(uint32_t seed)
{
    card_run_t run = card_run(seed, 1);
    card_blocks_t blocks = card_blocks(&run);
    const size_t outs = ops_pick(seed, 0, 1, 5), n = ops_pick(seed, 1, 1, 7);
    both_t head = s_both(&run, &blocks, seed, 0, outs * n), d_q = s_both(&run, &blocks, seed, 1, outs);
    s_forward("means", s_cpu_mean, s_card_mean, &run, &blocks, &head, NULL, outs, n);
    s_mean_back(&run, &blocks, &d_q, n);
    s_forget(&head);
    s_forget(&d_q);
    card_blocks_free(&blocks);
    card_run_free(&run);
}

static void test_means(void **state)
{
    (void)state;
    card_each(s_means, 12);
}

/* ---- atoms ---------------------------------------------------------------------------------------------------------- */

static const float s_low = -1.5f, s_high = 7.25f;

static void s_cpu_atoms(const values_t *of)
{
    cpu_atoms_forward(of->head, of->outs, of->n, s_low, s_high, of->q);
}

static void s_card_atoms(const values_t *of)
{
    cuda_atoms(card_stream(), &(cuda_atoms_t){.rows = (uint32_t)of->rows,
                                  .outs = (uint32_t)of->outs,
                                  .n = (uint32_t)of->n,
                                  .slot = of->slot,
                                  .low = s_low,
                                  .high = s_high,
                                  .head = of->head,
                                  .q = of->q});
}

static void s_atoms(uint32_t seed)
{
    card_run_t run = card_run(seed, 1);
    card_blocks_t blocks = card_blocks(&run);
    const size_t outs = ops_pick(seed, 0, 1, 5), n = ops_pick(seed, 1, 2, 53);
    both_t head = s_both(&run, &blocks, seed, 0, outs * n);
    s_forward("atoms", s_cpu_atoms, s_card_atoms, &run, &blocks, &head, NULL, outs, n);
    s_forget(&head);
    card_blocks_free(&blocks);
    card_run_free(&run);
}

static void test_atoms(void **state)
{
    (void)state;
    card_each(s_atoms, 12);
}

/* ---- noise ---------------------------------------------------------------------------------------------------------- */

static float s_noise(const cuda_noisy_t *job, size_t e)
{
    return job->in ? job->in[e / job->cols] * job->out_[e % job->cols] : job->out_[e % job->cols];
}

static void s_noisy(uint32_t seed)
{
    const bool bias = seed % 3 == 2;
    const uint32_t rows = bias ? 1 : ops_pick(seed, 0, 1, 40), cols = ops_pick(seed, 1, 1, 40);
    const size_t count = (size_t)rows * cols, mean_at = seed % 2, sigma_at = mean_at + count + seed % 3;
    card_run_t run = card_run(seed, sigma_at + count + 1);
    float *mean = card_numbers(seed, 0, count), *deviation = card_numbers(seed, 1, count);
    float *in = bias ? NULL : card_numbers(seed, 2, rows), *out_ = card_numbers(seed, 3, cols);
    cuda_noisy_t here = {.rows = rows, .cols = cols, .mean = mean, .deviation = deviation, .in = in, .out_ = out_};
    cuda_noisy_t there = {.rows = rows,
        .cols = cols,
        .mean = card_put(mean, count),
        .deviation = card_put(deviation, count),
        .in = card_put(in, rows),
        .out_ = card_put(out_, cols),
        .out = card_room(count)};
    cuda_noisy(card_stream(), &there);
    cuda_noisy_back(card_stream(), &run.run, &there, mean_at, sigma_at);
    for (uint32_t s = run.run.lo; s < run.run.hi; s++)
        for (size_t e = 0; card_first(&run, s) < card_first(&run, s + 1) && e < count; e++)
            run.here[s][sigma_at + e] = run.here[s][mean_at + e] * s_noise(&here, e);
    for (size_t e = 0; e < count; e++)
        mean[e] = mean[e] + deviation[e] * s_noise(&here, e);
    card_assert(mean, there.out, count, "noisy weights");
    card_assert_run(&run, "noisy weights' deviations");
    free(mean);
    free(deviation);
    free(in);
    free(out_);
    card_run_free(&run);
}

static void test_noisy(void **state)
{
    (void)state;
    card_each(s_noisy, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dueling),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_atoms),
        cmocka_unit_test(test_noisy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
