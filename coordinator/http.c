#define TT_LOG_COMPONENT "http"
#include "coordinator/http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/mhd.h"
#include "coordinator/files.h"
#include "coordinator/token.h"

enum { BODY_MAX = 65536, REPLY_MAX = 8 << 20, CONNECTIONS = 32, IDLE_S = 10, ANSWER_S = 5 };

static const mhd_t *s_mhd; /* the library, once for the process */

/*  The slot between the server's thread and the loop's: one request at a time, for the server has one thread. */
typedef enum { SLOT_EMPTY, SLOT_ASKED, SLOT_TAKEN, SLOT_ANSWERED } slot_state_t;

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    slot_state_t state;
    bool closed, abandoned; /* abandoned: nobody waits for the answer any more */
    const char *verb;       /* static                                          */
    char *body;             /* owned by the slot                               */
    tt_status_t status;
    tt_buf_t out; /* the answer, or the error's text */
} slot_t;

/*  Structure of our class */
struct http {
    struct MHD_Daemon *daemon;
    int wake; /* eventfd */
    char token[TOKEN_SIZE];
    char url[128], *run_dir;
    slot_t slot;
};

/*  What has come of one request. */
typedef struct {
    tt_buf_t body;
    bool too_large, bad;
} upload_t;

/* ---- the slot, server's side ---------------------------------------------------------------------------------------- */

static struct timespec s_deadline(int seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += seconds;
    return at;
}

static void s_wake(http_t *self)
{
    const uint64_t one = 1;
    if (write(self->wake, &one, sizeof one) != (ssize_t)sizeof one)
        log_error("eventfd: %s", strerror(errno));
}

/*  Put the question, wait for the answer. TT_TIMEOUT: the loop is busy, or has ended. */
static tt_status_t s_ask(http_t *self, const char *verb, const char *body, tt_buf_t *out)
{
    slot_t *slot = &self->slot;
    const struct timespec until = s_deadline(ANSWER_S);
    pthread_mutex_lock(&slot->mutex);
    int waited = 0;
    while (!slot->closed && slot->state != SLOT_EMPTY && waited == 0) /* an abandoned one is still being answered */
        waited = pthread_cond_timedwait(&slot->answered, &slot->mutex, &until);
    tt_status_t status = TT_TIMEOUT;
    if (!slot->closed && slot->state == SLOT_EMPTY) {
        slot->state = SLOT_ASKED;
        slot->abandoned = false;
        slot->verb = verb;
        slot->body = tt_strdup(body);
        tt_buf_clear(&slot->out);
        s_wake(self);
        while (!slot->closed && slot->state != SLOT_ANSWERED && waited == 0)
            waited = pthread_cond_timedwait(&slot->answered, &slot->mutex, &until);
        if (slot->state == SLOT_ANSWERED)
            status = tt_buf_add(out, tt_buf_text(&slot->out), slot->out.size) == TT_OK ? slot->status : TT_INTERNAL;
        if (slot->state == SLOT_TAKEN) {
            slot->abandoned = true;
        } else {
            slot->state = SLOT_EMPTY;
            free(slot->body);
            slot->body = NULL;
        }
    }
    pthread_mutex_unlock(&slot->mutex);
    if (status == TT_TIMEOUT)
        tt_buf_str(out, "the coordinator did not answer in time; try again");
    return status;
}

/* ---- the slot, loop's side ------------------------------------------------------------------------------------------ */

static bool s_take(slot_t *slot, const char **verb, const char **body)
{
    pthread_mutex_lock(&slot->mutex);
    const bool asked = slot->state == SLOT_ASKED;
    if (asked) {
        slot->state = SLOT_TAKEN;
        *verb = slot->verb;
        *body = slot->body;
    }
    pthread_mutex_unlock(&slot->mutex);
    return asked;
}

static void s_give(slot_t *slot, tt_status_t status, tt_buf_t *out)
{
    pthread_mutex_lock(&slot->mutex);
    slot->status = status;
    tt_buf_clear(&slot->out);
    if (tt_buf_add(&slot->out, tt_buf_text(out), out->size) != TT_OK)
        slot->status = TT_INTERNAL;
    slot->state = SLOT_ANSWERED;
    if (slot->abandoned) {
        slot->state = SLOT_EMPTY;
        free(slot->body);
        slot->body = NULL;
    }
    pthread_cond_broadcast(&slot->answered);
    pthread_mutex_unlock(&slot->mutex);
}

void http_serve(http_t *self, http_answer_fn answer, void *ctx)
{
    uint64_t count;
    const char *verb = NULL, *body = NULL;
    const ssize_t got = read(self->wake, &count, sizeof count);
    if ((got < 0 && errno != EAGAIN) || !s_take(&self->slot, &verb, &body))
        return;
    tt_buf_t out;
    tt_buf_init(&out, REPLY_MAX);
    const tt_status_t status = answer(ctx, verb, body, &out);
    if (status != TT_OK) {
        tt_buf_clear(&out);
        tt_buf_str(&out, tt_err_text());
    }
    s_give(&self->slot, status, &out);
    tt_buf_free(&out);
}

/* ---- replies -------------------------------------------------------------------------------------------------------- */

static enum MHD_Result s_reply(
    struct MHD_Connection *connection, unsigned code, const char *type, const char *text, size_t size)
{
    struct MHD_Response *response =
        s_mhd->MHD_create_response_from_buffer(size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    s_mhd->MHD_add_response_header(response, "Content-Type", type);
    s_mhd->MHD_add_response_header(response, "Cache-Control", "no-store");
    s_mhd->MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (code == MHD_HTTP_UNAUTHORIZED)
        s_mhd->MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"tutti\"");
    const enum MHD_Result result = s_mhd->MHD_queue_response(connection, code, response);
    s_mhd->MHD_destroy_response(response);
    return result;
}

static enum MHD_Result s_refuse(struct MHD_Connection *connection, unsigned code, const char *text)
{
    json_t *object = json_object();
    json_t *words = json_string(text);
    json_object_set_new(object, "error", words ? words : json_string("?"));
    char *body = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    const enum MHD_Result result = s_reply(connection, code, "application/json", body, strlen(body));
    free(body);
    return result;
}

static unsigned s_code(tt_status_t status)
{
    switch (status) {
    case TT_OK:
        return MHD_HTTP_OK;
    case TT_INVALID:
    case TT_USAGE:
        return MHD_HTTP_BAD_REQUEST;
    case TT_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case TT_STOPPED:
        return MHD_HTTP_CONFLICT;
    case TT_TIMEOUT:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

/* ---- routes --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *method, *path, *verb, *type;
} route_t;

static const route_t s_routes[] = {
    {"GET", "/status", "status", "application/json"},
    {"GET", "/metrics", "metrics", "text/plain; version=0.0.4; charset=utf-8"},
    {"POST", "/scale", "scale", "application/json"},
    {"POST", "/stop", "stop", "application/json"},
};

static const route_t *s_route(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_routes); i++)
        if (strcmp(s_routes[i].path, path) == 0)
            return &s_routes[i];
    return NULL;
}

static enum MHD_Result s_handle(
    http_t *self, struct MHD_Connection *connection, const char *path, const char *method, const upload_t *upload)
{
    const char *authorization = s_mhd->MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    if (upload->too_large)
        return s_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than 64 KiB");
    if (upload->bad)
        return s_refuse(connection, MHD_HTTP_BAD_REQUEST, "the body is not text");
    if (strcmp(path, "/healthz") == 0 && strcmp(method, "GET") == 0)
        return s_reply(connection, MHD_HTTP_OK, "text/plain", "ok\n", 3);
    if (!token_matches(self->token, authorization))
        return s_refuse(connection, MHD_HTTP_UNAUTHORIZED,
            "send 'Authorization: Bearer TOKEN' with the content of the run directory's file token");
    const route_t *route = s_route(path);
    if (!route)
        return s_refuse(connection, MHD_HTTP_NOT_FOUND, "there are /healthz, /status, /metrics, /scale and /stop");
    if (strcmp(route->method, method) != 0)
        return s_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
            strcmp(route->method, "GET") == 0 ? "this is to be read with GET" : "this is to be ordered with POST");
    tt_buf_t out;
    tt_buf_init(&out, REPLY_MAX);
    const tt_status_t status = s_ask(self, route->verb, tt_buf_text(&upload->body), &out);
    const enum MHD_Result result = status == TT_OK
                                       ? s_reply(connection, MHD_HTTP_OK, route->type, tt_buf_text(&out), out.size)
                                       : s_refuse(connection, s_code(status), tt_buf_text(&out));
    tt_buf_free(&out);
    return result;
}

/*  MHD calls this first without data, then for each piece of the body, then for the reply. */
static enum MHD_Result s_on_request(void *ctx, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
    (void)version;
    upload_t *upload = *state;
    if (!upload) {
        upload = tt_new0(sizeof *upload);
        tt_buf_init(&upload->body, BODY_MAX);
        *state = upload;
        return MHD_YES;
    }
    if (*size > 0) {
        upload->bad |= memchr(data, '\0', *size) != NULL;
        upload->too_large |= tt_buf_add(&upload->body, data, *size) != TT_OK;
        *size = 0; /* what does not fit is read and thrown away, so that the reply can be read */
        return MHD_YES;
    }
    return s_handle(ctx, connection, path, method, upload);
}

static void s_on_done(void *ctx, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
    (void)ctx;
    (void)connection;
    (void)code;
    upload_t *upload = *state;
    if (!upload)
        return;
    tt_buf_free(&upload->body);
    free(upload);
    *state = NULL;
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

/*  "HOST:PORT" with an IPv4 address. */
static tt_status_t s_address(struct sockaddr_in *out, const char *text)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    const long port = colon ? strtol(colon + 1, &end, 10) : -1;
    if (colon && colon - text < (long)sizeof host)
        snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (!colon || colon - text >= (long)sizeof host || !colon[1] || *end || port < 0 || port > 65535 ||
        inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &out->sin_addr) != 1)
        return tt_err(TT_INVALID, "coordinator.http: '%s' is not ADDRESS:PORT, such as 127.0.0.1:0", text);
    return TT_OK;
}

static void s_log_from_mhd(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx;
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    log_debug("%s", text);
}

static tt_status_t s_start_daemon(http_t *self, const char *address)
{
    struct sockaddr_in at;
    TT_TRY(s_address(&at, address));
    const tt_status_t loaded = mhd_load(&s_mhd);
    if (loaded != TT_OK)
        return tt_err_wrap(loaded, "coordinator.http (\"\" switches it off)");
    self->daemon = s_mhd->MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, s_on_request, self, MHD_OPTION_EXTERNAL_LOGGER, s_log_from_mhd, NULL, MHD_OPTION_SOCK_ADDR, &at,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_NOTIFY_COMPLETED, s_on_done, NULL, MHD_OPTION_END);
    if (!self->daemon)
        return tt_err_errno(errno == EADDRINUSE ? TT_EXISTS : TT_OS, "coordinator.http: cannot serve at %s", address);
    const union MHD_DaemonInfo *info = s_mhd->MHD_get_daemon_info(self->daemon, MHD_DAEMON_INFO_BIND_PORT);
    char host[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &at.sin_addr, host, sizeof host);
    snprintf(self->url, sizeof self->url, "http://%s:%u", host, info ? info->port : ntohs(at.sin_port));
    if (ntohl(at.sin_addr.s_addr) >> 24 != 127)
        log_warn("%s is open to other hosts: the token travels in the clear; a tunnel or a TLS proxy belongs before it",
            self->url);
    return TT_OK;
}

static void s_make_slot(slot_t *slot)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&slot->answered, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&slot->mutex, NULL);
    tt_buf_init(&slot->out, REPLY_MAX);
}

static tt_status_t s_announce(const http_t *self)
{
    char text[256];
    snprintf(text, sizeof text, "{\"url\": \"%s\", \"pid\": %d}\n", self->url, (int)getpid());
    return files_replace(self->run_dir, "http.json", text, 0644);
}

tt_status_t http_start(http_t **self_p, const char *address, const char *run_dir)
{
    http_t *self = tt_new0(sizeof *self);
    s_make_slot(&self->slot);
    self->run_dir = tt_strdup(run_dir);
    self->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    tt_status_t status = self->wake < 0 ? tt_err_errno(TT_OS, "eventfd") : token_take(self->token, run_dir);
    if (status == TT_OK)
        status = s_start_daemon(self, address);
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
    pthread_mutex_lock(&self->slot.mutex);
    self->slot.closed = true;
    pthread_cond_broadcast(&self->slot.answered);
    pthread_mutex_unlock(&self->slot.mutex);
    if (self->daemon) {
        s_mhd->MHD_stop_daemon(self->daemon);
        files_remove(self->run_dir, "http.json");
    }
    if (self->wake >= 0)
        close(self->wake);
    pthread_cond_destroy(&self->slot.answered);
    pthread_mutex_destroy(&self->slot.mutex);
    tt_buf_free(&self->slot.out);
    free(self->slot.body);
    free(self->run_dir);
    free(self);
    *self_p = NULL;
}

int http_fd(const http_t *self)
{
    return self->wake;
}

const char *http_url(const http_t *self)
{
    return self->url;
}
