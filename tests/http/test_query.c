/*  Percent-encoding, there and back. */
#include "common/http/query.h"
#include <stdlib.h>
#include <string.h>
#include "tests/test.h"

static void test_get(void **state)
{
    (void)state;
    char out[4];
    assert_ok(tt_query_get(out, sizeof out, "&&a=%41+c&a=2", "a"));
    assert_string_equal(out, "A c");
    assert_int_equal(tt_query_get(out, sizeof out, "a=1234", "a"), TT_INVALID);
    assert_int_equal(tt_query_get(out, sizeof out, "ab=1&a", "a"), TT_NOT_FOUND);
    assert_int_equal(tt_query_get(out, sizeof out, "a=&a=1", "a"), TT_NOT_FOUND);
    assert_int_equal(tt_query_get(out, sizeof out, "a=%0g", "a"), TT_INVALID);
}

static void test_decode(void **state)
{
    (void)state;
    static const char *const none[] = {"%", "%4", "%4g", "a%00b", "a\nb", "%7f"};
    for (size_t i = 0; i < TT_COUNT(none); i++)
        assert_null(tt_query_decode(none[i], strlen(none[i])));
    char *text = tt_query_decode("%c3%A9+b%26", strlen("%c3%A9+b%26"));
    assert_string_equal(text, "\xc3\xa9 b&");
    free(text);
    text = tt_query_decode("a%41", 1); /* as long as it is said to be */
    assert_string_equal(text, "a");
    free(text);
}

static void test_escape(void **state)
{
    (void)state;
    char *text = tt_query_escape("a/b c=d,e!~_-.%\xc3\xa9"), *back = tt_query_decode(text, strlen(text));
    assert_string_equal(text, "a%2Fb%20c%3Dd%2Ce%21~_-.%25%C3%A9");
    assert_string_equal(back, "a/b c=d,e!~_-.%\xc3\xa9");
    free(text);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
