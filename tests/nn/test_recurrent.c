/*  Recurrent networks: the same bits from every build, from any lanes, shards and backends, by a pass and step by step; what a row
 *  carries; what is refused. test_torch_recurrent.c and test_gradient.c say that the bits are right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/recurrent_fixture.h"

/*  Groups of sequences that are full, short and one; shards without any. */
static const struct {
    uint32_t sequences, length, shards;
} s_sizes[] = {{1, 1, 1}, {3, 33, 8}, {35, 5, 1}, {70, 4, 2}, {9, 1, 4}, {41, 7, 8}};

/*  Gradients of all, one behind the other, and heads by a pass. free() it. */
static float *results(const place_t *place, size_t s, size_t size, size_t *count)
{
    recurrent_t world;
    const tt_net_spec_t *spec = &recurrent_specs[s];
    recurrent_open(&world, place, spec, s_sizes[size].sequences, s_sizes[size].length);
    const size_t heads = world.rows.rows * fixture_outs(spec), grads = tt_net_grad_count(spec);
    float *grad = recurrent_grad(&world, s_sizes[size].shards), *again = recurrent_grad(&world, s_sizes[size].shards);
    float *seen = recurrent_seen(&world, s_sizes[size].shards), *stepped = recurrent_stepped(&world, 0);
    float *all = tt_array0(heads + grads, sizeof *all);
    assert_memory_equal(grad, again, grads * sizeof *grad);
    assert_memory_equal(seen, stepped, heads * sizeof *seen);
    memcpy(all, grad, grads * sizeof *all);
    memcpy(all + grads, seen, heads * sizeof *all);
    *count = heads + grads;
    for (size_t i = 0; i < *count; i++)
        assert_true(isfinite(all[i]));
    free(grad);
    free(again);
    free(seen);
    free(stepped);
    recurrent_close(&world);
    return all;
}

static void assert_same(const float *one, const float *other, size_t count, const char *who, size_t s, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(one + i, other + i, sizeof *one) != 0)
            fail_msg("%s: network %zu, size %zu: number %zu is %a, not %a", who, s, size, i, (double)other[i],
                (double)one[i]);
}

static void test_builds(void **state)
{
    (void)state;
    const char *const builds[] = {"portable", "avx2", "avx512"};
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (size_t size = 0; size < TT_COUNT(s_sizes); size++) {
            float *first = NULL;
            size_t count = 0;
            for (size_t b = 0; b < TT_COUNT(builds); b++) {
                place_t place;
                if (!fixture_build(&place, builds[b]))
                    continue;
                float *own = results(&place, s, size, &count);
                if (first)
                    assert_same(first, own, count, builds[b], s, size);
                free(first);
                first = own;
            }
            free(first);
        }
}

static void test_lanes_and_backends(void **state)
{
    (void)state;
    const struct {
        const char *backend;
        uint32_t lanes;
    } places[] = {{"cpu", 1}, {"cpu", 3}, {"cpu-strict", 1}, {"cpu-strict", 4}};
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (size_t size = 0; size < TT_COUNT(s_sizes); size++) {
            float *first = NULL;
            size_t count = 0;
            for (size_t p = 0; p < TT_COUNT(places); p++) {
                place_t place;
                fixture_open_on(&place, places[p].backend, places[p].lanes);
                float *own = results(&place, s, size, &count);
                if (first)
                    assert_same(first, own, count, places[p].backend, s, size);
                free(first);
                first = own;
            }
            free(first);
        }
}

static uint64_t hash(const float *numbers, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)numbers;
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < count * sizeof *numbers; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/*  So that the bits do not change unseen: an LSTM, and one with a GRU on a trunk. Neither loss calls libm. */
static void test_fingerprints(void **state)
{
    (void)state;
    const struct {
        size_t spec;
        uint64_t hash;
    } want[] = {{0, 0x85cd64905dcec310u}, {7, 0x9bc95b2f49817d8fu}};
    for (size_t i = 0; i < TT_COUNT(want); i++) {
        place_t place;
        size_t count = 0;
        fixture_open(&place, 1);
        float *all = results(&place, want[i].spec, 2, &count);
        const uint64_t got = hash(all, count);
        free(all);
        if (got != want[i].hash)
            fail_msg("network %zu: 0x%016llx", want[i].spec, (unsigned long long)got);
    }
}

/* ---- shards --------------------------------------------------------------------------------------------------------- */

enum { SHARDS = 8 };

/*  Sequences are whole in a shard: any split of the shards over learners gives the same bits. */
static void test_runs_of_shards(void **state)
{
    (void)state;
    const uint32_t sequences[] = {3, 8, 41};
    for (size_t s = 0; s < recurrent_spec_count; s += 3)
        for (size_t n = 0; n < TT_COUNT(sequences); n++) {
            recurrent_t world;
            place_t place;
            fixture_open(&place, 2);
            recurrent_open(&world, &place, &recurrent_specs[s], sequences[n], 6);
            float *whole = recurrent_grad(&world, SHARDS);
            for (uint32_t width = 1; width < SHARDS; width *= 2) {
                float *sum = recurrent_runs(&world, SHARDS, width);
                assert_memory_equal(whole, sum, tt_net_grad_count(&recurrent_specs[s]) * sizeof *sum);
                free(sum);
            }
            free(whole);
            recurrent_close(&world);
        }
}

/*  A sequence's heads do not depend on those beside it, nor on how long the table of them is. */
static void test_sequences_alone(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++) {
        recurrent_t world;
        place_t place;
        fixture_open(&place, 1);
        recurrent_open(&world, &place, &recurrent_specs[s], 34, 3);
        const size_t all = fixture_outs(&recurrent_specs[s]);
        uint32_t *const row = world.rows.row;
        float *together = recurrent_seen(&world, 1);
        for (uint32_t q = 0; q < 34; q += 11) {
            world.rows.row = row + q * 3;
            world.sequences = 1;
            float *alone = recurrent_seen(&world, 1);
            for (uint32_t k = 0; k < 3; k++)
                assert_memory_equal(together + row[q * 3 + k] * all, alone + row[q * 3 + k] * all, all * sizeof *alone);
            free(alone);
        }
        world.rows.row = row;
        free(together);
        recurrent_close(&world);
    }
}

/*  An update that is as large as the last one takes no memory; a larger one takes more, and a smaller one gives the same bits in it. */
static void test_growing(void **state)
{
    (void)state;
    for (size_t s = 0; s < recurrent_spec_count; s++) {
        recurrent_t world;
        place_t place;
        fixture_open(&place, 1);
        recurrent_open(&world, &place, &recurrent_specs[s], 40, 6);
        const size_t bytes = tt_net_grad_count(&recurrent_specs[s]) * sizeof(float);
        world.sequences = 3;
        float *small = recurrent_grad(&world, 1);
        world.sequences = 40;
        free(recurrent_grad(&world, 1));
        world.sequences = 3;
        float *again = recurrent_grad(&world, 1);
        assert_memory_equal(small, again, bytes);
        free(small);
        free(again);
        recurrent_close(&world);
    }
}

/* ---- what is carried ------------------------------------------------------------------------------------------------- */

enum { MANY = 77 };

typedef struct {
    recurrent_t world;
    uint32_t C;
    float *carry, *carried; /* [MANY][C] */
    float *head;            /* [MANY][A] of tower 1 */
} acting_t;

static void open_acting(acting_t *a, const char *backend, uint32_t lanes, const tt_net_spec_t *spec)
{
    place_t place;
    fixture_open_on(&place, backend, lanes);
    recurrent_open(&a->world, &place, spec, MANY, 1);
    a->C = tt_net_carry(spec);
    a->carry = tt_array0(MANY * (size_t)a->C, sizeof(float));
    a->carried = tt_array0(MANY * (size_t)a->C, sizeof(float));
    a->head = tt_array0(MANY * (size_t)spec->tower[1].out, sizeof(float));
    memcpy(a->carry, a->world.carry, MANY * (size_t)a->C * sizeof(float));
}

static void close_acting(acting_t *a)
{
    free(a->carry);
    free(a->carried);
    free(a->head);
    recurrent_close(&a->world);
}

static void act(acting_t *a, size_t first, size_t rows, float *to, float *head)
{
    float *out[TT_TOWERS_MAX] = {NULL};
    out[1] = head;
    assert_ok(tt_net_forward_from(a->world.net, a->world.place.stream, 0, a->world.obs, first, rows,
        &(tt_carry_t){a->carry + first * a->C, to}, out));
}

/*  In one piece, in pieces, in place, without heads and without what is carried on. */
static void check_acting(const char *backend, uint32_t lanes)
{
    const tt_net_spec_t *spec = &recurrent_specs[0];
    const uint32_t A = spec->tower[1].out;
    acting_t a;
    open_acting(&a, backend, lanes, spec);
    tt_stream_t *stream = a.world.place.stream;
    act(&a, 0, MANY, a.carried, a.head);
    assert_ok(tt_stream_sync(stream));
    float *alone = tt_array0(MANY * (size_t)a.C, sizeof *alone), head[MANY * 2];
    assert_true(A == 2);
    for (size_t r = 0; r < MANY; r += 7)
        act(&a, r, 7, alone + r * a.C, head + r * A);
    assert_ok(tt_stream_sync(stream));
    assert_memory_equal(alone, a.carried, MANY * (size_t)a.C * sizeof *alone);
    assert_memory_equal(head, a.head, MANY * (size_t)A * sizeof *head);
    memset(alone, 0, MANY * (size_t)a.C * sizeof *alone);
    act(&a, 0, MANY, alone, NULL);
    assert_ok(tt_stream_sync(stream));
    assert_memory_equal(alone, a.carried, MANY * (size_t)a.C * sizeof *alone);
    memset(head, 0, sizeof head);
    act(&a, 0, MANY, NULL, head);
    assert_ok(tt_stream_sync(stream));
    assert_memory_equal(head, a.head, MANY * (size_t)A * sizeof *head);
    assert_memory_equal(a.carry, a.world.carry, MANY * (size_t)a.C * sizeof *alone);
    act(&a, 0, MANY, a.carry, head);
    assert_ok(tt_stream_sync(stream));
    assert_memory_equal(a.carry, a.carried, MANY * (size_t)a.C * sizeof *alone);
    assert_memory_equal(head, a.head, MANY * (size_t)A * sizeof *head);
    free(alone);
    close_acting(&a);
}

static void test_acting(void **state)
{
    (void)state;
    check_acting("cpu", 1);
    check_acting("cpu", 3);
    check_acting("cpu-strict", 2);
}

/*  Nothing is there before the sync, and what was given in place still is. */
static void test_late(void **state)
{
    (void)state;
    acting_t a;
    open_acting(&a, "cpu-strict", 1, &recurrent_specs[0]);
    act(&a, 0, MANY, a.carried, NULL);
    for (size_t i = 0; i < MANY * (size_t)a.C; i++)
        assert_true(isnan(a.carried[i]));
    assert_ok(tt_stream_sync(a.world.place.stream));
    for (size_t i = 0; i < MANY * (size_t)a.C; i++)
        assert_true(isfinite(a.carried[i]));
    act(&a, 0, MANY, a.carry, NULL);
    assert_memory_equal(a.carry, a.world.carry, MANY * (size_t)a.C * sizeof(float));
    assert_ok(tt_stream_sync(a.world.place.stream));
    assert_memory_equal(a.carry, a.carried, MANY * (size_t)a.C * sizeof(float));
    close_acting(&a);
}

/*  A NaN stays in its sequence, and ends where the next episode begins. */
static void test_nan(void **state)
{
    (void)state;
    enum { STEPS = 4, BAD = 2 };
    for (size_t s = 0; s < recurrent_spec_count; s++) {
        const tt_net_spec_t *spec = &recurrent_specs[s];
        if (spec->parts)
            continue; /* bytes are numbers */
        recurrent_t world;
        place_t place;
        fixture_open(&place, 1);
        recurrent_open(&world, &place, spec, 35, STEPS);
        const size_t all = fixture_outs(spec);
        const uint32_t *row = world.rows.row + BAD * STEPS;
        world.begins[row[1]] = world.begins[row[2]] = 0;
        world.begins[row[3]] = 1;
        assert_ok(tt_table_put(world.begin, world.place.stream, world.begins, world.rows.rows));
        float *clean = recurrent_seen(&world, 1);
        world.rows.data[row[1] * spec->obs] = NAN;
        assert_ok(tt_table_put(world.obs, world.place.stream, world.rows.table, world.rows.rows));
        float *seen = recurrent_seen(&world, 1), *stepped = recurrent_stepped(&world, 0);
        for (size_t k = 0; k < world.rows.rows; k++)
            if (k != row[1] && k != row[2])
                assert_memory_equal(seen + k * all, clean + k * all, all * sizeof *seen);
        bool after = false; /* what was carried on */
        for (size_t a = 0; a < all; a++)
            after |= isnan(seen[row[2] * all + a]);
        assert_true(after);
        for (size_t i = 0; i < world.rows.rows * all; i++)
            assert_true(isnan(seen[i]) == isnan(stepped[i]));
        free(clean);
        free(seen);
        free(stepped);
        recurrent_close(&world);
    }
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void assert_refused(tt_status_t status, const char *text)
{
    assert_int_equal(status, TT_INVALID);
    if (!strstr(tt_err_text(), text))
        fail_msg("'%s' does not say '%s'", tt_err_text(), text);
}

static tt_status_t try_pass(recurrent_t *world, const tt_pass_t *pass)
{
    tt_sums_t *sums = NULL;
    assert_ok(tt_sums_new(&sums, world->net, 4));
    tt_status_t status = tt_sums_compute(sums, world->place.stream, pass, 0, 4);
    const tt_status_t late = tt_stream_sync(world->place.stream); /* what only the work sees */
    status = status == TT_OK ? late : status;
    tt_sums_destroy(&sums);
    return status;
}

static void test_bad_passes(void **state)
{
    (void)state;
    recurrent_t world;
    place_t place;
    fixture_open(&place, 1);
    recurrent_open(&world, &place, &recurrent_specs[4], 6, 5);
    const tt_net_spec_t *spec = tt_net_spec(world.net);
    const tt_objective_t objective = fixture_objective(spec);
    tt_pass_t good = recurrent_pass(&world, &objective), pass = good;
    good.params = &spec;
    good.params_size = sizeof spec;
    assert_ok(try_pass(&world, &good));
    pass = good;
    pass.length = 0;
    assert_refused(try_pass(&world, &pass), "the network recurs, and 30 rows are no sequences of 0");
    pass.length = 7;
    assert_refused(try_pass(&world, &pass), "the network recurs, and 30 rows are no sequences of 7");
    pass = good;
    pass.carry = NULL;
    assert_refused(try_pass(&world, &pass), "there is no table of what sequences carry");
    pass = good;
    pass.begins = NULL;
    assert_refused(try_pass(&world, &pass), "there is no table of where episodes begin");
    for (int i = 0; i < 2; i++) {
        tt_table_t *list = i ? world.begin : world.carries;
        const void *rows[30];
        for (size_t k = 0; k < 30; k++)
            rows[k] = i ? (const void *)&world.begins[k] : &world.carry[k * tt_net_carry(spec)];
        assert_ok(tt_table_put_rows(list, place.stream, rows, 30));
        assert_refused(try_pass(&world, &good), i ? "the rows of where episodes begin do not lie side by side"
                                                  : "the rows of what sequences carry do not lie side by side");
        assert_ok(tt_table_put(list, place.stream, i ? (const void *)world.begins : world.carry, 30));
    }
    recurrent_close(&world);
}

/*  Sequences begin with rows 29, 24 ... 4: of what is carried no row behind them is read. */
static void test_rows_that_no_table_has(void **state)
{
    (void)state;
    recurrent_t world;
    place_t place;
    fixture_open(&place, 1);
    recurrent_open(&world, &place, &recurrent_specs[0], 6, 5);
    const tt_net_spec_t *spec = tt_net_spec(world.net);
    const tt_objective_t objective = fixture_objective(spec);
    tt_pass_t pass = recurrent_pass(&world, &objective);
    pass.params = &spec;
    pass.params_size = sizeof spec;
    assert_ok(tt_table_put(world.begin, place.stream, world.begins, 29));
    assert_refused(try_pass(&world, &pass), "row 29 of tables that have 29");
    assert_ok(tt_table_put(world.begin, place.stream, world.begins, 30));
    assert_ok(tt_table_put(world.carries, place.stream, world.carry, 29));
    assert_refused(try_pass(&world, &pass), "row 29 of tables that have 29");
    for (uint32_t k = 0; k < 30; k++)
        world.rows.row[k] = k % 5 * 6 + k / 5; /* [steps][envs]: they begin with rows 0 .. 5 */
    assert_ok(tt_table_put(world.carries, place.stream, world.carry, 5));
    assert_refused(try_pass(&world, &pass), "row 5 of tables that have 5");
    assert_ok(tt_table_put(world.carries, place.stream, world.carry, 6));
    assert_ok(try_pass(&world, &pass));
    recurrent_close(&world);
}

static void test_bad_objectives(void **state)
{
    (void)state;
    const tt_net_spec_t *spec = &recurrent_specs[4];
    const tt_objective_stage_t bad[] = {{.tower = 4, .set = 1}, {.tower = 4, .frame = TT_NEXT}, {.tower = 1, .set = 1}};
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        const tt_objective_t objective = {.name = "bad", .stages = 2, .stage = {{.tower = 4, .grad = true}, bad[i]}};
        assert_refused(tt_objective_check(&objective, spec),
            "stage 1: a network that recurs is seen in set 0 and the row's own frame alone");
    }
}

/*  Where nothing recurs there are no sequences. */
static void test_no_sequences(void **state)
{
    (void)state;
    place_t place;
    fixture_open(&place, 1);
    const tt_net_spec_t *spec = &fixture_specs[0];
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, 6);
    const tt_objective_t objective = fixture_objective(spec);
    const tt_pass_t pass = {
        .objective = &objective, .params = &spec, .params_size = sizeof spec, .row = rows.row, .rows = 6, .length = 2};
    float *grad = tt_array0(tt_net_grad_count(spec), sizeof *grad);
    assert_refused(
        fixture_pass(&place, net, &pass, &rows, NULL, grad), "sequences of 2 rows, and nothing in the network recurs");
    free(grad);
    fixture_rows_free(&rows);
    tt_net_destroy(&net);
    fixture_close(&place);
}

/*  Steps in one go are what they are one by one. */
static void test_walks(void **state)
{
    (void)state;
    static const recurrent_walk_t walks[] = {{35, 4, false}, {3, 9, true}, {70, 1, true}};
    for (size_t s = 0; s < recurrent_spec_count; s++)
        for (size_t i = 0; i < TT_COUNT(walks); i++) {
            place_t place;
            size_t count = 0;
            fixture_open(&place, 2);
            float *want = recurrent_walked(&place, &recurrent_specs[s], &walks[i], true, &count);
            float *got = recurrent_walked(&place, &recurrent_specs[s], &walks[i], false, &count);
            assert_memory_equal(got, want, count * sizeof *got);
            free(want);
            free(got);
            fixture_close(&place);
        }
}

static void test_walks_that_leave_the_table(void **state)
{
    (void)state;
    enum { ROWS = 10 };
    const tt_net_spec_t *spec = &recurrent_specs[0];
    place_t place;
    tt_table_t *table = NULL;
    fixture_open(&place, 1);
    tt_net_t *net = fixture_net(&place, spec);
    rows_t rows = fixture_rows(spec, ROWS);
    float *carry = tt_array0(ROWS * (size_t)tt_net_carry(spec), sizeof *carry), *out[TT_TOWERS_MAX] = {NULL};
    const uint8_t begins[ROWS] = {0};
    assert_ok(tt_table_new(&table, place.device, tt_net_row_bytes(spec)));
    assert_ok(tt_table_put(table, place.stream, rows.table, ROWS));
    const tt_walk_t good = {.apart = 3, .rows = 1, .steps = 4, .begins = begins, .in = carry, .left = carry};
    tt_walk_t bad[] = {good, good, good, good};
    assert_ok(tt_net_walk(net, place.stream, 0, table, &good, out));
    bad[0].rows = 2;
    bad[1].steps = 5;
    bad[2].first = 1;
    bad[3].first = SIZE_MAX;
    for (size_t i = 0; i < TT_COUNT(bad); i++)
        assert_int_equal(tt_net_walk(net, place.stream, 0, table, &bad[i], out), TT_INVALID);
    assert_ok(tt_stream_sync(place.stream));
    tt_table_destroy(&table);
    tt_net_destroy(&net);
    fixture_rows_free(&rows);
    free(carry);
    fixture_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_lanes_and_backends),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_runs_of_shards),
        cmocka_unit_test(test_sequences_alone),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_acting),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_bad_passes),
        cmocka_unit_test(test_rows_that_no_table_has),
        cmocka_unit_test(test_bad_objectives),
        cmocka_unit_test(test_no_sequences),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_walks_that_leave_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
