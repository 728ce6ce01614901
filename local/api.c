/*  api - the replicas API of a local run: what a request means (k8s/replicas/work.h) done with local pods. Nobody but processes
 *  of this machine can ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "local/run_dijob.h"
#include "k8s/replicas/work.h"

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

/* ---- this machine as where pods are: all is done at once ------------------------------------------------------------- */

/*  One request that changes something. */
typedef struct {
    run_t *run;
    replicas_work_t work;
    json_t *going; /* names: what kubelet_delete touches is another pod than has been seen */
    json_t **data; /* of the answer */
    tt_status_t status;
} asked_t;

static void s_list(void *ctx, replicas_view_t *out)
{
    s_view(((asked_t *)ctx)->run, out);
}

static void s_prepare(void *ctx, int needs)
{
    (void)needs;
    replicas_work_go(&((asked_t *)ctx)->work, TT_OK);
}

static tt_status_t s_create(void *ctx, int order, const dijob_pod_want_t *want)
{
    asked_t *self = ctx;
    TT_TRY(run_make_dijob(self->run, want));
    replicas_work_made(&self->work, order);
    return TT_OK;
}

static void s_remove(void *ctx, const dijob_pod_t *pod)
{
    json_array_append_new(((asked_t *)ctx)->going, json_string(pod->meta.name));
}

static void s_commit(void *ctx)
{
    asked_t *self = ctx;
    size_t i;
    json_t *name;
    json_array_foreach(self->going, i, name)
    {
        kubelet_delete(self->run->kubelet, json_string_value(name), -1);
    }
    json_array_clear(self->going);
    replicas_work_go(&self->work, TT_OK);
}

static int s_gpus_per_node(void *ctx)
{
    (void)ctx;
    return ALL_GPUS;
}

static void s_done(void *ctx, tt_status_t status)
{
    asked_t *self = ctx;
    self->status = status;
    *self->data = replicas_data(&self->work.orders, self->work.request);
}

static const replicas_substrate_t s_substrate = {.list = s_list,
    .prepare = s_prepare,
    .create = s_create,
    .remove = s_remove,
    .commit = s_commit,
    .gpus_per_node = s_gpus_per_node,
    .done = s_done};

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

/*  The pod that a request names, if it is of this job. */
static tt_status_t s_find(
    const run_t *run, const replicas_view_t *view, const replicas_request_t *r, const dijob_pod_t **out)
{
    const char *name = replicas_about(r);
    const bool here = name && r->namespace_ && strcmp(r->namespace_, run->place->namespace_) == 0;
    const dijob_pod_t *pod = here ? replicas_find(view, name) : NULL;
    TT_TRY(replicas_check_about(r, pod));
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
    if (!replicas_about(r)) {
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
    asked_t asked = {.run = run, .data = data};
    if (run_info(run).final || run->stopping)
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", run->place->namespace_, run_name(run));
    asked.going = json_array();
    replicas_work_begin(&asked.work, &s_substrate, &asked, r, (dijob_role_t)about->role);
    replicas_work_clear(&asked.work);
    json_decref(asked.going);
    run->dirty = true;
    return asked.status;
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
