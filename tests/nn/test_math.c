/*  What C17 and CUDA share of one number (common/nn/math) does what a lane of every build of the kernels does: the same bits for
 *  numbers of all kinds and a million patterns of bits. */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "common/nn/math/activation.h"
#include "common/nn/math/opt.h"
#include "common/nn/math/recurrent.h"
#include "common/nn/math/widen.h"
#include "tests/nn/ops_fixture.h"

#ifdef __SANITIZE_ADDRESS__
enum { PATTERNS = 1 << 12, CELLS = 16 };
#else
enum { PATTERNS = 1 << 20, CELLS = 256 };
#endif

/*  Ends and turning points: of float, of tanh's clamp, of where moments settle. */
static const float s_ends[] = {0.0f, 0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 0x1p-101f, 0x1p-100f, 0x1.000002p-100f,
    0x1p-76f, 0x1p-50f, 0x1p-24f, 1e-6f, 0.1f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 7.5f, 0x1.fffffep2f, 8.0f,
    0x1.000002p3f, 9.0f, 255.0f, 0x1p64f, 0x1.fffffep127f, INFINITY, NAN};

/*  Number i of stream `what`: both signs of the ends first, then any bits at all. */
static float s_number(uint32_t what, size_t i)
{
    if (i < 2 * TT_COUNT(s_ends))
        return i % 2 ? -s_ends[i / 2] : s_ends[i / 2];
    uint32_t word[4];
    tt_draw(word, what, TT_STREAM_TEST, what, i / 4);
    return tt_f32_of_bits(word[i % 4]);
}

/*  Numbers that meet one another in all pairs of ends: stream 1 runs through them slower. */
static float *s_numbers(uint32_t what)
{
    const size_t ends = 2 * TT_COUNT(s_ends);
    float *numbers = tt_array0(PATTERNS, sizeof *numbers);
    for (size_t i = 0; i < PATTERNS; i++) {
        const size_t turn = what ? i / ends % ends : i % ends;
        numbers[i] = s_number(what, i < ends * ends ? turn : i);
    }
    return numbers;
}

typedef struct {
    float *x, *y, *expected, *got;
} arrays_t;

static arrays_t s_arrays(void)
{
    return (arrays_t){.x = s_numbers(0),
        .y = s_numbers(1),
        .expected = tt_array0(PATTERNS, sizeof(float)),
        .got = tt_array0(PATTERNS, sizeof(float))};
}

static void s_free(arrays_t *a)
{
    free(a->x);
    free(a->y);
    free(a->expected);
    free(a->got);
}

/* ---- activations ---------------------------------------------------------------------------------------------------- */

static void s_activations(const tt_kernels_t *kernels, uint32_t seed)
{
    (void)seed;
    arrays_t a = s_arrays();
    kernels->activate(TT_NN_TANH, PATTERNS, a.x, a.expected);
    for (size_t i = 0; i < PATTERNS; i++)
        a.got[i] = tt_tanhf(a.x[i]);
    ops_assert_same(a.expected, a.got, PATTERNS, kernels->name, "tanh");
    kernels->activate(TT_NN_RELU, PATTERNS, a.x, a.expected);
    for (size_t i = 0; i < PATTERNS; i++)
        a.got[i] = tt_reluf(a.x[i]);
    ops_assert_same(a.expected, a.got, PATTERNS, kernels->name, "ReLU");
    kernels->activate_back(TT_NN_TANH, PATTERNS, a.x, a.y, a.expected);
    for (size_t i = 0; i < PATTERNS; i++)
        a.got[i] = tt_tanh_back(a.x[i], a.y[i]);
    ops_assert_same(a.expected, a.got, PATTERNS, kernels->name, "tanh, back");
    kernels->activate_back(TT_NN_RELU, PATTERNS, a.x, a.y, a.expected);
    for (size_t i = 0; i < PATTERNS; i++)
        a.got[i] = tt_relu_back(a.x[i], a.y[i]);
    ops_assert_same(a.expected, a.got, PATTERNS, kernels->name, "ReLU, back");
    s_free(&a);
}

static void test_activations(void **state)
{
    (void)state;
    ops_on_builds(s_activations, 1);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------- */

static void s_bytes(const tt_kernels_t *kernels, uint32_t divisor)
{
    uint8_t bytes[256];
    float expected[256], got[256];
    for (size_t i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        got[i] = tt_widened(bytes[i], (float)divisor, 1.0f / (float)divisor);
    }
    kernels->widen(256, bytes, (float)divisor, expected);
    ops_assert_same(expected, got, 256, kernels->name, "widening");
}

static void s_widen(const tt_kernels_t *kernels, uint32_t seed)
{
    (void)seed;
    s_bytes(kernels, 1);
    s_bytes(kernels, 255);
}

static void test_widen(void **state)
{
    (void)state;
    ops_on_builds(s_widen, 1);
}

/* ---- optimisers ----------------------------------------------------------------------------------------------------- */

typedef void (*one_fn)(const tt_opt_step_t *o, size_t i);

static void s_adam(const tt_opt_step_t *o, size_t i)
{
    const tt_adam_t job = {o->lr, o->beta1, o->beta2, o->root_scale, o->eps};
    o->p[i] = tt_adam(&job, o->p[i], o->g[i] * o->clip, &o->s0[i], &o->s1[i]);
}

static void s_sgd(const tt_opt_step_t *o, size_t i)
{
    o->p[i] = tt_sgd(o->lr, o->momentum, o->p[i], o->g[i] * o->clip, o->s0 ? &o->s0[i] : NULL);
}

static void s_rmsprop(const tt_opt_step_t *o, size_t i)
{
    const tt_rmsprop_t job = {o->lr, o->alpha, o->momentum, o->eps};
    o->p[i] = tt_rmsprop(&job, o->p[i], o->g[i] * o->clip, &o->s0[i], o->s1 ? &o->s1[i] : NULL);
}

/*  One step of every pattern by the kernels and by `one`; state[s]: is there one? */
static void s_step(const tt_kernels_t *kernels, tt_opt_step_t job, bool s0, bool s1, one_fn one)
{
    float *g = s_numbers(0), *of[2][3];
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < 3; k++)
            of[side][k] = s_numbers(1 + k);
    for (int side = 0; side < 2; side++) {
        job.g = g;
        job.p = of[side][0];
        job.s0 = s0 ? of[side][1] : NULL;
        job.s1 = s1 ? of[side][2] : NULL;
        for (size_t i = 0; side && i < PATTERNS; i++)
            one(&job, i);
        if (!side)
            kernels->opt_step(&job);
    }
    for (uint32_t k = 0; k < 3; k++)
        ops_assert_same(
            of[0][k], of[1][k], PATTERNS, kernels->name, k ? "an optimiser's state" : "an optimiser's weights");
    for (uint32_t k = 0; k < 3; k++) {
        free(of[0][k]);
        free(of[1][k]);
    }
    free(g);
}

static void s_optimisers(const tt_kernels_t *kernels, uint32_t seed)
{
    (void)seed;
    tt_opt_step_t job = {.kind = TT_OPT_ADAM,
        .count = PATTERNS,
        .clip = tt_clip_factor(0.5f, 0.7f),
        .lr = 3e-4f,
        .beta1 = 0.9f,
        .beta2 = 0.999f,
        .root_scale = 3.3f,
        .alpha = 0.99f,
        .momentum = 0.9f,
        .eps = 1e-5f};
    s_step(kernels, job, true, true, s_adam);
    job.kind = TT_OPT_SGD;
    s_step(kernels, job, false, false, s_sgd);
    s_step(kernels, job, true, false, s_sgd);
    job.kind = TT_OPT_RMSPROP;
    s_step(kernels, job, true, false, s_rmsprop);
    s_step(kernels, job, true, true, s_rmsprop);
}

static void test_optimisers(void **state)
{
    (void)state;
    ops_on_builds(s_optimisers, 1);
}

static void test_clip(void **state)
{
    (void)state;
    assert_true(tt_clip_factor(0.0f, 5.0f) == 1.0f);
    assert_true(tt_clip_factor(0.5f, 0.1f) == 1.0f);
    assert_true(tt_clip_factor(0.5f, 5.0f) == 0.5f / (5.0f + 1e-6f));
}

/* ---- recurrent layers ------------------------------------------------------------------------------------------------ */

/*  Rows of units that end in the middle of a vector; numbers of every kind, in rows that begin anywhere. */
enum { UNITS = 37, UNITS16 = 48, GATES = 4, ROW_GATES = GATES * UNITS + 12, ARRAYS = 7 };

/*  What a kernel reads and writes: gates, hh; h_before, c_before (in), h, c and squashed, or d_h, d_c and squashed. */
typedef struct {
    float *gates, *hh, *unit[ARRAYS - 2];
} cells_t;

static float *s_cell_numbers(uint32_t what, size_t row, size_t used)
{
    float *numbers = tt_aligned0(CELLS * row * sizeof *numbers);
    for (size_t r = 0; r < CELLS; r++)
        for (size_t u = 0; u < used; u++) {
            const size_t i = r * used + u, ends = 2 * TT_COUNT(s_ends);
            const bool all = r % 2; /* else small ones, of which little vanishes */
            uint32_t word[4];
            tt_draw(word, 3, TT_STREAM_TEST, what, i);
            numbers[r * row + u] = all ? s_number(what, i % (3 * ends)) : 8 * tt_unit_f32(word[0]) - 4;
        }
    return numbers;
}

static cells_t s_cells(void)
{
    cells_t self = {.gates = s_cell_numbers(10, ROW_GATES, ROW_GATES), .hh = s_cell_numbers(11, ROW_GATES, ROW_GATES)};
    for (uint32_t i = 0; i < ARRAYS - 2; i++)
        self.unit[i] = s_cell_numbers(12 + i, UNITS16, UNITS);
    return self;
}

static void s_free_cells(cells_t *self)
{
    free(self->gates);
    free(self->hh);
    for (uint32_t i = 0; i < ARRAYS - 2; i++)
        free(self->unit[i]);
}

static tt_cell_t s_job(const cells_t *cells, bool back)
{
    return (tt_cell_t){.rows = CELLS,
        .units = UNITS,
        .row = UNITS16,
        .gates_row = ROW_GATES,
        .gates = cells->gates,
        .hh = cells->hh,
        .h_before = cells->unit[0],
        .c_before = cells->unit[1],
        .h = back ? NULL : cells->unit[2],
        .c = back ? NULL : cells->unit[3],
        .squashed = cells->unit[4],
        .d_h = back ? cells->unit[2] : NULL,
        .d_c = back ? cells->unit[3] : NULL};
}

static void s_lstm(const tt_cell_t *s, float *gates, const float *hh, size_t u)
{
    const tt_lstm_gates_t ih = {gates[0], gates[UNITS], gates[2 * UNITS], gates[3 * UNITS]};
    const tt_lstm_t to =
        tt_lstm(&ih, &(tt_lstm_gates_t){hh[0], hh[UNITS], hh[2 * UNITS], hh[3 * UNITS]}, s->c_before[u]);
    gates[0] = to.gates.i;
    gates[UNITS] = to.gates.f;
    gates[2 * UNITS] = to.gates.g;
    gates[3 * UNITS] = to.gates.o;
    s->c[u] = to.c;
    s->squashed[u] = to.squashed;
    s->h[u] = to.h;
}

static void s_lstm_back(const tt_cell_t *s, float *gates, size_t u)
{
    const tt_lstm_gates_t gave = {gates[0], gates[UNITS], gates[2 * UNITS], gates[3 * UNITS]};
    const tt_lstm_gates_t to = tt_lstm_back(&gave, s->c_before[u], s->squashed[u], s->d_h[u], &s->d_c[u]);
    gates[0] = to.i;
    gates[UNITS] = to.f;
    gates[2 * UNITS] = to.g;
    gates[3 * UNITS] = to.o;
}

static void s_put_gates(float *to, tt_gru_gates_t gates)
{
    to[0] = gates.r;
    to[UNITS] = gates.z;
    to[2 * UNITS] = gates.n;
}

static void s_gru(const tt_cell_t *s, float *gates, const float *hh, size_t u)
{
    tt_gru_gates_t gave;
    s->h[u] = tt_gru(&(tt_gru_gates_t){gates[0], gates[UNITS], gates[2 * UNITS]},
        &(tt_gru_gates_t){hh[0], hh[UNITS], hh[2 * UNITS]}, s->h_before[u], &gave);
    s_put_gates(gates, gave);
}

static void s_gru_back(const tt_cell_t *s, float *gates, float *hh, size_t u)
{
    const tt_gru_gates_t gave = {gates[0], gates[UNITS], gates[2 * UNITS]};
    float d_hh_n;
    const tt_gru_gates_t to = tt_gru_back(&gave, hh[2 * UNITS], s->h_before[u], &s->d_h[u], &d_hh_n);
    s_put_gates(gates, to);
    s_put_gates(hh, (tt_gru_gates_t){to.r, to.z, d_hh_n});
}

/*  All units of all rows, one by one. */
static void s_one_by_one(const tt_cell_t *s, bool lstm)
{
    for (size_t r = 0; r < CELLS; r++)
        for (size_t u = 0; u < UNITS; u++) {
            float *gates = s->gates + r * ROW_GATES + u, *hh = s->hh + r * ROW_GATES + u;
            if (s->d_h && lstm)
                s_lstm_back(s, gates, r * UNITS16 + u);
            else if (s->d_h)
                s_gru_back(s, gates, hh, r * UNITS16 + u);
            else if (lstm)
                s_lstm(s, gates, hh, r * UNITS16 + u);
            else
                s_gru(s, gates, hh, r * UNITS16 + u);
        }
}

/*  Every array, with what lies behind its units: zeros still, and what stood behind the gates. */
static void s_compare_cells(const tt_kernels_t *kernels, const char *what, void (*kernel)(const tt_cell_t *), bool back)
{
    cells_t expected = s_cells(), got = s_cells();
    const tt_cell_t wanted = s_job(&expected, back), job = s_job(&got, back);
    kernel(&job);
    s_one_by_one(&wanted, kernel == kernels->lstm || kernel == kernels->lstm_back);
    ops_assert_same(expected.gates, got.gates, (size_t)CELLS * ROW_GATES, kernels->name, what);
    ops_assert_same(expected.hh, got.hh, (size_t)CELLS * ROW_GATES, kernels->name, what);
    for (uint32_t i = 0; i < ARRAYS - 2; i++)
        ops_assert_same(expected.unit[i], got.unit[i], (size_t)CELLS * UNITS16, kernels->name, what);
    s_free_cells(&expected);
    s_free_cells(&got);
}

static void s_recurrent(const tt_kernels_t *kernels, uint32_t seed)
{
    (void)seed;
    s_compare_cells(kernels, "LSTM", kernels->lstm, false);
    s_compare_cells(kernels, "LSTM, back", kernels->lstm_back, true);
    s_compare_cells(kernels, "GRU", kernels->gru, false);
    s_compare_cells(kernels, "GRU, back", kernels->gru_back, true);
}

static void test_recurrent(void **state)
{
    (void)state;
    ops_on_builds(s_recurrent, 1);
}

/*  The sigmoid against libm's exp in double, and at its ends. */
static void test_sigmoid(void **state)
{
    (void)state;
    for (int i = -2000; i <= 2000; i++) {
        const float x = (float)i / 50;
        assert_true(fabs((double)tt_sigmoidf(x) - 1 / (1 + exp(-(double)x))) < 3e-7);
    }
    assert_true(tt_sigmoidf(0.0f) == 0.5f && tt_sigmoidf(-0.0f) == 0.5f && isnan(tt_sigmoidf(NAN)));
    assert_true(tt_sigmoidf(INFINITY) <= 1.0f && tt_sigmoidf(-INFINITY) >= 0.0f);
    assert_true(tt_sigmoidf(INFINITY) > 0.9999998f && tt_sigmoidf(-INFINITY) < 2e-7f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_sigmoid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
