/*  front - what the operator and the local run have to know of a kind of job: a table of functions and constants.
 *
 *  A front end (k8s/dijob, and whoever comes) decodes its jobs and their pods, plans, builds; who looks, fetches, writes and
 *  remembers (k8s/operator, local/) knows none by name. Adding one: a folder that defines a front_t, and its line in
 *  fronts.def (docs/guide/add-a-front-end.md has one from beginning to end).
 *
 *  An entry (a job, a pod, a service as its front end keeps it) is a `void *` here. A job begins with kube_meta_t (store.h), and
 *  what those who know no kind need of it comes by value (front_job_t, its strings borrowed); a pod begins with front_pod_t, a
 *  service with front_service_t (entry.h).
 *
 *  All functions are pure: no I/O, no clock of their own. Threads: an entry belongs to one thread. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "k8s/front/entry.h"
#include "common/config/fields.h"

/* ---- what there is ------------------------------------------------------------------------------------------------------ */

/*  A job. */
typedef struct {
    int64_t generation;
    int phase; /* of front_t.phases                                                               */
    bool deleting;
    bool suspended;      /* it is to have no pods                                                  */
    bool final;          /* it has ended, well or not                                              */
    bool embedded;       /* its own coordinator, or another cluster's operator, looks after it: one leaves it alone */
    const char *refusal; /* why it is not begun; NULL = it may                                     */
    const char *queue;   /* in which it waits for admission (kueue.h); NULL = in none           */
} front_job_t;

/* ---- what is to be done ------------------------------------------------------------------------------------------------- */

/*  The API server refused a pod of this generation of the job: of which group, and in which words. */
typedef struct {
    int group;                  /* the front end's number of a role, a task: front_action_t.group               */
    const char *words, *reason; /* reason: "Invalid", "Forbidden"; NULL = none                                  */
    int64_t until_ms;           /* who looks asks again then; the plan does not read it                         */
} front_refusal_t;

/*  A job of a queue (kueue.h). What is not admitted has no pods. */
typedef struct {
    const char *name; /* of the group: front_group_t.name */
    int64_t count;
} front_share_t;
typedef struct {
    const char *queue; /* NULL = of none: nothing holds it back                                       */
    bool admitted;
    const char *words;           /* why it waits; "" = nobody said                                              */
    const front_share_t *shares; /* admitted: at most so many of a group, and none of a group that is not there */
    size_t share_count;
} front_admission_t;

typedef struct {
    const void *job;
    const void *const *pods; /* of this job's uid, by age                                                  */
    size_t pod_count;
    const void *const *services;
    size_t service_count;
    uint32_t made;    /* bit i: object i is known to have been made, or found (creating again is harmless)  */
    uint32_t removed; /* bit i: object i is known to have been removed, or gone (so is removing again)      */
    int64_t now_s;    /* Unix time                                                                          */
    uint64_t random;  /* for names; the same number, the same names                                         */
    const front_refusal_t *refusals; /* one a group at most: its pods are not asked for, others are          */
    size_t refusal_count;
    front_admission_t admission;
} front_view_t;

typedef enum {
    FRONT_CREATE_POD,
    FRONT_DELETE_POD,
    FRONT_CREATE_SERVICE, /* of pod `name`; NULL = built without one: the job's own, or a place's */
    FRONT_DELETE_SERVICE,
    FRONT_CREATE_OBJECT, /* front_t.objects[object]; no pod is made in the same round: pods mount it */
    FRONT_DELETE_OBJECT,
    FRONT_DELETE_JOB, /* its time after the end is over: the object, and with it all that it owns */
    FRONT_EVENT
} front_do_t;

/*  What has to be fetched before an action can be built. */
enum {
    FRONT_NEEDS_JOB = 1,   /* the whole object, with its templates                              */
    FRONT_NEEDS_CONFIG = 2 /* and an object of front_t.config; where it cannot be read, only the others are made */
};

typedef struct {
    front_do_t what;
    const char *name; /* of the pod, service or object                                                */
    int group;        /* CREATE_POD: whose refusal it would be                                        */
    const char *who;  /* CREATE_POD: front_group_t.name of whom it is one; of kinds with pod_template */
    int needs;        /* CREATE_*: FRONT_NEEDS_*                                                      */
    int object;       /* *_OBJECT: index into front_t.objects                                         */
    int grace_s;      /* DELETE_POD: -1 = the pod's own                                               */
    const char *type, *reason, *message; /* EVENT: "Normal" or "Warning", "DIJobCreated", ...         */
    const void *own;                     /* the front end's: what its build reads, one block of memory */
} front_action_t;

/*  Owned by who asked for it (front_plan_clear); made by draft.h. */
typedef struct {
    front_action_t *actions; /* in the order of importance                                            */
    size_t count;
    const char *status; /* the whole new status object, JSON as kube_dump; NULL = as it is            */
    int64_t again_s;    /* look again after so many seconds though nothing changed; -1 = no           */
} front_plan_t;

/*  Actions with their names, messages and own, and the status. An empty plan afterwards. */
void front_plan_clear(front_plan_t *self);

/*  What an action is built of. */
typedef struct {
    const void *job;            /* the entry                                                                         */
    const json_t *whole;        /* the object; NULL unless FRONT_NEEDS_JOB                                           */
    const json_t *config;       /* FRONT_NEEDS_CONFIG: the object of front_t.config; NULL = there is none            */
    const void *pod;            /* CREATE_SERVICE of a pod: that one                                                 */
    const char *server_url;     /* of the replicas API                                                              */
    const json_t *accelerators; /* accelerators.h; NULL = nothing is said of any                                 */
} front_parts_t;

/* ---- a kind ------------------------------------------------------------------------------------------------------------- */

enum { FRONT_SHAPES = 2, FRONT_OBJECTS = 4, FRONT_PHASES = 32 };

/*  By which labels pods and services are found. No selector says "this label or that one": a kind whose pods have none in
 *  common has two shapes, and no pod may be in both. */
typedef struct {
    const char *selector;  /* "controller-name=di-operator,!diengine/operator"                                  */
    const char *job_label; /* names the job                                                                     */
    const char *own_label; /* what is made with this label belongs to this shape                                */
    const char *prefix;    /* metrics: "<prefix>pods", "<prefix>services"                                       */
} front_shape_t;

/*  An object that a job has at most one of, besides pods and services. */
typedef struct {
    const char *api, *resource; /* "/api/v1", "secrets"                                                         */
    const char *word;           /* for a person: "secret"                                                       */
    bool secret;                /* nothing of it is to stay in memory, or to come back from the API server      */
} front_object_t;

/*  How a status says that the job ended. */
typedef struct {
    bool ended, well;
    const char *reason; /* one word, of the status; NULL = none */
} front_end_t;

/*  A template of a job. */
typedef struct {
    const char *path;     /* "spec.coordinator", "spec.tasks[1]": where what holds it stands in the object       */
    const char *who;      /* for a person: "coordinator"                                                          */
    const json_t *holder; /* what has a member `template`; NULL = there is none                                   */
} front_template_t;
typedef tt_status_t (*front_template_fn)(void *ctx, const front_template_t *template_);

/*  Replicas that count together. */
typedef struct {
    const char *name; /* as `tutti scale` takes it                                */
    int64_t min;      /* so many at least have to be placed together (gang.h)    */
    int64_t wanted;   /* that the spec asks for (kueue.h); 0 where nobody says how many; of kinds with pod_template */
    int64_t desired;  /* -1 = as many as there are                                */
    bool asked;       /* shown though there is none                               */
    int needs;        /* FRONT_NEEDS_* of its pod_template                          */
} front_group_t;

/* ---- on one machine (local/) ------------------------------------------------------------------------------------------ */

/*  A pod as a person is shown it. "Main": of the container that counts. */
typedef struct {
    const char *group; /* front_group_t.name; "" = none                            */
    const char *phase; /* "Pending", "Running", "Succeeded", "Failed", "Unknown"   */
    bool failed;       /* phase Failed                                             */
    bool main_waits;   /* to be started again                                      */
    bool main_failed;  /* its container has ended, and not well                    */
    int exit_code;     /* main: -1 = it has not ended                              */
    int last_exit;     /* the same, or that with which it waits                    */
    bool ready, alive; /* alive: not going, not ended                              */
    bool tells;        /* how it ends is how the job ends                          */
    bool again;        /* ended so that another comes, where the job allows one: else that tells, too */
    bool leads;        /* the job is nothing without it: it cannot be started here, nor can the job */
} front_seen_t;

/*  What settle knows of this machine, and asks it for. Each pod has an address of its own; ports are for all of them. */
typedef struct {
    const void *job;     /* the entry                                                                */
    const json_t *whole; /* the object                                                               */
    const char *namespace_;
    bool names; /* pods find each other by names, as a cluster's DNS has them; else by addresses alone */
    /*  That of number n. A kind that leaves the choice to others for some of its pods uses number 0 alone. */
    void (*address)(void *ctx, unsigned n, char ip[16]);
    /*  The first of so many in a row that are free; 0: there are none, with words. */
    uint16_t (*ports)(void *ctx, unsigned count);
    /*  One that is kept under a key for the whole run. 0: as above. */
    uint16_t (*port)(void *ctx, const char *key);
    void *ctx;
} front_machine_t;

/*  Where a pod is to be. */
typedef struct {
    char ip[16];   /* "" = whatever is free */
    uint16_t port; /* of its main container */
} front_spot_t;

typedef struct {
    const tt_fields_type_t *fields; /* what its objects may hold (fields.h); NULL = nothing is said about them */
    const char *const *used;        /* members of spec that mean something here; NULL at the end                   */
    const char *policy;             /* member of spec that has ttlSecondsAfterFinished and suspend as well; NULL   */
    const char *config_kind;        /* kind of the objects of front_t.config; NULL                                 */
    bool (*runs_tutti)(
        const void *job); /* a container without a command, or with `tutti`, is this program; NULL = no */
    front_seen_t (*seen)(const void *pod);
    /*  Change the number of replicas of a group in the job's whole object; NULL = none can. TT_NOT_FOUND: no such group. */
    tt_status_t (*scale)(json_t *job, const char *group, int64_t replicas);
    /*  Say in a pod that was built where it and the others are, for who has to be told more than names that lead somewhere. `spot` has
     *  the first port that a container names, and no address. NULL = nobody has to. TT_UNAVAILABLE: no port is free. */
    tt_status_t (*settle)(
        const front_machine_t *machine, json_t *pod, const front_action_t *action, front_spot_t *spot);
} front_local_t;

/*  Pods that are no front end's: so many of a template (a pod's metadata and spec). */
typedef struct {
    const char *name; /* of their set, in a queue */
    json_t *template_;
    int64_t count;
} front_part_t;

/* ---- a kind, the whole of it --------------------------------------------------------------------------------------------- */

typedef struct front front_t;
struct front {
    const char *name;            /* "dijob": first part of a key, label `kind` of metrics                           */
    const char *kind;            /* "DIJob"                                                                         */
    const char *group, *version; /* version: in which jobs are read and written                                    */
    const char *also[3];         /* other versions that its CRD serves, up to the first NULL                        */
    const char *plural;          /* "dijobs"                                                                        */
    const char *old_api, *old_kind; /* what it was called once, "tensorflow.org/v1alpha1", "TfJob": read without a
                                       cluster; NULL                                                                */
    bool accelerators;    /* its containers get what a resource comes with (accelerators.h), where somebody says so */
    const char *manager;  /* fieldManager of what is written                                                */
    const char *reporter; /* source of events                                                                */
    const char *config;   /* plural of a resource of the group, one of which says how pods are made, in the
                                     job's namespace or else in the operator's; NULL = none                          */
    front_shape_t shapes[FRONT_SHAPES]; /* those with a selector                                                    */
    front_object_t objects[FRONT_OBJECTS]; /* those with a resource                                                 */
    const char *const *phases;             /* names, "" = was not looked at yet; NULL at the end */

    /*  From the object's JSON. TT_DATA: not such an object at all. Pods: without what entry_pod_drop names. Services: from
     *  PartialObjectMetadata. Both are freed by tt_pool_free. */
    tt_status_t (*job_decode)(void **out, const char *json, size_t size);
    void (*job_destroy)(void *job);
    front_job_t (*job)(const void *job);
    tt_status_t (*pod_decode)(void **out, const char *json, size_t size);
    tt_status_t (*service_decode)(void **out, const char *json, size_t size);
    /*  `out` needs no preparation and is to be cleared, whatever comes back. */
    tt_status_t (*plan)(front_plan_t *out, const front_view_t *view);
    /*  The object of a CREATE_*: a new reference. TT_INVALID, TT_NOT_FOUND (no template): it cannot be built. */
    tt_status_t (*build)(json_t **out, const front_action_t *action, const front_parts_t *parts);
    /*  Of a status that the plan has written. */
    front_end_t (*end)(const json_t *status);
    /*  Of the whole object: fn for each template, until it fails; in the order in which a person reads them. `who` is a group's name. */
    tt_status_t (*templates)(const json_t *job, front_template_fn fn, void *ctx);
    /*  Group number i. False: there are no more. */
    bool (*group_at)(const void *job, size_t i, front_group_t *out);
    /*  The object's member with minAvailable, minResources, queue, priorityClass and scheduleTimeoutSeconds (gang.h), NULL where
     *  it has none; NULL = the kind has no such member. */
    const json_t *(*scheduling)(const json_t *job);
    /*  The pod template, for accounting, of group i of the whole object: a new reference. NULL = jobs of the kind have no queue
     *  here (of TFJobs Kueue itself makes the Workload). TT_NOT_FOUND, TT_INVALID: there is none. */
    tt_status_t (*pod_template)(json_t **out, const json_t *job, const json_t *config, size_t i);
    const front_local_t *local; /* NULL = not without a cluster */
};

/*  A function of a kind that decodes to its own type, as one of the table. */
#define FRONT_DECODE(name, type, decode)                               \
    static tt_status_t name(void **out, const char *json, size_t size) \
    {                                                                  \
        type *entry = NULL;                                            \
        TT_TRY(decode(&entry, json, size));                            \
        *out = entry;                                                  \
        return TT_OK;                                                  \
    }

/*  The kinds that there are. */
#define FRONT(name) extern const front_t name##_front;
#include "k8s/front/fronts.def"
#undef FRONT
extern const front_t *const front_ends[];
extern const size_t front_end_count;

/*  Those of the names in a list with commas ("tfjob", in any case), the first of the table before them; no list: that one alone. `out` has
 *  FRONT_ENDS_MAX places. TT_INVALID: a name that none has. */
enum { FRONT_ENDS_MAX = 8 };
tt_status_t front_pick(const char *names, const front_t **out, size_t *count);
/*  The front end of an object by its apiVersion (any version of the group) and kind; NULL. */
const front_t *front_of(const json_t *object);
size_t front_shape_count(const front_t *self);
