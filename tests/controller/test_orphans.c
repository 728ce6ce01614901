/*  Processes below us are found by their mark, whatever they are about. */
#include "controller/orphans.h"
#include "tests/again.h"
#include <signal.h>

enum { LOOKS = 60 };

static char *const s_marked[] = {(char *)(uintptr_t) "TT_TEST=mine", NULL}, *const s_bare[] = {NULL};

static int s_teardown(void **state)
{
    assert_true(tt_orphans_end(10000));
    return again_teardown(state);
}

static void test_one_that_becomes_another_program_is_found(void **state)
{
    (void)state;
    again_start(s_marked);
    for (int look = 0; look < LOOKS; look++)
        assert_int_equal(tt_orphans_signal(0, "TT_TEST=mine", NULL, NULL), 1);
}

static void test_one_without_an_environment_is_nobodys(void **state)
{
    (void)state;
    const pid_t pid = again_start(s_bare);
    for (int look = 0; look < 20; look++)
        assert_int_equal(tt_orphans_signal(SIGKILL, "TT_TEST=mine", NULL, NULL), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(tt_orphans_signal(0, "TT_TEST=mine", NULL, NULL), 0); /* a zombie has none, and never will */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_that_becomes_another_program_is_found, again_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_without_an_environment_is_nobodys, again_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
