/*  What C17 and CUDA share of one number (common/nn/math) does what a lane of every build of the kernels does: the same bits for
 *  numbers of all kinds and a million patterns of bits. */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/vmath.h"
#include "common/nn/math/activation.h"
#include "common/nn/math/opt.h"
#include "common/nn/math/widen.h"
#include "tests/nn/ops_fixture.h"

#ifdef __SANITIZE_ADDRESS__
enum { PATTERNS = 1 << 12 };
#else
enum { PATTERNS = 1 << 20 };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
