/*  decode_pod - pods and services as the API server tells of them -> what decides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"
#include "k8s/dijob/object.h"
#include "k8s/tfjob/tfjob.h"

const char *const tfjob_pod_drop[] = {"metadata.*", "+metadata.name", "+metadata.namespace", "+metadata.uid",
    "+metadata.resourceVersion", "+metadata.labels", "+metadata.annotations", "+metadata.ownerReferences",
    "+metadata.creationTimestamp", "+metadata.deletionTimestamp", /**/
    "spec.*", "+spec.nodeName", "+spec.containers", "spec.containers.*", "+spec.containers.name",
    "+spec.containers.ports", /**/
    "status.*", "+status.phase", "+status.reason", "+status.podIP", "+status.conditions", "+status.containerStatuses",
    "+status.initContainerStatuses", "+status.message", NULL};

/*  A number of at most six digits in a label or annotation; -1. */
static int32_t s_number(const json_t *map, const char *key)
{
    const char *text = parts_text(map, key, "");
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits < 7 && !text[digits] ? (int32_t)strtol(text, NULL, 10) : -1;
}

static void s_job_uid(char uid[37], const json_t *metadata)
{
    const char *text = parts_text(parts_controller(metadata), "uid", "");
    snprintf(uid, 37, "%s", strlen(text) < 37 ? text : ""); /* a longer one is nobody's */
}

/*  NULL: not one of ours. */
static const char *s_job(const json_t *labels)
{
    const bool ours = strcmp(parts_text(labels, "group-name", ""), TFJOB_GROUP) == 0;
    return ours ? parts_text(labels, "job-name", NULL) : NULL;
}

static bool s_condition(const json_t *status, const char *type)
{
    return plan_is(plan_condition(json_object_get(status, "conditions"), type), "status", "True");
}

static tfjob_pod_phase_t s_phase(const char *text)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (tfjob_pod_phase_t)i;
    return TFJOB_POD_PENDING;
}

static int32_t s_restarts(const json_t *statuses)
{
    int64_t sum = 0;
    size_t i;
    json_t *item;
    json_array_foreach(statuses, i, item)
    {
        const json_int_t count = json_integer_value(json_object_get(item, "restartCount"));
        sum += count > 0 ? count < INT16_MAX ? count : INT16_MAX : 0;
    }
    return sum < INT32_MAX ? (int32_t)sum : INT32_MAX;
}

static int16_t s_exit_code(const json_t *terminated)
{
    const json_int_t code = json_integer_value(json_object_get(terminated, "exitCode"));
    return (int16_t)(code >= 0 && code <= 255 ? code : 255);
}

static void s_main(tfjob_pod_t *self, const json_t *main_status)
{
    const json_t *ended = parts_object(json_object_get(main_status, "state"), "terminated");
    const json_t *last = parts_object(json_object_get(main_status, "lastState"), "terminated");
    const bool waits = json_object_get(json_object_get(main_status, "state"), "waiting") != NULL;
    self->exit_code = ended ? s_exit_code(ended) : -1;
    self->last_exit = waits && last ? s_exit_code(last) : self->exit_code;
    self->finished_s = parts_time(parts_text(ended, "finishedAt", NULL));
}

static void s_status(tfjob_pod_t *self, const json_t *spec, const json_t *status)
{
    const char *reason = parts_text(status, "reason", ""), *ip = parts_text(status, "podIP", "");
    const json_t *statuses = json_object_get(status, "containerStatuses");
    const json_t *main_status = parts_named(statuses, "name", TFJOB_CONTAINER);
    parts_trouble_t trouble;
    self->phase = (uint8_t)s_phase(parts_text(status, "phase", ""));
    snprintf(self->ip, sizeof self->ip, "%s", strlen(ip) < sizeof self->ip ? ip : "");
    self->scheduled = *parts_text(spec, "nodeName", "") || s_condition(status, "PodScheduled");
    self->ready = s_condition(status, "Ready");
    self->disrupted = s_condition(status, "DisruptionTarget");
    self->refused = strcmp(reason, "UnexpectedAdmissionError") == 0 || strncasecmp(reason, "OutOf", 5) == 0;
    self->own_restarts = s_restarts(statuses) + s_restarts(json_object_get(status, "initContainerStatuses"));
    s_main(self, main_status);
    parts_trouble(&trouble, status, main_status);
    self->why = *trouble.why ? tt_strdup(trouble.why) : NULL;
    self->words = *trouble.words ? tt_strdup(trouble.words) : NULL;
}

static uint16_t s_port(const json_t *spec)
{
    const json_t *main_ = parts_named(json_object_get(spec, "containers"), "name", TFJOB_CONTAINER);
    const json_t *port = parts_named(json_object_get(main_, "ports"), "name", TFJOB_PORT);
    int64_t number = TFJOB_PORT_NUMBER;
    bool bad = false;
    parts_int(port, "containerPort", 1, 65535, &number, &bad);
    return (uint16_t)number;
}

static void s_fill(tfjob_pod_t *self, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    const json_t *labels = json_object_get(metadata, "labels");
    const int32_t restarts = s_number(json_object_get(metadata, "annotations"), "tutti/restarts");
    self->job = tt_strdup(s_job(labels));
    s_job_uid(self->job_uid, metadata);
    self->type = (uint8_t)tfjob_type_find(parts_text(labels, "replica-type", NULL));
    self->index = s_number(labels, "replica-index");
    self->restarts = restarts > 0 ? restarts : 0;
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    self->created_s = parts_time(parts_text(metadata, "creationTimestamp", NULL));
    self->port = s_port(spec);
    s_status(self, spec, json_object_get(object, "status"));
}

static json_t *s_parse(const char *json, size_t size)
{
    json_error_t error;
    json_t *object = json_loadb(json, size, 0, &error);
    if (!object)
        tt_err(TT_DATA, "JSON of an object, byte %d: %s", error.position, error.text);
    return object;
}

static tt_status_t s_pod(tfjob_pod_t **out, const json_t *object)
{
    kube_meta_t meta;
    const json_t *metadata = json_object_get(object, "metadata");
    if (!s_job(json_object_get(metadata, "labels")))
        return tt_err(TT_DATA, "a pod without labels of a TFJob");
    TT_TRY(parts_meta(&meta, metadata));
    tfjob_pod_t *self = tt_new0(sizeof *self);
    self->meta = meta;
    s_fill(self, object);
    *out = self;
    return TT_OK;
}

tt_status_t tfjob_pod_decode(tfjob_pod_t **out, const char *json, size_t size)
{
    json_t *object = s_parse(json, size);
    if (!object)
        return TT_DATA;
    const tt_status_t status = s_pod(out, object);
    json_decref(object);
    return status;
}

void tfjob_pod_destroy(tfjob_pod_t **self_p)
{
    tfjob_pod_t *self = *self_p;
    if (!self)
        return;
    free(self->job);
    free(self->why);
    free(self->words);
    parts_meta_clear(&self->meta);
    free(self);
    *self_p = NULL;
}

static tt_status_t s_service(tfjob_service_t **out, const json_t *object)
{
    kube_meta_t meta;
    const json_t *metadata = json_object_get(object, "metadata"), *labels = json_object_get(metadata, "labels");
    const char *job = s_job(labels);
    if (!job)
        return tt_err(TT_DATA, "a service without labels of a TFJob");
    TT_TRY(parts_meta(&meta, metadata));
    tfjob_service_t *self = tt_new0(sizeof *self);
    self->meta = meta;
    self->job = tt_strdup(job);
    self->type = (uint8_t)tfjob_type_find(parts_text(labels, "replica-type", NULL));
    self->index = s_number(labels, "replica-index");
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    s_job_uid(self->job_uid, metadata);
    *out = self;
    return TT_OK;
}

tt_status_t tfjob_service_decode(tfjob_service_t **out, const char *json, size_t size)
{
    json_t *object = s_parse(json, size);
    if (!object)
        return TT_DATA;
    const tt_status_t status = s_service(out, object);
    json_decref(object);
    return status;
}

void tfjob_service_destroy(tfjob_service_t **self_p)
{
    tfjob_service_t *self = *self_p;
    if (!self)
        return;
    free(self->job);
    parts_meta_clear(&self->meta);
    free(self);
    *self_p = NULL;
}
