#include "tests/k8s/api/client_fixture.h"
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "common/base/mem.h"

const kube_request_t fixture_echo = {.method = "GET", .path = "/echo"};

void fixture_open(fixture_t *f, int max_in_flight)
{
    assert_ok(tt_reactor_new(&f->loop, NULL));
    assert_ok(kube_client_new(
        &f->client, f->loop, f->config, &(kube_client_opts_t){.max_in_flight = max_in_flight, .agent = "test/1"}));
}

void fixture_close(fixture_t *f)
{
    kube_client_destroy(&f->client);
    tt_reactor_destroy(&f->loop);
}

void got_reply(void *ctx, const kube_reply_t *reply)
{
    got_t *got = ctx;
    got->calls++;
    got->code = reply->code;
    got->held_back = reply->held_back;
    memcpy(got->text, reply->text, sizeof got->text);
    memcpy(got->reason, reply->reason, sizeof got->reason);
    free(got->body);
    got->body = tt_strdup(reply->body);
    got->size = reply->size;
    assert_int_equal(reply->body[reply->size], 0);
}

void fixture_wait(fixture_t *f, const int *calls, int until)
{
    for (int i = 0; *calls < until; i++) {
        assert_true(i < 200000);
        assert_ok(tt_reactor_poll(f->loop, 1000));
    }
}

got_t fixture_ask(fixture_t *f, const kube_request_t *request)
{
    got_t got = {0};
    assert_int_not_equal(kube_client_send(f->client, request, got_reply, &got), 0);
    assert_int_equal(got.calls, 0);
    fixture_wait(f, &got.calls, 1);
    return got;
}

int fixture_code(fixture_t *f, const kube_request_t *request, const char *words)
{
    got_t got = fixture_ask(f, request);
    if (words && !strstr(got.text, words))
        fail_msg("'%s' is not in '%s'", words, got.text);
    free(got.body);
    return got.code;
}

int got_asked(const char *body)
{
    json_t *root = json_loads(body, 0, NULL);
    const int asked = (int)json_integer_value(json_object_get(root, "asked"));
    json_decref(root);
    return asked;
}

int fixture_start(void **state)
{
    fixture_t *f = tt_new0(sizeof *f);
    api_server_start(&f->server);
    *state = f;
    return 0;
}

int fixture_stop(void **state)
{
    fixture_t *f = *state;
    api_server_stop(&f->server);
    free(f);
    return 0;
}

int fixture_begin(void **state)
{
    fixture_t *f = *state;
    f->config = api_server_config(&f->server);
    return 0;
}

int fixture_end(void **state)
{
    fixture_t *f = *state;
    fixture_close(f);
    kube_config_destroy(&f->config);
    return 0;
}
