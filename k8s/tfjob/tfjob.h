/*  tfjob - a TFJob as the operator keeps it in memory: what decides, without templates.
 *
 *  Group kubeflow.org, version v1. A job has replicas of up to five types, each with its own number, template and restart
 *  policy; they find each other by TF_CONFIG (tf_config.c). Field by field: docs/guide/tfjob.md. Templates stay JSON and are
 *  read from the whole object when a pod is made.
 *
 *  Jobs of v1alpha1, with a list replicaSpecs, are kept in the same words and the rest in `old`; files with old in their names
 *  know what was different then.
 *
 *  Pure functions on JSON; no I/O. Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include <stdint.h>
#include "common/job/job.h"
#include "k8s/api/dump.h"
#include "k8s/front/entry.h"
#include "k8s/front/front.h"

#define TFJOB_GROUP       "kubeflow.org"
#define TFJOB_API_VERSION TFJOB_GROUP "/v1"
#define TFJOB_CONTAINER   "tensorflow"
#define TFJOB_PORT        "tfjob-port"
/*  Labels of pods and services are of two generations: those of tf-operator ("job-name"), and with this before them those of the
 *  training operator that followed it. Ours have both, and another operator's one of them. */
#define TFJOB_TODAY "training.kubeflow.org/"
/*  Before some of tf-operator's till its version 1.0.0: type and index, and the job's name once more. Ours have these only where a
 *  service may select by them. */
#define TFJOB_BETWEEN    "tf-"
#define TFJOB_CONTROLLER "tfjob-controller"
/*  Of pods of v1alpha1: "chief" or "other". No label, for those are a template's as well. */
#define TFJOB_OLD_NOTE PARTS_OWN "v1alpha1"

enum {
    TFJOB_PORT_NUMBER = 2222,
    TFJOB_REPLICAS_MAX = 4096,     /* of a type */
    TFJOB_CONFIG_MAX = 128 * 1024, /* bytes that Linux takes as one variable of the environment */
    TFJOB_NAME_MAX = 63,           /* of a service */
    TFJOB_OLD_NAME = 40,           /* bytes of a job's name that names of its v1alpha1's places begin with */
    TFJOB_RUNTIME_MAX = 12         /* bytes of a RuntimeId; four where it is ours */
};

/*  In the order of their labels, which is that of TF_CONFIG. */
#define TFJOB_TYPE_MAP(X)                  \
    X(CHIEF, "chief", "Chief")             \
    X(EVALUATOR, "evaluator", "Evaluator") \
    X(MASTER, "master", "Master")          \
    X(PS, "ps", "PS")                      \
    X(WORKER, "worker", "Worker")
typedef enum {
#define X(name, label, title) TFJOB_##name,
    TFJOB_TYPE_MAP(X)
#undef X
        TFJOB_TYPES
} tfjob_type_t;
const char *tfjob_type_label(tfjob_type_t type); /* "ps": labels, names, TF_CONFIG  */
const char *tfjob_type_title(tfjob_type_t type); /* "PS": keys of spec and status   */
/*  In any case; TFJOB_TYPES: there is none. */
tfjob_type_t tfjob_type_find(const char *text);

/*  The condition that says how the job is. */
#define TFJOB_PHASE_MAP(X)      \
    X(NONE, "")                 \
    X(CREATED, "Created")       \
    X(RUNNING, "Running")       \
    X(RESTARTING, "Restarting") \
    X(SUSPENDED, "Suspended")   \
    X(SUCCEEDED, "Succeeded")   \
    X(FAILED, "Failed")
typedef enum {
#define X(name, text) TFJOB_PHASE_##name,
    TFJOB_PHASE_MAP(X)
#undef X
        TFJOB_PHASES
} tfjob_phase_t;
extern const char *const tfjob_phases[TFJOB_PHASES + 1]; /* NULL at the end */

typedef enum { TFJOB_ALWAYS, TFJOB_ON_FAILURE, TFJOB_NEVER, TFJOB_EXIT_CODE, TFJOB_RESTARTS } tfjob_restart_t;

typedef struct {
    bool there;
    bool overruled; /* the template has a restart policy, and another one than the replica spec's */
    uint16_t port;  /* of TFJOB_PORT */
    int32_t replicas;
    tfjob_restart_t restart;
} tfjob_replicas_t;

/*  What jobs of v1alpha1 have beside. */
typedef struct {
    bool there;                             /* it is one                                                          */
    bool default_ps;                        /* its parameter servers have no template: they are TensorFlow's own  */
    bool board;                             /* TensorBoard is asked for                                           */
    tfjob_type_t chief;                     /* terminationPolicy: whose end is the job's ...                      */
    int32_t chief_index;                    /* ... and which of them; 0 in other jobs                             */
    char runtime_id[TFJOB_RUNTIME_MAX + 1]; /* in the names of what is made                    */
} tfjob_old_t;

typedef struct {
    kube_meta_t meta; /* first: store.h */
    int64_t generation;
    bool deleting;
    tfjob_replicas_t types[TFJOB_TYPES];
    bool all_workers; /* successPolicy: AllWorkers                                    */
    bool dynamic;     /* enableDynamicWorker: TF_CONFIG of those who are needed only  */
    bool old_sparse;  /* its key is "sparseCluster", as before 2023                   */
    tt_clean_t clean;
    int64_t deadline_s, ttl_s, backoff_limit; /* -1 = absent */
    bool suspend;
    bool elsewhere; /* runPolicy.managedBy: no operator looks after it */
    tfjob_old_t old;
    tfjob_phase_t phase;
    char *status;  /* whole status object, dumped with sorted keys; NULL = none             */
    char *invalid; /* why this job cannot be run, for its condition; NULL = it can          */
} tfjob_t;

/*  From the object's JSON (text or tree). TT_DATA: not a TFJob at all. A spec of wrong shape gives a job with `invalid` set. */
tt_status_t tfjob_decode(tfjob_t **out, const char *json, size_t size);
tt_status_t tfjob_from_json(tfjob_t **out, const json_t *object);
void tfjob_destroy(tfjob_t **self_p);
/*  Who says when the job is done: Chief or Master, else Worker; in v1alpha1 whom it names. Of a job that is not invalid. */
tfjob_type_t tfjob_decider(const tfjob_t *self);
/*  Replicas of all types. */
int64_t tfjob_replicas(const tfjob_t *self);
/*  front_t.templates: of a map, whose keys are in any case, or of v1alpha1's list. */
tt_status_t tfjob_templates(const json_t *whole, front_template_fn fn, void *ctx);
/*  What of the whole object is about a type, and has its template and its number; NULL. */
json_t *tfjob_replica_spec(const json_t *whole, tfjob_type_t type);

/* ---- pods and services -------------------------------------------------------------------------------------------------- */

typedef enum {
    TFJOB_LABELS_OLD,     /* of tf-operator, maybe beside TFJOB_TODAY's */
    TFJOB_LABELS_BETWEEN, /* with TFJOB_BETWEEN's, maybe beside both    */
    TFJOB_LABELS_TODAY,   /* TFJOB_TODAY's alone                        */
    TFJOB_GENERATIONS
} tfjob_labels_t;

/*  Labels by which services select: one says whose it is, of all of its kinds or of this one alone. */
typedef struct {
    const char *key, *value, *job, *type, *index;
} tfjob_generation_t;
extern const tfjob_generation_t tfjob_generations[TFJOB_GENERATIONS];

typedef struct {
    ENTRY_IS_A_POD        /* main: container tensorflow                                  */
        uint8_t type;     /* tfjob_type_t; TFJOB_TYPES: its labels name no place         */
    uint8_t labels;       /* tfjob_labels_t                                              */
    bool old;             /* of a job of v1alpha1                                        */
    bool decides;         /* of those: its end is the job's                              */
    int32_t index;        /* -1 = none                                                   */
    int32_t own_restarts; /* of all its containers                                       */
    int32_t restarts;     /* annotation tutti/restarts: the job's when it was made       */
} tfjob_pod_t;

/*  From (filtered) JSON. TT_DATA: not a pod with our labels. */
tt_status_t tfjob_pod_decode(tfjob_pod_t **out, const char *json, size_t size);

typedef struct {
    ENTRY_IS_A_SERVICE
    uint8_t type;   /* as a pod's */
    uint8_t labels; /* as a pod's */
    int32_t index;
} tfjob_service_t;

/*  From PartialObjectMetadata. */
tt_status_t tfjob_service_decode(tfjob_service_t **out, const char *json, size_t size);

/* ---- what is made ------------------------------------------------------------------------------------------------------- */

typedef struct {
    tfjob_type_t type;
    int32_t index;
    int32_t restarts;      /* annotation tutti/restarts */
    tfjob_labels_t labels; /* a service: of who is there; a pod: of the service that is to find it */
} tfjob_place_t;

/*  "mnist-worker-0": its pod's name and its service's. Caller frees. */
char *tfjob_place_name(const tfjob_t *job, tfjob_type_t type, int32_t index);
/*  TF_CONFIG of a place, byte for byte as Kubeflow's; NULL = it gets none. domain: what follows ".svc" in names; NULL = nothing.
 *  Caller frees. */
char *tfjob_tf_config(const tfjob_t *job, const tfjob_place_t *place, const char *domain);
/*  The same with addresses of another kind: "host:port", taken. */
typedef char *(*tfjob_host_fn)(void *ctx, const tfjob_t *job, tfjob_type_t type, int32_t index);
char *tfjob_host(void *domain, const tfjob_t *job, tfjob_type_t type, int32_t index); /* that of the cluster */
char *tfjob_tf_config_by(const tfjob_t *job, const tfjob_place_t *place, tfjob_host_fn host, void *ctx);
/*  whole: the whole TFJob object. TT_NOT_FOUND: no template for that type; TT_INVALID: too many replicas for one variable. */
tt_status_t tfjob_build_pod(
    json_t **out, const tfjob_t *job, const json_t *whole, const tfjob_place_t *place, const char *domain);
/*  The headless service of a place. */
json_t *tfjob_build_service(const tfjob_t *job, const tfjob_place_t *place);

/* ---- v1alpha1: build_old.c ------------------------------------------------------------------------------------------------ */

/*  Objects beside pods and services: a server script for parameter servers, and TensorBoard. */
typedef enum { TFJOB_OLD_SCRIPT, TFJOB_OLD_BOARD, TFJOB_OLD_BOARD_SERVICE, TFJOB_OLD_OBJECTS } tfjob_old_object_t;
/*  Bit i: the job is to have object i. */
uint32_t tfjob_old_objects(const tfjob_t *job);
json_t *tfjob_old_build(const tfjob_t *job, const json_t *whole, tfjob_old_object_t which);
/*  What such a server runs: for Python 2 and 3, TensorFlow 1 and 2. */
extern const char tfjob_old_script[];
/*  Is this one a parameter server without a template? */
bool tfjob_old_is_default(const tfjob_t *job, const tfjob_place_t *place);
/*  Its template: a new reference. */
json_t *tfjob_old_template(
    const tfjob_t *job, const json_t *whole, const tfjob_place_t *place, tfjob_host_fn host, void *ctx);
/*  The command of its container, by addresses of another kind: a new reference. */
json_t *tfjob_old_command(const tfjob_t *job, const tfjob_place_t *place, tfjob_host_fn host, void *ctx);
/*  What v1alpha1's tools select by, beside the labels of today. */
void tfjob_old_labels(json_t *labels, const tfjob_t *job, const tfjob_place_t *place);
