/*  operator - the controller of DIJobs: watches, plans (dijob/plan.h), does; serves the replicas API and the probes.
 *
 *  `tutti operator` runs it for a cluster or some namespaces; the coordinator of a job with spec.managedBy: coordinator
 *  runs the same thing in a thread of its own for its own job (`only_job`), without leader election.
 *  Threads: operator_run blocks in its caller's thread and uses no other; operator_stop from any. */
#pragma once
#include "common/base/clock.h"
#include "k8s/api/kubeconfig.h"

typedef struct {
    kube_config_opts_t kube;
    const char *namespace_; /* only this one; NULL = all                                                */
    const char *also;       /* kinds of jobs to look after beside DIJobs, names with commas (front.h); NULL = none */
    const char *gang;       /* the scheduler that jobs have PodGroups for (gang.h); NULL = none             */
    const char *queue;      /* who keeps queues that jobs wait in (kueue.h); NULL = none                 */
    const char *controller_config; /* a file of what comes with resources (accelerators.h); NULL = none    */
    const char *only_job;          /* embedded: one job of namespace_; NULL = all                              */
    const char *manifest;          /* embedded without the CRD: a file with the job; NULL = the API server's      */
    const char *own_pod;           /* embedded: the coordinator's pod that we are in; NULL = in none              */
    bool elect;                    /* leader election                                                          */
    const char *lease_namespace,
        *lease_name;        /* NULL = our namespace (POD_NAMESPACE, else di-system), "tutti-operator" */
    const char *listen;     /* replicas API; NULL = ":8080", "" = none                                  */
    const char *probes;     /* /healthz /readyz /metrics; NULL = ":8081", "" = none                     */
    const char *server_url; /* what pods get as KUBERNETES_SERVER_URL; NULL = http://di-server.di-system:8080 */
    const char *agconfig_namespace, *agconfig_name; /* NULL = di-system, aggregator-config                  */
    bool open_api;           /* answer callers that are no pods of the job too                            */
    int gpus_per_node;       /* 0 = ask the nodes                                                        */
    int workers;             /* jobs worked on at a time; 0 = no limit: then all new pods go before all else */
    int stop_fd;             /* readable: stop (signals.h); 0 = none                                     */
    const tt_clock_t *clock; /* timers, and the time of day in nanoseconds since 1970; NULL = the real ones; borrowed */
} operator_opts_t;

typedef struct operator_ operator_t; /* opaque */
tt_status_t operator_new(operator_t **self_p, const operator_opts_t *opts);
/*  Until operator_stop, or the lease is lost for good (TT_UNAVAILABLE: start again). */
tt_status_t operator_run(operator_t *self);
void operator_stop(operator_t *self);
/*  The coordinator that we are in has ended: write down how, clean up, then operator_run returns, after 20 s at most. From
 *  any thread. */
void operator_end(operator_t *self, bool well);
void operator_destroy(operator_t **self_p);
