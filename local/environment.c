#include "local/environment.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/base64.h"
#include "k8s/front/object.h"

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

void environment_set(environment_t *self, const char *name, char *value)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->vars[i].name, name) == 0) {
            free(self->vars[i].value);
            self->vars[i].value = value;
            return;
        }
    self->vars = tt_realloc(self->vars, tt_mul(self->count + 1, sizeof *self->vars));
    self->vars[self->count++] = (tt_env_var_t){tt_strdup(name), value};
}

void environment_clear(environment_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->vars[i].name);
        free(self->vars[i].value);
    }
    free(self->vars);
    *self = (environment_t){0};
}

static const char *s_lookup(const void *ctx, const char *name, size_t length)
{
    const environment_t *self = ctx;
    for (size_t i = 0; i < self->count; i++)
        if (strncmp(self->vars[i].name, name, length) == 0 && !self->vars[i].name[length])
            return self->vars[i].value;
    return NULL;
}

const char *environment_get(const environment_t *self, const char *name)
{
    return s_lookup(self, name, strlen(name));
}

char *environment_expand(const environment_t *self, const char *text)
{
    return tt_expand(text, s_lookup, self);
}

/* ---- objects of the manifest ------------------------------------------------------------------------------------------------- */

/*  One key of a ConfigMap or Secret as text; caller frees; NULL = not there. */
static char *s_key(const json_t *object, const char *key)
{
    const char *plain = json_string_value(json_object_get(json_object_get(object, "stringData"), key));
    const char *data = json_string_value(json_object_get(json_object_get(object, "data"), key));
    if (plain || !data || strcmp(parts_text(object, "kind", ""), "Secret") != 0)
        return tt_strdup(plain ? plain : data);
    size_t size;
    char *out = tt_base64_decode(data, &size);
    return out ? out : tt_strdup("");
}

static tt_status_t s_from_key(char **out, const place_t *place, const char *kind, const json_t *ref)
{
    const json_t *object = place_object(place, kind, parts_text(ref, "name", ""));
    *out = s_key(object, parts_text(ref, "key", ""));
    if (*out || json_is_true(json_object_get(ref, "optional")))
        return TT_OK;
    return tt_err(TT_NOT_FOUND, "the manifest has no %s %s with key %s", kind, parts_text(ref, "name", ""),
        parts_text(ref, "key", ""));
}

static void s_all_keys(environment_t *self, const json_t *object, const char *member, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(object, member), key, value)
    {
        char *name = tt_sprintf("%s%s", prefix, key), *text = s_key(object, key);
        if (text && json_is_string(value))
            environment_set(self, name, text);
        else
            free(text);
        free(name);
    }
}

static tt_status_t s_env_from(environment_t *self, const place_t *place, const json_t *container)
{
    size_t i;
    json_t *from;
    json_array_foreach(json_object_get(container, "envFrom"), i, from)
    {
        const json_t *config = json_object_get(from, "configMapRef"), *secret = json_object_get(from, "secretRef");
        const char *kind = config ? "ConfigMap" : "Secret", *name = parts_text(config ? config : secret, "name", "");
        const json_t *object = place_object(place, kind, name);
        if (!object && !json_is_true(json_object_get(config ? config : secret, "optional")))
            return tt_err(TT_NOT_FOUND, "envFrom: the manifest has no %s %s", kind, name);
        s_all_keys(self, object, "data", parts_text(from, "prefix", ""));
        s_all_keys(self, object, "stringData", parts_text(from, "prefix", ""));
    }
    return TT_OK;
}

/* ---- fields of the pod ------------------------------------------------------------------------------------------------------- */

/*  "metadata.labels['x']": the member x; NULL when path is not that. */
static const char *s_member(const char *path, const char *head, char *out, size_t size)
{
    const size_t length = strlen(head);
    if (strncmp(path, head, length) != 0 || strncmp(path + length, "['", 2) != 0)
        return NULL;
    snprintf(out, size, "%s", path + length + 2);
    char *end = strstr(out, "']");
    if (!end || end == out || end[2])
        return NULL;
    *end = '\0';
    return out;
}

static tt_status_t s_field(char **out, const json_t *pod, const char *path, const char *ip)
{
    const json_t *metadata = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
    char key[320];
    const char *value = NULL;
    if (s_member(path, "metadata.labels", key, sizeof key))
        value = parts_text(json_object_get(metadata, "labels"), key, "");
    else if (s_member(path, "metadata.annotations", key, sizeof key))
        value = parts_text(json_object_get(metadata, "annotations"), key, "");
    else if (strncmp(path, "metadata.", 9) == 0)
        value = json_string_value(json_object_get(metadata, path + 9));
    else if (strcmp(path, "status.podIP") == 0 || strcmp(path, "status.podIPs") == 0)
        value = ip;
    else if (strcmp(path, "status.hostIP") == 0 || strcmp(path, "status.hostIPs") == 0)
        value = "127.0.0.1";
    else if (strcmp(path, "spec.nodeName") == 0)
        value = parts_text(spec, "nodeName", "");
    else if (strcmp(path, "spec.serviceAccountName") == 0)
        value = *parts_text(spec, "serviceAccountName", "") ? parts_text(spec, "serviceAccountName", "") : "default";
    if (!value)
        return tt_err(TT_UNSUPPORTED, "fieldRef %s means nothing on this machine", path);
    *out = tt_strdup(value);
    return TT_OK;
}

/*  limits.cpu of another container of the pod or our own, in units of divisor, rounded up. */
static tt_status_t s_resource(char **out, const json_t *container, const json_t *ref)
{
    const char *path = parts_text(ref, "resource", ""), *dot = strchr(path, '.');
    char group[16] = "";
    double amount = 0, divisor = 1;
    if (dot)
        snprintf(group, sizeof group, "%.*s", (int)(dot - path), path);
    const json_t *resources = json_object_get(container, "resources");
    const json_t *value = dot ? json_object_get(json_object_get(resources, group), dot + 1) : NULL;
    if (!value)
        return tt_err(TT_NOT_FOUND, "resourceFieldRef %s: the container does not say", path);
    amount = json_number_value(value);
    if (json_is_string(value))
        TT_TRY(tt_quantity(&amount, json_string_value(value)));
    if (*parts_text(ref, "divisor", ""))
        TT_TRY(tt_quantity(&divisor, parts_text(ref, "divisor", "")));
    *out = tt_sprintf("%.0f", ceil(amount / (divisor > 0 ? divisor : 1)));
    return TT_OK;
}

static tt_status_t s_value_from(
    char **out, const place_t *place, const json_t *pod, const json_t *container, const json_t *from, const char *ip)
{
    const json_t *field = json_object_get(from, "fieldRef"), *resource = json_object_get(from, "resourceFieldRef");
    const json_t *config = json_object_get(from, "configMapKeyRef"), *secret = json_object_get(from, "secretKeyRef");
    if (field)
        return s_field(out, pod, parts_text(field, "fieldPath", ""), ip);
    if (resource)
        return s_resource(out, container, resource);
    if (config)
        return s_from_key(out, place, "ConfigMap", config);
    if (secret)
        return s_from_key(out, place, "Secret", secret);
    return tt_err(TT_UNSUPPORTED, "a valueFrom of a kind that means nothing on this machine");
}

static tt_status_t s_variable(environment_t *self, const place_t *place, const json_t *pod, const json_t *container,
    const json_t *entry, const char *ip)
{
    const json_t *from = json_object_get(entry, "valueFrom");
    const char *name = parts_text(entry, "name", "");
    char *value = NULL;
    if (!*name || strchr(name, '='))
        return tt_err(TT_INVALID, "env: '%.80s' is not the name of a variable", name);
    const tt_status_t status = from ? s_value_from(&value, place, pod, container, from, ip) : TT_OK;
    if (status != TT_OK)
        return tt_err_wrap(status, "env %s", name);
    if (!from)
        value = environment_expand(self, parts_text(entry, "value", ""));
    if (value)
        environment_set(self, name, value);
    return TT_OK;
}

static tt_status_t s_make(
    environment_t *self, const place_t *place, const json_t *pod, const json_t *container, const char *ip)
{
    size_t i;
    json_t *entry;
    TT_TRY(s_env_from(self, place, container));
    json_array_foreach(json_object_get(container, "env"), i, entry)
    {
        TT_TRY(s_variable(self, place, pod, container, entry, ip));
    }
    return TT_OK;
}

tt_status_t environment_make(
    environment_t *out, const place_t *place, const json_t *pod, const json_t *container, const char *ip)
{
    environment_t made = {0};
    const tt_status_t status = s_make(&made, place, pod, container, ip);
    if (status == TT_OK)
        *out = made;
    else
        environment_clear(&made);
    return status;
}
