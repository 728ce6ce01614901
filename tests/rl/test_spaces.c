/*  Spaces: what is refused, the words they are put in, and that these read back; whatever text comes, nothing breaks. */
#include "common/rl/spaces.h"
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "common/base/rng.h"
#include "tests/test.h"

static const int64_t s_two[] = {2}, s_pair[] = {3, 2}, s_from[] = {-1, 5}, s_zero[] = {0};
static const double s_low[] = {-2, 0}, s_high[] = {2, 1}, s_mixed[] = {3, 0};
static const tt_space_t s_parts[] = {
    {.kind = TT_SPACE_BOX, .key = "image", .dtype = TT_U8, .rank = 3, .shape = {8, 6, 3}},
    {.kind = TT_SPACE_MULTI_BINARY, .key = "seen", .rank = 2, .shape = {2, 4}},
    {.kind = TT_SPACE_DISCRETE, .key = "room-1", .n = s_two, .start = s_two},
};
static const tt_space_t s_pairs[] = {
    {.kind = TT_SPACE_DICT, .part = s_parts, .parts = 3},
    {.kind = TT_SPACE_MULTI_DISCRETE, .rank = 1, .shape = {2}, .n = s_pair, .start = s_from},
};

typedef struct {
    tt_space_t space;
    const char *text;
} words_t;

static const words_t s_words[] = {
    {TT_BOX(2, s_low, s_high), "float32[2]"},
    {{.kind = TT_SPACE_BOX, .dtype = TT_F64}, "float64"},
    {{.kind = TT_SPACE_BOX, .dtype = TT_BOOL, .rank = 1, .shape = {9}}, "bool[9]"},
    {{.kind = TT_SPACE_BOX, .dtype = TT_I64, .rank = 4, .shape = {1, 2, 3, 4}}, "int64[1, 2, 3, 4]"},
    {TT_CHOICES(s_two), "discrete(2)"},
    {{.kind = TT_SPACE_DISCRETE, .n = s_pair, .start = s_from}, "discrete(3, from -1)"},
    {{.kind = TT_SPACE_MULTI_DISCRETE, .rank = 1, .shape = {2}, .n = s_pair}, "multi_discrete(3, 2)"},
    {{.kind = TT_SPACE_MULTI_DISCRETE, .rank = 2, .shape = {2, 1}, .n = s_pair, .start = s_from},
        "multi_discrete[2, 1](3, 2, from -1, 5)"},
    {{.kind = TT_SPACE_MULTI_BINARY, .rank = 2, .shape = {2, 4}}, "multi_binary[2, 4]"},
    {{.kind = TT_SPACE_DICT, .part = s_parts, .parts = 3},
        "{image: uint8[8, 6, 3], seen: multi_binary[2, 4], room-1: discrete(2, from 2)}"},
    {{.kind = TT_SPACE_TUPLE, .part = s_pairs, .parts = 2},
        "({image: uint8[8, 6, 3], seen: multi_binary[2, 4], room-1: discrete(2, from 2)}, "
        "multi_discrete(3, 2, from -1, 5))"},
};

static void s_expect_words(const tt_space_t *space, const char *text)
{
    tt_buf_t words;
    tt_buf_init(&words, 4096);
    assert_ok(tt_space_text(space, &words));
    assert_string_equal(tt_buf_text(&words), text);
    tt_buf_free(&words);
}

static void test_words_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT(s_words); i++) {
        tt_space_t *read = NULL;
        assert_ok(tt_space_check(&s_words[i].space, "obs", false));
        s_expect_words(&s_words[i].space, s_words[i].text);
        assert_ok(tt_space_parse(&read, s_words[i].text));
        assert_ok(tt_space_check(read, "obs", false));
        s_expect_words(read, s_words[i].text);
        assert_int_equal(tt_space_leaves(read, NULL, 0), tt_space_leaves(&s_words[i].space, NULL, 0));
        tt_space_free(&read);
    }
}

static void test_leaves_are_in_order(void **state)
{
    (void)state;
    const tt_space_t tuple = {.kind = TT_SPACE_TUPLE, .part = s_pairs, .parts = 2}, *leaf[4];
    assert_int_equal(tt_space_leaves(&tuple, leaf, 4), 4);
    assert_ptr_equal(leaf[0], &s_parts[0]);
    assert_ptr_equal(leaf[2], &s_parts[2]);
    assert_ptr_equal(leaf[3], &s_pairs[1]);
    assert_int_equal(tt_space_elements(leaf[0]), 8 * 6 * 3);
    assert_int_equal(tt_space_elements(leaf[2]), 1);
    leaf[2] = NULL;
    assert_int_equal(tt_space_leaves(&tuple, leaf, 2), 4);
    assert_null(leaf[2]); /* no further than there is room */
}

static void s_refused(const tt_space_t *space, bool action, const char *words)
{
    assert_int_equal(tt_space_check(space, "it", action), TT_INVALID);
    if (strncmp(tt_err_text(), "it", 2) != 0 || !strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
}

static void test_what_is_none_is_refused(void **state)
{
    (void)state;
    const int64_t far[] = {INT32_MAX}, many[] = {65537};
    const double nan[] = {NAN, 0};
    const tt_space_t deep[] = {{.kind = TT_SPACE_BOX, .key = "a b"}}, twice[] = {{.key = "a"}, {.key = "a"}};
    const struct {
        tt_space_t space;
        bool action;
        const char *words;
    } cases[] = {
        {{.kind = TT_SPACE_KIND_COUNT}, false, "kind is 6"},
        {{.kind = (tt_space_kind_t)-1}, false, "kind is -1"},
        {{.kind = TT_SPACE_BOX, .dtype = TT_DTYPE_COUNT}, false, "dtype is 6"},
        {{.kind = TT_SPACE_BOX, .rank = 5}, false, "rank is 5"},
        {{.kind = TT_SPACE_BOX, .rank = 2, .shape = {3, 0}}, false, "shape[1] is 0"},
        {{.kind = TT_SPACE_BOX, .rank = 4, .shape = {65536, 65536, 65536, 65536}}, false, "more than"},
        {TT_BOX(2, s_low, NULL), false, "both be"},
        {TT_BOX(2, s_mixed, s_high), false, "low[0] = 3 is not below high[0] = 2"},
        {TT_BOX(2, nan, s_high), false, "low[0]"},
        {{.kind = TT_SPACE_BOX, .dtype = TT_U8}, true, "uint8 as an action"},
        {{.kind = TT_SPACE_DISCRETE}, false, "n must point"},
        {TT_CHOICES(s_zero), false, "n[0] is 0"},
        {TT_CHOICES(many), false, "n[0] is 65537"},
        {{.kind = TT_SPACE_DISCRETE, .n = s_two, .start = far}, false, "fit in 32 bits"},
        {{.kind = TT_SPACE_DICT}, false, "a dict of 0 parts"},
        {{.kind = TT_SPACE_DICT, .part = deep, .parts = 1}, false, "part[0].key"},
        {{.kind = TT_SPACE_DICT, .part = twice, .parts = 2}, false, "\"a\" is there twice"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++)
        s_refused(&cases[i].space, cases[i].action, cases[i].words);
}

static void test_nesting_has_an_end(void **state)
{
    (void)state;
    tt_space_t level[TT_SPACE_DEPTH_MAX + 2] = {{.kind = TT_SPACE_BOX}};
    for (int i = 1; i < TT_SPACE_DEPTH_MAX + 2; i++)
        level[i] = (tt_space_t){.kind = TT_SPACE_TUPLE, .part = &level[i - 1], .parts = 1};
    assert_ok(tt_space_check(&level[TT_SPACE_DEPTH_MAX], "it", false));
    s_refused(&level[TT_SPACE_DEPTH_MAX + 1], false, "deeper than 8");
}

static void test_wrong_words(void **state)
{
    (void)state;
    const char *const wrong[] = {"", "float", "float32[", "float32[0]", "float32[1,2,3,4,5]", "float32[4] x",
        "discrete", "discrete()", "discrete(2", "discrete(2, 3)", "discrete(0)", "discrete(99999999999999)",
        "multi_discrete[3](2, 2)", "multi_discrete(2, 2, from 1)", "{}", "{a float32}", "{a: float32",
        "{a: float32, a: float32}", "()", "(float32,)", "((((((((((float32))))))))))", "uint8[4294967297]",
        "multi_binary[1048576, 2]"};
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        tt_space_t *space = NULL;
        if (tt_space_parse(&space, wrong[i]) != TT_INVALID)
            fail_msg("\"%s\" was read", wrong[i]);
        assert_null(space);
    }
}

/*  Sound texts with a few bytes changed: refused, or what was read reads back. */
static void test_damaged_words(void **state)
{
    (void)state;
    static const char letters[] = "(){}[]:, from-0123456789abdefgilmnoprtuy_";
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t word[4];
        char text[256];
        tt_space_t *space = NULL;
        tt_draw(word, 7, TT_STREAM_TEST, round, 0);
        snprintf(text, sizeof text, "%s", s_words[round % TT_COUNT(s_words)].text);
        for (int change = 0; change < 2; change++)
            text[word[2 * change] % strlen(text)] = letters[word[2 * change + 1] % (sizeof letters - 1)];
        if (tt_space_parse(&space, text) != TT_OK)
            continue;
        tt_buf_t words;
        tt_space_t *again = NULL;
        tt_buf_init(&words, 1 << 16);
        assert_ok(tt_space_text(space, &words));
        assert_ok(tt_space_parse(&again, tt_buf_text(&words)));
        s_expect_words(again, tt_buf_text(&words));
        tt_buf_free(&words);
        tt_space_free(&again);
        tt_space_free(&space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_and_back),
        cmocka_unit_test(test_leaves_are_in_order),
        cmocka_unit_test(test_what_is_none_is_refused),
        cmocka_unit_test(test_nesting_has_an_end),
        cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_damaged_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
