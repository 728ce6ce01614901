#define TT_LOG_COMPONENT "http"
#include "coordinator/http.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/server.h"
#include "coordinator/files.h"
#include "common/http/token.h"

enum { REPLY_MAX = 8 << 20, CONNECTIONS = 64 };

/*  Structure of our class */
struct http {
    tt_server_t *server;
    http_answer_fn answer;
    http_weights_fn weights;
    void *ctx;
    char token[TOKEN_SIZE];
    char url[128], *run_dir;
};

/* ---- replies -------------------------------------------------------------------------------------------------------- */

static void s_refuse(http_t *self, const tt_server_request_t *request, int code, const char *text)
{
    json_t *object = json_object();
    json_object_set_new(object, "error", tt_json_text(text));
    char *body = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    tt_server_reply(self->server, request->id, code, "application/json", body, strlen(body));
    free(body);
}

static int s_code(tt_status_t status)
{
    switch (status) {
    case TT_OK:
        return 200;
    case TT_INVALID:
    case TT_USAGE:
        return 400;
    case TT_NOT_FOUND:
        return 404;
    case TT_STOPPED:
    case TT_UNSUPPORTED:
        return 409;
    case TT_TIMEOUT:
        return 503;
    default:
        return 500;
    }
}

/* ---- routes --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *method, *path, *verb, *type;
} route_t;

static const route_t s_routes[] = {
    {"GET", "/status", "status", "application/json"},
    {"GET", "/metrics", "metrics", "text/plain; version=0.0.4; charset=utf-8"},
    {"POST", "/scale", "scale", "application/json"}, {"POST", "/stop", "stop", "application/json"},
    {"GET", "/weights", NULL, NULL}, /* a file */
};

static const route_t *s_route(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_routes); i++)
        if (strcmp(s_routes[i].path, path) == 0)
            return &s_routes[i];
    return NULL;
}

/*  What may be read may be read without its body: libmicrohttpd leaves it away. */
static bool s_takes(const route_t *route, const char *method)
{
    const bool head = strcmp(method, "HEAD") == 0;
    return strcmp(route->method, head ? "GET" : method) == 0;
}

/*  Who may not ask, or asks for what is not there, is told so before the body is read. */
static void s_on_head(void *ctx, const tt_server_request_t *request)
{
    http_t *self = ctx;
    const route_t *route = s_route(request->path);
    if (!token_matches(self->token, request->authorization))
        s_refuse(self, request, 401,
            "send 'Authorization: Bearer TOKEN' with the content of the run directory's file token");
    else if (!route)
        s_refuse(self, request, 404, "there are /healthz, /status, /metrics, /weights, /scale and /stop");
    else if (!s_takes(route, request->method))
        s_refuse(self, request, 405,
            strcmp(route->method, "GET") == 0 ? "this is to be read with GET" : "this is to be ordered with POST");
}

static void s_send_weights(http_t *self, const tt_server_request_t *request)
{
    http_file_t file;
    const tt_status_t status = self->weights(self->ctx, request->query, &file);
    if (status == TT_OK)
        tt_server_reply_file(self->server, request->id, file.name, file.fd, file.size);
    else
        s_refuse(self, request, s_code(status), tt_err_text());
}

static void s_on_request(void *ctx, const tt_server_request_t *request)
{
    http_t *self = ctx;
    const route_t *route = s_route(request->path);
    if (!route->verb) {
        s_send_weights(self, request);
        return;
    }
    tt_buf_t out;
    tt_buf_init(&out, REPLY_MAX);
    const tt_status_t status = self->answer(self->ctx, route->verb, request->body, &out);
    if (status == TT_OK)
        tt_server_reply(self->server, request->id, 200, route->type, tt_buf_text(&out), out.size);
    else
        s_refuse(self, request, s_code(status), tt_err_text());
    tt_buf_free(&out);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

/*  The host as the address has it: "[::1]", "127.0.0.1"; "" where it is every address. */
static void s_write_url(http_t *self, const char *address)
{
    const int host = (int)(strrchr(address, ':') - address);
    snprintf(self->url, sizeof self->url, "http://%.*s:%d", host ? host : 7, host ? address : "0.0.0.0",
        tt_server_port(self->server));
    if (strncmp(address, "127.", 4) != 0 && strncmp(address, "localhost:", 10) != 0 &&
        strncmp(address, "[::1]:", 6) != 0)
        log_warn("%s is open to other hosts: the token travels in the clear; a tunnel or a TLS proxy belongs before it",
            self->url);
}

static tt_status_t s_start_server(http_t *self, const http_opts_t *opts)
{
    const tt_server_opts_t server = {.address = opts->address,
        .connections = CONNECTIONS,
        .on_head = s_on_head,
        .on_request = s_on_request,
        .ctx = self,
        .clock = opts->clock};
    const tt_status_t status = tt_server_start(&self->server, &server);
    if (status != TT_OK)
        return tt_err_wrap(status, "coordinator.http (\"\" switches it off)");
    s_write_url(self, opts->address);
    return TT_OK;
}

static tt_status_t s_announce(const http_t *self)
{
    char text[256];
    snprintf(text, sizeof text, "{\"url\": \"%s\", \"pid\": %d}\n", self->url, (int)getpid());
    return files_replace(self->run_dir, "http.json", text, 0644);
}

tt_status_t http_start(http_t **self_p, const http_opts_t *opts)
{
    http_t *self = tt_new0(sizeof *self);
    self->answer = opts->answer;
    self->weights = opts->weights;
    self->ctx = opts->ctx;
    self->run_dir = tt_strdup(opts->run_dir);
    tt_status_t status = opts->token ? token_read(self->token, opts->token) : token_take(self->token, opts->run_dir);
    if (status == TT_OK)
        status = s_start_server(self, opts);
    if (status == TT_OK)
        status = s_announce(self);
    if (status != TT_OK) {
        http_stop(&self);
        return status;
    }
    log_info("serving %s", self->url);
    *self_p = self;
    return TT_OK;
}

void http_stop(http_t **self_p)
{
    http_t *self = *self_p;
    if (!self)
        return;
    if (self->server) {
        tt_server_stop(&self->server);
        files_remove(self->run_dir, "http.json");
    }
    free(self->run_dir);
    free(self);
    *self_p = NULL;
}

int http_fd(const http_t *self)
{
    return tt_server_fd(self->server);
}

int64_t http_due_ms(const http_t *self)
{
    return tt_server_due_ms(self->server);
}

void http_serve(http_t *self)
{
    tt_server_serve(self->server);
}

const char *http_url(const http_t *self)
{
    return self->url;
}
