#include "elasticdl/agent.h"
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "common/http/server.h"
#include "common/http/token.h"
#include "controller/guard.h"
#include "common/http/query.h"
#include "elasticdl/reply.h"
#define TT_LOG_COMPONENT "agent"
#include "common/base/log.h"

enum { WAITERS = 8, CONNECTIONS = 32 };

/*  A /status that waits for the program's end. */
typedef struct {
    uint64_t id;
    int64_t due_ms;
    size_t tail;
} waiter_t;

typedef struct {
    const elasticdl_agent_opts_t *opts;
    const tt_clock_t *clock;
    tt_server_t *server;
    workload_t *workload;
    waiter_t waiters[WAITERS];
    size_t waiting;
    bool stopping;
    tt_asked_t asked; /* to end */
} agent_t;

/* ---- /status ----------------------------------------------------------------------------------------------------------- */

static void s_say(agent_t *self, uint64_t id, size_t tail)
{
    json_t *status = workload_status(self->workload, tail);
    json_object_set_new(status, "member", json_string(self->opts->member ? self->opts->member : ""));
    reply_json(self->server, id, 200, status);
}

/*  Those whose time is over, or all of them. */
static void s_answer_waiters(agent_t *self, bool all)
{
    const int64_t now = tt_now_ms(self->clock);
    size_t kept = 0;
    for (size_t i = 0; i < self->waiting; i++) {
        const waiter_t waiter = self->waiters[i];
        if (all || now >= waiter.due_ms)
            s_say(self, waiter.id, waiter.tail);
        else
            self->waiters[kept++] = waiter;
    }
    self->waiting = kept;
}

static tt_status_t s_number(int *out, const char *query, const char *name, int max)
{
    char text[16], *end = NULL;
    const tt_status_t status = tt_query_get(text, sizeof text, query, name);
    if (status != TT_OK)
        return status == TT_NOT_FOUND ? TT_OK : status;
    const long value = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value > max)
        return tt_err(TT_INVALID, "%s is '%s'; a number from 0 to %d is possible", name, text, max);
    *out = (int)value;
    return TT_OK;
}

static tt_status_t s_status(agent_t *self, const tt_server_request_t *request)
{
    int tail = WORKLOAD_TAIL, wait_ms = 0;
    TT_TRY(s_number(&tail, request->query, "tail", WORKLOAD_TAIL));
    TT_TRY(s_number(&wait_ms, request->query, "wait_ms", ELASTICDL_WAIT_MS));
    if (wait_ms == 0 || !workload_runs(self->workload) || self->waiting == WAITERS)
        s_say(self, request->id, (size_t)tail);
    else
        self->waiters[self->waiting++] =
            (waiter_t){.id = request->id, .due_ms = tt_now_ms(self->clock) + wait_ms, .tail = (size_t)tail};
    return TT_OK;
}

/* ---- routes -------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_config(agent_t *self, const tt_server_request_t *request)
{
    TT_TRY(workload_configure(self->workload, request->body, request->size));
    reply_text(self->server, request->id, 200, "OK");
    return TT_OK;
}

static tt_status_t s_run(agent_t *self, const tt_server_request_t *request)
{
    const tt_status_t status = workload_run(self->workload);
    if (status == TT_NOT_FOUND) /* the program, and not this page */
        reply_text(self->server, request->id, 500, tt_err_text());
    else if (status == TT_OK)
        reply_text(self->server, request->id, 200, "OK");
    return status == TT_NOT_FOUND ? TT_OK : status;
}

typedef struct {
    const char *method, *path;
    tt_status_t (*serve)(agent_t *self, const tt_server_request_t *request);
} route_t;

static const route_t s_routes[] = {{"POST", "/config", s_config}, {"GET", "/run", s_run}, {"GET", "/status", s_status}};

static const route_t *s_route(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_routes); i++)
        if (strcmp(s_routes[i].path, path) == 0)
            return &s_routes[i];
    return NULL;
}

static void s_on_head(void *ctx, const tt_server_request_t *request)
{
    agent_t *self = ctx;
    const route_t *route = s_route(request->path);
    if (self->opts->token && !token_matches(self->opts->token, request->authorization))
        reply_text(self->server, request->id, 401, "send 'Authorization: Bearer TOKEN'");
    else if (!route)
        reply_text(self->server, request->id, 404, "there are /config, /run, /status and /healthz");
    else if (strcmp(route->method, request->method) != 0)
        reply_text(self->server, request->id, 405,
            strcmp(route->method, "GET") == 0 ? "this is to be asked with GET" : "this is to be sent with POST");
}

static void s_on_request(void *ctx, const tt_server_request_t *request)
{
    agent_t *self = ctx;
    const tt_status_t status = s_route(request->path)->serve(self, request);
    if (status != TT_OK)
        reply_text(self->server, request->id, reply_code(status), tt_err_text());
}

/* ---- the loop -------------------------------------------------------------------------------------------------------------- */

static int s_sooner(int64_t wait_ms, int64_t due_ms)
{
    return (int)(due_ms >= 0 && (wait_ms < 0 || due_ms < wait_ms) ? due_ms : wait_ms);
}

static int s_wait_ms(const agent_t *self)
{
    const int64_t now = tt_now_ms(self->clock);
    int ms = s_sooner(s_sooner(-1, tt_server_due_ms(self->server)), workload_due_ms(self->workload));
    for (size_t i = 0; i < self->waiting; i++)
        ms = s_sooner(ms, self->waiters[i].due_ms > now ? self->waiters[i].due_ms - now : 0);
    return ms;
}

/*  The first asks, one that is meant seriously kills. */
static void s_asked(agent_t *self, tt_asking_t asking)
{
    if (asking == TT_ASKED_ECHO)
        return;
    workload_stop(self->workload, asking == TT_ASKED_FIRST ? self->opts->grace_ms : 0);
    self->stopping = true;
}

static void s_signals(agent_t *self)
{
    int sender = 0;
    for (int signal; (signal = tt_signals_next_from(self->opts->stop_fd, &sender)) != 0;)
        if (signal != SIGCHLD)
            s_asked(self, tt_asked(&self->asked, sender, tt_now_ms(self->clock)));
}

static void s_serve(agent_t *self)
{
    while (!self->stopping || workload_runs(self->workload)) {
        struct pollfd fds[] = {
            {.fd = self->opts->stop_fd, .events = POLLIN}, {.fd = tt_server_fd(self->server), .events = POLLIN}};
        poll(fds, TT_COUNT(fds), s_wait_ms(self));
        s_signals(self);
        if (workload_poll(self->workload))
            s_answer_waiters(self, true);
        tt_server_serve(self->server);
        s_answer_waiters(self, false);
    }
}

/* ---- life -------------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_announce(const agent_t *self)
{
    char url[128], text[256];
    reply_url(url, self->opts->listen, tt_server_port(self->server));
    log_info("serving %s", url);
    if (!self->opts->announce)
        return TT_OK;
    snprintf(text, sizeof text, "{\"url\": \"%s\", \"pid\": %d}\n", url, (int)getpid());
    return tt_file_replace(self->opts->announce, "agent.json", text, 0644);
}

static tt_status_t s_start(agent_t *self)
{
    const tt_server_opts_t server = {.address = self->opts->listen,
        .connections = CONNECTIONS,
        .on_head = s_on_head,
        .on_request = s_on_request,
        .ctx = self,
        .clock = self->clock};
    TT_TRY(workload_new(&self->workload, &self->opts->workload));
    TT_TRY(tt_server_start(&self->server, &server));
    return s_announce(self);
}

tt_status_t elasticdl_agent_run(const elasticdl_agent_opts_t *opts)
{
    agent_t self = {.opts = opts, .clock = tt_clock_or_real(opts->workload.clock)};
    const tt_status_t status = s_start(&self);
    if (status == TT_OK)
        s_serve(&self);
    if (self.server)
        tt_server_stop(&self.server);
    workload_destroy(&self.workload);
    return status;
}
