#include "k8s/front/object.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/when.h"

const char *parts_text(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *member = json_object_get(object, key);
    return json_is_string(member) ? json_string_value(member) : otherwise;
}

json_t *parts_object(const json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);
    return json_is_object(member) ? member : NULL;
}

json_t *parts_array(const json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);
    return json_is_array(member) ? member : NULL;
}

bool parts_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out, bool *bad)
{
    const json_t *member = json_object_get(object, key);
    if (!member || json_is_null(member))
        return false;
    const int64_t value = json_integer_value(member);
    if (!json_is_integer(member) || value < min || value > max) {
        *bad = true;
        return false;
    }
    *out = value;
    return true;
}

json_t *parts_member(json_t *holder, const char *key, json_t *fresh)
{
    json_t *there = json_object_get(holder, key);
    if (!there || json_is_null(there))
        return json_object_set_new(holder, key, fresh) == 0 ? fresh : NULL;
    const bool same = json_typeof(there) == json_typeof(fresh);
    json_decref(fresh);
    return same ? there : NULL;
}

json_t *parts_named(const json_t *array, const char *key, const char *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item)
    {
        const char *text = parts_text(item, key, NULL);
        if (text && value && strcmp(text, value) == 0)
            return item;
    }
    return NULL;
}

int64_t parts_time(const char *text)
{
    int64_t unix_s = 0;
    return text && tt_when_read(&unix_s, text) ? unix_s : 0;
}

tt_status_t parts_meta(kube_meta_t *meta, const json_t *metadata)
{
    const char *name = parts_text(metadata, "name", "");
    const char *namespace_ = parts_text(metadata, "namespace", "");
    const char *uid = parts_text(metadata, "uid", "");
    if (!*name || strlen(name) > NAME_MAX_CHARS || strlen(namespace_) > NAME_MAX_CHARS)
        return tt_err(TT_DATA, "metadata: no name, or one longer than %d characters", NAME_MAX_CHARS);
    if (strlen(uid) >= sizeof meta->uid)
        return tt_err(TT_DATA, "%s/%s: uid '%.60s...' is too long", namespace_, name, uid);
    *meta = (kube_meta_t){.namespace_ = tt_strdup(namespace_),
        .name = tt_strdup(name),
        .version = strtoull(parts_text(metadata, "resourceVersion", "0"), NULL, 10)};
    snprintf(meta->uid, sizeof meta->uid, "%s", uid);
    return TT_OK;
}

json_t *parts_controller(const json_t *metadata)
{
    size_t i;
    json_t *owner;
    json_array_foreach(json_object_get(metadata, "ownerReferences"), i, owner)
    {
        if (json_is_true(json_object_get(owner, "controller")))
            return owner;
    }
    return NULL;
}

const char *parts_job_name(const json_t *job)
{
    return parts_text(json_object_get(job, "metadata"), "name", "");
}

const char *parts_job_namespace(const json_t *job)
{
    const char *text = parts_text(json_object_get(job, "metadata"), "namespace", "");
    return *text ? text : "default";
}

/* ---- status --------------------------------------------------------------------------------------------------------------- */

json_t *parts_time_text(int64_t unix_s)
{
    char text[TT_WHEN];
    return json_string(tt_when_text(text, unix_s));
}

json_t *parts_condition(const json_t *conditions, const char *type)
{
    size_t i;
    json_t *item;
    json_array_foreach(conditions, i, item)
    {
        const char *text = json_string_value(json_object_get(item, "type"));
        if (text && strcmp(text, type) == 0)
            return item;
    }
    return NULL;
}

bool parts_condition_drop(json_t *conditions, const char *type)
{
    const size_t before = json_array_size(conditions);
    for (size_t i = before; i-- > 0;)
        if (parts_is(json_array_get(conditions, i), "type", type))
            json_array_remove(conditions, i);
    return json_array_size(conditions) < before;
}

void parts_condition_on(
    json_t *conditions, const char *type, const char *reason, const char *message, json_t *since, int64_t now_s)
{
    parts_condition_drop(conditions, type);
    json_array_append_new(
        conditions, json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "type", type, "status", "True", "reason", reason,
                        "message", message, "lastUpdateTime", parts_time_text(now_s), "lastTransitionTime",
                        since ? since : parts_time_text(now_s)));
}

json_t *parts_condition_set(
    json_t *conditions, const char *type, bool on, const char *reason, const char *message, int64_t now_s)
{
    const char *status = on ? "True" : "False";
    if (!parts_condition(conditions, type))
        json_array_append_new(conditions, json_pack("{s:s}", "type", type));
    json_t *entry = parts_condition(conditions, type);
    if (!parts_is(entry, "status", status))
        json_object_set_new(entry, "lastTransitionTime", parts_time_text(now_s));
    json_object_set_new(entry, "status", json_string(status));
    json_object_set_new(entry, "reason", json_string(reason));
    json_object_set_new(entry, "message", json_string(message));
    return entry;
}

void parts_condition_off(json_t *condition, int64_t now_s)
{
    if (!condition || parts_is(condition, "status", "False"))
        return;
    json_object_set_new(condition, "status", json_string("False"));
    json_object_set_new(condition, "lastTransitionTime", parts_time_text(now_s));
    json_object_set_new(condition, "lastUpdateTime", parts_time_text(now_s));
}

bool parts_is(const json_t *condition, const char *key, const char *text)
{
    const char *there = json_string_value(json_object_get(condition, key));
    return there && strcmp(there, text) == 0;
}
