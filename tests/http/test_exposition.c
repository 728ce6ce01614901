/*  What Prometheus reads, byte for byte. */
#include "common/http/exposition.h"
#include "common/http/histogram.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

static void test_one(void **state)
{
    (void)state;
    tt_buf_t out;
    tt_buf_init(&out, 1024);
    assert_ok(tt_exposition_one(&out, "tutti_", "sps", "gauge", "Steps a second.", 0.1));
    assert_string_equal(tt_buf_text(&out), "# HELP tutti_sps Steps a second.\n# TYPE tutti_sps gauge\ntutti_sps 0.1\n");
    tt_buf_free(&out);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e21, "1e+21"},
        {123456789012, "123456789012"}, {NAN, "NaN"}, {INFINITY, "+Inf"}, {-INFINITY, "-Inf"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tt_exposition_number(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
        assert_true(isnan(cases[i].value) || strtod(text, NULL) == cases[i].value);
    }
}

static void test_labels(void **state)
{
    (void)state;
    tt_buf_t out;
    tt_buf_init(&out, 64);
    assert_ok(tt_exposition_label(&out, "a \"b\"\\c\nd"));
    assert_string_equal(tt_buf_text(&out), "a \\\"b\\\"\\\\c\\nd");
    tt_buf_free(&out);
}

/*  A value at a bound is of that bucket; each line counts all below. */
static void test_histogram(void **state)
{
    (void)state;
    static const tt_buckets_t buckets = {2, {0.1, 1}};
    static const double values[] = {0.05, 0.1, 0.5, 7};
    tt_histogram_t histogram = {0};
    tt_buf_t out;
    tt_buf_init(&out, 1024);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        tt_histogram_observe(&histogram, &buckets, values[i]);
    assert_ok(tt_histogram_write(&histogram, &buckets, &out, "t", "a=\"b\""));
    assert_string_equal(tt_buf_text(&out),
        "t_bucket{a=\"b\",le=\"0.1\"} 2\nt_bucket{a=\"b\",le=\"1\"} 3\n"
        "t_bucket{a=\"b\",le=\"+Inf\"} 4\nt_sum{a=\"b\"} 7.65\nt_count{a=\"b\"} 4\n");
    tt_buf_free(&out);
}

/*  Each of the six, with a number above nought; the start is as it was given. */
static void test_process(void **state)
{
    (void)state;
    tt_buf_t out;
    tt_buf_init(&out, 4096);
    assert_ok(tt_exposition_process(&out, 1769860800.5));
    static const char *const names[] = {"cpu_seconds_total", "open_fds", "max_fds", "resident_memory_bytes",
        "virtual_memory_bytes", "start_time_seconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char line[64];
        snprintf(line, sizeof line, "\nprocess_%s ", names[i]);
        const char *at = strstr(tt_buf_text(&out), line);
        assert_non_null(at);
        assert_true(strtod(at + strlen(line), NULL) > 0);
    }
    assert_non_null(strstr(tt_buf_text(&out), "process_start_time_seconds 1769860800.5\n"));
    tt_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
