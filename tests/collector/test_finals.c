/*  Truncations, in whatever order they come: ordered by (t, env), each with its own rows. */
#include "collector/finals.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "tests/test.h"

enum { T = 9, E = 7, ALL = T * E, CARRY = 3 };

typedef struct {
    tt_columns_t *columns;
    tt_segment_t at;
    void *block;
    finals_t finals;
} world_t;

/*  carry: of each. */
static void s_open(world_t *w, uint32_t carry)
{
    static const tt_space_t parts[] = {{.kind = TT_SPACE_BOX, .key = "a", .dtype = TT_F32, .rank = 1, .shape = {2}},
        {.kind = TT_SPACE_BOX, .key = "b", .dtype = TT_U8, .rank = 1, .shape = {3}}};
    static const int64_t n[] = {2};
    const tt_space_t obs = {.kind = TT_SPACE_DICT, .part = parts, .parts = 2};
    const tt_space_t action = {.kind = TT_SPACE_DISCRETE, .n = n};
    *w = (world_t){0};
    assert_ok(tt_columns_new(&w->columns, &obs, &action, false, true));
    tt_columns_put_carry(w->columns, carry);
}

/*  A block with room for what there is. */
static void s_put(world_t *w)
{
    const tt_segment_shape_t shape = {.columns = w->columns, .T = T, .E = E, .K = w->finals.count};
    size_t size;
    assert_ok(tt_segment_size(&shape, &size));
    free(w->block);
    w->block = tt_aligned0(size);
    tt_segment_map(&shape, w->block, &w->at);
    finals_put(&w->finals, w->columns, &w->at);
}

static void s_close(world_t *w)
{
    finals_free(&w->finals);
    free(w->block);
    tt_columns_destroy(&w->columns);
}

static void s_add(world_t *w, uint32_t number)
{
    const float a[2] = {(float)number, -(float)number};
    const uint8_t b[3] = {(uint8_t)number, (uint8_t)(number + 1), 7};
    const float carry[CARRY] = {(float)number + 0.5f, 3, -(float)number};
    const void *row[TT_COLUMNS_MAX] = {a, b};
    finals_add(&w->finals, w->columns, number / E, number % E, row, w->columns->carry ? carry : NULL);
}

static void s_assert_kth(const world_t *w, uint32_t k, uint32_t number)
{
    const float *a = (const float *)w->at.final[0] + (size_t)k * 2;
    const uint8_t *b = (const uint8_t *)w->at.final[1] + (size_t)k * 3;
    assert_int_equal(w->at.final_t[k], number / E);
    assert_int_equal(w->at.final_env[k], number % E);
    assert_true(a[0] == (float)number && a[1] == -(float)number);
    assert_int_equal(b[0], (uint8_t)number);
    assert_int_equal(b[1], (uint8_t)(number + 1));
    assert_int_equal(b[2], 7);
    if (!w->columns->carry)
        return;
    const float *carry = w->finals.carried + (size_t)k * CARRY;
    assert_true(carry[0] == (float)number + 0.5f && carry[1] == 3 && carry[2] == -(float)number);
}

/*  Every `stride`-th number of a ring of ALL, which has no divisor in common with it. */
static void test_any_order(void **state)
{
    (void)state;
    const uint32_t strides[] = {1, ALL - 1, 10, 38};
    for (size_t s = 0; s < 2 * TT_COUNT(strides); s++) {
        world_t w;
        s_open(&w, s % 2 ? CARRY : 0);
        for (uint32_t k = 0; k < ALL; k++)
            s_add(&w, k * strides[s / 2] % ALL);
        s_put(&w);
        for (uint32_t k = 0; k < ALL; k++)
            s_assert_kth(&w, k, k);
        s_close(&w);
    }
}

/*  The next batch begins with none, in the same memory. */
static void test_none_and_again(void **state)
{
    (void)state;
    world_t w;
    s_open(&w, CARRY);
    s_put(&w);
    for (uint32_t round = 0; round < 3; round++) {
        w.finals.count = 0;
        s_add(&w, 30 + round);
        s_add(&w, 20);
        s_put(&w);
        assert_int_equal(w.finals.count, 2);
        s_assert_kth(&w, 0, 20);
        s_assert_kth(&w, 1, 30 + round);
    }
    s_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_none_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
