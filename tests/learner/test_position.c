/*  Where a learner stands: every way from one state to the next, and that there is no other. */
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "learner/position.h"

/*  Version `update` is held, and its batch is due. */
static position_t s_between(uint64_t update)
{
    position_t at = {0};
    position_join(&at, &(position_mark_t){.update = update, .steps = 4 * update, .trained = 16 * update});
    position_hold(&at, 3);
    return at;
}

static position_t s_within(uint64_t update, uint32_t steps)
{
    position_t at = s_between(update);
    position_count(&at);
    position_plan(&at, steps);
    position_begin(&at, update);
    return at;
}

static void test_an_update_from_end_to_end(void **state)
{
    (void)state;
    position_t at = s_within(5, 2);
    assert_true(at.begun);
    assert_int_equal(at.batches_counted, 6);
    position_step(&at, true);
    assert_int_equal(at.step, 1);
    assert_int_equal(at.update, 5);
    position_step(&at, true);
    position_end(&at);
    position_finish(&at, 16);
    assert_true(at.holds);
    assert_false(at.begun);
    assert_int_equal(at.update, 6);
    assert_int_equal(at.step, 0);
    assert_int_equal(at.steps, 22);
    assert_int_equal(at.trained, 96);
    assert_int_equal(at.batches_counted, 6);
}

static void test_an_algorithm_may_end_before_its_plan(void **state)
{
    (void)state;
    position_t at = s_within(0, 8);
    position_step(&at, true);
    position_end(&at);
    assert_int_equal(at.step, 8);
    assert_int_equal(at.steps, 1); /* those that were made */
    position_finish(&at, 16);
    assert_int_equal(at.update, 1);
}

static void test_nothing_owed_is_one_empty_step(void **state)
{
    (void)state;
    position_t at = s_between(0);
    position_owe(&at, 0);
    assert_int_equal(at.owed, 0);
    assert_int_equal(at.step_count, 1);
    position_owe(&at, 3);
    assert_int_equal(at.owed, 3);
    assert_int_equal(at.step_count, 3);
}

/*  What draws from a replay goes by those that drew. */
static void test_steps_of_nothing_are_not_made(void **state)
{
    (void)state;
    position_t at = s_within(1, 3);
    position_step(&at, true);
    position_step(&at, false);
    position_step(&at, true);
    assert_true(at.steps == 4 + 3 && at.made == 2);
    const position_mark_t mark = {.update = 5, .steps = 9, .made = 7};
    position_reset(&at);
    assert_true(at.made == 0);
    position_join(&at, &mark);
    assert_true(at.steps == 9 && at.made == 7);
}

static void test_the_greatest_lag_is_kept(void **state)
{
    (void)state;
    position_t at = s_between(7);
    for (uint64_t lag = 3; lag-- > 0;) { /* 2, 1, none */
        position_count(&at);
        position_plan(&at, 1);
        position_begin(&at, at.update - lag);
        assert_int_equal(at.lag_max, 2);
        position_step(&at, true);
        position_end(&at);
        position_finish(&at, 16);
    }
}

static void test_who_joins_in_the_middle_begins_there(void **state)
{
    (void)state;
    position_t at = {0};
    position_join(&at, &(position_mark_t){.update = 9, .step = 3, .steps = 39, .trained = 144, .lag_max = 1});
    assert_false(at.holds);
    position_hold(&at, 2);
    assert_int_equal(at.held_era, 2);
    assert_int_equal(at.batches_counted, 9); /* it assembles batch 9 itself, and counts it */
    position_count(&at);
    position_plan(&at, 4);
    position_begin(&at, 9);
    assert_int_equal(at.step, 3);
    position_step(&at, true);
    position_finish(&at, 16);
    assert_int_equal(at.update, 10);
    assert_int_equal(at.steps, 40);
    assert_int_equal(at.lag_max, 1);
}

static void test_a_run_that_ends_within_an_update(void **state)
{
    (void)state;
    position_t at = s_within(5, 2);
    position_step(&at, true);
    position_uncount(&at);
    assert_true(at.begun);
    assert_int_equal(at.update, 5);
    assert_int_equal(at.batches_counted, 5);
    assert_int_equal(at.step, 1);
}

static void test_a_retracted_batch_is_counted_once(void **state)
{
    (void)state;
    position_t at = s_within(5, 2);
    position_retract(&at);
    assert_false(at.begun);
    assert_int_equal(at.update, 5);
    assert_int_equal(at.batches_counted, 5);
    position_count(&at);
    assert_int_equal(at.batches_counted, 6);
    position_plan(&at, 2);
    position_begin(&at, 5);
    assert_int_equal(at.step, 0);
}

/*  A rule held by it, so that it has not begun. */
static void test_a_counted_batch_is_retracted(void **state)
{
    (void)state;
    position_t at = s_between(5);
    position_count(&at);
    position_retract(&at);
    assert_false(at.begun);
    assert_int_equal(at.batches_counted, 5);
    position_count(&at);
    assert_int_equal(at.batches_counted, 6);
}

static void test_an_era_resets_all_but_its_number(void **state)
{
    (void)state;
    position_t at = s_within(5, 2);
    position_step(&at, true);
    position_reset(&at);
    assert_false(at.holds || at.begun);
    assert_int_equal(at.held_era, 3); /* until weights of another are held */
    assert_int_equal(at.update + at.step + at.steps + at.batches_counted + at.trained + at.lag_max, 0);
    position_join(&at, &(position_mark_t){.update = 1});
    position_hold(&at, 4);
    assert_int_equal(at.held_era, 4);
}

/* ---- what there is no way for ------------------------------------------------------------------------------------ */

static void s_join_with_weights(void)
{
    position_t at = s_between(1);
    position_join(&at, &(position_mark_t){.update = 2});
}

static void s_count_twice(void)
{
    position_t at = s_between(1);
    position_count(&at);
    position_count(&at);
}

static void s_count_without_weights(void)
{
    position_t at = {0};
    position_count(&at);
}

static void s_begin_uncounted(void)
{
    position_t at = s_between(1);
    position_plan(&at, 1);
    position_begin(&at, 1);
}

static void s_plan_within(void)
{
    position_t at = s_within(1, 2);
    position_plan(&at, 3);
}

static void s_step_between(void)
{
    position_t at = s_between(1);
    position_step(&at, true);
}

static void s_step_too_many(void)
{
    position_t at = s_within(1, 1);
    position_step(&at, true);
    position_step(&at, true);
}

static void s_finish_early(void)
{
    position_t at = s_within(1, 2);
    position_step(&at, true);
    position_finish(&at, 16);
}

static void s_retract_a_step(void)
{
    position_t at = s_within(1, 2);
    position_step(&at, true);
    position_retract(&at);
}

static void s_retract_twice(void)
{
    position_t at = s_within(1, 2);
    position_retract(&at);
    position_retract(&at);
}

static void s_uncount_twice(void)
{
    position_t at = s_within(1, 2);
    position_uncount(&at);
    position_uncount(&at);
}

static void s_fine(void)
{
    position_t at = s_within(1, 1);
    position_step(&at, true);
    position_finish(&at, 16);
}

/*  The signal that ends a process which does this; 0: none does. What it prints is of no interest. */
static int s_signal_of(void (*deed)(void))
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        deed();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_no_other_way(void **state)
{
    (void)state;
    void (*const deed[])(void) = {s_join_with_weights, s_count_twice, s_count_without_weights, s_begin_uncounted,
        s_plan_within, s_step_between, s_step_too_many, s_finish_early, s_retract_a_step, s_retract_twice,
        s_uncount_twice};
    assert_int_equal(s_signal_of(s_fine), 0);
    for (size_t i = 0; i < sizeof deed / sizeof *deed; i++)
        if (s_signal_of(deed[i]) != SIGABRT)
            fail_msg("deed %zu went through", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_update_from_end_to_end),
        cmocka_unit_test(test_an_algorithm_may_end_before_its_plan),
        cmocka_unit_test(test_nothing_owed_is_one_empty_step),
        cmocka_unit_test(test_steps_of_nothing_are_not_made),
        cmocka_unit_test(test_the_greatest_lag_is_kept),
        cmocka_unit_test(test_who_joins_in_the_middle_begins_there),
        cmocka_unit_test(test_a_run_that_ends_within_an_update),
        cmocka_unit_test(test_a_retracted_batch_is_counted_once),
        cmocka_unit_test(test_a_counted_batch_is_retracted),
        cmocka_unit_test(test_an_era_resets_all_but_its_number),
        cmocka_unit_test(test_no_other_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
