/*  backend - what the replicas API means on the API server; nobody outside this folder includes it.
 *
 *  A request is answered from the stores, or becomes a task: work (k8s/replicas/work.h) whose end is its answer.
 *  Threads: the loop's. */
#pragma once
#include "k8s/dijob/plan.h"
#include "k8s/operator/parts.h"
#include "k8s/replicas/serve.h"
#include "k8s/replicas/work.h"

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

/*  One HTTP request under way. */
struct task {
    operator_t *op;
    uint64_t id;
    replicas_request_t *request; /* owned */
    char job_uid[37];
    replicas_work_t work;
    writes_t *batch;          /* of the present stage; NULL = nothing was written in it */
    const fetched_t *fetched; /* while pods are built */
    task_t *next, **link;
};

/*  backend_make.c: its ctx is a task. */
extern const replicas_substrate_t backend_substrate;

/*  Answer with what the task's lists hold, and free it. status other than TT_OK: with tt_err_text(). */
void task_end(task_t *self, tt_status_t status);
/*  What orders are made of, the job perhaps gone. Its pods are freed by the caller, and hold until the stores change. */
void backend_view(const operator_t *op, const char *job_uid, replicas_view_t *out);
