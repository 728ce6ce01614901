/*  Known stages: a loss sees any numbers in their tables as it would see them as inputs, in runs of shards too, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/nn/known_fixture.h"

/* ---- any numbers ---------------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t sequences, length, shards;
} s_sizes[] = {{3, 13, 4}, {35, 3, 2}};

/*  A loss that reads the same numbers as inputs, and has no such stages. */
static void check_numbers(const char *backend, uint32_t lanes, const tt_net_spec_t *spec, size_t number)
{
    for (size_t i = 0; i < TT_COUNT(s_sizes); i++) {
        place_t place;
        known_t k;
        fixture_open_on(&place, backend, lanes);
        known_open(&k, &place, spec, s_sizes[i].sequences, s_sizes[i].length);
        for (size_t m = 0; m < TT_COUNT(known_masks); m++) {
            known_choose(&k, HEAD_INPUT, known_masks[m]);
            float *want = known_grad(&k, s_sizes[i].shards);
            known_compare(&k, want, known_masks[m], s_sizes[i].shards, backend, number);
            free(want);
        }
        known_close(&k);
    }
}

static void test_any_numbers(void **state)
{
    (void)state;
    const struct {
        const char *backend;
        uint32_t lanes;
    } places[] = {{"cpu", 1}, {"cpu", 3}, {"cpu-strict", 2}};
    for (size_t p = 0; p < TT_COUNT(places); p++) {
        for (size_t s = 0; s < fixture_spec_count; s++)
            check_numbers(places[p].backend, places[p].lanes, &fixture_specs[s], s);
        for (size_t s = 0; s < recurrent_spec_count; s++)
            check_numbers(places[p].backend, places[p].lanes, &recurrent_specs[s], s);
    }
}

/*  Halves of the shards, each a run of its own. */
static void check_runs(const tt_net_spec_t *spec, size_t number)
{
    enum { SHARDS = 4 };
    place_t place;
    known_t k;
    fixture_open(&place, 2);
    known_open(&k, &place, spec, 21, 3);
    known_choose(&k, HEAD_KNOWN, UINT32_MAX);
    const size_t count = tt_net_grad_count(spec);
    float *whole = known_grad(&k, SHARDS), *half[2];
    for (uint32_t i = 0; i < 2; i++) {
        half[i] = tt_array0(count, sizeof *half[i]);
        assert_ok(known_try(&k, SHARDS, 2 * i, 2 * i + 2, 2 + i, half[i]));
    }
    for (size_t i = 0; i < count; i++)
        half[0][i] += half[1][i];
    known_assert_same(&k, whole, half[0], "halves", number);
    free(whole);
    free(half[0]);
    free(half[1]);
    known_close(&k);
}

static void test_runs(void **state)
{
    (void)state;
    for (size_t s = 0; s < fixture_spec_count; s += 3)
        check_runs(&fixture_specs[s], s);
    for (size_t s = 0; s < recurrent_spec_count; s += 3)
        check_runs(&recurrent_specs[s], s);
}

/*  Nothing is forwarded: no observation is read, nothing is trained, and the loss still sees all. */
static void test_nothing_else(void **state)
{
    (void)state;
    const tt_net_spec_t *const specs[] = {&fixture_specs[16], &recurrent_specs[4]};
    for (size_t s = 0; s < TT_COUNT(specs); s++) {
        place_t place;
        known_t k;
        fixture_open(&place, 1);
        known_open(&k, &place, specs[s], 9, 4);
        known_choose(&k, HEAD_INPUT, UINT32_MAX);
        float *want = known_grad(&k, 2);
        known_train_nothing(&k);
        known_choose(&k, HEAD_KNOWN, UINT32_MAX);
        assert_null(k.pass.obs[TT_AT]);
        float *got = known_grad(&k, 2);
        const size_t stats = tt_net_stats_offset(k.spec);
        for (size_t i = 0; i < stats + 7; i++)
            assert_true(got[i] == 0.0f);
        assert_true(want[stats + 7] != 0.0f);
        assert_memory_equal(&got[stats + 7], &want[stats + 7], sizeof *got);
        free(want);
        free(got);
        known_close(&k);
    }
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void assert_refused(tt_status_t status, const char *text)
{
    assert_int_equal(status, TT_INVALID);
    if (!strstr(tt_err_text(), text))
        fail_msg("'%s' does not say '%s'", tt_err_text(), text);
}

static void test_bad_passes(void **state)
{
    (void)state;
    const tt_net_spec_t *const specs[] = {&fixture_specs[13], &recurrent_specs[4]};
    for (size_t s = 0; s < TT_COUNT(specs); s++) {
        place_t place;
        known_t k;
        tt_table_t *other = NULL;
        char text[128];
        fixture_open(&place, 1);
        known_open(&k, &place, specs[s], 6, 5);
        float *grad = tt_array0(tt_net_grad_count(specs[s]), sizeof *grad);
        known_choose(&k, HEAD_KNOWN, UINT32_MAX);
        const uint32_t last = k.objective.stages - 1;
        const known_head_t *head = &k.head[last];
        const tt_pass_t good = k.pass;
        k.pass.head[last] = NULL;
        snprintf(text, sizeof text, "stage %u is known, and there is no table of its head", last);
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), text);
        k.pass = good;
        k.pass.head[0] = head->table;
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), "stage 0 is not known, and there is a table of its head");
        k.pass = good;
        assert_ok(tt_table_new(&other, place.device, (head->outs + 1) * sizeof(float)));
        k.pass.head[last] = other;
        snprintf(text, sizeof text, "stage %u has a head of %u numbers, and rows of %zu bytes", last, head->outs,
            (head->outs + 1) * sizeof(float));
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), text);
        k.pass = good;
        const void *rows[30];
        for (size_t r = 0; r < 30; r++)
            rows[r] = head->rows;
        assert_ok(tt_table_put_rows(head->table, place.stream, rows, 30));
        snprintf(text, sizeof text, "the rows of the head of stage %u do not lie side by side", last);
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), text);
        assert_ok(tt_table_put(head->table, place.stream, head->rows, 29));
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), "row 29 of tables that have 29");
        assert_ok(tt_table_put(head->table, place.stream, head->rows, 1)); /* not one for all */
        assert_refused(known_try(&k, 1, 0, 1, 1, grad), "row 29 of tables that have 1");
        assert_ok(tt_table_put(head->table, place.stream, head->rows, 30));
        assert_ok(known_try(&k, 1, 0, 1, 1, grad));
        tt_table_destroy(&other);
        free(grad);
        known_close(&k);
    }
}

static void test_objectives(void **state)
{
    (void)state;
    const struct {
        tt_objective_stage_t stage;
        const char *text; /* NULL: it is fine */
    } cases[] = {
        {{.tower = 4, .set = 1, .known = true}, NULL},
        {{.tower = 4, .frame = TT_NEXT, .known = true}, NULL},
        {{.tower = 1, .set = 1, .frame = TT_NEXT, .known = true}, NULL},
        {{.tower = 1, .known = true}, NULL},
        {{.tower = 4, .set = 1}, "a network that recurs is seen in set 0 and the row's own frame alone"},
        {{.tower = 4, .known = true}, "stages 0 and 1 are the same forward of a"},
        {{.tower = 4, .set = 2, .known = true}, "stage 1: set 2 of 2"},
        {{.tower = 4, .frame = TT_FRAMES, .known = true}, "stage 1: frame 2 is unknown"},
        {{.tower = 0, .known = true}, "stage 1: low is a trunk and has no head"},
        {{.tower = 6, .known = true}, "stage 1: tower 6 of a network of 6"},
        {{.tower = 1, .known = true, .grad = true}, "stage 1: apart is known: it is neither trained nor gone through"},
        {{.tower = 1, .known = true, .through = true}, "stage 1: apart is known"},
        {{.tower = 1, .known = true, .action = TT_ACTION_GIVEN}, "stage 1: apart is known"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const tt_objective_t objective = {
            .name = "known", .stages = 2, .stage = {{.tower = 4, .grad = true}, cases[i].stage}};
        const tt_status_t status = tt_objective_check(&objective, &recurrent_specs[4]);
        if (cases[i].text)
            assert_refused(status, cases[i].text);
        else
            assert_ok(status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_numbers),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_nothing_else),
        cmocka_unit_test(test_bad_passes),
        cmocka_unit_test(test_objectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
