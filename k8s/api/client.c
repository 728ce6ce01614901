#define TT_LOG_COMPONENT "kube"
#include "k8s/api/client.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/api/call.h"

enum {
    IN_FLIGHT = 32,
    IN_FLIGHT_MOST = 80, /* the API server takes 100 at a time over a connection, and watches are among them */
    TIMEOUT_MS = 30000,
    ANSWER_MAX = 16 << 20,
    MOVES = 3,                /* of one request to another connection */
    RETRIES = 10,             /* of one request, each after the time that the server asked for */
    RETRY_AFTER_MOST_S = 300, /* where no deadline bounds it */
    SILENCE_MS = 2000, /* a connection on which nothing at all came for so long before a deadline passed is given up */
};

static void s_pump_soon(kube_client_t *self);

static int64_t s_now_ms(const kube_client_t *self)
{
    return tt_now_ms(tt_reactor_clock(self->loop));
}

/* ---- the end of a call ------------------------------------------------------------------------------------------- */

static kube_call_list_t *s_list(kube_call_t *call)
{
    return &call->client->lists[call->data ? CALL_STREAMS : (int)call->priority];
}

/* Off the wire or out of its list; it has a number still. */
static void s_rest(kube_call_t *call)
{
    if (call->state == CALL_QUEUED)
        kube_call_unlink(s_list(call), call);
    if (call->state == CALL_ON_WIRE && !call->data) {
        call->client->in_flight--;
        s_pump_soon(call->client);
    }
    call->state = CALL_LATER;
}

static void s_forget(kube_call_t *call)
{
    kube_client_t *self = call->client;
    s_rest(call);
    tt_reactor_forget_timer(self->loop, call->deadline);
    tt_reactor_forget_timer(self->loop, call->idle);
    tt_reactor_forget_timer(self->loop, call->later);
    self->pending -= call->data ? 0 : 1;
    tt_slots_remove(&self->calls, call->id);
}

static void s_remove(kube_call_t *call)
{
    s_forget(call);
    kube_transfer_drop(call);
    kube_call_free(call);
}

static void s_finish(kube_call_t *call, const kube_reply_t *reply)
{
    s_forget(call);
    log_trace("%s %s: %d %s", call->method, call->path, reply->code, reply->text);
    if (!reply->held_back)
        kube_stats_call(call);
    if (call->done)
        call->done(call->ctx, reply);
    kube_transfer_drop(call);
    kube_call_free(call);
}

/* It came to nothing. */
__attribute__((format(printf, 2, 3))) static void s_fail(kube_call_t *call, const char *fmt, ...)
{
    kube_reply_t reply = {.body = ""};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(reply.text, sizeof reply.text, fmt, args);
    va_end(args);
    s_finish(call, &reply);
}

bool kube_call_may(const void *ctx)
{
    const kube_call_t *call = ctx;
    return !call->may || call->may(call->may_ctx);
}

static void s_hold_back(kube_call_t *call)
{
    kube_reply_t reply = {.body = "", .held_back = true, .text = "held back: it may not go any more"};
    s_finish(call, &reply);
}

static void s_answer(kube_call_t *call)
{
    kube_reply_t reply = {
        .code = tt_request_code(&call->request), .body = tt_buf_text(&call->answer), .size = call->answer.size};
    if (reply.code / 100 != 2)
        kube_reply_words(&reply);
    s_finish(call, &reply);
}

/* ---- trying again ------------------------------------------------------------------------------------------------ */

static void s_enqueue(kube_call_t *call, bool first)
{
    call->state = CALL_QUEUED;
    kube_call_push(s_list(call), call, first);
    s_pump_soon(call->client);
}

/* What comes from now on takes another connection than this call's. */
static void s_leave_connection(const kube_call_t *call)
{
    if (call->generation == call->client->generation)
        call->client->generation++;
}

static void s_again(kube_call_t *call)
{
    s_rest(call);
    kube_transfer_drop(call);
    s_enqueue(call, true);
}

/* Refused, and there are other credentials: once more with them. An API server ends the connection after a 401. */
static bool s_refreshed(kube_call_t *call)
{
    if (tt_request_code(&call->request) != 401)
        return false;
    s_leave_connection(call);
    call->client->refused = call->identity;
    if (call->refreshed || !kube_credentials_refused(call->client->credentials, call->identity))
        return false;
    call->refreshed = true;
    s_again(call);
    return true;
}

static void s_on_later(void *ctx)
{
    kube_call_t *call = ctx;
    call->later = 0;
    s_enqueue(call, true);
}

/* The server is busy, and said for how long. */
static bool s_postponed(kube_call_t *call)
{
    const int code = tt_request_code(&call->request);
    const int64_t after_s = code == 429 || code == 503 ? tt_request_retry_after(&call->request) : 0;
    if (after_s <= 0 || after_s > RETRY_AFTER_MOST_S || call->retries >= RETRIES ||
        (call->ends_ms && s_now_ms(call->client) + after_s * 1000 >= call->ends_ms))
        return false;
    call->retries++;
    s_rest(call);
    kube_transfer_drop(call);
    call->later = tt_reactor_timer(call->client->loop, after_s * 1000, s_on_later, call);
    return true;
}

/* A connection that the server was about to close did not take it; or the server closed it because another call's
 * credentials were refused, which are this one's. */
static bool s_moved(kube_call_t *call, CURLcode code)
{
    const bool same = call->identity == call->client->refused && !call->why;
    if (tt_request_code(&call->request) != 0) /* it was taken: a stream may have handed on some of its answer */
        return false;
    if (call->moves >= MOVES || (!same && !tt_request_unsent(&call->request, code)))
        return false;
    call->moves++;
    s_leave_connection(call);
    s_again(call);
    return true;
}

static void s_broken(kube_call_t *call, CURLcode code)
{
    if (call->why)
        s_fail(call, "%s", call->why);
    else
        s_fail(call, "%s %s at %s: %s", call->method, call->path, call->client->config->server,
            tt_request_words(&call->request, code));
}

/*  It may not go any more (kube_call_may): what the server has nothing of is held back. */
static void s_forbade(kube_call_t *call)
{
    if (tt_request_waits(&call->request))
        s_hold_back(call);
    else
        s_fail(call, "%s %s at %s: its connection broke, and it may not go again", call->method, call->path,
            call->client->config->server);
}

static void s_ended(tt_transfer_t *transfer, CURLcode code)
{
    kube_call_t *call = (kube_call_t *)transfer;
    if (call->dropped)
        return; /* the pump takes it away */
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        s_forbade(call);
        return;
    }
    kube_stats_attempt(call, tt_request_code(&call->request));
    /* Of a refusal some words may be lost with the connection; what is meant is not. */
    const bool refused = tt_request_code(&call->request) >= 400 && !call->why;
    if (code != CURLE_OK && !refused) {
        if (!s_moved(call, code))
            s_broken(call, code);
    } else if (!s_refreshed(call) && !s_postponed(call))
        s_answer(call);
}

/* ---- time is up -------------------------------------------------------------------------------------------------- */

static void s_on_deadline(void *ctx);

static void s_arm(kube_call_t *call)
{
    tt_reactor_t *loop = call->client->loop;
    tt_reactor_forget_timer(loop, call->deadline);
    call->ends_ms = s_now_ms(call->client) + call->timeout_ms;
    call->deadline = tt_reactor_timer(loop, call->timeout_ms, s_on_deadline, call);
}

static void s_on_deadline(void *ctx)
{
    kube_call_t *call = ctx;
    const kube_client_t *self = call->client;
    const double seconds = (double)call->timeout_ms / 1000;
    call->deadline = 0;
    if (call->patient && !call->went && !self->unknown) {
        s_arm(call); /* others come first: its time begins when it goes */
    } else if (call->state == CALL_ON_WIRE) {
        const int64_t heard_ms = call->sent_ms > self->heard_ms ? call->sent_ms : self->heard_ms;
        if (s_now_ms(self) - heard_ms >= SILENCE_MS)
            tt_request_cut(&call->request);
        kube_stats_attempt(call, 0);
        s_fail(call, "%s %s at %s: no answer within %g s", call->method, call->path, self->config->server, seconds);
    } else
        s_fail(call, "%s %s: did not get its turn within %g s (%s)", call->method, call->path, seconds,
            call->state == CALL_LATER ? "the server asked us to wait"
            : self->unknown           ? "no credentials yet"
                                      : "others come first");
}

static void s_on_idle(void *ctx)
{
    kube_call_t *call = ctx;
    const int64_t silent_ms = call->state == CALL_ON_WIRE ? s_now_ms(call->client) - call->heard_ms : 0;
    call->idle = 0;
    if (silent_ms < call->idle_ms)
        call->idle = tt_reactor_timer(call->client->loop, call->idle_ms - silent_ms, s_on_idle, call);
    else {
        if (call->state == CALL_ON_WIRE)
            kube_stats_attempt(call, tt_request_code(&call->request));
        s_fail(call, "%s %s: nothing came for %g s", call->method, call->path, (double)call->idle_ms / 1000);
    }
}

/* ---- whose turn it is -------------------------------------------------------------------------------------------- */

static kube_call_t *s_next(const kube_client_t *self)
{
    if (self->lists[CALL_STREAMS].first)
        return self->lists[CALL_STREAMS].first;
    for (int p = 0; self->in_flight < self->max_in_flight && p < KUBE_PRIORITIES; p++)
        if (self->lists[p].first)
            return self->lists[p].first;
    return NULL;
}

static void s_start(kube_call_t *call, const kube_identity_t *identity)
{
    if (call->patient && !call->went)
        s_arm(call);
    call->went = true;
    if (kube_transfer_start(call, identity) != TT_OK) {
        s_fail(call, "%s", tt_err_text());
        return;
    }
    kube_call_unlink(s_list(call), call);
    call->state = CALL_ON_WIRE;
    call->client->in_flight += call->data ? 0 : 1;
}

/*  One that waits, and may not go; NULL. */
static kube_call_t *s_forbidden(const kube_client_t *self)
{
    for (int p = 0; p < KUBE_PRIORITIES; p++)
        for (kube_call_t *call = self->lists[p].first; call; call = call->next)
            if (!kube_call_may(call))
                return call;
    return NULL;
}

/*  What libcurl has and the server has nothing of waits again. */
static void s_take_back(const kube_client_t *self)
{
    for (size_t i = 0; i < self->calls.count; i++) {
        kube_call_t *call = self->calls.all[i].thing;
        if (call && call->state == CALL_ON_WIRE && !call->dropped && !kube_call_may(call) &&
            tt_request_waits(&call->request))
            s_again(call);
    }
}

static void s_recheck(kube_client_t *self)
{
    self->recheck = false;
    s_take_back(self);
    for (kube_call_t *call; (call = s_forbidden(self)) != NULL;)
        s_hold_back(call);
}

/* Put on the wire what may go; of calls that came in meanwhile, the next turn. */
static void s_pump(void *ctx)
{
    kube_client_t *self = ctx;
    self->pump = 0;
    while (self->dropped.first) {
        kube_call_t *call = self->dropped.first;
        kube_call_unlink(&self->dropped, call);
        s_remove(call);
    }
    if (self->recheck)
        s_recheck(self);
    size_t left = self->calls.count - self->calls.free_count;
    for (kube_call_t *call; left > 0 && (call = s_next(self)) != NULL; left--) {
        kube_identity_t identity;
        const tt_status_t status = kube_credentials_get(self->credentials, &identity);
        self->unknown = status == TT_AGAIN;
        if (self->unknown)
            return;
        if (!kube_call_may(call))
            s_hold_back(call);
        else if (status == TT_OK)
            s_start(call, &identity);
        else
            s_fail(call, "%s", tt_err_text());
    }
    if (s_next(self))
        s_pump_soon(self);
}

static void s_pump_soon(kube_client_t *self)
{
    if (!self->pump)
        self->pump = tt_reactor_timer(self->loop, 0, s_pump, self);
}

static void s_on_credentials(void *ctx)
{
    s_pump_soon(ctx);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static kube_call_t *s_call(kube_client_t *self, const kube_request_t *request, kube_done_fn done, void *ctx)
{
    TT_CHECK(request->path[0] == '/' && request->priority < KUBE_PRIORITIES);
    kube_call_t *call = tt_new0(sizeof *call);
    call->request.transfer.ended = s_ended;
    call->client = self;
    call->method = tt_strdup(request->method);
    call->path = tt_strdup(request->path);
    call->body = tt_strdup(request->body);
    call->body_size = request->body ? strlen(request->body) : 0;
    call->secret = request->secret;
    call->content_type = tt_strdup(request->content_type);
    call->accept = tt_strdup(request->accept);
    call->max_bytes = request->max_bytes ? request->max_bytes : ANSWER_MAX;
    call->timeout_ms = request->timeout_ms;
    call->priority = request->priority;
    call->done = done;
    call->ctx = ctx;
    call->may = request->may;
    call->may_ctx = request->may_ctx;
    call->asked_ns = tt_now_ns(tt_reactor_clock(self->loop));
    call->id = tt_slots_add(&self->calls, call);
    return call;
}

static uint64_t s_send(kube_call_t *call)
{
    if (call->timeout_ms > 0)
        s_arm(call);
    s_enqueue(call, false);
    return call->id;
}

uint64_t kube_client_send(kube_client_t *self, const kube_request_t *request, kube_done_fn done, void *ctx)
{
    kube_call_t *call = s_call(self, request, done, ctx);
    call->patient = call->timeout_ms <= 0;
    if (call->patient)
        call->timeout_ms = TIMEOUT_MS;
    self->pending++;
    return s_send(call);
}

uint64_t kube_client_stream(
    kube_client_t *self, const kube_request_t *request, int idle_ms, kube_data_fn data, kube_done_fn done, void *ctx)
{
    TT_CHECK(data != NULL);
    kube_call_t *call = s_call(self, request, done, ctx);
    call->data = data;
    call->idle_ms = idle_ms;
    if (idle_ms > 0)
        call->idle = tt_reactor_timer(self->loop, idle_ms, s_on_idle, call);
    return s_send(call);
}

void kube_client_recheck(kube_client_t *self)
{
    self->recheck = true;
    if (self->in_data == 0) /* now: the loop may be about to send it */
        s_take_back(self);
    s_pump_soon(self);
}

void kube_client_cancel(kube_client_t *self, uint64_t request)
{
    const tt_slot_t *slot = tt_slots_find(&self->calls, request);
    kube_call_t *call = slot ? slot->thing : NULL;
    if (!call || call->dropped)
        return;
    if (call->state != CALL_ON_WIRE || self->in_data == 0) {
        s_remove(call);
        return;
    }
    call->dropped = true; /* libcurl is calling us: not before it has left */
    tt_reactor_forget_timer(self->loop, call->deadline);
    tt_reactor_forget_timer(self->loop, call->idle);
    kube_call_push(&self->dropped, call, false);
    s_pump_soon(self);
}

size_t kube_client_pending(const kube_client_t *self)
{
    return self->pending;
}

/* ---- one at a time ----------------------------------------------------------------------------------------------- */

typedef struct {
    bool done;
    tt_status_t status;
    char *body;
} one_t;

static tt_status_t s_status(int code)
{
    if (code / 100 == 2)
        return TT_OK;
    if (code == 404)
        return TT_NOT_FOUND;
    if (code == 409)
        return TT_EXISTS;
    if (code == 401 || code == 403)
        return TT_DENIED;
    if (code == 408 || code == 429) /* it has not looked at what was asked */
        return TT_UNAVAILABLE;
    return code / 100 == 4 ? TT_INVALID : TT_UNAVAILABLE;
}

static void s_on_one(void *ctx, const kube_reply_t *reply)
{
    one_t *one = ctx;
    one->done = true;
    one->status = s_status(reply->code);
    if (one->status != TT_OK)
        (void)tt_err(one->status, "%s", reply->text);
    else
        one->body = tt_strdup(reply->body);
}

tt_status_t kube_client_call(kube_client_t *self, const kube_request_t *request, char **body)
{
    one_t one = {0};
    const uint64_t id = kube_client_send(self, request, s_on_one, &one);
    while (!one.done) {
        const tt_status_t status = tt_reactor_poll(self->loop, 1000);
        if (status != TT_OK) {
            kube_client_cancel(self, id);
            return status;
        }
    }
    if (one.status != TT_OK)
        return tt_err_wrap(one.status, "%s %s", request->method, request->path);
    if (body)
        *body = one.body;
    else
        free(one.body);
    return TT_OK;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* The server has another name in its certificate: that name goes into the URL, and the connection elsewhere. */
static void s_rename(kube_client_t *self, const char *server, size_t scheme, const char *name)
{
    const char *authority = server + scheme;
    const size_t length = strcspn(authority, "/");
    const char *port = authority + length;
    for (const char *c = authority + length; c > authority && *c != ']'; c--)
        if (*c == ':')
            port = c;
    const int host_size = (int)(port - authority), port_size = (int)(authority + length - port);
    self->url = tt_sprintf("%.*s%s%.*s%s", (int)scheme, server, name, port_size, port, authority + length);
    self->host = tt_sprintf("%.*s", (int)length, authority);
    self->connect_to =
        tt_sprintf("::%.*s%.*s", host_size, authority, port_size ? port_size : 1, port_size ? port : ":");
}

static tt_status_t s_server(kube_client_t *self)
{
    const char *server = self->config->server;
    const size_t scheme = strncmp(server, "https://", 8) == 0 ? 8 : strncmp(server, "http://", 7) == 0 ? 7 : 0;
    if (!scheme || !server[scheme])
        return tt_err(TT_CONFIG, "server '%s' is not a URL like https://HOST:PORT", server);
    if (self->config->tls_server_name && scheme == 8)
        s_rename(self, server, scheme, self->config->tls_server_name);
    else
        self->url = tt_strdup(server);
    return TT_OK;
}

static tt_status_t s_init(kube_client_t *self)
{
    const tt_curl_t *curl;
    CURLM *multi;
    const tt_status_t status = tt_reactor_multi(self->loop, &curl, &multi); /* said now, and not of each request */
    if (status != TT_OK)
        return tt_err_wrap(status, "Kubernetes");
    TT_TRY(s_server(self));
    return kube_credentials_new(&self->credentials, self->loop, self->config, s_on_credentials, self);
}

tt_status_t kube_client_new(
    kube_client_t **self_p, tt_reactor_t *loop, const kube_config_t *config, const kube_client_opts_t *opts)
{
    kube_client_t *self = tt_new0(sizeof *self);
    self->loop = loop;
    self->config = config;
    self->agent = tt_strdup(opts && opts->agent ? opts->agent : "tutti");
    const int most = opts && opts->max_in_flight > 0 ? opts->max_in_flight : IN_FLIGHT;
    self->max_in_flight = most < IN_FLIGHT_MOST ? (size_t)most : IN_FLIGHT_MOST;
    const tt_status_t status = s_init(self);
    if (status == TT_OK)
        *self_p = self;
    else
        kube_client_destroy(&self);
    return status;
}

void kube_client_destroy(kube_client_t **self_p)
{
    kube_client_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->calls.count; i++)
        if (self->calls.all[i].thing)
            s_remove(self->calls.all[i].thing);
    tt_reactor_forget_timer(self->loop, self->pump);
    kube_credentials_destroy(&self->credentials);
    tt_slots_free(&self->calls);
    free(self->agent);
    free(self->url);
    free(self->host);
    free(self->connect_to);
    free(self);
    *self_p = NULL;
}

tt_reactor_t *kube_client_loop(const kube_client_t *self)
{
    return self->loop;
}
