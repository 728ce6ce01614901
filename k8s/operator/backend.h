/*  backend - what the replicas API means on the API server; nobody outside this folder includes it.
 *
 *  A request is answered from the stores, or becomes a task: a batch of writes whose end is its answer.
 *  Threads: the loop's. */
#pragma once
#include "k8s/dijob/plan.h"
#include "k8s/operator/parts.h"
#include "k8s/replicas/orders.h"

/*  The API is DI-orchestrator's, so it is about DIJobs, and this folder's files of that name know them. */
static inline kind_t *backend_kind(const operator_t *op)
{
    return cache_kind(op->cache, &dijob_front);
}

static inline const dijob_t *backend_job(const job_t *job)
{
    return job->own;
}

/*  A pod of a role; tasks have no replicas to ask for. */
static inline const dijob_pod_t *backend_pod(const operator_t *op, const char *namespace_, const char *name)
{
    return kube_store_get(backend_kind(op)->shapes[0].pods, namespace_, name);
}
/*  cache_pods; *out is the caller's. */
size_t backend_pods(const operator_t *op, const char *job_uid, const dijob_pod_t ***out);

/*  One HTTP request under way. */
struct task {
    operator_t *op;
    uint64_t id;
    replicas_request_t *request; /* owned */
    char job_uid[37], job[256];
    replicas_orders_t orders;
    writes_t *batch;
    tt_status_t status; /* of what went wrong first, and its words */
    char *fault;
    task_t *next, **link;
};

/*  Answer with what the task's lists hold, and free it. status other than TT_OK: with tt_err_text(). */
void task_end(task_t *self, tt_status_t status);
/*  The same with what went wrong on the way. What has been begun is brought to its end before. */
void task_finish(task_t *self);
/*  Something went wrong: tt_err_text() says what; the first of several counts. */
void task_fault(task_t *self, tt_status_t status);
/*  The job as it is now; NULL: gone. */
job_t *task_job(const task_t *self);
/*  What orders are made of: to be closed before anything else is done with the stores. */
void task_view(const task_t *self, replicas_view_t *out);
void task_view_close(replicas_view_t *view);

/*  Carry out what the request means. */
void task_begin(task_t *self, dijob_role_t by);
