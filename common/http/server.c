#define TT_LOG_COMPONENT "server"
#include "common/http/server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/bind.h"
#include "common/http/conns.h"
#include "common/http/mhd.h"

enum { BODY_MAX = 65536, DISCARD_MAX = 1 << 20, CONNECTIONS = 512, MEMORY = 16384, ANSWER_MS = 30000 };

static const mhd_t *s_mhd; /* the library, once for the process */

typedef struct request request_t;
struct request {
    tt_server_t *server;
    struct MHD_Connection *connection;
    uint64_t id;
    char *uri, *query;                 /* query: behind the '?' of uri      */
    bool begun, bad, suspended, asked; /* asked: on_request has it */
    tt_buf_t body;
    size_t discarded; /* bytes of a body that is not wanted */
    int64_t deadline_ms;
    /* the answer */
    int code; /* 0 = none yet */
    char *type;
    tt_buf_t out;
    int file; /* the answer in out's place, -1 = none */
    uint64_t file_size;
    char *file_name;
    request_t *next; /* of those that wait, oldest first */
};

/*  Structure of our class */
struct tt_server {
    struct MHD_Daemon *daemon;
    tt_server_opts_t opts;
    conns_t conns;
    int poll_fd, resumed; /* epoll over MHD's own and an eventfd: MHD must run again after it has resumed something */
    int port;
    bool freed; /* a place: libmicrohttpd, which was full, listens again when it runs, and nothing else makes it run */
    uint64_t last_id;
    request_t *waiting; /* asked and not answered */
    size_t waiting_count;
    size_t pending; /* asked, and the answer is not out */
};

static int64_t s_now_ms(const tt_server_t *self)
{
    return tt_now_ms(self->opts.clock);
}

/* ---- connections --------------------------------------------------------------------------------------------------- */

static void s_on_connection(
    void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    tt_server_t *self = ctx;
    conn_t *conn = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            s_mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = conns_add(&self->conns, info->connect_fd, s_now_ms(self));
    } else {
        conns_remove(&self->conns, &conn);
        self->freed = true;
        *socket_context = NULL;
    }
}

static conn_t *s_conn(const request_t *request)
{
    return s_mhd->MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void s_enter(const request_t *request, conn_phase_t phase)
{
    conn_enter(s_conn(request), phase, s_now_ms(request->server));
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

static request_t **s_find(tt_server_t *self, uint64_t id)
{
    request_t **at = &self->waiting;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void s_await(tt_server_t *self, request_t *request)
{
    request->deadline_ms = s_now_ms(self) + self->opts.answer_ms;
    request->next = NULL;
    *s_find(self, UINT64_MAX) = request; /* behind the last */
    self->waiting_count++;
}

/*  NULL: nobody waits for it. */
static request_t *s_await_no_more(tt_server_t *self, uint64_t id)
{
    request_t **at = s_find(self, id), *request = *at;
    if (!request)
        return NULL;
    *at = request->next;
    self->waiting_count--;
    return request;
}

static void s_wake(request_t *request)
{
    if (request->suspended) {
        s_mhd->MHD_resume_connection(request->connection);
        eventfd_write(request->server->resumed, 1);
    }
    request->suspended = false;
}

static void s_answer(request_t *request, int code, const char *type, const char *body, size_t size)
{
    request->code = code;
    request->type = tt_strdup(type);
    if (tt_buf_add(&request->out, body, size) != TT_OK)
        request->code = MHD_HTTP_INTERNAL_SERVER_ERROR;
    s_wake(request);
}

/*  words: letters that need no escape. */
static void s_refuse(request_t *request, int code, const char *words)
{
    char json[128];
    snprintf(json, sizeof json, "{\"error\":\"%s\"}", words);
    s_answer(request, code, "application/json", json, strlen(json));
}

void tt_server_reply(tt_server_t *self, uint64_t id, int code, const char *content_type, const char *body, size_t size)
{
    request_t *request = s_await_no_more(self, id);
    if (request)
        s_answer(request, code, content_type, body, size);
}

void tt_server_reply_file(tt_server_t *self, uint64_t id, const char *name, int fd, uint64_t size)
{
    request_t *request = s_await_no_more(self, id);
    if (!request) {
        close(fd);
        return;
    }
    request->code = MHD_HTTP_OK;
    request->type = tt_strdup("application/octet-stream");
    request->file = fd;
    request->file_size = size;
    request->file_name = tt_sprintf("attachment; filename=\"%s\"", name);
    s_wake(request);
}

static struct MHD_Response *s_response(request_t *request)
{
    if (request->file < 0)
        return s_mhd->MHD_create_response_from_buffer(
            request->out.size, (void *)(uintptr_t)tt_buf_text(&request->out), MHD_RESPMEM_MUST_COPY);
    struct MHD_Response *response = s_mhd->MHD_create_response_from_fd64(request->file_size, request->file);
    if (!response)
        return NULL;
    request->file = -1; /* it closes it */
    s_mhd->MHD_add_response_header(response, "Content-Disposition", request->file_name);
    return response;
}

static enum MHD_Result s_send(request_t *request)
{
    const tt_server_t *self = request->server;
    const uint64_t size = request->file < 0 ? request->out.size : request->file_size;
    struct MHD_Response *response = s_response(request);
    if (!response)
        return MHD_NO;
    s_mhd->MHD_add_response_header(response, "Content-Type", request->type);
    s_mhd->MHD_add_response_header(response, "Cache-Control", "no-store");
    s_mhd->MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (request->code == MHD_HTTP_UNAUTHORIZED)
        s_mhd->MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"tutti\"");
    if (self->conns.open > self->opts.connections / 2)
        s_mhd->MHD_add_response_header(response, "Connection", "close");
    conn_write(s_conn(request), size, s_now_ms(self));
    const enum MHD_Result result = s_mhd->MHD_queue_response(request->connection, (unsigned)request->code, response);
    s_mhd->MHD_destroy_response(response);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static void s_peer(char out[INET6_ADDRSTRLEN], struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        s_mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    out[0] = '\0';
    if (address && address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, out, INET6_ADDRSTRLEN);
    } else if (address && address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
            inet_ntop(AF_INET, (const char *)&in6.sin6_addr + 12, out, INET6_ADDRSTRLEN);
        else
            inet_ntop(AF_INET6, &in6.sin6_addr, out, INET6_ADDRSTRLEN);
    }
}

static const char *s_header(const request_t *request, const char *name)
{
    return s_mhd->MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/*  Put it to who made the server; an answer may have come when this returns. */
static void s_put(request_t *request, tt_server_fn fn, const char *method)
{
    tt_server_t *self = request->server;
    char peer[INET6_ADDRSTRLEN];
    s_peer(peer, request->connection);
    const tt_server_request_t asked = {.id = request->id,
        .method = method,
        .path = request->uri,
        .query = request->query ? request->query : "",
        .authorization = s_header(request, MHD_HTTP_HEADER_AUTHORIZATION),
        .body = tt_buf_text(&request->body),
        .size = request->body.size,
        .peer = peer};
    s_await(self, request);
    fn(self->opts.ctx, &asked);
}

/*  The whole request is here: ask, and wait where the answer does not come at once. */
static enum MHD_Result s_ask(request_t *request, const char *method)
{
    tt_server_t *self = request->server;
    if (request->bad)
        s_refuse(request, MHD_HTTP_BAD_REQUEST, "the body is not text");
    else if (self->waiting_count >= self->opts.connections / 2)
        s_refuse(request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests wait for an answer; try again");
    else {
        request->asked = true;
        self->pending++;
        s_put(request, self->opts.on_request, method);
    }
    if (request->code)
        return s_send(request);
    s_enter(request, CONN_WAITING);
    request->suspended = true;
    s_mhd->MHD_suspend_connection(request->connection);
    return MHD_YES;
}

/*  How long the head says that the body is; 0 where it does not (none, or one in chunks). */
static uint64_t s_announced(const request_t *request)
{
    const char *length = s_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length ? strtoull(length, NULL, 10) : 0; /* libmicrohttpd has checked it */
}

/*  The head is here. Who is refused now is told at once if the body is too long to be read for politeness. */
static enum MHD_Result s_begin(request_t *request, struct MHD_Connection *connection, const char *method)
{
    tt_server_t *self = request->server;
    request->begun = true;
    request->connection = connection;
    if (strcmp(request->uri, "/healthz") == 0 && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)) {
        s_answer(request, MHD_HTTP_OK, "text/plain", self->opts.healthz, strlen(self->opts.healthz));
    } else if (self->opts.on_head) {
        s_put(request, self->opts.on_head, method);
        (void)s_await_no_more(self, request->id);
    }
    if (!request->code && s_announced(request) > BODY_MAX)
        s_refuse(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than 64 KiB");
    return request->code && s_announced(request) > DISCARD_MAX ? s_send(request) : MHD_YES;
}

static enum MHD_Result s_take(request_t *request, const char *data, size_t *size)
{
    request->bad |= memchr(data, '\0', *size) != NULL;
    if (!request->code && tt_buf_add(&request->body, data, *size) != TT_OK) {
        tt_buf_free(&request->body);
        s_refuse(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than 64 KiB");
    }
    request->discarded += request->code ? *size : 0;
    *size = 0;
    return request->discarded > DISCARD_MAX ? MHD_NO : MHD_YES;
}

/*  MHD calls this first without data, then for each piece of the body, then for the reply, and again after a pause. */
static enum MHD_Result s_on_request(void *ctx, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
    (void)ctx;
    (void)path;
    (void)version;
    request_t *request = *state;
    if (!request)
        return MHD_NO;
    if (!request->begun)
        return s_begin(request, connection, method);
    if (*size > 0)
        return s_take(request, data, size);
    return request->code ? s_send(request) : s_ask(request, method);
}

/*  First of all: the address as it came, before MHD takes it apart. */
static void *s_on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    (void)connection;
    tt_server_t *self = ctx;
    request_t *request = tt_new0(sizeof *request);
    request->server = self;
    request->id = ++self->last_id;
    request->file = -1;
    request->uri = tt_strdup(uri);
    request->query = strchr(request->uri, '?');
    if (request->query)
        *request->query++ = '\0';
    tt_buf_init(&request->body, BODY_MAX);
    tt_buf_init(&request->out, (size_t)1 << 30);
    return request;
}

static void s_on_done(void *ctx, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
    (void)connection;
    (void)code;
    request_t *request = *state;
    if (!request)
        return;
    (void)s_await_no_more(ctx, request->id);
    request->server->pending -= request->asked;
    if (request->begun)
        s_enter(request, CONN_READING); /* the next one */
    tt_buf_free(&request->body);
    tt_buf_free(&request->out);
    free(request->uri);
    free(request->type);
    free(request->file_name);
    if (request->file >= 0)
        close(request->file);
    free(request);
    *state = NULL;
}

/* ---- serving ------------------------------------------------------------------------------------------------------- */

static void s_give_up(tt_server_t *self, int64_t now_ms)
{
    static const char late[] =
        "{\"success\":false,\"code\":1,\"message\":\"no answer in time, try again\",\"data\":null}";
    while (self->waiting && self->waiting->deadline_ms <= now_ms)
        tt_server_reply(
            self, self->waiting->id, MHD_HTTP_SERVICE_UNAVAILABLE, "application/json", late, sizeof late - 1);
}

/*  So many connections may be open: those beyond are for who comes next. */
static size_t s_most(const tt_server_t *self)
{
    return self->opts.connections - self->opts.connections / 8;
}

void tt_server_serve(tt_server_t *self)
{
    eventfd_t count;
    self->freed = false;
    s_give_up(self, s_now_ms(self));
    eventfd_read(self->resumed, &count); /* does not block: there may be none */
    if (s_mhd->MHD_run(self->daemon) != MHD_YES)
        log_warn("the HTTP server cannot go on for a moment");
    conns_expire(&self->conns, s_now_ms(self));
    conns_make_room(&self->conns, s_most(self));
}

size_t tt_server_pending(const tt_server_t *self)
{
    return self->pending;
}

int64_t tt_server_due_ms(const tt_server_t *self)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    if (self->freed || (s_mhd->MHD_get_timeout(self->daemon, &ms) == MHD_YES && ms == 0))
        return 0;
    int64_t due = conns_due_ms(&self->conns);
    if (self->waiting && self->waiting->deadline_ms < due)
        due = self->waiting->deadline_ms;
    const int64_t left = due - s_now_ms(self);
    return due == INT64_MAX ? -1 : left < 0 ? 0 : left;
}

int tt_server_fd(const tt_server_t *self)
{
    return self->poll_fd;
}

int tt_server_port(const tt_server_t *self)
{
    return self->port;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void s_log_from_mhd(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx;
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    log_debug("%s", text);
}

static tt_status_t s_make_poll(tt_server_t *self)
{
    struct epoll_event readable = {.events = EPOLLIN};
    const union MHD_DaemonInfo *info = s_mhd->MHD_get_daemon_info(self->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    self->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    self->resumed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!info || self->poll_fd < 0 || self->resumed < 0 ||
        epoll_ctl(self->poll_fd, EPOLL_CTL_ADD, info->epoll_fd, &readable) != 0 ||
        epoll_ctl(self->poll_fd, EPOLL_CTL_ADD, self->resumed, &readable) != 0)
        return tt_err_errno(TT_OS, "epoll for the HTTP server");
    return TT_OK;
}

static struct MHD_Daemon *s_daemon(tt_server_t *self, int fd)
{
    return s_mhd->MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        s_on_request, self, MHD_OPTION_EXTERNAL_LOGGER, s_log_from_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)self->opts.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MEMORY, MHD_OPTION_NOTIFY_CONNECTION, s_on_connection, self, MHD_OPTION_URI_LOG_CALLBACK, s_on_uri,
        self, MHD_OPTION_NOTIFY_COMPLETED, s_on_done, self, MHD_OPTION_END);
}

tt_status_t tt_server_start(tt_server_t **self_p, const tt_server_opts_t *opts)
{
    int fd = -1;
    TT_TRY(mhd_load(&s_mhd));
    TT_TRY(http_bind(&fd, opts->address));
    tt_server_t *self = tt_new0(sizeof *self);
    self->opts = *opts;
    self->opts.address = NULL; /* borrowed for this call only */
    self->opts.connections = opts->connections ? opts->connections : CONNECTIONS;
    self->opts.healthz = opts->healthz ? opts->healthz : "ok\n";
    self->opts.answer_ms = opts->answer_ms ? opts->answer_ms : ANSWER_MS;
    self->opts.clock = tt_clock_or_real(opts->clock);
    self->poll_fd = self->resumed = -1;
    self->port = http_bound_port(fd);
    self->daemon = s_daemon(self, fd);
    if (!self->daemon) {
        close(fd);
        free(self);
        return tt_err(TT_OS, "cannot serve HTTP at %s", opts->address);
    }
    const tt_status_t status = s_make_poll(self);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_server_stop(&self);
    return status;
}

void tt_server_stop(tt_server_t **self_p)
{
    tt_server_t *self = *self_p;
    if (!self)
        return;
    s_give_up(self, INT64_MAX);           /* a suspended connection would keep the daemon from ending */
    s_mhd->MHD_stop_daemon(self->daemon); /* closes the listening socket too */
    if (self->poll_fd >= 0)
        close(self->poll_fd);
    if (self->resumed >= 0)
        close(self->resumed);
    free(self);
    *self_p = NULL;
}
