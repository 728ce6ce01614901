/*  Columns: the list that spaces make, and an observation as floats, as Gymnasium's flatten makes them. */
#include "common/rl/columns.h"
#include <stdio.h>
#include <string.h>
#include "common/base/limits.h"
#include "tests/test.h"

static tt_columns_t *s_stacked(
    const char *obs, const char *action, bool mask, bool estimates, uint32_t frames, tt_pad_t pad)
{
    tt_space_t *o = NULL, *a = NULL;
    tt_columns_t *columns = NULL;
    assert_ok(tt_space_parse(&o, obs));
    assert_ok(tt_space_parse(&a, action));
    assert_ok(tt_columns_new_stacked(&columns, o, a, mask, estimates, frames, pad));
    tt_space_free(&o);
    tt_space_free(&a);
    return columns;
}

static tt_columns_t *s_columns_of(const char *obs, const char *action, bool mask, bool estimates)
{
    return s_stacked(obs, action, mask, estimates, 1, TT_PAD_RESET);
}

static tt_columns_t *s_columns(const char *obs, const char *action, bool mask)
{
    return s_columns_of(obs, action, mask, true);
}

static void s_expect_names(const tt_columns_t *columns, const char *names)
{
    char text[1024] = "";
    for (uint32_t c = 0; c < columns->count; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", c ? " " : "", columns->at[c].name);
    assert_string_equal(text, names);
}

static void test_a_vector_and_a_choice(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("float32[4]", "discrete(2)", false);
    s_expect_names(columns, "obs action reward terminated truncated log_prob value");
    assert_true(tt_columns_plain(columns));
    assert_int_equal(columns->flat, 4);
    assert_int_equal(columns->scaled, 4);
    assert_int_equal(columns->mask, -1);
    assert_int_equal(columns->action, 1);
    assert_true(columns->at[1].choice);
    assert_int_equal(columns->choices[columns->at[1].first], 2);
    assert_int_equal(columns->at[1].bytes, 4);
    assert_true(columns->at[0].keep && columns->at[columns->value].keep);
    assert_false(columns->at[1].keep || columns->at[columns->reward].keep);
    tt_columns_destroy(&columns);
    tt_columns_destroy(&columns);
}

static void test_a_tree_of_everything(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("{image: uint8[2, 2], at: (float64[2], discrete(3)), bits: multi_binary[3]}",
        "{go: discrete(4), push: float32[2], keys: multi_binary[2]}", true);
    s_expect_names(columns,
        "obs.image obs.at.0 obs.at.1 obs.bits mask action.go action.push action.keys reward terminated "
        "truncated log_prob value");
    assert_int_equal(columns->obs_count, 4);
    assert_int_equal(columns->mask, 4);
    assert_int_equal(columns->mask_bits, 4 + 2 * 2);
    assert_int_equal(columns->action_count, 3);
    assert_int_equal(columns->flat, 4 + 2 + 3 + 3);
    assert_int_equal(columns->scaled, 2);
    assert_int_equal(columns->at[1].dtype, TT_F32);
    assert_int_equal(columns->at[7].dtype, TT_U8);
    assert_true(columns->at[7].choice && !columns->at[3].choice);
    assert_true(columns->at[4].keep);
    tt_columns_destroy(&columns);
}

/*  Who acts by the best choice estimates nothing: the same list without its end. */
static void test_without_estimates(void **state)
{
    (void)state;
    tt_columns_t *with = s_columns_of("float32[4]", "discrete(2)", true, true);
    tt_columns_t *without = s_columns_of("float32[4]", "discrete(2)", true, false);
    s_expect_names(without, "obs mask action reward terminated truncated");
    assert_int_equal(without->log_prob, -1);
    assert_int_equal(without->value, -1);
    assert_int_equal(with->log_prob, without->count);
    assert_int_equal(with->value, without->count + 1);
    assert_true(with->hash != without->hash);
    tt_columns_destroy(&with);
    tt_columns_destroy(&without);
}

/*  Frames alone are read where they are stored, however many bytes they have; bits to choose from are no frame. */
static void test_what_is_plain(void **state)
{
    static const struct {
        const char *obs;
        bool plain;
        uint32_t row;
    } cases[] = {{"float32[3]", true, 12}, {"float64[3]", true, 12}, {"uint8[5, 5]", true, 25}, {"bool[3]", true, 3},
        {"multi_binary[2, 4]", true, 8}, {"int32[3]", false, 12}, {"discrete(3)", false, 12},
        {"{at: uint8[5]}", true, 5}, {"(uint8[5], uint8[2])", false, 12}, {"(float32, uint8[2])", false, 8}};
    (void)state;
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        tt_columns_t *columns = s_columns(cases[i].obs, "multi_binary[2]", false);
        assert_int_equal(tt_columns_plain(columns), cases[i].plain);
        assert_int_equal(columns->row, cases[i].row);
        assert_false(tt_column_is_bytes(&columns->at[columns->action]));
        tt_columns_destroy(&columns);
    }
}

static void test_a_row(void **state)
{
    (void)state;
    tt_columns_t *columns =
        s_columns("(uint8[3], float32[2], multi_discrete(2, 3), int64[1], int32)", "float32[1]", false);
    const uint8_t bytes[] = {0, 7, 255};
    const float numbers[] = {0.5f, -3};
    const int32_t choices[] = {1, 2}, whole = -9;
    const int64_t large[] = {INT64_C(1) << 40};
    const float scaled[] = {10, 20};
    const void *const row[] = {bytes, numbers, choices, large, &whole};
    float expected[] = {0.5f, -3, 0, 1, 0, 0, 1, 0x1p40f, -9};
    char read[4 + 9 * sizeof(float)];
    float floats[2];
    assert_int_equal(columns->flat, 3 + TT_COUNT(expected));
    assert_int_equal(columns->row, sizeof read); /* the bytes end on a float */
    assert_false(tt_columns_plain(columns));
    tt_columns_read(columns, row, read);
    assert_memory_equal(read, bytes, sizeof bytes);
    assert_memory_equal(read + 4, expected, sizeof expected);
    tt_columns_scaled(columns, row, floats);
    assert_memory_equal(floats, numbers, sizeof numbers);
    tt_columns_put_scaled(columns, scaled, read);
    memcpy(expected, scaled, sizeof scaled);
    assert_memory_equal(read, bytes, sizeof bytes);
    assert_memory_equal(read + 4, expected, sizeof expected);
    tt_columns_destroy(&columns);
}

static void test_hash_tells_lists_apart(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"float32[4]", "discrete(2)"},
        {"float32[2, 2]", "discrete(2)"},
        {"uint8[4]", "discrete(2)"},
        {"float32[4]", "discrete(3)"},
        {"float32[4]", "multi_discrete(2)"},
        {"float32[4]", "float32"},
        {"{a: float32[4]}", "discrete(2)"},
        {"{b: float32[4]}", "discrete(2)"},
    };
    uint64_t seen[2 * TT_COUNT(pairs)];
    size_t count = 0;
    for (size_t i = 0; i < 2 * TT_COUNT(pairs); i++) {
        const bool mask = i >= TT_COUNT(pairs);
        if (mask && strcmp(pairs[i % TT_COUNT(pairs)][1], "float32") == 0)
            continue;
        tt_columns_t *columns = s_columns(pairs[i % TT_COUNT(pairs)][0], pairs[i % TT_COUNT(pairs)][1], mask);
        for (size_t k = 0; k < count; k++)
            assert_true(seen[k] != columns->hash);
        seen[count++] = columns->hash;
        tt_columns_destroy(&columns);
    }
    /* bounds and first choices are the env's business */
    tt_columns_t *a = s_columns("float64[4]", "discrete(2, from 5)", false);
    assert_true(a->hash == seen[0]);
    tt_columns_destroy(&a);
}

/*  Stored are frames; of each column a row has all of them, and so says the hash. */
static void test_stacks(void **state)
{
    (void)state;
    const char *obs = "{a: uint8[3], b: float32[2], c: discrete(3)}";
    tt_columns_t *one = s_columns(obs, "discrete(2)", false);
    tt_columns_t *three = s_stacked(obs, "discrete(2)", false, true, 3, TT_PAD_RESET);
    tt_columns_t *zero = s_stacked(obs, "discrete(2)", false, true, 3, TT_PAD_ZERO);
    tt_columns_t *bare = s_stacked(obs, "discrete(2)", false, false, 3, TT_PAD_ZERO);
    assert_true(one->hash != three->hash && three->hash != zero->hash && zero->hash != bare->hash);
    assert_true(one->row == one->frame && one->frame == 4 + 8 + 12 && one->before == 0 && !one->zero);
    assert_true(three->frame == one->frame && three->row == 12 + 3 * 8 + 3 * 12 && three->flat == 3 * one->flat);
    assert_true(three->scaled == 2 && three->before == 2 && bare->before == 0 && !three->zero);
    for (uint32_t c = 0; c < one->count; c++)
        assert_int_equal(three->at[c].bytes, one->at[c].bytes);
    const unsigned char first[24] = {1, 2, 3, 0, [20] = 9}, second[24] = {4, 5, 6, 0, [4] = 7};
    const void *list[] = {NULL, first, second};
    unsigned char row[72], want[72] = {0};
    tt_stack_pad(&three->stack, list, 1, NULL);
    assert_ptr_equal(list[0], first);
    tt_stack_row(&three->stack, list, memset(row, 0, sizeof row));
    memcpy(want, (const unsigned char[]){1, 2, 3, 1, 2, 3, 4, 5, 6}, 9);
    want[12 + 2 * 8] = 7;
    want[36 + 8] = want[36 + 12 + 8] = 9;
    assert_memory_equal(row, want, sizeof want);
    tt_stack_pad(&zero->stack, list, 0, zero->zero);
    assert_true(list[0] == zero->zero && list[1] == zero->zero && list[2] == second);
    const float choice[3] = {1, 0, 0}; /* of choices, too, zero is one */
    assert_memory_equal((const char *)zero->zero + 12, choice, sizeof choice);
    tt_columns_t *all[] = {one, three, zero, bare};
    for (size_t i = 0; i < 4; i++)
        tt_columns_destroy(&all[i]);
}

static void test_stacks_too_large(void **state)
{
    (void)state;
    tt_space_t *obs = NULL, *action = NULL;
    tt_columns_t *columns = NULL;
    assert_ok(tt_space_parse(&obs, "uint8[1024, 1024]"));
    assert_ok(tt_space_parse(&action, "discrete(2)"));
    assert_ok(tt_columns_new_stacked(&columns, obs, action, false, true, 8, TT_PAD_RESET));
    tt_columns_destroy(&columns);
    assert_int_equal(tt_columns_new_stacked(&columns, obs, action, false, true, 9, TT_PAD_RESET), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "obs: 9 frames are more than 8 MiB"));
    assert_int_equal(tt_columns_new_stacked(&columns, obs, action, false, true, 65, TT_PAD_RESET), TT_INVALID);
    assert_null(columns);
    tt_space_free(&obs);
    tt_space_free(&action);
}

static void s_refused(const char *obs, const char *action, bool mask, const char *words)
{
    tt_space_t *o = NULL, *a = NULL;
    tt_columns_t *columns = NULL;
    assert_ok(tt_space_parse(&o, obs));
    assert_ok(tt_space_parse(&a, action));
    assert_int_equal(tt_columns_new(&columns, o, a, mask, true), TT_INVALID);
    assert_null(columns);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    tt_space_free(&o);
    tt_space_free(&a);
}

static void test_limits(void **state)
{
    (void)state;
    char many[1024] = "(float32";
    for (int i = 0; i < 59; i++)
        strcat(many, ", float32");
    strcat(many, ")");
    s_refused(many, "discrete(2)", false, "more than 64 columns");
    s_refused("(int64[1048576], float32)", "discrete(2)", false, "obs.1: a row is more than 8 MiB");
    s_refused("float32", "float32", true, "mask: 0 choices");
    s_refused("float32", "multi_discrete(65536, 2)", true, "mask: 65538 choices");
    s_refused("{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: float32}}",
        "float32", false, "at most 63 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_vector_and_a_choice),
        cmocka_unit_test(test_a_tree_of_everything),
        cmocka_unit_test(test_without_estimates),
        cmocka_unit_test(test_what_is_plain),
        cmocka_unit_test(test_a_row),
        cmocka_unit_test(test_hash_tells_lists_apart),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_stacks_too_large),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
