/*  fetch - what a pod is made of and nobody keeps: the job's templates, a config of its kind, the GPUs of the nodes. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/chain.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/job/job.h"
#include "common/http/query.h"
#include "k8s/operator/parts.h"

enum { NODES_MAX = 20000, PAGE = 100, OBJECT_MAX = 1 << 20 };
#define GPU_KEY "nvidia.com/gpu"

struct fetch {
    operator_t *op;
    const kind_t *kind;
    char *namespace_, *job;
    int what;
    bool own_config; /* the job's namespace was asked */
    fetched_t got;
    void (*done)(void *ctx, tt_status_t status, const fetched_t *fetched);
    void *ctx;
    uint64_t request;
    /* nodes */
    kube_scan_t *scan;
    fetch_t *next, **link;
};

static void s_next(fetch_t *self);

static void s_free(fetch_t *self)
{
    TT_CHAIN_REMOVE(self);
    kube_scan_destroy(&self->scan);
    json_decref(self->got.job);
    json_decref(self->got.config);
    free(self->got.gpus);
    free(self->namespace_);
    free(self->job);
    free(self);
}

static void s_end(fetch_t *self, tt_status_t status)
{
    self->done(self->ctx, status, &self->got);
    s_free(self);
}

static void s_get(fetch_t *self, const char *path, kube_done_fn done)
{
    const kube_request_t request = {.method = "GET", .path = path, .priority = KUBE_PODS};
    self->request = kube_client_send(self->op->client, &request, done, self);
}

/* ---- the job ------------------------------------------------------------------------------------------------------- */

static void s_on_job(void *ctx, const kube_reply_t *reply)
{
    fetch_t *self = ctx;
    operator_count(self->op, reply->code);
    if (reply->code == 200)
        self->got.job = json_loadb(reply->body, reply->size, 0, NULL);
    if (self->got.job) {
        self->what &= ~FRONT_NEEDS_JOB;
        s_next(self);
        return;
    }
    const char *kind = self->kind->front->kind;
    s_end(self, reply->code == 404
                    ? tt_err(TT_NOT_FOUND, "%s %s/%s is gone", kind, self->namespace_, self->job)
                    : tt_err(TT_UNAVAILABLE, "%s %s/%s: %s", kind, self->namespace_, self->job, reply->text));
}

static void s_job(fetch_t *self)
{
    const job_t *job = cache_job(self->kind, self->namespace_, self->job);
    if (job && job->text) /* templates are most of a job, and are not kept of each */
        self->got.job = json_loadb(job->text, job->text_size, 0, NULL);
    if (self->got.job) {
        self->what &= ~FRONT_NEEDS_JOB;
        s_next(self);
        return;
    }
    char *path =
        tt_sprintf("%s/namespaces/%s/%s/%s", self->kind->path, self->namespace_, self->kind->front->plural, self->job);
    s_get(self, path, s_on_job);
    free(path);
}

/* ---- a config of the kind: the job's namespace, then the operator's ---------------------------------------------------- */

static void s_on_config(void *ctx, const kube_reply_t *reply)
{
    fetch_t *self = ctx;
    operator_count(self->op, reply->code);
    if (reply->code == 200)
        self->got.config = json_loadb(reply->body, reply->size, 0, NULL);
    else if (reply->code != 404 &&
             reply->code != 403) { /* 403: one that sees a few namespaces; the other place may do */
        s_end(self,
            tt_err(TT_UNAVAILABLE, "%s/%s: %s", self->kind->front->config, self->op->opts.agconfig_name, reply->text));
        return;
    }
    if (self->got.config || self->own_config)
        self->what &= ~FRONT_NEEDS_CONFIG;
    self->own_config = true;
    s_next(self);
}

static void s_config(fetch_t *self)
{
    const operator_opts_t *opts = &self->op->opts;
    char *path = tt_sprintf("%s/namespaces/%s/%s/%s", self->kind->path,
        self->own_config ? opts->agconfig_namespace : self->namespace_, self->kind->front->config, opts->agconfig_name);
    s_get(self, path, s_on_config);
    free(path);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

static void s_add_node(fetched_t *self, int gpus)
{
    if (self->gpu_count == NODES_MAX)
        return;
    if ((self->gpu_count & (self->gpu_count - 1)) == 0)
        self->gpus = tt_realloc(self->gpus, tt_mul(self->gpu_count ? 2 * self->gpu_count : 1, sizeof *self->gpus));
    self->gpus[self->gpu_count++] = gpus;
}

static tt_status_t s_on_node(void *ctx, const char *type, const char *json, size_t size)
{
    (void)type;
    fetch_t *self = ctx;
    json_t *node = json_loadb(json, size, 0, NULL);
    const json_t *allocatable = json_object_get(json_object_get(node, "status"), "allocatable");
    const char *text = json_string_value(json_object_get(allocatable, GPU_KEY));
    double gpus = 0;
    if (text && tt_quantity(&gpus, text) != TT_OK)
        gpus = 0;
    json_decref(node);
    s_add_node(&self->got, gpus >= 1 && gpus <= 4096 ? (int)gpus : 0);
    return TT_OK;
}

static tt_status_t s_on_nodes_data(void *ctx, const char *data, size_t size)
{
    fetch_t *self = ctx;
    return kube_scan_feed(self->scan, data, size);
}

static void s_nodes(fetch_t *self, const char *from);

static void s_on_nodes(void *ctx, const kube_reply_t *reply)
{
    fetch_t *self = ctx;
    operator_count(self->op, reply->code);
    if (reply->code != 200 || kube_scan_end(self->scan) != TT_OK) {
        log_warn("the nodes' GPUs: %s (--gpus-per-node says it without asking)", reply->text);
        s_end(self, tt_err(TT_UNAVAILABLE, "the nodes' GPUs: %s", reply->text));
        return;
    }
    char *from = tt_strdup(kube_scan_continue(self->scan));
    if (*from) {
        s_nodes(self, from);
    } else {
        self->what &= ~FETCH_GPUS;
        s_next(self);
    }
    free(from);
}

static void s_nodes(fetch_t *self, const char *from)
{
    static const char *const drop[] = {"metadata.*", "spec.*", "status.*", "+status.allocatable", NULL};
    kube_scan_destroy(&self->scan);
    const tt_status_t status = kube_scan_new(&self->scan, KUBE_SCAN_LIST, drop, OBJECT_MAX, s_on_node, self);
    if (status != TT_OK) {
        s_end(self, status);
        return;
    }
    char *token = tt_query_escape(from);
    char *path = tt_sprintf("/api/v1/nodes?limit=%d%s%s", PAGE, *from ? "&continue=" : "", token);
    const kube_request_t request = {.method = "GET", .path = path, .timeout_ms = 20000};
    self->request = kube_client_stream(self->op->client, &request, 0, s_on_nodes_data, s_on_nodes, self);
    free(token);
    free(path);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static void s_next(fetch_t *self)
{
    self->request = 0;
    if (self->what & FRONT_NEEDS_JOB) {
        s_job(self);
    } else if (self->what & FRONT_NEEDS_CONFIG) {
        s_config(self);
    } else if ((self->what & FETCH_GPUS) && self->op->opts.gpus_per_node > 0) {
        s_add_node(&self->got, self->op->opts.gpus_per_node); /* as if there were such nodes alone */
        s_end(self, TT_OK);
    } else if (self->what & FETCH_GPUS) {
        s_nodes(self, "");
    } else {
        s_end(self, TT_OK);
    }
}

void fetch_begin(operator_t *op, const kind_t *kind, const char *namespace_, const char *job, int what,
    void (*done)(void *ctx, tt_status_t status, const fetched_t *fetched), void *ctx)
{
    fetch_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->kind = kind;
    self->namespace_ = tt_strdup(namespace_);
    self->job = tt_strdup(job);
    self->what = what;
    self->done = done;
    self->ctx = ctx;
    TT_CHAIN_ADD(&op->fetches, self);
    s_next(self);
}

void fetch_drop_all(operator_t *op)
{
    while (op->fetches) {
        kube_client_cancel(op->client, op->fetches->request);
        s_free(op->fetches);
    }
}
