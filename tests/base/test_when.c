/*  Moments as text, there and back. */
#include <string.h>
#include "../test.h"
#include "common/base/when.h"

static void test_texts(void **state)
{
    (void)state;
    char out[TT_WHEN];
    assert_string_equal(tt_when_text(out, 0), "1970-01-01T00:00:00Z");
    assert_string_equal(tt_when_text(out, 1769860800), "2026-01-31T12:00:00Z");
    assert_string_equal(tt_when_text(out, 253402300799), "9999-12-31T23:59:59Z");
    assert_string_equal(tt_when_text(out, INT64_MAX), "1970-01-01T00:00:00Z");
    assert_string_equal(tt_when_text_us(out, 1769860800000123999), "2026-01-31T12:00:00.000123Z");
    assert_string_equal(tt_when_text_us(out, INT64_MAX), "2262-04-11T23:47:16.854775Z");
}

static int64_t s_read(const char *text)
{
    int64_t out = -1;
    return tt_when_read(&out, text) ? out : -1;
}

static void test_read(void **state)
{
    (void)state;
    assert_int_equal(s_read("2026-01-31T12:00:00Z"), 1769860800);
    assert_int_equal(s_read("2026-01-31T12:00:00.999999Z"), 1769860800);
    assert_int_equal(s_read("2026-01-31T12:00:00.Z"), 1769860800);
    assert_int_equal(s_read("2026-01-31t12:00:00z"), -1);
    assert_int_equal(s_read("2026-01-31T12:00:00z"), 1769860800);
    assert_int_equal(s_read("2026-01-31T14:30:00+02:30"), 1769860800);
    assert_int_equal(s_read("2026-01-31T10:00:00.5-02:00"), 1769860800);
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const char *const none[] = {"", "soon", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00ZZ",
        "2026-13-31T12:00:00Z", "2026-01-31T12:00:00+2:0x", "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+02:60",
        "2026-01-31T12:00:00+", "2026-01-31T12:00:00+02:00 "};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(s_read(none[i]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
