/*  Cells of recurrent towers, launch by launch, on the simulated card: what math/recurrent.h does to each unit, and where it comes from and
 *  goes. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/cuda/kernels_recurrent.h"
#include "common/nn/math/recurrent.h"
#include "tests/cuda/card.h"

/*  A case: sequences in groups of three, whose rows lie step by step, as a run's do. Arrays here, of which those there are copies. */
typedef struct {
    cuda_sequences_t of; /* there; numbers are valid here */
    uint32_t seed, rows, table;
    uint32_t *first, *apart, *row;
    uint8_t *begins;
    float *carry;
    cuda_cells_t cells; /* here: owned, of rows and sequences as the header says */
    size_t H, G, count;
} case_t;

static float *s_array(const case_t *self, uint32_t what, size_t count)
{
    float *numbers = card_numbers(self->seed, what, count + 1);
    for (size_t i = 0; i < count; i++) /* as numbers of gates are */
        numbers[i] = numbers[i] > 8 ? 8 : numbers[i] < -8 ? -8 : numbers[i];
    return numbers;
}

static void s_lay(case_t *self, uint32_t seed)
{
    enum { GROUP = 3 };
    const uint32_t count = self->of.count, length = self->of.length;
    for (uint32_t u = 0; u < count; u++) {
        const uint32_t begin = u / GROUP * GROUP, wide = count - begin < GROUP ? count - begin : GROUP;
        self->first[u] = begin * length + u % GROUP;
        self->apart[u] = wide;
    }
    for (uint32_t r = 0; r < self->rows; r++)
        self->row[r] = ops_pick(seed, 100 + r, 0, self->table - 1);
    for (uint32_t r = 0; r < self->table; r++)
        self->begins[r] = ops_pick(seed, 5000 + r, 0, 3) == 0;
}

/*  alone: rows that are no sequences: one step, nothing begins. */
static case_t s_case(uint32_t seed, bool alone)
{
    case_t self = {.seed = seed,
        .of = {.count = ops_pick(seed, 0, 1, 10), .length = alone ? 1 : ops_pick(seed, 1, 1, 5)},
        .H = ops_pick(seed, 2, 1, 40)};
    self.cells.lstm = seed % 2;
    self.cells.units = (uint32_t)self.H;
    self.cells.carry_at = ops_pick(seed, 3, 0, 5);
    self.G = (self.cells.lstm ? 4 : 3) * self.H;
    self.count = self.of.count;
    self.rows = self.of.count * self.of.length;
    self.table = alone ? self.rows : self.rows + ops_pick(seed, 4, 0, 5);
    self.of.carry_floats = self.cells.carry_at + 2 * (uint32_t)self.H + ops_pick(seed, 5, 0, 2);
    self.first = tt_array0(self.count, sizeof *self.first);
    self.apart = tt_array0(self.count, sizeof *self.apart);
    self.row = tt_array0(self.rows, sizeof *self.row);
    self.begins = tt_array0(self.table, 1);
    self.carry = s_array(&self, 1, (size_t)self.table * self.of.carry_floats);
    s_lay(&self, seed);
    float **const of_rows[] = {&self.cells.h_in, &self.cells.h, &self.cells.c_in, &self.cells.c, &self.cells.n_in};
    for (uint32_t i = 0; i < TT_COUNT(of_rows); i++)
        *of_rows[i] = s_array(&self, 10 + i, self.rows * self.H);
    self.cells.gates = s_array(&self, 20, self.rows * self.G);
    self.cells.d_hidden = s_array(&self, 21, self.rows * self.G);
    self.cells.h_now = s_array(&self, 22, self.count * self.H);
    self.cells.c_now = s_array(&self, 23, self.count * self.H);
    self.cells.hidden = s_array(&self, 24, self.count * self.G);
    self.cells.d_h = s_array(&self, 25, self.rows * self.H);
    self.cells.carry_out = s_array(&self, 26, self.count * self.of.carry_floats);
    if (!alone) {
        self.of.first = card_put_u32(self.first, self.count);
        self.of.apart = card_put_u32(self.apart, self.count);
        self.of.row = card_put_u32(self.row, self.rows);
        self.of.begins = card_put_bytes(self.begins, self.table);
    }
    self.of.carry = card_put(self.carry, (size_t)self.table * self.of.carry_floats);
    return self;
}

static void s_free(case_t *self)
{
    void *owned[] = {self->first, self->apart, self->row, self->begins, self->carry, self->cells.gates,
        self->cells.h_in, self->cells.h, self->cells.c_in, self->cells.c, self->cells.n_in, self->cells.d_hidden,
        self->cells.h_now, self->cells.c_now, self->cells.hidden, (float *)(uintptr_t)self->cells.d_h,
        self->cells.carry_out};
    for (size_t i = 0; i < TT_COUNT(owned); i++)
        free(owned[i]);
}

/*  The same there; what the other kind has is NULL. */
static cuda_cells_t s_there(const case_t *self)
{
    cuda_cells_t to = self->cells;
    const bool lstm = to.lstm;
    to.gates = card_put(to.gates, self->rows * self->G);
    to.h_in = card_put(to.h_in, self->rows * self->H);
    to.h = card_put(to.h, self->rows * self->H);
    to.c_in = lstm ? card_put(to.c_in, self->rows * self->H) : NULL;
    to.c = lstm ? card_put(to.c, self->rows * self->H) : NULL;
    to.n_in = lstm ? NULL : card_put(to.n_in, self->rows * self->H);
    to.d_hidden = lstm ? to.gates : card_put(to.d_hidden, self->rows * self->G);
    to.h_now = card_put(to.h_now, self->count * self->H);
    to.c_now = lstm ? card_put(to.c_now, self->count * self->H) : NULL;
    to.hidden = card_put(to.hidden, self->count * self->G);
    to.d_h = card_put(to.d_h, self->rows * self->H);
    to.carry_out = card_put(to.carry_out, self->count * self->of.carry_floats);
    return to;
}

static void s_compare(const case_t *self, const cuda_cells_t *there)
{
    const cuda_cells_t *here = &self->cells;
    card_assert(here->gates, there->gates, self->rows * self->G, "gates");
    card_assert(here->h_in, there->h_in, self->rows * self->H, "h_in");
    card_assert(here->h, there->h, self->rows * self->H, "h");
    card_assert(here->h_now, there->h_now, self->count * self->H, "h_now");
    card_assert(here->hidden, there->hidden, self->count * self->G, "hidden");
    card_assert(here->carry_out, there->carry_out, self->count * self->of.carry_floats, "carry_out");
    if (here->lstm) {
        card_assert(here->c_in, there->c_in, self->rows * self->H, "c_in");
        card_assert(here->c, there->c, self->rows * self->H, "c");
        card_assert(here->c_now, there->c_now, self->count * self->H, "c_now");
    } else {
        card_assert(here->n_in, there->n_in, self->rows * self->H, "n_in");
        card_assert(here->d_hidden, there->d_hidden, self->rows * self->G, "d_hidden");
    }
}

/* ---- by the header, here ------------------------------------------------------------------------------------------- */

static size_t s_row(const case_t *self, size_t u, uint32_t t)
{
    return self->of.first ? self->first[u] + (size_t)t * self->apart[u] : u;
}

static bool s_begins(const case_t *self, size_t u, uint32_t t)
{
    return self->of.begins && self->begins[self->row[s_row(self, u, t)]];
}

/*  Where a unit's numbers are: of a row, of its gates, of a sequence, of its gates. */
typedef struct {
    size_t u, j, row, row_gates, now, now_gates;
} unit_t;

static void s_each(case_t *self, uint32_t t, void (*work)(case_t *self, const unit_t *at, uint32_t t))
{
    for (size_t u = 0; u < self->count; u++)
        for (size_t j = 0; j < self->H; j++) {
            const size_t r = s_row(self, u, t);
            work(self, &(unit_t){u, j, r * self->H + j, r * self->G + j, u * self->H + j, u * self->G + j}, t);
        }
}

static void s_begin(case_t *self, const unit_t *at, uint32_t t)
{
    const size_t r = s_row(self, at->u, t), number = self->of.row ? self->row[r] : r;
    const float *carry = self->carry + number * self->of.carry_floats + self->cells.carry_at;
    const bool begins = s_begins(self, at->u, t);
    self->cells.h_now[at->now] = begins ? 0 : carry[at->j];
    if (self->cells.lstm)
        self->cells.c_now[at->now] = begins ? 0 : carry[self->H + at->j];
}

static float s_lstm(const cuda_cells_t *cells, const unit_t *at, size_t H)
{
    float *g = cells->gates + at->row_gates;
    const float *x = cells->hidden + at->now_gates;
    const tt_lstm_t to = tt_lstm(&(tt_lstm_gates_t){g[0], g[H], g[2 * H], g[3 * H]},
        &(tt_lstm_gates_t){x[0], x[H], x[2 * H], x[3 * H]}, cells->c_now[at->now]);
    const float gave[] = {to.gates.i, to.gates.f, to.gates.g, to.gates.o};
    for (size_t k = 0; k < 4; k++)
        g[k * H] = gave[k];
    cells->c_in[at->row] = cells->c_now[at->now];
    cells->c[at->row] = cells->c_now[at->now] = to.c;
    return to.h;
}

static float s_gru(const cuda_cells_t *cells, const unit_t *at, size_t H)
{
    float *g = cells->gates + at->row_gates;
    const float *x = cells->hidden + at->now_gates;
    tt_gru_gates_t to;
    const float h = tt_gru(
        &(tt_gru_gates_t){g[0], g[H], g[2 * H]}, &(tt_gru_gates_t){x[0], x[H], x[2 * H]}, cells->h_now[at->now], &to);
    const float gave[] = {to.r, to.z, to.n};
    for (size_t k = 0; k < 3; k++)
        g[k * H] = gave[k];
    cells->n_in[at->row] = x[2 * H];
    return h;
}

static void s_step(case_t *self, const unit_t *at, uint32_t t)
{
    const cuda_cells_t *cells = &self->cells;
    const bool last = t + 1 == self->of.length, ends = !last && s_begins(self, at->u, t + 1);
    cells->h_in[at->row] = cells->h_now[at->now];
    const float h = (cells->lstm ? s_lstm : s_gru)(cells, at, self->H);
    if (last) {
        float *out = cells->carry_out + at->u * self->of.carry_floats + cells->carry_at;
        out[at->j] = h;
        if (cells->lstm)
            out[self->H + at->j] = cells->c_now[at->now];
    }
    cells->h[at->row] = h;
    cells->h_now[at->now] = ends ? 0 : h;
    if (ends && cells->lstm)
        cells->c_now[at->now] = 0;
}

static void s_back(case_t *self, const unit_t *at, uint32_t t)
{
    const cuda_cells_t *cells = &self->cells;
    const size_t H = self->H;
    const bool ends = t + 1 == self->of.length || s_begins(self, at->u, t + 1);
    float *g = cells->gates + at->row_gates, *x = cells->hidden + at->now_gates, *d = cells->d_hidden + at->row_gates;
    float d_h = cells->d_h[at->row] + (ends ? 0 : cells->h_now[at->now]);
    if (cells->lstm) {
        float d_c = ends ? 0 : cells->c_now[at->now];
        const tt_lstm_gates_t to = tt_lstm_back(&(tt_lstm_gates_t){g[0], g[H], g[2 * H], g[3 * H]},
            cells->c_in[at->row], tt_tanhf(cells->c[at->row]), d_h, &d_c);
        const float came[] = {to.i, to.f, to.g, to.o};
        for (size_t k = 0; k < 4; k++)
            g[k * H] = x[k * H] = came[k];
        cells->c_now[at->now] = d_c;
        return;
    }
    float d_n = 0;
    const tt_gru_gates_t to =
        tt_gru_back(&(tt_gru_gates_t){g[0], g[H], g[2 * H]}, cells->n_in[at->row], cells->h_in[at->row], &d_h, &d_n);
    const float came[] = {to.r, to.z, to.n}, hidden[] = {to.r, to.z, d_n};
    for (size_t k = 0; k < 3; k++) {
        g[k * H] = came[k];
        x[k * H] = d[k * H] = hidden[k];
    }
    cells->h_now[at->now] = d_h;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------- */

/*  What every second row carries on, the last one first. */
static void s_check_kept(const case_t *self, const cuda_cells_t *there)
{
    const cuda_cells_t *cells = &self->cells;
    const uint32_t count = (uint32_t)(self->rows + 1) / 2, C = self->of.carry_floats;
    uint32_t *row = tt_array0(count, sizeof *row);
    float *here = tt_array0((size_t)count * C, sizeof *here);
    for (size_t i = 0; i < (size_t)count * C; i++)
        here[i] = 7; /* between towers nothing is written */
    const cuda_keep_t keep = {count, NULL, card_put(here, (size_t)count * C), C};
    for (uint32_t i = 0; i < count; i++) {
        float *to = here + (size_t)i * C + cells->carry_at;
        row[i] = (uint32_t)(self->rows - 1) / 2 * 2 - 2 * i;
        memcpy(to, cells->h + row[i] * self->H, self->H * sizeof *to);
        if (cells->lstm)
            memcpy(to + self->H, cells->c + row[i] * self->H, self->H * sizeof *to);
    }
    cuda_cells_keep(card_stream(), there, &(cuda_keep_t){count, card_put_u32(row, count), keep.to, C});
    card_assert(here, keep.to, (size_t)count * C, "kept");
    cuda_cells_keep(card_stream(), there, &(cuda_keep_t){0, NULL, NULL, C});
    free(row);
    free(here);
}

static void s_try(uint32_t seed, bool alone)
{
    case_t self = s_case(seed, alone);
    const cuda_cells_t there = s_there(&self);
    cuda_cells_begin(card_stream(), &self.of, &there);
    s_each(&self, 0, s_begin);
    s_compare(&self, &there);
    for (uint32_t t = 0; t < self.of.length; t++) { /* products are others' tests: `hidden` stays what it is */
        cuda_cells_step(card_stream(), &self.of, &there, t);
        s_each(&self, t, s_step);
    }
    s_compare(&self, &there);
    s_check_kept(&self, &there);
    for (uint32_t t = self.of.length; t-- > 0;) {
        cuda_cells_back(card_stream(), &self.of, &there, t);
        s_each(&self, t, s_back);
    }
    s_compare(&self, &there);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    s_free(&self);
}

static void s_sequences(uint32_t seed)
{
    s_try(seed, false);
}

static void s_alone(uint32_t seed)
{
    s_try(seed, true);
}

static void test_sequences(void **state)
{
    (void)state;
    card_each(s_sequences, 24);
}

static void test_rows_alone(void **state)
{
    (void)state;
    card_each(s_alone, 12);
}

/*  Nobody wants to know what is carried on, and there may be no sequence at all. */
static void s_nobody(uint32_t seed)
{
    case_t self = s_case(seed, false);
    cuda_cells_t there = s_there(&self);
    there.carry_out = NULL;
    cuda_cells_begin(card_stream(), &self.of, &there);
    cuda_cells_step(card_stream(), &self.of, &there, self.of.length - 1);
    self.of.count = 0;
    cuda_cells_back(card_stream(), &self.of, &there, 0);
    assert_int_equal(cudaStreamSynchronize(card_stream()), cudaSuccess);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    s_free(&self);
}

static void test_nobody(void **state)
{
    (void)state;
    card_each(s_nobody, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_rows_alone),
        cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
