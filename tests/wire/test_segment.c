/*  The layout by brute force, and every way in which a received block can be wrong. */
#include "common/wire/segment.h"
#include "common/base/mem.h"
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*  A sound segment of 3 steps, 4 envs, with truncations at (0, 1), (0, 3) and (2, 0). */
static const tt_segment_shape_t s_shape = {.T = 3, .E = 4, .D = 5, .A = 2, .K = 3, .S = 7};

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
    const void *const starts[] = {f.s.obs, f.s.action, f.s.reward, f.s.terminated, f.s.truncated, f.s.log_prob,
        f.s.value, f.s.age, f.s.last_obs, f.s.last_value, f.s.final_t, f.s.final_env, f.s.final_obs, f.s.final_value,
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

static void test_discrete_and_bare(void **state)
{
    (void)state;
    const tt_segment_shape_t discrete = {.T = 2, .E = 1, .D = 1};
    fixture_t f;
    s_setup(&f, &discrete);
    assert_ptr_equal(f.s.reward, f.block + 2 * 64);
    memset(f.s.action, 0xff, 2 * 4); /* -1: not a float */
    assert_ok(tt_segment_check(&discrete, f.block, f.bytes));
    free(f.block);
}

static void test_sizes_that_do_not_fit(void **state)
{
    (void)state;
    size_t bytes;
    const uint32_t big = UINT32_MAX;
    const tt_segment_shape_t shapes[] = {
        {.T = 0, .E = 1, .D = 1},
        {.T = 1, .E = 0, .D = 1},
        {.T = 1, .E = 1, .D = 0},
        {.T = 1, .E = 1, .D = 1, .K = 2},
        {.T = big, .E = big, .D = big},
        {.T = big, .E = big, .D = 1, .A = big, .K = big, .S = big},
        {.T = 1, .E = 1, .D = 1 << 28},
        {.T = 1, .E = 1 << 16, .D = 1, .S = 1 << 16},
        {.T = 1 << 14, .E = 1 << 14, .D = 1},
    };
    for (size_t i = 0; i < TT_COUNT(shapes); i++)
        assert_int_equal(tt_segment_size(&shapes[i], &bytes), TT_INVALID);
    const uint8_t byte = 0;
    assert_int_equal(tt_segment_check(&shapes[4], &byte, 1), TT_PROTOCOL);
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
    const char *const names[] = {
        "obs", "action", "reward", "log_prob", "value", "last_obs", "last_value", "final_obs", "final_value"};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TT_COUNT(names); i++) {
        for (size_t k = 0; k < TT_COUNT(bad); k++) {
            fixture_t f;
            s_setup(&f, &s_shape);
            float *const last[] = {&f.s.obs[59], &((float *)f.s.action)[23], &f.s.reward[11], &f.s.log_prob[11],
                &f.s.value[11], &f.s.last_obs[19], &f.s.last_value[3], &f.s.final_obs[14], &f.s.final_value[2]};
            *last[i] = bad[k];
            s_refused(&f, names[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_discrete_and_bare),
        cmocka_unit_test(test_sizes_that_do_not_fit),
        cmocka_unit_test(test_unaligned_blocks_are_checked),
        cmocka_unit_test(test_wrong_size),
        cmocka_unit_test(test_wrong_flags),
        cmocka_unit_test(test_wrong_finals),
        cmocka_unit_test(test_numbers_must_be_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
