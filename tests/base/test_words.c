/*  Lines that are longer than an event has room for. */
#include <string.h>
#include "common/base/text.h"
#include "common/base/words.h"
#include "tests/test.h"

static void test_what_fits_stays(void **state)
{
    (void)state;
    char out[32];
    tt_words(out, sizeof out, "");
    assert_string_equal(out, "");
    tt_words(out, sizeof out, "thirty-one bytes, and no more..");
    assert_string_equal(out, "thirty-one bytes, and no more..");
    tt_words(out, sizeof out, "\xff and \xe4");
    assert_string_equal(out, "? and ?");
}

static void test_of_more_beginning_and_end_stay(void **state)
{
    (void)state;
    char out[32];
    tt_words(out, sizeof out, "pod a ended, and much else; run: pip install it");
    assert_string_equal(out, "pod a ended,  ... ip install it");
    assert_true(strlen(out) < sizeof out);
}

/*  Characters of two and three bytes, at every place of the cut. */
static void test_no_half_of_a_character(void **state)
{
    (void)state;
    for (size_t size = 32; size < 48; size++)
        for (size_t shift = 0; shift < 6; shift++) {
            char text[256] = "xxxxxx", out[64];
            text[shift] = '\0';
            for (int i = 0; i < 20; i++)
                strcat(text, i % 2 ? "\xc3\xa4" : "\xe2\x82\xac");
            tt_words(out, size, text);
            assert_true(strlen(out) < size && strlen(out) + 5 >= size);
            assert_non_null(strstr(out, " ... "));
            assert_null(strchr(out, '?'));
            uint32_t code;
            for (const char *at = out; *at; at += tt_utf8_next(at, &code))
                assert_true(tt_utf8_next(at, &code) > 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits_stays),
        cmocka_unit_test(test_of_more_beginning_and_end_stay),
        cmocka_unit_test(test_no_half_of_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
