#include "tests/k8s/operator/operator_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"

static void s_write_kubeconfig(bench_t *self)
{
    snprintf(self->file, sizeof self->file, "/tmp/tutti-operator-XXXXXX");
    const int fd = mkstemp(self->file);
    assert_true(fd >= 0);
    assert_true(dprintf(fd,
                    "{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \"c\",\n"
                    " \"clusters\": [{\"name\": \"s\", \"cluster\": {\"server\": \"%s\"}}],\n"
                    " \"users\": [{\"name\": \"u\", \"user\": {}}],\n"
                    " \"contexts\": [{\"name\": \"c\", \"context\": {\"cluster\": \"s\", \"user\": \"u\"}}]}\n",
                    self->world.config->server) > 0);
    close(fd);
}

static bool s_is_synced(void *ctx)
{
    return cache_synced(((operator_t *)ctx)->cache);
}

void bench_open_operator(bench_t *self, const char *listen, const char *probes)
{
    const operator_opts_t opts = {.kube = {.path = self->file},
        .namespace_ = "n",
        .listen = listen,
        .probes = probes,
        .elect = self->elect,
        .lease_namespace = "n",
        .clock = self->clock.now_ns ? &self->clock : NULL};
    assert_ok(operator_new(&self->op, &opts));
}

void bench_sync(bench_t *self)
{
    bench_until(self, s_is_synced, self->op);
    tt_queue_pause(self->op->queue, true);
}

void bench_until(bench_t *self, bool (*done)(void *ctx), void *ctx)
{
    const int64_t most = tt_now_ms(tt_clock_real()) + 60000; /* more than the longest back-off */
    while (!done(ctx)) {
        assert_ok(tt_reactor_poll(self->op->loop, 100));
        if (tt_now_ms(tt_clock_real()) > most)
            fail_msg("waited for 60 s");
    }
}

typedef struct {
    int code; /* 0 = not yet */
    char *body;
} answer_t;

static void s_on_answer(void *ctx, const kube_reply_t *reply)
{
    answer_t *answer = ctx;
    answer->code = reply->code;
    answer->body = tt_strdup(reply->body);
}

static bool s_is_answered(void *ctx)
{
    return ((const answer_t *)ctx)->code != 0;
}

int bench_ask(
    bench_t *self, const tt_server_t *server, const char *method, const char *path, const char *body, char **text)
{
    char namespace_[] = "n", *url = tt_sprintf("http://127.0.0.1:%d", tt_server_port(server));
    const kube_config_t config = {.server = url, .namespace_ = namespace_};
    const kube_request_t request = {.method = method, .path = path, .body = body};
    kube_client_t *client = NULL;
    answer_t answer = {0};
    assert_ok(kube_client_new(&client, self->op->loop, &config, NULL));
    kube_client_send(client, &request, s_on_answer, &answer);
    bench_until(self, s_is_answered, &answer);
    kube_client_destroy(&client);
    free(url);
    *text = answer.body;
    return answer.code;
}

void bench_make(bench_t *self, const char *path, const char *text)
{
    assert_ok(world_call(&self->world, "POST", path, text, NULL));
}

bool bench_has(bench_t *self, const char *path, const char *name)
{
    char *full = tt_sprintf("%s/%s", path, name);
    const tt_status_t status = world_call(&self->world, "GET", full, NULL, NULL);
    free(full);
    assert_true(status == TT_OK || status == TT_NOT_FOUND);
    return status == TT_OK;
}

static bool s_is_quiet(void *ctx)
{
    return kube_client_pending(ctx) == 0;
}

static void s_fault(bench_t *self, const char *at, const char *part, const char *what)
{
    char *command = tt_sprintf("{'do':'faults','faults':[{'at':'%s','of':'%s','what':'%s'}]}", at, part, what);
    bench_until(self, s_is_quiet, self->op->client);
    free(world_ctl(&self->world, command));
    free(command);
}

void bench_fault(bench_t *self, const char *at, const char *what)
{
    s_fault(self, at, "", what);
}

void bench_fault_of(bench_t *self, const char *part, const char *what)
{
    s_fault(self, "write", part, what);
}

int bench_setup_server(void **state)
{
    bench_t *self = tt_new0(sizeof *self);
    *state = self;
    world_open(&self->world);
    s_write_kubeconfig(self);
    return 0;
}

int bench_setup(void **state)
{
    bench_setup_server(state);
    bench_open_operator(*state, "", "");
    bench_sync(*state);
    return 0;
}

int bench_setup_clock(void **state)
{
    bench_setup_server(state);
    bench_t *self = *state;
    self->clock = tt_clock_fake(BENCH_DAY_S * 1000000000);
    bench_open_operator(self, "", "127.0.0.1:0");
    bench_sync(self);
    return 0;
}

int bench_teardown(void **state)
{
    bench_t *self = *state;
    operator_destroy(&self->op);
    world_close(&self->world);
    unlink(self->file);
    free(self);
    return 0;
}
