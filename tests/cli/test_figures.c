/*  Figures: what a person reads. */
#include "cli/figures.h"
#include <math.h>
#include "tests/test.h"

static void test_counts(void **state)
{
    (void)state;
    char out[FIGURE];
    assert_string_equal(figure_count(0, out), "0");
    assert_string_equal(figure_count(999, out), "999");
    assert_string_equal(figure_count(1000, out), "1,000");
    assert_string_equal(figure_count(12345678, out), "12,345,678");
    assert_string_equal(figure_count(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

static void test_significant_digits(void **state)
{
    (void)state;
    char out[FIGURE];
    assert_string_equal(figure_digits(476.59, out), "476.6");
    assert_string_equal(figure_digits(-1116.03, out), "-1116");
    assert_string_equal(figure_digits(123456.7, out), "123457");
    assert_string_equal(figure_digits(9.5, out), "9.500");
    assert_string_equal(figure_digits(0.0123456, out), "0.01235");
    assert_string_equal(figure_digits(-0.5, out), "-0.5000");
    assert_string_equal(figure_digits(1.23e-7, out), "1.2e-07");
    assert_string_equal(figure_digits(-4e12, out), "-4.0e+12");
    assert_string_equal(figure_digits(0, out), "0");
    assert_string_equal(figure_digits(NAN, out), "-");
    assert_string_equal(figure_digits(INFINITY, out), "inf");
}

static void test_times(void **state)
{
    (void)state;
    char out[FIGURE];
    assert_string_equal(figure_time(0.9, out), "00:00:00");
    assert_string_equal(figure_time(75.9, out), "00:01:15");
    assert_string_equal(figure_time(3 * 3600 + 62, out), "03:01:02");
    assert_string_equal(figure_time(3 * 86400 + 75, out), "3d 00:01:15");
    assert_string_equal(figure_time(NAN, out), "-");
    assert_string_equal(figure_time(-1, out), "-");
    assert_string_equal(figure_time(INFINITY, out), "-");
}

static void test_bytes(void **state)
{
    (void)state;
    char out[FIGURE];
    assert_string_equal(figure_bytes(52711424, out), "53 MB");
    assert_string_equal(figure_bytes(1.2e10, out), "12 GB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_significant_digits),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
