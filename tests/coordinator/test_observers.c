/*  Observers: who is forgotten, and who is not. */
#include "coordinator/observers.h"
#include "tests/test.h"

static const int64_t s_second = 1000000000;
enum { LEASE = 5 };

static observers_t *s_observers(const tt_clock_t *clock)
{
    observers_t *self = observers_new(clock, LEASE * s_second);
    const tt_msg_HELLO_t controller = TT_MSG(HELLO, .role = TT_PEER_CONTROLLER),
                         client = TT_MSG(HELLO, .role = TT_PEER_CLIENT);
    uint32_t index;
    assert_ok(observers_hello(self, "controller", NULL, &controller, &index));
    assert_int_equal(index, 0);
    assert_ok(observers_hello(self, "client", NULL, &client, &index));
    assert_int_equal(index, 1);
    return self;
}

/*  Turn the clock to the next look that was wished for, and look. */
static void s_look(observers_t *self, tt_clock_t *clock)
{
    tt_clock_turn(clock, observers_flush(self, false) - tt_now_ns(clock));
    observers_flush(self, false);
}

static void test_silence_of_a_lease_is_the_end(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(s_second);
    observers_t *self = s_observers(&clock);
    tt_clock_turn(&clock, s_second);
    assert_true(observers_heard(self, "client"));
    s_look(self, &clock);
    assert_int_equal(observers_controllers(self), 0);
    assert_int_equal(observers_role(self, "client"), TT_PEER_CLIENT);
    s_look(self, &clock);
    assert_int_equal(observers_role(self, "client"), TT_PEER_NONE);
    assert_false(observers_heard(self, "client"));
    assert_true(observers_flush(self, false) == INT64_MAX);
    observers_destroy(&self);
}

static void test_who_leaves_is_forgotten_at_once(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(s_second);
    observers_t *self = s_observers(&clock);
    observers_leave(self, "client");
    assert_int_equal(observers_role(self, "client"), TT_PEER_NONE);
    assert_int_equal(observers_controllers(self), 1);
    observers_leave(self, "client");
    assert_int_equal(observers_controllers(self), 1);
    observers_destroy(&self);
}

/*  The coordinator was stopped for two leases: what they said meanwhile is still to be read. */
static void test_who_looks_late_forgets_nobody_yet(void **state)
{
    (void)state;
    tt_clock_t clock = tt_clock_fake(s_second);
    observers_t *self = s_observers(&clock);
    tt_clock_turn(&clock, 2 * LEASE * s_second);
    observers_flush(self, false);
    assert_true(observers_heard(self, "client"));
    s_look(self, &clock); /* in time: silence counts again */
    assert_int_equal(observers_controllers(self), 0);
    assert_int_equal(observers_role(self, "client"), TT_PEER_CLIENT);
    observers_destroy(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_of_a_lease_is_the_end),
        cmocka_unit_test(test_who_leaves_is_forgotten_at_once),
        cmocka_unit_test(test_who_looks_late_forgets_nobody_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
