/*  dijob - a DIJob as the operator keeps it in memory: what decides, without templates.
 *
 *  Group diengine.opendilab.org, versions v1alpha1 and v2alpha1; the shape of spec decides how a job is read (tasks or
 *  roles), never its apiVersion. Field names: docs/internals/k8s-api.md. Templates stay JSON and are read from the whole
 *  object when a pod is made (build.h), so that nothing of them is lost.
 *
 *  Pure functions on JSON; no I/O. Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include <stdint.h>
#include "common/job/rules.h"
#include "k8s/api/dump.h"
#include "k8s/front/entry.h"

#define DIJOB_GROUP "diengine.opendilab.org"

/*  Label replica-type of v1alpha1 pods; the order is that of creation and of the counters. */
#define DIJOB_ROLE_MAP(X)                                                   \
    X(COORDINATOR, "coordinator", "Coordinator", "COORDINATOR_PORT", 22273) \
    X(COLLECTOR, "collector", "Collector", "COLLECTOR_PORT", 22270)         \
    X(LEARNER, "learner", "Learner", "LEARNER_PORT", 22271)                 \
    X(AGGREGATOR, "aggregator", "Aggregator", "AGGREGATOR_PORT", 22272)     \
    X(DDP_LEARNER, "ddp-learner", "DDPLearner", "LEARNER_PORT", 22271)      \
    X(TASK, "task", "Task", "", 22270) /* a replica of a v2alpha1 task */
typedef enum {
#define X(name, label, title, env, port) DIJOB_##name,
    DIJOB_ROLE_MAP(X)
#undef X
        DIJOB_ROLES
} dijob_role_t;
const char *dijob_role_label(dijob_role_t role); /* "ddp-learner" */
const char *dijob_role_title(dijob_role_t role); /* "Collector": key of status.replicaStatus */
const char *dijob_role_port_env(dijob_role_t role);
int dijob_role_port(dijob_role_t role);
/*  DIJOB_ROLES when there is none. */
dijob_role_t dijob_role_find(const char *label);
/*  front_refusal_t.group of a role, or with DIJOB_TASK of an entry of spec.tasks. */
int dijob_group(dijob_role_t role, int task);

#define DIJOB_PHASE_MAP(X)          \
    X(NONE, "")                     \
    X(CREATED, "Created")           \
    X(PENDING, "Pending")           \
    X(STARTING, "Starting")         \
    X(RUNNING, "Running")           \
    X(RESTARTING, "Restarting")     \
    X(RESCHEDULING, "Rescheduling") \
    X(SUSPENDED, "Suspended")       \
    X(SUCCEEDED, "Succeeded")       \
    X(FAILED, "Failed")             \
    X(UNKNOWN, "Unknown")
typedef enum {
#define X(name, text) DIJOB_PHASE_##name,
    DIJOB_PHASE_MAP(X)
#undef X
        DIJOB_PHASES
} dijob_phase_t;
const char *dijob_phase_name(dijob_phase_t phase);
/*  SUCCEEDED or FAILED. */
bool dijob_phase_final(dijob_phase_t phase);

/*  One entry of spec.tasks (v2alpha1). */
typedef struct {
    char *name; /* = type where none is given and type is not "none" */
    char *type; /* learner, collector, evaluator, none               */
    uint32_t replicas;
} dijob_task_t;

typedef struct {
    kube_meta_t meta; /* first: store.h. uid: the job's; of one that is not on the server (no uid) its owner's */
    char *owner;      /* such a job's own owner reference, as JSON: its pods get it; NULL = the job owns them */
    int64_t generation;
    bool deleting;
    bool tasks_shape;          /* spec.tasks: v2alpha1's way of working                                  */
    bool tutti;                /* spec.engine: tutti                                                     */
    bool embedded;             /* spec.managedBy: coordinator: an operator leaves it alone               */
    tt_clean_t clean;          /* "" and absent: RUNNING; "ALL" = "All"                                  */
    int64_t deadline_s, ttl_s; /* activeDeadlineSeconds, ttlSecondsAfterFinished; -1 = absent          */
    bool suspend;
    char *queue; /* label kueue.x-k8s.io/queue-name; NULL = none */
    /* roles' shape */
    bool has[DIJOB_ROLES];         /* a template for the role                                          */
    int64_t replicas[DIJOB_ROLES]; /* collector, learner, aggregator: -1 = absent (the HTTP API's way)      */
    int64_t least[DIJOB_ROLES];    /* collector, learner: at least, and enough to begin; -1 = absent       */
    int64_t most[DIJOB_ROLES];     /* the most; 0 = absent                                                */
    /* tasks' shape */
    dijob_task_t *tasks;
    size_t task_count;
    int64_t backoff_limit; /* -1 = no limit; absent = 3 with tasks, -1 with roles */
    bool policy; /* podFailurePolicy is given: `fatal` has the exit codes that end the job, engine tutti's too */
    tt_code_set_t fatal;
    bool preemptible;
    /* status */
    dijob_phase_t phase;
    char *status;  /* whole status object, dumped with sorted keys; NULL = none */
    char *invalid; /* why this job cannot be run, for its condition; NULL = it can */
    char *
        misnamed; /* which rule of names it breaks: none is begun so, but one that another let in goes on; NULL = none */
} dijob_t;

/*  From the object's JSON (text or tree). TT_DATA: not a DIJob at all. A spec of wrong shape gives a job with `invalid` set. */
tt_status_t dijob_decode(dijob_t **out, const char *json, size_t size);
tt_status_t dijob_from_json(dijob_t **out, const json_t *object);
void dijob_destroy(dijob_t **self_p);
/*  Why a job is not begun: invalid, or misnamed; NULL = it may. Borrowed. */
const char *dijob_refusal(const dijob_t *self);

/* ---- pods, as the operator keeps them --------------------------------------------------------------------------------- */

typedef enum { MAIN_NONE, MAIN_WAITING, MAIN_RUNNING, MAIN_COMPLETED, MAIN_ERROR } dijob_main_t;

/*  At most 300 bytes with its strings, where there is no trouble to tell of. Main container: di-container or the role's name, else
 *  the only one. */
typedef struct {
    ENTRY_IS_A_POD
    uint8_t role; /* dijob_role_t                                                           */
    uint8_t main; /* dijob_main_t                                                           */
    bool stuck;   /* a container waits with CrashLoopBackOff, or one is terminated (not cleaned up by Running) */
    bool ddp_master;
    bool own_curve; /* annotation tutti/curve: it mounts a key that has its job's UID in its name */
    uint16_t containers, ready_containers; /* counts (v2alpha1 readiness)                                       */
    uint16_t gpu_ports;                    /* ddp learners: further ports port+1 ...                            */
    uint16_t backoff_s;      /* annotation tutti/backoff: waited so long before it was made; 0 = none           */
    uint16_t own_restarts;   /* of its main container                                                           */
    uint16_t failures;       /* annotation tutti/failures: in a row in its place, before it was made            */
    int32_t rank, task_rank; /* v2alpha1; -1 = none                                                             */
    int32_t reschedules;     /* v2alpha1: annotation tutti/reschedules, how often the job had been when it was made */
    char *replaces;          /* annotation tutti/replaces: name of the pod it took the place of; NULL = none */
    char *
        asked; /* annotation tutti/resources: "CPUS/MEMORY/GPUS" asked for over HTTP (build.h); NULL = the template's */
    char *owner_pod; /* ddp learner: name of its aggregator; task: name of its task; NULL       */
} dijob_pod_t;

/*  From (filtered) JSON. TT_DATA: not a pod with our labels. */
tt_status_t dijob_pod_decode(dijob_pod_t **out, const char *json, size_t size);
/*  From PartialObjectMetadata. */
typedef front_service_t dijob_service_t;
tt_status_t dijob_service_decode(dijob_service_t **out, const char *json, size_t size);
