/*  What jobs left behind is found by its marks, whatever it is about, and all of it ends. */
#include "task/survivors.h"
#include "tests/again.h"
#include <fcntl.h>
#include <signal.h>

enum { ROUNDS = 40 };

static char s_registry[FOLDER_MAX + 64];
#define OURS   SURVIVORS_OF_ATTEMPT "=1.1"
#define OTHERS SURVIVORS_OF_ATTEMPT "=1.2"

static int s_setup(void **state)
{
    const int rc = again_setup(state);
    snprintf(s_registry, sizeof s_registry, SURVIVORS_OF_REGISTRY "=%s", again_dir);
    return rc;
}

static pid_t s_start(const char *attempt)
{
    char *const env[] = {s_registry, (char *)(uintptr_t)attempt, NULL};
    return again_start(env);
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
        assert_int_equal(survivors_end(s_registry, i % 2 ? OURS : NULL, SURVIVORS_PATIENCE_MS), TT_OK);
        assert_int_equal(s_end(pid), SIGKILL);
    }
}

static void test_of_one_attempt_the_other_goes_on(void **state)
{
    (void)state;
    const pid_t ours = s_start(OURS), others = s_start(OTHERS);
    assert_int_equal(survivors_end(s_registry, OURS, SURVIVORS_PATIENCE_MS), TT_OK);
    assert_int_equal(s_end(ours), SIGKILL);
    assert_int_equal(s_end(others), SIGTERM);
}

/*  One that is in no exec any more, as it has answered; it ends with us, whatever comes. */
static pid_t s_start_quiet(int *stdin_of)
{
    char *const argv[] = {"/bin/cat", NULL}, *const env[] = {s_registry, OURS, NULL};
    int in[2], out[2];
    char told;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execve(argv[0], argv, env);
        _exit(127);
    }
    assert_true(pid > 0);
    close(in[0]);
    close(out[1]);
    assert_int_equal(write(in[1], "?", 1), 1);
    assert_int_equal(read(out[0], &told, 1), 1);
    close(out[0]);
    *stdin_of = in[1];
    return pid;
}

static void test_without_patience_one_look_is_all(void **state)
{
    (void)state;
    int stdin_of, status;
    const pid_t pid = s_start_quiet(&stdin_of);
    assert_int_equal(survivors_end(s_registry, OURS, 0), TT_TIMEOUT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(survivors_end(s_registry, OURS, 0), TT_OK);
    close(stdin_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_becomes_another_program_is_ended),
        cmocka_unit_test(test_of_one_attempt_the_other_goes_on),
        cmocka_unit_test(test_without_patience_one_look_is_all),
    };
    return cmocka_run_group_tests(tests, s_setup, again_teardown);
}
