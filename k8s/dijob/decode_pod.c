/*  decode_pod - pods and services as the API server tells of them -> what decides. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"

enum { LABEL_ROOM = 64 };

/*  Name of the job that the labels tell of; NULL. */
static const char *s_job(const json_t *labels)
{
    const char *job = parts_text(labels, "dijob-name", NULL);
    return job ? job : parts_text(labels, "diengine/job", NULL);
}

/*  A main container that fails is over only if the kubelet will not start it again. */
static dijob_main_t s_terminated(const dijob_pod_t *self, const json_t *spec)
{
    const char *policy = parts_text(spec, "restartPolicy", "Always");
    if (self->exit_code == 0)
        return MAIN_COMPLETED;
    return strcmp(policy, "Never") == 0 || self->phase == POD_FAILED ? MAIN_ERROR : MAIN_WAITING;
}

static uint8_t s_main(const dijob_pod_t *self, const json_t *spec, const json_t *state)
{
    if (self->exit_code >= 0)
        return (uint8_t)s_terminated(self, spec);
    return json_object_get(state, "running") ? MAIN_RUNNING : state ? MAIN_WAITING : MAIN_NONE;
}

static void s_containers(dijob_pod_t *self, const json_t *spec, const json_t *status, parts_trouble_t *trouble)
{
    const json_t *statuses = json_object_get(status, "containerStatuses");
    const json_t *main_ = parts_main(spec, (dijob_role_t)self->role, self->owner_pod);
    const json_t *main_status = parts_named(statuses, "name", parts_text(main_, "name", NULL));
    const size_t count = json_array_size(json_object_get(spec, "containers"));
    size_t i;
    json_t *item;
    self->containers = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    json_array_foreach(statuses, i, item)
    {
        const json_t *state = json_object_get(item, "state");
        const char *why = parts_text(json_object_get(state, "waiting"), "reason", "");
        if (self->ready_containers < UINT16_MAX && json_is_true(json_object_get(item, "ready")))
            self->ready_containers++;
        self->stuck |= strcmp(why, "CrashLoopBackOff") == 0 || json_object_get(state, "terminated");
    }
    entry_pod_main(&self->as_pod, status, main_status, trouble);
    self->main = s_main(self, spec, json_object_get(main_status, "state"));
    const json_int_t restarts = json_integer_value(json_object_get(main_status, "restartCount"));
    self->own_restarts = (uint16_t)(restarts <= 0 ? 0 : restarts < UINT16_MAX ? restarts : UINT16_MAX);
}

/*  Who makes no conditions (an old kubelet, a test) still says it of the containers. */
static void s_ready(dijob_pod_t *self, const json_t *status)
{
    if (!parts_condition(json_object_get(status, "conditions"), "Ready"))
        self->ready = self->phase == POD_RUNNING && self->containers > 0 && self->ready_containers >= self->containers;
}

/*  The aggregator of a ddp learner, the task of a task's pod. When an aggregator is gone the garbage collector takes its
 *  reference out of pods that have another owner: the annotation stays. */
static const char *s_owner_pod(const dijob_pod_t *self, const json_t *metadata, const json_t *labels, const char *task)
{
    if (self->role == DIJOB_TASK)
        return parts_text(labels, "diengine/task-name", *task ? task : NULL);
    if (self->role != DIJOB_DDP_LEARNER)
        return NULL;
    const char *noted = parts_text(json_object_get(metadata, "annotations"), PARTS_OWN "aggregator", NULL);
    if (noted)
        return noted;
    const json_t *owner = parts_named(json_object_get(metadata, "ownerReferences"), "kind", "Pod");
    return owner == parts_controller(metadata) ? NULL : parts_text(owner, "name", NULL);
}

/*  "actor" of "job-actor-2": pods of DI-orchestrator 1.1.0 have no label with the task's name. */
static void s_task_of(char out[LABEL_ROOM], const char *pod, const char *job)
{
    const size_t skip = strlen(job) + 1;
    const char *end = strrchr(pod, '-');
    *out = 0;
    if (strncmp(pod, job, skip - 1) == 0 && pod[skip - 1] == '-' && end && end > pod + skip &&
        end - (pod + skip) < LABEL_ROOM)
        snprintf(out, LABEL_ROOM, "%.*s", (int)(end - (pod + skip)), pod + skip);
}

/*  What the strings of an entry may borrow from until it is packed. */
typedef struct {
    char task[LABEL_ROOM];
    parts_trouble_t trouble;
} scratch_t;

/*  0 where it is none, or more than we ever write. */
static uint16_t s_small(const json_t *notes, const char *key)
{
    const int32_t number = entry_number(notes, key);
    return (uint16_t)(number > 0 && number <= UINT16_MAX ? number : 0);
}

static void s_fill(dijob_pod_t *self, const json_t *object, scratch_t *scratch)
{
    const json_t *metadata = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    const json_t *labels = json_object_get(metadata, "labels"), *notes = json_object_get(metadata, "annotations");
    self->owner_pod = entry_borrow(s_owner_pod(self, metadata, labels, scratch->task));
    self->replaces = entry_borrow(parts_text(notes, PARTS_OWN "replaces", NULL));
    self->asked = entry_borrow(parts_text(notes, PARTS_OWN "resources", NULL));
    self->backoff_s = s_small(notes, PARTS_OWN "backoff");
    self->failures = s_small(notes, PARTS_OWN "failures");
    self->own_curve = parts_text(notes, PARTS_OWN "curve", NULL) != NULL;
    self->rank = entry_number(notes, "diengine/rank");
    self->task_rank = entry_number(notes, "diengine/task-rank");
    const int32_t reschedules = entry_number(notes, PARTS_OWN "reschedules");
    self->reschedules = reschedules > 0 ? reschedules : 0;
    self->ddp_master = strcmp(parts_text(labels, "ddp-learner-type", ""), "ddp-learner-master") == 0;
    self->port = (uint16_t)parts_port(spec, (dijob_role_t)self->role, self->owner_pod);
    const int gpus = self->role == DIJOB_DDP_LEARNER ? parts_gpus(spec) : 0;
    self->gpu_ports = (uint16_t)(gpus > 1 ? gpus - 1 : 0);
    s_containers(self, spec, json_object_get(object, "status"), &scratch->trouble);
    s_ready(self, json_object_get(object, "status"));
}

static tt_status_t s_pod(void **out, const json_t *object)
{
    static const size_t strings[] = {
        offsetof(dijob_pod_t, replaces), offsetof(dijob_pod_t, asked), offsetof(dijob_pod_t, owner_pod)};
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *job = s_job(labels);
    const bool task = !parts_text(labels, "dijob-name", NULL);
    const dijob_role_t role = task ? DIJOB_TASK : dijob_role_find(parts_text(labels, "replica-type", NULL));
    if (!job || role == DIJOB_ROLES || (!task && role == DIJOB_TASK))
        return tt_err(TT_DATA, "a pod without labels of a DIJob");
    dijob_pod_t loose = {.role = (uint8_t)role};
    scratch_t scratch;
    TT_TRY(entry_pod(&loose.as_pod, object, job));
    s_task_of(scratch.task, loose.meta.name, job);
    s_fill(&loose, object, &scratch);
    *out = entry_pack_pod(&loose, sizeof loose, strings, TT_COUNT(strings));
    return TT_OK;
}

ENTRY_DECODE(dijob_pod_decode, dijob_pod_t, s_pod)

static tt_status_t s_service(void **out, const json_t *object)
{
    const char *job = s_job(json_object_get(json_object_get(object, "metadata"), "labels"));
    if (!job)
        return tt_err(TT_DATA, "a service without labels of a DIJob");
    dijob_service_t loose = {0};
    TT_TRY(entry_service(&loose, object, job));
    *out = entry_pack_service(&loose, sizeof loose);
    return TT_OK;
}

ENTRY_DECODE(dijob_service_decode, dijob_service_t, s_service)
