/*  How long what fails again and again is left alone: by number, by what was waited before, and as a life with a clock. */
#include "common/base/backoff.h"
#include "tests/test.h"

static const tt_backoff_rule_t s_rule = {.at_once = 1, .first = 100, .most = 10000, .steady = 30000};

static void test_doubles_up_to_the_most(void **state)
{
    (void)state;
    static const int64_t waits[] = {0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    for (size_t i = 0; i < TT_COUNT(waits); i++)
        assert_int_equal(tt_backoff_wait(&s_rule, (int64_t)i), waits[i]);
    assert_int_equal(tt_backoff_wait(&s_rule, -1), 0);
    assert_int_equal(tt_backoff_wait(&s_rule, INT64_MAX), 10000);
}

static void test_edges_of_a_rule(void **state)
{
    (void)state;
    const tt_backoff_rule_t waits_at_once = {.first = 1, .most = 60}, small = {.first = 100, .most = 60},
                            huge = {.first = 1, .most = INT64_MAX};
    assert_int_equal(tt_backoff_wait(&waits_at_once, 0), 0);
    assert_int_equal(tt_backoff_wait(&waits_at_once, 1), 1);
    assert_int_equal(tt_backoff_wait(&waits_at_once, 6), 32);
    assert_int_equal(tt_backoff_wait(&waits_at_once, 7), 60);
    assert_int_equal(tt_backoff_wait(&small, 1), 60);
    assert_int_equal(tt_backoff_wait(&huge, 63), INT64_C(1) << 62);
    assert_int_equal(tt_backoff_wait(&huge, 64), INT64_MAX);
    assert_int_equal(tt_backoff_wait(&huge, INT64_MAX), INT64_MAX);
}

/*  Who knows what was waited, and no number, waits as long as who counts. */
static void test_next_is_the_same_row(void **state)
{
    (void)state;
    int64_t waited = 0;
    for (int64_t failures = 2; failures < 20; failures++) {
        waited = tt_backoff_next(&s_rule, waited);
        assert_int_equal(waited, tt_backoff_wait(&s_rule, failures));
    }
    assert_int_equal(tt_backoff_next(&s_rule, 70), 140);
    assert_int_equal(tt_backoff_next(&s_rule, 20), 100); /* never less than the first */
    assert_int_equal(tt_backoff_next(&s_rule, INT64_MAX), 10000);
}

static void test_a_life(void **state)
{
    (void)state;
    tt_backoff_t self = {0};
    tt_backoff_begin(&self, 5000);
    assert_int_equal(tt_backoff_fail(&self, &s_rule, 5001), 5001);
    tt_backoff_begin(&self, 5001);
    assert_int_equal(tt_backoff_fail(&self, &s_rule, 5002), 5102);
    tt_backoff_begin(&self, 5102);
    assert_int_equal(tt_backoff_fail(&self, &s_rule, 5102 + 29999), 5102 + 29999 + 200);
    assert_int_equal(self.failures, 3);
    tt_backoff_begin(&self, 50000);
    assert_int_equal(tt_backoff_fail(&self, &s_rule, 80000), 80000); /* steady: the first once more */
    assert_int_equal(self.failures, 1);
}

static void test_never_wraps(void **state)
{
    (void)state;
    tt_backoff_t self = {.failures = UINT32_MAX};
    assert_int_equal(tt_backoff_fail(&self, &s_rule, 10), 10010);
    assert_int_equal(self.failures, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubles_up_to_the_most),
        cmocka_unit_test(test_edges_of_a_rule), cmocka_unit_test(test_next_is_the_same_row),
        cmocka_unit_test(test_a_life), cmocka_unit_test(test_never_wraps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
