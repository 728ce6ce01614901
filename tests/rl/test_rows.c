/*  Observations as a network reads them: in place where they can be, else copies; and what a normaliser is given. */
#include "common/rl/rows.h"
#include <math.h>
#include <string.h>
#include "tests/test.h"

enum { COUNT = 3, CLIP = 2 };

static tt_columns_t *s_columns(const char *words)
{
    tt_space_t *obs = NULL, *action = NULL;
    tt_columns_t *columns = NULL;
    assert_ok(tt_space_parse(&obs, words));
    assert_ok(tt_space_parse(&action, "discrete(2)"));
    assert_ok(tt_columns_new(&columns, obs, action, false, true));
    tt_space_free(&obs);
    tt_space_free(&action);
    return columns;
}

/*  What it is fed does not matter, if only it is not what it began with. */
static tt_norm_t *s_norm(uint32_t dims)
{
    const float low[2] = {-1, 0.5f}, high[2] = {2, 8};
    const float *const rows[] = {low, high};
    tt_norm_t *norm = tt_norm_new(dims);
    tt_norm_merge(norm, rows, 2);
    return norm;
}

static float s_vector[COUNT + 1][2] = {{1, 2}, {3, -40}, {5, 6}, {7, 8}};

static void test_a_vector_is_read_where_it_lies(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("float32[2]");
    tt_rows_t rows;
    void *const column[] = {s_vector};
    tt_rows_init(&rows, columns, false, CLIP);
    tt_rows_need(&rows, COUNT);
    tt_rows_put(&rows, 1, 2, NULL, column, 2);
    assert_ptr_equal(rows.at[1], s_vector[2]);
    assert_ptr_equal(rows.at[2], s_vector[3]);
    assert_ptr_equal(tt_rows_of(&rows, COUNT + 1, NULL, column)[3], s_vector[3]); /* it grows */
    assert_null(rows.copies);
    assert_null(rows.raw);
    tt_rows_free(&rows);
    tt_columns_destroy(&columns);
}

static void test_a_vector_is_scaled_in_a_copy(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("float32[2]");
    tt_norm_t *norm = s_norm(2);
    tt_rows_t rows;
    void *const column[] = {s_vector};
    float scaled[COUNT][2];
    tt_rows_init(&rows, columns, true, CLIP);
    const void *const *at = tt_rows_of(&rows, COUNT, norm, column);
    tt_norm_scale(norm, s_vector[0], COUNT, CLIP, scaled[0]);
    for (int i = 0; i < COUNT; i++) {
        assert_memory_equal(at[i], scaled[i], sizeof scaled[i]);
        assert_ptr_equal(rows.raw[i], s_vector[i]);
    }
    assert_true(((const float *)at[1])[1] == -CLIP);
    tt_rows_free(&rows);
    tt_norm_destroy(&norm);
    tt_columns_destroy(&columns);
}

static void test_of_many_columns_the_floats_are_scaled(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("(uint8[2], float32, discrete(3), float32)");
    tt_norm_t *norm = s_norm(columns->scaled);
    tt_rows_t rows;
    uint8_t bytes[COUNT][2] = {{0, 255}, {1, 2}, {3, 4}};
    float first[COUNT] = {1, 3, 5}, last[COUNT] = {2, -40, 6};
    int32_t choice[COUNT] = {2, 0, 1};
    void *const column[] = {bytes, first, choice, last};
    for (int scale = 0; scale <= 1; scale++) {
        tt_rows_init(&rows, columns, scale, CLIP);
        tt_rows_need(&rows, COUNT);
        tt_rows_put(&rows, 0, 2, norm, column, 1);
        float two[2] = {3, -40};
        if (scale) {
            assert_memory_equal(rows.raw[0], two, sizeof two);
            tt_norm_scale(norm, two, 1, CLIP, two);
        }
        const struct {
            uint8_t bytes[4];
            float first, choice[3], last;
        } want = {{1, 2}, two[0], {1, 0, 0}, two[1]}, *second = rows.at[1];
        assert_memory_equal(rows.at[0], &want, sizeof want);
        assert_true(second->bytes[0] == 3 && second->choice[1] == 1);
        tt_rows_free(&rows);
    }
    tt_norm_destroy(&norm);
    tt_columns_destroy(&columns);
}

static void test_without_floats_nothing_is_scaled(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("uint8[2]");
    tt_norm_t *norm = tt_norm_new(0);
    double block[1];
    tt_rows_t rows;
    uint8_t bytes[1][2] = {{7, 9}};
    void *const column[] = {bytes};
    assert_int_equal(tt_norm_block_count(0), 1);
    tt_norm_save(norm, block);
    assert_ok(tt_norm_load(norm, block, 1));
    tt_rows_init(&rows, columns, true, CLIP);
    const void *const *at = tt_rows_of(&rows, 1, norm, column);
    assert_ptr_equal(at[0], bytes[0]);
    assert_null(rows.raw);
    assert_null(rows.copies);
    tt_rows_free(&rows);
    tt_norm_destroy(&norm);
    tt_columns_destroy(&columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_vector_is_read_where_it_lies),
        cmocka_unit_test(test_a_vector_is_scaled_in_a_copy),
        cmocka_unit_test(test_of_many_columns_the_floats_are_scaled),
        cmocka_unit_test(test_without_floats_nothing_is_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
