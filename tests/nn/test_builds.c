/*  Equal bits: between the builds of the kernels, between the backends, and between a row alone and the same row among others. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

static const char *const s_builds[] = {"portable", "avx2", "avx512"};
static const size_t s_rows[] = {1, 2, 3, 4, 5, 7, 31, 32, 33, 36, 64, 67, 101};

/*  Everything a network computes, as one run of floats: outputs, a gradient, and parameters and state after two steps
 *  of each optimiser. */
typedef struct {
    size_t count;
    float *floats;
} trace_t;

static float *grow(trace_t *trace, size_t count)
{
    trace->floats = tt_realloc(trace->floats, (trace->count + count) * sizeof(float));
    float *at = trace->floats + trace->count;
    memset(at, 0, count * sizeof(float));
    trace->count += count;
    return at;
}

static void trace_optimiser(
    trace_t *trace, const place_t *place, tt_net_t *net, uint32_t group, const tt_opt_spec_t *kind, const float *grad)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const size_t state_count = tt_opt_state_count(kind, spec, group);
    tt_opt_t *opt = NULL;
    float *state = grow(trace, state_count + 1);
    assert_ok(tt_opt_new(&opt, net, group, kind));
    for (int i = 0; i < 2; i++)
        assert_ok(fixture_step(place, net, opt, grad, 0.01f, &state[state_count]));
    assert_true(tt_opt_steps(opt) == 2);
    assert_ok(tt_opt_get(opt, place->stream, state));
    tt_opt_destroy(&opt);
    assert_ok(tt_net_get(net, place->stream, 0, grow(trace, tt_net_param_count(spec))));
}

/*  Every other set follows in two strides, and is asked what it thinks. */
static void trace_sets(trace_t *trace, const place_t *place, tt_net_t *net, const rows_t *rows)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    for (uint32_t set = 1; set < spec->sets; set++) {
        assert_ok(tt_net_blend(net, place->stream, set, set - 1, (1u << tt_net_groups(spec)) - 1, 0.3f));
        assert_ok(tt_net_blend(net, place->stream, set, 0, 1, 1.0f));
        fixture_forward(place, net, set, rows->obs, rows->rows, grow(trace, rows->rows * fixture_outs(spec)));
    }
}

static trace_t run(const place_t *place, const tt_net_spec_t *spec, size_t row_count)
{
    const tt_opt_spec_t opts[] = {
        {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f},
        {.kind = TT_OPT_SGD, .momentum = 0.9f},
        {.kind = TT_OPT_SGD, .max_norm = 1e9f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f, .momentum = 0.9f, .max_norm = 1.0f},
    };
    trace_t trace = {0};
    tt_net_t *net = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, row_count);
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    fixture_forward(place, net, 0, rows.obs, row_count, grow(&trace, row_count * fixture_outs(spec)));
    for (size_t i = 0; i < TT_COUNT(opts); i++) {
        fixture_grad(place, net, &rows, 0, row_count, grad);
        memcpy(grow(&trace, tt_net_grad_count(spec)), grad, tt_net_grad_count(spec) * sizeof *grad);
        for (uint32_t g = 0; g < tt_net_groups(spec); g++)
            trace_optimiser(&trace, place, net, g, &opts[i], grad);
    }
    trace_sets(&trace, place, net, &rows);
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    return trace;
}

static void assert_same(const trace_t *a, const trace_t *b, const char *build, size_t spec, size_t rows)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        if (memcmp(&a->floats[i], &b->floats[i], sizeof(float)) != 0)
            fail_msg("shape %zu, %zu rows, float %zu: %s gives %a, the other %a", spec, rows, i, build,
                (double)b->floats[i], (double)a->floats[i]);
}

static void test_builds_agree(void **state)
{
    (void)state;
    place_t place[3];
    bool there[3];
    for (size_t b = 0; b < TT_COUNT(s_builds); b++)
        there[b] = fixture_build(&place[b], s_builds[b]);
    assert_true(there[0]);
    for (size_t s = 0; s < fixture_spec_count; s++)
        for (size_t r = s % 4; r < TT_COUNT(s_rows); r += 4) {
            trace_t expected = run(&place[0], &fixture_specs[s], s_rows[r]);
            for (size_t b = 1; b < TT_COUNT(s_builds); b++) {
                if (!there[b])
                    continue;
                trace_t got = run(&place[b], &fixture_specs[s], s_rows[r]);
                assert_same(&expected, &got, s_builds[b], s, s_rows[r]);
                free(got.floats);
            }
            free(expected.floats);
        }
    for (size_t b = 0; b < TT_COUNT(s_builds); b++)
        fixture_close(&place[b]);
}

static void test_backends_agree(void **state)
{
    (void)state;
    place_t cpu, strict;
    fixture_open_on(&cpu, "cpu", 1);
    fixture_open_on(&strict, "cpu-strict", 1);
    for (size_t s = 0; s < fixture_spec_count; s++) {
        trace_t expected = run(&cpu, &fixture_specs[s], 67), got = run(&strict, &fixture_specs[s], 67);
        assert_same(&expected, &got, "cpu-strict", s, 67);
        free(expected.floats);
        free(got.floats);
    }
    fixture_close(&cpu);
    fixture_close(&strict);
}

static uint64_t fingerprint(const size_t *shapes, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < count; s++) {
        trace_t trace = run(&place, &fixture_specs[shapes[s]], 37);
        const unsigned char *bytes = (const unsigned char *)trace.floats;
        for (size_t i = 0; i < trace.count * sizeof(float); i++)
            hash = (hash ^ bytes[i]) * 0x100000001b3u;
        free(trace.floats);
    }
    fixture_close(&place);
    return hash;
}

/*  What the bits are, and not only that they agree: on any machine, from any compiler. Shapes without log_std, whose loss
 *  needs libm. A change of kernels that moves bits must change these numbers, and the changelog. */
static void test_fingerprint(void **state)
{
    const size_t pairs[] = {0, 1, 6, 8}, others[] = {11, 12, 13, 15}, dueling[] = {16, 17}, parts[] = {18},
                 encoders[] = {20, 21, 22, 24}, means[] = {26}, noisy[] = {27}, embeds[] = {29, 30}, quantiles[] = {31},
                 atoms[] = {32, 33};
    (void)state;
    assert_int_equal(fingerprint(pairs, TT_COUNT(pairs)), 0x18fd42b06fea4e1fu);
    assert_int_equal(fingerprint(others, TT_COUNT(others)), 0x93cbc807b8a2cc9eu);
    assert_int_equal(fingerprint(dueling, TT_COUNT(dueling)), 0x41d3ff426672f2f2u);
    assert_int_equal(fingerprint(parts, TT_COUNT(parts)), 0xe4a07fc7397c1772u);
    assert_int_equal(fingerprint(encoders, TT_COUNT(encoders)), 0x9949d927e5c8dbc6u);
    assert_int_equal(fingerprint(noisy, TT_COUNT(noisy)), 0x96854c8f522e6916u);
    assert_int_equal(fingerprint(embeds, TT_COUNT(embeds)), 0x515ef349a1122e4du);
    assert_int_equal(fingerprint(means, TT_COUNT(means)), 0x67307be78312fb30u);
    assert_int_equal(fingerprint(quantiles, TT_COUNT(quantiles)), 0x68533ec09a370da7u);
    assert_int_equal(fingerprint(atoms, TT_COUNT(atoms)), 0x310194d9f0e6b1dfu);
}

/*  Row k alone, and rows k.. in blocks cut anywhere, against the whole; one head alone against all. */
static void check_rows(const place_t *place, tt_net_t *net, const rows_t *rows)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const size_t outs = fixture_outs(spec), n = rows->rows;
    float *all = tt_array0(n * outs, sizeof *all), *part = tt_array0(n * outs, sizeof *part), *at = all;
    fixture_forward(place, net, 0, rows->obs, n, all);
    for (uint32_t t = 0; t < spec->towers; at += n * spec->tower[t++].out) {
        float *only[TT_TOWERS_MAX] = {NULL};
        only[t] = part;
        const size_t A = spec->tower[t].out;
        for (size_t length = 1; length < n; length += 1 + length / 2)
            for (size_t k = 0; k + length <= n; k += length) {
                fixture_heads(place, net, 0, rows->obs + k, length, only);
                assert_memory_equal(part, at + k * A, length * A * sizeof *part);
            }
        fixture_heads(place, net, 0, rows->obs, n, only);
        assert_memory_equal(part, at, n * A * sizeof *part);
    }
    fixture_forward(place, net, 0, rows->obs + 3, 1, part);
    for (size_t t = 0, first = 0; t < spec->towers; first += spec->tower[t++].out) {
        const size_t A = spec->tower[t].out;
        assert_memory_equal(part + first, all + first * n + 3 * A, A * sizeof *part);
    }
    free(all);
    free(part);
}

static void test_rows_are_alone(void **state)
{
    (void)state;
    for (size_t b = 0; b < TT_COUNT(s_builds); b++) {
        place_t place;
        if (!fixture_build(&place, s_builds[b]))
            continue;
        for (size_t s = 0; s < fixture_spec_count; s++) {
            tt_net_t *net = fixture_net(&place, &fixture_specs[s]);
            rows_t rows = fixture_rows(&fixture_specs[s], 70);
            check_rows(&place, net, &rows);
            fixture_rows_free(&rows);
            tt_net_destroy(&net);
        }
        fixture_close(&place);
    }
}

/*  Rows of parts give what the same numbers give as floats. */
static void test_parts_are_numbers(void **state)
{
    (void)state;
    enum { ROWS = 45 };
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++) {
        const tt_net_spec_t *spec = &fixture_specs[s];
        if (!spec->parts || spec->layers) /* encoders divide bytes */
            continue;
        tt_net_spec_t plain = *spec;
        plain.parts = 0;
        rows_t rows = fixture_rows(spec, ROWS), flat = fixture_rows(&plain, ROWS);
        memcpy(flat.data, rows.data, ROWS * spec->obs * sizeof *flat.data);
        tt_net_t *net = fixture_net(&place, spec), *other = fixture_net(&place, &plain);
        const size_t count = tt_net_grad_count(spec), heads = ROWS * (size_t)fixture_outs(spec);
        float *a = tt_array0(count + heads, sizeof *a), *b = tt_array0(count + heads, sizeof *b);
        fixture_grad(&place, net, &rows, 0, ROWS, a);
        fixture_grad(&place, other, &flat, 0, ROWS, b);
        fixture_forward(&place, net, 0, rows.obs, ROWS, a + count);
        fixture_forward(&place, other, 0, flat.obs, ROWS, b + count);
        assert_memory_equal(a, b, (count + heads) * sizeof *a);
        free(a);
        free(b);
        fixture_rows_free(&rows);
        fixture_rows_free(&flat);
        tt_net_destroy(&net);
        tt_net_destroy(&other);
    }
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds_agree),
        cmocka_unit_test(test_backends_agree),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_rows_are_alone),
        cmocka_unit_test(test_parts_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
