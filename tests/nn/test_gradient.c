/*  Forward and gradients against a plain reference in double: values directly, gradients by central differences. */
#include <math.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "tests/nn/recurrent_fixture.h"
#include "tests/nn/reference.h"

static double *doubles(const place_t *place, const tt_net_t *net)
{
    const size_t count = tt_net_param_count(tt_net_spec(net));
    float *params = fixture_params(place, net, 0);
    double *out = tt_array0(count, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)params[i];
    free(params);
    return out;
}

static void assert_close(double a, double b, double tolerance, const char *what, size_t i)
{
    if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
        fail_msg("%s[%zu]: %.9g, the reference says %.9g", what, i, a, b);
}

static void check_forward(
    const place_t *place, tt_net_t *net, const reference_t *ref, const double *params, const rows_t *rows)
{
    const uint32_t outs = fixture_outs(ref->spec);
    float *out = tt_array0(rows->rows * outs, sizeof *out);
    double *expected = tt_array0(outs, sizeof *expected);
    fixture_forward(place, net, 0, rows->obs, rows->rows, out);
    for (size_t k = 0; k < rows->rows; k++) {
        const float *at = out;
        const double *want = expected;
        reference_forward(ref, params, rows->plain[k], expected);
        for (uint32_t t = 0; t < ref->spec->towers; t++) {
            const uint32_t A = ref->spec->tower[t].out;
            for (uint32_t a = 0; a < A; a++)
                assert_close((double)at[k * A + a], want[a], 5e-6, ref->spec->tower[t].name, k * A + a);
            at += rows->rows * A;
            want += A;
        }
    }
    free(out);
    free(expected);
}

/*  Central differences with step h in double leave h^2 / 6 f''' + 1e-16 / h; relu's kinks are narrower than the step
 *  almost everywhere. Some 100 parameters, spread over all; 20 of an encoder's
 *  network, which takes its time. */
static void check_gradient(const reference_t *ref, double *params, const rows_t *rows, const float *grad, size_t count)
{
    const double h = 1e-6;
    const size_t some = ref->spec->layers ? 19 : 97, stride = count <= some ? 1 : count / some;
    for (size_t i = 0; i < count; i += stride) {
        const double kept = params[i];
        params[i] = kept + h;
        const double up = reference_loss(ref, params, rows->plain, rows->row, rows->rows);
        params[i] = kept - h;
        const double down = reference_loss(ref, params, rows->plain, rows->row, rows->rows);
        params[i] = kept;
        assert_close((double)grad[i], (up - down) / (2 * h), 2e-5, "gradient", i);
    }
}

static void check_spec(const place_t *place, const tt_net_spec_t *spec, size_t row_count)
{
    const size_t count = tt_net_param_count(spec), grad_count = tt_net_grad_count(spec);
    tt_net_t *net = fixture_net(place, spec);
    rows_t rows = fixture_rows(spec, row_count);
    reference_t ref = {.spec = spec};
    ref.tensors = tt_net_tensors(net, &ref.tensor_count);
    double *params = doubles(place, net);
    check_forward(place, net, &ref, params, &rows);
    float *grad = tt_array0(grad_count, sizeof *grad);
    for (size_t i = 0; i < grad_count; i++)
        grad[i] = NAN; /* it must be overwritten, not added to */
    fixture_grad(place, net, &rows, 0, row_count, grad);
    check_gradient(&ref, params, &rows, grad, count);
    const float *stats = grad + tt_net_stats_offset(spec);
    const double loss = reference_loss(&ref, params, rows.plain, rows.row, row_count);
    assert_close((double)stats[0], loss, 1e-5, "statistics", 0);
    assert_true(stats[1] == (float)row_count);
    for (size_t i = tt_net_stats_offset(spec) + 2; i < grad_count; i++)
        assert_true(grad[i] == 0.0f);
    free(grad);
    free(params);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
}

/*  The best build alone: test_builds.c shows that the others give the same bits. */
static void test_against_reference(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t i = 0; i < fixture_spec_count; i++) {
        check_spec(&place, &fixture_specs[i], 1 + i);
        check_spec(&place, &fixture_specs[i], 33 + 2 * (i & 1));
    }
    fixture_close(&place);
}

/* ---- sequences ------------------------------------------------------------------------------------------------------ */

static double sequences_loss(const recurrent_t *world, const reference_t *ref, const double *params)
{
    const size_t C = tt_net_carry(ref->spec);
    double loss = 0;
    for (uint32_t q = 0; q < world->sequences; q++) {
        const size_t first = (size_t)q * world->length;
        const uint32_t *row = world->rows.row + first;
        loss += reference_sequence(
            ref, params, world->rows.plain + first, row, world->length, world->carry + row[0] * C, world->begins);
    }
    return loss;
}

static void check_sequences(const place_t *place, const tt_net_spec_t *spec, uint32_t sequences, uint32_t length)
{
    const double h = 1e-6;
    const size_t count = tt_net_param_count(spec), stride = count < 40 ? 1 : count / 40;
    recurrent_t world;
    recurrent_open(&world, place, spec, sequences, length);
    reference_t ref = {.spec = spec};
    ref.tensors = tt_net_tensors(world.net, &ref.tensor_count);
    double *params = doubles(place, world.net);
    float *grad = recurrent_grad(&world, 1);
    assert_close((double)grad[tt_net_stats_offset(spec)], sequences_loss(&world, &ref, params), 1e-5, "statistics", 0);
    for (size_t i = 0; i < count; i += stride) {
        const double kept = params[i];
        params[i] = kept + h;
        const double up = sequences_loss(&world, &ref, params);
        params[i] = kept - h;
        const double down = sequences_loss(&world, &ref, params);
        params[i] = kept;
        assert_close((double)grad[i], (up - down) / (2 * h), 3e-5, "gradient", i);
    }
    free(grad);
    free(params);
    recurrent_close(&world);
}

static void test_sequences(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (uint32_t big = 0; big < 2; big++) {
            place_t place;
            fixture_open(&place, 1);
            check_sequences(&place, &recurrent_specs[s], big ? 33 : 2, big ? 2 : 12);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
