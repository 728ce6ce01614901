/*  progress: what is kept of STATS, and the speeds. */
#include "coordinator/progress.h"
#include "tests/test.h"

static const int64_t SECOND = 1000000000;

static tt_msg_STATS_t s_stats(uint32_t era, uint64_t update, int64_t time_ns)
{
    return TT_MSG(STATS, .era = era, .update = update, .env_steps = update * 100, .time_ns = time_ns);
}

static void test_older_and_repeated_stats_are_dropped(void **state)
{
    (void)state;
    progress_t p = {0};
    tt_msg_STATS_t m = s_stats(1, 5, SECOND);
    assert_true(progress_stats(&p, &m));
    assert_false(progress_stats(&p, &m));
    m = s_stats(1, 4, SECOND);
    assert_false(progress_stats(&p, &m));
    m = s_stats(2, 3, SECOND); /* after a roll-back updates count from the snapshot again */
    assert_true(progress_stats(&p, &m));
    m = s_stats(1, 6, SECOND);
    assert_false(progress_stats(&p, &m));
    assert_int_equal(p.at.update, 3);
    m = s_stats(2, 3, SECOND);
    m.env_steps += 100; /* the batch that met a stop rule */
    assert_true(progress_stats(&p, &m));
    assert_int_equal(p.at.env_steps, 400);
    assert_false(progress_stats(&p, &m));
}

static void test_speed_is_of_the_last_seconds(void **state)
{
    (void)state;
    progress_t p = {0};
    assert_true(progress_sps(&p) == 0);
    for (uint64_t i = 1; i <= 150; i++) { /* 100 steps each 0.1 s, then each 0.05 s */
        const int64_t time = i <= 50 ? (int64_t)i * SECOND / 10 : 5 * SECOND + (int64_t)(i - 50) * SECOND / 20;
        const tt_msg_STATS_t m = s_stats(1, i, time);
        assert_true(progress_stats(&p, &m));
    }
    assert_true(progress_sps(&p) > 1900 && progress_sps(&p) < 2100);
}

static void test_overall_speed_counts_from_the_first_step_of_the_session(void **state)
{
    (void)state;
    progress_t p = {.first_steps = 1000};
    assert_true(progress_sps_overall(&p, 3000, 5 * SECOND) == 0);
    assert_true(progress_first_step(&p, SECOND));
    assert_false(progress_first_step(&p, 2 * SECOND));
    assert_true(progress_sps_overall(&p, 3000, 5 * SECOND) == 500);
    assert_true(progress_sps_overall(&p, 3000, SECOND) == 0);
}

/*  Another coordinator's life is not ours, and a first step that was told us before is its members', not the run's. */
static void test_a_run_that_is_taken_over_counts_from_there(void **state)
{
    (void)state;
    progress_t p = {0};
    assert_true(progress_first_step(&p, SECOND));
    progress_count_from(&p, 100000, 10 * SECOND);
    tt_msg_STATS_t m = s_stats(3, 1000, 10 * SECOND);
    assert_true(progress_stats(&p, &m));
    assert_true(progress_sps(&p) == 0); /* not known yet */
    m = s_stats(3, 1010, 11 * SECOND);
    assert_true(progress_stats(&p, &m));
    assert_true(progress_sps(&p) == 1000);
    assert_false(progress_first_step(&p, 12 * SECOND));
    assert_true(progress_sps_overall(&p, 101000, 12 * SECOND) == 500);
}

static void test_a_roll_back_voids_a_later_solution(void **state)
{
    (void)state;
    progress_t p = {0};
    assert_true(progress_solved(&p, SECOND, 5000));
    assert_false(progress_solved(&p, 2 * SECOND, 6000));
    assert_false(progress_roll_back(&p, 5000));
    assert_int_equal(p.solved_steps, 5000);
    assert_true(progress_roll_back(&p, 4000));
    assert_int_equal(p.solved_ns, 0);
    assert_int_equal(p.solved_steps, 0);
    assert_true(progress_solved(&p, 3 * SECOND, 5000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_and_repeated_stats_are_dropped),
        cmocka_unit_test(test_speed_is_of_the_last_seconds),
        cmocka_unit_test(test_overall_speed_counts_from_the_first_step_of_the_session),
        cmocka_unit_test(test_a_run_that_is_taken_over_counts_from_there),
        cmocka_unit_test(test_a_roll_back_voids_a_later_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
