/*  parts - what the files of this folder share; nobody else includes it.
 *
 *  Threads: the loop's, all of it. */
#pragma once
#include <stdatomic.h>
#include "k8s/api/client.h"
#include "k8s/api/lease.h"
#include "common/http/queue.h"
#include "k8s/api/recorder.h"
#include "k8s/api/store.h"
#include "k8s/front/front.h"
#include "k8s/front/gang.h"
#include "k8s/front/refusals.h"
#include "k8s/operator/operator.h"
#include "common/http/server.h"

/* ---- jobs as they are kept: cache.c ------------------------------------------------------------------------------------- */

typedef struct cache cache_t;
typedef struct kind kind_t;
typedef struct job job_t;

/*  What we noted of a job as we wrote what it owns. Whoever led after us may have changed all of it: good for one reign. */
typedef struct {
    uint64_t reign;
    front_refusals_t refused; /* what the API server said about a pod of this generation               */
    uint32_t made, removed;   /* front_view_t: objects beside pods and services                        */
    char *gang;               /* its PodGroup's text as we last wrote it; NULL = not known             */
    bool gangless;            /* the cluster has no PodGroups: said, and its pods are made without     */
    bool ungrouped;           /* its PodGroup is gone: it has ended, or is suspended                   */
    char *workload;           /* what its Workload was last written for; NULL = by us it was not       */
    char *unqueued;           /* why its Workload cannot be made; NULL = it can                        */
} job_notes_t;

/*  An entry of the store of jobs: what decides, and what we must remember of it from one version to the next. */
struct job {
    kube_meta_t meta; /* the strings are own's          */
    void *own;        /* as its front end keeps it      */
    kind_t *kind;
    /*  The whole object as it came, for templates; NULL = not kept. In a list of those that are, newest first. */
    char *text;
    size_t text_size;
    job_t *newer, *older;
    job_notes_t notes;
    bool told; /* that spec counts, and not the HTTP API */
};
static inline front_job_t job_info(const job_t *job);

typedef struct {
    const char *namespace_, *only_job, *manifest, *own_pod;
    const front_t *const *fronts; /* whose jobs are looked after */
    size_t front_count;
    void (*changed)(void *ctx, const kind_t *kind, const char *namespace_, const char *job); /* something of that job */
    void (*synced)(void *ctx); /* everything is in, or a kind more is  */
    void *ctx;
} cache_opts_t;

enum { POD_BY_JOB, POD_BY_IP }; /* job's uid; address */
enum { SERVICE_BY_JOB };        /* job's uid          */
enum { WATCH_PODS, WATCH_SERVICES, SHAPE_WATCHES };

/*  Pods and services that are found by the same labels. */
typedef struct {
    kube_store_t *pods, *services;
    kube_reflector_t *watches[SHAPE_WATCHES];
} shape_t;

/*  A kind of jobs, and all that is known of it. */
struct kind {
    const front_t *front;
    cache_t *cache;
    char api_version[96], path[128]; /* "GROUP/VERSION"; "/apis/GROUP/VERSION"                     */
    kube_store_t *jobs;
    kube_reflector_t *watch; /* of jobs; NULL = there is one, from a file                  */
    shape_t shapes[FRONT_SHAPES];
    size_t shape_count;
    kube_recorder_t *recorder;
    bool missing; /* the cluster does not have it, or does not let us see it */
};

struct cache {
    cache_opts_t opts;
    kube_client_t *client;
    kind_t *kinds; /* in the order of the table */
    size_t kind_count;
    job_t *newest, *oldest; /* those with a text */
    size_t texts;           /* bytes of them     */
    char own_end;           /* how our own coordinator ended: 's' 'f', 0 = it runs                  */
    void *own;              /* embedded.c: our pod as it will be; its strings are the store's, for one view */
};

static inline front_job_t job_info(const job_t *job)
{
    return job->kind->front->job(job->own);
}

/*  Begins to list and watch. Borrows client; strings of opts are borrowed for good. */
tt_status_t cache_new(cache_t **self_p, kube_client_t *client, const cache_opts_t *opts);
void cache_destroy(cache_t **self_p);
/*  Of every kind that the cluster has, and it has one. */
bool cache_synced(const cache_t *self);
/*  Of this kind. */
bool cache_kind_synced(const kind_t *self);
kind_t *cache_kind(const cache_t *self, const front_t *front);
/*  By front_t.name; NULL. */
kind_t *cache_kind_named(const cache_t *self, const char *name, size_t size);
job_t *cache_job(const kind_t *self, const char *namespace_, const char *name);
job_t *cache_job_by_uid(const kind_t *self, const char *uid);
/*  A pod, a service by its name, of any shape; NULL. Borrowed. */
const void *cache_pod(const kind_t *self, const char *namespace_, const char *name);
const void *cache_service(const kind_t *self, const char *namespace_, const char *name);
/*  Of all kinds. */
typedef struct {
    size_t jobs, pods, services;
} cache_counts_t;
cache_counts_t cache_count(const cache_t *self);
/*  Is one of the job's pods at this address? That of a pod whose containers have ended may be another's by now. */
bool cache_is_at(const kind_t *self, const char *job_uid, const char *ip);
/*  Pods of a job, in the order of their making. Returns how many; *out is the caller's, what it points to is the store's. */
size_t cache_pods(const kind_t *self, const char *job_uid, const void ***out);
size_t cache_services(const kind_t *self, const char *job_uid, const void ***out);
/*  What an event is about. */
kube_ref_t cache_ref(const kind_t *self, const char *namespace_, const char *job, const char *uid, uint64_t version);
/*  The templates are not needed for now. */
void cache_forget_text(job_t *job);
/*  From now on they are those of this reign. */
void cache_forget_notes(job_t *job, uint64_t reign);

/* ---- in a coordinator: embedded.c ------------------------------------------------------------------------------------------ */

/*  The pod that we are in; NULL: none, or not labelled as a coordinator of the job. */
const void *cache_own(const cache_t *self);
/*  What its entry among these pods is to be seen as. There is room for one more. */
void cache_see_own(const kind_t *kind, const void **pods, size_t *count);
/*  The job of opts.manifest comes into the store, once the pods are known; its status is kept there. */
tt_status_t cache_take_manifest(cache_t *self);
tt_status_t cache_keep_status(const job_t *job, const char *status);

/* ---- writes: writes.c -------------------------------------------------------------------------------------------------------- */

typedef struct writes writes_t;

/*  What is written: one of these, or one of front_t.objects. */
extern const front_object_t writes_pod, writes_service;

/*  How long a write may wait for its turn and its answer: a thousand jobs may come at once to a slow server. */
enum { WRITES_TURN_MS = 120000 };
/*  More than whoever answers the replicas API waits for what the answer stands for: who hears 503 asks again, and would get it
 *  twice. */
enum { API_ANSWER_MS = 600000 };

/*  One write and what came of it. */
typedef struct {
    const front_object_t *what;
    bool deletes;
    char *name;
    char uid[37]; /* of what is deleted */
    uint64_t version;
    kube_store_t *store; /* that it belongs into; NULL = none is kept                     */
    int code;            /* last answer; 0 = none                                            */
    tt_status_t status;  /* TT_OK: it is as we want it. TT_INVALID: refused by the API server */
    char *text, *reason;
    int group; /* of a pod that is made for a plan */
    writes_t *batch;
} writes_one_t;

/*  Several writes for a job, all under way at once; each answer goes into the stores and becomes an event of the job. */
struct writes {
    operator_t *op;
    const kind_t *kind;
    char *namespace_, *job, job_uid[37];
    uint64_t job_version;
    writes_one_t **writes;
    size_t count, pending;
    bool lead; /* only while we do, from when it is set: what waits when that ends is not sent, and TT_AGAIN */
    void (*done)(void *ctx, writes_t *batch);
    void *ctx;
    writes_t *next, **link; /* the operator's list: what is still under way when it ends */
};

/*  done is called once, when all writes are answered and never from within a call; then destroy it. Not called for one
 *  without writes. */
writes_t *writes_new(operator_t *op, const job_t *job, void (*done)(void *ctx, writes_t *batch), void *ctx);
void writes_destroy(writes_t **self_p);
/*  object is borrowed. */
writes_one_t *writes_create(writes_t *self, const front_object_t *what, const json_t *object);
/*  grace_s: -1 = the pod's own. A meta without a uid: whatever has that name. */
writes_one_t *writes_delete(writes_t *self, const front_object_t *what, const kube_meta_t *meta, int grace_s);

/* ---- what templates are needed: fetch.c -------------------------------------------------------------------------------------- */

/*  FRONT_NEEDS_*, and beside them: */
enum { FETCH_GPUS = 4 };
typedef struct fetch fetch_t;
typedef struct {
    json_t *job;    /* the whole object                              */
    json_t *config; /* of front_t.config; NULL = there is none       */
    int *gpus;      /* of each node                                  */
    size_t gpu_count;
} fetched_t;

/*  done is called once, perhaps from within this call: TT_OK, TT_NOT_FOUND (the job is gone), TT_UNAVAILABLE. What it gets
 *  is borrowed for the call. The fetch is freed after it; one that is dropped calls nothing. */
void fetch_begin(operator_t *op, const kind_t *kind, const char *namespace_, const char *job, int what,
    void (*done)(void *ctx, tt_status_t status, const fetched_t *fetched), void *ctx);
void fetch_drop_all(operator_t *op);

/* ---- an object that a job owns beside pods, of a group that the cluster may not have: errand.c ------------------------------- */

/*  TT_OK: go on, from a new look. TT_UNAVAILABLE: not now. made: what was to be found out, borrowed; NULL = nothing. What it means
 *  for the job is noted in it, and told as an event. */
typedef void (*errand_fn)(void *ctx, tt_status_t status, const json_t *made);
typedef struct errand errand_t;

/*  What an answer means for the job, which is there. */
typedef struct {
    const char *word; /* "podgroup" */
    tt_status_t (*applied)(errand_t *self, job_t *job, const kube_reply_t *reply);
    void (*gone)(errand_t *self, job_t *job);
} errand_way_t;

struct errand {
    operator_t *op;
    kind_t *kind;
    const errand_way_t *way;
    char *path, *namespace_, *job, job_uid[37];
    char *text, *of; /* as it is written, and what of, if the way says so; the way may take them */
    json_t *found, *made;
    uint64_t job_version, request;
    errand_fn done;
    void *ctx;
};

/*  Of the object at path. done is called once, after which the errand is no more; not from within a call of errand_apply and
 *  errand_remove. */
errand_t *errand_new(
    operator_t *op, const job_t *job, const errand_way_t *way, const char *path, errand_fn done, void *ctx);
/*  Make it, or change it. */
void errand_apply(errand_t *self, const char *text);
/*  If it is this job's. */
void errand_remove(errand_t *self);
/*  Another request of it; while we lead. */
void errand_send(errand_t *self, kube_request_t request, const char *path, kube_done_fn done);
/*  NULL: it is gone. */
job_t *errand_job(const errand_t *self);
bool errand_well(const kube_reply_t *reply);
/*  A warning, to the log and as an event: "<does>: <words>", or "<verb> <word>: <words>". */
void errand_tell(const errand_t *self, const char *reason, const char *does, const char *words);
void errand_tell_of(const errand_t *self, const char *reason, const char *verb, const char *words);
void errand_tell_made(const errand_t *self, const char *name);
void errand_end(errand_t *self, tt_status_t status);
/*  No call comes any more. NULL is fine. */
void errand_drop(errand_t *self);

/* ---- its PodGroup: gang.c -------------------------------------------------------------------------------------------------- */

/*  Is a pod of the job that is made now one of a group? One that was begun without goes on without. */
bool gang_groups(const operator_t *op, const job_t *job);
/*  What is to be done about the PodGroup before pods are made; text: that to be written, the caller's. NULL: it is as it should
 *  be, or there is none. */
char *gang_due(const operator_t *op, const job_t *job, const json_t *whole);
errand_t *gang_write(operator_t *op, const job_t *job, const char *text, errand_fn done, void *ctx);
/*  Is it to go? */
bool gang_over(const operator_t *op, const job_t *job);
errand_t *gang_remove(operator_t *op, const job_t *job, errand_fn done, void *ctx);

/* ---- its place in a queue: admission.c --------------------------------------------------------------------------------------- */

typedef struct admission admission_t;

/*  Begins to list and watch Workloads. */
tt_status_t admission_new(admission_t **self_p, operator_t *op);
void admission_destroy(admission_t **self_p);
/*  What a plan is to know of it; borrowed till the Workload changes. False: nothing is known yet, and nothing is to be done about
 *  the job. */
bool admission_see(front_admission_t *out, const operator_t *op, const job_t *job);
/*  Is it to have no pods, as it is not admitted? */
bool admission_waits(const operator_t *op, const job_t *job);
/*  Is its Workload to be written, told of something, or to go? Then do it: *out is the errand, before done is called, which may be
 *  from within this call. */
bool admission_due(const operator_t *op, const job_t *job);
void admission_do(errand_t **out, operator_t *op, const job_t *job, errand_fn done, void *ctx);
/*  Find out what the pods of an admitted job get: kueue_updates. */
errand_t *admission_updates(operator_t *op, const job_t *job, errand_fn done, void *ctx);

/* ---- one job at a time: round.c ------------------------------------------------------------------------------------------- */

/*  Look, plan, do: the queue's work on a key "kind/namespace/name". Ends with tt_queue_done. */
void round_begin(void *ctx, const char *key);
/*  What is under way when the operator ends. */
void round_drop_all(operator_t *op);
enum { ROUND_KEY = 384 };
/*  "dijob/namespace/name" */
void round_key(char out[ROUND_KEY], const kind_t *kind, const char *namespace_, const char *job);
/*  One of that job when its turn comes; ctx: the operator. */
void round_soon(void *ctx, const kind_t *kind, const char *namespace_, const char *job);

/* ---- HTTP: backend.c, probes.c --------------------------------------------------------------------------------------------- */

/*  ctx: an operator_port_t. */
void backend_request(void *ctx, const tt_server_request_t *request);
void backend_drop_all(operator_t *op);
/*  Requests that wait until their caller's address is known. */
size_t backend_waiting(const operator_t *op);
void probes_request(void *ctx, const tt_server_request_t *request);

/* ---- the operator ------------------------------------------------------------------------------------------------------------ */

typedef struct round round_t;
typedef struct task task_t;
typedef struct asked asked_t;

enum { CODES = 24 };
typedef struct {
    int code;
    uint64_t count;
} operator_code_t;
/*  How jobs ended: "succeeded", "failed"; status.reason. */
typedef struct {
    const char *kind; /* front_t.name */
    char result[12], reason[48];
    uint64_t count;
} operator_end_t;
typedef struct {
    uint64_t rounds, failures;
    uint64_t expired;                               /* jobs deleted as their time was over */
    operator_end_t ends[CODES];                     /* the last takes what has no place    */
    operator_code_t requests[CODES], served[CODES]; /* the last takes what has no place */
} operator_counters_t;

typedef struct {
    operator_t *op;
    tt_server_t *server;
    uint64_t timer;
} operator_port_t;

struct operator_ {
    operator_opts_t opts;
    kube_config_t *config;
    tt_reactor_t *loop;
    kube_client_t *client;
    tt_queue_t *queue;
    kube_lease_t *lease;                   /* NULL: no election */
    uint64_t reign;                        /* how often we came to lead by it */
    const front_t *fronts[FRONT_ENDS_MAX]; /* whose jobs are looked after */
    size_t front_count;
    const gang_t *gang;   /* NULL = pods are placed one by one */
    json_t *accelerators; /* accelerators.h; NULL = none */
    bool queues;
    admission_t *admission; /* NULL = a job has its pods at once */
    cache_t *cache;
    operator_port_t api, probes;
    char *holder;
    const char *server_url;
    uint64_t random;
    double started_s;              /* Unix time at which the process was started   */
    int64_t started_ms, end_by_ms; /* end_by_ms: 0 = our own coordinator runs */
    int64_t stop_by_ms;            /* 0 = nobody asked us to stop             */
    writes_t *batches;
    round_t *rounds;
    fetch_t *fetches;
    task_t *tasks;  /* HTTP requests under way */
    asked_t *asked; /* those whose caller is not known yet */
    operator_counters_t counters;
    int writing; /* pods and services being written */
    bool busy;   /* too many of them                */
    uint64_t tidied_rounds;
    int64_t tidied_ms;
    atomic_bool stop;
    atomic_int ended; /* 's', 'f' */
};

/*  For names. */
uint64_t operator_random(operator_t *self);
void operator_count(operator_t *self, int code);
void operator_count_served(operator_t *self, int code);
/*  The status that was written about a job that had not ended: one that ends it counts. */
void operator_count_end(operator_t *self, const front_t *front, const char *status);
/*  Unix time. */
int64_t operator_now_s(const operator_t *self);
/*  May we write about jobs by ourselves? */
bool operator_leads(const operator_t *self);
/*  The same as a request's `may`. */
bool operator_may(const void *ctx);
/*  One write more (1) or less (-1) is under way. With many of them no round begins: what waits in the queue is a name, what
 *  waits in the client is a pod's whole JSON. */
void operator_writing(operator_t *self, int change);
