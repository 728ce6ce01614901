/*  The layout by brute force, and every way in which a received block can be wrong. */
#include "common/wire/segment.h"
#include "common/base/mem.h"
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  A sound segment of 3 steps, 4 envs, with truncations at (0, 1), (0, 3) and (2, 0). */
static tt_segment_shape_t s_shape = {.T = 3, .E = 4, .K = 3, .S = 7};
static tt_columns_t *s_floats, *s_choice, *s_tree;

static tt_columns_t *s_stacked(const char *obs, const char *action, bool mask, bool estimates, uint32_t frames)
{
    tt_space_t *o = NULL, *a = NULL;
    tt_columns_t *columns = NULL;
    assert_ok(tt_space_parse(&o, obs));
    assert_ok(tt_space_parse(&a, action));
    assert_ok(tt_columns_new_stacked(&columns, o, a, mask, estimates, frames, TT_PAD_RESET));
    tt_space_free(&o);
    tt_space_free(&a);
    return columns;
}

static tt_columns_t *s_columns(const char *obs, const char *action, bool mask, bool estimates)
{
    return s_stacked(obs, action, mask, estimates, 1);
}

static int s_make_columns(void **state)
{
    (void)state;
    s_shape.columns = s_floats = s_columns("float32[5]", "float32[2]", false, true);
    s_choice = s_columns("float32", "discrete(3)", false, true);
    s_tree = s_columns("{image: uint8[2, 3], room: discrete(4)}", "(multi_discrete(2, 3), float32)", true, true);
    return 0;
}

static int s_free_columns(void **state)
{
    (void)state;
    tt_columns_destroy(&s_floats);
    tt_columns_destroy(&s_choice);
    tt_columns_destroy(&s_tree);
    return 0;
}

typedef struct {
    size_t bytes;
    uint8_t *block;
    tt_segment_t s;
} fixture_t;

static void s_setup(fixture_t *self, const tt_segment_shape_t *shape)
{
    assert_ok(tt_segment_size(shape, &self->bytes));
    self->block = tt_aligned0(self->bytes);
    tt_segment_map(shape, self->block, &self->s);
    if (shape->K == 3) {
        const uint32_t t[] = {0, 0, 2}, env[] = {1, 3, 0};
        for (size_t k = 0; k < 3; k++) {
            self->s.final_t[k] = t[k];
            self->s.final_env[k] = env[k];
            self->s.truncated[t[k] * shape->E + env[k]] = 1;
        }
    }
}

static void s_refused(fixture_t *self, const char *words)
{
    assert_int_equal(tt_segment_check(&s_shape, self->block, self->bytes), TT_PROTOCOL);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    free(self->block);
}

static void test_layout(void **state)
{
    (void)state;
    fixture_t f;
    s_setup(&f, &s_shape);
    const void *const starts[] = {f.s.column[0], f.s.column[1], f.s.reward, f.s.terminated, f.s.truncated, f.s.log_prob,
        f.s.value, f.s.age, f.s.last[0], f.s.last_value, f.s.final_t, f.s.final_env, f.s.final[0], f.s.final_value,
        f.s.states};
    const size_t sizes[] = {3 * 4 * 5 * 4, 3 * 4 * 2 * 4, 3 * 4 * 4, 3 * 4, 3 * 4, 3 * 4 * 4, 3 * 4 * 4, 4 * 4,
        4 * 5 * 4, 4 * 4, 3 * 4, 3 * 4, 3 * 5 * 4, 3 * 4, 4 * 7};
    size_t at = 0;
    for (size_t i = 0; i < TT_COUNT(starts); i++) {
        at = (at + 63) / 64 * 64;
        assert_ptr_equal(starts[i], f.block + at);
        at += sizes[i];
    }
    assert_int_equal(f.bytes, at);
    assert_ok(tt_segment_check(&s_shape, f.block, f.bytes));
    free(f.block);
}

static void test_choices_and_bare(void **state)
{
    (void)state;
    const tt_segment_shape_t bare = {.columns = s_choice, .T = 2, .E = 1};
    fixture_t f;
    s_setup(&f, &bare);
    assert_ptr_equal(f.s.reward, f.block + 2 * 64);
    ((int32_t *)f.s.column[1])[1] = 2;
    assert_ok(tt_segment_check(&bare, f.block, f.bytes));
    ((int32_t *)f.s.column[1])[1] = 3;
    assert_int_equal(tt_segment_check(&bare, f.block, f.bytes), TT_PROTOCOL);
    assert_string_equal(tt_err_text(), "segment: action: element 0 is 3, there are 3 choices");
    ((int32_t *)f.s.column[1])[1] = -1;
    assert_int_equal(tt_segment_check(&bare, f.block, f.bytes), TT_PROTOCOL);
    free(f.block);
}

/*  Nothing in the place of what acting did not estimate, and everything else where it was. */
static void test_without_estimates(void **state)
{
    (void)state;
    tt_columns_t *columns = s_columns("float32[5]", "float32[2]", false, false);
    tt_segment_shape_t shape = s_shape;
    fixture_t f;
    shape.columns = columns;
    s_setup(&f, &shape);
    assert_null(f.s.log_prob);
    assert_null(f.s.value);
    assert_null(f.s.last_value);
    assert_null(f.s.final_value);
    assert_int_equal((uint8_t *)f.s.age - (uint8_t *)f.s.truncated, 64);
    assert_int_equal(f.s.states - (uint8_t *)f.s.final[0], 64);
    assert_ok(tt_segment_check(&shape, f.block, f.bytes));
    f.s.reward[0] = NAN;
    assert_int_equal(tt_segment_check(&shape, f.block, f.bytes), TT_PROTOCOL);
    free(f.block);
    tt_columns_destroy(&columns);
}

/*  Bytes, choices of an observation, several elements of an action, and masks at every place where there is one. */
static void test_a_tree(void **state)
{
    (void)state;
    const tt_segment_shape_t shape = {.columns = s_tree, .T = 3, .E = 4, .K = 3};
    fixture_t f;
    s_setup(&f, &shape);
    uint8_t *const masks[] = {f.s.column[2], f.s.last[2], f.s.final[2]};
    const size_t rows[] = {12, 4, 3};
    const char *const refused[] = {"segment: mask: row 11", "segment: last mask: row 3", "segment: final mask: row 2"};
    assert_null(f.s.last[s_tree->action]);
    assert_non_null(f.s.final[1]);
    assert_int_equal(tt_segment_check(&shape, f.block, f.bytes), TT_PROTOCOL);
    assert_string_equal(tt_err_text(), "segment: mask: row 0 leaves no choice");
    for (int i = 0; i < 3; i++)
        memset(masks[i], 1, rows[i] * s_tree->mask_bits);
    assert_ok(tt_segment_check(&shape, f.block, f.bytes));
    for (int i = 0; i < 3; i++) {
        uint8_t *const row = masks[i] + (rows[i] - 1) * s_tree->mask_bits;
        const char *const words[] = {" leaves no choice", " is neither 0 nor 1"};
        for (int k = 0; k < 2; k++) {
            char expected[80];
            row[0] = row[1] = k ? 2 : 0;
            snprintf(expected, sizeof expected, "%s%s", refused[i], words[k]);
            assert_int_equal(tt_segment_check(&shape, f.block, f.bytes), TT_PROTOCOL);
            assert_string_equal(tt_err_text(), expected);
        }
        row[0] = row[1] = 1;
    }
    ((int32_t *)f.s.column[3])[23] = 3; /* the second element has three choices */
    assert_int_equal(tt_segment_check(&shape, f.block, f.bytes), TT_PROTOCOL);
    assert_string_equal(tt_err_text(), "segment: action.0: element 1 is 3, there are 3 choices");
    ((int32_t *)f.s.column[3])[23] = 2;
    ((int32_t *)f.s.final[1])[2] = 4;
    assert_int_equal(tt_segment_check(&shape, f.block, f.bytes), TT_PROTOCOL);
    assert_string_equal(tt_err_text(), "segment: final obs.room: element 0 is 4, there are 4 choices");
    free(f.block);
}

static void test_sizes_that_do_not_fit(void **state)
{
    (void)state;
    size_t bytes;
    const uint32_t big = UINT32_MAX;
    const tt_segment_shape_t shapes[] = {
        {s_choice, .T = 0, .E = 1},
        {s_choice, .T = 1, .E = 0},
        {s_choice, .T = 1, .E = 1, .K = 2},
        {s_floats, .T = big, .E = big},
        {s_floats, .T = big, .E = big, .K = big, .S = big},
        {s_choice, .T = 1, .E = 1 << 16, .S = 1 << 16},
        {s_choice, .T = 1 << 14, .E = 1 << 14},
    };
    for (size_t i = 0; i < TT_COUNT(shapes); i++)
        assert_int_equal(tt_segment_size(&shapes[i], &bytes), TT_INVALID);
    const uint8_t byte = 0;
    assert_int_equal(tt_segment_check(&shapes[4], &byte, 1), TT_PROTOCOL);
}

/*  Every env in one part, in order, none over the most, none more than one env larger than another. */
static void test_cut_ranges(void **state)
{
    (void)state;
    static const struct {
        uint32_t envs, most, parts;
    } cases[] = {
        {1, 1, 1}, {8, 8, 1}, {8, 9, 1}, {8, 3, 3}, {8, 1, 8}, {7, 6, 2}, {65536, 65535, 2}, {65536, 1021, 65}};
    for (size_t c = 0; c < TT_COUNT(cases); c++) {
        const uint32_t envs = cases[c].envs, most = cases[c].most, parts = tt_segment_parts(envs, most);
        uint32_t next = 0;
        assert_int_equal(parts, cases[c].parts);
        for (uint32_t i = 0; i < parts; i++) {
            uint32_t first, count;
            tt_segment_part(envs, most, i, &first, &count);
            assert_int_equal(first, next);
            assert_in_range(count, envs / parts, most);
            assert_true(count <= envs / parts + 1);
            next += count;
        }
        assert_int_equal(next, envs);
    }
}

static void test_unaligned_blocks_are_checked(void **state)
{
    (void)state;
    fixture_t f;
    s_setup(&f, &s_shape);
    uint8_t *odd = malloc(f.bytes + 1);
    memcpy(odd + 1, f.block, f.bytes);
    assert_ok(tt_segment_check(&s_shape, odd + 1, f.bytes));
    free(odd);
    free(f.block);
}

static void test_wrong_size(void **state)
{
    (void)state;
    fixture_t f;
    s_setup(&f, &s_shape);
    f.bytes--;
    s_refused(&f, "bytes where its header says");
}

static void test_wrong_flags(void **state)
{
    (void)state;
    fixture_t f;
    s_setup(&f, &s_shape);
    f.s.terminated[11] = 2;
    s_refused(&f, "terminated is neither");
    s_setup(&f, &s_shape);
    f.s.truncated[0] = 0xff;
    s_refused(&f, "truncated is neither");
}

static void test_wrong_finals(void **state)
{
    (void)state;
    fixture_t f;
    s_setup(&f, &s_shape);
    f.s.truncated[4] = 1; /* a truncation without a final */
    s_refused(&f, "3 finals for 4 truncations");
    s_setup(&f, &s_shape);
    f.s.final_t[2] = 3;
    s_refused(&f, "final 2 is at step 3");
    s_setup(&f, &s_shape);
    f.s.final_env[0] = UINT32_MAX;
    s_refused(&f, "final 0 is at step 0");
    s_setup(&f, &s_shape);
    f.s.final_env[0] = 3;
    f.s.final_env[1] = 1;
    s_refused(&f, "final 1 is out of order");
    s_setup(&f, &s_shape);
    f.s.final_env[1] = 1; /* one of them twice */
    s_refused(&f, "final 1 is out of order");
    s_setup(&f, &s_shape);
    f.s.final_env[2] = 1; /* not a truncation */
    s_refused(&f, "final 2 is out of order or not at a truncation");
}

static void test_numbers_must_be_finite(void **state)
{
    (void)state;
    const char *const names[] = {"segment: obs: not finite", "segment: action: not", "segment: reward: not",
        "segment: log_prob: not", "segment: value: not", "segment: last obs: not", "segment: last value: not",
        "segment: final obs: not", "segment: final value: not"};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        for (size_t k = 0; k < TT_COUNT(bad); k++) {
            fixture_t f;
            s_setup(&f, &s_shape);
            float *const last[] = {&((float *)f.s.column[0])[59], &((float *)f.s.column[1])[23], &f.s.reward[11],
                &f.s.log_prob[11], &f.s.value[11], &((float *)f.s.last[0])[19], &f.s.last_value[3],
                &((float *)f.s.final[0])[14], &f.s.final_value[2]};
            *last[i] = bad[k];
            s_refused(&f, names[i]);
        }
    }
}

/*  Frames before the first lie behind the ages, where acting estimates: a replay has them of the batch before. */
static void test_stacks(void **state)
{
    (void)state;
    const tt_segment_shape_t plain = s_shape;
    tt_columns_t *stacked = s_stacked("float32[5]", "float32[2]", false, true, 3);
    tt_columns_t *bare = s_stacked("float32[5]", "float32[2]", false, false, 3);
    fixture_t f;
    s_setup(&f, &plain);
    size_t bytes = f.bytes;
    free(f.block);
    s_shape.columns = stacked;
    s_setup(&f, &s_shape);
    assert_int_equal(f.bytes, bytes + tt_align(2 * 4 * 5 * sizeof(float), 64));
    assert_ptr_equal(f.s.before[0], f.block + tt_align((size_t)((uint8_t *)f.s.age - f.block) + 16, 64));
    assert_null(f.s.before[1]);
    f.s.age[2] = 1;
    f.s.age[3] = 5;
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 0, 0), 0);
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 0, 2), 1);
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 0, 3), 2);
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 1, 3), 0); /* cut before it */
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 3, 3), 2);
    assert_int_equal(tt_segment_back(&s_shape, &f.s, 3, 0), 0);
    size_t index;
    assert_ptr_equal(tt_segment_frame(&s_shape, &f.s, 3, 1, 0, &index), f.s.last);
    assert_int_equal(index, 1);
    assert_ptr_equal(tt_segment_frame(&s_shape, &f.s, 3, 1, 1, &index), f.s.column);
    assert_int_equal(index, 2 * 4 + 1);
    assert_ptr_equal(tt_segment_frame(&s_shape, &f.s, 1, 2, 2, &index), f.s.before);
    assert_int_equal(index, 4 + 2);
    assert_ok(tt_segment_check(&s_shape, f.block, f.bytes));
    ((float *)f.s.before[0])[7] = NAN;
    s_refused(&f, "before obs: not finite");
    s_shape.columns = bare;
    s_setup(&f, &s_shape);
    assert_null(f.s.before[0]);
    free(f.block);
    tt_columns_destroy(&stacked);
    tt_columns_destroy(&bare);
    s_shape = plain;
}

/*  What is carried lies behind the ages, and the frames before the first; it is part of the hash. */
static void test_carry(void **state)
{
    (void)state;
    const tt_segment_shape_t plain = s_shape;
    tt_columns_t *columns = s_columns("float32[5]", "float32[2]", false, true);
    tt_columns_t *stacked = s_stacked("float32[5]", "float32[2]", false, true, 3);
    const float bad[] = {NAN, -INFINITY};
    fixture_t f;
    s_setup(&f, &plain);
    assert_null(f.s.carry);
    const size_t bytes = f.bytes;
    free(f.block);
    tt_columns_put_carry(columns, 6);
    tt_columns_put_carry(stacked, 6);
    assert_true(columns->hash != s_floats->hash);
    s_shape.columns = stacked;
    s_setup(&f, &s_shape);
    assert_ptr_equal(f.s.carry, (char *)f.s.before[0] + tt_align(2 * 4 * 5 * sizeof(float), 64));
    free(f.block);
    s_shape.columns = columns;
    s_setup(&f, &s_shape);
    assert_int_equal(f.bytes, bytes + tt_align(4 * 6 * sizeof(float), 64));
    assert_ptr_equal(f.s.carry, (char *)f.s.age + 64);
    assert_ptr_equal(f.s.last[0], (char *)f.s.carry + tt_align(4 * 6 * sizeof(float), 64));
    f.s.age[3] = 1;
    f.s.carry[23] = 2.5f;
    f.s.carry[18] = -1;
    assert_ok(tt_segment_check(&s_shape, f.block, f.bytes));
    uint8_t *odd = malloc(f.bytes + 1);
    memcpy(odd + 1, f.block, f.bytes);
    assert_ok(tt_segment_check(&s_shape, odd + 1, f.bytes));
    free(odd);
    f.s.carry[17] = 1e-30f;
    s_refused(&f, "segment: carry of an env whose episode begins, env 2, is not zeros");
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        s_setup(&f, &s_shape);
        f.s.age[3] = 1;
        f.s.carry[23] = bad[i];
        s_refused(&f, "segment: carry: not finite");
    }
    tt_columns_destroy(&columns);
    tt_columns_destroy(&stacked);
    s_shape = plain;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_carry),
        cmocka_unit_test(test_choices_and_bare),
        cmocka_unit_test(test_without_estimates),
        cmocka_unit_test(test_a_tree),
        cmocka_unit_test(test_sizes_that_do_not_fit),
        cmocka_unit_test(test_cut_ranges),
        cmocka_unit_test(test_unaligned_blocks_are_checked),
        cmocka_unit_test(test_wrong_size),
        cmocka_unit_test(test_wrong_flags),
        cmocka_unit_test(test_wrong_finals),
        cmocka_unit_test(test_numbers_must_be_finite),
    };
    return cmocka_run_group_tests(tests, s_make_columns, s_free_columns);
}
