/*  What is said again and again: when it is. */
#include "learner/repeat.h"
#include "tests/test.h"
#include <string.h>

static const char s_full[] = "/runs/a-1/checkpoints/000120.safetensors: No space left on device";
static const char s_full_later[] = "/runs/a-1/checkpoints/9000121.safetensors: No space left on device";
static const char s_denied[] = "/runs/a-1/checkpoints/000121.safetensors: Permission denied";

static void test_the_same_is_said_again_after_a_while(void **state)
{
    (void)state;
    repeat_t repeat = {0};
    assert_true(repeat_due(&repeat, s_full, 5));
    assert_false(repeat_due(&repeat, s_full, 6));
    assert_false(repeat_due(&repeat, s_full_later, 4 + REPEAT_NS)); /* its silence does not begin anew */
    assert_true(repeat_due(&repeat, s_full_later, 5 + REPEAT_NS));
    assert_false(repeat_due(&repeat, s_full, 6 + REPEAT_NS));
}

static void test_other_words_are_said_at_once(void **state)
{
    (void)state;
    repeat_t repeat = {0};
    assert_true(repeat_due(&repeat, s_full, 5));
    assert_true(repeat_due(&repeat, s_denied, 6));
    assert_true(repeat_due(&repeat, s_full, 7));
}

static void test_behind_a_success_it_is_new(void **state)
{
    (void)state;
    repeat_t repeat = {0};
    assert_true(repeat_due(&repeat, s_full, 5));
    repeat_forget(&repeat);
    assert_true(repeat_due(&repeat, s_full, 6));
}

/*  Longer words than are kept. */
static void test_what_is_cut_is_the_same(void **state)
{
    (void)state;
    repeat_t repeat = {0};
    char text[2 * sizeof repeat.text];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_true(repeat_due(&repeat, text, 5));
    assert_false(repeat_due(&repeat, text, 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_is_said_again_after_a_while),
        cmocka_unit_test(test_other_words_are_said_at_once),
        cmocka_unit_test(test_behind_a_success_it_is_new),
        cmocka_unit_test(test_what_is_cut_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
