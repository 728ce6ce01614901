/*  A network on a device of its own: the heads and the log_std of one that was opened by hand. */
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/nn/inference.h"
#include "tests/nn/fixture.h"

static void check_spec(const place_t *place, const tt_net_spec_t *spec)
{
    enum { ROWS = 35 };
    tt_net_t *net = fixture_net(place, spec);
    tt_inference_t *own = NULL;
    rows_t rows = fixture_rows(spec, ROWS);
    const size_t outs = ROWS * (size_t)fixture_outs(spec);
    float *params = fixture_params(place, net, 0), *want = tt_array0(outs, sizeof *want);
    float *got = tt_array0(outs, sizeof *got), log_std[2][64] = {{0}}, *at[TT_TOWERS_MAX] = {NULL}, *out = got;
    for (uint32_t t = 0; t < spec->towers; out += ROWS * spec->tower[t++].out)
        at[t] = out;
    assert_ok(tt_inference_new(&own, spec));
    assert_ok(tt_inference_put(own, params));
    assert_ok(tt_inference_run(own, (const void *const *)rows.obs, ROWS, at));
    fixture_forward(place, net, 0, rows.obs, ROWS, want);
    assert_memory_equal(got, want, outs * sizeof *got);
    for (uint32_t t = 0; t < spec->towers; t++) {
        assert_ok(tt_inference_log_std(own, t, log_std[0]));
        assert_ok(tt_net_get_log_std(net, place->stream, 0, t, log_std[1]));
        assert_memory_equal(log_std[0], log_std[1], sizeof log_std[0]);
    }
    assert_ok(tt_net_get(tt_inference_net(own), tt_inference_stream(own), 0, params));
    free(params);
    free(want);
    free(got);
    fixture_rows_free(&rows);
    tt_inference_destroy(&own);
    assert_null(own);
    tt_net_destroy(&net);
}

static void test_heads(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    for (size_t s = 0; s < fixture_spec_count; s++)
        check_spec(&place, &fixture_specs[s]);
    fixture_close(&place);
}

static void test_bad_spec(void **state)
{
    (void)state;
    tt_inference_t *own = NULL;
    assert_int_equal(tt_inference_new(&own, &(tt_net_spec_t){.obs = 0}), TT_INVALID);
    assert_null(own);
    tt_inference_destroy(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_bad_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
