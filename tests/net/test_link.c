/*  The link against a coordinator made of one ROUTER: welcome, beats, silence, restarts. Time is turned by hand. */
#include "common/net/link.h"
#include "tests/net/net_help.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

enum { BEAT_MS = 100, LEASE_MS = 500, LONG_LEASE_MS = 600000, HELLO_MS = 1000 };
static const int64_t s_ms = 1000000;

static struct timespec s_stood;
static _Atomic bool s_stands; /* the real clock, too */

/*  In place of the C library's, for all of this program. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    if (!s_stands || id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, out);
    *out = s_stood;
    return 0;
}

typedef struct {
    char *dir, *endpoint, peer[64];
    uint32_t lease_ms; /* as WELCOME says */
    tt_clock_t clock;
    tt_sock_t *router;
    tt_link_t *link;
    tt_packet_t packet; /* the last one, on either side */
} fixture_t;

static void s_open(fixture_t *f)
{
    const tt_sock_opts_t opts = {.name = "coordinator"};
    assert_ok(tt_sock_new(&f->router, TT_ROUTER, &opts));
    help_bind_again(f->router, f->endpoint);
}

static void s_start(fixture_t *f, int hello_timeout_ms)
{
    const tt_link_opts_t opts = {.endpoint = f->endpoint,
        .role = TT_PEER_LEARNER,
        .index = 3,
        .data_ipc = "ipc:///d",
        .weights_tcp = "tcp://w:1",
        .hello_timeout_ms = hello_timeout_ms,
        .clock = &f->clock};
    assert_ok(tt_link_start(&f->link, &opts));
}

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    f->dir = help_mkdir();
    f->endpoint = tt_sprintf("ipc://%s/control", f->dir);
    f->clock = tt_clock_fake(5000 * s_ms);
    f->lease_ms = LEASE_MS;
    s_open(f);
    s_start(f, 0);
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    tt_packet_clear(&f->packet);
    tt_link_destroy(&f->link);
    tt_sock_destroy(&f->router);
    help_rmdir(f->dir);
    free(f->endpoint);
    free(f);
    return 0;
}

/*  The next message that reaches the coordinator; the clock is turned on a little while nothing comes. A link that gets no
 *  time to run must not see silence by that: such a test has a long lease, or turns the clock by steps of its own. */
static tt_msg_id_t s_hear(fixture_t *f, int turn_ms)
{
    for (int tries = 0; tries < PATIENCE_MS; tries++) {
        const tt_status_t status = tt_sock_recv(f->router, &f->packet);
        if (status == TT_OK) {
            snprintf(f->peer, sizeof f->peer, "%s", f->packet.peer);
            return f->packet.msg.type;
        }
        assert_int_equal(status, TT_AGAIN);
        tt_clock_turn(&f->clock, turn_ms * s_ms);
        poll(NULL, 0, 1);
    }
    fail_msg("nothing came");
    return 0;
}

/*  Skip whatever comes before a message of this type. */
static void s_hear_type(fixture_t *f, tt_msg_id_t type, int turn_ms)
{
    while (s_hear(f, turn_ms) != type)
        ;
}

/*  Turn the clock on once, and hear what is due then. */
static tt_msg_id_t s_hear_after(fixture_t *f, int64_t turn_ms)
{
    tt_clock_turn(&f->clock, turn_ms * s_ms);
    return s_hear(f, 0);
}

static void s_beat(fixture_t *f)
{
    tt_clock_turn(&f->clock, BEAT_MS * s_ms);
    s_hear_type(f, TT_MSG_HEARTBEAT, 0);
}

static void s_say(fixture_t *f, const void *msg)
{
    assert_ok(help_send(f->router, f->peer, msg));
}

static void s_welcome(fixture_t *f)
{
    const tt_msg_WELCOME_t welcome = TT_MSG(
        WELCOME, .wire = TT_WIRE_VERSION, .index = 3, .beat_ms = BEAT_MS, .lease_ms = f->lease_ms, .config = "a: 1");
    s_say(f, &welcome);
}

static void s_answer_beat(fixture_t *f)
{
    const tt_msg_HEARTBEAT_t answer = TT_MSG(HEARTBEAT, .seq = f->packet.msg.HEARTBEAT.seq);
    s_say(f, &answer);
}

static void s_expect(fixture_t *f, tt_msg_id_t type)
{
    assert_ok(tt_link_wait(f->link, &f->packet, PATIENCE_MS));
    assert_int_equal(f->packet.msg.type, type);
}

/*  HELLO, WELCOME and its delivery. */
static void s_join(fixture_t *f)
{
    s_hear_type(f, TT_MSG_HELLO, 0);
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
}

/*  An end that is due: the clock runs on until the link says so. */
static void s_expect_end(fixture_t *f, tt_status_t end, int turn_ms, const char *words)
{
    tt_status_t status = TT_AGAIN;
    for (int tries = 0; status == TT_AGAIN && tries < PATIENCE_MS; tries++) {
        tt_clock_turn(&f->clock, turn_ms * s_ms);
        status = tt_link_wait(f->link, &f->packet, 5);
    }
    assert_int_equal(status, end);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' does not say '%s'", tt_err_text(), words);
    struct pollfd ready = {.fd = tt_link_fd(f->link), .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 1); /* and it stays so */
    assert_int_equal(tt_link_next(f->link, &f->packet), end);
}

static void test_hello_says_who_we_are(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(s_hear(f, 0), TT_MSG_HELLO);
    const tt_msg_HELLO_t *hello = &f->packet.msg.HELLO;
    assert_int_equal(hello->wire, TT_WIRE_VERSION);
    assert_string_equal(hello->software, TT_VERSION);
    assert_int_equal(hello->role, TT_PEER_LEARNER);
    assert_int_equal(hello->index, 3);
    assert_true(hello->instance == tt_link_instance(f->link) && hello->instance != 0);
    assert_int_equal(hello->pid, getpid());
    assert_string_equal(hello->data_ipc, "ipc:///d");
    assert_string_equal(hello->weights_tcp, "tcp://w:1");
    assert_null(hello->data_tcp);
    char name[64];
    snprintf(name, sizeof name, "learner/3/%016llx", (unsigned long long)hello->instance);
    assert_string_equal(f->peer, name);
    assert_false(tt_link_remote(f->link));
}

static void test_hello_is_repeated_until_welcome(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(s_hear(f, 0), TT_MSG_HELLO);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s_hear_after(f, HELLO_MS), TT_MSG_HELLO);
    for (int i = 0; i < 3; i++)
        s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
    assert_string_equal(f->packet.msg.WELCOME.config, "a: 1");
    assert_int_equal(tt_link_index(f->link), 3);
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .era = 1, .epoch = 1);
    s_say(f, &roster);
    s_expect(f, TT_MSG_ROSTER); /* and no second WELCOME before it */
}

static void test_heartbeats(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    tt_link_state(f->link, "collecting batch %d", 12);
    tt_link_progress(f->link, 34);
    static const char *const stages[] = {"env", "wait_weights"};
    tt_link_spent(f->link, stages, (const int64_t[]){1500 * s_ms, 500 * s_ms}, 2);
    tt_link_holds(f->link, true, 7, 1, 2);
    assert_int_equal(s_hear(f, 0), TT_MSG_HEARTBEAT); /* news are told without a turn of the clock */
    assert_int_equal(f->packet.msg.HEARTBEAT.seq, 1);
    assert_true(f->packet.msg.HEARTBEAT.holds);
    assert_int_equal(f->packet.msg.HEARTBEAT.era, 1);
    assert_string_equal(f->packet.msg.HEARTBEAT.state, "collecting batch 12");
    assert_int_equal(f->packet.msg.HEARTBEAT.progress, 34);
    assert_int_equal(f->packet.msg.HEARTBEAT.spent_count, 2);
    assert_string_equal(f->packet.msg.HEARTBEAT.spent[1].name, "wait_weights");
    assert_true(f->packet.msg.HEARTBEAT.spent[0].value == 1.5 && f->packet.msg.HEARTBEAT.spent[1].value == 0.5);
    assert_true(f->packet.msg.HEARTBEAT.cpu_s > 0);
    assert_in_range(f->packet.msg.HEARTBEAT.memory, 100000, 1e12);
    for (uint64_t seq = 2; seq < 20; seq++) {
        s_answer_beat(f);
        s_beat(f);
        assert_int_equal(f->packet.msg.HEARTBEAT.seq, seq); /* one a beat, no more */
    }
    assert_int_equal(tt_link_next(f->link, &f->packet), TT_AGAIN); /* heartbeats stay inside */
}

static void test_messages_wait_for_welcome(void **state)
{
    fixture_t *f = *state;
    const tt_msg_REQUEST_t request = TT_MSG(REQUEST, .id = 9, .verb = "status");
    const tt_msg_STATS_t stats = TT_MSG(STATS, .update = 1);
    assert_int_equal(s_hear(f, 0), TT_MSG_HELLO);
    assert_ok(tt_link_send(f->link, &stats)); /* worth nothing later */
    assert_ok(tt_link_send(f->link, &request));
    for (int i = 0; i < 2; i++) /* what says the second one has seen both */
        assert_int_equal(s_hear_after(f, HELLO_MS), TT_MSG_HELLO);
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
    assert_int_equal(s_hear(f, 0), TT_MSG_REQUEST);
    assert_int_equal(f->packet.msg.REQUEST.id, 9);
    assert_string_equal(f->packet.msg.REQUEST.verb, "status");
    assert_ok(tt_link_send(f->link, &stats));
    assert_int_equal(s_hear(f, 0), TT_MSG_STATS);
    const tt_msg_REPLY_t reply = TT_MSG(REPLY, .id = 9, .body = "{}");
    s_say(f, &reply);
    s_expect(f, TT_MSG_REPLY);
    assert_string_equal(f->packet.msg.REPLY.body, "{}");
}

typedef struct {
    uint64_t seen[4]; /* ids of REPLYs */
    size_t count;
    uint64_t stop_at; /* an id that is too much for it */
} reader_t;

static tt_status_t s_read(void *ctx, tt_packet_t *packet)
{
    reader_t *reader = ctx;
    assert_int_equal(packet->msg.type, TT_MSG_REPLY);
    assert_true(reader->count < TT_COUNT(reader->seen));
    reader->seen[reader->count++] = packet->msg.REPLY.id;
    return packet->msg.REPLY.id == reader->stop_at ? tt_err(TT_PROTOCOL, "enough") : TT_OK;
}

/*  Until so many more have been read; what tt_link_each said last. */
static tt_status_t s_read_until(fixture_t *f, reader_t *reader, size_t count)
{
    tt_status_t status = TT_OK;
    while (status == TT_OK && reader->count < count) {
        struct pollfd ready = {.fd = tt_link_fd(f->link), .events = POLLIN};
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        status = tt_link_each(f->link, s_read, reader);
    }
    return status;
}

static void test_each_hands_on_all_until_one_is_too_much(void **state)
{
    fixture_t *f = *state;
    reader_t reader = {.stop_at = 3};
    s_join(f);
    assert_ok(tt_link_each(f->link, s_read, &reader)); /* there is none */
    assert_int_equal(reader.count, 0);
    for (uint64_t id = 1; id <= 4; id++) {
        const tt_msg_REPLY_t reply = TT_MSG(REPLY, .id = id, .body = "{}");
        s_say(f, &reply);
    }
    assert_int_equal(s_read_until(f, &reader, 4), TT_PROTOCOL);
    assert_string_equal(tt_err_text(), "enough");
    assert_int_equal(reader.count, 3);
    assert_ok(s_read_until(f, &reader, 4)); /* the fourth is still there */
    for (uint64_t id = 1; id <= 4; id++)
        assert_int_equal(reader.seen[id - 1], id);
    tt_sock_destroy(&f->router);
    s_expect_end(f, TT_UNAVAILABLE, 100, "has been silent");
    assert_int_equal(tt_link_each(f->link, s_read, &reader), TT_UNAVAILABLE);
    s_open(f); /* for the teardown */
}

static void test_over_the_limit_is_refused_at_once(void **state)
{
    fixture_t *f = *state;
    char verb[64];
    memset(verb, 'x', sizeof verb);
    verb[63] = '\0';
    const tt_msg_REQUEST_t request = TT_MSG(REQUEST, .id = 9, .verb = verb);
    assert_int_equal(tt_link_send(f->link, &request), TT_INVALID);
}

/*  Another process on the same endpoint, which knows nobody: it asks, we say HELLO with what we hold now, and it hears
 *  again what its predecessor may have lost - but not what was confirmed. */
static void test_coordinator_restarts(void **state)
{
    fixture_t *f = *state;
    f->lease_ms = LONG_LEASE_MS;
    s_join(f);
    const tt_msg_EVENT_t first = TT_MSG(EVENT, .kind = "first"), second = TT_MSG(EVENT, .kind = "second"),
                         third = TT_MSG(EVENT, .kind = "third");
    assert_ok(tt_link_send(f->link, &first));
    assert_int_equal(s_hear(f, 0), TT_MSG_EVENT);
    s_beat(f);
    s_answer_beat(f); /* confirms the first */
    s_beat(f);
    assert_ok(tt_link_send(f->link, &second));
    assert_int_equal(s_hear(f, 0), TT_MSG_EVENT);

    tt_sock_destroy(&f->router);
    tt_link_holds(f->link, true, 41, 2, 3);
    s_open(f);
    assert_ok(tt_link_send(f->link, &third));
    assert_int_not_equal(s_hear(f, 1), TT_MSG_HELLO); /* the third, or a beat when the third was lost on the way */
    const tt_msg_HEARTBEAT_t who = TT_MSG(HEARTBEAT, .hello = true, .seq = 1000);
    s_say(f, &who);
    s_say(f, &who); /* once for each message it does not understand */
    s_hear_type(f, TT_MSG_HELLO, 0);
    assert_true(f->packet.msg.HELLO.instance == tt_link_instance(f->link));
    assert_true(f->packet.msg.HELLO.holds);
    assert_int_equal(f->packet.msg.HELLO.update, 41);
    assert_int_equal(f->packet.msg.HELLO.era, 2);
    assert_int_equal(f->packet.msg.HELLO.generation, 3);
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
    s_hear_type(f, TT_MSG_EVENT, 0);
    assert_string_equal(f->packet.msg.EVENT.kind, "second");
    s_hear_type(f, TT_MSG_EVENT, 0);
    assert_string_equal(f->packet.msg.EVENT.kind, "third");
}

/*  Silence of a lease: a fresh socket and HELLO. The roles hear of it only by the second WELCOME. */
static void test_silence(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    for (int i = 1; i < LEASE_MS / BEAT_MS; i++)
        assert_int_equal(s_hear_after(f, BEAT_MS), TT_MSG_HEARTBEAT); /* not answered */
    assert_int_equal(s_hear_after(f, BEAT_MS), TT_MSG_HELLO);
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
    s_beat(f);
}

static void test_ten_leases_of_silence_end_it(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    tt_sock_destroy(&f->router);
    const int64_t since = tt_now_ns(&f->clock);
    s_expect_end(f, TT_UNAVAILABLE, 100, "has been silent for 10 leases of 500 ms");
    assert_true(tt_now_ns(&f->clock) - since >= 9 * LEASE_MS * s_ms);
    s_open(f); /* for the teardown */
}

/*  "Who are you?", and wait until the link has heard it, or has ended. */
static tt_status_t s_talk(fixture_t *f)
{
    const tt_msg_HEARTBEAT_t who = TT_MSG(HEARTBEAT, .hello = true);
    tt_status_t status = TT_AGAIN;
    for (int tries = 0; status == TT_AGAIN && tries < PATIENCE_MS; tries++) {
        tt_sock_send(f->router, f->peer, &who, NULL, 0);
        status = tt_link_wait(f->link, &f->packet, 1);
        if (tt_link_silence_ms(f->link) == 0)
            break;
    }
    return status;
}

/*  A coordinator that answers, but never lets us in again, is given up too. */
static void test_talk_is_not_a_welcome(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    const int64_t since = tt_now_ns(&f->clock), most = 30 * LEASE_MS * s_ms;
    tt_status_t status = TT_AGAIN;
    while (status == TT_AGAIN && tt_now_ns(&f->clock) - since < most) {
        tt_clock_turn(&f->clock, BEAT_MS * s_ms);
        status = s_talk(f);
    }
    assert_int_equal(status, TT_UNAVAILABLE);
    assert_non_null(strstr(tt_err_text(), "no answer to HELLO"));
    assert_true(tt_now_ns(&f->clock) - since >= 20 * LEASE_MS * s_ms);
}

/*  One jump of an hour (the process was stopped) is one lease, not ten; also while it waits to be let in again. */
static void test_a_stopped_process_is_not_given_up(void **state)
{
    fixture_t *f = *state;
    enum { HOUR_MS = 3600 * 1000 };
    s_join(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s_hear_after(f, HOUR_MS), TT_MSG_HELLO);
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
}

static void test_nobody_there(void **state)
{
    fixture_t *f = *state;
    tt_link_destroy(&f->link);
    tt_sock_destroy(&f->router);
    s_start(f, 3000);
    s_expect_end(f, TT_TIMEOUT, 50, "no answer to HELLO");
    s_open(f);
}

static void test_refused(void **state)
{
    fixture_t *f = *state;
    s_hear_type(f, TT_MSG_HELLO, 0);
    const tt_msg_REFUSED_t refused = TT_MSG(REFUSED, .reason = "no room for a 17th collector");
    s_say(f, &refused);
    s_expect_end(f, TT_DENIED, 0, "no room for a 17th collector");
}

static void test_another_wire_version(void **state)
{
    fixture_t *f = *state;
    s_hear_type(f, TT_MSG_HELLO, 0);
    const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION + 1);
    s_say(f, &welcome);
    char words[64];
    snprintf(words, sizeof words, "speaks wire version %d, we speak %d", TT_WIRE_VERSION + 1, TT_WIRE_VERSION);
    s_expect_end(f, TT_PROTOCOL, 0, words);
}

static void test_bad_endpoint(void **state)
{
    fixture_t *f = *state;
    tt_link_destroy(&f->link);
    const tt_link_opts_t opts = {.endpoint = "tcp://192.0.2.1:5555", .role = TT_PEER_CLIENT, .index = -1};
    assert_ok(tt_link_start(&f->link, &opts));
    assert_true(tt_link_remote(f->link));
    assert_int_equal(tt_link_wait(f->link, &f->packet, PATIENCE_MS), TT_DENIED);
    assert_non_null(strstr(tt_err_text(), "needs the job's key"));
}

/*  What was posted just before the end still arrives. */
static void test_destroy_sends_what_is_queued(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    for (uint64_t i = 1; i <= 50; i++) {
        const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = "e", .update = i);
        assert_ok(tt_link_send(f->link, &event));
    }
    tt_link_destroy(&f->link);
    for (uint64_t i = 1; i <= 50; i++) {
        s_hear_type(f, TT_MSG_EVENT, 0);
        assert_int_equal(f->packet.msg.EVENT.update, i);
    }
}

/*  A coordinator that does not answer HELLO keeps us half a second, no longer. */
static void test_destroy_does_not_wait_for_ever(void **state)
{
    fixture_t *f = *state;
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = "e");
    s_hear_type(f, TT_MSG_HELLO, 0);
    assert_ok(tt_link_send(f->link, &event));
    const int64_t start = tt_now_ms(tt_clock_real());
    tt_link_destroy(&f->link);
    assert_true(tt_now_ms(tt_clock_real()) - start >= 500);
    assert_int_equal(tt_sock_recv(f->router, &f->packet), TT_AGAIN); /* what was not welcome was not sent */
}

/*  Whose coordinator has ended has nobody to wait for: by a clock that stands it would wait for ever, until the alarm ends the test. */
static void test_an_abandoned_link_waits_for_nobody(void **state)
{
    fixture_t *f = *state;
    const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = "e");
    assert_ok(tt_link_send(f->link, &event));
    alarm(PATIENCE_MS / 1000);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &s_stood), 0);
    s_stands = true;
    tt_link_abandon(&f->link);
    s_stands = false;
    alarm(0);
}

/*  What comes before WELCOME is of an older acquaintance. */
static void test_nothing_counts_before_welcome(void **state)
{
    fixture_t *f = *state;
    const tt_msg_ROSTER_t early = TT_MSG(ROSTER, .era = 1, .epoch = 1), roster = TT_MSG(ROSTER, .era = 1, .epoch = 2);
    s_hear_type(f, TT_MSG_HELLO, 0);
    s_say(f, &early);
    s_welcome(f);
    s_say(f, &roster);
    s_expect(f, TT_MSG_WELCOME);
    s_expect(f, TT_MSG_ROSTER);
    assert_int_equal(f->packet.msg.ROSTER.epoch, 2);
}

/*  A coordinator that is away for long does not make us grow: 4096 messages wait, later ones are dropped. */
static void test_the_queue_is_bounded(void **state)
{
    fixture_t *f = *state;
    f->lease_ms = LONG_LEASE_MS;
    s_hear_type(f, TT_MSG_HELLO, 0);
    for (uint64_t i = 1; i <= 5000; i++) {
        const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = "e", .update = i);
        assert_ok(tt_link_send(f->link, &event));
    }
    s_welcome(f);
    s_expect(f, TT_MSG_WELCOME);
    uint64_t heard = 0;
    while (heard < 4096) {
        if (s_hear(f, 1) == TT_MSG_HEARTBEAT) { /* not a sign of silence: the clock goes on while the pipe is full */
            s_answer_beat(f);
            continue;
        }
        assert_int_equal(f->packet.msg.type, TT_MSG_EVENT);
        assert_int_equal(f->packet.msg.EVENT.update, ++heard);
    }
    while (s_hear(f, 10) != TT_MSG_HEARTBEAT)
        fail_msg("more than were kept");
}

/*  State and progress come from any thread, at any rate; the link goes on. (Interesting under ThreadSanitizer.) */
static void *s_chatter(void *ctx)
{
    fixture_t *f = ctx;
    for (uint64_t i = 1; i <= 20000; i++) {
        tt_link_state(f->link, "collecting batch %llu", (unsigned long long)i);
        tt_link_progress(f->link, i);
    }
    return NULL;
}

static void test_threads_may_chatter(void **state)
{
    fixture_t *f = *state;
    pthread_t threads[2];
    f->lease_ms = LONG_LEASE_MS;
    s_join(f);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, s_chatter, f), 0);
    for (uint64_t i = 1; i <= 300; i++) {
        const tt_msg_EVENT_t event = TT_MSG(EVENT, .kind = "e", .update = i);
        assert_ok(tt_link_send(f->link, &event));
        tt_link_holds(f->link, i % 2, i, 1, 1);
        s_hear_type(f, TT_MSG_EVENT, 0);
        assert_int_equal(f->packet.msg.EVENT.update, i);
        const tt_msg_SCALE_t scale = TT_MSG(SCALE, .counts_count = 0);
        s_say(f, &scale);
        s_expect(f, TT_MSG_SCALE);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    do {
        s_hear_type(f, TT_MSG_HEARTBEAT, BEAT_MS); /* one of before may have taken a turn of the clock for itself */
    } while (f->packet.msg.HEARTBEAT.progress != 20000 ||
             strcmp(f->packet.msg.HEARTBEAT.state, "collecting batch 20000") != 0);
}

/*  What a coordinator that lost its journal goes on from. */
static void test_the_roster_we_act_on_is_in_hello(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    tt_rec_MEMBER_t members[] = {{.role = TT_PEER_LEARNER, .instance = 7, .rank = 0},
        {.role = TT_PEER_LEARNER, .instance = tt_link_instance(f->link), .rank = 1}, {.role = TT_PEER_COLLECTOR}};
    const tt_msg_ROSTER_t roster =
        TT_MSG(ROSTER, .era = 2, .epoch = 17, .generation = 3, .members = members, .members_count = TT_COUNT(members));
    tt_link_roster(f->link, &roster);
    s_beat(f);
    const tt_msg_HEARTBEAT_t who = TT_MSG(HEARTBEAT, .hello = true);
    s_say(f, &who);
    s_hear_type(f, TT_MSG_HELLO, 0);
    assert_int_equal(f->packet.msg.HELLO.epoch, 17);
    assert_int_equal(f->packet.msg.HELLO.learners, 2);
    assert_int_equal(f->packet.msg.HELLO.place, 2);
}

/*  What this process has in hand is of another job. */
static void test_other_settings_end_it(void **state)
{
    fixture_t *f = *state;
    s_join(f);
    s_beat(f);
    const tt_msg_HEARTBEAT_t who = TT_MSG(HEARTBEAT, .hello = true);
    s_say(f, &who);
    s_hear_type(f, TT_MSG_HELLO, 0);
    const tt_msg_WELCOME_t welcome = TT_MSG(
        WELCOME, .wire = TT_WIRE_VERSION, .index = 3, .beat_ms = BEAT_MS, .lease_ms = LEASE_MS, .config = "a: 2");
    s_say(f, &welcome);
    s_expect_end(f, TT_DENIED, 0, "other settings");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, s_setup, s_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hello_says_who_we_are),
        TEST(test_hello_is_repeated_until_welcome),
        TEST(test_heartbeats),
        TEST(test_messages_wait_for_welcome),
        TEST(test_each_hands_on_all_until_one_is_too_much),
        TEST(test_over_the_limit_is_refused_at_once),
        TEST(test_coordinator_restarts),
        TEST(test_the_roster_we_act_on_is_in_hello),
        TEST(test_other_settings_end_it),
        TEST(test_silence),
        TEST(test_ten_leases_of_silence_end_it),
        TEST(test_talk_is_not_a_welcome),
        TEST(test_a_stopped_process_is_not_given_up),
        TEST(test_nobody_there),
        TEST(test_refused),
        TEST(test_another_wire_version),
        TEST(test_bad_endpoint),
        TEST(test_destroy_sends_what_is_queued),
        TEST(test_destroy_does_not_wait_for_ever),
        TEST(test_an_abandoned_link_waits_for_nobody),
        TEST(test_nothing_counts_before_welcome),
        TEST(test_the_queue_is_bounded),
        TEST(test_threads_may_chatter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
