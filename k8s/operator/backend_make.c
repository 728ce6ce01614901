/*  backend_make - the API server as where the replicas API has its pods made (k8s/replicas/work.h): what a stage asks for goes out at
 *  once, and the next one comes when all of it has been answered. */
#include <stdlib.h>
#include "k8s/operator/backend.h"

static void s_list(void *ctx, replicas_view_t *out)
{
    const task_t *self = ctx;
    backend_view(self->op, self->job_uid, out);
}

/* ---- what pods are made of ------------------------------------------------------------------------------------------ */

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    task_t *self = ctx;
    self->fetched = fetched;
    replicas_work_go(&self->work, status);
}

static void s_prepare(void *ctx, int needs)
{
    task_t *self = ctx;
    const int what = FRONT_NEEDS_JOB | (needs & REPLICAS_NEEDS_CONFIG ? FRONT_NEEDS_CONFIG : 0) |
                     (needs & REPLICAS_NEEDS_GPUS ? FETCH_GPUS : 0);
    fetch_begin(self->op, backend_kind(self->op), self->request->namespace_, self->work.job, what, s_on_fetched, self);
}

static int s_gpus_per_node(void *ctx)
{
    const task_t *self = ctx;
    return dijob_gpus_per_node(self->fetched->gpus, self->fetched->gpu_count);
}

/* ---- writes --------------------------------------------------------------------------------------------------------- */

static void s_on_batch(void *ctx, writes_t *batch)
{
    task_t *self = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const writes_one_t *write = batch->writes[i];
        if (write->status != TT_OK)
            replicas_work_fault(
                &self->work, tt_err(write->status == TT_INVALID ? TT_INVALID : TT_INTERNAL, "%s %s: %s",
                                 write->deletes ? "delete pod" : "create pod", write->name, write->text));
        else if (!write->deletes)
            replicas_work_made(&self->work, write->group);
    }
    writes_destroy(&self->batch);
    replicas_work_go(&self->work, TT_OK);
}

static const job_t *s_job(const task_t *self)
{
    return cache_job_by_uid(backend_kind(self->op), self->job_uid);
}

static writes_t *s_batch(task_t *self)
{
    if (!self->batch)
        self->batch = writes_new(self->op, s_job(self), s_on_batch, self);
    return self->batch;
}

static tt_status_t s_create(void *ctx, int order, const dijob_pod_want_t *asked)
{
    task_t *self = ctx;
    dijob_pod_want_t want = *asked;
    json_t *object = NULL;
    want.server_url = self->op->server_url;
    want.agconfig = self->fetched->config;
    TT_TRY(dijob_build_pod(&object, self->fetched->job, &want));
    const job_t *job = s_job(self);
    if (gang_groups(self->op, job))
        gang_dress(self->op->gang, object, job->meta.name);
    writes_create(s_batch(self), &writes_pod, object)->group = order;
    json_decref(object);
    return TT_OK;
}

static void s_remove(void *ctx, const dijob_pod_t *pod)
{
    writes_delete(s_batch(ctx), &writes_pod, &pod->meta, -1);
}

static void s_commit(void *ctx)
{
    task_t *self = ctx;
    self->fetched = NULL;
    if (!self->batch)
        replicas_work_go(&self->work, TT_OK);
}

static void s_done(void *ctx, tt_status_t status)
{
    task_end(ctx, status);
}

const replicas_substrate_t backend_substrate = {.list = s_list,
    .prepare = s_prepare,
    .create = s_create,
    .remove = s_remove,
    .commit = s_commit,
    .gpus_per_node = s_gpus_per_node,
    .done = s_done};
