/*  orders - what a request of the replicas API means: which pods are to be made, which are to go, and what is answered.
 *
 *  A pure function of the job and its pods; work.h carries it out.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "k8s/dijob/plan.h"
#include "k8s/replicas/replicas.h"

typedef struct {
    const dijob_t *job;             /* NULL = gone: its pods can be found and listed, and nothing ordered        */
    const dijob_pod_t *const *pods; /* of the job, by age                                                        */
    size_t pod_count;
    bool cut; /* names may be addresses that lost all behind the last dot, as DI-engine cuts names               */
    uint64_t (*random)(void *ctx);
    char *(*url)(const void *ctx, const dijob_pod_t *pod, int gpu); /* caller frees                              */
    void (*declared)(void *ctx, const dijob_t *job,
        dijob_role_t role); /* the spec counts for this role, and not the request        */
    void *ctx;
} replicas_view_t;

/*  A pod that is to be made, and in which list of the answer it stands. */
typedef struct {
    dijob_pod_want_t want; /* name and replaces are owned by the order                     */
    char *asked;           /* what want.resources points into; NULL = the request's        */
    bool learner;          /* which list                                                   */
    bool only_delete;      /* want.replaces goes; the new one is there, or the plan makes it */
    bool made;             /* the caller's: it is there                                    */
    int gpus;              /* of an aggregator's ddp learners; 0 = none                    */
} replicas_order_t;

typedef struct {
    replicas_order_t *orders;
    size_t count;
    const dijob_pod_t **going; /* that the request wants no longer; borrowed from the view */
    size_t going_count;
    json_t *collectors, *learners; /* of the answer: what was there already                */
} replicas_orders_t;

/*  Of CREATE, FAILED or DELETE, that the pod of role `by` is named in. `out` needs no preparation and is to be cleared, whatever
 *  comes back; strings of the request are borrowed. TT_INVALID, TT_NOT_FOUND: nothing is to be done. */
tt_status_t replicas_orders(
    replicas_orders_t *out, const replicas_view_t *view, const replicas_request_t *request, dijob_role_t by);
void replicas_orders_clear(replicas_orders_t *self);
/*  It has been made: its address stands in the answer. */
void replicas_made(replicas_orders_t *self, size_t order, const replicas_view_t *view);
/*  What is to be built for an order: of a ddp learner in another's place that one's ranks and aggregator. Borrowed from the
 *  view's pods. TT_EXISTS: it has no aggregator. */
tt_status_t replicas_want(const replicas_order_t *order, const replicas_view_t *view, dijob_pod_want_t *out);
/*  The ddp learners of an aggregator that was made, with per_node GPUs in a usual node. */
void replicas_ddp(const replicas_order_t *order, const replicas_request_t *request, const replicas_view_t *view,
    int per_node, void (*make)(void *ctx, const dijob_pod_want_t *want), void *ctx);
/*  What is answered, a new reference. */
json_t *replicas_data(const replicas_orders_t *self, const replicas_request_t *request);

/*  GET: the replicas of a coordinator, the learners of an aggregator, the tasks of a job by their ranks (NULL: there are none);
 *  new references. */
json_t *replicas_of(const replicas_view_t *view, const dijob_pod_t *about);
json_t *replicas_of_tasks(const replicas_view_t *view);
/*  A pod by its name; NULL. */
const dijob_pod_t *replicas_find(const replicas_view_t *view, const char *name);
