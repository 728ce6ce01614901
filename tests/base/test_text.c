/*  Text of bytes that may be none: what is a character, where a copy is cut, what JSON gets. */
#include "common/base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "tests/test.h"

static void test_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        uint32_t code;
    } cases[] = {{"a", 1, 'a'}, {"\xc3\xbc", 2, 0xfc}, {"\xe2\x82\xac", 3, 0x20ac}, {"\xf0\x9f\x98\x80", 4, 0x1f600},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff}, {"\xc0\x80", 0, 0}, {"\xe0\x80\xaf", 0, 0}, {"\xed\xa0\x80", 0, 0},
        {"\xf4\x90\x80\x80", 0, 0}, {"\xff", 0, 0}, {"\x80", 0, 0}, {"\xe2\x82", 0, 0}, {"\xc3", 0, 0}};
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        uint32_t code = 0;
        assert_int_equal(tt_utf8_next(cases[i].text, &code), cases[i].length);
        if (cases[i].length)
            assert_int_equal(code, cases[i].code);
    }
}

static void test_a_copy_ends_with_a_whole_character(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t wanted[] = {0, 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t size = 1; size < TT_COUNT(wanted); size++) {
        char out[32];
        memset(out, 'x', sizeof out);
        tt_text_copy(out, size, text);
        assert_int_equal(strlen(out), wanted[size]);
        assert_memory_equal(out, text, wanted[size]);
        assert_int_equal(out[size], 'x');
    }
}

static void test_what_is_no_text_is_marked(void **state)
{
    (void)state;
    char out[16];
    tt_text_copy(out, sizeof out, "/tmp/\xff\xfe/\xc3(");
    assert_string_equal(out, "/tmp/?\?/?(");
    assert_null(tt_text_dup(NULL));
}

/*  Whatever the bytes: JSON takes the result, and valid text is not changed. */
static void test_json_takes_it(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char bytes[12];
        size_t length = (size_t)rand() % (sizeof bytes - 1);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)(1 + rand() % 255);
        bytes[length] = '\0';
        json_t *plain = json_string(bytes), *text = tt_json_text(bytes);
        assert_non_null(text);
        assert_int_equal(strlen(json_string_value(text)) > length, 0);
        if (plain)
            assert_true(json_equal(plain, text));
        json_decref(plain);
        json_decref(text);
    }
    json_t *none = tt_json_text(NULL);
    assert_true(json_is_null(none));
    json_decref(none);
}

/*  No terminal obeys a name. */
static void test_what_is_shown(void **state)
{
    (void)state;
    const char *plain = "/tmp/\xc3\xa4/run 1";
    assert_ptr_equal(tt_shown(plain), plain);
    assert_ptr_equal(tt_shown(NULL), NULL);
    assert_string_equal(tt_shown("a\033[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
    assert_string_equal(tt_shown("\xc2\x9b"
                                 "1m"),
        "\\u009b1m");
    assert_string_equal(tt_shown("\x9b"
                                 "1m"),
        "\\x9b1m");
    const char *one = tt_shown("\001"), *two = tt_shown("\002"), *three = tt_shown("\003"), *four = tt_shown("\004");
    assert_string_equal(one, "\\x01");
    assert_string_equal(two, "\\x02");
    assert_string_equal(three, "\\x03");
    assert_string_equal(four, "\\x04");
    char large[20000];
    memset(large, 'x', sizeof large);
    large[sizeof large - 2] = 7;
    large[sizeof large - 1] = '\0';
    const char *shown = tt_shown(large);
    assert_in_range(strlen(shown), 4000, 10000);
    assert_string_equal(shown + strlen(shown) - 4, "x...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_a_copy_ends_with_a_whole_character),
        cmocka_unit_test(test_what_is_no_text_is_marked),
        cmocka_unit_test(test_json_takes_it),
        cmocka_unit_test(test_what_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
