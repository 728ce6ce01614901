#define TT_LOG_COMPONENT "server"
#include "k8s/replicas/server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/mhd.h"

enum { BODY_MAX = 65536, CONNECTIONS = 256, MEMORY = 16384, IDLE_S = 10, ANSWER_MS = 30000, BACKLOG = 256 };

static const mhd_t *s_mhd; /* the library, once for the process */

typedef struct request request_t;
struct request {
    server_t *server;
    struct MHD_Connection *connection;
    uint64_t id; /* 0 = not asked yet                  */
    char *uri;
    bool begun, too_large, bad, suspended;
    tt_buf_t body;
    int64_t deadline_ms;
    /* the answer */
    int code; /* 0 = none yet */
    char *type;
    tt_buf_t out;
    request_t *next; /* of those that wait, oldest first */
};

/*  Structure of our class */
struct server {
    struct MHD_Daemon *daemon;
    server_fn fn;
    void *ctx;
    int poll_fd, resumed; /* epoll over MHD's own and an eventfd: MHD must run again after it has resumed something */
    int port;
    uint64_t last_id;
    request_t *waiting;
};

/* ---- answers ------------------------------------------------------------------------------------------------------- */

static request_t **s_find(server_t *self, uint64_t id)
{
    request_t **at = &self->waiting;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void s_answer(request_t *request, int code, const char *type, const char *body, size_t size)
{
    request->code = code;
    request->type = tt_strdup(type);
    if (tt_buf_add(&request->out, body, size) != TT_OK)
        request->code = MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (request->suspended) {
        s_mhd->MHD_resume_connection(request->connection);
        eventfd_write(request->server->resumed, 1);
    }
    request->suspended = false;
}

void server_reply(server_t *self, uint64_t id, int code, const char *content_type, const char *body, size_t size)
{
    request_t **at = s_find(self, id), *request = *at;
    if (!request)
        return;
    *at = request->next;
    s_answer(request, code, content_type, body, size);
}

static unsigned s_connections(const server_t *self)
{
    const union MHD_DaemonInfo *info = s_mhd->MHD_get_daemon_info(self->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

static enum MHD_Result s_send(request_t *request)
{
    struct MHD_Response *response = s_mhd->MHD_create_response_from_buffer(
        request->out.size, (void *)(uintptr_t)tt_buf_text(&request->out), MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    s_mhd->MHD_add_response_header(response, "Content-Type", request->type);
    s_mhd->MHD_add_response_header(response, "Cache-Control", "no-store");
    if (s_connections(request->server) > CONNECTIONS / 2)
        s_mhd->MHD_add_response_header(response, "Connection", "close");
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

/*  The whole request is here: ask, and wait where the answer does not come at once. */
static enum MHD_Result s_ask(server_t *self, request_t *request, const char *method)
{
    static const char text[] = "text/plain";
    if (request->too_large || request->bad) {
        static const char large[] = "the body is larger than 64 KiB\n", bad[] = "the body is not text\n";
        const char *words = request->bad ? bad : large;
        s_answer(request, request->bad ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_CONTENT_TOO_LARGE, text, words, strlen(words));
        return s_send(request);
    }
    char peer[INET6_ADDRSTRLEN];
    s_peer(peer, request->connection);
    char *query = strchr(request->uri, '?');
    if (query)
        *query++ = '\0';
    request->id = ++self->last_id;
    request->deadline_ms = tt_now_ms(tt_clock_real()) + ANSWER_MS;
    *s_find(self, UINT64_MAX) = request; /* behind the last */
    const server_request_t asked = {.id = request->id,
        .method = method,
        .path = request->uri,
        .query = query ? query : "",
        .body = tt_buf_text(&request->body),
        .size = request->body.size,
        .peer = peer};
    self->fn(self->ctx, &asked);
    if (request->code)
        return s_send(request);
    request->suspended = true;
    s_mhd->MHD_suspend_connection(request->connection);
    return MHD_YES;
}

/*  MHD calls this first without data, then for each piece of the body, then for the reply, and again after a pause. */
static enum MHD_Result s_on_request(void *ctx, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
    (void)path;
    (void)version;
    request_t *request = *state;
    if (!request)
        return MHD_NO;
    if (!request->begun) {
        request->begun = true;
        request->connection = connection;
        return MHD_YES;
    }
    if (*size > 0) {
        request->bad |= memchr(data, '\0', *size) != NULL;
        request->too_large |= tt_buf_add(&request->body, data, *size) != TT_OK;
        *size = 0; /* what does not fit is read and thrown away, so that the reply can be read */
        return MHD_YES;
    }
    return request->code ? s_send(request) : s_ask(ctx, request, method);
}

/*  First of all: the address as it came, before MHD takes it apart. */
static void *s_on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    (void)connection;
    request_t *request = tt_new0(sizeof *request);
    request->server = ctx;
    request->uri = tt_strdup(uri);
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
    request_t **at = s_find(ctx, request->id);
    if (*at == request)
        *at = request->next;
    tt_buf_free(&request->body);
    tt_buf_free(&request->out);
    free(request->uri);
    free(request->type);
    free(request);
    *state = NULL;
}

/* ---- serving ------------------------------------------------------------------------------------------------------- */

static void s_give_up(server_t *self, int64_t now_ms)
{
    static const char late[] =
        "{\"success\":false,\"code\":1,\"message\":\"no answer in time, try again\",\"data\":null}";
    while (self->waiting && self->waiting->deadline_ms <= now_ms)
        server_reply(self, self->waiting->id, MHD_HTTP_SERVICE_UNAVAILABLE, "application/json", late, sizeof late - 1);
}

void server_serve(server_t *self)
{
    eventfd_t count;
    if (self->waiting)
        s_give_up(self, tt_now_ms(tt_clock_real()));
    eventfd_read(self->resumed, &count); /* does not block: there may be none */
    if (s_mhd->MHD_run(self->daemon) != MHD_YES)
        log_warn("the HTTP server cannot go on for a moment");
}

int64_t server_due_ms(const server_t *self)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    int64_t due = -1;
    if (s_mhd->MHD_get_timeout(self->daemon, &ms) == MHD_YES)
        due = ms > ANSWER_MS ? ANSWER_MS : (int64_t)ms;
    if (self->waiting) {
        int64_t left = self->waiting->deadline_ms - tt_now_ms(tt_clock_real());
        left = left < 0 ? 0 : left;
        due = due < 0 || left < due ? left : due;
    }
    return due;
}

int server_fd(const server_t *self)
{
    return self->poll_fd;
}

int server_port(const server_t *self)
{
    return self->port;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

/*  "HOST:PORT", "[HOST]:PORT", ":PORT" -> host "" for every address. */
static tt_status_t s_split(char host[64], char port[8], const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    const char *from = text;
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        from++;
        size -= 2;
    }
    char *end = NULL;
    const long number = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || !colon[1] || *end || number < 0 || number > 65535 || size > 63)
        return tt_err(TT_INVALID, "'%s' is not ADDRESS:PORT, as :8080 or 127.0.0.1:0", text);
    snprintf(host, 64, "%.*s", (int)size, from);
    snprintf(port, 8, "%ld", number);
    return TT_OK;
}

static int s_bind(const struct addrinfo *at)
{
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, zero = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ai_family == AF_INET6) /* "::" is for IPv4 too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int s_bind_first(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    struct addrinfo *list = NULL;
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    errno = EADDRNOTAVAIL;
    if (getaddrinfo(*host ? host : "::", port, &hints, &list) != 0)
        return -1;
    int fd = s_bind(list);
    freeaddrinfo(list);
    if (fd < 0 && !*host && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) /* no IPv6 here */
        fd = s_bind_first("0.0.0.0", port);
    return fd;
}

static int s_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &size);
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &at, sizeof in);
    memcpy(&in6, &at, sizeof in6);
    return ntohs(at.ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

static void s_log_from_mhd(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx;
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    log_debug("%s", text);
}

static tt_status_t s_make_poll(server_t *self)
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

tt_status_t server_start(server_t **self_p, const char *address, server_fn fn, void *ctx)
{
    char host[64], port[8];
    TT_TRY(s_split(host, port, address));
    TT_TRY(mhd_load(&s_mhd));
    const int fd = s_bind_first(host, port);
    if (fd < 0)
        return tt_err_errno(errno == EADDRINUSE ? TT_EXISTS : TT_OS, "cannot serve HTTP at %s", address);
    server_t *self = tt_new0(sizeof *self);
    self->fn = fn;
    self->ctx = ctx;
    self->poll_fd = self->resumed = -1;
    self->port = s_port(fd);
    self->daemon = s_mhd->MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        s_on_request, self, MHD_OPTION_EXTERNAL_LOGGER, s_log_from_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, s_on_uri, self,
        MHD_OPTION_NOTIFY_COMPLETED, s_on_done, self, MHD_OPTION_END);
    if (!self->daemon) {
        close(fd);
        free(self);
        return tt_err(TT_OS, "cannot serve HTTP at %s", address);
    }
    const tt_status_t status = s_make_poll(self);
    if (status == TT_OK)
        *self_p = self;
    else
        server_stop(&self);
    return status;
}

void server_stop(server_t **self_p)
{
    server_t *self = *self_p;
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
