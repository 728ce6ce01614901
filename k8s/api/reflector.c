#define TT_LOG_COMPONENT "kube"
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/query.h"
#include "k8s/api/store_fill.h"

enum {
    PAGE = 10000,         /* a server takes the first page from its cache, the next ones from etcd */
    OBJECT_MAX = 4 << 20, /* etcd takes 1.5 MiB */
    SILENCE_MS = 120000,  /* of a watch; bookmarks come about every minute */
    LIST_SILENCE_MS = 60000,
    BACKOFF_MS = 400, /* the first; jittered down to half of it */
    BACKOFF_MAX_MS = 30000,
    SHORT_MS = 1000,     /* a watch that ends sooner without a word is a failure                        */
    REFUSALS = 5,        /* watches in a row that the server began and refused: the version may be wrong */
    WATCH_LEAST_S = 300, /* timeoutSeconds: this to twice this */
    EVENT_GONE = 410
};

struct kube_reflector {
    kube_client_t *client;
    kube_store_t *store;
    tt_reactor_t *loop;
    char *base; /* path, '?' and the selectors, each with '&' behind it */
    const char **drop;
    int page;
    bool metadata_only;
    void (*on_synced)(void *ctx);
    void (*on_missing)(void *ctx, const kube_reply_t *reply);
    void *ctx;
    uint64_t request, timer; /* under way; 0 = none */
    kube_scan_t *scan;
    char *more;                  /* the next page's token; NULL = the first page    */
    uint64_t list_version;       /* of the list under way; 0 = no page came yet     */
    int64_t began_ms;            /* the watch                                       */
    uint64_t begun_events;       /* how many had come before it                     */
    bool synced, stale;          /* stale: the watch cannot go on, list anew        */
    uint32_t failures, refusals; /* in a row */
    kube_reflector_stats_t stats;
};

static void s_list(void *ctx);
static void s_watch(void *ctx);

/* ---- failures ----------------------------------------------------------------------------------------------------- */

static int64_t s_backoff_ms(uint32_t failures)
{
    static const tt_backoff_rule_t rule = {.first = BACKOFF_MS, .most = BACKOFF_MAX_MS};
    const int64_t ms = tt_backoff_wait(&rule, failures);
    return ms / 2 + (int64_t)randombytes_uniform((uint32_t)ms / 2 + 1);
}

static void s_later_at(kube_reflector_t *self, tt_log_level_t level, tt_timer_fn next, const char *why)
{
    const int64_t after_ms = s_backoff_ms(++self->failures);
    self->stats.errors++;
    tt_log(TT_LOG_COMPONENT, self->failures == 1 ? level : TT_LOG_DEBUG, "%s of %.*s: %s; again in %lld ms",
        next == s_list ? "list" : "watch", (int)strcspn(self->base, "?"), self->base, why, (long long)after_ms);
    self->timer = tt_reactor_timer(self->loop, after_ms, next, self);
}

static void s_later(kube_reflector_t *self, tt_timer_fn next, const char *why)
{
    s_later_at(self, TT_LOG_WARN, next, why);
}

/*  The server speaks to us. */
static void s_well(kube_reflector_t *self)
{
    if (self->failures > 1)
        log_info("watch of %.*s: well again", (int)strcspn(self->base, "?"), self->base);
    self->failures = self->refusals = 0;
}

/* ---- list --------------------------------------------------------------------------------------------------------- */

static tt_status_t s_on_data(void *ctx, const char *data, size_t size)
{
    kube_reflector_t *self = ctx;
    return kube_scan_feed(self->scan, data, size);
}

static tt_status_t s_on_item(void *ctx, const char *type, const char *json, size_t size)
{
    (void)type;
    kube_reflector_t *self = ctx;
    kube_store_list_object(self->store, json, size);
    return TT_OK;
}

static void s_stream(
    kube_reflector_t *self, kube_scan_kind_t kind, kube_object_fn fn, char *path, int idle_ms, kube_done_fn done)
{
    const bool list = kind == KUBE_SCAN_LIST;
    kube_scan_destroy(&self->scan);
    const tt_status_t made = kube_scan_new(&self->scan, kind, self->drop, OBJECT_MAX, fn, self);
    TT_CHECK(made == TT_OK); /* drop was tried before */
    const kube_request_t request = {.method = "GET",
        .path = path,
        .accept = !self->metadata_only ? NULL
                  : list               ? "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
                                       : "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"};
    self->request = kube_client_stream(self->client, &request, idle_ms, s_on_data, done, self);
    free(path);
}

static void s_on_page(void *ctx, const kube_reply_t *reply);

static void s_page(kube_reflector_t *self)
{
    char *token = self->more ? tt_query_escape(self->more) : NULL;
    char *path = tt_sprintf("%slimit=%d%s%s", self->base, self->page, token ? "&continue=" : "", token ? token : "");
    free(token);
    s_stream(self, KUBE_SCAN_LIST, s_on_item, path, LIST_SILENCE_MS, s_on_page);
}

/*  Every page of the newest state (no resourceVersion: a quorum read), all of them of the first page's snapshot. */
static void s_list(void *ctx)
{
    kube_reflector_t *self = ctx;
    self->timer = 0;
    self->stale = false;
    self->list_version = 0;
    free(self->more);
    self->more = NULL;
    kube_store_list_begin(self->store);
    s_page(self);
}

static void s_listed(kube_reflector_t *self)
{
    if (kube_store_list_end(self->store, self->list_version) != TT_OK) {
        log_warn("list of %.*s: %s; listing once more", (int)strcspn(self->base, "?"), self->base, tt_err_text());
        s_list(self);
        return;
    }
    self->stats.lists++;
    const bool first = !self->synced;
    self->synced = true;
    s_watch(self);
    if (first && self->on_synced)
        self->on_synced(self->ctx);
}

static void s_not_listed(kube_reflector_t *self, const kube_reply_t *reply)
{
    const bool missing = self->on_missing && !self->synced && (reply->code == 404 || reply->code == 403);
    s_later_at(self, missing ? TT_LOG_DEBUG : TT_LOG_WARN, s_list, reply->text);
    if (missing)
        self->on_missing(self->ctx, reply);
}

static void s_on_page(void *ctx, const kube_reply_t *reply)
{
    kube_reflector_t *self = ctx;
    uint64_t version = 0;
    self->request = 0;
    if (reply->code != 200) { /* 410: the pages took too long; their snapshot is gone */
        s_not_listed(self, reply);
        return;
    }
    if (kube_scan_end(self->scan) != TT_OK) {
        s_later(self, s_list, tt_err_text());
        return;
    }
    if (!kube_version_read(kube_scan_version(self->scan), &version) || !version) {
        s_later(self, s_list, "a list without a resourceVersion");
        return;
    }
    /* the first page's: the later ones show that state, and the watch has to begin there */
    self->list_version = self->list_version ? self->list_version : version;
    free(self->more);
    self->more = tt_strdup(kube_scan_continue(self->scan));
    if (self->more[0])
        s_page(self);
    else
        s_listed(self);
}

/* ---- watch -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_on_error(kube_reflector_t *self, const json_t *status)
{
    const char *message = json_string_value(json_object_get(status, "message"));
    const json_int_t code = json_integer_value(json_object_get(status, "code"));
    self->stale |= code == EVENT_GONE;
    self->refusals++;
    return tt_err(TT_STOPPED, "%s (%d)", message ? message : "an error without words", (int)code);
}

static tt_status_t s_on_bookmark(kube_reflector_t *self, const json_t *object)
{
    const json_t *text = json_object_get(json_object_get(object, "metadata"), "resourceVersion");
    uint64_t version = 0;
    if (!kube_version_read(json_string_value(text), &version))
        return tt_err(TT_DATA, "a bookmark without a resourceVersion");
    if (version < kube_store_version(self->store)) {
        self->stale = true;
        return tt_err(TT_STOPPED, "the server's versions went back to %llu", (unsigned long long)version);
    }
    kube_store_passed(self->store, version);
    self->stats.bookmarks++;
    return TT_OK;
}

static tt_status_t s_on_other(kube_reflector_t *self, const char *type, const char *json, size_t size)
{
    json_error_t error;
    json_t *object = json_loadb(json, size, 0, &error);
    if (!object)
        return tt_err(TT_DATA, "%s: %s", type, error.text);
    tt_status_t status = TT_OK;
    if (strcmp(type, "ERROR") == 0)
        status = s_on_error(self, object);
    else if (strcmp(type, "BOOKMARK") == 0)
        status = s_on_bookmark(self, object);
    else
        log_debug("an event of type %s", type);
    json_decref(object);
    return status;
}

static tt_status_t s_on_event(void *ctx, const char *type, const char *json, size_t size)
{
    kube_reflector_t *self = ctx;
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0 || strcmp(type, "DELETED") == 0) {
        kube_store_event(self->store, type, json, size);
        self->stats.events++;
    } else {
        TT_TRY(s_on_other(self, type, json, size));
    }
    s_well(self);
    return TT_OK;
}

/*  Ended as agreed, or cut, or silent, or refused. */
static void s_on_watch_over(void *ctx, const kube_reply_t *reply)
{
    kube_reflector_t *self = ctx;
    const int64_t lasted_ms = tt_now_ms(tt_reactor_clock(self->loop)) - self->began_ms;
    self->request = 0;
    if (reply->code == EVENT_GONE)
        self->stale = true;
    else if (reply->code / 100 == 4)
        self->refusals++;
    if (self->refusals >= REFUSALS) {
        self->refusals = 0;
        self->stale = true;
    }
    /* the server cuts a watch that does not keep up with a burst: with something told it was a good one */
    if (reply->code == 200 && !self->stale && (lasted_ms >= SHORT_MS || self->stats.events > self->begun_events)) {
        s_well(self);
        s_watch(self);
    } else if (self->stale && self->failures == 0) { /* at once, but not over and over */
        log_info("watch of %.*s: %s; listing anew", (int)strcspn(self->base, "?"), self->base, reply->text);
        self->stats.errors++;
        self->failures++;
        s_list(self);
    } else {
        s_later(self, self->stale ? s_list : s_watch, reply->text[0] ? reply->text : "ended at once");
    }
}

static void s_watch(void *ctx)
{
    kube_reflector_t *self = ctx;
    self->timer = 0;
    self->stats.watches++;
    self->begun_events = self->stats.events;
    self->began_ms = tt_now_ms(tt_reactor_clock(self->loop));
    const unsigned timeout_s = WATCH_LEAST_S + randombytes_uniform(WATCH_LEAST_S + 1);
    char *path = tt_sprintf("%swatch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%llu", self->base,
        timeout_s, (unsigned long long)kube_store_version(self->store));
    s_stream(self, KUBE_SCAN_WATCH, s_on_event, path, SILENCE_MS, s_on_watch_over);
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

static char *s_base(const kube_reflector_opts_t *opts)
{
    char *label = opts->label_selector ? tt_query_escape(opts->label_selector) : NULL;
    char *field = opts->field_selector ? tt_query_escape(opts->field_selector) : NULL;
    char *base = tt_sprintf("%s?%s%s%s%s%s%s", opts->path, label ? "labelSelector=" : "", label ? label : "",
        label ? "&" : "", field ? "fieldSelector=" : "", field ? field : "", field ? "&" : "");
    free(label);
    free(field);
    return base;
}

/*  The caller's paths and those that nobody reads. */
static const char **s_drop(kube_drop_t theirs)
{
    static const char *const ours[] = {
        "metadata.managedFields", "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]"};
    size_t count = 0;
    while (theirs && theirs[count])
        count++;
    const char **drop = tt_array0(count + TT_COUNT(ours) + 1, sizeof *drop);
    for (size_t i = 0; i < count; i++)
        drop[i] = tt_strdup(theirs[i]);
    for (size_t i = 0; i < TT_COUNT(ours); i++)
        drop[count + i] = tt_strdup(ours[i]);
    return drop;
}

tt_status_t kube_reflector_new(
    kube_reflector_t **self_p, kube_client_t *client, kube_store_t *store, const kube_reflector_opts_t *opts)
{
    kube_scan_t *tried = NULL;
    TT_TRY(kube_scan_new(&tried, KUBE_SCAN_LIST, opts->drop, OBJECT_MAX, s_on_item, NULL));
    kube_scan_destroy(&tried);
    kube_reflector_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->store = store;
    self->loop = kube_client_loop(client);
    self->base = s_base(opts);
    self->drop = s_drop(opts->drop);
    self->page = opts->page > 0 ? opts->page : PAGE;
    self->metadata_only = opts->metadata_only;
    self->on_synced = opts->synced;
    self->on_missing = opts->missing;
    self->ctx = opts->ctx;
    s_list(self);
    *self_p = self;
    return TT_OK;
}

void kube_reflector_destroy(kube_reflector_t **self_p)
{
    kube_reflector_t *self = *self_p;
    if (!self)
        return;
    kube_client_cancel(self->client, self->request);
    tt_reactor_forget_timer(self->loop, self->timer);
    kube_scan_destroy(&self->scan);
    for (size_t i = 0; self->drop[i]; i++)
        free((char *)(uintptr_t)self->drop[i]);
    free(self->drop);
    free(self->base);
    free(self->more);
    free(self);
    *self_p = NULL;
}

bool kube_reflector_synced(const kube_reflector_t *self)
{
    return self->synced;
}

kube_reflector_stats_t kube_reflector_stats(const kube_reflector_t *self)
{
    return self->stats;
}
