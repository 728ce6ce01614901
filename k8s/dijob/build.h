/*  build - the objects that a job is made of, as JSON for the API server: pods, headless services, the CURVE secret.
 *
 *  Names, labels, env, ports, owner references: exactly as specs say (docs/internals/k8s-api.md names each). Pure: the
 *  template comes from the job's (or AggregatorConfig's) whole JSON and is kept whole; ours wins where both say something.
 *  Everything returned is a new reference, the caller's. */
#pragma once
#include "k8s/dijob/dijob.h"

/*  What a request of the replicas API says of resources; NULL members leave the template's value. Quantities as text. */
typedef struct {
    const char *cpus, *memory, *gpus;
} dijob_resources_t;

typedef struct {
    dijob_role_t role;
    const char *name;       /* full pod name                                                                     */
    const char *server_url; /* KUBERNETES_SERVER_URL / DI_SERVER_URL                                              */
    dijob_resources_t
        resources; /* asked for over HTTP; kept in annotation tutti/resources for the one in its place                                                               */
    const char *replaces; /* annotation tutti/replaces; NULL = none                                             */
    int backoff_s;        /* annotation tutti/backoff, seconds that were waited before it; 0 = none             */
    int failures;         /* annotation tutti/failures, of how many in a row it takes the place; 0 = none       */
    const json_t *
        agconfig; /* AggregatorConfig for aggregators where spec.aggregator has no template; NULL = none: the built-in one */
    /* ddp learners */
    const char *aggregator, *aggregator_uid; /* its pod; second owner reference                                      */
    int world_size, local_world_size, start_rank, gpus;
    bool split, master;      /* one of several pods; the first of them                                             */
    const char *master_name; /* pod of rank 0 (MASTER_ADDR of the others)                                           */
    /* tasks (v2alpha1) */
    int task, rank, task_rank; /* index into spec.tasks, global rank, rank in the task                               */
    int reschedules;           /* annotation tutti/reschedules: the job's status.reschedules when it is made         */
    bool old_service;          /* the job's service is named as the job, and not di-<job>                            */
    bool old_curve;            /* its pods know the key that an older operator made (dijob_has_old_curve)             */
} dijob_pod_want_t;

/*  Does one of a job's pods mount its key under the name that it had up to 0.1.0, without the job's UID? Who comes to them has to know
 *  the same. */
bool dijob_has_old_curve(const dijob_pod_t *const *pods, size_t count);

/*  Cuts "CPUS/MEMORY/GPUS", each may be empty, into its parts, which point into it. false: it is not that, and *out stays. */
bool dijob_asked(dijob_resources_t *out, char *text);

/*  job: the whole DIJob object. TT_NOT_FOUND: no template for that role (text for a person). */
tt_status_t dijob_build_pod(json_t **out, const json_t *job, const dijob_pod_want_t *want);
/*  What such pods are made of, for who accounts for their resources: a template with labels, annotations and spec. */
tt_status_t dijob_pod_template(json_t **out, const json_t *job, const json_t *agconfig, dijob_role_t role, int task);
/*  The headless service of a pod (v1alpha1: one a pod), from the pod's cached form: labels and selector are derived. */
tt_status_t dijob_build_service(json_t **out, const dijob_t *job, const dijob_pod_t *pod);
/*  v2alpha1: the one service "di-<job>". */
tt_status_t dijob_build_job_service(json_t **out, const dijob_t *job);
/*  Secret "<job>-curve-<of its UID>" of an engine:tutti job, with a new key pair (docs/internals/pods.md): it may be made and not read, so
 *  nobody else is to have one of that name, nor a job of the same name before it. Who has no more use for it
 *  destroys it by kube_wipe_secret (k8s/api/dump.h). */
tt_status_t dijob_build_curve(json_t **out, const dijob_t *job);

/*  "<job>-collector-x7k2d": five characters of Kubernetes' safe alphabet from *random (advanced). Caller frees. */
char *dijob_pod_name(const char *job, dijob_role_t role, uint64_t *random);
/*  Of the UID of a pod: the random number that the name of the one in its place is made of, whoever makes it. */
uint64_t dijob_name_seed(const char *uid);
/*  "qbert-dqn-collector-pm5gv.default:22270"; caller frees. ddp: one for each gpu port. */
char *dijob_pod_url(const dijob_pod_t *pod, int gpu_port);
/*  How `gpus` GPUs are cut into ddp learner pods, with `per_node` the GPUs of a usual node (dijob_gpus_per_node). Count
 *  of pods; parts may be NULL. */
size_t dijob_ddp_split(int gpus, int per_node, int *parts, size_t room);
/*  The most frequent allocatable number over nodes, ties to the larger; when that is 0 the largest. */
int dijob_gpus_per_node(const int *gpus, size_t nodes);
