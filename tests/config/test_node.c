/*  A value by its path: what it is, what it has to be, and which line is named where it is not. */
#include "common/config/node.h"
#include <string.h>
#include "tests/test.h"

static const char s_text[] = "a:\n"
                             "  b: text\n"
                             "  n: 5\n"
                             "  empty: ''\n"
                             "  none: ~\n"
                             "  list:\n"
                             "  - one\n"
                             "  - {c: [1, 2]}\n"
                             "flag: yes\n";

static int s_setup(void **state)
{
    return tt_manifest_parse((tt_manifest_t **)state, s_text, sizeof s_text - 1, "f.yaml") == TT_OK ? 0 : -1;
}

static int s_teardown(void **state)
{
    tt_manifest_destroy((tt_manifest_t **)state);
    return 0;
}

static void test_what_is_there(void **state)
{
    const tt_node_t root = tt_node_of(*state, 0);
    const char *text = "before";
    bool flag = false;
    tt_node_t a, list, c;
    assert_ok(tt_node_map(&root, "a", &a));
    assert_ok(tt_node_text(&a, "b", &text));
    assert_string_equal(text, "text");
    assert_ok(tt_node_bool(&root, "flag", &flag));
    assert_true(flag);
    assert_ok(tt_node_list(&a, "list", &list));
    assert_string_equal(json_string_value(tt_node_at(&list, 0).value), "one");
    const tt_node_t second = tt_node_at(&list, 1);
    assert_ok(tt_node_list(&second, "c", &c));
    assert_string_equal(c.path, "a.list[1].c");
    assert_int_equal(json_integer_value(tt_node_at(&c, 1).value), 2);
    assert_null(tt_node_at(&c, 2).value);
}

static void test_what_is_not(void **state)
{
    const tt_node_t root = tt_node_of(*state, 0), second = tt_node_of(*state, 1);
    const tt_node_t a = tt_node_get(&root, "a"), nowhere = tt_node_get(&second, "x");
    const char *text = "before";
    bool flag = true;
    tt_node_t map = {.path = "before"};
    assert_null(second.value);
    assert_null(nowhere.value);
    assert_null(tt_node_get(&nowhere, "y").value);
    assert_null(tt_node_at(&nowhere, 0).value);
    assert_ok(tt_node_text(&a, "none", &text));
    assert_ok(tt_node_text(&a, "empty", &text));
    assert_ok(tt_node_text(&a, "other", &text));
    assert_string_equal(text, "before");
    assert_ok(tt_node_bool(&a, "none", &flag));
    assert_true(flag);
    assert_ok(tt_node_map(&a, "none", &map));
    assert_null(map.value);
}

static void test_what_is_of_another_type(void **state)
{
    const tt_node_t root = tt_node_of(*state, 0), a = tt_node_get(&root, "a");
    const char *text = NULL;
    bool flag;
    tt_node_t node;
    assert_int_equal(tt_node_text(&a, "n", &text), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:3: n must be a text: put it in quotes");
    assert_int_equal(tt_node_text(&a, "list", &text), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:7: list must be a text");
    assert_int_equal(tt_node_bool(&a, "b", &flag), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:2: b must be true or false");
    assert_int_equal(tt_node_map(&a, "list", &node), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:7: list must be a mapping");
    assert_int_equal(tt_node_list(&root, "a", &node), TT_CONFIG);
    assert_string_equal(tt_err_text(), "f.yaml:2: a must be a list");
}

static void test_words_with_their_line(void **state)
{
    const tt_node_t root = tt_node_of(*state, 0), a = tt_node_get(&root, "a"), list = tt_node_get(&a, "list");
    const tt_node_t second = tt_node_at(&list, 1), gone = tt_node_get(&a, "other");
    assert_int_equal(tt_node_err(&second, TT_UNSUPPORTED, "%d is %s", 1, "wrong"), TT_UNSUPPORTED);
    assert_string_equal(tt_err_text(), "f.yaml:8: 1 is wrong");
    assert_int_equal(tt_node_err(&gone, TT_CONFIG, "missing"), TT_CONFIG); /* of what is above it */
    assert_string_equal(tt_err_text(), "f.yaml:2: missing");
    tt_node_t deep = root;
    for (int i = 0; i < 100; i++)
        deep = tt_node_get(&deep, "a-long-name");
    assert_int_equal(strlen(deep.path), TT_NODE_PATH - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_there, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_of_another_type, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_words_with_their_line, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
