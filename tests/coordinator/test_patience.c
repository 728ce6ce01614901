/*  How long the coordinator waits for whom, by a clock that the test turns. */
#include <string.h>
#include "tests/coordinator/crew.h"

enum { LEASE_MS = 5000, STALL_MS = 20000, STEP_MS = 500 };

static int s_setup(void **state)
{
    return run_setup_with(state, "net: {beat_ms: 250, lease_ms: 5000, stall_s: 20}\ncoordinator: {http: \"\"}\n", true);
}

static void s_turn(run_t *run, int64_t ms)
{
    tt_clock_turn(&run->clock, ms * 1000000);
}

static int s_ready(const json_t *status, const char *role)
{
    return (int)number_in(json_object_get(json_object_get(status, "replicas"), role), "ready");
}

static void test_a_silent_member_keeps_its_place_for_a_lease(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    json_decref(run_pass(run, client, STEP_MS, 3));
    tt_link_destroy(&crew.collectors[1]);
    json_t *status = run_pass(run, client, LEASE_MS - STEP_MS, 2);
    assert_int_equal(s_ready(status, "collector"), 2);
    json_decref(status);
    s_turn(run, STEP_MS);
    link_skip_roster(crew.collectors[0], 1, 1);
    link_skip_roster(crew.learner, 1, 1);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_a_stuck_run_says_who_waits_for_what(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    tt_link_state(crew.collectors[1], "waiting for Godot");
    json_t *status = run_pass(run, client, STALL_MS - STEP_MS, 3);
    assert_string_equal(json_string_value(json_object_get(status, "phase")), "running");
    json_decref(status);
    s_turn(run, 2 * STEP_MS);
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "failed");
    assert_non_null(strstr(packet.msg.EVENT.text, "collector/1"));
    assert_non_null(strstr(packet.msg.EVENT.text, "waiting for Godot"));
    assert_int_equal(packet.msg.EVENT.code, tt_status_exit_code(TT_TIMEOUT));
    tt_packet_clear(&packet);
    assert_int_equal(run_wait(run), tt_status_exit_code(TT_TIMEOUT));
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_nobody_comes(void **state)
{
    run_t *run = *state;
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    json_t *status = run_pass(run, client, STALL_MS - STEP_MS, 0);
    assert_string_equal(json_string_value(json_object_get(status, "phase")), "starting");
    json_decref(status);
    s_turn(run, 2 * STEP_MS);
    assert_int_equal(run_wait(run), tt_status_exit_code(TT_TIMEOUT));
    json_t *result = run_result(run);
    assert_non_null(strstr(json_string_value(json_object_get(result, "reason")), "learner wanted 1, ready 0"));
    json_decref(result);
    tt_link_destroy(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_silent_member_keeps_its_place_for_a_lease, s_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_stuck_run_says_who_waits_for_what, s_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_nobody_comes, s_setup, run_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
