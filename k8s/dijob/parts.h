/*  parts - what the files of this folder share; nobody else includes it.
 *
 *  Getters on JSON from outside: a member that is missing or of another type reads as "not there". Results are borrowed
 *  from the tree. Objects we write never hold a reference into the job: what is kept of a template is a deep copy. */
#pragma once
#include "k8s/dijob/build.h"

enum { PORT_MASTER = 10314, PORT_TASK = 22270, NAME_MAX_CHARS = 253, PARTS_WORDS = 257 };
#define MAIN_CONTAINER "di-container"
#define MAIN_PORT      "di-port"
#define GPU_KEY        "nvidia.com/gpu"

/*  A string member; `otherwise` (may be NULL) where there is none. */
const char *parts_text(const json_t *object, const char *key, const char *otherwise);
/*  A member that is an object / array; NULL otherwise. */
json_t *parts_object(const json_t *object, const char *key);
json_t *parts_array(const json_t *object, const char *key);
/*  An integer member within min..max; false where it is absent or null (*out stays), *bad = true where it is anything else. */
bool parts_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out, bool *bad);
/*  spec.containers[i].name ... : the object of an array whose `key` is `value`; NULL. */
json_t *parts_named(const json_t *array, const char *key, const char *value);
/*  "2026-11-21T10:00:00Z" as Unix time; 0 = not one. */
int64_t parts_time(const char *text);
/*  metadata -> meta. TT_DATA: no name, or something of a wrong type or size. */
tt_status_t parts_meta(kube_meta_t *meta, const json_t *metadata);
void parts_meta_clear(kube_meta_t *meta);
/*  The owner reference with controller: true; NULL. */
json_t *parts_controller(const json_t *metadata);

/*  The main container of a pod spec: di-container, or named as the role (a ddp learner: "learner" too) or the task,
 *  else the only one; NULL. */
json_t *parts_main(const json_t *spec, dijob_role_t role, const char *task);
/*  Its name is di-container: only that one gets ports added. */
int parts_port(const json_t *spec, dijob_role_t role, const char *task);
/*  The most nvidia.com/gpu of limits and requests over the containers; 0 = none. */
int parts_gpus(const json_t *spec);

/*  Owner reference of what the job is made of. */
json_t *parts_owner(const json_t *job, bool block);
/*  metadata.name etc. of a job's JSON, never NULL ("" / "default"). */
const char *parts_job_name(const json_t *job);
const char *parts_job_namespace(const json_t *job);
bool parts_is_tutti(const json_t *job);

/*  trouble.c: why a pod does not run, or failed; both empty where it is well. main_status: of containerStatuses; may be NULL. */
typedef struct {
    char why[48], words[PARTS_WORDS];
} parts_trouble_t;
void parts_trouble(parts_trouble_t *self, const json_t *status, const json_t *main_status);
/*  Of each container the end of its log is to stand in its status when it fails, unless the template says otherwise. */
void parts_last_words(json_t *containers);

/*  curve.c: mount the job's secret into every container of a pod (docs/internals/pods.md). */
void parts_mount_curve(json_t *spec, const char *job);
/*  ddp.c: the learner's part of a split over GPUs: env, ports, labels. */
void parts_ddp(json_t *pod, const dijob_pod_want_t *want);
/*  labels.c: app.kubernetes.io/name, instance (the job), component (role or task; "" = none), part-of and managed-by. */
void parts_recommend(json_t *labels, const char *job, const char *component);
/*  env.c: add NAME=value to every container and init container; one that is there already is replaced. */
void parts_env(json_t *spec, const char *name, const char *value);
void parts_env_int(json_t *spec, const char *name, int64_t value);
/*  aggregator.c: a new template where the job has none of its own; NULL with words when it cannot be made. */
tt_status_t parts_aggregator(json_t **out, const json_t *job, const json_t *agconfig);
/*  task.c: a pod of the tasks' shape. */
tt_status_t parts_task_pod(json_t **out, const json_t *job, const dijob_pod_want_t *want);
/*  pod.c: metadata and spec from a template, nothing of a role yet. Labels and annotations only are taken of its metadata. */
json_t *parts_pod_from(const json_t *job, const json_t *template_, const char *name);
void parts_label(json_t *pod, const char *key, const char *value);
json_t *parts_labels(json_t *pod);
void parts_annotate(json_t *pod, const char *key, const char *value);
void parts_annotate_int(json_t *pod, const char *key, int64_t value);
/*  What tells a replacement: annotations tutti/replaces and tutti/backoff. */
void parts_replaces(json_t *pod, const dijob_pod_want_t *want);
/*  Add volumes of the job that the pod has not got by that name. */
void parts_volumes(json_t *spec, const json_t *volumes);
/*  A port of a container, unless it has one of that name. */
void parts_add_port(json_t *container, const char *name, int port);
