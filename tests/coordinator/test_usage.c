/*  Usage: heartbeats' counters become shares of the last seconds, whatever is lost, repeated or made up. */
#include "coordinator/usage.h"
#include <math.h>
#include <string.h>
#include "tests/test.h"

/*  A heartbeat of a process that has spent env, policy and wait seconds. */
static void s_beat(usage_t *usage, double env, double policy, double wait, double cpu_s)
{
    tt_rec_METRIC_t spent[] = {{.name = (char *)"env", .value = env}, {.name = (char *)"policy", .value = policy},
        {.name = (char *)"wait_weights", .value = wait}};
    const tt_msg_HEARTBEAT_t beat =
        TT_MSG(HEARTBEAT, .cpu_s = cpu_s, .memory = 1000000, .spent = spent, .spent_count = 3);
    usage_beat(usage, &beat);
}

static void test_shares_of_the_first_heartbeat_count_from_the_start(void **state)
{
    (void)state;
    usage_t usage = {0};
    usage_share_t shares[USAGE_STAGES];
    assert_int_equal(usage_shares(&usage, shares), 0);
    s_beat(&usage, 0.5, 0.25, 0.25, 0.75);
    assert_int_equal(usage_shares(&usage, shares), 3);
    assert_string_equal(shares[0].name, "env");
    assert_true(shares[0].share == 0.5 && shares[1].share == 0.25 && shares[2].share == 0.25);
    assert_true(usage_cpus(&usage) == 0.75);
}

static void test_a_moment_says_nothing(void **state)
{
    (void)state;
    usage_t usage = {0};
    usage_share_t shares[USAGE_STAGES];
    s_beat(&usage, 0, 0, 0.01, 0.4);
    assert_int_equal(usage_shares(&usage, shares), 0);
    assert_true(usage_cpus(&usage) == 0);
    s_beat(&usage, 0.5, 0, 0.5, 0.9);
    assert_int_equal(usage_shares(&usage, shares), 3);
}

static void test_what_is_long_ago_is_forgotten(void **state)
{
    (void)state;
    usage_t usage = {0};
    usage_share_t shares[USAGE_STAGES];
    double env = 0, wait = 0;
    for (int i = 0; i < 20; i++)
        s_beat(&usage, env += 1, 0, 0, 0);
    for (int i = 0; i < USAGE_WINDOW; i++)
        s_beat(&usage, env, 0, wait += 1, 0);
    assert_int_equal(usage_shares(&usage, shares), 3);
    assert_true(shares[0].share == 0 && shares[2].share == 1);
}

static void test_another_process_begins_anew(void **state)
{
    (void)state;
    usage_t usage = {0};
    usage_share_t shares[USAGE_STAGES];
    s_beat(&usage, 100, 100, 100, 0);
    s_beat(&usage, 1, 0, 3, 0);
    assert_int_equal(usage_shares(&usage, shares), 3);
    assert_true(shares[0].share == 0.25 && shares[2].share == 0.75);
}

static void test_nonsense_is_left_out(void **state)
{
    (void)state;
    usage_t usage = {0};
    usage_share_t shares[USAGE_STAGES];
    s_beat(&usage, 1, 1, 2, 0);
    s_beat(&usage, NAN, 1, 2, 0);
    s_beat(&usage, 1, INFINITY, 2, 0);
    s_beat(&usage, 1, 1, -2, 0);
    tt_rec_METRIC_t rude = {.name = (char *)"\033[2J\"", .value = 1}, nameless = {.value = 1};
    const tt_msg_HEARTBEAT_t first = TT_MSG(HEARTBEAT, .spent = &rude, .spent_count = 1),
                             second = TT_MSG(HEARTBEAT, .spent = &nameless, .spent_count = 1);
    usage_beat(&usage, &first);
    usage_beat(&usage, &second);
    assert_int_equal(usage_shares(&usage, shares), 3);
    assert_true(shares[2].share == 0.5);
}

static void test_the_mean_of_members(void **state)
{
    (void)state;
    usage_t one = {0}, two = {0}, silent = {.memory = 5};
    usage_mean_t mean = {0};
    s_beat(&one, 1, 0, 1, 1);
    s_beat(&two, 0, 0, 1, 0.5);
    usage_add(&mean, &one);
    usage_add(&mean, &silent);
    usage_add(&mean, &two);
    assert_int_equal(mean.members, 2);
    assert_int_equal(mean.memory, 2000005);
    assert_true(usage_of(&mean, "env") == 0.25 && usage_of(&mean, "wait_weights") == 0.75);
    assert_true(usage_of(&mean, "unheard of") == 0);
    assert_true(usage_waits(&mean) == 0.75);
    assert_true(mean.cpus == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_of_the_first_heartbeat_count_from_the_start),
        cmocka_unit_test(test_a_moment_says_nothing),
        cmocka_unit_test(test_what_is_long_ago_is_forgotten),
        cmocka_unit_test(test_another_process_begins_anew),
        cmocka_unit_test(test_nonsense_is_left_out),
        cmocka_unit_test(test_the_mean_of_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
