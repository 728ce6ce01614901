/*  The two processes of a run: whichever is killed, nothing below them survives. */
#include "controller/guard.h"
#include "tests/test.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "controller/orphans.h"

enum { DEADLINE_MS = 20000 };

typedef struct {
    pid_t guard, controller, grandchild;
} family_t;

/*  A guarded controller that starts a grandchild in a session of its own, tells us who is who, and waits for SIGTERM. */
static noreturn void s_live(int out)
{
    if (tt_guard_enter(NULL, NULL) != TT_OK)
        _exit(1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
        setsid();
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        for (;;)
            pause();
    }
    const family_t family = {getppid(), getpid(), grandchild};
    if (write(out, &family, sizeof family) != (ssize_t)sizeof family)
        _exit(2);
    int signal;
    sigwait(&set, &signal);
    tt_orphans_end(DEADLINE_MS);
    _exit(tt_guard_gone() ? 3 : 42);
}

static family_t s_start(void)
{
    int tell[2];
    assert_int_equal(pipe(tell), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        s_live(tell[1]);
    family_t family;
    assert_int_equal(read(tell[0], &family, sizeof family), sizeof family);
    assert_int_equal(family.guard, pid);
    close(tell[0]);
    close(tell[1]);
    return family;
}

static void s_await_gone(pid_t pid)
{
    const int64_t deadline = tt_now_ms(tt_clock_real()) + DEADLINE_MS;
    while (kill(pid, 0) == 0 || errno != ESRCH) {
        waitpid(pid, NULL, WNOHANG); /* it may have become ours: the test is a subreaper */
        assert_true(tt_now_ms(tt_clock_real()) < deadline);
        poll(NULL, 0, 1);
    }
}

static void test_exit_code_and_signals_pass_through(void **state)
{
    (void)state;
    const family_t family = s_start();
    kill(family.guard, SIGTERM);
    int wait_status;
    assert_int_equal(waitpid(family.guard, &wait_status, 0), family.guard);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), 42);
    s_await_gone(family.controller);
    s_await_gone(family.grandchild);
}

static void test_killed_controller(void **state)
{
    (void)state;
    const family_t family = s_start();
    kill(family.controller, SIGKILL);
    int wait_status;
    assert_int_equal(waitpid(family.guard, &wait_status, 0), family.guard);
    assert_int_equal(WEXITSTATUS(wait_status), 137);
    s_await_gone(family.grandchild);
}

static void test_killed_guard(void **state)
{
    (void)state;
    const family_t family = s_start();
    kill(family.guard, SIGKILL);
    assert_int_equal(waitpid(family.guard, NULL, 0), family.guard);
    s_await_gone(family.controller);
    s_await_gone(family.grandchild);
}

/*  One request may come in two ways, late; another one is meant seriously. */
static noreturn void s_ask(void)
{
    if (tt_guard_enter(NULL, NULL) != TT_OK)
        _exit(1);
    const int guard = getppid(), shell = getpid();
    tt_asked_t first = {0}, then = {0};
    bool good = tt_asked(&first, shell, 1000) == TT_ASKED_FIRST;
    good = good && tt_asked(&first, shell, 1100) == TT_ASKED_ECHO;
    good = good && tt_asked(&first, guard, 2500) == TT_ASKED_ECHO;
    good = good && tt_asked(&first, guard, 2600) == TT_ASKED_ECHO;
    good = good && tt_asked(&first, shell, 2700) == TT_ASKED_TWICE;
    good = good && tt_asked(&then, guard, 1000) == TT_ASKED_FIRST;
    good = good && tt_asked(&then, guard, 1300) == TT_ASKED_TWICE;
    good = good && tt_asked(&then, shell, 10000) == TT_ASKED_TWICE;
    _exit(good ? 42 : 43);
}

static void test_asked_once_or_twice(void **state)
{
    (void)state;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        s_ask();
    int wait_status;
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_int_equal(WEXITSTATUS(wait_status), 42);
}

int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_code_and_signals_pass_through),
        cmocka_unit_test(test_killed_controller),
        cmocka_unit_test(test_killed_guard),
        cmocka_unit_test(test_asked_once_or_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
