/*  kueue - the Workload of a job: by it Kueue keeps the job in a queue until there is room for all of it.
 *
 *  kueue.x-k8s.io/v1beta2 (kubernetes-sigs/kueue, apis/kueue/v1beta2). We make it, with a set of pods for each group of the job; Kueue
 *  says in its status whether the job may have them, on which nodes, and when they are to go. Which jobs have one says the table of
 *  kinds (front.h: pod_template). Everything read is from outside. Pure. */
#pragma once
#include "k8s/front/front.h"

#define KUEUE_GROUP "kueue.x-k8s.io"
#define KUEUE_API   "kueue.x-k8s.io/v1beta2"
#define KUEUE_PATH  "/apis/" KUEUE_API
#define KUEUE_LABEL "kueue.x-k8s.io/queue-name" /* on the job: its queue */

/*  "kueue": *out = true; "none" and NULL: false. TT_INVALID: no such one. */
tt_status_t kueue_pick(bool *out, const char *name);

/* ---- making ------------------------------------------------------------------------------------------------------------- */

/*  "dijob-NAME-4f2a1": another job of the same name has another. Caller frees. */
char *kueue_name(const front_t *front, const void *job);
/*  What has to be fetched before it can be made: FRONT_NEEDS_*. */
int kueue_needs(const front_t *front, const void *job);
/*  Owned by the job. whole: the job's object; config: of front_t.config, NULL = there is none. TT_NOT_FOUND: a group has no template;
 *  TT_INVALID: nothing of the job has to be admitted. */
tt_status_t kueue_make(
    json_t **out, const front_t *front, const void *job, const char *queue, const json_t *whole, const json_t *config);
/*  The same of members that are no front end's: so many of each template, all of them or none. Takes metadata: name, namespace, labels. */
json_t *kueue_of_parts(json_t *metadata, const char *queue, const front_part_t *parts, size_t count);

/*  Who comes first in a queue: the class of the job's label kueue.x-k8s.io/priority-class, else that of the first template that names
 *  one. Where its object is ("/apis/..."), caller frees; NULL: there is none. */
char *kueue_class_path(const json_t *workload, const json_t *whole);
/*  Of that object. TT_DATA: it has no value. */
tt_status_t kueue_rank(json_t *workload, const json_t *class_);

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

enum { KUEUE_SETS_MAX = 64 };

/*  What is kept of one. */
typedef struct {
    kube_meta_t meta;
    char *kind, *job, job_uid[37]; /* of its controller; "" = it has none              */
    bool deleting, inactive;       /* inactive: spec.active is false                   */
    bool reserved, admitted, evicted, finished;
    char *words;           /* why it is not admitted, or was evicted; "" = nobody said */
    front_share_t *shares; /* what it has been admitted for; names are owned           */
    size_t share_count;
} kueue_t;

/*  TT_DATA: not such an object at all. */
tt_status_t kueue_decode(kueue_t **out, const char *json, size_t size);
void kueue_destroy(kueue_t **self_p);
/*  How many of a group were admitted; no limit: INT64_MAX. */
int64_t kueue_share(const front_admission_t *admission, const char *group);
/*  May its job have pods? */
bool kueue_goes(const kueue_t *self);

/* ---- what its owner has to tell Kueue ----------------------------------------------------------------------------------- */

/*  Its pods are gone: the quota is free, and it waits again. Changes the object's status. */
void kueue_release(json_t *workload, int64_t now_s);
/*  The job has ended. */
void kueue_finish(json_t *workload, bool well, const char *words, int64_t now_s);

/* ---- its pods ----------------------------------------------------------------------------------------------------------- */

/*  Names of the ResourceFlavors that it has been admitted with, each once: a new array of texts. */
json_t *kueue_flavors(const json_t *workload);
/*  What its pods get, by the name of their set: from these ResourceFlavors (objects by name) and from admission checks. A new
 *  object. */
json_t *kueue_updates(const json_t *workload, const json_t *flavors);
/*  A pod of this set that is about to be made goes where it was admitted to. */
void kueue_dress(json_t *pod, const json_t *updates, const char *set);
