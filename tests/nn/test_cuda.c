/*  The backend of a card on the stand-in for one: the CPU's bits, over all shapes. Simulated work takes long: each shape is tried once,
 *  with rows that fill no block and shards that are no equal. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/nn/inference.h"
#include "tests/nn/fixture.h"

enum { ROWS = 37, SHARDS = 4 };

/*  Everything a network computes, as one run of floats. */
typedef struct {
    float *heads, *grad, *params, *followed, *state, *report;
    size_t count;
    float *all; /* owned */
} trace_t;

static trace_t new_trace(const tt_net_spec_t *spec, const tt_opt_spec_t *opt)
{
    const size_t heads = ROWS * (size_t)fixture_outs(spec), grad = tt_net_grad_count(spec),
                 params = tt_net_param_count(spec), state = tt_opt_state_count(opt, spec, 0);
    trace_t self = {.count = heads + grad + 2 * params + state + TT_LOSS_STATS + spec->ride + TT_TOWERS_MAX};
    self.all = tt_array0(self.count, sizeof *self.all);
    self.heads = self.all;
    self.grad = self.heads + heads;
    self.params = self.grad + grad;
    self.followed = self.params + params;
    self.state = self.followed + params;
    self.report = self.state + state;
    return self;
}

static void compute(const place_t *place, tt_net_t *net, const rows_t *rows, tt_sums_t *sums, tt_table_t *obs)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const tt_objective_t objective = fixture_objective(spec);
    const tt_pass_t pass = {.objective = &objective,
        .params = &spec,
        .params_size = sizeof spec,
        .obs = {obs, obs},
        .row = rows->row,
        .rows = ROWS};
    assert_ok(tt_table_put(obs, place->stream, rows->table, ROWS));
    assert_ok(tt_sums_compute(sums, place->stream, &pass, 0, SHARDS));
}

static void step(const place_t *place, tt_net_t *net, const tt_opt_spec_t *kind, tt_sums_t *sums, trace_t *trace)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const float *sum = NULL;
    tt_opt_t *opt = NULL;
    assert_ok(tt_sums_node(sums, place->stream, 1, &sum));
    memcpy(trace->grad, sum, tt_net_grad_count(spec) * sizeof *sum);
    assert_ok(tt_opt_new(&opt, net, 0, kind));
    for (int i = 0; i < 2; i++)
        assert_ok(tt_opt_step(opt, place->stream, sums, 0.01f));
    tt_norms_t norms;
    assert_ok(fixture_report(place, net, sums, trace->report + TT_TOWERS_MAX, &norms));
    memcpy(trace->report, norms.newest, tt_net_groups(spec) * sizeof *norms.newest);
    assert_ok(tt_opt_get(opt, place->stream, trace->state));
    tt_opt_destroy(&opt);
}

static trace_t run(const char *backend, const tt_net_spec_t *spec, const tt_opt_spec_t *kind)
{
    place_t place;
    tt_sums_t *sums = NULL;
    tt_table_t *obs = NULL;
    trace_t trace = new_trace(spec, kind);
    fixture_open_on(&place, backend, 1);
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, ROWS);
    assert_ok(tt_sums_new(&sums, net, SHARDS));
    assert_ok(tt_table_new(&obs, place.device, tt_net_row_bytes(spec)));
    compute(&place, net, &rows, sums, obs);
    step(&place, net, kind, sums, &trace);
    if (spec->sets > 1)
        assert_ok(tt_net_blend(net, place.stream, 1, 0, 1, 0.3f));
    assert_ok(tt_net_get(net, place.stream, 0, trace.params));
    assert_ok(tt_net_get(net, place.stream, spec->sets > 1, trace.followed));
    fixture_forward(&place, net, 0, rows.obs, ROWS, trace.heads);
    tt_table_destroy(&obs);
    tt_sums_destroy(&sums);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
    return trace;
}

static void test_shapes(void **state)
{
    const tt_opt_spec_t kinds[] = {
        {.kind = TT_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-5f, .max_norm = 0.5f},
        {.kind = TT_OPT_SGD, .momentum = 0.9f},
        {.kind = TT_OPT_RMSPROP, .alpha = 0.99f, .eps = 1e-5f, .momentum = 0.9f, .max_norm = 1.0f},
    };
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++) {
        const tt_opt_spec_t *kind = &kinds[s % TT_COUNT(kinds)];
        trace_t cpu = run("cpu", &fixture_specs[s], kind), card = run(fixture_card(), &fixture_specs[s], kind);
        for (size_t i = 0; i < cpu.count; i++)
            if (memcmp(&cpu.all[i], &card.all[i], sizeof(float)) != 0)
                fail_msg("shape %zu, float %zu of %zu (gradient from %td, parameters %td, report %td): %a, not %a", s,
                    i, cpu.count, cpu.grad - cpu.all, cpu.params - cpu.all, cpu.report - cpu.all, (double)card.all[i],
                    (double)cpu.all[i]);
        free(cpu.all);
        free(card.all);
    }
}

/*  A step that cannot be taken is said once, and changes nothing. */
static void test_bad_step(void **state)
{
    const tt_net_spec_t *spec = &fixture_specs[0];
    const size_t params = tt_net_param_count(spec), grads = tt_net_grad_count(spec);
    const tt_opt_spec_t kind = {.kind = TT_OPT_SGD, .max_norm = 1};
    float *before = tt_array0(params, sizeof *before), *after = tt_array0(params, sizeof *after);
    float *grad = tt_array0(grads, sizeof *grad), norm = 0;
    place_t place;
    tt_opt_t *opt = NULL;
    (void)state;
    fixture_open_on(&place, fixture_card(), 1);
    tt_net_t *net = fixture_net(&place, spec);
    assert_ok(tt_opt_new(&opt, net, 0, &kind));
    assert_ok(tt_net_get(net, place.stream, 0, before));
    grad[3] = __builtin_nanf("");
    assert_int_equal(fixture_step(&place, net, opt, grad, 0.01f, &norm), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "optimiser step 1: the gradient's norm is"));
    assert_ok(tt_net_get(net, place.stream, 0, after));
    assert_memory_equal(before, after, params * sizeof *before);
    grad[3] = 1;
    assert_ok(fixture_step(&place, net, opt, grad, 0.01f, &norm));
    assert_true(norm == 1);
    tt_opt_destroy(&opt);
    tt_net_destroy(&net);
    fixture_close(&place);
    free(before);
    free(after);
    free(grad);
}

/*  Who acts: rows in, heads out, again and again, with versions and noise that change and as many rows as there happen to be. */
static void assert_acts(tt_inference_t *card, tt_inference_t *cpu, const rows_t *rows, const float *params)
{
    static const size_t counts[] = {ROWS, 5, ROWS, ROWS, 5, 1};
    const tt_net_spec_t *spec = tt_net_spec(tt_inference_net(cpu));
    const size_t floats = ROWS * (size_t)fixture_outs(spec);
    float *heads[2] = {tt_array0(floats, sizeof(float)), tt_array0(floats, sizeof(float))};
    tt_inference_t *both[] = {card, cpu};
    for (uint32_t turn = 0; turn < TT_COUNT(counts); turn++)
        for (int i = 0; i < 2; i++) {
            float *out[TT_TOWERS_MAX] = {NULL}, *at = heads[i];
            const tt_noise_t noise = {.seed = 3, .stream = TT_STREAM_NOISE, .clock = turn};
            for (uint32_t t = 0; t < spec->towers; at += counts[turn] * spec->tower[t++].out)
                out[t] = at;
            if (turn % 3 == 0)
                assert_ok(tt_inference_put(both[i], params));
            assert_ok(tt_inference_noise(both[i], &noise));
            assert_ok(tt_inference_run(
                both[i], (const void *const *)rows->obs + turn % 2, counts[turn] - turn % 2, NULL, out));
            if (i == 1)
                assert_memory_equal(heads[0], heads[1], floats * sizeof(float));
        }
    free(heads[0]);
    free(heads[1]);
}

static void test_acting(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++) {
        const tt_net_spec_t *spec = &fixture_specs[s];
        tt_inference_t *card = NULL, *cpu = NULL;
        float log_std[2][64] = {{0}};
        place_t place;
        fixture_open_on(&place, "cpu", 1);
        tt_net_t *net = fixture_net(&place, spec);
        rows_t rows = fixture_rows(spec, ROWS);
        float *params = fixture_params(&place, net, 0);
        assert_ok(tt_inference_new(&card, fixture_card(), 0, spec));
        assert_ok(tt_inference_new(&cpu, "cpu", 0, spec));
        assert_non_null(strstr(tt_inference_device(card), fixture_card()));
        assert_acts(card, cpu, &rows, params);
        assert_ok(tt_inference_log_std(card, 0, log_std[0]));
        assert_ok(tt_inference_log_std(cpu, 0, log_std[1]));
        assert_memory_equal(log_std[0], log_std[1], sizeof log_std[0]);
        tt_inference_destroy(&card);
        tt_inference_destroy(&cpu);
        free(params);
        fixture_rows_free(&rows);
        tt_net_destroy(&net);
        fixture_close(&place);
    }
}

static void test_no_such_card(void **state)
{
    tt_device_t *device = NULL;
    (void)state;
    assert_int_equal(tt_device_open(&device, fixture_card(), 99, 1), TT_UNSUPPORTED);
    assert_non_null(strstr(tt_err_text(), "cuda:99: there "));
    assert_null(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_such_card),
        cmocka_unit_test(test_bad_step),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_acting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
