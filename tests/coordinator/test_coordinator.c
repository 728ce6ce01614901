/*  The coordinator, driven by links: HELLO to the end of a run, and who is let in. */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "tests/coordinator/crew.h"

static int s_setup_open(void **state)
{
    return run_setup_with(state,
        "net: {beat_ms: 50, lease_ms: 20000, stall_s: 20}\ncoordinator: {listen: \"tcp://127.0.0.1:0\"}\n", false);
}

/*  A clock reading comes from a peer, too: it is added to and subtracted from. */
static void test_times_that_cannot_be(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    link_send_event_at(crew.learner, "first_step", "", 0, INT64_MIN);
    link_send_stats_at(crew.learner, 1, 1, INT64_MAX);
    link_send_event_at(crew.learner, "solved", "", 128, INT64_MAX);
    link_send_stats_at(crew.learner, 1, 2, INT64_MIN);
    link_send_event_at(crew.learner, "finished", "{\"env_steps\":256,\"updates\":2}", 256, -1);
    link_skip(crew.learner, TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    json_t *result = run_result(run);
    assert_true(number_in(result, "first_step_s") > 0);
    assert_true(number_in(result, "solved_at_s") >= number_in(result, "first_step_s"));
    assert_true(number_in(result, "wall_s") >= number_in(result, "solved_at_s"));
    json_decref(result);
    crew_leave(&crew);
}

static void test_a_run_from_hello_to_its_end(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    link_send_event(crew.learner, "first_step", "", 0);
    for (uint64_t update = 1; update <= 200; update++)
        link_send_stats(crew.learner, 1, update);
    link_send_event(crew.learner, "solved", "", 100 * 128);
    link_send_event(crew.learner, "finished",
        "{\"reason\":\"return_mean\",\"env_steps\":25600,\"updates\":200,"
        "\"weights_sha256\":\"ab\"}",
        25600);
    uint64_t newest = 0;
    int count = 0;
    for (bool ended = false; !ended;) { /* not every STATS, but the newest, and in order */
        tt_packet_clear(&packet);
        assert_ok(tt_link_wait(crew.controller, &packet, PATIENCE_MS));
        if (packet.msg.type == TT_MSG_STATS) {
            assert_true(packet.msg.STATS.update > newest);
            newest = packet.msg.STATS.update;
            count++;
        }
        ended = packet.msg.type == TT_MSG_EVENT && strcmp(packet.msg.EVENT.kind, "finished") == 0;
    }
    assert_int_equal(newest, 200);
    assert_true(count <= 2 + (tt_now_ns(tt_clock_real()) - run->start_ns) / 50000000);
    json_t *summary = json_loads(packet.msg.EVENT.text, 0, NULL), *result = run_result(run);
    assert_non_null(summary);
    assert_true(json_equal(summary, result));
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "succeeded");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "return_mean");
    assert_string_equal(json_string_value(json_object_get(summary, "weights_sha256")), "ab");
    assert_true(number_in(summary, "env_steps") == 25600);
    assert_true(number_in(summary, "solved_at_steps") == 12800);
    assert_true(number_in(summary, "first_step_s") > 0);
    assert_true(number_in(summary, "solved_at_s") >= number_in(summary, "first_step_s"));
    assert_true(number_in(summary, "wall_s") >= number_in(summary, "solved_at_s"));
    assert_true(number_in(summary, "sps") > 0);
    assert_true(number_in(summary, "rolled_back") == 0);
    json_decref(summary);
    json_decref(result);
    tt_packet_clear(&packet);
    link_skip(crew.learner, TT_MSG_STOP);
    link_skip(crew.collectors[0], TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    crew_leave(&crew);

    char path[256], line[4096];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        assert_true(number_in(object, "updates") == ++lines);
        assert_true(number_in(object, "losses/policy_loss") == 0.25);
        json_decref(object);
    }
    fclose(file);
    assert_int_equal(lines, 200);
}

static void test_scaling_a_running_job(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "scale", "{\"collector\": 9}", &packet), TT_INVALID);
    assert_string_equal(
        packet.msg.REPLY.body, "9 collectors; at most 8 have work (num_envs: every one needs an environment)");
    tt_packet_clear(&packet);
    assert_int_equal(link_ask(client, "scale", "{\"robot\": 1}", &packet), TT_INVALID);
    tt_packet_clear(&packet);
    assert_int_equal(link_ask(client, "scale", "{", &packet), TT_INVALID);
    tt_packet_clear(&packet);
    assert_int_equal(link_ask(client, "dance", "", &packet), TT_USAGE);
    tt_packet_clear(&packet);

    assert_int_equal(link_ask(client, "scale", "{\"collector\": 3, \"learner\": 2}", &packet), TT_OK);
    tt_packet_clear(&packet);
    do {
        tt_packet_clear(&packet);
        link_expect(crew.controller, TT_MSG_SCALE, &packet);
    } while (packet.msg.SCALE.counts[0].desired != 3);
    assert_int_equal(packet.msg.SCALE.counts[1].desired, 2);
    assert_int_equal(packet.msg.SCALE.counts[2].desired, 1); /* gradients of two learners need it */
    tt_packet_clear(&packet);
    tt_link_t *third = run_link(run, TT_PEER_COLLECTOR, 2);
    link_expect_roster(third, 3, 1, &packet);
    uint32_t next = 0;
    for (size_t i = 0; i < packet.msg.ROSTER.members_count; i++) {
        if (packet.msg.ROSTER.members[i].role != TT_PEER_COLLECTOR)
            continue;
        assert_int_equal(packet.msg.ROSTER.members[i].env_lo, next);
        next += packet.msg.ROSTER.members[i].env_count;
    }
    assert_int_equal(next, 8);
    tt_packet_clear(&packet);

    assert_int_equal(link_ask(client, "scale", "{\"collector\": 1}", &packet), TT_OK);
    tt_packet_clear(&packet);
    link_skip_roster(crew.collectors[0], 1, 1);
    link_skip(crew.collectors[1], TT_MSG_DRAIN);
    link_skip(third, TT_MSG_DRAIN);
    const tt_msg_DRAINED_t drained = TT_MSG(DRAINED, .reason = NULL);
    assert_ok(tt_link_send(third, &drained));
    tt_link_destroy(&third);
    for (;;) {
        json_t *status = link_status(client);
        const size_t members = json_array_size(json_object_get(status, "members"));
        const json_t *counts = json_object_get(json_object_get(status, "replicas"), "collector");
        assert_true(number_in(counts, "desired") == 1);
        assert_true(number_in(counts, "ready") == 1);
        json_decref(status);
        if (members == 3) /* the first collector, the learner, and the victim that has not drained */
            break;
    }
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_stop_lets_rank_0_finish(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "watch", "", &packet), TT_OK);
    tt_packet_clear(&packet);
    assert_int_equal(link_ask(client, "stop", "{\"reason\": \"enough\", \"code\": 130}", &packet), TT_OK);
    tt_packet_clear(&packet);
    for (int i = 0; i < 2; i++) { /* with its heartbeats again: a connection may have lost it */
        link_expect(crew.learner, TT_MSG_STOP, &packet);
        assert_true(packet.msg.STOP.finish);
        assert_int_equal(packet.msg.STOP.code, 130);
        tt_packet_clear(&packet);
    }
    link_send_event(crew.learner, "finished", "{\"reason\":\"enough\",\"env_steps\":128}", 128);
    link_expect(client, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "finished");
    json_t *summary = json_loads(packet.msg.EVENT.text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "stopped");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "enough");
    json_decref(summary);
    tt_packet_clear(&packet);
    link_skip(crew.collectors[1], TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_an_order_to_stop_that_is_none(void **state)
{
    static const struct {
        const char *body, *words;
    } wrong[] = {
        {"{\"now\": \"yes\"}", "now must be true or false"},
        {"{\"now\": true, \"reason\": 5}", "reason must be a string"},
        {"{\"foo\": 1}", "no key 'foo'; there are reason and now"},
        {"{\"code\": \"1\"}", "code must be a number from 0 to 255"},
        {"{\"code\": 256}", "code must be a number from 0 to 255"},
        {"[]", "expected a JSON object, for example {\"reason\": \"enough\"}"},
    };
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    for (size_t i = 0; i < TT_COUNT(wrong); i++) {
        assert_int_equal(link_ask(client, "stop", wrong[i].body, &packet), TT_INVALID);
        assert_string_equal(packet.msg.REPLY.body, wrong[i].words);
        tt_packet_clear(&packet);
    }
    json_t *status = link_status(client);
    assert_string_equal(json_string_value(json_object_get(status, "phase")), "running");
    json_decref(status);
    assert_int_equal(link_ask(client, "stop", "{\"now\": true}", &packet), TT_OK);
    tt_packet_clear(&packet);
    link_skip(crew.learner, TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_a_failure_ends_the_run_with_its_code(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    const char *why = "env CartPole-v1 crashed";
    const tt_msg_EVENT_t event =
        TT_MSG(EVENT, .kind = (char *)(uintptr_t) "failed", .text = (char *)(uintptr_t)why, .code = 70);
    assert_ok(tt_link_send(crew.collectors[1], &event));
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "failed");
    assert_string_equal(packet.msg.EVENT.text, "collector/1: env CartPole-v1 crashed");
    assert_int_equal(packet.msg.EVENT.code, 70);
    tt_packet_clear(&packet);
    assert_int_equal(run_wait(run), 70);
    run_start(run); /* killed after the end was journaled, and started again: the run does not begin anew */
    assert_int_equal(run_wait(run), 70);
    json_t *result = run_result(run);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "failed");
    json_decref(result);
    crew_leave(&crew);
}

/*  One that finds no card, before anybody has the weights; the end of that. */
static void s_find_no_card(const run_t *run, int index, int code)
{
    tt_link_t *learner = run_link(run, TT_PEER_LEARNER, index);
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t) "failed",
        .text = (char *)(uintptr_t) "no card is visible", .code = (uint32_t)code);
    link_skip(learner, TT_MSG_WELCOME);
    assert_ok(tt_link_send(learner, &event));
    tt_link_destroy(&learner);
}

static void test_who_came_by_hand_and_cannot_help_ends_nothing(void **state)
{
    run_t *run = *state;
    tt_packet_t packet = {0};
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "watch", "", &packet), TT_OK);
    tt_packet_clear(&packet);
    s_find_no_card(run, -1, 69);
    link_expect(client, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "warning");
    assert_non_null(strstr(packet.msg.EVENT.text, "no card is visible"));
    tt_packet_clear(&packet);
    json_t *status = link_status(client);
    assert_string_equal(json_string_value(json_object_get(status, "phase")), "starting");
    json_decref(status);
    tt_link_destroy(&client);
}

/*  What is wrong with the job is wrong for everybody. */
static void test_who_came_by_hand_and_finds_the_job_wrong_ends_it(void **state)
{
    s_find_no_card(*state, -1, 78);
    assert_int_equal(run_wait(*state), 78);
}

/*  Of the run's own there is no other. */
static void test_a_learner_of_the_runs_own_that_cannot_learn_ends_it(void **state)
{
    s_find_no_card(*state, 0, 69);
    assert_int_equal(run_wait(*state), 69);
}

static void s_say_no_card(tt_link_t *link)
{
    const tt_msg_EVENT_t event = TT_MSG(
        EVENT, .kind = (char *)(uintptr_t) "failed", .text = (char *)(uintptr_t) "no card is visible", .code = 69);
    assert_ok(tt_link_send(link, &event));
}

static void s_say_waiting(tt_link_t *collector, const char *text)
{
    const tt_msg_EVENT_t event =
        TT_MSG(EVENT, .kind = (char *)(uintptr_t) "waiting", .text = (char *)(uintptr_t)text, .code = 0);
    assert_ok(tt_link_send(collector, &event));
}

/*  Each of them has an environment that takes long; that is told once, behind which the next event comes. */
static void test_collectors_that_wait_for_their_environments_are_told_of_once(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    s_say_waiting(crew.collectors[0], "collectors wait for the environment ./slow.so");
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "waiting");
    assert_string_equal(packet.msg.EVENT.text, "collectors wait for the environment ./slow.so");
    tt_packet_clear(&packet);
    s_say_waiting(crew.collectors[1], "collectors wait for the environment ./slow.so");
    s_say_no_card(crew.collectors[1]);
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "failed");
    tt_packet_clear(&packet);
    assert_int_equal(run_wait(run), 69);
    crew_leave(&crew);
}

/*  It has made steps, and the coordinator knows. */
static void s_play(const run_t *run, tt_link_t *collector)
{
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    tt_link_progress(collector, 8);
    tt_link_state(collector, "idle: has played");
    for (bool known = false; !known;) {
        size_t i;
        json_t *status = link_status(client), *member;
        json_array_foreach(json_object_get(status, "members"), i, member) known |=
            strcmp(json_string_value(json_object_get(member, "state")), "idle: has played") == 0;
        json_decref(status);
    }
    tt_link_destroy(&client);
}

static void test_a_collector_that_cannot_play_ends_the_run(void **state)
{
    crew_t crew;
    crew_begin(*state, &crew);
    s_say_no_card(crew.collectors[1]);
    assert_int_equal(run_wait(*state), 69);
    crew_leave(&crew);
}

/*  But not while another one plays; nor is that one's own failure borne. */
static void test_a_collector_that_cannot_play_beside_one_that_does(void **state)
{
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(*state, &crew);
    s_play(*state, crew.collectors[0]);
    s_say_no_card(crew.collectors[1]);
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "warning");
    assert_string_equal(packet.msg.EVENT.text, "no card is visible");
    tt_packet_clear(&packet);
    s_say_no_card(crew.collectors[0]);
    assert_int_equal(run_wait(*state), 69);
    crew_leave(&crew);
}

static void s_tell_end(const crew_t *crew, uint32_t index)
{
    const tt_msg_REPLICA_t ended =
        TT_MSG(REPLICA, .role = TT_PEER_COLLECTOR, .index = index, .alive = false, .code = 69);
    assert_ok(tt_link_send(crew->controller, &ended));
}

/*  It makes no difference whether its end or its last words are read first. */
static void test_one_that_cannot_play_has_ended_before_its_words_are_read(void **state)
{
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(*state, &crew);
    s_play(*state, crew.collectors[0]);
    s_tell_end(&crew, 1);
    link_skip_roster(crew.learner, 1, 1);
    s_say_no_card(crew.collectors[1]);
    link_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "warning");
    assert_string_equal(packet.msg.EVENT.text, "no card is visible");
    tt_packet_clear(&packet);
    s_tell_end(&crew, 0);
    link_skip_roster(crew.learner, 0, 1);
    s_say_no_card(crew.collectors[0]); /* it had played */
    assert_int_equal(run_wait(*state), 69);
    crew_leave(&crew);
}

/*  Until it has counted so many; the status then, the caller's. */
static json_t *s_await_unsaved(tt_link_t *client, double total, bool now)
{
    for (const int64_t end = tt_now_ms(tt_clock_real()) + PATIENCE_MS;;) {
        json_t *status = link_status(client);
        if (number_in(status, "snapshot_failures") >= total &&
            json_is_object(json_object_get(status, "snapshot_failure")) == now)
            return status;
        json_decref(status);
        assert_true(tt_now_ms(tt_clock_real()) < end);
    }
}

/*  It is said for as long as it lasts, and since when. */
static void test_snapshots_that_fail_are_told(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    link_send_event(crew.collectors[0], "unsaved", "it does not lead", 0);
    link_send_event_at(crew.learner, "unsaved", "the disk is full", 128, run->start_ns + 2000000);
    link_send_event_at(crew.learner, "unsaved", "no right to", 256, run->start_ns + 3000000);
    json_t *status = s_await_unsaved(client, 2, true);
    const json_t *failure = json_object_get(status, "snapshot_failure");
    assert_true(number_in(status, "snapshot_failures") == 2);
    assert_string_equal(json_string_value(json_object_get(failure, "reason")), "no right to");
    assert_true(number_in(failure, "failures") == 2);
    assert_true(fabs(number_in(failure, "since_s") - 0.002) < 1e-6);
    json_decref(status);
    link_send_event(crew.learner, "snapshot", "checkpoints/3.safetensors", 3 * 128);
    status = s_await_unsaved(client, 2, false); /* it was told, and the count stays */
    assert_true(number_in(status, "snapshot_failures") == 2);
    assert_true(json_is_null(json_object_get(status, "snapshot_failure")));
    json_decref(status);
    link_send_event(crew.learner, "unsaved", "again", 4 * 128);
    status = s_await_unsaved(client, 3, true);
    assert_true(number_in(json_object_get(status, "snapshot_failure"), "failures") == 1);
    json_decref(status);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

static void test_sigterm_stops_the_run(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    kill(run->coordinator, SIGTERM);
    link_expect(crew.learner, TT_MSG_STOP, &packet);
    assert_true(packet.msg.STOP.finish);
    tt_packet_clear(&packet);
    kill(run->coordinator, SIGTERM); /* a second one: at once */
    link_skip(crew.collectors[0], TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    crew_leave(&crew);
}

static void test_two_coordinators_in_one_run_directory(void **state)
{
    run_t *run = *state;
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    json_decref(link_status(client)); /* it is up */
    run_t second = *run;
    second.coordinator = run_spawn(run);
    assert_int_equal(run_wait(&second), tt_status_exit_code(TT_EXISTS));
    json_decref(link_status(client)); /* and the first one goes on */
    tt_link_destroy(&client);
}

static void test_other_versions_and_numbers_in_use_are_refused(void **state)
{
    run_t *run = *state;
    tt_packet_t packet = {0};
    tt_link_t *first = run_link(run, TT_PEER_COLLECTOR, 3);
    link_skip(first, TT_MSG_WELCOME);
    tt_link_t *second = run_link(run, TT_PEER_COLLECTOR, 3);
    assert_int_equal(tt_link_wait(second, &packet, PATIENCE_MS), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "collector/3 is in use"));
    tt_link_destroy(&second);
    tt_link_destroy(&first);

    tt_sock_t *sock = NULL;
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = 99, .role = TT_PEER_COLLECTOR, .index = 4, .instance = 5);
    assert_ok(tt_sock_new(&sock, TT_DEALER, &(tt_sock_opts_t){.name = "old", .identity = "collector/4/5"}));
    assert_ok(tt_sock_connect(sock, run->endpoint));
    assert_ok(tt_sock_send(sock, NULL, &hello, NULL, 0));
    const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    while (tt_sock_recv(sock, &packet) == TT_AGAIN && tt_now_ms(tt_clock_real()) < until)
        usleep(1000); /* a bare socket has nothing to wait on */
    assert_int_equal(packet.msg.type, TT_MSG_REFUSED);
    assert_non_null(strstr(packet.msg.REFUSED.reason, "wire version 99"));
    tt_packet_clear(&packet);
    tt_sock_destroy(&sock);
}

static void test_other_hosts_join_over_tcp_and_http_is_served(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[256], reply[512];
    tt_keys_t keys;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1), *remote = NULL;
    json_t *status = link_status(client);
    while (!json_is_string(json_object_get(status, "http"))) {
        json_decref(status);
        status = link_status(client);
    }
    snprintf(path, sizeof path, "%s/key", run->dir);
    assert_ok(tt_keys_read(&keys, path));
    const tt_link_opts_t opts = {.endpoint = json_string_value(json_object_get(status, "listen")),
        .keys = &keys,
        .role = TT_PEER_COLLECTOR,
        .index = -1};
    assert_ok(tt_link_start(&remote, &opts));
    link_skip_roster(remote, 3, 1);
    assert_int_equal(tt_link_index(remote), 10000);

    snprintf(reply, sizeof reply, "curl -sf %s/healthz >/dev/null", json_string_value(json_object_get(status, "http")));
    if (system("command -v curl >/dev/null") == 0)
        assert_int_equal(system(reply), 0);
    snprintf(path, sizeof path, "%s/http.json", run->dir);
    assert_int_equal(access(path, R_OK), 0);
    json_decref(status);
    assert_int_equal(link_ask(client, "stop", "{\"now\": true}", &packet), TT_OK);
    tt_packet_clear(&packet);
    link_skip(remote, TT_MSG_STOP);
    assert_int_equal(run_wait(run), 0);
    tt_link_destroy(&remote);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_times_that_cannot_be, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_from_hello_to_its_end, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_scaling_a_running_job, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_stop_lets_rank_0_finish, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_an_order_to_stop_that_is_none, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_failure_ends_the_run_with_its_code, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_collectors_that_wait_for_their_environments_are_told_of_once, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_collector_that_cannot_play_ends_the_run, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_collector_that_cannot_play_beside_one_that_does, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_one_that_cannot_play_has_ended_before_its_words_are_read, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_who_came_by_hand_and_cannot_help_ends_nothing, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_who_came_by_hand_and_finds_the_job_wrong_ends_it, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_learner_of_the_runs_own_that_cannot_learn_ends_it, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_that_fail_are_told, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_sigterm_stops_the_run, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_two_coordinators_in_one_run_directory, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_other_versions_and_numbers_in_use_are_refused, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_other_hosts_join_over_tcp_and_http_is_served, s_setup_open, run_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
