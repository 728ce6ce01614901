#include "tests/coordinator/crew.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "coordinator/coordinator.h"
#include "tests/folder.h"

/*  Completed by a run's own lines. */
static const char s_common[] =
    "name: test\nseed: 1\nenv: CartPole-v1\nnum_envs: 8\nnum_steps: 16\nlag: 1\nalgorithm: {name: ppo}\n"
    "collector: {replicas: 2}\nlearner: {replicas: 1, shards: 4}\n"
    "space: {obs: 'float32[4]', action: discrete(2), env_state: 16, threshold: 475}\n";
static const char s_local[] = "net: {beat_ms: 50, lease_ms: 20000, stall_s: 20}\ncoordinator: {http: \"\"}\n";
static const int64_t s_ms = 1000000, s_start_ns = 1000000000000;

/*  Which roster each link brought last. A HELLO that was not answered within a second is said again, and answered twice: the roster that comes a
 *  second time is not one that a test waits for. */
static struct {
    uint64_t instance, epoch, generation;
    uint32_t era;
} s_last[64];

static tt_clock_t *s_hands; /* of the run that is under test; NULL = nobody turns them */

/* ---- time ----------------------------------------------------------------------------------------------------------- */

/*  A moment in which others do something. What they put off for some milliseconds comes by turning these hands (NULL: none). */
static void s_wait_a_moment(tt_clock_t *hands)
{
    poll(NULL, 0, 1);
    if (hands)
        tt_clock_turn(hands, s_ms);
}

static int64_t s_deadline(void)
{
    return tt_now_ms(tt_clock_real()) + PATIENCE_MS;
}

static bool s_too_late(int64_t deadline)
{
    return tt_now_ms(tt_clock_real()) > deadline;
}

/* ---- a run directory and its coordinator ----------------------------------------------------------------------------- */

/*  Exec: ZeroMQ's threads do not survive a fork. */
pid_t run_spawn(const run_t *run)
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

static void *s_coordinate(void *ctx)
{
    run_t *run = ctx;
    const coordinator_opts_t opts = {.run_dir = run->dir, .start_ns = run->start_ns, .clock = &run->clock};
    if (coordinator_run(&opts, &run->code) != TT_OK)
        run->code = -1;
    run->running = false;
    return NULL;
}

void run_start(run_t *run)
{
    if (!run->by_hand) {
        run->coordinator = run_spawn(run);
        return;
    }
    run->running = true;
    assert_int_equal(pthread_create(&run->thread, NULL, s_coordinate, run), 0);
}

int run_setup_with(void **state, const char *own, bool by_hand)
{
    run_t *run = tt_new0(sizeof *run);
    char path[256];
    if (folder_make(run->dir, "coordinator") != 0)
        return -1;
    snprintf(run->config, sizeof run->config, "%s%s", s_common, own);
    snprintf(path, sizeof path, "%s/config.yaml", run->dir);
    FILE *file = fopen(path, "w");
    if (!file || fputs(run->config, file) < 0 || fclose(file) != 0)
        return -1;
    snprintf(run->endpoint, sizeof run->endpoint, "ipc://%s/sock/control", run->dir);
    run->by_hand = by_hand;
    run->clock = tt_clock_fake(s_start_ns);
    s_hands = by_hand ? &run->clock : NULL;
    run->start_ns = by_hand ? s_start_ns : tt_now_ns(tt_clock_real());
    run_start(run);
    *state = run;
    return 0;
}

int run_setup(void **state)
{
    return run_setup_with(state, s_local, false);
}

static int s_join(run_t *run)
{
    for (const int64_t deadline = s_deadline(); run->running; s_wait_a_moment(&run->clock))
        if (s_too_late(deadline))
            return -99;
    pthread_join(run->thread, NULL);
    run->by_hand = false;
    return run->code;
}

int run_wait(run_t *run)
{
    int status = 0;
    if (run->by_hand)
        return s_join(run);
    if (waitpid(run->coordinator, &status, 0) != run->coordinator)
        return -99;
    run->coordinator = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void run_kill(run_t *run)
{
    kill(run->coordinator, SIGKILL);
    assert_int_equal(run_wait(run), -SIGKILL);
}

/*  What the test left of it. */
static int s_end(run_t *run)
{
    if (!run->by_hand) {
        if (run->coordinator)
            kill(run->coordinator, SIGKILL);
        return run->coordinator ? run_wait(run) + SIGKILL : 0;
    }
    tt_packet_t packet = {0};
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    if (run->running)
        link_ask(client, "stop", "{\"now\": true}", &packet);
    tt_packet_clear(&packet);
    const int code = s_join(run);
    tt_link_destroy(&client);
    return code == -99;
}

int run_teardown(void **state)
{
    run_t *run = *state;
    int code = s_end(run);
    code = code ? code : folder_remove(run->dir);
    s_hands = NULL;
    memset(s_last, 0, sizeof s_last);
    free(run);
    return code;
}

json_t *run_result(const run_t *run)
{
    char path[256];
    snprintf(path, sizeof path, "%s/result.json", run->dir);
    json_t *result = json_load_file(path, 0, NULL);
    assert_non_null(result);
    return result;
}

void run_wait_for_holds(const run_t *run)
{
    tt_link_t *client = run_link(run, TT_PEER_CLIENT, -1);
    for (bool holds = false; !holds;) {
        size_t i;
        json_t *status = link_status(client), *member;
        json_array_foreach(json_object_get(status, "members"), i, member) holds |=
            json_is_true(json_object_get(member, "holds"));
        json_decref(status);
    }
    tt_link_destroy(&client);
}

static size_t s_awake(const json_t *status)
{
    size_t i, awake = 0;
    json_t *member;
    json_array_foreach(json_object_get(status, "members"), i, member) awake += number_in(member, "seen_ms") == 0;
    return awake;
}

/*  All who are awake have been heard when the clock shows what it shows now, and stands. */
static json_t *s_look(tt_link_t *client, size_t awake)
{
    for (const int64_t deadline = s_deadline();;) {
        json_t *status = link_status(client);
        if (s_awake(status) >= awake)
            return status;
        json_decref(status);
        if (s_too_late(deadline))
            fail_msg("fewer than %zu members say anything", awake);
    }
}

json_t *run_pass(run_t *run, tt_link_t *client, int64_t ms, size_t awake)
{
    enum { STEP_MS = 500 };
    json_t *status = NULL;
    for (int64_t left = ms; left > 0; left -= STEP_MS) {
        json_decref(status);
        tt_clock_turn(&run->clock, (left < STEP_MS ? left : STEP_MS) * s_ms);
        status = s_look(client, awake);
    }
    return status;
}

/* ---- links ---------------------------------------------------------------------------------------------------------- */

tt_link_t *run_link(const run_t *run, tt_peer_role_t role, int index)
{
    tt_link_t *link = NULL;
    const tt_link_opts_t opts = {.endpoint = run->endpoint,
        .clock = s_hands,
        .role = role,
        .index = index,
        .data_ipc = role == TT_PEER_LEARNER ? "ipc:///tmp/nowhere.data" : NULL,
        .weights_ipc = role == TT_PEER_LEARNER ? "ipc:///tmp/nowhere.weights" : NULL};
    assert_ok(tt_link_start(&link, &opts));
    return link;
}

static bool s_is_again(const tt_link_t *link, const tt_msg_ROSTER_t *roster)
{
    size_t at = 0;
    while (s_last[at].instance && s_last[at].instance != tt_link_instance(link))
        assert_true(++at < TT_COUNT(s_last));
    const bool again = s_last[at].instance && s_last[at].era == roster->era && s_last[at].epoch == roster->epoch &&
                       s_last[at].generation == roster->generation;
    s_last[at].instance = tt_link_instance(link);
    s_last[at].era = roster->era;
    s_last[at].epoch = roster->epoch;
    s_last[at].generation = roster->generation;
    return again;
}

static void s_await(tt_link_t *link, tt_msg_id_t type, tt_clock_t *hands, tt_packet_t *out)
{
    for (const int64_t deadline = s_deadline(); !s_too_late(deadline);) {
        const tt_status_t status = tt_link_next(link, out);
        if (status != TT_OK && status != TT_AGAIN)
            fail_msg("waiting for %s: %s: %s", tt_msg_name(type), tt_status_name(status), tt_err_text());
        const bool again = status == TT_OK && out->msg.type == TT_MSG_ROSTER && s_is_again(link, &out->msg.ROSTER);
        if (status == TT_OK && out->msg.type == type && !again)
            return;
        tt_packet_clear(out);
        if (status == TT_AGAIN)
            s_wait_a_moment(hands);
    }
    fail_msg("no %s", tt_msg_name(type));
}

void link_expect(tt_link_t *link, tt_msg_id_t type, tt_packet_t *out)
{
    s_await(link, type, s_hands, out);
}

void link_expect_roster(tt_link_t *link, size_t collectors, size_t learners, tt_packet_t *out)
{
    for (;;) {
        link_expect(link, TT_MSG_ROSTER, out);
        size_t count[TT_PEER_CLIENT + 1] = {0};
        for (size_t i = 0; i < out->msg.ROSTER.members_count; i++)
            count[out->msg.ROSTER.members[i].role]++;
        if (count[TT_PEER_COLLECTOR] == collectors && count[TT_PEER_LEARNER] == learners)
            return;
        tt_packet_clear(out);
    }
}

void link_skip(tt_link_t *link, tt_msg_id_t type)
{
    tt_packet_t packet = {0};
    link_expect(link, type, &packet);
    tt_packet_clear(&packet);
}

void link_skip_roster(tt_link_t *link, size_t collectors, size_t learners)
{
    tt_packet_t packet = {0};
    link_expect_roster(link, collectors, learners, &packet);
    tt_packet_clear(&packet);
}

tt_status_t link_ask(tt_link_t *link, const char *verb, const char *body, tt_packet_t *out)
{
    static uint64_t id;
    const tt_msg_REQUEST_t request =
        TT_MSG(REQUEST, .id = ++id, .verb = (char *)(uintptr_t)verb, .body = (char *)(uintptr_t)body);
    assert_ok(tt_link_send(link, &request));
    for (;;) {
        s_await(link, TT_MSG_REPLY, NULL, out); /* it comes at once */
        if (out->msg.REPLY.id == id)
            return (tt_status_t)out->msg.REPLY.status;
        tt_packet_clear(out);
    }
}

json_t *link_status(tt_link_t *client)
{
    tt_packet_t packet = {0};
    assert_int_equal(link_ask(client, "status", "", &packet), TT_OK);
    json_t *status = json_loads(packet.msg.REPLY.body, 0, NULL);
    assert_non_null(status);
    tt_packet_clear(&packet);
    return status;
}

void link_send_stats_at(tt_link_t *learner, uint32_t era, uint64_t update, int64_t time_ns)
{
    char name[] = "losses/policy_loss";
    tt_rec_METRIC_t metrics[] = {{.name = name, .value = 0.25}};
    const tt_msg_STATS_t stats = TT_MSG(STATS, .era = era, .update = update, .env_steps = update * 128,
        .return_mean = (double)update, .time_ns = time_ns, .metrics = metrics, .metrics_count = TT_COUNT(metrics));
    assert_ok(tt_link_send(learner, &stats));
}

void link_send_stats(tt_link_t *learner, uint32_t era, uint64_t update)
{
    link_send_stats_at(learner, era, update, tt_now_ns(tt_clock_real()));
}

void link_send_event_at(tt_link_t *from, const char *kind, const char *text, uint64_t env_steps, int64_t time_ns)
{
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = (char *)(uintptr_t)kind, .text = (char *)(uintptr_t)text,
        .update = env_steps / 128, .env_steps = env_steps, .value = 480, .time_ns = time_ns);
    assert_ok(tt_link_send(from, &event));
}

void link_send_event(tt_link_t *from, const char *kind, const char *text, uint64_t env_steps)
{
    link_send_event_at(from, kind, text, env_steps, tt_now_ns(tt_clock_real()));
}

/* ---- the crew ------------------------------------------------------------------------------------------------------- */

static void s_hold(crew_t *crew, uint64_t update)
{
    tt_link_holds(crew->learner, true, update, crew->era, crew->generation);
}

void crew_begin(const run_t *run, crew_t *crew)
{
    tt_packet_t packet = {0};
    crew->controller = run_link(run, TT_PEER_CONTROLLER, 0);
    link_skip(crew->controller, TT_MSG_WELCOME);
    for (int i = 0; i < 2; i++) {
        crew->collectors[i] = run_link(run, TT_PEER_COLLECTOR, i);
        tt_link_state(crew->collectors[i], "idle");
    }
    crew->learner = run_link(run, TT_PEER_LEARNER, 0);
    tt_link_state(crew->learner, "idle");
    link_expect(crew->learner, TT_MSG_WELCOME, &packet);
    assert_string_equal(packet.msg.WELCOME.config, run->config);
    assert_int_equal(packet.msg.WELCOME.start_ns, run->start_ns);
    tt_packet_clear(&packet);
    link_expect_roster(crew->learner, 2, 1, &packet);
    assert_true(packet.msg.ROSTER.fresh);
    crew->era = packet.msg.ROSTER.era;
    crew->generation = packet.msg.ROSTER.generation;
    snprintf(crew->restore, sizeof crew->restore, "%s", packet.msg.ROSTER.restore ? packet.msg.ROSTER.restore : "");
    tt_packet_clear(&packet);
    link_skip_roster(crew->collectors[0], 2, 1);
    link_skip_roster(crew->collectors[1], 2, 1);
    s_hold(crew, 1);
}

void crew_leave(crew_t *crew)
{
    tt_link_destroy(&crew->collectors[0]);
    tt_link_destroy(&crew->collectors[1]);
    tt_link_destroy(&crew->learner);
    tt_link_destroy(&crew->controller);
}

double number_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}
