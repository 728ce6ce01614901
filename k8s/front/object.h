/*  object - reading and making Kubernetes objects: what every front end needs of JSON from outside.
 *
 *  A member that is missing or of another type reads as "not there". Results are borrowed from the tree. Objects we write never
 *  hold a reference into the job: what is kept of a template is a deep copy. Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "k8s/api/store.h"

/*  Before the name of each annotation of ours: PARTS_OWN "restarts". */
#define PARTS_OWN "tutti/"

enum { NAME_MAX_CHARS = 253, PARTS_WORDS = 2049 /* a kubelet takes no more of a log */ };

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

/*  A string member; `otherwise` (may be NULL) where there is none. */
const char *parts_text(const json_t *object, const char *key, const char *otherwise);
/*  A member that is an object / array; NULL otherwise. */
json_t *parts_object(const json_t *object, const char *key);
json_t *parts_array(const json_t *object, const char *key);
/*  An integer member within min..max; false where it is absent or null (*out stays), *bad = true where it is anything else. */
bool parts_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out, bool *bad);
/*  A member that may be added to: `fresh`, which is taken, where there is none; NULL where there is something of another type, of which the API
 *  server will say what is wrong with it. */
json_t *parts_member(json_t *holder, const char *key, json_t *fresh);
/*  spec.containers[i].name ... : the object of an array whose `key` is `value`; NULL. */
json_t *parts_named(const json_t *array, const char *key, const char *value);
/*  "2026-11-21T10:00:00Z" as Unix time; 0 = not one. */
int64_t parts_time(const char *text);
/*  metadata -> meta. TT_DATA: no name, or something of a wrong type or size. */
tt_status_t parts_meta(kube_meta_t *meta, const json_t *metadata);
/*  The owner reference with controller: true; NULL. */
json_t *parts_controller(const json_t *metadata);
/*  metadata.name etc. of a job's JSON, never NULL ("" / "default"). */
const char *parts_job_name(const json_t *job);
const char *parts_job_namespace(const json_t *job);

/* ---- status ------------------------------------------------------------------------------------------------------------- */

/*  Unix time -> "2026-11-21T13:44:31Z". */
json_t *parts_time_text(int64_t unix_s);
/*  NULL = none. Borrowed. */
json_t *parts_condition(const json_t *conditions, const char *type);
/*  True, as the newest, since `since` (a reference that is taken; NULL = now); one of that type that was there goes. */
void parts_condition_on(
    json_t *conditions, const char *type, const char *reason, const char *message, json_t *since, int64_t now_s);
/*  Where it stands, or as the last: its time stays where its status does. Returns it; NULL: there is no list. */
json_t *parts_condition_set(
    json_t *conditions, const char *type, bool on, const char *reason, const char *message, int64_t now_s);
/*  False, if it is not: with the time of it. NULL is fine. */
void parts_condition_off(json_t *condition, int64_t now_s);
/*  Any of that type goes. Was there one? */
bool parts_condition_drop(json_t *conditions, const char *type);
/*  Has a condition this text in a member? NULL: no. */
bool parts_is(const json_t *condition, const char *key, const char *text);

/* ---- what a job owns ---------------------------------------------------------------------------------------------------- */

/*  owned.c: an owner reference of the controller; block: the job goes only when this has gone. */
json_t *parts_owner_of(const char *api_version, const char *kind, const char *name, const char *uid, bool block);
/*  A headless service; all but the names are taken. */
json_t *parts_service(
    const char *namespace_, const char *name, json_t *labels, json_t *owner, json_t *selector, json_t *ports);

/* ---- pods --------------------------------------------------------------------------------------------------------------- */

/*  trouble.c: why a pod does not run, or failed; both empty where it is well. main_status: of containerStatuses; may be NULL. */
typedef struct {
    char why[48], words[PARTS_WORDS];
} parts_trouble_t;
void parts_trouble(parts_trouble_t *self, const json_t *status, const json_t *main_status);
/*  Who of that kind (a Job, a StatefulSet) could make no pod, by an event, and why: a pod that was not made has no status. Both are
 *  borrowed; NULL: it is another event. */
const char *parts_without_pod(const json_t *event, const char *kind, const char **words);
/*  Of each container the end of its log is to stand in its status when it fails, unless the template says otherwise. */
void parts_last_words(json_t *containers);

/*  labels.c: app.kubernetes.io/name (the kind), instance (the job), component (role or task; "" = none), version (Tutti's),
 *  part-of and managed-by. */
void parts_recommend(json_t *labels, const char *kind, const char *job, const char *component);
/*  template.c: metadata and spec from a template, nothing of a role yet. Labels and annotations only are taken of its metadata. */
json_t *parts_pod_from(const json_t *job, const json_t *template_, const char *name);
void parts_label(json_t *pod, const char *key, const char *value);
json_t *parts_labels(json_t *pod);
void parts_annotate(json_t *pod, const char *key, const char *value);
void parts_annotate_int(json_t *pod, const char *key, int64_t value);
/*  A port of a container, unless it has one of that name. */
void parts_add_port(json_t *container, const char *name, int port);
/*  Another number of one that it has. */
void parts_set_port(json_t *container, const char *name, int port);
/*  env.c: NAME=value in one container, or in every container and init container; one that is there already is replaced. */
void parts_env_of(json_t *container, const char *name, const char *value);
void parts_env(json_t *spec, const char *name, const char *value);
void parts_env_int(json_t *spec, const char *name, int64_t value);
