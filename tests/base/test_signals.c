/*  Signals as a descriptor: which ones come there, and that none of them ends the process. */
#include "common/base/signals.h"
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "tests/test.h"

/*  The test ends by it if it is not blocked. */
static void s_assert_comes(int fd, int number)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(tt_signals_next(fd), 0);
    assert_int_equal(raise(number), 0);
    assert_int_equal(poll(&ready, 1, 0), 1);
    assert_int_equal(tt_signals_next(fd), number);
    assert_int_equal(tt_signals_next(fd), 0);
}

static void test_a_role_hears_of_term_and_int(void **state)
{
    (void)state;
    int fd = -1;
    assert_ok(tt_signals_open(&fd));
    s_assert_comes(fd, SIGTERM);
    s_assert_comes(fd, SIGINT);
    assert_int_equal(raise(SIGPIPE), 0);
    assert_int_equal(tt_signals_next(fd), 0);
    close(fd);
}

static void test_a_parent_hears_of_hup_and_children_too(void **state)
{
    (void)state;
    int fd = -1;
    assert_ok(tt_signals_open_parent(&fd));
    s_assert_comes(fd, SIGTERM);
    s_assert_comes(fd, SIGINT);
    s_assert_comes(fd, SIGHUP);
    s_assert_comes(fd, SIGCHLD);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_role_hears_of_term_and_int),
        cmocka_unit_test(test_a_parent_hears_of_hup_and_children_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
