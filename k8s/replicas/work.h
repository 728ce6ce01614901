/*  work - a request of the replicas API that changes something, carried out from its orders to its answer, wherever the pods are.
 *
 *  The order is the same everywhere. What a request wants no longer goes. Else pods are made; then those go that have their
 *  successors, though another's could not be made (both would be there for good); then the ddp learners of the aggregators that
 *  were made come. What goes wrong is kept, the first of several, and the rest is brought to its end: who hears an error asks
 *  again, and would get double.
 *
 *  Where pods are is a substrate: the API server (k8s/operator), processes of this machine (local/). It answers within the
 *  call, or later. Threads: an instance belongs to one thread. */
#pragma once
#include "k8s/replicas/orders.h"

enum { REPLICAS_JOB_NAME = 256, REPLICAS_NO_ORDER = -1 };

/*  What pods are made of beside the job. */
enum {
    REPLICAS_NEEDS_CONFIG = 1, /* an AggregatorConfig: the job has no template of its own for one of them */
    REPLICAS_NEEDS_GPUS = 2    /* how many GPUs a usual node has                                           */
};

/*  ctx is the same for all of them. */
typedef struct {
    /*  list: the job and its pods as they are now. `pods` is freed by who asked; what it points to holds until a pod is created
     *  or deleted for good, which is not before commit. */
    void (*list)(void *ctx, replicas_view_t *out);
    /*  Get ready what pods are made of (REPLICAS_NEEDS_*), and then call replicas_work_go. */
    void (*prepare)(void *ctx, int needs);
    /*  create: order is its number, or REPLICAS_NO_ORDER; replicas_work_made is to be told of it before the next go. Not TT_OK: it
     *  cannot be built, with words; TT_NOT_FOUND: there is no template. */
    tt_status_t (*create)(void *ctx, int order, const dijob_pod_want_t *want);
    /*  delete, in its own time. */
    void (*remove)(void *ctx, const dijob_pod_t *pod);
    /*  Nothing more is asked for now: replicas_work_go when all of it has been done, or replicas_work_fault was told of it. */
    void (*commit)(void *ctx);
    /*  GPUs of a usual node, once they have been prepared. */
    int (*gpus_per_node)(void *ctx);
    /*  say: all has been done, and the answer is replicas_data(&work->orders). Not TT_OK: with tt_err_text(). The last call: the
     *  work may be cleared in it. */
    void (*done)(void *ctx, tt_status_t status);
} replicas_substrate_t;

typedef enum { REPLICAS_MAKES, REPLICAS_REPLACES, REPLICAS_DDP, REPLICAS_ENDS } replicas_stage_t;

/*  The members are work.c's, but for the orders of an answer. */
typedef struct {
    const replicas_substrate_t *on;
    void *ctx;
    const replicas_request_t *request; /* borrowed */
    replicas_orders_t orders;
    replicas_stage_t stage; /* that comes next */
    bool prepared;
    char job[REPLICAS_JOB_NAME];
    tt_status_t status; /* of what went wrong first, and its words */
    char *fault;
} replicas_work_t;

/*  Begin with a request that the pod of role `by` is named in; on, ctx and request outlive the work. It may have ended, and be
 *  gone, when this returns. */
void replicas_work_begin(replicas_work_t *self, const replicas_substrate_t *on, void *ctx,
    const replicas_request_t *request, dijob_role_t by);
/*  What was asked for has been done. status other than TT_OK, with words: it cannot go on, and ends so. As begin. */
void replicas_work_go(replicas_work_t *self, tt_status_t status);
/*  The pod of an order is there. */
void replicas_work_made(replicas_work_t *self, int order);
/*  Something went wrong: tt_err_text() says what. */
void replicas_work_fault(replicas_work_t *self, tt_status_t status);
void replicas_work_clear(replicas_work_t *self);
