/*  What jobs left behind is found by its marks, whatever it is about, and all of it ends. */
#include "task/survivors.h"
#include "tests/test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 40 };

static char s_dir[64], s_script[96], s_registry[128];
#define OURS   SURVIVORS_OF_ATTEMPT "=1.1"
#define OTHERS SURVIVORS_OF_ATTEMPT "=1.2"

/*  A program that becomes itself again at once, and again: in the middle of an exec it has no environment for a moment. */
static int s_setup(void **state)
{
    (void)state;
    snprintf(s_dir, sizeof s_dir, "/tmp/tt-survivors-XXXXXX");
    assert_non_null(mkdtemp(s_dir));
    snprintf(s_script, sizeof s_script, "%s/again", s_dir);
    snprintf(s_registry, sizeof s_registry, SURVIVORS_OF_REGISTRY "=%s", s_dir);
    FILE *file = fopen(s_script, "w");
    assert_non_null(file);
    assert_true(fputs("#!/bin/sh\nexec \"$0\"\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    return chmod(s_script, 0700);
}

static int s_teardown(void **state)
{
    (void)state;
    return unlink(s_script) | rmdir(s_dir);
}

/*  It has its marks from its first exec on, which closes the pipe. */
static pid_t s_start(const char *attempt)
{
    char *const argv[] = {s_script, NULL}, *const env[] = {s_registry, (char *)(uintptr_t)attempt, NULL};
    int ends[2];
    char none;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        execve(s_script, argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &none, 1), 0);
    close(ends[0]);
    return pid;
}

/*  By which signal it ended: SIGTERM, if by none before. */
static int s_end(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return WTERMSIG(status);
}

static void test_one_that_becomes_another_program_is_ended(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        const pid_t pid = s_start(OURS);
        assert_int_equal(survivors_end(s_registry, i % 2 ? OURS : NULL), TT_OK);
        assert_int_equal(s_end(pid), SIGKILL);
    }
}

static void test_of_one_attempt_the_other_goes_on(void **state)
{
    (void)state;
    const pid_t ours = s_start(OURS), others = s_start(OTHERS);
    assert_int_equal(survivors_end(s_registry, OURS), TT_OK);
    assert_int_equal(s_end(ours), SIGKILL);
    assert_int_equal(s_end(others), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_becomes_another_program_is_ended),
        cmocka_unit_test(test_of_one_attempt_the_other_goes_on),
    };
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
