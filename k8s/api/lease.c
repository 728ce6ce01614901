/*  A request at a time: GET while somebody else holds it (or nobody is known to), PUT of the record as we last saw it while
 *  it is ours or free. The API server refuses a PUT of an old record (409), so that of two who take it one does.
 *
 *  Safe because a holder stops believing renew_ms after it *sent* its last good renewal, and another takes it lease_ms
 *  after it *saw* that renewal, which was later; lease_ms is longer. Only clock rates are assumed to be alike. */
#define TT_LOG_COMPONENT "kube"
#include "k8s/api/lease.h"
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/when.h"

enum { LEASE_MS = 6000, RENEW_MS = 4000, RETRY_MS = 1000, FREE_MS = 3000, ANSWER_RETRIES = 2, LONGEST_S = 3600 };

struct kube_lease {
    kube_client_t *client;
    tt_reactor_t *loop;
    char *collection, *path, *namespace_, *name, *us;
    int lease_ms, renew_ms, retry_ms;
    void (*changed)(void *ctx, bool held);
    void *ctx;
    uint64_t request, tick, expiry; /* under way, next turn, end of belief; 0 = none */
    int64_t sent_ms;                /* the request                                   */
    json_t *record;                 /* as last seen; NULL = not                      */
    int64_t seen_ms;                /* when it was last seen to have changed         */
    bool held, freeing;
    int64_t renewed_ms; /* when our last good renewal was sent */
    bool failing;       /* has been said in the log            */
};

static void s_turn(void *ctx);

static int64_t s_now_ms(const kube_lease_t *self)
{
    return tt_now_ms(tt_reactor_clock(self->loop));
}

/* ---- the record --------------------------------------------------------------------------------------------------- */

static const json_t *s_spec(const kube_lease_t *self)
{
    return json_object_get(self->record, "spec");
}

static const char *s_version(const json_t *record)
{
    const char *version = json_string_value(json_object_get(json_object_get(record, "metadata"), "resourceVersion"));
    return version ? version : "";
}

const char *kube_lease_holder(const kube_lease_t *self)
{
    const char *holder = json_string_value(json_object_get(s_spec(self), "holderIdentity"));
    return holder ? holder : "";
}

/*  How long the holder's record is good for us: its own time, never less than ours, and never more than an hour: what
 *  stands in it may be anything. */
static int64_t s_good_ms(const kube_lease_t *self)
{
    const json_int_t theirs = json_integer_value(json_object_get(s_spec(self), "leaseDurationSeconds"));
    const int64_t theirs_ms = theirs <= 0 ? 0 : theirs < LONGEST_S ? theirs * 1000 : LONGEST_S * INT64_C(1000);
    return theirs_ms > self->lease_ms ? theirs_ms : self->lease_ms;
}

/*  We may write our name into it. */
static bool s_free(const kube_lease_t *self)
{
    const char *holder = kube_lease_holder(self);
    return !*holder || strcmp(holder, self->us) == 0 || s_now_ms(self) - self->seen_ms >= s_good_ms(self);
}

static void s_see(kube_lease_t *self, const kube_reply_t *reply)
{
    json_t *record = json_loadb(reply->body, reply->size, 0, NULL);
    if (!json_is_object(json_object_get(record, "metadata"))) {
        json_decref(record);
        return;
    }
    if (!self->record || strcmp(s_version(record), s_version(self->record)) != 0)
        /* our clock and when we saw it change: the holder's clock may be wrong, and renewTime with it */
        self->seen_ms = s_now_ms(self);
    json_decref(self->record);
    self->record = record;
}

/*  The record with us as its holder, or with nobody: what else stands in it stays. Caller frees. */
static char *s_written(const kube_lease_t *self, const char *holder)
{
    char now[TT_WHEN]; /* metav1.MicroTime; for people only */
    tt_when_text_us(now, tt_wall_ns());
    json_t *record = self->record ? json_deep_copy(self->record)
                                  : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "coordination.k8s.io/v1",
                                        "kind", "Lease", "metadata", "namespace", self->namespace_, "name", self->name);
    json_t *spec = json_object_get(record, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(record, "spec", spec);
    }
    const bool another = strcmp(kube_lease_holder(self), holder) != 0;
    const json_int_t transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
    json_object_set_new(spec, "holderIdentity", json_string(holder));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(*holder ? (self->lease_ms + 999) / 1000 : 1));
    json_object_set_new(spec, "renewTime", json_string(now));
    if (*holder && (another || !json_object_get(spec, "acquireTime")))
        json_object_set_new(spec, "acquireTime", json_string(now));
    if (*holder && self->record && another)
        json_object_set_new(spec, "leaseTransitions", json_integer(transitions + 1));
    char *text = json_dumps(record, JSON_COMPACT);
    json_decref(record);
    return text;
}

/* ---- belief ------------------------------------------------------------------------------------------------------- */

bool kube_lease_held(const kube_lease_t *self)
{
    return self->held && !self->freeing && s_now_ms(self) - self->renewed_ms < self->renew_ms;
}

static void s_hold(kube_lease_t *self, bool held)
{
    if (self->held == held)
        return;
    self->held = held;
    log_info("lease %s/%s: %s", self->namespace_, self->name, held ? "held" : "lost");
    if (self->changed && !self->freeing)
        self->changed(self->ctx, held);
}

static void s_expired(void *ctx)
{
    kube_lease_t *self = ctx;
    self->expiry = 0;
    s_hold(self, false);
}

/*  The server has taken a renewal that was sent at sent_ms. */
static void s_renewed(kube_lease_t *self)
{
    const int64_t left_ms = self->sent_ms + self->renew_ms - s_now_ms(self);
    /* from when it was sent, not answered: others count from when the server took it, which was later */
    self->renewed_ms = self->sent_ms;
    tt_reactor_forget_timer(self->loop, self->expiry);
    self->expiry = left_ms > 0 ? tt_reactor_timer_before(self->loop, left_ms, s_expired, self) : 0;
    s_hold(self, left_ms > 0);
}

/* ---- requests ----------------------------------------------------------------------------------------------------- */

static void s_next_turn(kube_lease_t *self)
{
    if (self->freeing)
        return; /* it would take what we free */
    const int64_t jitter_ms = randombytes_uniform((uint32_t)self->retry_ms / 10 + 1);
    const int64_t after_ms = self->sent_ms + self->retry_ms - jitter_ms - s_now_ms(self);
    self->tick = tt_reactor_timer(self->loop, after_ms > 0 ? after_ms : 0, s_turn, self);
}

static void s_say(kube_lease_t *self, const kube_reply_t *reply)
{
    const bool good = reply->code / 100 == 2 || reply->code == 404 || reply->code == 409;
    if (!good && !self->failing)
        log_warn("lease %s/%s: %s", self->namespace_, self->name, reply->text);
    self->failing = !good;
}

static void s_send(kube_lease_t *self, const char *method, char *body, kube_done_fn done)
{
    const kube_request_t request = {.method = method,
        .path = strcmp(method, "POST") == 0 ? self->collection : self->path,
        .body = body,
        .timeout_ms = ANSWER_RETRIES * self->retry_ms,
        .priority = KUBE_FIRST};
    self->sent_ms = s_now_ms(self);
    self->request = kube_client_send(self->client, &request, done, self);
    free(body);
}

static void s_on_read(void *ctx, const kube_reply_t *reply);

static void s_on_written(void *ctx, const kube_reply_t *reply)
{
    kube_lease_t *self = ctx;
    self->request = 0;
    s_say(self, reply);
    if (reply->code / 100 == 2) {
        s_see(self, reply);
        s_renewed(self);
        s_next_turn(self);
    } else if (reply->code == 409 || reply->code == 404) { /* not as we saw it last: look */
        s_send(self, "GET", NULL, s_on_read);
    } else {
        s_next_turn(self);
    }
}

static void s_on_read(void *ctx, const kube_reply_t *reply)
{
    kube_lease_t *self = ctx;
    self->request = 0;
    s_say(self, reply);
    if (reply->code == 404 && !self->freeing) {
        json_decref(self->record);
        self->record = NULL;
        s_send(self, "POST", s_written(self, self->us), s_on_written);
        return;
    }
    if (reply->code / 100 == 2)
        s_see(self, reply);
    if (strcmp(kube_lease_holder(self), self->us) != 0) /* somebody took it from us, by whatever means */
        s_hold(self, false);
    if (reply->code / 100 == 2 && self->record && s_free(self) && !self->freeing)
        s_send(self, "PUT", s_written(self, self->us), s_on_written);
    else
        s_next_turn(self);
}

static void s_turn(void *ctx)
{
    kube_lease_t *self = ctx;
    self->tick = 0;
    if (self->record && strcmp(kube_lease_holder(self), self->us) == 0)
        s_send(self, "PUT", s_written(self, self->us), s_on_written);
    else
        s_send(self, "GET", NULL, s_on_read);
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

tt_status_t kube_lease_new(kube_lease_t **self_p, kube_client_t *client, const kube_lease_opts_t *opts)
{
    const int lease_ms = opts->lease_ms > 0 ? opts->lease_ms : LEASE_MS;
    const int renew_ms = opts->renew_ms > 0 ? opts->renew_ms : RENEW_MS;
    const int retry_ms = opts->retry_ms > 0 ? opts->retry_ms : RETRY_MS;
    if (!(retry_ms < renew_ms && renew_ms < lease_ms))
        return tt_err(TT_INVALID,
            "a lease is renewed more often than it is believed in, and believed in for less than "
            "it lasts: %d, %d, %d ms",
            retry_ms, renew_ms, lease_ms);
    kube_lease_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->loop = kube_client_loop(client);
    self->collection = tt_sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", opts->namespace_);
    self->path = tt_sprintf("%s/%s", self->collection, opts->name);
    self->namespace_ = tt_strdup(opts->namespace_);
    self->name = tt_strdup(opts->name);
    self->us = tt_strdup(opts->holder);
    self->lease_ms = lease_ms;
    self->renew_ms = renew_ms;
    self->retry_ms = retry_ms;
    self->changed = opts->changed;
    self->ctx = opts->ctx;
    s_turn(self);
    *self_p = self;
    return TT_OK;
}

static void s_on_freed(void *ctx, const kube_reply_t *reply)
{
    kube_lease_t *self = ctx;
    self->request = 0;
    if (reply->code == 409) /* we renewed it, and had no answer */
        s_send(self, "GET", NULL, s_on_read);
    else
        self->held = false;
}

/*  Write that nobody holds it, so that the next one need not wait; the loop runs meanwhile, for FREE_MS at most. */
static void s_free_it(kube_lease_t *self)
{
    const int64_t until_ms = s_now_ms(self) + FREE_MS;
    self->freeing = true;
    tt_reactor_forget_timer(self->loop, self->tick);
    while ((self->request || self->held) && s_now_ms(self) < until_ms) {
        if (!self->request) /* else a renewal is under way: its version is needed */
            s_send(self, "PUT", s_written(self, ""), s_on_freed);
        if (tt_reactor_poll(self->loop, 10) != TT_OK)
            return;
    }
}

void kube_lease_destroy(kube_lease_t **self_p)
{
    kube_lease_t *self = *self_p;
    if (!self)
        return;
    if (kube_lease_held(self))
        s_free_it(self);
    kube_client_cancel(self->client, self->request);
    tt_reactor_forget_timer(self->loop, self->tick);
    tt_reactor_forget_timer(self->loop, self->expiry);
    json_decref(self->record);
    free(self->collection);
    free(self->path);
    free(self->namespace_);
    free(self->name);
    free(self->us);
    free(self);
    *self_p = NULL;
}
