/*  What Prometheus reads, byte for byte. */
#include "common/http/exposition.h"
#include <math.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
