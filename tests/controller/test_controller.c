/*  The reconciler against a substrate in memory and a clock that the test turns. */
#include "controller/controller.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"

enum { MOST = 64 };

typedef struct {
    tt_substrate_t base;
    struct {
        char role[16];
        uint32_t index;
        bool alive, asked;
        int grace_ms; /* that it was given when it was asked */
    } replicas[MOST]; /* id = place + 1 */
    size_t count;
    tt_replica_event_t events[MOST];
    size_t event_count;
    bool refuse; /* start fails */
} fake_t;

static tt_status_t s_fake_start(tt_substrate_t *base, const tt_replica_spec_t *spec, tt_replica_id_t *out)
{
    fake_t *self = (fake_t *)base;
    if (self->refuse)
        return tt_err(TT_OS, "no more processes");
    snprintf(self->replicas[self->count].role, sizeof self->replicas[0].role, "%s", spec->role);
    self->replicas[self->count].index = spec->index;
    self->replicas[self->count++].alive = true;
    *out = self->count;
    return TT_OK;
}

static tt_status_t s_fake_stop(tt_substrate_t *base, tt_replica_id_t id, int grace_ms)
{
    ((fake_t *)base)->replicas[id - 1].asked = true;
    ((fake_t *)base)->replicas[id - 1].grace_ms = grace_ms;
    return TT_OK;
}

static tt_status_t s_fake_poll(tt_substrate_t *base, tt_replica_event_t *events, size_t *count)
{
    fake_t *self = (fake_t *)base;
    assert_true(self->event_count <= *count);
    memcpy(events, self->events, self->event_count * sizeof *events);
    *count = self->event_count;
    self->event_count = 0;
    return TT_OK;
}

static const tt_substrate_ops_t s_fake_ops = {.start = s_fake_start, .stop = s_fake_stop, .poll = s_fake_poll};

/*  Id of the live replica of that number, 0 = none. */
static size_t s_alive(const fake_t *fake, const char *role, uint32_t index)
{
    for (size_t i = fake->count; i-- > 0;)
        if (fake->replicas[i].alive && strcmp(fake->replicas[i].role, role) == 0 && fake->replicas[i].index == index)
            return i + 1;
    return 0;
}

static bool s_asked(const fake_t *fake, const char *role, uint32_t index)
{
    return fake->replicas[s_alive(fake, role, index) - 1].asked;
}

static void s_end(fake_t *fake, const char *role, uint32_t index, int code)
{
    const size_t id = s_alive(fake, role, index);
    assert_true(id > 0);
    fake->replicas[id - 1].alive = false;
    fake->events[fake->event_count++] = (tt_replica_event_t){.id = id,
        .phase = code ? TT_PHASE_FAILED : TT_PHASE_SUCCEEDED,
        .exit_code = code,
        .signal = code > 128 ? code - 128 : 0,
        .pid = (int)(1000 + id),
        .reason = "ended by the test"};
}

/*  The coordinator's answer to a clean end: there is still something to do for it. */
static void s_miss(tt_controller_t *controller, const char *role, uint32_t index, size_t id)
{
    tt_controller_missed(controller, role, index, (int)(1000 + id));
}

typedef struct {
    fake_t fake;
    size_t ends; /* that the observer was told of */
    tt_role_t roles[2];
    tt_job_t job;
    tt_clock_t clock;
    tt_controller_t *controller;
} rig_t;

static void s_count_end(void *ctx, const char *role, uint32_t index, const tt_replica_event_t *event)
{
    (void)role, (void)index, (void)event;
    ((rig_t *)ctx)->ends++;
}

static void s_begin(rig_t *rig)
{
    const tt_observer_t observer = {.ended = s_count_end, .ctx = rig};
    assert_ok(tt_controller_new(&rig->controller, &rig->job, &rig->fake.base, &rig->clock, &observer));
    assert_ok(tt_controller_tick(rig->controller));
}

static void s_open(rig_t *rig)
{
    memset(rig, 0, sizeof *rig);
    rig->fake.base.ops = &s_fake_ops;
    rig->roles[0] = (tt_role_t){.name = "coordinator",
        .replicas = 1,
        .max_replicas = 1,
        .restart = TT_RESTART_ON_FAILURE,
        .backoff_limit = 3,
        .decides_job = true};
    rig->roles[1] = (tt_role_t){
        .name = "collector", .replicas = 2, .max_replicas = 8, .restart = TT_RESTART_ALWAYS, .backoff_limit = 3};
    rig->job = (tt_job_t){.name = "job", .roles = rig->roles, .role_count = 2};
    rig->clock = tt_clock_fake(1000000000);
    s_begin(rig);
}

static void s_tick(rig_t *rig, int64_t after_ms)
{
    tt_clock_turn(&rig->clock, after_ms * 1000000);
    assert_ok(tt_controller_tick(rig->controller));
}

static void test_starts_what_is_desired(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    assert_int_equal(tt_controller_running(rig.controller, NULL), 3);
    assert_int_equal(tt_controller_running(rig.controller, "collector"), 2);
    assert_int_equal(tt_controller_due_ms(rig.controller), -1);
    tt_controller_destroy(&rig.controller);
}

/*  One that stands still hears nothing: it is given no time, and started again as after any end. */
static void test_one_replica_is_killed_and_comes_back(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    const size_t id = s_alive(&rig.fake, "collector", 1);
    assert_int_equal(tt_controller_replica(rig.controller, "collector", 1), id);
    assert_int_equal(tt_controller_replica(rig.controller, "collector", 9), 0);
    assert_int_equal(tt_controller_replica(rig.controller, "cook", 0), 0);
    tt_controller_kill(rig.controller, "collector", 9);
    tt_controller_kill(rig.controller, "collector", 1);
    assert_true(s_asked(&rig.fake, "collector", 1));
    assert_int_equal(rig.fake.replicas[id - 1].grace_ms, 0);
    assert_false(s_asked(&rig.fake, "collector", 0));
    s_end(&rig.fake, "collector", 1, 137);
    s_tick(&rig, 0);
    assert_int_not_equal(s_alive(&rig.fake, "collector", 1), id);
    assert_int_equal(tt_controller_running(rig.controller, NULL), 3);
    tt_controller_destroy(&rig.controller);
}

static void test_restarts_at_once_then_backs_off(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    s_end(&rig.fake, "collector", 1, 137);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "collector", 1)); /* the first time at once */
    s_end(&rig.fake, "collector", 1, 137);
    s_tick(&rig, 0);
    assert_false(s_alive(&rig.fake, "collector", 1));
    assert_int_equal(tt_controller_due_ms(rig.controller), 100);
    s_tick(&rig, 99);
    assert_false(s_alive(&rig.fake, "collector", 1));
    s_tick(&rig, 1);
    assert_true(s_alive(&rig.fake, "collector", 1));
    s_tick(&rig, 30000); /* stable: forgotten */
    s_end(&rig.fake, "collector", 1, 137);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "collector", 1));
    tt_controller_destroy(&rig.controller);
}

static void test_gives_up_after_the_limit(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    for (int i = 0; i < 4; i++) {
        s_end(&rig.fake, "collector", 0, 71);
        s_tick(&rig, 0);
        s_tick(&rig, 10000);
    }
    int code;
    const char *reason;
    assert_int_equal(tt_controller_phase(rig.controller, &code, &reason), TT_JOB_FAILED);
    assert_int_equal(code, 71);
    assert_non_null(strstr(reason, "collector/0"));
    tt_controller_destroy(&rig.controller);
}

/*  A person who kills one again and again, a machine that runs out of memory now and then: as long as the job gets on it is no crash loop.
 *  The wait grows all the same: the one may crash at once each time, and the others be who get on. */
static void test_ends_between_progress_are_no_crash_loop(void **state)
{
    (void)state;
    static const int64_t waits[] = {0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    rig_t rig;
    s_open(&rig);
    for (size_t i = 0; i < TT_COUNT(waits); i++) {
        tt_controller_progress(rig.controller);
        s_end(&rig.fake, "collector", 0, 137);
        s_tick(&rig, 0);
        assert_int_equal(s_alive(&rig.fake, "collector", 0) != 0, waits[i] == 0);
        assert_int_equal(tt_controller_due_ms(rig.controller), waits[i] ? waits[i] : -1);
        s_tick(&rig, waits[i]);
        assert_true(s_alive(&rig.fake, "collector", 0));
    }
    assert_int_equal(tt_controller_phase(rig.controller, NULL, NULL), TT_JOB_RUNNING);
    tt_controller_destroy(&rig.controller);
}

static void s_ends_and_comes_back(rig_t *rig)
{
    assert_int_equal(tt_controller_phase(rig->controller, NULL, NULL), TT_JOB_RUNNING);
    s_end(&rig->fake, "collector", 0, 137);
    s_tick(rig, 0);
    s_tick(rig, 10000);
}

/*  What was made before it was started does not speak for it. */
static void test_progress_counts_from_the_start_of_a_replica(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    s_ends_and_comes_back(&rig);
    tt_controller_progress(rig.controller);
    s_end(&rig.fake, "collector", 0, 137); /* not in vain */
    s_tick(&rig, 0);
    tt_controller_progress(rig.controller); /* while it is waited for */
    s_tick(&rig, 10000);
    for (uint32_t i = 0; i <= rig.roles[1].backoff_limit; i++)
        s_ends_and_comes_back(&rig);
    assert_int_equal(tt_controller_phase(rig.controller, NULL, NULL), TT_JOB_FAILED);
    tt_controller_destroy(&rig.controller);
}

static void test_final_codes_fail_the_job_at_once(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    s_end(&rig.fake, "collector", 0, 78);
    s_tick(&rig, 0);
    int code;
    assert_int_equal(tt_controller_phase(rig.controller, &code, NULL), TT_JOB_FAILED);
    assert_int_equal(code, 78);
    assert_false(s_alive(&rig.fake, "collector", 0));
    tt_controller_destroy(&rig.controller);
}

static void test_coordinator_decides(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    s_end(&rig.fake, "coordinator", 0, 137);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "coordinator", 0)); /* killed: comes back */
    s_end(&rig.fake, "coordinator", 0, 0);
    s_tick(&rig, 0);
    assert_int_equal(tt_controller_phase(rig.controller, NULL, NULL), TT_JOB_SUCCEEDED);
    tt_controller_destroy(&rig.controller);
}

static void test_scales_up_and_down(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    assert_ok(tt_controller_scale(rig.controller, "collector", 4, 1000));
    s_tick(&rig, 0);
    assert_int_equal(tt_controller_running(rig.controller, "collector"), 4);
    assert_ok(tt_controller_scale(rig.controller, "collector", 1, 1000));
    s_tick(&rig, 0);
    s_end(&rig.fake, "collector", 3, 0); /* drained by itself */
    s_tick(&rig, 0);
    assert_false(s_alive(&rig.fake, "collector", 3));
    assert_false(s_asked(&rig.fake, "collector", 1));
    s_tick(&rig, 1000); /* these lingered: asked to end */
    assert_true(s_asked(&rig.fake, "collector", 1));
    assert_true(s_asked(&rig.fake, "collector", 2));
    s_end(&rig.fake, "collector", 1, 0);
    s_end(&rig.fake, "collector", 2, 0);
    s_tick(&rig, 0);
    assert_int_equal(tt_controller_running(rig.controller, "collector"), 1);
    assert_int_equal(tt_controller_scale(rig.controller, "poet", 1, 0), TT_NOT_FOUND);
    tt_controller_destroy(&rig.controller);
}

static void test_scaled_back_up_before_it_was_gone(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    assert_ok(tt_controller_scale(rig.controller, "collector", 1, 1000));
    s_tick(&rig, 0);
    assert_ok(tt_controller_scale(rig.controller, "collector", 2, 1000));
    const size_t id = s_alive(&rig.fake, "collector", 1);
    s_end(&rig.fake, "collector", 1, 0); /* it had been told to drain already */
    s_tick(&rig, 0);
    s_miss(rig.controller, "collector", 1, id);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "collector", 1)); /* another takes its number */
    tt_controller_destroy(&rig.controller);
}

/*  Only the coordinator tells a replica to go, and of two processes that it told something, the controller hears either first. */
static void test_a_clean_end_waits_for_the_coordinator(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    const size_t id = s_alive(&rig.fake, "collector", 1);
    s_end(&rig.fake, "collector", 1, 0);
    s_tick(&rig, 60000);
    assert_false(s_alive(&rig.fake, "collector", 1));
    assert_int_equal(tt_controller_due_ms(rig.controller), -1);
    s_miss(rig.controller, "collector", 1, id + 1); /* of another process that had its number */
    s_miss(rig.controller, "collector", 9, id);
    s_miss(rig.controller, "cook", 1, id);
    s_tick(&rig, 0);
    assert_false(s_alive(&rig.fake, "collector", 1));
    s_miss(rig.controller, "collector", 1, id);
    s_tick(&rig, 0);
    const size_t next = s_alive(&rig.fake, "collector", 1);
    assert_true(next > id);
    s_miss(rig.controller, "collector", 1, id); /* said twice */
    s_end(&rig.fake, "collector", 1, 0);
    s_tick(&rig, 0);
    s_miss(rig.controller, "collector", 1, id);
    s_tick(&rig, 0);
    assert_false(s_alive(&rig.fake, "collector", 1));
    tt_controller_destroy(&rig.controller);
}

/*  It was told to go, as it turns out. */
static void test_a_clean_end_that_was_asked_for(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        rig_t rig;
        s_open(&rig);
        const size_t id = s_alive(&rig.fake, "collector", 1);
        s_end(&rig.fake, "collector", 1, 0);
        s_tick(&rig, 0);
        if (how == 0)
            assert_ok(tt_controller_scale(rig.controller, "collector", 1, 1000));
        else if (how == 1)
            tt_controller_wind_down(rig.controller);
        else
            tt_controller_stop(rig.controller, 1000);
        s_miss(rig.controller, "collector", 1, id);
        s_tick(&rig, 0);
        assert_false(s_alive(&rig.fake, "collector", 1));
        assert_int_equal(tt_controller_phase(rig.controller, NULL, NULL), TT_JOB_RUNNING);
        if (how == 0) {
            assert_ok(tt_controller_scale(rig.controller, "collector", 2, 1000));
            s_tick(&rig, 0);
            assert_true(s_alive(&rig.fake, "collector", 1)); /* its number is free */
        }
        tt_controller_destroy(&rig.controller);
    }
}

/*  Whom it was told has died since: who comes next must hear of it, or it waits for ever. */
static void test_a_clean_end_is_told_again(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    s_end(&rig.fake, "collector", 1, 0);
    s_tick(&rig, 0);
    assert_int_equal(rig.ends, 1);
    tt_controller_retell(rig.controller);
    assert_int_equal(rig.ends, 2);
    tt_controller_destroy(&rig.controller);
}

static void test_a_refused_start_is_tried_again(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    rig.fake.refuse = true;
    s_end(&rig.fake, "collector", 0, 137);
    s_tick(&rig, 0);
    assert_int_equal(tt_controller_running(rig.controller, "collector"), 1);
    rig.fake.refuse = false;
    s_tick(&rig, 10000);
    assert_int_equal(tt_controller_running(rig.controller, "collector"), 2);
    tt_controller_destroy(&rig.controller);
}

static void test_stop_asks_workers_and_starts_nothing(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    tt_controller_stop(rig.controller, 1000);
    assert_true(s_asked(&rig.fake, "collector", 0));
    assert_false(s_asked(&rig.fake, "coordinator", 0));
    s_end(&rig.fake, "collector", 0, 143);
    s_end(&rig.fake, "collector", 1, 143);
    s_end(&rig.fake, "coordinator", 0, 0);
    s_tick(&rig, 10000);
    assert_int_equal(tt_controller_running(rig.controller, NULL), 0);
    tt_controller_destroy(&rig.controller);
}

static void s_keep_line(void *ctx, const char *line)
{
    snprintf(ctx, 256, "%s", line);
}

/*  Everything is killed: nothing comes back, so nothing says that it does, and an end that was asked for is not one too many. */
static void test_what_is_said_of_ends_while_it_stops(void **state)
{
    (void)state;
    rig_t rig;
    char line[256] = "";
    s_open(&rig);
    rig.roles[0].backoff_limit = 0;
    tt_controller_stop(rig.controller, 0);
    tt_log_sink(s_keep_line, line);
    s_end(&rig.fake, "collector", 0, 137);
    s_tick(&rig, 0);
    assert_string_equal(line, ""); /* who decides nothing is not missed */
    s_end(&rig.fake, "coordinator", 0, 137);
    s_tick(&rig, 10000);
    tt_log_sink(NULL, NULL);
    assert_non_null(strstr(line, "coordinator/0: ended by the test; not started again: everything is told to end"));
    assert_false(s_alive(&rig.fake, "coordinator", 0));
    assert_int_equal(tt_controller_phase(rig.controller, NULL, NULL), TT_JOB_RUNNING); /* who stopped it knows why */
    tt_controller_destroy(&rig.controller);
}

/*  Drained, or killed because it would not go: it is wanted no more, and nothing is said of another. */
static void test_nothing_is_said_of_ends_over_the_desired_number(void **state)
{
    (void)state;
    rig_t rig;
    char line[256] = "";
    s_open(&rig);
    assert_ok(tt_controller_scale(rig.controller, "collector", 1, 1000));
    s_tick(&rig, 1000);
    tt_log_sink(s_keep_line, line);
    s_end(&rig.fake, "collector", 1, 137);
    s_tick(&rig, 10000);
    tt_log_sink(NULL, NULL);
    assert_string_equal(line, "");
    assert_false(s_alive(&rig.fake, "collector", 1));
    tt_controller_destroy(&rig.controller);
}

static void test_winding_down_lets_workers_go(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    tt_controller_wind_down(rig.controller);
    s_end(&rig.fake, "collector", 0, 0);
    s_end(&rig.fake, "coordinator", 0, 137);
    s_tick(&rig, 10000);
    assert_false(s_alive(&rig.fake, "collector", 0));
    assert_true(s_alive(&rig.fake, "coordinator", 0)); /* the end is still to be told */
    assert_int_equal(tt_controller_due_ms(rig.controller), -1);
    tt_controller_destroy(&rig.controller);
}

/*  One that was killed comes back to say its end again; one that ended by itself has said it. */
static void test_winding_down_the_coordinators_own_end_counts(void **state)
{
    (void)state;
    rig_t rig;
    s_open(&rig);
    tt_controller_wind_down(rig.controller);
    s_end(&rig.fake, "coordinator", 0, 137);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "coordinator", 0));
    s_end(&rig.fake, "coordinator", 0, 74);
    s_tick(&rig, 0);
    int code = 0;
    assert_int_equal(tt_controller_phase(rig.controller, &code, NULL), TT_JOB_FAILED);
    assert_int_equal(code, 74);
    tt_controller_destroy(&rig.controller);
}

static void test_roles_wait_for_those_they_depend_on(void **state)
{
    (void)state;
    rig_t rig;
    char *first[] = {"coordinator", NULL};
    s_open(&rig);
    tt_controller_destroy(&rig.controller);
    rig.fake = (fake_t){.base = {.ops = &s_fake_ops}, .refuse = true};
    rig.roles[1].depends_on = first;
    s_begin(&rig);
    rig.fake.refuse = false;
    assert_int_equal(rig.fake.count, 0);
    s_tick(&rig, 10000);
    s_tick(&rig, 0);
    assert_true(s_alive(&rig.fake, "coordinator", 0) < s_alive(&rig.fake, "collector", 0));
    tt_controller_destroy(&rig.controller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_what_is_desired),
        cmocka_unit_test(test_one_replica_is_killed_and_comes_back),
        cmocka_unit_test(test_restarts_at_once_then_backs_off),
        cmocka_unit_test(test_gives_up_after_the_limit),
        cmocka_unit_test(test_ends_between_progress_are_no_crash_loop),
        cmocka_unit_test(test_progress_counts_from_the_start_of_a_replica),
        cmocka_unit_test(test_final_codes_fail_the_job_at_once),
        cmocka_unit_test(test_coordinator_decides),
        cmocka_unit_test(test_scales_up_and_down),
        cmocka_unit_test(test_scaled_back_up_before_it_was_gone),
        cmocka_unit_test(test_a_clean_end_waits_for_the_coordinator),
        cmocka_unit_test(test_a_clean_end_that_was_asked_for),
        cmocka_unit_test(test_a_clean_end_is_told_again),
        cmocka_unit_test(test_a_refused_start_is_tried_again),
        cmocka_unit_test(test_stop_asks_workers_and_starts_nothing),
        cmocka_unit_test(test_what_is_said_of_ends_while_it_stops),
        cmocka_unit_test(test_nothing_is_said_of_ends_over_the_desired_number),
        cmocka_unit_test(test_winding_down_lets_workers_go),
        cmocka_unit_test(test_winding_down_the_coordinators_own_end_counts),
        cmocka_unit_test(test_roles_wait_for_those_they_depend_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
