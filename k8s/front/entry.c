#include "k8s/front/entry.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"

const char *const entry_pod_drop[] = {"metadata.*", "+metadata.name", "+metadata.namespace", "+metadata.uid",
    "+metadata.resourceVersion", "+metadata.labels", "+metadata.annotations", "+metadata.ownerReferences",
    "+metadata.creationTimestamp", "+metadata.deletionTimestamp", /**/
    "spec.*", "+spec.nodeName", "+spec.restartPolicy", "+spec.containers", "spec.containers.*", "+spec.containers.name",
    "+spec.containers.ports", "+spec.containers.resources", /**/
    "status.*", "+status.phase", "+status.reason", "+status.podIP", "+status.conditions", "+status.containerStatuses",
    "+status.initContainerStatuses", "+status.message", NULL};

/* ---- one block ------------------------------------------------------------------------------------------------------ */

static char **s_at(void *entry, size_t offset)
{
    return (char **)(void *)((char *)entry + offset);
}

static size_t s_length(void *loose, const size_t *strings, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += *s_at(loose, strings[i]) ? strlen(*s_at(loose, strings[i])) + 1 : 0;
    return all;
}

static char *s_take(char *block, char *at, const size_t *strings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char **text = s_at(block, strings[i]);
        const size_t length = *text ? strlen(*text) + 1 : 0;
        if (length)
            *text = memcpy(at, *text, length);
        at += length;
    }
    return at;
}

static void *s_pack(
    void *loose, size_t size, const size_t *common, size_t common_count, const size_t *own, size_t own_count)
{
    char *block =
        tt_pool_new0(size + s_length(loose, common, common_count) + (own_count ? s_length(loose, own, own_count) : 0));
    memcpy(block, loose, size);
    char *at = s_take(block, block + size, common, common_count);
    if (own_count)
        s_take(block, at, own, own_count);
    kube_meta_clear(loose);
    return block;
}

void *entry_pack_pod(void *loose, size_t size, const size_t *strings, size_t count)
{
    static const size_t common[] = {offsetof(front_pod_t, meta.namespace_), offsetof(front_pod_t, meta.name),
        offsetof(front_pod_t, job), offsetof(front_pod_t, why), offsetof(front_pod_t, words)};
    return s_pack(loose, size, common, TT_COUNT(common), strings, count);
}

void *entry_pack_service(void *loose, size_t size)
{
    static const size_t common[] = {offsetof(front_service_t, meta.namespace_), offsetof(front_service_t, meta.name),
        offsetof(front_service_t, job)};
    return s_pack(loose, size, common, TT_COUNT(common), NULL, 0);
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

tt_status_t entry_decode(
    void **out, const char *json, size_t size, tt_status_t (*read)(void **out, const json_t *object))
{
    json_error_t error;
    json_t *object = json_loadb(json, size, 0, &error);
    if (!object)
        return tt_err(TT_DATA, "JSON of an object, byte %d: %s", error.position, error.text);
    const tt_status_t status = read(out, object);
    json_decref(object);
    return status;
}

int32_t entry_number(const json_t *map, const char *key)
{
    const char *text = parts_text(map, key, "");
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits < 8 && !text[digits] ? (int32_t)strtol(text, NULL, 10) : -1;
}

static bool s_condition(const json_t *status, const char *type)
{
    return parts_is(parts_condition(json_object_get(status, "conditions"), type), "status", "True");
}

static void s_job_uid(char uid[37], const json_t *metadata)
{
    const char *text = parts_text(parts_controller(metadata), "uid", "");
    snprintf(uid, 37, "%s", strlen(text) < 37 ? text : ""); /* a longer one is nobody's */
}

static const char *const s_phases[] = {[POD_PENDING] = "Pending",
    [POD_RUNNING] = "Running",
    [POD_SUCCEEDED] = "Succeeded",
    [POD_FAILED] = "Failed",
    [POD_UNKNOWN] = "Unknown"};

tt_replica_state_t entry_state(const front_pod_t *pod)
{
    static const tt_replica_state_t states[] = {[POD_PENDING] = TT_REPLICA_PENDING,
        [POD_RUNNING] = TT_REPLICA_RUNNING,
        [POD_SUCCEEDED] = TT_REPLICA_SUCCEEDED,
        [POD_FAILED] = TT_REPLICA_FAILED,
        [POD_UNKNOWN] = TT_REPLICA_PENDING};
    TT_CHECK(pod->phase < TT_COUNT(states));
    return states[pod->phase];
}

const char *entry_phase(const front_pod_t *pod)
{
    return s_phases[pod->phase];
}

static pod_phase_t s_phase(const char *text)
{
    for (size_t i = 0; i < TT_COUNT(s_phases); i++)
        if (strcmp(text, s_phases[i]) == 0)
            return (pod_phase_t)i;
    return *text ? POD_UNKNOWN : POD_PENDING;
}

static void s_status(front_pod_t *self, const json_t *spec, const json_t *status)
{
    const char *reason = parts_text(status, "reason", ""), *ip = parts_text(status, "podIP", "");
    self->phase = (uint8_t)s_phase(parts_text(status, "phase", ""));
    snprintf(self->ip, sizeof self->ip, "%s", strlen(ip) < sizeof self->ip ? ip : "");
    self->scheduled = *parts_text(spec, "nodeName", "") || s_condition(status, "PodScheduled");
    self->ready = s_condition(status, "Ready");
    self->disrupted = s_condition(status, "DisruptionTarget");
    self->refused = strcmp(reason, "UnexpectedAdmissionError") == 0 || strncasecmp(reason, "OutOf", 5) == 0;
}

tt_status_t entry_pod(front_pod_t *self, const json_t *object, const char *job)
{
    const json_t *metadata = json_object_get(object, "metadata");
    TT_TRY(parts_meta(&self->meta, metadata));
    self->job = entry_borrow(job);
    s_job_uid(self->job_uid, metadata);
    self->grouped = json_object_get(json_object_get(metadata, "labels"), ENTRY_GROUP_LABEL) ||
                    json_object_get(json_object_get(metadata, "annotations"), ENTRY_GROUP_NOTE);
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    self->created_s = parts_time(parts_text(metadata, "creationTimestamp", NULL));
    s_status(self, json_object_get(object, "spec"), json_object_get(object, "status"));
    return TT_OK;
}

static int16_t s_exit_code(const json_t *terminated)
{
    const json_int_t code = json_integer_value(json_object_get(terminated, "exitCode"));
    return (int16_t)(code >= 0 && code <= 255 ? code : 255);
}

/*  One that runs again has been forgiven. */
void entry_pod_main(front_pod_t *self, const json_t *status, const json_t *main_status, parts_trouble_t *trouble)
{
    const json_t *state = json_object_get(main_status, "state"), *ended = parts_object(state, "terminated");
    const json_t *last = parts_object(json_object_get(main_status, "lastState"), "terminated");
    const bool waits = state && !ended && !json_object_get(state, "running");
    self->exit_code = ended ? s_exit_code(ended) : -1;
    self->last_exit = waits && last ? s_exit_code(last) : self->exit_code;
    self->finished_s = ended ? parts_time(parts_text(ended, "finishedAt", NULL)) : 0;
    parts_trouble(trouble, status, main_status);
    self->why = entry_borrow(*trouble->why ? trouble->why : NULL);
    self->words = entry_borrow(*trouble->words ? trouble->words : NULL);
}

tt_status_t entry_service(front_service_t *self, const json_t *object, const char *job)
{
    const json_t *metadata = json_object_get(object, "metadata");
    TT_TRY(parts_meta(&self->meta, metadata));
    self->job = entry_borrow(job);
    self->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    s_job_uid(self->job_uid, metadata);
    return TT_OK;
}
