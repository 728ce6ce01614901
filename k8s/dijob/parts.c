#include "k8s/dijob/parts.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/mem.h"

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
    struct tm tm = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!rest)
        return 0;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    return strcmp(rest, "Z") == 0 ? (int64_t)timegm(&tm) : 0; /* the API server writes nothing but UTC */
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

void parts_meta_clear(kube_meta_t *meta)
{
    free(meta->namespace_);
    free(meta->name);
    *meta = (kube_meta_t){0};
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

json_t *parts_main(const json_t *spec, dijob_role_t role, const char *task)
{
    const json_t *containers = json_object_get(spec, "containers");
    json_t *found = parts_named(containers, "name", MAIN_CONTAINER);
    if (!found)
        found = parts_named(containers, "name", role == DIJOB_TASK ? task : dijob_role_label(role));
    if (!found && role == DIJOB_DDP_LEARNER)
        found = parts_named(containers, "name", dijob_role_label(DIJOB_LEARNER));
    if (!found && json_array_size(containers) == 1)
        found = json_array_get(containers, 0);
    return json_is_object(found) ? found : NULL;
}

int parts_port(const json_t *spec, dijob_role_t role, const char *task)
{
    const json_t *main_ = parts_main(spec, role, task);
    const json_t *port = parts_named(json_object_get(main_, "ports"), "name", MAIN_PORT);
    int64_t number = 0;
    bool bad = false;
    return parts_int(port, "containerPort", 1, 65535, &number, &bad) ? (int)number : dijob_role_port(role);
}

/*  limits or requests of a container: how many GPUs. A quantity may be a string or a number. */
static int s_gpus(const json_t *resources, const char *which)
{
    const json_t *value = json_object_get(json_object_get(resources, which), GPU_KEY);
    double number = json_number_value(value);
    if (json_is_string(value) && tt_quantity(&number, json_string_value(value)) != TT_OK)
        number = 0;
    return number >= 1 && number <= 4096 ? (int)number : 0;
}

int parts_gpus(const json_t *spec)
{
    int most = 0;
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        const json_t *resources = json_object_get(container, "resources");
        const int limit = s_gpus(resources, "limits"), request = s_gpus(resources, "requests");
        most = most > limit ? most : limit;
        most = most > request ? most : request;
    }
    return most;
}

/* ---- the job ------------------------------------------------------------------------------------------------------------ */

const char *parts_job_name(const json_t *job)
{
    return parts_text(json_object_get(job, "metadata"), "name", "");
}

const char *parts_job_namespace(const json_t *job)
{
    const char *text = parts_text(json_object_get(job, "metadata"), "namespace", "");
    return *text ? text : "default";
}

bool parts_is_tutti(const json_t *job)
{
    return strcmp(parts_text(json_object_get(job, "spec"), "engine", ""), "tutti") == 0;
}

json_t *parts_owner(const json_t *job, bool block)
{
    const json_t *metadata = json_object_get(job, "metadata");
    const char *uid = parts_text(metadata, "uid", "");
    json_t *controller = parts_controller(metadata);
    if (!*uid && controller) /* the job is a file: what owns it owns its pods */
        return json_deep_copy(controller);
    json_t *owner =
        json_pack("{s:s, s:s, s:s, s:s, s:b}", "apiVersion", parts_text(job, "apiVersion", DIJOB_GROUP "/v1alpha1"),
            "kind", parts_text(job, "kind", "DIJob"), "name", parts_job_name(job), "uid", uid, "controller", 1);
    if (block)
        json_object_set_new(owner, "blockOwnerDeletion", json_true());
    return owner;
}
