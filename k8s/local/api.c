/*  api - the replicas API of a local run: what a request means (k8s/replicas/orders.h) done with local pods. Nobody but processes
 *  of this machine can ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/local/run_dijob.h"
#include "k8s/replicas/orders.h"

enum { ANSWER_MAX = 4 << 20, ALL_GPUS = 4096 /* one machine: all its GPUs are in one pod */ };

/* ---- what orders are made of ---------------------------------------------------------------------------------------- */

static uint64_t s_random(void *ctx)
{
    return ((run_t *)ctx)->random += 0x9e3779b97f4a7c15u;
}

static char *s_url(const void *ctx, const dijob_pod_t *pod, int gpu)
{
    return run_url(ctx, pod, gpu);
}

static void s_declared(void *ctx, const dijob_t *job, dijob_role_t role)
{
    (void)job;
    place_say(((run_t *)ctx)->place,
        "Normal  ReplicasDeclared  spec.%s.replicas counts: requests of the replicas API change nothing",
        dijob_role_label(role));
}

static void s_view(run_t *run, replicas_view_t *out)
{
    *out = (replicas_view_t){.job = run_dijob(run),
        .cut = true, /* without names a pod is called by its address */
        .random = s_random,
        .url = s_url,
        .declared = s_declared,
        .ctx = run};
    out->pods = (const dijob_pod_t *const *)run_pods(run, &out->pod_count);
}

static void s_view_close(replicas_view_t *view)
{
    free((void *)(uintptr_t)view->pods);
    view->pods = NULL;
}

/* ---- writes ----------------------------------------------------------------------------------------------------------- */

/*  One request that changes something, and what went wrong with it first. */
typedef struct {
    run_t *run;
    const replicas_request_t *request;
    replicas_orders_t orders;
    tt_status_t status;
    char *fault;
} asked_t;

static bool s_well(asked_t *self, tt_status_t status)
{
    if (status == TT_NOT_FOUND)
        status = tt_err_wrap(TT_INVALID, "create replicas");
    if (status != TT_OK && !self->fault) {
        self->status = status;
        self->fault = tt_strdup(tt_err_text());
    }
    return status == TT_OK;
}

/*  Pods are seen anew for each: what is made or removed changes them. */
static void s_make_one(asked_t *self, size_t at)
{
    replicas_view_t view;
    dijob_pod_want_t want;
    const replicas_order_t *order = &self->orders.orders[at];
    s_view(self->run, &view);
    tt_status_t status = replicas_want(order, &view, &want);
    if (status == TT_OK)
        status = run_make_dijob(self->run, &want);
    s_view_close(&view);
    if (!s_well(self, status))
        return;
    s_view(self->run, &view);
    replicas_made(&self->orders, at, &view);
    s_view_close(&view);
}

static void s_ddp_pod(void *ctx, const dijob_pod_want_t *want)
{
    asked_t *self = ctx;
    s_well(self, run_make_dijob(self->run, want));
}

static void s_ddp(asked_t *self, const replicas_order_t *order)
{
    replicas_view_t view;
    s_view(self->run, &view);
    replicas_ddp(order, self->request, &view, ALL_GPUS, s_ddp_pod, self);
    s_view_close(&view);
}

static void s_make(asked_t *self)
{
    replicas_orders_t *orders = &self->orders;
    for (size_t i = 0; i < orders->count; i++)
        if (!orders->orders[i].only_delete)
            s_make_one(self, i);
    for (size_t i = 0; i < orders->count; i++)
        if (orders->orders[i].want.replaces && (orders->orders[i].made || orders->orders[i].only_delete))
            kubelet_delete(self->run->kubelet, orders->orders[i].want.replaces, -1);
    for (size_t i = 0; i < orders->count; i++)
        if (orders->orders[i].made && orders->orders[i].gpus > 1)
            s_ddp(self, &orders->orders[i]);
}

/*  Names first: what kubelet_delete touches is another pod than we have seen. */
static void s_remove(const asked_t *self, const replicas_orders_t *orders)
{
    char **names = tt_array0(orders->going_count, sizeof *names);
    for (size_t i = 0; i < orders->going_count; i++)
        names[i] = tt_strdup(orders->going[i]->meta.name);
    for (size_t i = 0; i < orders->going_count; i++) {
        kubelet_delete(self->run->kubelet, names[i], -1);
        free(names[i]);
    }
    free(names);
}

static tt_status_t s_do(asked_t *self, dijob_role_t by)
{
    replicas_view_t view;
    s_view(self->run, &view);
    const tt_status_t status = replicas_orders(&self->orders, &view, self->request, by);
    if (status == TT_OK)
        s_remove(self, &self->orders);
    s_view_close(&view);
    TT_TRY(status);
    s_make(self);
    self->run->dirty = true;
    return self->fault ? tt_err(self->status, "%s", self->fault) : TT_OK;
}

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

/*  The pod that a request names, if it is of this job. */
static tt_status_t s_find(
    const run_t *run, const replicas_view_t *view, const replicas_request_t *r, const dijob_pod_t **out)
{
    const char *name = r->coordinator ? r->coordinator : r->aggregator ? r->aggregator : "";
    const bool here = r->namespace_ && strcmp(r->namespace_, run->place->namespace_) == 0;
    const dijob_pod_t *pod = here ? replicas_find(view, name) : NULL;
    if (!pod || !replicas_is_about(r, (dijob_role_t)pod->role))
        return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", r->namespace_ ? r->namespace_ : "", name);
    *out = pod;
    return TT_OK;
}

static json_t *s_all(const run_t *run, const replicas_view_t *view, const replicas_request_t *r)
{
    json_t *list = json_array();
    const bool here = !r->namespace_ || strcmp(r->namespace_, run->place->namespace_) == 0;
    for (size_t i = 0; here && i < view->pod_count; i++)
        if (view->pods[i]->role == DIJOB_COORDINATOR)
            json_array_append_new(list, replicas_of(view, view->pods[i]));
    return list;
}

static tt_status_t s_get(const run_t *run, const replicas_view_t *view, const replicas_request_t *r, json_t **data)
{
    const dijob_pod_t *pod = NULL;
    if (!r->coordinator && !r->aggregator) {
        *data = r->name ? NULL : s_all(run, view, r);
        return TT_OK;
    }
    TT_TRY(s_find(run, view, r, &pod));
    *data = replicas_of(view, pod);
    return TT_OK;
}

static tt_status_t s_v2(const run_t *run, const replicas_view_t *view, const replicas_request_t *r, json_t **data)
{
    if (strcmp(r->namespace_, run->place->namespace_) != 0 || strcmp(r->name, run_name(run)) != 0)
        return tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", r->namespace_, r->name);
    if (r->verb == REPLICAS_GET)
        *data = replicas_of_tasks(view); /* the others are taken and change nothing: spec.tasks counts */
    return TT_OK;
}

/*  Whatever came of a write, data says what has been made or removed. */
static tt_status_t s_write(run_t *run, const dijob_pod_t *about, const replicas_request_t *r, json_t **data)
{
    asked_t asked = {.run = run, .request = r};
    if (run_info(run).final || run->stopping)
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", run->place->namespace_, run_name(run));
    const tt_status_t status = s_do(&asked, (dijob_role_t)about->role);
    *data = replicas_data(&asked.orders, r);
    replicas_orders_clear(&asked.orders);
    free(asked.fault);
    return status;
}

static tt_status_t s_perform(run_t *run, const replicas_request_t *r, json_t **data)
{
    replicas_view_t view;
    const dijob_pod_t *about = NULL;
    s_view(run, &view);
    tt_status_t status = r->v2                     ? s_v2(run, &view, r, data)
                         : r->verb == REPLICAS_GET ? s_get(run, &view, r, data)
                                                   : s_find(run, &view, r, &about);
    s_view_close(&view);
    return status == TT_OK && about && r->verb != REPLICAS_GET ? s_write(run, about, r, data) : status;
}

static tt_status_t s_answer(run_t *run, const replicas_request_t *r, tt_buf_t *out, int *code)
{
    json_t *data = NULL;
    const tt_status_t status = s_perform(run, r, &data);
    if (status != TT_OK && !data) {
        *code = replicas_refuse(out, r->verb == REPLICAS_GET ? "GET" : "POST", status);
        return TT_OK;
    }
    const replicas_reply_t reply = {
        .code = replicas_code(status), .text = status == TT_OK ? NULL : tt_err_text(), .data = data};
    *code = reply.code;
    const tt_status_t printed = replicas_print(out, r->verb, &reply);
    json_decref(data);
    return printed;
}

static tt_status_t s_parse(const run_t *run, replicas_request_t **out, const tt_server_request_t *asked)
{
    if (run->front != &dijob_front)
        return tt_err(TT_NOT_FOUND, "a %s has no replicas API", run->front->kind);
    return replicas_parse(out, asked->method, asked->path, asked->query, asked->body, asked->size);
}

void run_api(void *ctx, const tt_server_request_t *asked)
{
    run_t *run = ctx;
    replicas_request_t *request = NULL;
    tt_buf_t out;
    int code = 200;
    tt_buf_init(&out, ANSWER_MAX);
    const tt_status_t status = s_parse(run, &request, asked);
    if (status != TT_OK)
        code = replicas_refuse(&out, asked->method, status);
    else if (s_answer(run, request, &out, &code) != TT_OK)
        code = 500;
    replicas_request_destroy(&request);
    tt_server_reply(run->server, asked->id, code, "application/json", tt_buf_text(&out), out.size);
    tt_buf_free(&out);
}
