/*  backend_make - the orders of a request (k8s/replicas/orders.h) carried out on the API server: pods are made, then those go that
 *  have their successors, then ddp learners come, once their aggregators are there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/operator/backend.h"

/*  The batch is through: what failed is kept in words, the first of several. */
static void s_take_faults(task_t *self)
{
    for (size_t i = 0; i < self->batch->count; i++) {
        const writes_one_t *write = self->batch->writes[i];
        if (write->status != TT_OK)
            task_fault(self, tt_err(write->status == TT_INVALID ? TT_INVALID : TT_INTERNAL, "%s %s: %s",
                                 write->deletes ? "delete pod" : "create pod", write->name, write->text));
    }
    writes_destroy(&self->batch);
}

/*  What is written next is of this job as it is now; NULL, and the task has ended: it is gone, or was not read. */
static const job_t *s_go_on(task_t *self, tt_status_t status)
{
    const job_t *job = task_job(self);
    if (status == TT_OK && !job)
        status = tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job);
    if (status == TT_OK)
        return job;
    task_end(self, status);
    return NULL;
}

static writes_one_t *s_pod(task_t *self, const json_t *job, const dijob_pod_want_t *want)
{
    json_t *object = NULL;
    const tt_status_t status = dijob_build_pod(&object, job, want);
    if (status != TT_OK) {
        task_fault(self, status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status);
        return NULL;
    }
    const job_t *of = task_job(self);
    if (of && gang_groups(self->op, of))
        gang_dress(self->op->gang, object, of->meta.name);
    writes_one_t *write = writes_create(self->batch, &writes_pod, object);
    json_decref(object);
    return write;
}

/* ---- ddp learners, once their aggregators are there ------------------------------------------------------------------- */

static void s_on_all_made(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    s_take_faults(self);
    task_finish(self);
}

typedef struct {
    task_t *task;
    const json_t *job;
} ddp_t;

static void s_ddp_pod(void *ctx, const dijob_pod_want_t *asked)
{
    const ddp_t *self = ctx;
    dijob_pod_want_t want = *asked;
    want.server_url = self->task->op->server_url;
    s_pod(self->task, self->job, &want);
}

static void s_ddp(task_t *self, const fetched_t *fetched, const replicas_view_t *view)
{
    const int per_node = dijob_gpus_per_node(fetched->gpus, fetched->gpu_count);
    ddp_t ddp = {self, fetched->job};
    for (size_t i = 0; i < self->orders.count; i++) {
        const replicas_order_t *order = &self->orders.orders[i];
        if (!order->made || order->gpus < 2)
            continue;
        if (replicas_find(view, order->want.name))
            replicas_ddp(order, self->request, view, per_node, s_ddp_pod, &ddp);
        else
            task_fault(self, tt_err(TT_INTERNAL, "aggregator %s is gone before its learners came", order->want.name));
    }
}

static void s_on_fetched_again(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    task_t *self = ctx;
    replicas_view_t view;
    const job_t *job = s_go_on(self, status);
    if (!job)
        return;
    self->batch = writes_new(self->op, job, s_on_all_made, self);
    task_view(self, &view);
    s_ddp(self, fetched, &view);
    task_view_close(&view);
    if (self->batch->count == 0)
        s_on_all_made(self, self->batch);
}

/* ---- the pods that are replaced go, once those in their places are there: ddp learners follow from one to the other -------- */

static void s_on_removed(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    bool ddp = false;
    s_take_faults(self);
    for (size_t i = 0; i < self->orders.count; i++)
        ddp |= self->orders.orders[i].gpus > 1 && self->orders.orders[i].made;
    if (ddp)
        fetch_begin(self->op, backend_kind(self->op), self->request->namespace_, self->job,
            FRONT_NEEDS_JOB | FETCH_GPUS, s_on_fetched_again, self);
    else
        task_finish(self);
}

/*  Addresses of what has been made, in the order of asking. */
static void s_list_made(task_t *self, const replicas_view_t *view)
{
    for (size_t i = 0; i < self->orders.count; i++) {
        const writes_one_t *write = self->orders.orders[i].own;
        if (write && write->status == TT_OK)
            replicas_made(&self->orders, i, view);
    }
}

/*  What has its successor goes, though another's could not be made: else both would be there for good. */
static void s_remove_replaced(task_t *self, const replicas_view_t *view)
{
    for (size_t i = 0; i < self->orders.count; i++) {
        const replicas_order_t *order = &self->orders.orders[i];
        const char *old = order->only_delete || order->made ? order->want.replaces : NULL;
        const dijob_pod_t *pod = old ? replicas_find(view, old) : NULL;
        if (pod && !pod->deleting)
            writes_delete(self->batch, &writes_pod, &pod->meta, -1);
    }
}

static void s_on_made(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    replicas_view_t view;
    task_view(self, &view);
    s_list_made(self, &view);
    s_take_faults(self);
    const job_t *job = task_job(self);
    if (job) {
        self->batch = writes_new(self->op, job, s_on_removed, self);
        s_remove_replaced(self, &view);
    }
    task_view_close(&view);
    if (!job)
        s_go_on(self, TT_OK);
    else if (self->batch->count == 0)
        s_on_removed(self, self->batch);
}

/* ---- making -------------------------------------------------------------------------------------------------------- */

static void s_build_one(task_t *self, const fetched_t *fetched, const replicas_view_t *view, replicas_order_t *order)
{
    dijob_pod_want_t want;
    const tt_status_t status = replicas_want(order, view, &want);
    if (status != TT_OK) {
        task_fault(self, status);
        return;
    }
    want.server_url = self->op->server_url;
    want.agconfig = fetched->config;
    order->own = s_pod(self, fetched->job, &want);
}

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    task_t *self = ctx;
    replicas_view_t view;
    const job_t *job = s_go_on(self, status);
    if (!job)
        return;
    self->batch = writes_new(self->op, job, s_on_made, self);
    task_view(self, &view);
    for (size_t i = 0; i < self->orders.count; i++)
        if (!self->orders.orders[i].only_delete)
            s_build_one(self, fetched, &view, &self->orders.orders[i]);
    task_view_close(&view);
    if (self->batch->count == 0)
        s_on_made(self, self->batch);
}

static void s_make(task_t *self)
{
    const job_t *job = task_job(self);
    int what = FRONT_NEEDS_JOB;
    for (size_t i = 0; i < self->orders.count; i++)
        if (self->orders.orders[i].want.role == DIJOB_AGGREGATOR && !backend_job(job)->has[DIJOB_AGGREGATOR])
            what |= FRONT_NEEDS_CONFIG;
    fetch_begin(self->op, backend_kind(self->op), self->request->namespace_, self->job, what, s_on_fetched, self);
}

static void s_remove(task_t *self)
{
    self->batch = writes_new(self->op, task_job(self), s_on_all_made, self);
    for (size_t i = 0; i < self->orders.going_count; i++)
        writes_delete(self->batch, &writes_pod, &self->orders.going[i]->meta, -1);
    self->orders.going_count = 0; /* what it points to is the store's */
}

void task_begin(task_t *self, dijob_role_t by)
{
    replicas_view_t view;
    task_view(self, &view);
    const tt_status_t status = replicas_orders(&self->orders, &view, self->request, by);
    if (status == TT_OK && self->orders.going_count > 0)
        s_remove(self);
    task_view_close(&view);
    if (status != TT_OK || (self->orders.count == 0 && !self->batch))
        task_end(self, status);
    else if (self->orders.count > 0)
        s_make(self);
}
