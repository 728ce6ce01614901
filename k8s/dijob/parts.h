/*  parts - what the files of this folder share; nobody else includes it.
 *
 *  Getters on JSON from outside: a member that is missing or of another type reads as "not there". Results are borrowed
 *  from the tree. Objects we write never hold a reference into the job: what is kept of a template is a deep copy. */
#pragma once
#include "k8s/dijob/build.h"
#include "k8s/front/front.h"
#include "k8s/front/object.h"

enum { PORT_MASTER = 10314, PORT_TASK = 22270 };
#define MAIN_CONTAINER "di-container"
#define MAIN_PORT      "di-port"
#define GPU_KEY        "nvidia.com/gpu"

/*  The main container of a pod spec: di-container, or named as the role (a ddp learner: "learner" too) or the task,
 *  else the only one; NULL. */
json_t *parts_main(const json_t *spec, dijob_role_t role, const char *task);
/*  Its name is di-container: only that one gets ports added. */
int parts_port(const json_t *spec, dijob_role_t role, const char *task);
/*  The most nvidia.com/gpu of limits and requests over the containers; 0 = none. */
int parts_gpus(const json_t *spec);

/*  Owner reference of what the job is made of. */
json_t *parts_owner(const json_t *job, bool block);
/*  service.c: the same from the entry. */
json_t *parts_owner_of_job(const dijob_t *job, bool block);
bool parts_is_tutti(const json_t *job);

/*  curve.c: mount the job's secret into every container of a pod (docs/internals/pods.md). */
void parts_mount_curve(json_t *pod, const json_t *job, bool old);
/*  ddp.c: the learner's part of a split over GPUs: env, ports, labels. */
void parts_ddp(json_t *pod, const dijob_pod_want_t *want);
/*  aggregator.c: a new template where the job has none of its own; NULL with words when it cannot be made. */
tt_status_t parts_aggregator(json_t **out, const json_t *job, const json_t *agconfig);
/*  task.c: a pod of the tasks' shape. */
tt_status_t parts_task_pod(json_t **out, const json_t *job, const dijob_pod_want_t *want);
/*  The same on one machine: front_local_t.settle. */
tt_status_t parts_task_settle(
    const front_machine_t *machine, json_t *spec, const dijob_pod_want_t *want, front_spot_t *spot);
/*  What tells a replacement: annotations tutti/replaces, tutti/backoff and tutti/failures. */
void parts_replaces(json_t *pod, const dijob_pod_want_t *want);
/*  Add volumes of the job that the pod has not got by that name. */
void parts_volumes(json_t *spec, const json_t *volumes);
