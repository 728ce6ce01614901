/*  decode_pod - pods and services as the API server tells of them -> what decides. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/pool.h"
#include "k8s/dijob/parts.h"

enum { LABEL_ROOM = 64 };

const char *const dijob_pod_drop[] = {"metadata.*", "+metadata.name", "+metadata.namespace", "+metadata.uid",
    "+metadata.resourceVersion", "+metadata.labels", "+metadata.annotations", "+metadata.ownerReferences",
    "+metadata.creationTimestamp", "+metadata.deletionTimestamp", /**/
    "spec.*", "+spec.nodeName", "+spec.restartPolicy", "+spec.containers", "spec.containers.*", "+spec.containers.name",
    "+spec.containers.ports", "+spec.containers.resources", /**/
    "status.*", "+status.phase", "+status.reason", "+status.podIP", "+status.conditions", "+status.containerStatuses",
    "+status.initContainerStatuses", "+status.message", NULL};

/*  An entry and its strings, which it only borrows so far, as one block: there may be ten thousand. strings: where its
 *  pointers to them are. */
static void *s_pack(const void *loose, size_t size, const size_t *strings, size_t count)
{
    size_t all = size;
    for (size_t i = 0; i < count; i++) {
        const char *text = *(char *const *)(const void *)((const char *)loose + strings[i]);
        all += text ? strlen(text) + 1 : 0;
    }
    char *block = tt_pool_new0(all), *at = block + size;
    memcpy(block, loose, size);
    for (size_t i = 0; i < count; i++) {
        char **text = (char **)(void *)(block + strings[i]);
        const size_t length = *text ? strlen(*text) + 1 : 0;
        if (length)
            *text = memcpy(at, *text, length);
        at += length;
    }
    return block;
}

/*  For an entry that is packed before the tree goes. */
static char *s_borrow(const char *text)
{
    return (char *)(uintptr_t)text;
}

static json_t *s_parse(const char *json, size_t size)
{
    json_error_t error;
    json_t *object = json_loadb(json, size, 0, &error);
    if (!object)
        tt_err(TT_DATA, "JSON of an object, byte %d: %s", error.position, error.text);
    return object;
}

/*  Name of the job that the labels tell of; NULL. */
static const char *s_job(const json_t *labels)
{
    const char *job = parts_text(labels, "dijob-name", NULL);
    return job ? job : parts_text(labels, "diengine/job", NULL);
}

static void s_job_uid(char uid[37], const json_t *metadata)
{
    const char *text = parts_text(parts_controller(metadata), "uid", "");
    snprintf(uid, 37, "%s", strlen(text) < 37 ? text : ""); /* a longer one is nobody's */
}

static bool s_condition(const json_t *status, const char *type)
{
    const json_t *entry = parts_named(json_object_get(status, "conditions"), "type", type);
    return strcmp(parts_text(entry, "status", ""), "True") == 0;
}

static dijob_pod_phase_t s_phase(const char *text)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (dijob_pod_phase_t)i;
    return *text ? POD_UNKNOWN : POD_PENDING;
}

/*  A main container that fails is over only if the kubelet will not start it again. */
static dijob_main_t s_terminated(const dijob_pod_t *self, const json_t *spec)
{
    const char *policy = parts_text(spec, "restartPolicy", "Always");
    if (self->exit_code == 0)
        return MAIN_COMPLETED;
    return strcmp(policy, "Never") == 0 || self->phase == POD_FAILED ? MAIN_ERROR : MAIN_WAITING;
}

static int16_t s_exit_code(const json_t *terminated)
{
    const json_int_t code = json_integer_value(json_object_get(terminated, "exitCode"));
    return (int16_t)(code >= 0 && code <= 255 ? code : 255);
}

/*  One that runs again has been forgiven. */
static void s_last_exit(dijob_pod_t *self, const json_t *last_state)
{
    const json_t *terminated = parts_object(last_state, "terminated");
    self->last_exit = self->exit_code;
    if (self->exit_code < 0 && self->main == MAIN_WAITING && terminated)
        self->last_exit = s_exit_code(terminated);
}

static void s_main(dijob_pod_t *self, const json_t *spec, const json_t *state)
{
    const json_t *terminated = parts_object(state, "terminated");
    self->exit_code = -1;
    self->main = json_object_get(state, "running") ? MAIN_RUNNING : state ? MAIN_WAITING : MAIN_NONE;
    if (!terminated)
        return;
    self->exit_code = s_exit_code(terminated);
    self->finished_s = parts_time(parts_text(terminated, "finishedAt", NULL));
    self->main = (uint8_t)s_terminated(self, spec);
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
    s_main(self, spec, json_object_get(main_status, "state"));
    s_last_exit(self, json_object_get(main_status, "lastState"));
    parts_trouble(trouble, status, main_status);
    self->why = s_borrow(*trouble->why ? trouble->why : NULL);
    self->words = s_borrow(*trouble->words ? trouble->words : NULL);
}

/*  Who makes no conditions (an old kubelet, a test) still says it of the containers. */
static void s_ready(dijob_pod_t *self, const json_t *status)
{
    self->ready = s_condition(status, "Ready");
    if (!parts_named(json_object_get(status, "conditions"), "type", "Ready"))
        self->ready = self->phase == POD_RUNNING && self->containers > 0 && self->ready_containers >= self->containers;
}

static void s_status(dijob_pod_t *self, const json_t *spec, const json_t *status, parts_trouble_t *trouble)
{
    const char *reason = parts_text(status, "reason", ""), *ip = parts_text(status, "podIP", "");
    self->phase = (uint8_t)s_phase(parts_text(status, "phase", ""));
    snprintf(self->ip, sizeof self->ip, "%s", strlen(ip) < sizeof self->ip ? ip : "");
    self->scheduled = *parts_text(spec, "nodeName", "") || s_condition(status, "PodScheduled");
    self->disrupted = s_condition(status, "DisruptionTarget");
    self->refused = strcmp(reason, "UnexpectedAdmissionError") == 0 || strncasecmp(reason, "OutOf", 5) == 0;
    s_containers(self, spec, status, trouble);
    s_ready(self, status);
}

/*  An annotation that is a number; -1. */
static int32_t s_number(const json_t *annotations, const char *key)
{
    const char *text = parts_text(annotations, key, "");
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits < 8 && !text[digits] ? (int32_t)strtol(text, NULL, 10) : -1;
}

/*  The aggregator of a ddp learner, the task of a task's pod. When an aggregator is gone the garbage collector takes its
 *  reference out of pods that have another owner: the annotation stays. */
static const char *s_owner_pod(const dijob_pod_t *self, const json_t *metadata, const json_t *labels, const char *task)
{
    if (self->role == DIJOB_TASK)
        return parts_text(labels, "diengine/task-name", *task ? task : NULL);
    if (self->role != DIJOB_DDP_LEARNER)
        return NULL;
    const char *noted = parts_text(json_object_get(metadata, "annotations"), "tutti/aggregator", NULL);
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

static void s_fill(dijob_pod_t *self, const json_t *object, scratch_t *scratch)
{
    const json_t *metadata = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    const json_t *labels = json_object_get(metadata, "labels"), *notes = json_object_get(metadata, "annotations");
    s_job_uid(self->job_uid, metadata);
    self->owner_pod = s_borrow(s_owner_pod(self, metadata, labels, scratch->task));
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    self->created_s = parts_time(parts_text(metadata, "creationTimestamp", NULL));
    self->replaces = s_borrow(parts_text(notes, "tutti/replaces", NULL));
    self->asked = s_borrow(parts_text(notes, "tutti/resources", NULL));
    const int32_t backoff_s = s_number(notes, "tutti/backoff");
    self->backoff_s = (uint16_t)(backoff_s > 0 && backoff_s <= UINT16_MAX ? backoff_s : 0);
    self->rank = s_number(notes, "diengine/rank");
    self->task_rank = s_number(notes, "diengine/task-rank");
    const int32_t reschedules = s_number(notes, "tutti/reschedules");
    self->reschedules = reschedules > 0 ? reschedules : 0;
    self->ddp_master = strcmp(parts_text(labels, "ddp-learner-type", ""), "ddp-learner-master") == 0;
    self->port = (uint16_t)parts_port(spec, (dijob_role_t)self->role, self->owner_pod);
    const int gpus = self->role == DIJOB_DDP_LEARNER ? parts_gpus(spec) : 0;
    self->gpu_ports = (uint16_t)(gpus > 1 ? gpus - 1 : 0);
    s_status(self, spec, json_object_get(object, "status"), &scratch->trouble);
}

static tt_status_t s_pod(dijob_pod_t **out, const json_t *object)
{
    static const size_t strings[] = {offsetof(dijob_pod_t, meta.namespace_), offsetof(dijob_pod_t, meta.name),
        offsetof(dijob_pod_t, job), offsetof(dijob_pod_t, replaces), offsetof(dijob_pod_t, asked),
        offsetof(dijob_pod_t, owner_pod), offsetof(dijob_pod_t, why), offsetof(dijob_pod_t, words)};
    const json_t *metadata = json_object_get(object, "metadata"), *labels = json_object_get(metadata, "labels");
    const char *job = s_job(labels);
    const bool task = !parts_text(labels, "dijob-name", NULL);
    const dijob_role_t role = task ? DIJOB_TASK : dijob_role_find(parts_text(labels, "replica-type", NULL));
    if (!job || role == DIJOB_ROLES || (!task && role == DIJOB_TASK))
        return tt_err(TT_DATA, "a pod without labels of a DIJob");
    dijob_pod_t loose = {.job = s_borrow(job), .role = (uint8_t)role};
    TT_TRY(parts_meta(&loose.meta, metadata));
    scratch_t scratch;
    s_task_of(scratch.task, loose.meta.name, job);
    s_fill(&loose, object, &scratch);
    *out = s_pack(&loose, sizeof loose, strings, TT_COUNT(strings));
    parts_meta_clear(&loose.meta);
    return TT_OK;
}

tt_status_t dijob_pod_decode(dijob_pod_t **out, const char *json, size_t size)
{
    json_t *object = s_parse(json, size);
    if (!object)
        return TT_DATA;
    const tt_status_t status = s_pod(out, object);
    json_decref(object);
    return status;
}

void dijob_pod_destroy(dijob_pod_t **self_p)
{
    tt_pool_free(*self_p);
    *self_p = NULL;
}

static tt_status_t s_service(dijob_service_t **out, const json_t *object)
{
    static const size_t strings[] = {offsetof(dijob_service_t, meta.namespace_), offsetof(dijob_service_t, meta.name),
        offsetof(dijob_service_t, job)};
    const json_t *metadata = json_object_get(object, "metadata");
    const char *job = s_job(json_object_get(metadata, "labels"));
    if (!job)
        return tt_err(TT_DATA, "a service without labels of a DIJob");
    dijob_service_t loose = {.job = s_borrow(job)};
    TT_TRY(parts_meta(&loose.meta, metadata));
    loose.deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    s_job_uid(loose.job_uid, metadata);
    *out = s_pack(&loose, sizeof loose, strings, TT_COUNT(strings));
    parts_meta_clear(&loose.meta);
    return TT_OK;
}

tt_status_t dijob_service_decode(dijob_service_t **out, const char *json, size_t size)
{
    json_t *object = s_parse(json, size);
    if (!object)
        return TT_DATA;
    const tt_status_t status = s_service(out, object);
    json_decref(object);
    return status;
}

void dijob_service_destroy(dijob_service_t **self_p)
{
    tt_pool_free(*self_p);
    *self_p = NULL;
}
