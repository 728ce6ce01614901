/* The client against a real HTTPS server (server.py): every way an answer comes, and fails to. */
#include "k8s/api/client.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <jansson.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/k8s/api/api_server.h"
#include "tests/test.h"

typedef struct {
    api_server_t server;
    kube_config_t *config;
    kube_loop_t *loop;
    kube_client_t *client;
} fixture_t;

static void s_open(fixture_t *f, int max_in_flight)
{
    assert_ok(kube_loop_new(&f->loop, NULL));
    assert_ok(kube_client_new(
        &f->client, f->loop, f->config, &(kube_client_opts_t){.max_in_flight = max_in_flight, .agent = "test/1"}));
}

static void s_close(fixture_t *f)
{
    kube_client_destroy(&f->client);
    kube_loop_destroy(&f->loop);
}

static int s_setup(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    api_server_start(&f->server);
    *state = f;
    return 0;
}

static int s_teardown(void **state)
{
    fixture_t *f = *state;
    api_server_stop(&f->server);
    free(f);
    return 0;
}

static int s_begin(void **state)
{
    fixture_t *f = *state;
    f->config = api_server_config(&f->server);
    return 0;
}

static int s_end(void **state)
{
    fixture_t *f = *state;
    s_close(f);
    kube_config_destroy(&f->config);
    return 0;
}

/* ---- one answer -------------------------------------------------------------------------------------------------- */

typedef struct {
    int calls, code;
    char text[512], reason[64];
    char *body;
    size_t size;
} got_t;

static void s_on_done(void *ctx, const kube_reply_t *reply)
{
    got_t *got = ctx;
    got->calls++;
    got->code = reply->code;
    memcpy(got->text, reply->text, sizeof got->text);
    memcpy(got->reason, reply->reason, sizeof got->reason);
    free(got->body);
    got->body = tt_strdup(reply->body);
    got->size = reply->size;
    assert_int_equal(reply->body[reply->size], 0);
}

static void s_wait(fixture_t *f, const int *calls, int until)
{
    for (int i = 0; *calls < until; i++) {
        assert_true(i < 200000);
        assert_ok(kube_loop_poll(f->loop, 1000));
    }
}

static got_t s_ask(fixture_t *f, const kube_request_t *request)
{
    got_t got = {0};
    assert_int_not_equal(kube_client_send(f->client, request, s_on_done, &got), 0);
    assert_int_equal(got.calls, 0);
    s_wait(f, &got.calls, 1);
    return got;
}

static void test_echo(void **state)
{
    fixture_t *f = *state;
    f->config->cert_pem = api_server_read(&f->server, "client.crt");
    f->config->key_pem = api_server_read(&f->server, "client.key");
    f->config->token = tt_strdup("abc");
    s_open(f, 0);
    got_t got = s_ask(f, &(kube_request_t){.method = "PATCH",
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

static const kube_request_t s_echo = {.method = "GET", .path = "/echo"};

static int s_code(fixture_t *f, const kube_request_t *request, const char *words)
{
    got_t got = s_ask(f, request);
    if (words && !strstr(got.text, words))
        fail_msg("'%s' is not in '%s'", words, got.text);
    free(got.body);
    return got.code;
}

static void test_who_is_trusted(void **state)
{
    fixture_t *f = *state;
    free(f->config->ca_pem);
    f->config->ca_pem = NULL; /* the system's CAs do not know ours */
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_echo, "certificate"), 0);
    s_close(f);
    f->config->insecure = true;
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_echo, NULL), 200);
    s_close(f);
    f->config->insecure = false;
    f->config->ca_pem = api_server_read(&f->server, "ca.crt");
    f->config->tls_server_name = tt_strdup("kubernetes.test"); /* is in its certificate */
    s_open(f, 0);
    got_t got = s_ask(f, &s_echo);
    assert_int_equal(got.code, 200);
    assert_non_null(strstr(got.body, "127.0.0.1:")); /* the header Host */
    free(got.body);
    s_close(f);
    free(f->config->tls_server_name);
    f->config->tls_server_name = tt_strdup("elsewhere.test");
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_echo, "elsewhere.test"), 0);
}

static void test_no_url(void **state)
{
    fixture_t *f = *state;
    free(f->config->server);
    f->config->server = tt_strdup("127.0.0.1:6443");
    assert_ok(kube_loop_new(&f->loop, NULL));
    assert_int_equal(kube_client_new(&f->client, f->loop, f->config, NULL), TT_CONFIG);
    assert_null(f->client);
}

/* ---- what the server says ---------------------------------------------------------------------------------------- */

static void test_words(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    got_t got = s_ask(f, &(kube_request_t){.method = "POST",
                             .path = "/fail?code=409&reason=AlreadyExists&message=pods%20%22x%22%20already%20exists"});
    assert_int_equal(got.code, 409);
    assert_string_equal(got.reason, "AlreadyExists");
    assert_string_equal(got.text, "pods \"x\" already exists");
    assert_non_null(strstr(got.body, "\"Status\""));
    free(got.body);
    got = s_ask(f, &(kube_request_t){.method = "GET", .path = "/nothing"});
    assert_int_equal(got.code, 404);
    assert_string_equal(got.reason, "");
    assert_string_equal(got.text, "HTTP status 404: 404 page not found");
    free(got.body);
    static const struct {
        int code;
        tt_status_t status;
    } table[] = {{404, TT_NOT_FOUND}, {409, TT_EXISTS}, {401, TT_DENIED}, {403, TT_DENIED}, {422, TT_INVALID},
        {400, TT_INVALID}, {410, TT_INVALID}, {500, TT_UNAVAILABLE}, {503, TT_UNAVAILABLE}};
    for (size_t i = 0; i < TT_COUNT(table); i++) {
        char *path = tt_sprintf("/fail?code=%d&message=no%d", table[i].code, table[i].code), *body = NULL;
        assert_int_equal(
            kube_client_call(f->client, &(kube_request_t){.method = "GET", .path = path}, &body), table[i].status);
        assert_null(body);
        assert_non_null(strstr(tt_err_text(), "no"));
        free(path);
    }
    char *body = NULL;
    assert_ok(kube_client_call(f->client, &s_echo, &body));
    assert_non_null(strstr(body, "\"GET\""));
    free(body);
    assert_ok(kube_client_call(f->client, &s_echo, NULL));
}

static void test_long_answers(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    kube_request_t big = {.method = "GET", .path = "/big?size=300000", .max_bytes = 300000};
    got_t got = s_ask(f, &big);
    assert_int_equal(got.code, 200);
    assert_int_equal(got.size, 300000);
    free(got.body);
    big.max_bytes--;
    assert_int_equal(s_code(f, &big, "longer than the 299999 bytes"), 0);
}

static void test_escape(void **state)
{
    (void)state;
    char *text = kube_escape("a/b c=d,e!~_-.%\xc3\xa9");
    assert_string_equal(text, "a%2Fb%20c%3Dd%2Ce%21~_-.%25%C3%A9");
    free(text);
}

/* ---- credentials ------------------------------------------------------------------------------------------------- */

static int s_asked(const char *body)
{
    json_t *root = json_loads(body, 0, NULL);
    const int asked = (int)json_integer_value(json_object_get(root, "asked"));
    json_decref(root);
    return asked;
}

static const kube_request_t s_secret = {.method = "GET", .path = "/secret"};

static void test_token_rotation(void **state)
{
    fixture_t *f = *state;
    f->config->token_file = api_server_path(&f->server, "token");
    api_server_write(&f->server, "token", "first\n");
    api_server_write(&f->server, "accepted", "first");
    s_open(f, 0);
    got_t got = s_ask(f, &s_secret);
    assert_int_equal(got.code, 200);
    const int before = s_asked(got.body);
    free(got.body);
    api_server_write(&f->server, "accepted", "second");
    api_server_write(&f->server, "token", "second\n");
    got =
        s_ask(f, &s_secret); /* goes with the first, as the file is looked at once a second; refused; then the second */
    assert_int_equal(got.code, 200);
    assert_in_range(s_asked(got.body), before + 1, before + 2);
    const int then = s_asked(got.body);
    free(got.body);
    api_server_write(&f->server, "accepted", "third"); /* and the file stays as it is */
    assert_int_equal(s_code(f, &s_secret, "Unauthorized"), 401);
    api_server_write(&f->server, "accepted", "second");
    got = s_ask(f, &s_secret);
    assert_int_equal(s_asked(got.body), then + 2); /* it was not tried again in vain */
    free(got.body);
    char *path = api_server_path(&f->server, "token");
    unlink(path);
    free(path);
    assert_int_equal(s_code(f, &s_secret, NULL), 200); /* what we have stays good */
    s_close(f);
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_secret, "token"), 0); /* and who has none gets nowhere */
}

/* A plug-in that says the token in the file `give`, and leaves a line in `runs` each time. */
static void s_plugin(fixture_t *f, const char *script)
{
    char *text = tt_sprintf("#!/bin/sh\ncd '%s'\necho x >> runs\n%s\n", f->server.folder, script);
    char *path = api_server_path(&f->server, "plugin"), *runs = api_server_path(&f->server, "runs");
    unlink(runs);
    api_server_write(&f->server, "plugin", text);
    assert_int_equal(chmod(path, 0700), 0);
    kube_exec_t *exec = tt_new0(sizeof *exec);
    exec->api_version = tt_strdup("client.authentication.k8s.io/v1");
    exec->command = path;
    exec->install_hint = tt_strdup("It comes with the test.");
    exec->env = tt_array0(1, sizeof *exec->env);
    exec->env[exec->env_count++] = (kube_env_t){tt_strdup("WHO"), tt_strdup("me")};
    f->config->exec = exec;
    free(text);
    free(runs);
}

static size_t s_runs(fixture_t *f)
{
    char *runs = api_server_read(&f->server, "runs");
    const size_t count = runs ? strlen(runs) / 2 : 0;
    free(runs);
    return count;
}

#define SAY_TOKEN(more)                                                                           \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"," more \
    "\"status\":{\"token\":\"'$(cat give)'\"'$EXPIRES'}}'"

static void test_plugin(void **state)
{
    fixture_t *f = *state;
    api_server_write(&f->server, "give", "one");
    api_server_write(&f->server, "accepted", "one");
    s_plugin(f, "test \"$WHO\" = me || exit 3\n"
                "case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) ;; *) exit 4 ;; esac\n" SAY_TOKEN(""));
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(kube_loop_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    got_t a = {0}, b = {0};
    kube_client_send(f->client, &s_secret, s_on_done, &a);
    kube_client_send(f->client, &s_secret, s_on_done, &b);
    s_wait(f, &a.calls, 1);
    s_wait(f, &b.calls, 1);
    assert_int_equal(a.code, 200);
    assert_int_equal(b.code, 200);
    assert_int_equal(s_runs(f), 1); /* one run for both */
    free(a.body);
    free(b.body);
    api_server_write(&f->server, "give", "two");
    api_server_write(&f->server, "accepted", "two");
    assert_int_equal(s_code(f, &s_secret, NULL), 200);
    assert_int_equal(s_runs(f), 2); /* refused: run again, and the request repeated */
    api_server_write(&f->server, "accepted", "three");
    assert_int_equal(s_code(f, &s_secret, "Unauthorized"), 401);
    assert_int_equal(s_runs(f), 2); /* its last answer to a refusal was just refused */
    tt_clock_turn(&clock, INT64_C(5000000000));
    assert_int_equal(s_code(f, &s_secret, "Unauthorized"), 401);
    assert_int_equal(s_runs(f), 3);
    s_close(f);
}

static void test_plugin_with_certificate(void **state)
{
    fixture_t *f = *state;
    s_plugin(f,
        "python3 -c \"import json; r = lambda n: open(n).read()\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status':\n"
        "{'clientCertificateData': r('client.crt'), 'clientKeyData': r('client.key'),\n"
        "'expirationTimestamp': '2099-01-01T00:00:00Z'}}))\"");
    s_open(f, 0);
    got_t got = s_ask(f, &s_echo);
    assert_int_equal(got.code, 200);
    assert_non_null(strstr(got.body, "test-client"));
    free(got.body);
}

static void test_plugin_that_expires(void **state)
{
    fixture_t *f = *state;
    api_server_write(&f->server, "give", "old");
    api_server_write(&f->server, "accepted", "old");
    s_plugin(f, "EXPIRES=',\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"'\n" SAY_TOKEN(""));
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(kube_loop_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    assert_int_equal(s_code(f, &s_secret, NULL), 200); /* used once, though it is old at birth */
    assert_int_equal(s_code(f, &s_secret, NULL), 200); /* and for a second */
    assert_int_equal(s_runs(f), 1);
    tt_clock_turn(&clock, INT64_C(1000000000));
    assert_int_equal(s_code(f, &s_secret, NULL), 200);
    assert_int_equal(s_runs(f), 2);
    s_close(f);
}

static void s_plugin_fails(fixture_t *f, const char *script, const char *words)
{
    s_plugin(f, script);
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_echo, words), 0);
    s_close(f);
    kube_config_destroy(&f->config);
    f->config = api_server_config(&f->server);
}

static void test_plugins_that_fail(void **state)
{
    fixture_t *f = *state;
    s_plugin_fails(f, "echo 'log in first' >&2; exit 2", "exit code 2: log in first");
    s_plugin_fails(f, "kill -9 $$", "killed by signal 9");
    s_plugin_fails(f, "echo hello", "not JSON");
    s_plugin_fails(f, "echo '{\"kind\":\"Pod\"}'", "not an ExecCredential");
    s_plugin_fails(f, "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}'", "apiVersion v9");
    s_plugin_fails(f, "EXPIRES=,; : > give;" SAY_TOKEN(""), "not JSON");
    s_plugin_fails(f, ": > give;" SAY_TOKEN(""), "neither token");
    s_plugin_fails(f, "echo 'a b' > give;" SAY_TOKEN(""), "white space");
    s_plugin_fails(
        f, "EXPIRES=',\"expirationTimestamp\":\"soon\"'; echo a > give;" SAY_TOKEN(""), "'soon' is not a time");
    s_plugin_fails(f, "EXPIRES=',\"clientKeyData\":\"k\"'; echo a > give;" SAY_TOKEN(""), "need each other");
    s_plugin_fails(f, "head -c 2000000 /dev/zero", "more than 1048576 bytes");
    s_plugin(f, "");
    char *path = api_server_path(&f->server, "plugin");
    unlink(path);
    free(path);
    s_open(f, 0);
    assert_int_equal(s_code(f, &s_echo, "No such file or directory. It comes with the test."), 0);
}

/* It runs for ever: the loop runs on, the minute passes, and it is gone with all that it began. */
static void test_plugin_that_hangs(void **state)
{
    fixture_t *f = *state;
    s_plugin(f, "sleep 1000 & echo $! > child\nmv child child.pid\nwait");
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(kube_loop_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    got_t got = {0}, impatient = {0};
    kube_request_t request = s_echo;
    request.timeout_ms = 100000;
    kube_client_send(f->client, &request, s_on_done, &got);
    request.timeout_ms = 1000;
    kube_client_send(f->client, &request, s_on_done, &impatient);
    char *pid_file = api_server_path(&f->server, "child.pid");
    while (access(pid_file, F_OK) != 0)
        assert_ok(kube_loop_poll(f->loop, 5));
    tt_clock_turn(&clock, INT64_C(1000000000));
    s_wait(f, &impatient.calls, 1);
    assert_non_null(strstr(impatient.text, "no credentials yet"));
    tt_clock_turn(&clock, INT64_C(58990000000));
    assert_ok(kube_loop_poll(f->loop, 0));
    assert_int_equal(got.calls, 0);
    tt_clock_turn(&clock, INT64_C(10000000));
    s_wait(f, &got.calls, 1);
    assert_int_equal(got.code, 0);
    assert_non_null(strstr(got.text, "no answer within 60 s"));
    char *child = api_server_read(&f->server, "child.pid");
    const pid_t pid = atoi(child);
    for (int i = 0; kill(pid, 0) == 0 && i < 5000; i++) { /* killed; somebody else reaps it */
        char *stat_file = tt_sprintf("/proc/%d/stat", pid), state_letter = 0;
        FILE *file = fopen(stat_file, "r");
        const bool zombie = !file || (fscanf(file, "%*d (sleep) %c", &state_letter) == 1 && state_letter == 'Z');
        if (file)
            fclose(file);
        free(stat_file);
        if (zombie)
            break;
        usleep(1000);
        assert_int_not_equal(i, 4999);
    }
    free(child);
    free(pid_file);
    free(got.body);
    free(impatient.body);
    s_close(f);
}

/* ---- busy, slow and broken servers ------------------------------------------------------------------------------- */

/* Wait with a clock that runs a hundred times as fast. */
static got_t s_ask_fast(fixture_t *f, tt_clock_t *clock, const kube_request_t *request)
{
    got_t got = {0};
    kube_client_send(f->client, request, s_on_done, &got);
    for (int i = 0; got.calls == 0; i++) {
        assert_true(i < 20000);
        assert_ok(kube_loop_poll(f->loop, 1));
        tt_clock_turn(clock, 100 * INT64_C(1000000));
    }
    return got;
}

static void test_retry_after(void **state)
{
    fixture_t *f = *state;
    tt_clock_t clock = tt_clock_fake(0);
    assert_ok(kube_loop_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, NULL));
    const kube_request_t busy = {
        .method = "POST", .path = "/busy?key=a&times=2&code=429&after=7", .body = "{}", .timeout_ms = 1000000};
    got_t got = s_ask_fast(f, &clock, &busy);
    assert_int_equal(got.code, 200);
    assert_int_equal(s_asked(got.body), 3);
    assert_true(tt_now_ms(&clock) >= 14000);
    free(got.body);
    const kube_request_t unavailable = {
        .method = "GET", .path = "/busy?key=b&times=1&code=503&after=1", .timeout_ms = 1000000};
    got = s_ask_fast(f, &clock, &unavailable);
    assert_int_equal(got.code, 200);
    free(got.body);
    const kube_request_t no_time = {
        .method = "GET", .path = "/busy?key=c&times=1&code=429&after=300", .timeout_ms = 200000};
    got = s_ask_fast(f, &clock, &no_time); /* would come after its deadline: the answer stands */
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
    s_close(f);
}

static void test_deadlines(void **state)
{
    fixture_t *f = *state;
    s_open(f, 1);
    got_t slow = {0}, behind = {0}, after = {0};
    kube_client_send(
        f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=60000", .timeout_ms = 300}, s_on_done, &slow);
    kube_client_send(
        f->client, &(kube_request_t){.method = "GET", .path = "/echo", .timeout_ms = 100}, s_on_done, &behind);
    kube_client_send(f->client, &s_echo, s_on_done, &after);
    assert_int_equal(kube_client_pending(f->client), 3);
    s_wait(f, &after.calls, 1);
    assert_int_equal(kube_client_pending(f->client), 0);
    assert_int_equal(slow.code, 0);
    assert_non_null(strstr(slow.text, "no answer within 0.3 s"));
    assert_int_equal(behind.code, 0);
    assert_non_null(strstr(behind.text, "did not get its turn within 0.1 s"));
    assert_int_equal(after.code, 200);
    assert_int_equal(slow.calls + behind.calls + after.calls, 3);
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
    assert_ok(kube_loop_new(&f->loop, &clock));
    assert_ok(kube_client_new(&f->client, f->loop, f->config, &opts));
    const uint64_t id = kube_client_send(f->client,
        &(kube_request_t){.method = "GET", .path = "/slow?ms=600000", .timeout_ms = 1000000}, s_on_done, &slow);
    kube_client_send(f->client, &s_echo, s_on_done, &behind);
    for (int i = 0; i < 5; i++) { /* 100 s */
        assert_ok(kube_loop_poll(f->loop, 0));
        tt_clock_turn(&clock, INT64_C(20000000000));
    }
    assert_ok(kube_loop_poll(f->loop, 0));
    assert_int_equal(behind.calls, 0);
    kube_client_cancel(f->client, id);
    s_wait(f, &behind.calls, 1);
    assert_int_equal(behind.code, 200);
    behind.calls = 0;
    free(behind.body);
    behind.body = NULL;
    kube_client_send(f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=600000"}, s_on_done,
        &behind); /* its own 30 s */
    for (int i = 0; i < 100 && !behind.calls; i++) {
        assert_ok(kube_loop_poll(f->loop, 0));
        tt_clock_turn(&clock, INT64_C(1000000000));
    }
    assert_int_equal(behind.calls, 1);
    assert_non_null(strstr(behind.text, "no answer within 30 s"));
    free(behind.body);
    s_close(f);
}

static void test_connections_that_break(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    assert_int_equal(s_code(f, &(kube_request_t){.method = "GET", .path = "/reset"}, "/reset at https://127.0.0.1"), 0);
    assert_int_equal(s_code(f, &s_echo, NULL), 200);
    s_close(f);
    const int fd = socket(AF_INET, SOCK_STREAM, 0); /* a port that is taken, and on which nobody listens */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    free(f->config->server);
    f->config->server = tt_sprintf("https://127.0.0.1:%d", ntohs(address.sin_port));
    s_open(f, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s_code(f, &s_echo, "connect"), 0);
    close(fd);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

typedef struct {
    fixture_t *f;
    got_t end;
    tt_buf_t bytes;
    size_t stop_at;          /* end it by a status after so many bytes; 0 = no      */
    uint64_t cancel_at_once; /* cancelled when the first piece comes; 0 = none */
} stream_t;

static tt_status_t s_on_piece(void *ctx, const char *data, size_t size)
{
    stream_t *stream = ctx;
    assert_int_equal(stream->end.calls, 0);
    assert_ok(tt_buf_add(&stream->bytes, data, size));
    kube_client_cancel(stream->f->client, stream->cancel_at_once);
    if (stream->stop_at && stream->bytes.size >= stream->stop_at)
        return tt_err(TT_DATA, "enough of this");
    return TT_OK;
}

static void s_on_stream_done(void *ctx, const kube_reply_t *reply)
{
    s_on_done(&((stream_t *)ctx)->end, reply);
}

static uint64_t s_stream(fixture_t *f, stream_t *stream, const char *path, int idle_ms)
{
    stream->f = f;
    tt_buf_init(&stream->bytes, 1 << 20);
    return kube_client_stream(
        f->client, &(kube_request_t){.method = "GET", .path = path}, idle_ms, s_on_piece, s_on_stream_done, stream);
}

static void s_stream_free(stream_t *stream)
{
    tt_buf_free(&stream->bytes);
    free(stream->end.body);
}

static char *s_lines(int count)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    for (int i = 0; i < count; i++)
        assert_ok(tt_buf_printf(&text, "{\"line\":%d}\n", i));
    return text.data;
}

static void test_stream(void **state)
{
    fixture_t *f = *state;
    s_open(f, 1);
    stream_t stream = {0};
    s_stream(f, &stream, "/stream?lines=500", 0);
    assert_int_equal(kube_client_pending(f->client), 0); /* is not counted */
    s_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 200);
    assert_int_equal(stream.end.size, 0);
    char *expected = s_lines(500);
    assert_string_equal(stream.bytes.data, expected);
    free(expected);
    s_stream_free(&stream);
    stream = (stream_t){0};
    s_stream(f, &stream, "/fail?code=410&reason=Expired&message=too%20old", 0);
    s_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 410);
    assert_string_equal(stream.end.reason, "Expired");
    assert_string_equal(stream.end.text, "too old");
    assert_int_equal(stream.bytes.size, 0); /* an error is not data */
    s_stream_free(&stream);
}

/* The connection ends after any number of bytes: what came before it came, and the end is no good one. */
static void test_stream_cut_anywhere(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    char *expected = s_lines(3);
    for (size_t cut = 0; cut <= strlen(expected); cut++) {
        stream_t closed = {0}, reset = {0};
        char *fin = tt_sprintf("/stream?lines=3&how=fin&cut=%zu", cut);
        char *rst = tt_sprintf("/stream?lines=3&how=rst&cut=%zu", cut);
        s_stream(f, &closed, fin, 0);
        s_stream(f, &reset, rst, 0);
        s_wait(f, &closed.end.calls, 1);
        s_wait(f, &reset.end.calls, 1);
        assert_int_equal(closed.end.code, 0);
        assert_int_equal(reset.end.code, 0);
        assert_true(closed.end.text[0] && reset.end.text[0]);
        assert_int_equal(closed.bytes.size, cut);
        assert_memory_equal(tt_buf_text(&closed.bytes), expected, cut);
        assert_true(reset.bytes.size <= cut); /* what the kernel has not handed on is lost */
        assert_memory_equal(tt_buf_text(&reset.bytes), expected, reset.bytes.size);
        s_stream_free(&closed);
        s_stream_free(&reset);
        free(fin);
        free(rst);
    }
    free(expected);
}

static void test_stream_that_is_silent(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    stream_t silent = {0}, lively = {0};
    s_stream(f, &lively, "/stream?lines=20&gap=150", 2000); /* 3 s in all, but never silent for long */
    s_stream(f, &silent, "/stream?lines=2&gap=60000", 500);
    s_wait(f, &silent.end.calls, 1);
    assert_int_equal(silent.end.code, 0);
    assert_non_null(strstr(silent.end.text, "nothing came for 0.5 s"));
    assert_string_equal(silent.bytes.data, "{\"line\":0}\n");
    s_wait(f, &lively.end.calls, 1);
    assert_int_equal(lively.end.code, 200);
    s_stream_free(&silent);
    s_stream_free(&lively);
}

static void test_stream_ended_by_its_reader(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    stream_t stream = {.stop_at = 20};
    s_stream(f, &stream, "/stream?lines=1000&gap=1", 0);
    s_wait(f, &stream.end.calls, 1);
    assert_int_equal(stream.end.code, 0);
    assert_string_equal(stream.end.text, "enough of this");
    s_stream_free(&stream);
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
    s_open(f, 1);
    char order[16] = "";
    static const kube_priority_t asked[] = {
        KUBE_EVENTS, KUBE_STATUS, KUBE_PODS, KUBE_EVENTS, KUBE_FIRST, KUBE_SERVICES, KUBE_PODS, KUBE_STATUS};
    turn_t turns[TT_COUNT(asked)];
    for (size_t i = 0; i < TT_COUNT(asked); i++) {
        turns[i] = (turn_t){order, (char)('a' + i)};
        kube_request_t request = s_echo;
        request.priority = asked[i];
        kube_client_send(f->client, &request, s_on_turn, &turns[i]);
    }
    while (kube_client_pending(f->client))
        assert_ok(kube_loop_poll(f->loop, 1000));
    assert_string_equal(order, "ecgfbhad"); /* first, pods, services, status, events; as asked within each */
}

static void test_cancel(void **state)
{
    fixture_t *f = *state;
    s_open(f, 1);
    got_t dropped = {0}, kept = {0};
    kube_client_cancel(f->client, 0);
    kube_client_cancel(f->client, 12345);
    const kube_request_t slow = {.method = "GET", .path = "/slow?ms=60000"};
    const uint64_t on_wire = kube_client_send(f->client, &slow, s_on_done, &dropped);
    const uint64_t waiting = kube_client_send(f->client, &s_echo, s_on_done, &dropped);
    kube_client_send(f->client, &s_echo, s_on_done, &kept);
    assert_ok(kube_loop_poll(f->loop, 0));
    kube_client_cancel(f->client, waiting);
    kube_client_cancel(f->client, on_wire);
    kube_client_cancel(f->client, on_wire);
    assert_int_equal(kube_client_pending(f->client), 1);
    s_wait(f, &kept.calls, 1);
    assert_int_equal(kept.code, 200);
    assert_int_equal(dropped.calls, 0);
    free(kept.body);
}

/* From within a piece of data: itself, and another one that is on the wire. */
static void test_cancel_from_within(void **state)
{
    fixture_t *f = *state;
    s_open(f, 0);
    stream_t other = {0}, killer = {0}, self = {0};
    const uint64_t victim = s_stream(f, &other, "/stream?lines=2&gap=60000", 0);
    while (other.bytes.size == 0)
        assert_ok(kube_loop_poll(f->loop, 1000));
    killer.cancel_at_once = victim;
    s_stream(f, &killer, "/stream?lines=5", 0);
    s_wait(f, &killer.end.calls, 1);
    assert_int_equal(killer.end.code, 200);
    self.cancel_at_once = s_stream(f, &self, "/stream?lines=50&gap=1", 0);
    while (self.bytes.size == 0)
        assert_ok(kube_loop_poll(f->loop, 1000));
    assert_int_equal(s_code(f, &s_echo, NULL), 200);
    assert_int_equal(self.end.calls + other.end.calls, 0);
    assert_string_equal(self.bytes.data, "{\"line\":0}\n");
    s_stream_free(&other);
    s_stream_free(&killer);
    s_stream_free(&self);
}

/* A call that ends begins the next; and what is under way when the client goes is dropped in silence. */
typedef struct {
    fixture_t *f;
    int left;
} chain_t;

static void s_on_link(void *ctx, const kube_reply_t *reply)
{
    chain_t *chain = ctx;
    assert_int_equal(reply->code, 200);
    if (--chain->left > 0)
        kube_client_send(chain->f->client, &s_echo, s_on_link, chain);
}

static void test_chain_and_destroy(void **state)
{
    fixture_t *f = *state;
    s_open(f, 2);
    chain_t chain = {f, 20};
    kube_client_send(f->client, &s_echo, s_on_link, &chain);
    while (chain.left > 0)
        assert_ok(kube_loop_poll(f->loop, 1000));
    got_t never = {0};
    stream_t stream = {0};
    s_stream(f, &stream, "/stream?lines=2&gap=60000", 1000);
    for (int i = 0; i < 10; i++)
        kube_client_send(f->client, &(kube_request_t){.method = "GET", .path = "/slow?ms=60000"}, s_on_done, &never);
    while (stream.bytes.size == 0)
        assert_ok(kube_loop_poll(f->loop, 1000));
    s_close(f);
    assert_int_equal(never.calls + stream.end.calls, 0);
    s_stream_free(&stream);
}

static void s_on_many(void *ctx, const kube_reply_t *reply)
{
    *(int *)ctx += reply->code == 200;
}

static void test_a_thousand(void **state)
{
    fixture_t *f = *state;
    enum { N = 1000 };
    s_open(f, 8);
    int *good = tt_array0(N, sizeof *good);
    for (int i = 0; i < N; i++)
        kube_client_send(f->client,
            &(kube_request_t){.method = "POST", .path = "/echo", .body = "{}", .timeout_ms = 120000}, s_on_many,
            &good[i]);
    assert_int_equal(kube_client_pending(f->client), N);
    while (kube_client_pending(f->client))
        assert_ok(kube_loop_poll(f->loop, 1000));
    for (int i = 0; i < N; i++)
        assert_int_equal(good[i], 1);
    free(good);
}

int main(void)
{
    static const struct {
        const char *name;
        CMUnitTestFunction fn;
    } all[] = {
#define TEST(name) {#name, name}
        TEST(test_echo),
        TEST(test_who_is_trusted),
        TEST(test_no_url),
        TEST(test_words),
        TEST(test_long_answers),
        TEST(test_escape),
        TEST(test_token_rotation),
        TEST(test_plugin),
        TEST(test_plugin_with_certificate),
        TEST(test_plugin_that_expires),
        TEST(test_plugins_that_fail),
        TEST(test_plugin_that_hangs),
        TEST(test_retry_after),
        TEST(test_deadlines),
        TEST(test_waiting_for_a_turn_is_no_failure),
        TEST(test_connections_that_break),
        TEST(test_stream),
        TEST(test_stream_cut_anywhere),
        TEST(test_stream_that_is_silent),
        TEST(test_stream_ended_by_its_reader),
        TEST(test_priorities),
        TEST(test_cancel),
        TEST(test_cancel_from_within),
        TEST(test_chain_and_destroy),
        TEST(test_a_thousand),
#undef TEST
    };
    struct CMUnitTest tests[TT_COUNT(all)];
    for (size_t i = 0; i < TT_COUNT(all); i++)
        tests[i] = (struct CMUnitTest){
            .name = all[i].name, .test_func = all[i].fn, .setup_func = s_begin, .teardown_func = s_end};
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
