/*  Networks whose dense layers are not exact: gradients near the CPU's, and the same bits whoever has which shards, launched one by one or as
 *  graphs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

enum { ROWS = 133, SHARDS = 4, TURNS = 4 };

typedef struct {
    place_t place;
    tt_net_t *net;
    tt_sums_t *sums;
    tt_table_t *obs;
    rows_t rows;
} world_t;

static world_t open_world(const char *backend, tt_precision_t precision, const tt_net_spec_t *spec)
{
    world_t self;
    fixture_open_on(&self.place, backend, 1);
    assert_ok(tt_device_precision(self.place.device, precision));
    self.net = fixture_net(&self.place, spec);
    self.rows = fixture_rows(spec, ROWS);
    assert_ok(tt_sums_new(&self.sums, self.net, SHARDS));
    assert_ok(tt_table_new(&self.obs, self.place.device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(self.obs, self.place.stream, self.rows.table, ROWS));
    return self;
}

static void close_world(world_t *self)
{
    tt_table_destroy(&self->obs);
    tt_sums_destroy(&self->sums);
    fixture_rows_free(&self->rows);
    tt_net_destroy(&self->net);
    fixture_close(&self->place);
}

/*  The sum of shards lo .. hi - 1, which are those of a node. Caller frees. */
static float *gradient(world_t *self, uint32_t lo, uint32_t hi, uint32_t node)
{
    const tt_net_spec_t *spec = tt_net_spec(self->net);
    const tt_objective_t objective = fixture_objective(spec);
    const size_t count = tt_net_grad_count(spec);
    const tt_pass_t pass = {.objective = &objective,
        .params = &spec,
        .params_size = sizeof spec,
        .obs = {self->obs, self->obs},
        .row = self->rows.row,
        .rows = ROWS};
    const float *sum = NULL;
    float *out = tt_array0(count, sizeof *out);
    assert_ok(tt_sums_compute(self->sums, self->place.stream, &pass, lo, hi));
    assert_ok(tt_sums_node(self->sums, self->place.stream, node, &sum));
    assert_ok(tt_stream_sync(self->place.stream));
    memcpy(out, sum, count * sizeof *out);
    return out;
}

static double size_of(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double x = (double)a[i] - (b ? (double)b[i] : 0);
        sum += x * x;
    }
    return sqrt(sum);
}

/*  Again and again: recorded work comes to the same. */
static void assert_splits(world_t *world, const float *whole)
{
    const size_t count = tt_net_grad_count(tt_net_spec(world->net));
    for (int turn = 0; turn < TURNS; turn++) {
        float *again = gradient(world, 0, SHARDS, 1), *first = gradient(world, 0, SHARDS / 2, 2),
              *second = gradient(world, SHARDS / 2, SHARDS, 3);
        assert_memory_equal(again, whole, count * sizeof *whole);
        for (size_t i = 0; i < count; i++)
            first[i] += second[i];
        assert_memory_equal(first, whole, count * sizeof *whole);
        free(again);
        free(first);
        free(second);
    }
}

/*  Returns whether anything was rounded: small networks are exact. */
static bool check(const tt_net_spec_t *spec, tt_precision_t precision, const float *exact)
{
    const size_t count = tt_net_param_count(spec);
    world_t world = open_world(fixture_card(), precision, spec);
    float *whole = gradient(&world, 0, SHARDS, 1);
    const double off = size_of(whole, exact, count) / size_of(exact, NULL, count);
    if (!(off <= (precision == TT_TF32 ? 0x1p-7 : 0x1p-5)))
        fail_msg("%s: the gradient is off by %g of its size", tt_precision_name(precision), off);
    assert_splits(&world, whole);
    free(whole);
    close_world(&world);
    return off > 0;
}

static void test_gradients(void **state)
{
    uint32_t rounded[] = {[TT_TF32] = 0, [TT_BF16] = 0};
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s++) {
        world_t cpu = open_world("cpu", TT_EXACT, &fixture_specs[s]);
        float *exact = gradient(&cpu, 0, SHARDS, 1);
        for (tt_precision_t precision = TT_TF32; precision <= TT_BF16; precision++)
            rounded[precision] += check(&fixture_specs[s], precision, exact);
        free(exact);
        close_world(&cpu);
    }
    if (strcmp(fixture_card(), "cuda-sim") == 0)
        for (tt_precision_t precision = TT_TF32; precision <= TT_BF16; precision++)
            assert_true(rounded[precision] >= 5);
}

/*  Heads that somebody asks for are the CPU's. */
static void test_heads(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s += 3) {
        const tt_net_spec_t *spec = &fixture_specs[s];
        const size_t count = ROWS * (size_t)fixture_outs(spec);
        world_t cpu = open_world("cpu", TT_EXACT, spec), card = open_world(fixture_card(), TT_BF16, spec);
        float *exact = tt_array0(count, sizeof *exact), *heads = tt_array0(count, sizeof *heads);
        fixture_forward(&cpu.place, cpu.net, 0, cpu.rows.obs, ROWS, exact);
        fixture_forward(&card.place, card.net, 0, card.rows.obs, ROWS, heads);
        assert_memory_equal(exact, heads, count * sizeof *exact);
        free(exact);
        free(heads);
        close_world(&cpu);
        close_world(&card);
    }
}

static void test_refused(void **state)
{
    static const char *const backends[] = {"cpu", "cpu-strict"};
    (void)state;
    for (size_t b = 0; b < TT_COUNT(backends); b++) {
        place_t place;
        fixture_open_on(&place, backends[b], 1);
        assert_ok(tt_device_precision(place.device, TT_EXACT));
        assert_int_equal(tt_device_precision(place.device, TT_TF32), TT_UNSUPPORTED);
        assert_non_null(strstr(tt_err_text(), "it can only compute exactly; tf32 wants a card (learner.device: cuda)"));
        fixture_close(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
