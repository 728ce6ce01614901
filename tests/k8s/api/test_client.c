/* The client against a real HTTPS server (server.py): every way an answer comes, and fails to. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <jansson.h>
#include "common/base/mem.h"
#include "k8s/api/call.h"
#include "tests/k8s/api/client_fixture.h"

static void test_echo(void **state)
{
    fixture_t *f = *state;
    f->config->cert_pem = api_server_read(&f->server, "client.crt");
    f->config->key_pem = api_server_read(&f->server, "client.key");
    f->config->token = tt_strdup("abc");
    fixture_open(f, 0);
    got_t got = fixture_ask(f, &(kube_request_t){.method = "PATCH",
                                   .path = "/echo/x?a=1",
                                   .body = "{\"b\":2}",
                                   .content_type = "application/merge-patch+json"});
    assert_int_equal(got.code, 200);
    assert_string_equal(got.text, "");
    json_t *echo = json_loads(got.body, 0, NULL);
    const char *method = NULL, *path = NULL, *body = NULL, *peer = NULL, *token = NULL, *agent = NULL, *type = NULL;
    assert_int_equal(
        json_unpack(echo, "{s:s, s:s, s:s, s:[s], s:{s:s, s:s, s:s}}", "method", &method, "path", &path, "body", &body,
            "peer", &peer, "headers", "authorization", &token, "user-agent", &agent, "content-type", &type),
        0);
    assert_string_equal(method, "PATCH");
    assert_string_equal(path, "/echo/x?a=1");
    assert_string_equal(body, "{\"b\":2}");
    assert_string_equal(peer, "test-client");
    assert_string_equal(token, "Bearer abc");
    assert_string_equal(agent, "test/1");
    assert_string_equal(type, "application/merge-patch+json");
    json_decref(echo);
    free(got.body);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

static void test_who_is_trusted(void **state)
{
    fixture_t *f = *state;
    free(f->config->ca_pem);
    f->config->ca_pem = NULL; /* the system's CAs do not know ours */
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &fixture_echo, "certificate"), 0);
    fixture_close(f);
    f->config->insecure = true;
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &fixture_echo, NULL), 200);
    fixture_close(f);
    f->config->insecure = false;
    f->config->ca_pem = api_server_read(&f->server, "ca.crt");
    f->config->tls_server_name = tt_strdup("kubernetes.test"); /* is in its certificate */
    fixture_open(f, 0);
    got_t got = fixture_ask(f, &fixture_echo);
    assert_int_equal(got.code, 200);
    assert_non_null(strstr(got.body, "127.0.0.1:")); /* the header Host */
    free(got.body);
    fixture_close(f);
    free(f->config->tls_server_name);
    f->config->tls_server_name = tt_strdup("elsewhere.test");
    fixture_open(f, 0);
    assert_int_equal(fixture_code(f, &fixture_echo, "elsewhere.test"), 0);
}

static void test_no_url(void **state)
{
    fixture_t *f = *state;
    free(f->config->server);
    f->config->server = tt_strdup("127.0.0.1:6443");
    assert_ok(tt_reactor_new(&f->loop, NULL));
    assert_int_equal(kube_client_new(&f->client, f->loop, f->config, NULL), TT_CONFIG);
    assert_null(f->client);
}

/* ---- what the server says ---------------------------------------------------------------------------------------- */

static void test_words(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    got_t got =
        fixture_ask(f, &(kube_request_t){.method = "POST",
                           .path = "/fail?code=409&reason=AlreadyExists&message=pods%20%22x%22%20already%20exists"});
    assert_int_equal(got.code, 409);
    assert_string_equal(got.reason, "AlreadyExists");
    assert_string_equal(got.text, "pods \"x\" already exists");
    assert_non_null(strstr(got.body, "\"Status\""));
    free(got.body);
    got = fixture_ask(f, &(kube_request_t){.method = "GET", .path = "/nothing"});
    assert_int_equal(got.code, 404);
    assert_string_equal(got.reason, "");
    assert_string_equal(got.text, "HTTP status 404: 404 page not found");
    free(got.body);
    static const struct {
        int code;
        tt_status_t status;
    } table[] = {{404, TT_NOT_FOUND}, {409, TT_EXISTS}, {401, TT_DENIED}, {403, TT_DENIED}, {408, TT_UNAVAILABLE},
        {422, TT_INVALID}, {429, TT_UNAVAILABLE}, {400, TT_INVALID}, {410, TT_INVALID}, {500, TT_UNAVAILABLE},
        {503, TT_UNAVAILABLE}};
    for (size_t i = 0; i < TT_COUNT(table); i++) {
        char *path = tt_sprintf("/fail?code=%d&message=no%d", table[i].code, table[i].code), *body = NULL;
        assert_int_equal(
            kube_client_call(f->client, &(kube_request_t){.method = "GET", .path = path}, &body), table[i].status);
        assert_null(body);
        assert_non_null(strstr(tt_err_text(), "no"));
        free(path);
    }
    char *body = NULL;
    assert_ok(kube_client_call(f->client, &fixture_echo, &body));
    assert_non_null(strstr(body, "\"GET\""));
    free(body);
    assert_ok(kube_client_call(f->client, &fixture_echo, NULL));
}

static void test_long_answers(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    kube_request_t big = {.method = "GET", .path = "/big?size=300000", .max_bytes = 300000};
    got_t got = fixture_ask(f, &big);
    assert_int_equal(got.code, 200);
    assert_int_equal(got.size, 300000);
    free(got.body);
    big.max_bytes--;
    assert_int_equal(fixture_code(f, &big, "longer than the 299999 bytes"), 0);
}

/* ---- busy, slow and broken servers ------------------------------------------------------------------------------- */

/*  Does a call wait as long as the server has said? */
static bool s_is_put_off(const fixture_t *f)
{
    for (size_t i = 0; i < f->client->calls.count; i++) {
        const kube_call_t *call = f->client->calls.all[i].thing;
        if (call && call->state == CALL_LATER)
            return true;
    }
    return false;
}

/*  Time goes by while the server has asked us to wait, and while it is asked it does not, however slow it is. */
static got_t s_ask_fast(fixture_t *f, tt_clock_t *clock, const kube_request_t *request)
{
    got_t got = {0};
    kube_client_send(f->client, request, got_reply, &got);
    for (int i = 0; got.calls == 0; i++) {
        assert_true(i < 200000);
        assert_ok(tt_reactor_poll(f->loop, s_is_put_off(f) ? 0 : 1000));
        if (s_is_put_off(f))
            tt_clock_turn(clock, 100 * INT64_C(1000000));
    }
    return got;
}

/*  How many attempts came to this; 0 = to no answer. */
static uint64_t s_attempts(const fixture_t *f, const char *method, int code)
{
    const kube_client_stats_t *stats = kube_client_stats(f->client);
    for (size_t i = 0; i < KUBE_STATS_ANSWERS; i++)
        if (strcmp(stats->answers[i].method, method) == 0 && stats->answers[i].code == code)
            return stats->answers[i].count;
    return 0;
}

static const tt_histogram_t *s_durations(const fixture_t *f, const char *verb)
{
    const kube_client_stats_t *stats = kube_client_stats(f->client);
    for (size_t i = 0; i < KUBE_STATS_VERBS; i++)
        if (strcmp(stats->durations[i].verb, verb) == 0)
            return &stats->durations[i].seconds;
    fail_msg("no %s", verb);
    return NULL;
}

static void test_retry_after(void **state)
{
    fixture_t *f = *state;
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    const kube_request_t busy = {
        .method = "POST", .path = "/busy?key=a&times=2&code=429&after=7", .body = "{}", .timeout_ms = 1000000};
    got_t got = s_ask_fast(f, &clock, &busy);
    assert_int_equal(got.code, 200);
    assert_int_equal(got_asked(got.body), 3);
    assert_true(tt_now_ms(&clock) >= 14000);
    free(got.body);
    assert_int_equal(s_attempts(f, "POST", 429), 2); /* each attempt counts, what the caller waited for is one */
    assert_int_equal(s_attempts(f, "POST", 200), 1);
    assert_int_equal(s_durations(f, "POST")->count, 1);
    assert_true(s_durations(f, "POST")->sum >= 14);
    assert_int_equal(s_durations(f, "POST")->counts[9], 1); /* up to 15 */
    const kube_request_t unavailable = {
        .method = "GET", .path = "/busy?key=b&times=1&code=503&after=1", .timeout_ms = 1000000};
    got = s_ask_fast(f, &clock, &unavailable);
    assert_int_equal(got.code, 200);
    free(got.body);
    const kube_request_t no_time = {
        .method = "GET", .path = "/busy?key=c&times=1&code=429&after=300", .timeout_ms = 200000};
    got = fixture_ask(f, &no_time); /* would come after its deadline: the answer stands; so does the clock */
    assert_int_equal(got.code, 429);
    assert_string_equal(got.reason, "TooManyRequests");
    free(got.body);
    const kube_request_t plain = {.method = "GET", .path = "/busy?key=d&times=1&code=429", .timeout_ms = 1000000};
    got = s_ask_fast(f, &clock, &plain); /* no time named: the caller's queue decides */
    assert_int_equal(got.code, 429);
    free(got.body);
    const kube_request_t other = {
        .method = "GET", .path = "/busy?key=e&times=1&code=500&after=1", .timeout_ms = 1000000};
    got = s_ask_fast(f, &clock, &other);
    assert_int_equal(got.code, 500);
    free(got.body);
    fixture_close(f);
}

static void test_deadlines(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 1);
    got_t slow = {0}, behind = {0}, after = {0};
    kube_client_send(
        f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=60000", .timeout_ms = 300}, got_reply, &slow);
    kube_client_send(
        f->client, &(kube_request_t){.method = "GET", .path = "/echo", .timeout_ms = 100}, got_reply, &behind);
    kube_client_send(f->client, &fixture_echo, got_reply, &after);
    assert_int_equal(kube_client_pending(f->client), 3);
    fixture_wait(f, &after.calls, 1);
    assert_int_equal(kube_client_pending(f->client), 0);
    assert_int_equal(slow.code, 0);
    assert_non_null(strstr(slow.text, "no answer within 0.3 s"));
    assert_int_equal(behind.code, 0);
    assert_non_null(strstr(behind.text, "did not get its turn within 0.1 s"));
    assert_int_equal(after.code, 200);
    assert_int_equal(slow.calls + behind.calls + after.calls, 3);
    assert_int_equal(s_attempts(f, "GET", 0), 1); /* the other one never went */
    assert_int_equal(s_attempts(f, "GET", 200), 1);
    assert_int_equal(s_durations(f, "GET")->count, 3);
    free(slow.body);
    free(behind.body);
    free(after.body);
}

static void test_waiting_for_a_turn_is_no_failure(void **state)
{
    fixture_t *f = *state;
    tt_clock_t clock = tt_clock_fake(0);
    const kube_client_opts_t opts = {.max_in_flight = 1};
    got_t slow = {0}, behind = {0};
    assert_ok(tt_reactor_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, &opts));
    const uint64_t id = kube_client_send(f->client,
        &(kube_request_t){.method = "GET", .path = "/slow?ms=600000", .timeout_ms = 1000000}, got_reply, &slow);
    kube_client_send(f->client, &fixture_echo, got_reply, &behind);
    for (int i = 0; i < 5; i++) { /* 100 s */
        assert_ok(tt_reactor_poll(f->loop, 0));
        tt_clock_turn(&clock, INT64_C(20000000000));
    }
    assert_ok(tt_reactor_poll(f->loop, 0));
    assert_int_equal(behind.calls, 0);
    kube_client_cancel(f->client, id);
    fixture_wait(f, &behind.calls, 1);
    assert_int_equal(behind.code, 200);
    behind.calls = 0;
    free(behind.body);
    behind.body = NULL;
    kube_client_send(f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=600000"}, got_reply,
        &behind); /* its own 30 s */
    for (int i = 0; i < 100 && !behind.calls; i++) {
        assert_ok(tt_reactor_poll(f->loop, 0));
        tt_clock_turn(&clock, INT64_C(1000000000));
    }
    assert_int_equal(behind.calls, 1);
    assert_non_null(strstr(behind.text, "no answer within 30 s"));
    free(behind.body);
    fixture_close(f);
}

static void test_connections_that_break(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 0);
    assert_int_equal(
        fixture_code(f, &(kube_request_t){.method = "GET", .path = "/reset"}, "/reset at https://127.0.0.1"), 0);
    assert_int_equal(fixture_code(f, &fixture_echo, NULL), 200);
    fixture_close(f);
    const int fd = socket(AF_INET, SOCK_STREAM, 0); /* a port that is taken, and on which nobody listens */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    free(f->config->server);
    f->config->server = tt_sprintf("https://127.0.0.1:%d", ntohs(address.sin_port));
    fixture_open(f, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_code(f, &fixture_echo, "connect"), 0);
    close(fd);
}

/* ---- order and cancelling ---------------------------------------------------------------------------------------- */

typedef struct {
    char *order;
    char letter;
} turn_t;

static void s_on_turn(void *ctx, const kube_reply_t *reply)
{
    turn_t *turn = ctx;
    assert_int_equal(reply->code, 200);
    turn->order[strlen(turn->order)] = turn->letter;
}

static void test_priorities(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 1);
    char order[16] = "";
    static const kube_priority_t asked[] = {
        KUBE_EVENTS, KUBE_STATUS, KUBE_PODS, KUBE_EVENTS, KUBE_FIRST, KUBE_SERVICES, KUBE_PODS, KUBE_STATUS};
    turn_t turns[TT_COUNT(asked)];
    for (size_t i = 0; i < TT_COUNT(asked); i++) {
        turns[i] = (turn_t){order, (char)('a' + i)};
        kube_request_t request = fixture_echo;
        request.priority = asked[i];
        kube_client_send(f->client, &request, s_on_turn, &turns[i]);
    }
    while (kube_client_pending(f->client))
        assert_ok(tt_reactor_poll(f->loop, 1000));
    assert_string_equal(order, "ecgfbhad"); /* first, pods, services, status, events; as asked within each */
}

static bool s_may(const void *ctx)
{
    return *(const bool *)ctx;
}

/*  Some of it has gone out, or all of it and the answer has come. */
static bool s_is_sent(const fixture_t *f, uint64_t request)
{
    const tt_slot_t *slot = tt_slots_find(&f->client->calls, request);
    const kube_call_t *call = slot ? slot->thing : NULL;
    return !call || (call->request.easy && !tt_request_waits(&call->request));
}

static void s_await_sent(fixture_t *f, uint64_t request)
{
    for (int i = 0; !s_is_sent(f, request); i++) {
        assert_true(i < 200000);
        assert_ok(tt_reactor_poll(f->loop, 1000));
    }
}

/*  What libcurl was given a moment ago is taken back, over a connection that is yet to be made and over one that is there. What was sent is
 *  not: its answer tells what became of it. */
static void test_what_was_not_sent_yet_is_taken_back(void **state)
{
    fixture_t *f = *state;
    bool may = true;
    fixture_open(f, 4);
    const kube_request_t once = {
        .method = "GET", .path = "/busy?times=0&key=taken-back", .may = s_may, .may_ctx = &may};
    for (int turn = 0; turn < 2; turn++) {
        got_t begun[2] = {0}, sent = {0};
        may = true;
        if (turn == 1)
            s_await_sent(f, kube_client_send(f->client,
                                &(kube_request_t){.method = "GET", .path = "/echo", .may = s_may, .may_ctx = &may},
                                got_reply, &sent));
        for (size_t i = 0; i < TT_COUNT(begun); i++)
            kube_client_send(f->client, &once, got_reply, &begun[i]);
        assert_ok(tt_reactor_poll(f->loop, 0));
        may = false;
        kube_client_recheck(f->client);
        for (size_t i = 0; i < TT_COUNT(begun); i++) {
            fixture_wait(f, &begun[i].calls, 1);
            assert_true(begun[i].held_back && begun[i].code == 0);
            free(begun[i].body);
        }
        fixture_wait(f, &sent.calls, turn);
        assert_int_equal(sent.code, turn ? 200 : 0);
        free(sent.body);
    }
    got_t got = fixture_ask(f, &(kube_request_t){.method = "GET", .path = once.path});
    assert_int_equal(got_asked(got.body), 1); /* the others never came to the server */
    free(got.body);
}

/*  What it was asked for is not to be done any more: what waits for its turn is never sent, whether its turn comes or not. */
static void test_what_may_not_go_any_more_is_held_back(void **state)
{
    fixture_t *f = *state;
    bool may = true;
    fixture_open(f, 1);
    got_t first = {0}, waiting[3] = {0}, late = {0}, free_ = {0};
    const kube_request_t slow = {
        .method = "GET", .path = "/slow?ms=60000", .may = s_may, .may_ctx = &may, .timeout_ms = 60000};
    kube_request_t once = {.method = "GET", .path = "/busy?times=0&key=held-back", .may = s_may, .may_ctx = &may};
    const uint64_t on_wire = kube_client_send(f->client, &slow, got_reply, &first);
    for (size_t i = 0; i < TT_COUNT(waiting); i++)
        kube_client_send(f->client, &once, got_reply, &waiting[i]);
    s_await_sent(f, on_wire);
    may = false;
    kube_client_recheck(f->client);
    for (size_t i = 0; i < TT_COUNT(waiting); i++) {
        fixture_wait(f, &waiting[i].calls, 1);
        assert_true(waiting[i].held_back && waiting[i].code == 0);
        free(waiting[i].body);
    }
    assert_int_equal(first.calls, 0);
    kube_client_send(f->client, &once, got_reply, &late);
    once.may = NULL;
    kube_client_send(f->client, &once, got_reply, &free_);
    kube_client_cancel(f->client, on_wire);
    fixture_wait(f, &late.calls, 1);
    fixture_wait(f, &free_.calls, 1);
    assert_true(late.held_back);
    assert_int_equal(free_.code, 200);
    assert_int_equal(got_asked(free_.body), 1); /* the others never came to the server */
    free(late.body);
    free(free_.body);
}

static void test_cancel(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 1);
    got_t dropped = {0}, kept = {0};
    kube_client_cancel(f->client, 0);
    kube_client_cancel(f->client, 12345);
    const kube_request_t slow = {.method = "GET", .path = "/slow?ms=60000"};
    const uint64_t on_wire = kube_client_send(f->client, &slow, got_reply, &dropped);
    const uint64_t waiting = kube_client_send(f->client, &fixture_echo, got_reply, &dropped);
    kube_client_send(f->client, &fixture_echo, got_reply, &kept);
    assert_ok(tt_reactor_poll(f->loop, 0));
    kube_client_cancel(f->client, waiting);
    kube_client_cancel(f->client, on_wire);
    kube_client_cancel(f->client, on_wire);
    assert_int_equal(kube_client_pending(f->client), 1);
    fixture_wait(f, &kept.calls, 1);
    assert_int_equal(kept.code, 200);
    assert_int_equal(dropped.calls, 0);
    free(kept.body);
}

static void s_on_many(void *ctx, const kube_reply_t *reply)
{
    *(int *)ctx += reply->code == 200;
}

static void test_a_thousand(void **state)
{
    fixture_t *f = *state;
    enum { N = 1000 };
    fixture_open(f, 8);
    int *good = tt_array0(N, sizeof *good);
    for (int i = 0; i < N; i++)
        kube_client_send(f->client,
            &(kube_request_t){.method = "POST", .path = "/echo", .body = "{}", .timeout_ms = 120000}, s_on_many,
            &good[i]);
    assert_int_equal(kube_client_pending(f->client), N);
    while (kube_client_pending(f->client))
        assert_ok(tt_reactor_poll(f->loop, 1000));
    for (int i = 0; i < N; i++)
        assert_int_equal(good[i], 1);
    free(good);
}

/*  A connection that was used before ends before there is a word of an answer: libcurl sends the request again, over another one, unless it may
 *  not go any more. */
static void test_what_libcurl_sends_again(void **state)
{
    fixture_t *f = *state;
    fixture_open(f, 1);
    for (int turn = 0; turn < 2; turn++) {
        bool may = true;
        got_t got = {0};
        char path[64], count[64];
        snprintf(path, sizeof path, "/reset?key=again-%d", turn);
        snprintf(count, sizeof count, "/busy?times=0&key=again-%d", turn);
        assert_int_equal(fixture_code(f, &fixture_echo, NULL), 200);
        s_await_sent(f,
            kube_client_send(f->client,
                &(kube_request_t){.method = "DELETE", .path = path, .may = s_may, .may_ctx = &may}, got_reply, &got));
        may = turn == 0;
        fixture_wait(f, &got.calls, 1);
        assert_int_equal(got.code, 0);
        assert_false(got.held_back); /* of one the server has got */
        if (turn)
            assert_non_null(strstr(got.text, "its connection broke, and it may not go again"));
        free(got.body);
        got_t asked = fixture_ask(f, &(kube_request_t){.method = "GET", .path = count});
        assert_int_equal(got_asked(asked.body), turn ? 2 : 3);
        free(asked.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_echo),
        FIXTURE_TEST(test_who_is_trusted),
        FIXTURE_TEST(test_no_url),
        FIXTURE_TEST(test_words),
        FIXTURE_TEST(test_long_answers),
        FIXTURE_TEST(test_retry_after),
        FIXTURE_TEST(test_deadlines),
        FIXTURE_TEST(test_waiting_for_a_turn_is_no_failure),
        FIXTURE_TEST(test_connections_that_break),
        FIXTURE_TEST(test_priorities),
        FIXTURE_TEST(test_what_was_not_sent_yet_is_taken_back),
        FIXTURE_TEST(test_what_libcurl_sends_again),
        FIXTURE_TEST(test_what_may_not_go_any_more_is_held_back),
        FIXTURE_TEST(test_cancel),
        FIXTURE_TEST(test_a_thousand),
    };
    return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
