#include "tests/k8s/api/watch_server.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "tests/k8s/api/child.h"
#include "tests/k8s/json.h"

static child_t s_server; /* port 0 = not started */

void world_open(world_t *self)
{
    *self = (world_t){.clock = tt_clock_fake(INT64_C(3600000000000))};
    if (!s_server.port)
        child_start(&s_server, "watch_server.py", NULL);
    self->config = tt_new0(sizeof *self->config);
    self->config->server = tt_sprintf("http://127.0.0.1:%d", s_server.port);
    self->config->namespace_ = tt_strdup("default");
    assert_ok(tt_reactor_new(&self->loop, &self->clock));
    assert_ok(kube_client_new(&self->client, self->loop, self->config, NULL));
    free(world_ctl(self, "{'do':'begin'}"));
}

void world_close(world_t *self)
{
    kube_client_destroy(&self->client);
    tt_reactor_destroy(&self->loop);
    kube_config_destroy(&self->config);
}

int world_end(void **state)
{
    (void)state;
    const int status = child_stop(&s_server);
    s_server.port = 0;
    return status;
}

tt_status_t world_call(world_t *self, const char *method, const char *path, const char *body, char **answer)
{
    char *text = json_quote(tt_strdup(body));
    const bool patch = strcmp(method, "PATCH") == 0;
    const kube_request_t request = {
        .method = method, .path = path, .body = text, .content_type = patch ? "application/merge-patch+json" : NULL};
    const tt_status_t status = kube_client_call(self->client, &request, answer);
    free(text);
    return status;
}

char *world_ctl(world_t *self, const char *command)
{
    char *answer = NULL;
    assert_ok(world_call(self, "POST", "/ctl", command, &answer));
    return answer;
}

bool world_met(void *ctx)
{
    char *left = world_ctl(ctx, "{'do':'left'}");
    const bool met = strcmp(left, "[]") == 0;
    free(left);
    return met;
}

void world_until(world_t *self, bool (*done)(void *ctx), void *ctx, int speed)
{
    int64_t was = tt_now_ns(tt_clock_real());
    const int64_t most = was + INT64_C(60000000000);
    while (!done(ctx)) {
        assert_ok(tt_reactor_poll(self->loop, 5));
        const int64_t now = tt_now_ns(tt_clock_real());
        tt_clock_turn(&self->clock, (now - was) * speed);
        was = now;
        if (now > most)
            fail_msg("waited for 60 s");
    }
}

void world_turn(world_t *self, int64_t ms)
{
    tt_clock_turn(&self->clock, ms * 1000000);
    for (int i = 0; i < 5; i++)
        assert_ok(tt_reactor_poll(self->loop, 0));
}
