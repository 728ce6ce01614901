/*  Processes below us are found by their mark, whatever they are about. */
#include "controller/orphans.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 60 };

static char s_dir[64], s_script[96];
static char *const s_marked[] = {(char *)(uintptr_t) "TT_TEST=mine", NULL}, *const s_bare[] = {NULL};

/*  A program that becomes itself again at once, and again. */
static int s_setup(void **state)
{
    (void)state;
    snprintf(s_dir, sizeof s_dir, "/tmp/tt-orphans-XXXXXX");
    assert_non_null(mkdtemp(s_dir));
    snprintf(s_script, sizeof s_script, "%s/again", s_dir);
    FILE *file = fopen(s_script, "w");
    assert_non_null(file);
    assert_true(fputs("#!/bin/sh\nexec \"$0\"\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    return chmod(s_script, 0700);
}

static int s_teardown(void **state)
{
    (void)state;
    assert_true(tt_orphans_end(10000));
    return unlink(s_script) | rmdir(s_dir);
}

static pid_t s_start(char *const *env)
{
    char *argv[] = {s_script, NULL};
    const pid_t pid = fork();
    if (pid == 0) {
        execve(s_script, argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/*  In the middle of an exec a process has no environment for a moment. */
static void test_one_that_becomes_another_program_is_found(void **state)
{
    (void)state;
    s_start(s_marked);
    /* it has the test's environment until its first exec */
    for (int look = 0; tt_orphans_signal(0, "TT_TEST=mine", NULL, NULL) == 0; look++)
        assert_true(look < 10000);
    for (int look = 0; look < LOOKS; look++)
        assert_int_equal(tt_orphans_signal(0, "TT_TEST=mine", NULL, NULL), 1);
}

static void test_one_without_an_environment_is_nobodys(void **state)
{
    (void)state;
    const pid_t pid = s_start(s_bare);
    for (int look = 0; look < 20; look++)
        assert_int_equal(tt_orphans_signal(SIGKILL, "TT_TEST=mine", NULL, NULL), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(tt_orphans_signal(0, "TT_TEST=mine", NULL, NULL), 0); /* a zombie has none, and never will */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_that_becomes_another_program_is_found, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_one_without_an_environment_is_nobodys, s_setup, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
