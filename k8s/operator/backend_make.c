/*  backend_make - replicas that were asked for, and replicas in the place of failed ones. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/operator/backend.h"

enum { DDP_PARTS = 256 };

/* ---- orders -------------------------------------------------------------------------------------------------------- */

static dijob_resources_t s_resources(const replicas_ask_t *ask)
{
    return (dijob_resources_t){.cpus = ask->cpus, .memory = ask->memory, .gpus = ask->gpus};
}

static order_t *s_order(task_t *self, dijob_role_t role, bool learner, uint64_t random)
{
    if ((self->order_count & (self->order_count - 1)) == 0)
        self->orders =
            tt_realloc(self->orders, tt_mul(self->order_count ? 2 * self->order_count : 1, sizeof *self->orders));
    order_t *order = &self->orders[self->order_count++];
    *order = (order_t){.learner = learner,
        .want = {.role = role, .name = dijob_pod_name(self->job, role, &random), .server_url = self->op->server_url}};
    return order;
}

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

/*  Addresses of what has been made, in the order of asking. */
static void s_list_made(task_t *self)
{
    for (size_t i = 0; i < self->order_count; i++) {
        order_t *order = &self->orders[i];
        order->made = order->write && order->write->status == TT_OK;
        const dijob_pod_t *pod =
            order->made ? backend_pod(self->op, self->request->namespace_, order->want.name) : NULL;
        if (pod)
            task_list(order->learner ? self->learners : self->collectors, pod);
    }
}

/* ---- ddp learners, once their aggregators are there ------------------------------------------------------------------- */

static void s_on_all_made(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    s_take_faults(self);
    task_finish(self);
}

static void s_ddp_pod(task_t *self, const json_t *job, const dijob_pod_want_t *want)
{
    json_t *object = NULL;
    const tt_status_t status = dijob_build_pod(&object, job, want);
    if (status == TT_OK)
        writes_create(self->batch, &writes_pod, object);
    else
        task_fault(self, status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status);
    json_decref(object);
}

static void s_ddp_group(task_t *self, const fetched_t *fetched, const order_t *order, const dijob_pod_t *aggregator)
{
    int parts[DDP_PARTS], start = 0;
    const size_t count =
        dijob_ddp_split(order->gpus, dijob_gpus_per_node(fetched->gpus, fetched->gpu_count), parts, DDP_PARTS);
    uint64_t random = operator_random(self->op);
    char *master = NULL;
    for (size_t i = 0; i < count && i < DDP_PARTS; i++) {
        char *name = dijob_pod_name(self->job, DIJOB_DDP_LEARNER, &random);
        dijob_pod_want_t want = {.role = DIJOB_DDP_LEARNER,
            .name = name,
            .server_url = self->op->server_url,
            .resources = s_resources(&self->request->learners),
            .aggregator = aggregator->meta.name,
            .aggregator_uid = aggregator->meta.uid,
            .world_size = order->gpus,
            .local_world_size = parts[i],
            .start_rank = start,
            .gpus = parts[i],
            .split = count > 1,
            .master = i == 0,
            .master_name = i == 0 ? name : master};
        s_ddp_pod(self, fetched->job, &want);
        start += parts[i];
        if (i == 0)
            master = name;
        else
            free(name);
    }
    free(master);
}

static void s_on_fetched_again(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    task_t *self = ctx;
    const job_t *job = task_job(self);
    if (status == TT_OK && !job)
        status = tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job);
    if (status != TT_OK) {
        task_end(self, status);
        return;
    }
    self->batch = writes_new(self->op, job, s_on_all_made, self);
    for (size_t i = 0; i < self->order_count; i++) {
        const order_t *order = &self->orders[i];
        if (!order->made || order->gpus < 2)
            continue;
        const dijob_pod_t *pod = backend_pod(self->op, self->request->namespace_, order->want.name);
        if (pod)
            s_ddp_group(self, fetched, order, pod);
        else
            task_fault(self, tt_err(TT_INTERNAL, "aggregator %s is gone before its learners came", order->want.name));
    }
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
    for (size_t i = 0; i < self->order_count; i++)
        ddp |= self->orders[i].gpus > 1 && self->orders[i].made;
    if (ddp)
        fetch_begin(self->op, backend_kind(self->op), self->request->namespace_, self->job,
            FRONT_NEEDS_JOB | FETCH_GPUS, s_on_fetched_again, self);
    else
        task_finish(self);
}

/*  What has its successor goes, though another's could not be made: else both would be there for good. */
static void s_on_made(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    const job_t *job = task_job(self);
    s_list_made(self);
    s_take_faults(self);
    if (!job) {
        task_end(self, tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job));
        return;
    }
    self->batch = writes_new(self->op, job, s_on_removed, self);
    for (size_t i = 0; i < self->order_count; i++) {
        const order_t *order = &self->orders[i];
        const char *old = order->only_delete || order->made ? order->want.replaces : NULL;
        const dijob_pod_t *pod = old ? backend_pod(self->op, self->request->namespace_, old) : NULL;
        if (pod && !pod->deleting)
            writes_delete(self->batch, &writes_pod, &pod->meta, -1);
    }
    if (self->batch->count == 0)
        s_on_removed(self, self->batch);
}

/* ---- making -------------------------------------------------------------------------------------------------------- */

/*  What is to be built for an order. A ddp learner in another's place has that one's ranks and aggregator; the strings are
 *  the cache's: for now only. */
static tt_status_t s_want(const task_t *self, const order_t *order, const fetched_t *fetched, dijob_pod_want_t *want)
{
    *want = order->want;
    want->agconfig = fetched->config;
    if (want->role != DIJOB_DDP_LEARNER || !want->replaces)
        return TT_OK;
    const dijob_pod_t **pods = NULL, *old = backend_pod(self->op, self->request->namespace_, want->replaces);
    const size_t count = backend_pods(self->op, self->job_uid, &pods);
    const bool found = old && dijob_ddp_want(want, pods, count, old, order->want.name);
    free(pods);
    return found ? TT_OK : tt_err(TT_EXISTS, "learner %s goes: its aggregator is not there", order->want.replaces);
}

static tt_status_t s_build_one(task_t *self, const fetched_t *fetched, order_t *order)
{
    json_t *object = NULL;
    dijob_pod_want_t want;
    TT_TRY(s_want(self, order, fetched, &want));
    const tt_status_t status = dijob_build_pod(&object, fetched->job, &want);
    if (status != TT_OK)
        return status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status;
    order->write = writes_create(self->batch, &writes_pod, object);
    json_decref(object);
    return TT_OK;
}

static void s_build(task_t *self, const fetched_t *fetched)
{
    for (size_t i = 0; i < self->order_count; i++) {
        const tt_status_t status = self->orders[i].only_delete ? TT_OK : s_build_one(self, fetched, &self->orders[i]);
        if (status != TT_OK)
            task_fault(self, status);
    }
}

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    task_t *self = ctx;
    const job_t *job = task_job(self);
    if (status == TT_OK && !job)
        status = tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job);
    if (status != TT_OK) {
        task_end(self, status);
        return;
    }
    self->batch = writes_new(self->op, job, s_on_made, self);
    s_build(self, fetched);
    if (self->batch->count == 0)
        s_on_made(self, self->batch);
}

static void s_go(task_t *self)
{
    const job_t *job = task_job(self);
    int what = FRONT_NEEDS_JOB;
    for (size_t i = 0; i < self->order_count; i++)
        if (self->orders[i].want.role == DIJOB_AGGREGATOR && !backend_job(job)->has[DIJOB_AGGREGATOR])
            what |= FRONT_NEEDS_CONFIG;
    if (self->order_count > 0)
        fetch_begin(self->op, backend_kind(self->op), self->request->namespace_, self->job, what, s_on_fetched, self);
    else
        task_end(self, TT_OK);
}

/*  The spec counts: the addresses of those that are there, n at most. */
static void s_list_existing(task_t *self, dijob_role_t role, int n, json_t *list)
{
    const dijob_pod_t **pods = NULL;
    const size_t count = backend_pods(self->op, self->job_uid, &pods);
    for (size_t i = 0; i < count && (int)json_array_size(list) < n; i++)
        if (pods[i]->role == role && dijob_pod_alive(pods[i]))
            task_list(list, pods[i]);
    free(pods);
}

static tt_status_t s_ask(task_t *self, dijob_role_t role, const replicas_ask_t *ask)
{
    const job_t *job = task_job(self);
    const bool learner = role == DIJOB_LEARNER;
    double gpus = 0;
    if (ask->replicas == 0)
        return TT_OK;
    if (!backend_job(job)->has[role])
        return tt_err(TT_INVALID, "DIJob %s has no spec.%s.template", self->job, dijob_role_label(role));
    if (task_declared(self, role)) {
        s_list_existing(self, role, ask->replicas, learner ? self->learners : self->collectors);
        return TT_OK;
    }
    if (learner && ask->gpus)
        TT_TRY(tt_quantity(&gpus, ask->gpus));
    if (gpus > 4096)
        return tt_err(TT_INVALID, "learners.gpus: more than 4096");
    for (int i = 0; i < ask->replicas; i++) {
        order_t *order = s_order(self, gpus > 1 ? DIJOB_AGGREGATOR : role, learner, operator_random(self->op));
        order->gpus = gpus > 1 ? (int)gpus : 0;
        if (order->gpus == 0) /* else they are for the ddp learners, not for their aggregator */
            order->want.resources = s_resources(ask);
    }
    return TT_OK;
}

void task_make(task_t *self)
{
    tt_status_t status = s_ask(self, DIJOB_COLLECTOR, &self->request->collectors);
    if (status == TT_OK)
        status = s_ask(self, DIJOB_LEARNER, &self->request->learners);
    if (status == TT_OK)
        s_go(self);
    else
        task_end(self, status);
}

/* ---- in the place of failed ones ---------------------------------------------------------------------------------------- */

/*  The pod that has taken the place of `name` already; NULL. */
static const dijob_pod_t *s_successor(const task_t *self, const char *name)
{
    const dijob_pod_t **pods = NULL, *found = NULL;
    const size_t count = backend_pods(self->op, self->job_uid, &pods);
    for (size_t i = 0; i < count; i++)
        if (pods[i]->replaces && strcmp(pods[i]->replaces, name) == 0)
            found = pods[i];
    free(pods);
    return found;
}

static tt_status_t s_failed(task_t *self, const char *name, bool learner)
{
    const char *namespace_ = self->request->namespace_;
    const dijob_pod_t *pod = backend_pod(self->op, namespace_, name), *successor = s_successor(self, name);
    if ((!pod || strcmp(pod->job_uid, self->job_uid) != 0) && !successor)
        return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", namespace_, name);
    TT_TRY(replicas_may_report(self->request, self->by, name, pod ? pod : successor));
    if (successor) /* reported before, or seen by ourselves */
        task_list(learner ? self->learners : self->collectors, successor);
    if (successor && (!pod || !dijob_pod_alive(pod)))
        return TT_OK;
    const dijob_role_t role = (dijob_role_t)pod->role;
    order_t *order = s_order(self, role, learner, dijob_name_seed(pod->meta.uid));
    order->want.replaces = tt_strdup(name);
    order->asked = pod->asked ? dijob_asked(pod->asked, &order->want.resources) : NULL;
    order->only_delete = successor || task_declared(self, role); /* the plan makes the new one */
    return TT_OK;
}

static tt_status_t s_each_failed(task_t *self, char **names, bool learners)
{
    for (size_t i = 0; names && names[i]; i++)
        TT_TRY(s_failed(self, names[i], learners));
    return TT_OK;
}

void task_replace(task_t *self)
{
    tt_status_t status = s_each_failed(self, self->request->failed_collectors, false);
    if (status == TT_OK)
        status = s_each_failed(self, self->request->failed_learners, true);
    if (status == TT_OK)
        s_go(self);
    else
        task_end(self, status);
}
