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

/*  What failed, in words; the first of several. */
static tt_status_t s_fault(const task_t *self)
{
    for (size_t i = 0; i < self->batch->count; i++) {
        const writes_one_t *write = self->batch->writes[i];
        if (write->status != TT_OK)
            return tt_err(write->status == TT_INVALID ? TT_INVALID : TT_INTERNAL, "%s %s: %s",
                write->deletes ? "delete pod" : "create pod", write->name, write->text);
    }
    return self->status == TT_OK ? TT_OK : tt_err(self->status, "DIJob %s: some pods could not be made", self->job);
}

/*  Addresses of what has been made, in the order of asking. */
static void s_list_made(task_t *self)
{
    for (size_t i = 0; i < self->order_count; i++) {
        const order_t *order = &self->orders[i];
        const dijob_pod_t *pod =
            order->write && order->write->status == TT_OK
                ? kube_store_get(self->op->cache->pods, self->request->namespace_, order->want.name)
                : NULL;
        if (pod)
            task_list(order->learner ? self->learners : self->collectors, pod);
    }
}

/* ---- ddp learners, once their aggregators are there ------------------------------------------------------------------- */

static void s_on_all_made(void *ctx, writes_t *batch)
{
    (void)batch;
    task_t *self = ctx;
    task_end(self, s_fault(self));
}

static void s_ddp_pod(task_t *self, const json_t *job, const dijob_pod_want_t *want)
{
    json_t *object = NULL;
    if (dijob_build_pod(&object, job, want) == TT_OK)
        writes_create(self->batch, WRITES_POD, object);
    else
        log_warn("%s: %s", self->job, tt_err_text());
    json_decref(object);
}

static void s_ddp_group(task_t *self, const fetched_t *fetched, const order_t *order, const dijob_pod_t *aggregator)
{
    int parts[DDP_PARTS], start = 0;
    const size_t count = dijob_ddp_split(order->gpus, fetched->gpus_per_node, parts, DDP_PARTS);
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
    self->batch = writes_new(self->op, job->dijob, s_on_all_made, self);
    for (size_t i = 0; i < self->order_count; i++) {
        const dijob_pod_t *pod = self->orders[i].gpus > 1 ? kube_store_get(self->op->cache->pods,
                                                                self->request->namespace_, self->orders[i].want.name)
                                                          : NULL;
        if (pod)
            s_ddp_group(self, fetched, &self->orders[i], pod);
    }
    if (self->batch->count == 0)
        task_end(self, TT_OK);
}

/* ---- the pods that are replaced go, once those in their places are there: ddp learners follow from one to the other -------- */

static void s_on_removed(void *ctx, writes_t *batch)
{
    task_t *self = ctx;
    bool ddp = false;
    const tt_status_t status = s_fault(self);
    for (size_t i = 0; i < self->order_count; i++)
        ddp |= self->orders[i].gpus > 1;
    writes_destroy(&batch);
    self->batch = NULL;
    if (status == TT_OK && ddp)
        fetch_begin(self->op, self->request->namespace_, self->job, FETCH_JOB | FETCH_GPUS, s_on_fetched_again, self);
    else
        task_end(self, status);
}

static void s_on_made(void *ctx, writes_t *batch)
{
    task_t *self = ctx;
    const job_t *job = task_job(self);
    s_list_made(self);
    const tt_status_t status = job ? s_fault(self) : tt_err(TT_NOT_FOUND, "DIJob %s is gone", self->job);
    writes_destroy(&batch);
    self->batch = NULL;
    if (status != TT_OK) {
        task_end(self, status);
        return;
    }
    self->batch = writes_new(self->op, job->dijob, s_on_removed, self);
    for (size_t i = 0; i < self->order_count; i++) {
        const char *old = self->orders[i].want.replaces;
        const dijob_pod_t *pod = old ? kube_store_get(self->op->cache->pods, self->request->namespace_, old) : NULL;
        if (pod && !pod->deleting)
            writes_delete(self->batch, WRITES_POD, &pod->meta, -1);
    }
    if (self->batch->count == 0)
        s_on_removed(self, self->batch);
}

/* ---- making -------------------------------------------------------------------------------------------------------- */

/*  What is to be built for an order. A ddp learner in another's place has that one's ranks and aggregator; the strings are
 *  the cache's: for now only. */
static dijob_pod_want_t s_want(const task_t *self, const order_t *order, const fetched_t *fetched)
{
    dijob_pod_want_t want = order->want;
    want.agconfig = fetched->agconfig;
    if (want.role != DIJOB_DDP_LEARNER || !want.replaces)
        return want;
    const dijob_pod_t **pods = NULL,
                      *old = kube_store_get(self->op->cache->pods, self->request->namespace_, want.replaces);
    const size_t count = cache_pods(self->op->cache, self->job_uid, &pods);
    if (old)
        dijob_ddp_want(&want, pods, count, old, order->want.name);
    free(pods);
    return want;
}

static tt_status_t s_build(task_t *self, const fetched_t *fetched)
{
    for (size_t i = 0; i < self->order_count; i++) {
        json_t *object = NULL;
        if (self->orders[i].only_delete)
            continue;
        const dijob_pod_want_t want = s_want(self, &self->orders[i], fetched);
        const tt_status_t status = dijob_build_pod(&object, fetched->job, &want);
        if (status != TT_OK)
            return status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status;
        self->orders[i].write = writes_create(self->batch, WRITES_POD, object);
        json_decref(object);
    }
    return TT_OK;
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
    self->batch = writes_new(self->op, job->dijob, s_on_made, self);
    self->status = s_build(self, fetched);
    if (self->batch->count == 0)
        s_on_made(self, self->batch);
}

static void s_go(task_t *self)
{
    const job_t *job = task_job(self);
    int what = FETCH_JOB;
    for (size_t i = 0; i < self->order_count; i++)
        if (self->orders[i].want.role == DIJOB_AGGREGATOR && !job->dijob->has[DIJOB_AGGREGATOR])
            what |= FETCH_AGCONFIG;
    if (self->order_count > 0)
        fetch_begin(self->op, self->request->namespace_, self->job, what, s_on_fetched, self);
    else
        task_end(self, TT_OK);
}

/*  The spec counts: the addresses of those that are there, n at most. */
static void s_list_existing(task_t *self, dijob_role_t role, int n, json_t *list)
{
    const dijob_pod_t **pods = NULL;
    const size_t count = cache_pods(self->op->cache, self->job_uid, &pods);
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
    if (!job->dijob->has[role])
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
    const size_t count = cache_pods(self->op->cache, self->job_uid, &pods);
    for (size_t i = 0; i < count; i++)
        if (pods[i]->replaces && strcmp(pods[i]->replaces, name) == 0)
            found = pods[i];
    free(pods);
    return found;
}

static tt_status_t s_failed(task_t *self, const char *name, bool learner, bool declared)
{
    const char *namespace_ = self->request->namespace_;
    const dijob_pod_t *pod = kube_store_get(self->op->cache->pods, namespace_, name),
                      *successor = s_successor(self, name);
    if ((!pod || strcmp(pod->job_uid, self->job_uid) != 0) && !successor)
        return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", namespace_, name);
    const dijob_role_t role = (dijob_role_t)(pod ? pod->role : successor->role);
    if (role == DIJOB_COORDINATOR || role == DIJOB_TASK)
        return tt_err(TT_INVALID, "pod %s is a %s: not one of the replicas", name, dijob_role_label(role));
    if (successor) { /* reported before, or seen by ourselves */
        task_list(learner ? self->learners : self->collectors, successor);
        return TT_OK;
    }
    order_t *order = s_order(self, role, learner, dijob_name_seed(pod->meta.uid));
    order->want.replaces = tt_strdup(name);
    order->asked = pod->asked ? dijob_asked(pod->asked, &order->want.resources) : NULL;
    order->only_delete = declared;
    return TT_OK;
}

static tt_status_t s_each_failed(task_t *self, char **names, dijob_role_t role)
{
    const bool declared = names && names[0] && task_declared(self, role);
    for (size_t i = 0; names && names[i]; i++)
        TT_TRY(s_failed(self, names[i], role == DIJOB_LEARNER, declared));
    return TT_OK;
}

void task_replace(task_t *self)
{
    tt_status_t status = s_each_failed(self, self->request->failed_collectors, DIJOB_COLLECTOR);
    if (status == TT_OK)
        status = s_each_failed(self, self->request->failed_learners, DIJOB_LEARNER);
    if (status == TT_OK)
        s_go(self);
    else
        task_end(self, status);
}
