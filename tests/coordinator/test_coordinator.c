/*  The coordinator as a process of its own, driven by links: HELLO to the end of a run. */
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/net/link.h"
#include "tests/snapshot/sample.h"
#include "tests/test.h"

enum { PATIENCE_MS = 20000 };

typedef struct {
    char dir[128], endpoint[256], config[1024];
    pid_t coordinator;
    int64_t start_ns;
} run_t;

/*  Completed by a run's own lines. Nobody here is to be given up for silence, however long a process has to wait for the
 *  processor: the lease is as long as the patience. */
static const char s_common[] =
    "name: test\nseed: 1\nenv: CartPole-v1\nnum_envs: 8\nnum_steps: 16\nlag: 1\nalgorithm: {name: ppo}\n"
    "collector: {replicas: 2}\nlearner: {replicas: 1, shards: 4}\n"
    "space: {obs: 4, actions: 2, action_dims: 1, env_state: 16, threshold: 475}\n";
static const char s_local[] = "net: {beat_ms: 50, lease_ms: 20000, stall_s: 20}\ncoordinator: {http: \"\"}\n";
static const char s_open[] =
    "net: {beat_ms: 50, lease_ms: 20000, stall_s: 20}\ncoordinator: {listen: \"tcp://127.0.0.1:0\"}\n";
static const char s_watchful[] = "net: {beat_ms: 50, lease_ms: 20000, stall_s: 5}\ncoordinator: {http: \"\"}\n";
static const char s_hasty[] = "net: {beat_ms: 50, lease_ms: 20000, stall_s: 1}\ncoordinator: {http: \"\"}\n";

/* ---- a run directory and its coordinator --------------------------------------------------------------------------- */

/*  Exec: ZeroMQ's threads do not survive a fork. */
static pid_t s_spawn(const run_t *run)
{
    char start[32];
    snprintf(start, sizeof start, "%lld", (long long)run->start_ns);
    const pid_t child = fork();
    if (child == 0) {
        execl(
            TT_BINARY, TT_BINARY, "coordinator", "--run", run->dir, "--index", "0", "--start-ns", start, (char *)NULL);
        _exit(127);
    }
    return child;
}

static void s_start(run_t *run)
{
    run->coordinator = s_spawn(run);
}

static int s_setup_with(void **state, const char *own)
{
    run_t *run = tt_new0(sizeof *run);
    char path[256];
    snprintf(run->dir, sizeof run->dir, "/tmp/tt-coordinator-XXXXXX");
    if (!mkdtemp(run->dir))
        return -1;
    snprintf(run->config, sizeof run->config, "%s%s", s_common, own);
    snprintf(path, sizeof path, "%s/config.yaml", run->dir);
    FILE *file = fopen(path, "w");
    if (!file || fputs(run->config, file) < 0 || fclose(file) != 0)
        return -1;
    snprintf(run->endpoint, sizeof run->endpoint, "ipc://%s/sock/control", run->dir);
    run->start_ns = tt_now_ns(tt_clock_real());
    s_start(run);
    *state = run;
    return 0;
}

static int s_setup(void **state)
{
    return s_setup_with(state, s_local);
}

static int s_setup_open(void **state)
{
    return s_setup_with(state, s_open);
}

/*  Its crew has to be there before it says that nobody is. */
static int s_setup_watchful(void **state)
{
    return s_setup_with(state, s_watchful);
}

static int s_setup_hasty(void **state)
{
    return s_setup_with(state, s_hasty);
}

/*  The exit code; -signal when killed. */
static int s_wait(run_t *run)
{
    int status = 0;
    if (waitpid(run->coordinator, &status, 0) != run->coordinator)
        return -99;
    run->coordinator = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int s_teardown(void **state)
{
    run_t *run = *state;
    char command[256];
    if (run->coordinator) {
        kill(run->coordinator, SIGKILL);
        s_wait(run);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", run->dir);
    const int code = system(command);
    free(run);
    return code;
}

/* ---- links --------------------------------------------------------------------------------------------------------- */

static tt_link_t *s_link(const run_t *run, tt_peer_role_t role, int index)
{
    tt_link_t *link = NULL;
    const tt_link_opts_t opts = {.endpoint = run->endpoint,
        .role = role,
        .index = index,
        .data_ipc = role == TT_PEER_LEARNER ? "ipc:///tmp/nowhere.data" : NULL,
        .weights_ipc = role == TT_PEER_LEARNER ? "ipc:///tmp/nowhere.weights" : NULL};
    assert_ok(tt_link_start(&link, &opts));
    return link;
}

/*  Wait for a message of this kind; others are dropped. */
static void s_expect(tt_link_t *link, tt_msg_id_t type, tt_packet_t *out)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
    while (tt_now_ms(tt_clock_real()) < until) {
        const tt_status_t status = tt_link_wait(link, out, until - tt_now_ms(tt_clock_real()));
        if (status != TT_OK)
            fail_msg("waiting for %s: %s: %s", tt_msg_name(type), tt_status_name(status), tt_err_text());
        if (out->msg.type == type)
            return;
        tt_packet_clear(out);
    }
    fail_msg("no %s", tt_msg_name(type));
}

/*  A roster with so many collectors and learners. */
static void s_expect_roster(tt_link_t *link, size_t collectors, size_t learners, tt_packet_t *out)
{
    for (;;) {
        s_expect(link, TT_MSG_ROSTER, out);
        size_t count[TT_PEER_CLIENT + 1] = {0};
        for (size_t i = 0; i < out->msg.ROSTER.members_count; i++)
            count[out->msg.ROSTER.members[i].role]++;
        if (count[TT_PEER_COLLECTOR] == collectors && count[TT_PEER_LEARNER] == learners)
            return;
        tt_packet_clear(out);
    }
}

static void s_skip(tt_link_t *link, tt_msg_id_t type)
{
    tt_packet_t packet = {0};
    s_expect(link, type, &packet);
    tt_packet_clear(&packet);
}

static void s_skip_roster(tt_link_t *link, size_t collectors, size_t learners)
{
    tt_packet_t packet = {0};
    s_expect_roster(link, collectors, learners, &packet);
    tt_packet_clear(&packet);
}

/*  REQUEST and its REPLY. */
static tt_status_t s_ask(tt_link_t *link, const char *verb, const char *body, tt_packet_t *out)
{
    static uint64_t id;
    const tt_msg_REQUEST_t request =
        TT_MSG(REQUEST, .id = ++id, .verb = (char *)(uintptr_t)verb, .body = (char *)(uintptr_t)body);
    assert_ok(tt_link_send(link, &request));
    for (;;) {
        s_expect(link, TT_MSG_REPLY, out);
        if (out->msg.REPLY.id == id)
            return (tt_status_t)out->msg.REPLY.status;
        tt_packet_clear(out);
    }
}

static json_t *s_status(tt_link_t *client)
{
    tt_packet_t packet = {0};
    assert_int_equal(s_ask(client, "status", "", &packet), TT_OK);
    json_t *status = json_loads(packet.msg.REPLY.body, 0, NULL);
    assert_non_null(status);
    tt_packet_clear(&packet);
    return status;
}

/*  Two collectors, a learner and a controller, all in the first roster; the learner holds weights. None of them has
 *  work, so that none is stuck. */
typedef struct {
    tt_link_t *collectors[2], *learner, *controller;
    uint32_t era;
    uint64_t generation;
    char restore[512]; /* what the first roster says to begin from */
} crew_t;

static void s_hold(crew_t *crew, uint64_t update)
{
    tt_link_holds(crew->learner, true, update, crew->era, crew->generation);
}

static void s_begin(const run_t *run, crew_t *crew)
{
    tt_packet_t packet = {0};
    crew->controller = s_link(run, TT_PEER_CONTROLLER, 0);
    s_skip(crew->controller, TT_MSG_WELCOME);
    for (int i = 0; i < 2; i++) {
        crew->collectors[i] = s_link(run, TT_PEER_COLLECTOR, i);
        tt_link_state(crew->collectors[i], "idle");
    }
    crew->learner = s_link(run, TT_PEER_LEARNER, 0);
    tt_link_state(crew->learner, "idle");
    s_expect(crew->learner, TT_MSG_WELCOME, &packet);
    assert_string_equal(packet.msg.WELCOME.config, run->config);
    assert_int_equal(packet.msg.WELCOME.start_ns, run->start_ns);
    tt_packet_clear(&packet);
    s_expect_roster(crew->learner, 2, 1, &packet);
    assert_true(packet.msg.ROSTER.fresh);
    crew->era = packet.msg.ROSTER.era;
    crew->generation = packet.msg.ROSTER.generation;
    snprintf(crew->restore, sizeof crew->restore, "%s", packet.msg.ROSTER.restore ? packet.msg.ROSTER.restore : "");
    tt_packet_clear(&packet);
    s_skip_roster(crew->collectors[0], 2, 1);
    s_skip_roster(crew->collectors[1], 2, 1);
    s_hold(crew, 1);
}

/*  Until the coordinator knows that the learner holds the weights. */
static void s_wait_for_holds(const run_t *run)
{
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1);
    for (bool holds = false; !holds;) {
        size_t i;
        json_t *status = s_status(client), *member;
        json_array_foreach(json_object_get(status, "members"), i, member) holds |=
            json_is_true(json_object_get(member, "holds"));
        json_decref(status);
    }
    tt_link_destroy(&client);
}

static void s_leave(crew_t *crew)
{
    tt_link_destroy(&crew->collectors[0]);
    tt_link_destroy(&crew->collectors[1]);
    tt_link_destroy(&crew->learner);
    tt_link_destroy(&crew->controller);
}

static void s_send_stats(tt_link_t *learner, uint32_t era, uint64_t update)
{
    char name[] = "losses/policy_loss";
    tt_rec_METRIC_t metrics[] = {{.name = name, .value = 0.25}};
    const tt_msg_STATS_t stats =
        TT_MSG(STATS, .era = era, .update = update, .env_steps = update * 128, .return_mean = (double)update,
            .time_ns = tt_now_ns(tt_clock_real()), .metrics = metrics, .metrics_count = TT_COUNT(metrics));
    assert_ok(tt_link_send(learner, &stats));
}

static void s_send_event(tt_link_t *from, const char *kind, const char *text, uint64_t env_steps)
{
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t)kind, .text = (char *)(uintptr_t)text,
        .update = env_steps / 128, .env_steps = env_steps, .value = 480, .time_ns = tt_now_ns(tt_clock_real()));
    assert_ok(tt_link_send(from, &event));
}

static double s_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}

static json_t *s_read_result(const run_t *run)
{
    char path[256];
    snprintf(path, sizeof path, "%s/result.json", run->dir);
    json_t *result = json_load_file(path, 0, NULL);
    assert_non_null(result);
    return result;
}

/* ---- the snapshot store ------------------------------------------------------------------------------------------- */

/*  A socket as a learner's for files, and the answer to what is sent on it; false: none comes. */
static tt_sock_t *s_files(const run_t *run)
{
    tt_sock_t *sock = NULL;
    assert_ok(tt_sock_new(&sock, TT_DEALER, &(tt_sock_opts_t){.name = "files", .identity = "learner/0/x/files"}));
    assert_ok(tt_sock_connect(sock, run->endpoint));
    return sock;
}

static void s_send_piece(tt_sock_t *sock, const void *msg, const char *bytes, size_t size)
{
    zmq_msg_t frame;
    tt_frame_new(&frame, size);
    memcpy(zmq_msg_data(&frame), bytes, size);
    assert_ok(tt_sock_send(sock, NULL, msg, &frame, 1));
    tt_frame_close(&frame);
}

static bool s_answered(tt_sock_t *sock, tt_packet_t *out, int64_t patience_ms)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + patience_ms;
    while (tt_now_ms(tt_clock_real()) < until) {
        if (tt_sock_recv(sock, out) == TT_OK)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/*  What STORED says of a piece: bytes that are there; UINT64_MAX: refused, with these words. */
static uint64_t s_store(tt_sock_t *sock, const tt_msg_STORE_t *msg, const char *bytes, size_t size, const char *words)
{
    tt_packet_t packet = {0};
    s_send_piece(sock, msg, bytes, size);
    assert_true(s_answered(sock, &packet, PATIENCE_MS));
    assert_int_equal(packet.msg.type, TT_MSG_STORED);
    const char *refused = packet.msg.STORED.refused;
    const uint64_t have = refused ? UINT64_MAX : packet.msg.STORED.have;
    if (words && (!refused || !strstr(refused, words)))
        fail_msg("'%s' does not say '%s'", refused ? refused : "taken", words);
    tt_packet_clear(&packet);
    return have;
}

static void s_expect_file(const run_t *run, const char *name, const tt_buf_t *bytes)
{
    char path[512];
    tt_buf_t there;
    tt_buf_init(&there, 1 << 20);
    snprintf(path, sizeof path, "%s/checkpoints/%s", run->dir, name);
    assert_ok(tt_buf_read_file(&there, path));
    assert_int_equal(there.size, bytes->size);
    assert_memory_equal(there.data, bytes->data, bytes->size);
    tt_buf_free(&there);
}

static void test_snapshots_come_in_pieces(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512];
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    tt_sock_t *sock = s_files(run);
    char name[] = "00000007.safetensors", damaged[] = "00000008.safetensors", outside[] = "../../etc/passwd";
    tt_buf_t bytes;
    sample_encode(&bytes, 7);
    const size_t half = bytes.size / 2, rest = bytes.size - half;
    tt_msg_STORE_t msg =
        TT_MSG(STORE, .instance = tt_link_instance(crew.learner), .name = name, .size = bytes.size, .best = true);
    assert_int_equal(s_store(sock, &msg, bytes.data, half, NULL), half);
    assert_int_equal(s_store(sock, &msg, bytes.data, half, NULL), half); /* begun anew */
    msg.offset = half + 2;
    assert_int_equal(s_store(sock, &msg, bytes.data + half + 2, rest - 2, NULL), half); /* not what comes next */
    msg.offset = half;
    assert_int_equal(s_store(sock, &msg, bytes.data + half, rest + 1, NULL), half); /* more than there is */
    assert_int_equal(s_store(sock, &msg, bytes.data + half, rest, NULL), bytes.size);
    s_expect_file(run, "best.safetensors", &bytes);

    msg.name = damaged; /* on its way: it gets no name */
    msg.offset = 0;
    bytes.data[half] ^= 1;
    assert_true(s_store(sock, &msg, bytes.data, bytes.size, "00000008.safetensors: damaged") == UINT64_MAX);
    bytes.data[half] ^= 1;
    s_expect_file(run, "best.safetensors", &bytes);
    snprintf(path, sizeof path, "%s/checkpoints/%s", run->dir, damaged);
    assert_int_equal(access(path, F_OK), -1);
    memset(bytes.data, ' ', bytes.size);
    assert_true(s_store(sock, &msg, bytes.data, bytes.size, "not a snapshot") == UINT64_MAX);
    tt_buf_free(&bytes);
    msg.offset = 0;
    msg.name = outside;
    assert_true(s_store(sock, &msg, "01234", 5, "no name of a snapshot") == UINT64_MAX);
    msg.name = name;
    msg.size = 0;
    assert_true(s_store(sock, &msg, "01234", 5, "STORE of 0 bytes") == UINT64_MAX);
    const tt_msg_LOAD_t load = TT_MSG(LOAD, .instance = tt_link_instance(crew.learner), .path = (char *)"/etc/passwd");
    assert_ok(tt_sock_send(sock, NULL, &load, NULL, 0));
    assert_true(s_answered(sock, &packet, PATIENCE_MS));
    assert_int_equal(packet.msg.type, TT_MSG_LOADED);
    assert_non_null(strstr(packet.msg.LOADED.refused, "not what the roster names"));
    tt_packet_clear(&packet);
    msg.size = 10;
    msg.instance++;
    s_send_piece(sock, &msg, "01234", 5);
    assert_false(s_answered(sock, &packet, 100)); /* only rank 0's count */
    tt_sock_destroy(&sock);
    s_leave(&crew);
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void test_a_run_from_hello_to_its_end(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    s_send_event(crew.learner, "first_step", "", 0);
    for (uint64_t update = 1; update <= 200; update++)
        s_send_stats(crew.learner, 1, update);
    s_send_event(crew.learner, "solved", "", 100 * 128);
    s_send_event(crew.learner, "finished",
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
    json_t *summary = json_loads(packet.msg.EVENT.text, 0, NULL), *result = s_read_result(run);
    assert_non_null(summary);
    assert_true(json_equal(summary, result));
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "succeeded");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "return_mean");
    assert_string_equal(json_string_value(json_object_get(summary, "weights_sha256")), "ab");
    assert_true(s_get(summary, "env_steps") == 25600);
    assert_true(s_get(summary, "solved_at_steps") == 12800);
    assert_true(s_get(summary, "first_step_s") > 0);
    assert_true(s_get(summary, "solved_at_s") >= s_get(summary, "first_step_s"));
    assert_true(s_get(summary, "wall_s") >= s_get(summary, "solved_at_s"));
    assert_true(s_get(summary, "sps") > 0);
    assert_true(s_get(summary, "rolled_back") == 0);
    json_decref(summary);
    json_decref(result);
    tt_packet_clear(&packet);
    s_skip(crew.learner, TT_MSG_STOP);
    s_skip(crew.collectors[0], TT_MSG_STOP);
    assert_int_equal(s_wait(run), 0);
    s_leave(&crew);

    char path[256], line[4096];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        assert_true(s_get(object, "updates") == ++lines);
        assert_true(s_get(object, "losses/policy_loss") == 0.25);
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
    s_begin(run, &crew);
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(s_ask(client, "scale", "{\"collector\": 9}", &packet), TT_INVALID);
    assert_string_equal(
        packet.msg.REPLY.body, "scale: 9 collectors; at most 8 have work (num_envs: every one needs an environment)");
    tt_packet_clear(&packet);
    assert_int_equal(s_ask(client, "scale", "{\"robot\": 1}", &packet), TT_INVALID);
    tt_packet_clear(&packet);
    assert_int_equal(s_ask(client, "scale", "{", &packet), TT_INVALID);
    tt_packet_clear(&packet);
    assert_int_equal(s_ask(client, "dance", "", &packet), TT_USAGE);
    tt_packet_clear(&packet);

    assert_int_equal(s_ask(client, "scale", "{\"collector\": 3, \"learner\": 2}", &packet), TT_OK);
    tt_packet_clear(&packet);
    do {
        tt_packet_clear(&packet);
        s_expect(crew.controller, TT_MSG_SCALE, &packet);
    } while (packet.msg.SCALE.counts[0].desired != 3);
    assert_int_equal(packet.msg.SCALE.counts[1].desired, 2);
    assert_int_equal(packet.msg.SCALE.counts[2].desired, 1); /* gradients of two learners need it */
    tt_packet_clear(&packet);
    tt_link_t *third = s_link(run, TT_PEER_COLLECTOR, 2);
    s_expect_roster(third, 3, 1, &packet);
    uint32_t next = 0;
    for (size_t i = 0; i < packet.msg.ROSTER.members_count; i++) {
        if (packet.msg.ROSTER.members[i].role != TT_PEER_COLLECTOR)
            continue;
        assert_int_equal(packet.msg.ROSTER.members[i].env_lo, next);
        next += packet.msg.ROSTER.members[i].env_count;
    }
    assert_int_equal(next, 8);
    tt_packet_clear(&packet);

    assert_int_equal(s_ask(client, "scale", "{\"collector\": 1}", &packet), TT_OK);
    tt_packet_clear(&packet);
    s_skip_roster(crew.collectors[0], 1, 1);
    s_skip(crew.collectors[1], TT_MSG_DRAIN);
    s_skip(third, TT_MSG_DRAIN);
    const tt_msg_DRAINED_t drained = TT_MSG(DRAINED, .reason = NULL);
    assert_ok(tt_link_send(third, &drained));
    tt_link_destroy(&third);
    for (;;) {
        json_t *status = s_status(client);
        const size_t members = json_array_size(json_object_get(status, "members"));
        const json_t *counts = json_object_get(json_object_get(status, "replicas"), "collector");
        assert_true(s_get(counts, "desired") == 1);
        assert_true(s_get(counts, "ready") == 1);
        json_decref(status);
        if (members == 3) /* the first collector, the learner, and the victim that has not drained */
            break;
    }
    tt_link_destroy(&client);
    s_leave(&crew);
}

static void test_stop_lets_rank_0_finish(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(s_ask(client, "watch", "", &packet), TT_OK);
    tt_packet_clear(&packet);
    assert_int_equal(s_ask(client, "stop", "{\"reason\": \"enough\", \"code\": 130}", &packet), TT_OK);
    tt_packet_clear(&packet);
    s_expect(crew.learner, TT_MSG_STOP, &packet);
    assert_true(packet.msg.STOP.finish);
    assert_int_equal(packet.msg.STOP.code, 130);
    tt_packet_clear(&packet);
    s_send_event(crew.learner, "finished", "{\"reason\":\"enough\",\"env_steps\":128}", 128);
    s_expect(client, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "finished");
    json_t *summary = json_loads(packet.msg.EVENT.text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "stopped");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "enough");
    json_decref(summary);
    tt_packet_clear(&packet);
    s_skip(crew.collectors[1], TT_MSG_STOP);
    assert_int_equal(s_wait(run), 0);
    tt_link_destroy(&client);
    s_leave(&crew);
}

static void test_a_failure_ends_the_run_with_its_code(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    const char *why = "env CartPole-v1 crashed";
    const tt_msg_EVENT_t event =
        TT_MSG(EVENT, .kind = (char *)(uintptr_t) "failed", .text = (char *)(uintptr_t)why, .code = 70);
    assert_ok(tt_link_send(crew.collectors[1], &event));
    s_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "failed");
    assert_string_equal(packet.msg.EVENT.text, "collector/1: env CartPole-v1 crashed");
    assert_int_equal(packet.msg.EVENT.code, 70);
    tt_packet_clear(&packet);
    assert_int_equal(s_wait(run), 70);
    s_start(run); /* killed after the end was journaled, and started again: the run does not begin anew */
    assert_int_equal(s_wait(run), 70);
    json_t *result = s_read_result(run);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "failed");
    json_decref(result);
    s_leave(&crew);
}

static void test_sigterm_stops_the_run(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    kill(run->coordinator, SIGTERM);
    s_expect(crew.learner, TT_MSG_STOP, &packet);
    assert_true(packet.msg.STOP.finish);
    tt_packet_clear(&packet);
    kill(run->coordinator, SIGTERM); /* a second one: at once */
    s_skip(crew.collectors[0], TT_MSG_STOP);
    assert_int_equal(s_wait(run), 0);
    s_leave(&crew);
}

static void test_a_killed_coordinator_comes_back(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1);
    assert_int_equal(s_ask(client, "scale", "{\"collector\": 3}", &packet), TT_OK);
    tt_packet_clear(&packet);
    s_wait_for_holds(run);
    kill(run->coordinator, SIGKILL);
    assert_int_equal(s_wait(run), -SIGKILL);
    s_start(run);
    s_expect_roster(crew.collectors[0], 2, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 1); /* nobody lost anything */
    assert_true(packet.msg.ROSTER.epoch >= 2);
    assert_true(packet.msg.ROSTER.generation >= 2);
    assert_false(packet.msg.ROSTER.fresh);
    tt_packet_clear(&packet);
    json_t *status = s_status(client);
    assert_true(s_get(json_object_get(json_object_get(status, "replicas"), "collector"), "desired") == 3);
    assert_true(s_get(status, "rolled_back") == 0);
    json_decref(status);
    tt_link_destroy(&client);
    s_leave(&crew);
}

static void test_a_dead_collector_is_noticed(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = TT_PEER_COLLECTOR, .index = 1, .alive = false, .code = 137);
    tt_link_destroy(&crew.collectors[1]);
    assert_ok(tt_link_send(crew.controller, &ended));
    s_expect_roster(crew.collectors[0], 1, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 1);
    tt_packet_clear(&packet);
    s_leave(&crew);
}

static void s_make_snapshot(const run_t *run, tt_link_t *learner, char *path, size_t size)
{
    snprintf(path, size, "%s/checkpoints", run->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    sample_write(path, "00000007.safetensors", 7);
    snprintf(path, size, "%s/checkpoints/00000007.safetensors", run->dir);
    s_send_event(learner, "snapshot", path, 7 * 128);
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
    s_begin(run, &crew);
    s_wait_for_holds(run);
    s_tell_end(&crew, TT_PEER_LEARNER, 0);
    s_skip_roster(crew.collectors[0], 2, 0);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    for (const int64_t until = tt_now_ms(tt_clock_real()) + PATIENCE_MS;
         s_ask(crew.controller, "snapshot", "", &packet) != TT_OK; tt_packet_clear(&packet))
        assert_true(tt_now_ms(tt_clock_real()) < until);
    tt_packet_clear(&packet);
    tt_link_t *next = s_link(run, TT_PEER_LEARNER, 0);
    s_expect_roster(next, 2, 1, &packet);
    assert_string_equal(packet.msg.ROSTER.restore, path);
    tt_packet_clear(&packet);
    s_tell_end(&crew, TT_PEER_COLLECTOR, 1);
    s_skip_roster(crew.collectors[0], 1, 1);
    const tt_msg_EVENT_t event =
        TT_MSG(EVENT, .kind = (char *)(uintptr_t) "failed", .text = (char *)(uintptr_t) "it crashed", .code = 70);
    assert_ok(tt_link_send(crew.collectors[1], &event));
    assert_int_equal(s_wait(run), 70);
    tt_link_destroy(&next);
    s_leave(&crew);
}

static void test_a_lost_learner_rolls_back_and_a_moved_run_resumes(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[512], moved[sizeof run->dir];
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    s_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    tt_link_destroy(&crew.learner);
    const tt_msg_REPLICA_t ended = TT_MSG(REPLICA, .role = TT_PEER_LEARNER, .index = 0, .code = 137);
    assert_ok(tt_link_send(crew.controller, &ended));
    s_skip_roster(crew.collectors[0], 2, 0);
    crew.learner = s_link(run, TT_PEER_LEARNER, 0);
    s_expect_roster(crew.learner, 2, 1, &packet);
    assert_int_equal(packet.msg.ROSTER.era, 2);
    assert_true(packet.msg.ROSTER.fresh);
    assert_string_equal(packet.msg.ROSTER.restore, path);
    tt_packet_clear(&packet);
    kill(run->coordinator, SIGKILL);
    s_wait(run);
    s_leave(&crew);

    snprintf(moved, sizeof moved, "%s", run->dir);
    strcat(run->dir, "-moved");
    assert_int_equal(rename(moved, run->dir), 0);
    snprintf(run->endpoint, sizeof run->endpoint, "ipc://%s/sock/control", run->dir);
    run->start_ns++; /* another session */
    s_start(run);
    s_begin(run, &crew);
    json_t *status = s_status(crew.controller);
    assert_true(s_get(status, "era") == 3);
    assert_true(s_get(status, "rolled_back") == 2);
    assert_true(s_get(json_object_get(status, "snapshot"), "updates") == 7);
    json_decref(status);
    s_leave(&crew);
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
    s_begin(run, &crew);
    s_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    s_send_stats(crew.learner, 1, 9);
    s_wait_for_metrics(run);
    kill(run->coordinator, SIGKILL);
    s_wait(run);
    s_leave(&crew);
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    sample_write(folder, "00000009.safetensors", 9); /* the journal did not hear of it */
    sample_write(folder, "00000011.safetensors", 11);
    sample_damage(folder, "00000011.safetensors");
    s_lose_journal(run, journal);
    run->start_ns++; /* another session */
    s_start(run);
    s_begin(run, &crew);
    snprintf(path, sizeof path, "%s/checkpoints/00000009.safetensors", run->dir);
    assert_string_equal(crew.restore, path);
    json_t *status = s_status(crew.controller);
    const json_t *from = json_object_get(status, "restored_from");
    assert_true(s_get(status, "era") > 1);
    assert_true(s_get(from, "updates") == 9);
    assert_true(json_is_true(json_object_get(from, "adopted")));
    const json_t *bad = json_array_get(json_object_get(from, "passed_over"), 0);
    assert_string_equal(json_string_value(json_object_get(bad, "snapshot")), "checkpoints/00000011.safetensors");
    assert_non_null(strstr(json_string_value(json_object_get(bad, "reason")), "damaged"));
    json_decref(status);
    s_leave(&crew);
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
    s_begin(run, &crew);
    s_wait_for_holds(run);
    s_make_snapshot(run, crew.learner, path, sizeof path);
    kill(run->coordinator, SIGKILL);
    s_wait(run);
    s_leave(&crew);
    snprintf(folder, sizeof folder, "%s/checkpoints", run->dir);
    sample_damage(folder, "00000007.safetensors");
    s_lose_journal(run, "gone");
    run->start_ns++;
    s_start(run);
    for (int i = 0; i < 2; i++)
        crew.collectors[i] = s_link(run, TT_PEER_COLLECTOR, i);
    crew.learner = s_link(run, TT_PEER_LEARNER, 0);
    crew.controller = s_link(run, TT_PEER_CONTROLLER, 0);
    assert_int_equal(s_wait(run), 65);
    s_leave(&crew);
}

static void test_two_coordinators_in_one_run_directory(void **state)
{
    run_t *run = *state;
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1);
    json_decref(s_status(client)); /* it is up */
    run_t second = *run;
    second.coordinator = s_spawn(run);
    assert_int_equal(s_wait(&second), tt_status_exit_code(TT_EXISTS));
    json_decref(s_status(client)); /* and the first one goes on */
    tt_link_destroy(&client);
}

static void test_other_versions_and_numbers_in_use_are_refused(void **state)
{
    run_t *run = *state;
    tt_packet_t packet = {0};
    tt_link_t *first = s_link(run, TT_PEER_COLLECTOR, 3);
    s_skip(first, TT_MSG_WELCOME);
    tt_link_t *second = s_link(run, TT_PEER_COLLECTOR, 3);
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

static void test_a_stuck_run_says_who_waits_for_what(void **state)
{
    run_t *run = *state;
    crew_t crew;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    tt_link_state(crew.collectors[1], "waiting for Godot");
    s_expect(crew.controller, TT_MSG_EVENT, &packet);
    assert_string_equal(packet.msg.EVENT.kind, "failed");
    assert_non_null(strstr(packet.msg.EVENT.text, "collector/1"));
    assert_non_null(strstr(packet.msg.EVENT.text, "waiting for Godot"));
    assert_int_equal(packet.msg.EVENT.code, tt_status_exit_code(TT_TIMEOUT));
    tt_packet_clear(&packet);
    assert_int_equal(s_wait(run), tt_status_exit_code(TT_TIMEOUT));
    s_leave(&crew);
}

static void test_nobody_comes(void **state)
{
    run_t *run = *state;
    assert_int_equal(s_wait(run), tt_status_exit_code(TT_TIMEOUT));
    json_t *result = s_read_result(run);
    assert_non_null(strstr(json_string_value(json_object_get(result, "reason")), "learner wanted 1, ready 0"));
    json_decref(result);
}

static void test_other_hosts_join_over_tcp_and_http_is_served(void **state)
{
    run_t *run = *state;
    crew_t crew;
    char path[256], reply[512];
    tt_keys_t keys;
    tt_packet_t packet = {0};
    s_begin(run, &crew);
    tt_link_t *client = s_link(run, TT_PEER_CLIENT, -1), *remote = NULL;
    json_t *status = s_status(client);
    while (!json_is_string(json_object_get(status, "http"))) {
        json_decref(status);
        status = s_status(client);
    }
    snprintf(path, sizeof path, "%s/key", run->dir);
    assert_ok(tt_keys_read(&keys, path));
    const tt_link_opts_t opts = {.endpoint = json_string_value(json_object_get(status, "listen")),
        .keys = &keys,
        .role = TT_PEER_COLLECTOR,
        .index = -1};
    assert_ok(tt_link_start(&remote, &opts));
    s_skip_roster(remote, 3, 1);
    assert_int_equal(tt_link_index(remote), 10000);

    snprintf(reply, sizeof reply, "curl -sf %s/healthz >/dev/null", json_string_value(json_object_get(status, "http")));
    if (system("command -v curl >/dev/null") == 0)
        assert_int_equal(system(reply), 0);
    snprintf(path, sizeof path, "%s/http.json", run->dir);
    assert_int_equal(access(path, R_OK), 0);
    json_decref(status);
    assert_int_equal(s_ask(client, "stop", "{\"now\": true}", &packet), TT_OK);
    tt_packet_clear(&packet);
    s_skip(remote, TT_MSG_STOP);
    assert_int_equal(s_wait(run), 0);
    tt_link_destroy(&remote);
    tt_link_destroy(&client);
    s_leave(&crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_run_from_hello_to_its_end, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_scaling_a_running_job, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_stop_lets_rank_0_finish, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_failure_ends_the_run_with_its_code, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_last_words_count, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_sigterm_stops_the_run, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_killed_coordinator_comes_back, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_dead_collector_is_noticed, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_lost_learner_rolls_back_and_a_moved_run_resumes, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_two_coordinators_in_one_run_directory, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_other_versions_and_numbers_in_use_are_refused, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_a_stuck_run_says_who_waits_for_what, s_setup_watchful, s_teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_come_in_pieces, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(
            test_where_no_snapshot_is_whole_the_run_does_not_begin_again, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_with_a_journal_without_its_log_a_snapshot_is_adopted, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_with_an_empty_journal_a_snapshot_is_adopted, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_without_its_journal_a_snapshot_is_adopted, s_setup, s_teardown),
        cmocka_unit_test_setup_teardown(test_nobody_comes, s_setup_hasty, s_teardown),
        cmocka_unit_test_setup_teardown(test_other_hosts_join_over_tcp_and_http_is_served, s_setup_open, s_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
