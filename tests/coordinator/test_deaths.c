/*  Whoever dies: a collector, a learner, the coordinator, its journal; and what the run goes on from. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "coordinator/journal.h"
#include "tests/coordinator/crew.h"
#include "tests/snapshot/sample.h"

static void test_a_killed_coordinator_comes_back(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "scale", "{\"collector\": 3}", &packet), TT_OK);
    tt_packet_clear(&packet);
    run_wait_for_holds(run);
    run_kill(run);
    run_start(run);
    link_expect_roster(crew.collectors[0], 2, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 1); /* nobody lost anything */
    assert_true(packet.msg.ROSTER.epoch >= 2);
    assert_true(packet.msg.ROSTER.generation >= 2);
    assert_false(packet.msg.ROSTER.fresh);
    tt_packet_clear(&packet);
    json_t *status = link_status(client);
    assert_true(number_in(json_object_get(json_object_get(status, "replicas"), "collector"), "desired") == 3);
    assert_true(number_in(status, "rolled_back") == 0);
    json_decref(status);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

/*  As after a reboot, or on another host. */
static void s_change_clock(const run_t *run, int64_t start_ns)
{
    journal_t *journal = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s/journal.db", run->dir);
    assert_ok(journal_open(&journal, path));
    assert_ok(journal_clock(journal, start_ns, "another boot"));
    journal_close(&journal);
}

/*  One that is not told when the run's process started goes by its journal, but not by another clock. */
static void test_times_of_another_boot_are_not_believed(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    run_kill(run);
    s_change_clock(run, tt_now_ns(tt_clock_real()) + INT64_C(86400000000000));
    run->start_ns = 0;
    run_start(run);
    link_skip_roster(crew.learner, 2, 1);
    json_t *status = link_status(crew.controller);
    const double start_ns = number_in(status, "start_ns");
    assert_true(start_ns > 0 && start_ns <= (double)tt_now_ns(tt_clock_real()));
    assert_true(number_in(status, "era") == 1);
    json_decref(status);
    run_kill(run);
    run_start(run); /* the same boot now */
    link_skip_roster(crew.learner, 2, 1);
    status = link_status(crew.controller);
    assert_true(number_in(status, "start_ns") == start_ns);
    json_decref(status);
    crew_leave(&crew);
}

/*  What others had trained before the clock began anew is no speed of ours. */
static void test_steps_of_another_boot_are_not_counted(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    run_kill(run);
    s_change_clock(run, 1);
    run->start_ns = 0;
    run_start(run);
    link_skip_roster(crew.learner, 2, 1);
    link_send_stats(crew.learner, 1, 1000000);
    link_send_event(crew.learner, "finished", "{\"reason\":\"env_steps\",\"env_steps\":128000128}", 128000128);
    assert_int_equal(run_wait(run), 0);
    json_t *result = run_result(run);
    const double since_first = number_in(result, "wall_s") - number_in(result, "first_step_s");
    assert_true(fabs(number_in(result, "sps") * since_first - 128) < 1);
    json_decref(result);
    crew_leave(&crew);
}

/*  HELLO of a collector, over a socket of its own. */
static void s_say_hello(tt_sock_t *sock)
{
    const tt_msg_HELLO_t hello = TT_MSG(HELLO, .wire = TT_WIRE_VERSION, .software = (char[]){"test"},
        .role = TT_PEER_COLLECTOR, .index = 5, .instance = 0x4d, .pid = (uint32_t)getpid(), .host = (char[]){"here"});
    assert_ok(tt_sock_send(sock, NULL, &hello, NULL, 0));
}

static tt_sock_t *s_dealer(const run_t *run, const char *identity)
{
    tt_sock_t *sock = NULL;
    assert_ok(tt_sock_new(&sock, TT_DEALER, &(tt_sock_opts_t){.name = "member", .identity = identity}));
    assert_ok(tt_sock_connect(sock, run->endpoint));
    return sock;
}

/*  The first that comes. */
static void s_expect_answer(tt_sock_t *sock, tt_packet_t *packet)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    while (tt_sock_recv(sock, packet) != TT_OK) {
        assert_true(tt_now_ms(tt_clock_real()) < until);
        poll(NULL, 0, 1); /* a bare socket has nothing to wait on */
    }
}

/*  A member whose coordinator comes back just when it connects anew has a HELLO under way on either connection; the older one
 *  has lost its name to the newer by the time it is read. It must not stand in its own way. */
static void test_a_connection_that_lost_its_name_is_nobody(void **state)
{
    run_t *run = *state;
    tt_packet_t packet = {0};
    tt_sock_t *older = s_dealer(run, NULL), *newer = s_dealer(run, "collector/5/000000000000004d");
    s_say_hello(older);
    assert_ok(tt_sock_send(older, NULL, &TT_MSG(HEARTBEAT, .seq = 1, .state = (char[]){"idle"}), NULL, 0));
    s_expect_answer(older, &packet); /* by now its HELLO was read: another connection's answer would not say that */
    assert_int_equal(packet.msg.type, TT_MSG_HEARTBEAT);
    assert_true(packet.msg.HEARTBEAT.hello);
    tt_packet_clear(&packet);
    s_say_hello(newer);
    s_expect_answer(newer, &packet);
    assert_int_equal(packet.msg.type, TT_MSG_WELCOME);
    tt_packet_clear(&packet);
    tt_sock_destroy(&older);
    tt_sock_destroy(&newer);
    run_kill(run);
}

/*  The learner has the weights, though another member of the last roster is not back yet and there is none without it. */
static void test_a_stop_waits_for_those_who_come_back(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    run_kill(run);
    tt_link_destroy(&crew.collectors[1]);
    run_start(run);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "stop", "{\"reason\": \"enough\", \"code\": 130}", &packet), TT_OK);
    tt_packet_clear(&packet);
    crew.collectors[1] = run_link(run, TT_PEER_COLLECTOR, 1);
    link_skip(crew.learner, TT_MSG_STOP);
    link_send_event(crew.learner, "finished", "{\"reason\":\"enough\",\"env_steps\":128}", 128);
    assert_int_equal(run_wait(run), 0);
    json_t *result = run_result(run);
    assert_true(number_in(result, "env_steps") == 128);
    json_decref(result);
    tt_link_destroy(&client);
    crew_leave(&crew);
}

/*  That somebody asked for it, rank 0 alone knows then. */
static void test_a_stop_outlives_its_coordinator(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(link_ask(client, "stop", "{\"reason\": \"enough for today\"}", &packet), TT_OK);
    tt_packet_clear(&packet);
    tt_link_destroy(&client); /* nobody says it again */
    link_skip(crew.learner, TT_MSG_STOP);
    run_kill(run);
    run_start(run);
    link_skip_roster(crew.learner, 2, 1);
    link_send_event(crew.learner, "finished", "{\"reason\":\"enough for today\",\"env_steps\":128}", 128);
    link_expect(crew.collectors[0], TT_MSG_STOP, &packet);
    assert_string_equal(packet.msg.STOP.reason, "enough for today");
    tt_packet_clear(&packet);
    assert_int_equal(run_wait(run), 0);
    json_t *result = run_result(run);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "stopped");
    assert_string_equal(json_string_value(json_object_get(result, "reason")), "enough for today");
    json_decref(result);
    crew_leave(&crew);
}

static void test_a_dead_collector_is_noticed(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = TT_PEER_COLLECTOR, .index = 1, .alive = false, .code = 137);
    tt_link_destroy(&crew.collectors[1]);
    assert_ok(tt_link_send(crew.controller, &ended));
    link_expect_roster(crew.collectors[0], 1, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 1);
    tt_packet_clear(&packet);
    crew_leave(&crew);
}

static void s_tell_clean_end(const crew_t *crew, uint32_t index, uint32_t pid)
{
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = TT_PEER_COLLECTOR, .index = index, .pid = pid);
    assert_ok(tt_link_send(crew->controller, &ended));
}

/*  The controller cannot know whether somebody told it to go: the answer comes behind what it would have to know. Any other
 *  end needs none. */
static void test_a_clean_end_is_answered(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    const tt_msg_REPLICA_t killed = TT_MSG(REPLICA, .role = TT_PEER_COLLECTOR, .index = 1, .pid = 77, .code = 137);
    assert_ok(tt_link_send(crew.controller, &killed));
    s_tell_clean_end(&crew, 1, 78);
    link_expect(crew.controller, TT_MSG_REPLICA, &packet);
    assert_int_equal(packet.msg.REPLICA.role, TT_PEER_COLLECTOR);
    assert_int_equal(packet.msg.REPLICA.index, 1);
    assert_int_equal(packet.msg.REPLICA.pid, 78);
    assert_false(packet.msg.REPLICA.alive);
    tt_packet_clear(&packet);
    crew_leave(&crew);
}

static void s_make_snapshot(const run_t *run, tt_link_t *learner, char *path, size_t size)
{
    snprintf(path, size, "%s/checkpoints", run->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    sample_write(path, "00000007.safetensors", 7);
    snprintf(path, size, "%s/checkpoints/00000007.safetensors", run->dir);
    link_send_event(learner, "snapshot", path, 7 * 128);
}

static void s_tell_end(const crew_t *crew, tt_peer_role_t role, uint32_t index)
{
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = role, .index = index, .code = 70);
    assert_ok(tt_link_send(crew->controller, &ended));
}

/*  The end of a process is told on another connection than its last words, which may be read later. */
static void test_last_words_count(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512];
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    s_tell_end(&crew, TT_PEER_LEARNER, 0);
    link_skip_roster(crew.collectors[0], 2, 0);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    for (const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
         link_ask(crew.controller, "snapshot", "", &packet) != TT_OK; tt_packet_clear(&packet))
        assert_true(tt_now_ms(tt_clock_real()) < until);
    tt_packet_clear(&packet);
    tt_link_t *next = run_link(run, TT_PEER_LEARNER, 0);
    link_expect_roster(next, 2, 1, &packet);
    assert_string_equal(packet.msg.ROSTER.restore, path);
    tt_packet_clear(&packet);
    s_tell_end(&crew, TT_PEER_COLLECTOR, 1);
    link_skip_roster(crew.collectors[0], 1, 1);
    const tt_msg_EVENT_t event =
        TT_MSG(EVENT, .kind = (char *)(uintptr_t) "failed", .text = (char *)(uintptr_t) "it crashed", .code = 70);
    assert_ok(tt_link_send(crew.collectors[1], &event));
    assert_int_equal(run_wait(run), 70);
    tt_link_destroy(&next);
    crew_leave(&crew);
}

static void test_a_lost_learner_rolls_back_and_a_moved_run_resumes(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512], moved[sizeof run->dir];
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    tt_link_destroy(&crew.learner);
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = TT_PEER_LEARNER, .index = 0, .code = 137);
    assert_ok(tt_link_send(crew.controller, &ended));
    link_skip_roster(crew.collectors[0], 2, 0);
    crew.learner = run_link(run, TT_PEER_LEARNER, 0);
    link_expect_roster(crew.learner, 2, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 2);
    assert_true(packet.msg.ROSTER.fresh);
    assert_string_equal(packet.msg.ROSTER.restore, path);
    tt_packet_clear(&packet);
    run_kill(run);
    crew_leave(&crew);

    snprintf(moved, sizeof moved, "%s", run->dir);
    strcat(run->dir, "-moved");
    assert_int_equal(rename(moved, run->dir), 0);
    snprintf(run->endpoint, sizeof run->endpoint, "ipc://%s/sock/control", run->dir);
    run->start_ns++; /* another session */
    run_start(run);
    crew_begin(run, &crew);
    json_t *status = link_status(crew.controller);
    assert_true(number_in(status, "era") == 3);
    assert_true(number_in(status, "rolled_back") == 2);
    assert_true(number_in(json_object_get(status, "snapshot"), "updates") == 7);
    json_decref(status);
    crew_leave(&crew);
}

/*  Until a line is in metrics.jsonl. */
static void s_wait_for_metrics(const run_t *run)
{
    char path[512];
    struct stat info = {0};
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->dir);
    for (const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS; info.st_size == 0;) {
        assert_true(tt_now_ms(tt_clock_real()) < until);
        if (stat(path, &info) != 0)
            info.st_size = 0;
        poll(NULL, 0, 5);
    }
}

/*  A snapshot of update 7, and a STATS of update 9 that came after it. */
static void s_get_beyond_a_snapshot(const run_t *run, const crew_t *crew)
{
    char path[512];
    run_wait_for_holds(run);
    s_make_snapshot(run, crew->learner, path, sizeof path);
    link_send_stats(crew->learner, 1, 9);
    s_wait_for_metrics(run);
}

static void s_ends_at_the_snapshot(run_t *run, tt_link_t *client)
{
    tt_packet_t packet = {0};
    assert_int_equal(link_ask(client, "stop", "{\"now\": true}", &packet), TT_OK);
    tt_packet_clear(&packet);
    assert_int_equal(run_wait(run), 0);
    json_t *result = run_result(run);
    assert_true(number_in(result, "updates") == 7);
    assert_true(number_in(result, "env_steps") == 7 * 128);
    assert_true(json_is_null(json_object_get(result, "episodes")));
    json_decref(result);
}

/*  The learner that is to begin an era has not yet: it is told the same again, and is heard when it cannot. */
static void test_an_era_that_was_beginning_is_told_again(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char folder[512];
    tt_packet_t packet = {0};
    crew_begin(run, &crew);
    s_get_beyond_a_snapshot(run, &crew);
    run_kill(run);
    crew_leave(&crew);
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    sample_write(folder, "00000005.safetensors", 5);
    run->start_ns++; /* another session */
    run_start(run);
    crew.controller = run_link(run, TT_PEER_CONTROLLER, 0);
    for (int i = 0; i < 2; i++)
        crew.collectors[i] = run_link(run, TT_PEER_COLLECTOR, i);
    crew.learner = run_link(run, TT_PEER_LEARNER, 0);
    for (int i = 0; i < 2; i++) {
        link_expect_roster(crew.learner, 2, 1, &packet);
        assert_int_equal(packet.msg.ROSTER.era, 2);
        assert_true(packet.msg.ROSTER.fresh);
        assert_non_null(strstr(packet.msg.ROSTER.restore, "/checkpoints/00000007.safetensors"));
        tt_packet_clear(&packet);
        if (i > 0)
            break;
        run_kill(run);
        run_start(run);
    }
    link_send_event(crew.learner, "damaged", "00000007.safetensors: its replay is gone", 0);
    link_expect_roster(crew.learner, 2, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 3);
    assert_non_null(strstr(packet.msg.ROSTER.restore, "/checkpoints/00000005.safetensors"));
    tt_packet_clear(&packet);
    crew_leave(&crew);
}

/*  What it counts is of the whole run. */
static void test_a_life_without_an_update_ends_at_its_snapshot(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    s_get_beyond_a_snapshot(run, &crew);
    run_kill(run);
    crew_leave(&crew);
    run->start_ns++; /* another session */
    run_start(run);
    crew_begin(run, &crew);
    s_ends_at_the_snapshot(run, crew.controller);
    crew_leave(&crew);
}

/*  What came after the snapshot is void. */
static void test_an_era_without_an_update_ends_at_its_snapshot(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    s_get_beyond_a_snapshot(run, &crew);
    s_tell_end(&crew, TT_PEER_LEARNER, 0);
    link_skip_roster(crew.collectors[0], 2, 0);
    tt_link_t *next = run_link(run, TT_PEER_LEARNER, 0);
    link_skip_roster(next, 2, 1);
    s_ends_at_the_snapshot(run, crew.controller);
    tt_link_destroy(&next);
    crew_leave(&crew);
}

static void s_lose_journal(const run_t *run, const char *how)
{
    static const char *const parts[] = {"journal.db", "journal.db-wal", "journal.db-shm"};
    char path[512];
    for (size_t i = strcmp(how, "no log") == 0; i < TT_COUNT(parts); i++) {
        snprintf(path, sizeof path, "%s/%s", run->dir, parts[i]);
        assert_int_equal(unlink(path), 0);
    }
    if (strcmp(how, "empty") == 0)
        sample_save(run->dir, parts[0], "", 0);
}

/*  The journal is gone, or empty, or its log is: the newest snapshot that is whole is adopted, what is damaged passed over,
 *  and eras count on from the metrics that are there. */
static void s_adopts(run_t *run, const char *journal)
{
    crew_t crew;
    char path[512], folder[512];
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    link_send_stats(crew.learner, 1, 9);
    s_wait_for_metrics(run);
    run_kill(run);
    crew_leave(&crew);
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    sample_write(folder, "00000009.safetensors", 9); /* the journal did not hear of it */
    sample_write(folder, "00000011.safetensors", 11);
    sample_damage(folder, "00000011.safetensors");
    s_lose_journal(run, journal);
    run->start_ns++; /* another session */
    run_start(run);
    crew_begin(run, &crew);
    snprintf(path, sizeof path, "%s/checkpoints/00000009.safetensors", run->dir);
    assert_string_equal(crew.restore, path);
    json_t *status = link_status(crew.controller);
    const json_t *from = json_object_get(status, "restored_from");
    assert_true(number_in(status, "era") > 1);
    assert_true(number_in(from, "updates") == 9);
    assert_true(json_is_true(json_object_get(from, "adopted")));
    const json_t *bad = json_array_get(json_object_get(from, "passed_over"), 0);
    assert_string_equal(json_string_value(json_object_get(bad, "snapshot")), "checkpoints/00000011.safetensors");
    assert_non_null(strstr(json_string_value(json_object_get(bad, "reason")), "damaged"));
    json_decref(status);
    crew_leave(&crew);
}

static void test_without_its_journal_a_snapshot_is_adopted(void **state)
{
    s_adopts(*state, "gone");
}

static void test_with_an_empty_journal_a_snapshot_is_adopted(void **state)
{
    s_adopts(*state, "empty");
}

static void test_with_a_journal_without_its_log_a_snapshot_is_adopted(void **state)
{
    s_adopts(*state, "no log");
}

/*  Version 0 again would look like going on. */
static void test_where_no_snapshot_is_whole_the_run_does_not_begin_again(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512], folder[512];
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    run_kill(run);
    crew_leave(&crew);
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    sample_damage(folder, "00000007.safetensors");
    s_lose_journal(run, "gone");
    run->start_ns++;
    run_start(run);
    for (int i = 0; i < 2; i++)
        crew.collectors[i] = run_link(run, TT_PEER_COLLECTOR, i);
    crew.learner = run_link(run, TT_PEER_LEARNER, 0);
    crew.controller = run_link(run, TT_PEER_CONTROLLER, 0);
    assert_int_equal(run_wait(run), 65);
    crew_leave(&crew);
}

/*  A link to itself in its place: whoever opens it is refused. */
static void s_shut_snapshots(const run_t *run)
{
    char folder[512], moved[512];
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    snprintf(moved, sizeof moved, "%s/away", run->dir);
    assert_int_equal(rename(folder, moved), 0);
    assert_int_equal(symlink("checkpoints", folder), 0);
}

/*  What cannot be read is neither "none" nor "gone"; how it ends is not final, for it may pass. */
static void s_cannot_read(run_t *run, bool journal)
{
    crew_t crew;
    char path[512];
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    run_kill(run);
    crew_leave(&crew);
    s_shut_snapshots(run);
    if (!journal)
        s_lose_journal(run, "gone");
    run->start_ns++;
    run_start(run);
    for (int i = 0; i < 2 && !journal; i++)
        crew.collectors[i] = run_link(run, TT_PEER_COLLECTOR, i);
    if (!journal) {
        crew.learner = run_link(run, TT_PEER_LEARNER, 0);
        crew.controller = run_link(run, TT_PEER_CONTROLLER, 0);
    }
    assert_int_equal(run_wait(run), 74);
    if (!journal)
        crew_leave(&crew);
}

static void test_where_snapshots_cannot_be_read_the_run_does_not_begin_again(void **state)
{
    s_cannot_read(*state, false);
}

static void test_snapshots_that_cannot_be_read_are_not_gone(void **state)
{
    s_cannot_read(*state, true);
}

/*  Journal and snapshots are lost, metrics are there: whoever watches is told that the run begins anew. */
static void test_a_run_that_lost_all_says_that_it_begins_anew(void **state)
{
    run_t *run = *state;
    crew_t crew;
    crew_begin(run, &crew);
    run_wait_for_holds(run);
    link_send_stats(crew.learner, 1, 9);
    s_wait_for_metrics(run);
    run_kill(run);
    crew_leave(&crew);
    s_lose_journal(run, "gone");
    run->start_ns++;
    run_start(run);
    crew_begin(run, &crew);
    assert_string_equal(crew.restore, "");
    json_t *status = link_status(crew.controller);
    const json_t *from = json_object_get(status, "restored_from");
    assert_true(json_is_object(from) && json_is_null(json_object_get(from, "snapshot")));
    assert_true(number_in(from, "updates") == 0);
    json_decref(status);
    crew_leave(&crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_killed_coordinator_comes_back, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_times_of_another_boot_are_not_believed, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_steps_of_another_boot_are_not_counted, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_connection_that_lost_its_name_is_nobody, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_waits_for_those_who_come_back, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_outlives_its_coordinator, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_collector_is_noticed, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_clean_end_is_answered, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_last_words_count, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_a_lost_learner_rolls_back_and_a_moved_run_resumes, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_an_era_that_was_beginning_is_told_again, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_life_without_an_update_ends_at_its_snapshot, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_an_era_without_an_update_ends_at_its_snapshot, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_without_its_journal_a_snapshot_is_adopted, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_with_an_empty_journal_a_snapshot_is_adopted, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_with_a_journal_without_its_log_a_snapshot_is_adopted, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_where_snapshots_cannot_be_read_the_run_does_not_begin_again, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_that_cannot_be_read_are_not_gone, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_that_lost_all_says_that_it_begins_anew, run_setup, run_teardown),
        cmocka_unit_test_setup_teardown(
            test_where_no_snapshot_is_whole_the_run_does_not_begin_again, run_setup, run_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
