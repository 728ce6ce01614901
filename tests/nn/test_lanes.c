/*  Lanes at the same time: a device with some gets the bits of one with a single lane, on every backend, and the sanitizer
 *  sees no race; and whoever waits hears that they get on. */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/mem.h"
#include "tests/nn/fixture.h"

enum { LANES = 3, ROWS = LANES * 64, SHARDS = 8, ROUNDS = 20, PATIENCE_S = 20 };

/*  Adds up what each stage gave. */
static void view_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)input;
    const uint32_t stages = *(const uint32_t *)params;
    for (uint32_t s = 0; s < stages; s++)
        for (uint32_t r = 0; r < block->rows; r++)
            block->stats[s % TT_LOSS_STATS] += block->head[s][r];
}

/*  Heads of all sets, from both frames. */
static tt_objective_t views(const tt_net_spec_t *spec)
{
    const uint32_t sets = spec->sets ? spec->sets : 1;
    tt_objective_t objective = {.name = "views", .loss = view_loss};
    for (uint32_t i = 0; i < TT_FRAMES * sets * spec->towers && objective.stages < TT_STAGES_MAX; i++) {
        const uint32_t t = spec->towers - 1 - i / (TT_FRAMES * sets), view = i % (TT_FRAMES * sets);
        if (spec->tower[t].out)
            objective.stage[objective.stages++] = (tt_objective_stage_t){
                .tower = (uint8_t)t, .set = (uint8_t)(view / TT_FRAMES), .frame = view % TT_FRAMES};
    }
    return objective;
}

/*  A gradient, what a loss sees of all views, and all heads of all rows, one behind the other. */
static size_t result_count(const tt_net_spec_t *spec)
{
    return 2 * tt_net_grad_count(spec) + ROWS * (size_t)fixture_outs(spec);
}

static void node(const place_t *place, tt_sums_t *sums, const tt_pass_t *pass, float *out, size_t count)
{
    const float *sum = NULL;
    assert_ok(tt_sums_compute(sums, place->stream, pass, 0, SHARDS));
    assert_ok(tt_sums_node(sums, place->stream, 1, &sum));
    memcpy(out, sum, count * sizeof *out);
}

static void work(
    const place_t *place, tt_net_t *net, tt_sums_t *sums, const tt_table_t *obs, const uint32_t *row, float *out)
{
    const tt_net_spec_t *spec = tt_net_spec(net);
    const size_t count = tt_net_grad_count(spec);
    const tt_objective_t objective = fixture_objective(spec), look = views(spec);
    tt_pass_t pass = {.objective = &objective,
        .params = &spec,
        .params_size = sizeof spec,
        .obs = {obs, obs},
        .row = row,
        .rows = ROWS};
    node(place, sums, &pass, out, count);
    pass.objective = &look;
    pass.params = &look.stages;
    pass.params_size = sizeof look.stages;
    node(place, sums, &pass, out + count, count);
    float *at[TT_TOWERS_MAX] = {NULL};
    out += 2 * count;
    for (uint32_t t = 0; t < spec->towers; out += ROWS * spec->tower[t++].out)
        at[t] = out;
    assert_ok(tt_net_forward(net, place->stream, 0, obs, ROWS, NULL, at));
    assert_ok(tt_stream_sync(place->stream));
}

/*  The same a few times over: the first of a device's rounds and those in the swing of it. */
static float *results(const tt_net_spec_t *spec, const char *backend, uint32_t lanes)
{
    place_t place;
    fixture_open_on(&place, backend, lanes);
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, ROWS);
    tt_sums_t *sums = NULL;
    tt_table_t *obs = NULL;
    assert_ok(tt_sums_new(&sums, net, SHARDS));
    assert_ok(tt_table_new(&obs, place.device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(obs, place.stream, rows.table, ROWS));
    float *out = tt_array0(result_count(spec), sizeof *out), *again = tt_array0(result_count(spec), sizeof *again);
    work(&place, net, sums, obs, rows.row, out);
    for (int i = 1; i < (spec->layers ? 3 : ROUNDS) && lanes > 1; i++) {
        work(&place, net, sums, obs, rows.row, again);
        assert_memory_equal(out, again, result_count(spec) * sizeof *out);
    }
    free(again);
    tt_table_destroy(&obs);
    tt_sums_destroy(&sums);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
    return out;
}

static void test_lanes(void **state)
{
    (void)state;
    const char *const backends[] = {"cpu", "cpu-strict"};
    for (size_t s = 0; s < fixture_spec_count; s++) {
        float *one = results(&fixture_specs[s], "cpu", 1);
        for (size_t b = 0; b < TT_COUNT(backends); b++) {
            float *some = results(&fixture_specs[s], backends[b], LANES);
            assert_memory_equal(one, some, result_count(&fixture_specs[s]) * sizeof *one);
            free(some);
        }
        free(one);
    }
}

typedef struct {
    sem_t heard;
    uint32_t blocks, missed; /* missed: blocks that nobody heard of in time */
} hearing_t;

static void on_part(void *ctx)
{
    sem_post(&((hearing_t *)ctx)->heard);
}

/*  A block begins when somebody has heard of the one before. */
static void hearing_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    hearing_t *self = *(hearing_t *const *)params;
    struct timespec until;
    (void)input, (void)block;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    self->missed += self->blocks++ && sem_timedwait(&self->heard, &until) != 0;
}

/*  One shard, so that with several lanes it is not the caller's that has it. */
static void hear(const char *backend, uint32_t lanes)
{
    place_t place;
    hearing_t hearing = {.blocks = 0}, *const at = &hearing;
    const tt_net_spec_t *spec = &fixture_specs[0];
    const tt_objective_t objective = {.name = "heard", .stages = 1, .loss = hearing_loss};
    const float *sum = NULL;
    assert_int_equal(sem_init(&hearing.heard, 0, 0), 0);
    fixture_open_on(&place, backend, lanes);
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, 3 * TT_BLOCK);
    tt_sums_t *sums = NULL;
    tt_table_t *obs = NULL;
    assert_ok(tt_sums_new(&sums, net, 1));
    assert_ok(tt_table_new(&obs, place.device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(obs, place.stream, rows.table, rows.rows));
    const tt_pass_t pass = {.objective = &objective,
        .params = &at,
        .params_size = sizeof at,
        .obs = {obs},
        .row = rows.row,
        .rows = 3 * TT_BLOCK,
        .progress = {on_part, &hearing}};
    assert_ok(tt_sums_compute(sums, place.stream, &pass, 0, 1));
    assert_ok(tt_sums_node(sums, place.stream, 1, &sum));
    assert_int_equal(hearing.blocks, 3);
    assert_int_equal(hearing.missed, 0);
    tt_table_destroy(&obs);
    tt_sums_destroy(&sums);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
    sem_destroy(&hearing.heard);
}

static void test_a_pass_is_heard_of_while_it_lasts(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= LANES; lanes += LANES - 1) {
        hear("cpu", lanes);
        hear("cpu-strict", lanes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_a_pass_is_heard_of_while_it_lasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
