/*  backend - what the replicas API means on the API server; nobody outside this folder includes it.
 *
 *  A request is answered from the stores, or becomes a task: a batch of writes whose end is its answer.
 *  Threads: the loop's. */
#pragma once
#include "k8s/dijob/plan.h"
#include "k8s/operator/parts.h"
#include "k8s/replicas/replicas.h"

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

/*  A pod that is to be made, and in which list of the answer it stands. */
typedef struct {
    dijob_pod_want_t want; /* name and replaces are owned by the order */
    char *asked;           /* what want.resources points into; NULL = the request's */
    bool learner;          /* which list                               */
    bool only_delete;      /* want.replaces goes; the new one is there, or the plan makes it */
    bool made;             /* the API server has it                                          */
    int gpus;              /* of an aggregator's ddp learners; 0 = none */
    writes_one_t *write;
} order_t;

/*  One HTTP request under way. */
struct task {
    operator_t *op;
    uint64_t id;
    replicas_request_t *request; /* owned */
    char job_uid[37], job[256];
    json_t *collectors, *learners; /* of the answer; owned */
    order_t *orders;
    size_t order_count;
    writes_t *batch;
    dijob_role_t by;    /* whom the request is about */
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
/*  Append a pod's address: of a ddp learner one a GPU. */
void task_list(json_t *list, const dijob_pod_t *pod);
/*  The spec counts for this role, not the API: said once by an event. */
bool task_declared(const task_t *self, dijob_role_t role);

void task_make(task_t *self);    /* REPLICAS_CREATE */
void task_replace(task_t *self); /* REPLICAS_FAILED */
void task_remove(task_t *self);  /* REPLICAS_DELETE */
