/*  What stands above the groups: which rules exclude each other, deadline, time to live, suspension, the limits of restarts and of
 *  failures in a row. */
#include <stdlib.h>
#include <string.h>
#include "tests/job/world.h"

static void s_round(world_t *w)
{
    tt_plan_t plan;
    world_plan(w, &plan);
    world_do(w, &plan);
    tt_plan_clear(&plan);
}

static void s_refused(const world_t *w, const char *words)
{
    assert_int_equal(rules_check(&w->rules), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), words));
}

static void test_rules_that_exclude_each_other_are_refused(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    tt_group_t *a = world_group(&w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_FIRST, 1);
    s_refused(&w, "needs a place 0");
    a->identity = TT_ID_ORDINAL;
    a->on_failure = TT_FAILURE_RESTART_JOB;
    s_refused(&w, "needs a place 0");
    a->decides = TT_DECIDES_ALL;
    a->want = -1;
    s_refused(&w, "needs a number");
    a->want = 2;
    a->min = 3;
    s_refused(&w, "2 of at least 3");
    a->min = 2;
    a->after = 1;
    s_refused(&w, "comes after group 1");
    a->after = TT_GROUP_NONE;
    assert_ok(rules_check(&w.rules));
    tt_group_t *b = world_group(&w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, 1);
    b->name = "a";
    s_refused(&w, "two groups are named 'a'");
    b->name = "b";
    a->after = 1;
    s_refused(&w, "has no place 0");
}

static void test_a_job_that_runs_too_long_fails_and_is_cleaned(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2);
    w.rules.deadline_s = 60;
    w.rules.clean = TT_CLEAN_ALL;
    s_round(&w);
    w.now_s += 1000; /* it has not begun: nothing has run out */
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_PENDING);
    for (size_t i = 0; i < w.replica_count; i++)
        world_run(&w, &w.replicas[i]);
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    w.now_s += 59;
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    w.now_s += 1;
    world_settle(&w, 20);
    assert_int_equal(w.state.stage, TT_STAGE_FAILED);
    assert_int_equal(w.last.why, TT_WHY_DEADLINE);
    assert_int_equal(w.replica_count, 0);
    world_free(&w);
}

static void test_a_job_that_is_over_goes_after_its_time(void **state)
{
    (void)state;
    world_t w;
    tt_plan_t plan;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_FAIL, TT_DECIDES_FIRST, 1);
    w.rules.ttl_s = 30;
    s_round(&w);
    world_run(&w, w.replicas);
    world_end(&w, w.replicas, 0);
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_SUCCEEDED);
    world_plan(&w, &plan);
    assert_int_equal(plan.again_s, 30);
    tt_plan_clear(&plan);
    w.now_s += 29;
    s_round(&w);
    assert_false(w.forgotten);
    w.now_s += 1;
    s_round(&w);
    assert_true(w.forgotten);
    world_free(&w);
}

/*  Whose end is the job's need not be the one of place 0. */
static void test_the_place_that_decides(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    tt_group_t *group = world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_FIRST, 2);
    group->deciding = 2;
    s_refused(&w, "place 2 decides, of 2");
    group->deciding = 1;
    assert_ok(rules_check(&w.rules));
    world_settle(&w, 50);
    assert_string_equal(w.state.first, world_get(&w, "a-1")->uid);
    world_end(&w, world_get(&w, "a-0"), 0);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    world_end(&w, world_get(&w, "a-1"), 0);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_SUCCEEDED);
    world_free(&w);
}

static void s_suspended(tt_failure_t on_failure)
{
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, on_failure, TT_DECIDES_ALL, 3);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    world_end(&w, world_get(&w, "a-1"), 0);
    w.rules.suspend = true;
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_SUSPENDED);
    assert_int_equal(w.replica_count, 1); /* who ended well needs not do it again */
    assert_int_equal(w.state.started_s, 0);
    w.rules.suspend = false;
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    assert_int_equal(world_alive(&w, 0), 2);
    assert_int_equal(w.state.restarts, 0);
    world_free(&w);
}

static void test_nobody_of_a_suspended_job_runs_and_it_goes_on(void **state)
{
    (void)state;
    s_suspended(TT_FAILURE_REPLACE);
    s_suspended(TT_FAILURE_RESTART_JOB);
}

/*  One whose place is kept and that fails again and again is counted each time, others beside it are not. */
static void test_restarts_of_a_place_are_counted_to_the_limit(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2);
    w.rules.backoff_limit = 2;
    world_settle(&w, 50);
    for (int i = 1; i <= 2; i++) {
        world_end(&w, world_get(&w, "a-0"), 1);
        world_settle(&w, 50);
        assert_int_equal(w.state.restarts, i);
        assert_int_equal(world_alive(&w, 0), 2);
    }
    world_end(&w, world_get(&w, "a-0"), 1);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_FAILED);
    assert_int_equal(w.last.why, TT_WHY_LIMIT);
    world_free(&w);
}

/*  By exit code: the program's own mistake ends the job, a signal does not. */
static void test_an_exit_code_decides_whether_it_comes_again(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2)->final_codes = TT_CODES_PLAIN;
    world_settle(&w, 50);
    world_end(&w, world_get(&w, "a-1"), 137);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    world_end(&w, world_get(&w, "a-1"), 127);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_FAILED);
    assert_int_equal(w.last.why, TT_WHY_CODE);
    world_free(&w);
}

/*  A place where a signal from outside ended it is filled again; a crash by a signal is the program's own mistake. */
static void s_by_signal(int exit_code, bool comes_again)
{
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2)->final_codes = TT_CODES_SIGNAL;
    world_settle(&w, 50);
    world_end(&w, world_get(&w, "a-1"), exit_code);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, comes_again ? TT_STAGE_RUNNING : TT_STAGE_FAILED);
    assert_int_equal(world_alive(&w, 0), comes_again ? 2 : 1);
    if (!comes_again)
        assert_int_equal(w.last.why, TT_WHY_CODE);
    world_free(&w);
}

static void test_only_signals_from_outside_are_no_mistake(void **state)
{
    (void)state;
    static const int again[] = {130, 137, 138, 143}, final[] = {1, 2, 126, 127, 128, 129, 139, 255};
    for (size_t i = 0; i < TT_COUNT(again); i++)
        s_by_signal(again[i], true);
    for (size_t i = 0; i < TT_COUNT(final); i++)
        s_by_signal(final[i], false);
}

/*  Whoever of it decides. */
static void test_what_comes_after_a_group_waits_for_its_place_0(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_FIRST, 2)->deciding = 1;
    world_group(&w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, 2)->after = 0;
    world_settle(&w, 50);
    assert_int_equal(world_alive(&w, 1), 2);
    world_free(&w);
}

/*  Those that the front end names, also of one that waits to be started again inside; not where its place is to blame. */
static void test_codes_that_are_listed_end_the_job(void **state)
{
    (void)state;
    static const struct {
        int code;
        bool waits, disrupted, ends;
    } all[] = {{2, false, false, true}, {2, true, false, true}, {2, false, true, false}, {1, false, false, false},
        {1, true, false, false}, {255, false, false, true}, {256, false, false, false}};
    for (size_t i = 0; i < TT_COUNT(all); i++) {
        world_t w;
        tt_code_set_t codes = {0};
        tt_code_set_put(&codes, 2, true);
        tt_code_set_put(&codes, 255, true);
        tt_code_set_put(&codes, 1, true);
        tt_code_set_put(&codes, 1, false);
        world_init(&w);
        tt_group_t *group = world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2);
        group->final_codes = TT_CODES_LISTED;
        group->listed = &codes;
        world_settle(&w, 50);
        tt_replica_t *replica = world_get(&w, "a-1");
        if (all[i].waits) {
            replica->waits = true;
            replica->ready = false;
            replica->exit_code = all[i].code;
        } else
            world_end(&w, replica, all[i].code);
        replica->disrupted = all[i].disrupted;
        tt_plan_t plan;
        world_plan(&w, &plan);
        assert_int_equal(plan.state.stage, all[i].ends ? TT_STAGE_FAILED : TT_STAGE_RUNNING);
        if (all[i].ends)
            assert_int_equal(plan.facts[plan.fact_count - 1].why, TT_WHY_CODE);
        tt_plan_clear(&plan);
        world_free(&w);
    }
}

/*  Containers that are started again inside replicas that run: with a limit of 0 one is too many. */
static void s_inside(int64_t limit, int each, bool fails)
{
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 2);
    w.rules.backoff_limit = limit;
    world_settle(&w, 50);
    for (size_t i = 0; i < w.replica_count; i++)
        w.replicas[i].own_restarts = each;
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, fails ? TT_STAGE_FAILED : TT_STAGE_RUNNING);
    if (fails) {
        assert_int_equal(w.last.why, TT_WHY_LIMIT);
        assert_int_equal(w.last.count, 2 * each);
    }
    world_free(&w);
}

static void test_restarts_inside_replicas_are_summed_up_to_the_limit(void **state)
{
    (void)state;
    s_inside(-1, 100, false);
    s_inside(0, 0, false);
    s_inside(0, 1, true);
    s_inside(3, 1, false);
    s_inside(4, 2, true);
}

/*  Who helps and ended well has done its part where the rules say so, and is wanted still where not. */
static void test_who_helps_once_is_not_called_again(void **state)
{
    (void)state;
    for (int once = 0; once < 2; once++) {
        world_t w;
        world_init(&w);
        world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_FIRST, 1);
        world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_NONE, 2)->once = once;
        world_settle(&w, 50);
        world_end(&w, world_get(&w, "b-1"), 0);
        world_settle(&w, 50);
        assert_int_equal(world_alive(&w, 1), once ? 1 : 2);
        assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
        world_free(&w);
    }
}

/*  The service of a place is there before who takes it, and stays while it is taken again; fewer places, fewer services. */
static void test_a_place_keeps_its_service(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    tt_group_t *group = world_group(&w, TT_ID_ORDINAL, TT_FAILURE_REPLACE, TT_DECIDES_ALL, 3);
    w.rules.serve = TT_SERVE_PLACE;
    group->blocked = true;
    s_round(&w);
    assert_int_equal(w.service_count, 3);
    assert_int_equal(w.replica_count, 0);
    group->blocked = false;
    world_settle(&w, 50);
    world_end(&w, world_get(&w, "a-1"), 137);
    for (int i = 0; i < 50 && world_alive(&w, 0) < 3; i++, w.now_s++) {
        assert_int_equal(w.service_count, 3);
        s_round(&w);
    }
    assert_int_equal(world_alive(&w, 0), 3);
    group->want = 2;
    world_settle(&w, 50);
    assert_int_equal(w.service_count, 2);
    w.rules.clean = TT_CLEAN_NONE;
    world_end(&w, world_get(&w, "a-0"), 0);
    world_end(&w, world_get(&w, "a-1"), 0);
    world_settle(&w, 50);
    assert_int_equal(w.state.stage, TT_STAGE_SUCCEEDED);
    assert_int_equal(w.service_count, 2); /* nothing goes */
    w.rules.clean = TT_CLEAN_RUNNING;
    world_settle(&w, 50);
    assert_int_equal(w.service_count, 0);
    world_free(&w);
}

/*  Fewer than are wanted are enough where the rules say so. */
static void test_a_minimum_is_enough_to_run(void **state)
{
    (void)state;
    world_t w;
    world_init(&w);
    world_group(&w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, 3)->min = 2;
    s_round(&w);
    world_run(&w, &w.replicas[0]);
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_PENDING);
    world_run(&w, &w.replicas[1]);
    s_round(&w);
    assert_int_equal(w.state.stage, TT_STAGE_RUNNING);
    world_free(&w);
}

/* ---- failures in a row ---------------------------------------------------------------------------------------------------- */

/*  A group of anyone, that many of whom may fail in a row before the job has. */
static void s_random(world_t *w, int want, int64_t fail_after)
{
    world_init(w);
    world_group(w, TT_ID_RANDOM, TT_FAILURE_REPLACE, TT_DECIDES_NONE, want)->fail_after = fail_after;
    world_settle(w, 20);
    assert_int_equal(w->state.stage, TT_STAGE_RUNNING);
}

/*  The newest of a group that is there. */
static tt_replica_t *s_newest(world_t *w)
{
    tt_replica_t *found = NULL;
    for (size_t i = 0; i < w->replica_count; i++)
        if (tt_replica_alive(&w->replicas[i]))
            found = &w->replicas[i];
    assert_non_null(found);
    return found;
}

/*  The newest lives that long, then fails; what follows is done, till the next one is there or the job has ended. */
static void s_fail_after(world_t *w, int64_t lived_s, bool disrupted)
{
    tt_replica_t *replica = s_newest(w);
    world_run(w, replica);
    w->now_s += lived_s;
    world_end(w, replica, 1);
    replica->disrupted = disrupted;
    s_round(w);
    if (tt_stage_final(w->state.stage))
        return;
    w->now_s += TT_PLAN_BACKOFF_MAX_S;
    s_round(w);
}

static void test_a_group_that_fails_again_and_again_fails_the_job(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 1, 4);
    for (int i = 1; i <= 3; i++) {
        s_fail_after(&w, 5, false);
        assert_false(tt_stage_final(w.state.stage));
        assert_int_equal(s_newest(&w)->failures, i);
    }
    s_fail_after(&w, 5, false);
    assert_int_equal(w.state.stage, TT_STAGE_FAILED);
    assert_int_equal(w.last.why, TT_WHY_IN_A_ROW);
    assert_int_equal(w.last.count, 4);
    world_free(&w);
    s_random(&w, 1, 0); /* nothing is said: for ever */
    for (int i = 0; i < 100; i++)
        s_fail_after(&w, 5, false);
    assert_false(tt_stage_final(w.state.stage));
    world_free(&w);
}

static void test_the_odd_failure_of_weeks_is_forgotten(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 1, 2);
    for (int i = 0; i < 50; i++) {
        s_fail_after(&w, TT_PLAN_RESET_S, false); /* it had done well */
        assert_int_equal(s_newest(&w)->failures, 0);
        s_fail_after(&w, 5, false);
        assert_int_equal(s_newest(&w)->failures, 1);
    }
    assert_false(tt_stage_final(w.state.stage));
    world_end(&w, s_newest(&w), 0); /* so is what was before one that ended well */
    w.now_s += TT_PLAN_SUCCESS_S;
    s_round(&w);
    assert_int_equal(s_newest(&w)->failures, 0);
    world_free(&w);
}

static void test_who_is_disrupted_neither_counts_nor_forgets(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 1, 3);
    s_fail_after(&w, 5, false);
    s_fail_after(&w, 5, false);
    for (int i = 0; i < 20; i++)
        s_fail_after(&w, 5, true);
    assert_int_equal(s_newest(&w)->failures, 2);
    s_newest(&w)->refused = true; /* its place would not take it: the same */
    s_fail_after(&w, 0, false);
    assert_int_equal(s_newest(&w)->failures, 2);
    assert_false(tt_stage_final(w.state.stage));
    s_fail_after(&w, 5, false);
    assert_int_equal(w.state.stage, TT_STAGE_FAILED);
    world_free(&w);
}

/*  One bad place of three, say a host on which nothing starts: the others are of use. */
static void test_while_others_work_one_place_fails_no_job(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 3, 2);
    for (int i = 0; i < 20; i++)
        s_fail_after(&w, 5, false);
    assert_false(tt_stage_final(w.state.stage));
    tt_replica_t *bad = s_newest(&w);
    assert_int_equal(bad->failures, 20);
    world_end(&w, bad, 1);
    for (size_t i = 0; i < w.replica_count; i++) /* the others are not ready any more */
        w.replicas[i].ready = false;
    s_round(&w);
    assert_int_equal(w.last.why, TT_WHY_IN_A_ROW);
    world_free(&w);
}

/*  What is in it is started again by its place, as a kubelet does with restartPolicy Always: nobody fails, and nothing gets done. */
static void test_what_is_started_again_inside_counts_too(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 2, 4);
    for (int i = 0; i < 8;
         i++) { /* one waits, the other is ready just then: for as long as it has not failed as often */
        tt_replica_t *waits = &w.replicas[i % 2];
        assert_false(tt_stage_final(w.state.stage));
        world_run(&w, &w.replicas[!(i % 2)]);
        waits->own_restarts = 1 + i / 2;
        waits->waits = true;
        waits->ready = false;
        w.now_s += 30;
        s_round(&w);
    }
    assert_int_equal(w.last.why, TT_WHY_IN_A_ROW);
    assert_int_equal(w.last.count, 5);
    world_free(&w);
    s_random(&w, 1, 4); /* once a day for a month */
    for (int day = 0; day < 30; day++) {
        w.now_s += 86400;
        w.replicas[0].own_restarts++;
        w.replicas[0].waits = true;
        s_round(&w);
        world_run(&w, &w.replicas[0]);
    }
    assert_false(tt_stage_final(w.state.stage));
    w.replicas[0].disrupted = w.replicas[0].waits = true;
    w.replicas[0].own_restarts = INT32_MAX;
    s_round(&w);
    assert_false(tt_stage_final(w.state.stage));
    world_free(&w);
}

static void test_who_is_wanted_no_longer_fails_no_job(void **state)
{
    (void)state;
    world_t w;
    s_random(&w, 2, 2);
    for (int i = 0; i < 5; i++)
        s_fail_after(&w, 5, false);
    world_end(&w, s_newest(&w), 1); /* held only by the other one */
    w.groups[0].want = 1;
    for (size_t i = 0; i < w.replica_count; i++)
        w.replicas[i].ready = false;
    s_round(&w);
    assert_false(tt_stage_final(w.state.stage));
    w.groups[0].want = 2; /* and what is long past begins no row */
    w.groups[0].blocked = true;
    w.now_s += TT_PLAN_RESET_S;
    s_round(&w);
    assert_false(tt_stage_final(w.state.stage));
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_that_exclude_each_other_are_refused),
        cmocka_unit_test(test_a_job_that_runs_too_long_fails_and_is_cleaned),
        cmocka_unit_test(test_a_job_that_is_over_goes_after_its_time),
        cmocka_unit_test(test_the_place_that_decides),
        cmocka_unit_test(test_nobody_of_a_suspended_job_runs_and_it_goes_on),
        cmocka_unit_test(test_restarts_of_a_place_are_counted_to_the_limit),
        cmocka_unit_test(test_an_exit_code_decides_whether_it_comes_again),
        cmocka_unit_test(test_only_signals_from_outside_are_no_mistake),
        cmocka_unit_test(test_codes_that_are_listed_end_the_job),
        cmocka_unit_test(test_what_comes_after_a_group_waits_for_its_place_0),
        cmocka_unit_test(test_restarts_inside_replicas_are_summed_up_to_the_limit),
        cmocka_unit_test(test_who_helps_once_is_not_called_again),
        cmocka_unit_test(test_a_place_keeps_its_service),
        cmocka_unit_test(test_a_minimum_is_enough_to_run),
        cmocka_unit_test(test_a_group_that_fails_again_and_again_fails_the_job),
        cmocka_unit_test(test_the_odd_failure_of_weeks_is_forgotten),
        cmocka_unit_test(test_who_is_disrupted_neither_counts_nor_forgets),
        cmocka_unit_test(test_while_others_work_one_place_fails_no_job),
        cmocka_unit_test(test_what_is_started_again_inside_counts_too),
        cmocka_unit_test(test_who_is_wanted_no_longer_fails_no_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
