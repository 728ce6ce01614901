/*  How a learner's part ends: what comes first stays, what is asked for waits for a boundary, what an era undoes. */
#include "tests/test.h"
#include <string.h>
#include "learner/ending.h"

static void test_finish_waits_for_the_boundary(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_boundary(&self);
    assert_null(self.reason);
    ending_ask(&self, "stopped by a user", true);
    assert_null(self.reason);
    assert_false(self.leave);
    ending_boundary(&self);
    assert_string_equal(self.reason, "stopped by a user");
}

static void test_the_first_reason_stays(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_rule(&self, NULL);
    assert_null(self.reason);
    ending_rule(&self, "env_steps");
    ending_rule(&self, "wall_s");
    ending_ask(&self, "stopped by a user", true);
    ending_boundary(&self);
    assert_string_equal(self.reason, "env_steps");
}

static void test_a_stop_without_finish_ends_the_process(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_ask(&self, NULL, false);
    assert_true(self.leave);
    assert_string_equal(self.asked, "stop");
    ending_boundary(&self);
    assert_null(self.reason);
}

static void test_a_long_reason_is_cut(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ending_t self = {0};
    ending_ask(&self, text, true);
    assert_int_equal(strlen(self.asked), sizeof self.asked - 1);
}

static void test_an_era_undoes_the_end_and_not_what_was_asked(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_ask(&self, "stopped by a user", true);
    ending_boundary(&self);
    ending_report(&self);
    ending_drain(&self, 7, true);
    ending_reset(&self);
    assert_null(self.reason);
    assert_false(self.reported);
    assert_true(self.draining && self.farewell);
    assert_int_equal(self.draining_ns, 7);
    ending_boundary(&self);
    assert_string_equal(self.reason, "stopped by a user");
}

static void test_another_batch_undoes_a_rule_and_not_what_was_asked(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_rule(&self, "return_mean");
    ending_retract(&self);
    assert_null(self.reason);
    ending_ask(&self, "stopped by a user", true);
    ending_boundary(&self);
    ending_retract(&self);
    assert_string_equal(self.reason, "stopped by a user");
}

static void test_leaving_is_said_once(void **state)
{
    (void)state;
    ending_t self = {0};
    assert_true(ending_leave(&self));
    assert_false(ending_leave(&self));
    assert_true(self.leave);
}

static void test_farewell_is_for_who_is_alone_and_once(void **state)
{
    (void)state;
    ending_t self = {0};
    ending_drain(&self, 1, false);
    assert_false(self.farewell);
    ending_drain(&self, 1, true);
    assert_true(self.farewell);
    ending_bid(&self);
    assert_false(self.farewell);
    assert_true(self.draining);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finish_waits_for_the_boundary),
        cmocka_unit_test(test_the_first_reason_stays),
        cmocka_unit_test(test_a_stop_without_finish_ends_the_process),
        cmocka_unit_test(test_a_long_reason_is_cut),
        cmocka_unit_test(test_an_era_undoes_the_end_and_not_what_was_asked),
        cmocka_unit_test(test_another_batch_undoes_a_rule_and_not_what_was_asked),
        cmocka_unit_test(test_leaving_is_said_once),
        cmocka_unit_test(test_farewell_is_for_who_is_alone_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
