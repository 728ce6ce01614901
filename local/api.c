/*  api - the replicas API of a local run: what a request means (k8s/replicas/work.h) done with local pods. Nobody but processes
 *  of this machine can ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "local/run.h"
#include "k8s/dijob/plan.h"
#include "k8s/replicas/serve.h"
#include "k8s/replicas/work.h"

enum { ALL_GPUS = 4096 /* one machine: all its GPUs are in one pod */ };

/* ---- what orders are made of ---------------------------------------------------------------------------------------- */

static uint64_t s_random(void *ctx)
{
    return ((run_t *)ctx)->random += 0x9e3779b97f4a7c15u;
}

static char *s_url(const void *ctx, const dijob_pod_t *pod, int gpu)
{
    return place_url(((const run_t *)ctx)->place, pod->meta.name, pod->ip, pod->port + gpu);
}

static void s_declared(void *ctx, const dijob_t *job, dijob_role_t role)
{
    (void)job;
    place_say(((run_t *)ctx)->place,
        "Normal  ReplicasDeclared  spec.%s.replicas counts: requests of the replicas API change nothing",
        dijob_role_label(role));
}

static void s_view(void *ctx, const char *job_uid, replicas_view_t *out)
{
    run_t *run = ctx;
    (void)job_uid; /* there is one job */
    *out = (replicas_view_t){.job = run->seen,
        .cut = true, /* without names a pod is called by its address */
        .random = s_random,
        .url = s_url,
        .declared = s_declared,
        .ctx = run};
    out->pods = (const dijob_pod_t *const *)run_pods(run, &out->pod_count);
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
    s_view(((asked_t *)ctx)->run, NULL, out);
}

static void s_prepare(void *ctx, int needs)
{
    (void)needs;
    replicas_work_go(&((asked_t *)ctx)->work, TT_OK);
}

static tt_status_t s_create(void *ctx, int order, const dijob_pod_want_t *want)
{
    asked_t *self = ctx;
    TT_TRY(run_make(self->run, &(front_action_t){.what = FRONT_CREATE_POD, .name = want->name, .own = want}));
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

static bool s_is_here(const run_t *run, const char *namespace_)
{
    return strcmp(namespace_, run->place->namespace_) == 0;
}

static const dijob_pod_t *s_each(void *ctx, const void **at)
{
    const kubelet_t *kubelet = ((run_t *)ctx)->kubelet;
    const uintptr_t i = (uintptr_t)*at;
    *at = (const void *)(i + 1);
    return i < kubelet_count(kubelet) ? kubelet_pod(kubelet, i) : NULL;
}

static const dijob_pod_t *s_pod(void *ctx, const char *namespace_, const char *name)
{
    const kubelet_t *kubelet = ((run_t *)ctx)->kubelet;
    const size_t at = s_is_here(ctx, namespace_) ? kubelet_find(kubelet, name) : kubelet_count(kubelet);
    return at < kubelet_count(kubelet) ? kubelet_pod(kubelet, at) : NULL;
}

static const dijob_t *s_job(void *ctx, const char *namespace_, const char *name)
{
    return s_is_here(ctx, namespace_) && strcmp(name, run_name(ctx)) == 0 ? ((run_t *)ctx)->seen : NULL;
}

/*  Whatever came of a write, data says what has been made or removed. */
static tt_status_t s_write(void *ctx, const replicas_request_t *request, const dijob_pod_t *about, json_t **data)
{
    run_t *run = ctx;
    asked_t asked = {.run = run, .data = data};
    if (run_info(run).final || run->stopping)
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", run->place->namespace_, run_name(run));
    asked.going = json_array();
    replicas_work_begin(&asked.work, &s_substrate, &asked, request, (dijob_role_t)about->role);
    replicas_work_clear(&asked.work);
    json_decref(asked.going);
    run->dirty = true;
    return asked.status;
}

static const replicas_host_t s_host = {.view = s_view, .pod = s_pod, .job = s_job, .each = s_each, .write = s_write};

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
    json_t *data = NULL;
    tt_status_t status = s_parse(run, &request, asked);
    if (status != TT_OK) {
        (void)replicas_answer_refused(run->server, asked->id, asked->method, status);
        return;
    }
    status = replicas_serve(&s_host, run, request, &data);
    (void)replicas_answer(run->server, asked->id, request->verb, status, data);
    replicas_request_destroy(&request);
}
