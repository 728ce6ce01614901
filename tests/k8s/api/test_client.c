/* The client against a real HTTPS server (server.py): every way an answer comes, and fails to. */
#include "k8s/api/client.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
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

/* ---- one answer -------------------------------------------------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_echo, s_begin, s_end),
    };
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
