/*  decode_pod - pods and services as the API server tells of them -> what decides. */
#include <string.h>
#include "k8s/tfjob/tfjob.h"

/*  Where there are both, the older: those are ours. NULL: not one of a TFJob's. */
static const tfjob_generation_t *s_generation(const json_t *labels)
{
    for (size_t i = 0; i < TFJOB_GENERATIONS; i++) {
        const tfjob_generation_t *one = &tfjob_generations[i];
        if (parts_is(labels, one->key, one->value) && parts_text(labels, one->job, NULL))
            return one;
    }
    return NULL;
}

/*  Which place it has, by the labels of type and index that there are: type TFJOB_TYPES where they name none. */
static void s_place(const json_t *labels, const tfjob_generation_t *by, uint8_t *type, int32_t *index, uint8_t *kind)
{
    const tfjob_generation_t *between = &tfjob_generations[TFJOB_LABELS_BETWEEN];
    const bool older = by == &tfjob_generations[TFJOB_LABELS_OLD],
               both = older && parts_text(labels, between->type, NULL);
    by = both && !parts_text(labels, by->type, NULL) ? between : by;
    *type = (uint8_t)tfjob_type_find(parts_text(labels, by->type, NULL));
    *index = entry_number(labels, by->index);
    *kind = both ? TFJOB_LABELS_BETWEEN : older ? TFJOB_LABELS_OLD : TFJOB_LABELS_TODAY;
    if (*index < 0)
        *type = TFJOB_TYPES;
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

static uint16_t s_port(const json_t *spec)
{
    const json_t *main_ = parts_named(json_object_get(spec, "containers"), "name", TFJOB_CONTAINER);
    const json_t *port = parts_named(json_object_get(main_, "ports"), "name", TFJOB_PORT);
    int64_t number = TFJOB_PORT_NUMBER;
    bool bad = false;
    parts_int(port, "containerPort", 1, 65535, &number, &bad);
    return (uint16_t)number;
}

/*  In v1alpha1 the chief's last end counts, though its container runs again by now: unless a signal from outside was it. */
static void s_last_end(tfjob_pod_t *self, const json_t *main_status)
{
    const json_t *last = parts_object(json_object_get(main_status, "lastState"), "terminated");
    const json_int_t code = json_integer_value(json_object_get(last, "exitCode"));
    const char *reason = parts_text(last, "reason", "");
    const bool killed = strcmp(reason, "OOMKilled") == 0;
    if (!last || self->exit_code >= 0 || code < 0 || code > 255 || (code > 127 && !killed))
        return;
    self->phase = code ? POD_FAILED : POD_SUCCEEDED;
    self->exit_code = self->last_exit = (int16_t)code;
    self->finished_s = parts_time(parts_text(last, "finishedAt", NULL));
    self->why = entry_borrow(*reason ? reason : NULL);
    self->words = entry_borrow(parts_text(last, "message", NULL));
}

static void s_note(tfjob_pod_t *self, const json_t *annotations)
{
    const char *note = parts_text(annotations, TFJOB_OLD_NOTE, "");
    self->old = *note != '\0';
    self->decides = strcmp(note, "chief") == 0;
}

static void s_fill(tfjob_pod_t *self, const json_t *object, const tfjob_generation_t *by, parts_trouble_t *trouble)
{
    const json_t *metadata = json_object_get(object, "metadata"), *labels = json_object_get(metadata, "labels");
    const json_t *status = json_object_get(object, "status"), *statuses = json_object_get(status, "containerStatuses");
    const int32_t restarts = entry_number(json_object_get(metadata, "annotations"), PARTS_OWN "restarts");
    s_place(labels, by, &self->type, &self->index, &self->labels);
    self->restarts = restarts > 0 ? restarts : 0;
    self->port = s_port(json_object_get(object, "spec"));
    self->own_restarts = s_restarts(statuses) + s_restarts(json_object_get(status, "initContainerStatuses"));
    entry_pod_main(&self->as_pod, status, parts_named(statuses, "name", TFJOB_CONTAINER), trouble);
    s_note(self, json_object_get(metadata, "annotations"));
    if (self->old && self->decides)
        s_last_end(self, parts_named(statuses, "name", TFJOB_CONTAINER));
}

static tt_status_t s_pod(void **out, const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const tfjob_generation_t *by = s_generation(labels);
    if (!by)
        return tt_err(TT_DATA, "a pod without labels of a TFJob");
    tfjob_pod_t loose = {0};
    parts_trouble_t trouble;
    TT_TRY(entry_pod(&loose.as_pod, object, parts_text(labels, by->job, NULL)));
    s_fill(&loose, object, by, &trouble);
    *out = entry_pack_pod(&loose, sizeof loose, NULL, 0);
    return TT_OK;
}

ENTRY_DECODE(tfjob_pod_decode, tfjob_pod_t, s_pod)

static tt_status_t s_service(void **out, const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const tfjob_generation_t *by = s_generation(labels);
    if (!by)
        return tt_err(TT_DATA, "a service without labels of a TFJob");
    tfjob_service_t loose = {0};
    TT_TRY(entry_service(&loose.as_service, object, parts_text(labels, by->job, NULL)));
    s_place(labels, by, &loose.type, &loose.index, &loose.labels);
    *out = entry_pack_service(&loose, sizeof loose);
    return TT_OK;
}

ENTRY_DECODE(tfjob_service_decode, tfjob_service_t, s_service)
