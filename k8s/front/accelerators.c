#define TT_LOG_COMPONENT "operator"
#include "k8s/front/accelerators.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/config/node.h"
#include "k8s/front/object.h"

enum { RESOURCES_MAX = 64, ENTRIES_MAX = 64, TEXT_MAX = 4096, LABEL_MAX = 63, NAME_MAX_BYTES = 317, KEYS_MAX = 4 };
#define LABEL_CHARS    "abcdefghijklmnopqrstuvwxyz0123456789-"
#define RESOURCE_CHARS LABEL_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_./"

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/*  A member of an entry: its key, what it has to be, in words, and whether a text is that. */
typedef struct {
    const char *key, *expected;
    bool (*fits)(const char *text);
} member_t;

static bool s_is_label(const char *text)
{
    const size_t size = strlen(text);
    return size > 0 && size <= LABEL_MAX && strspn(text, LABEL_CHARS) == size && text[0] != '-' &&
           text[size - 1] != '-';
}

static bool s_is_resource(const char *text)
{
    const char *slash = strchr(text, '/');
    const size_t size = strlen(text);
    return size > 0 && size <= NAME_MAX_BYTES && strspn(text, RESOURCE_CHARS) == size && slash != text &&
           text[size - 1] != '/' && (!slash || !strchr(slash + 1, '/'));
}

/*  As the API server has it: from the root, and never up again. */
static bool s_is_host_path(const char *text)
{
    const char *up = strstr(text, "..");
    while (up && !((up == text || up[-1] == '/') && (up[2] == '/' || !up[2])))
        up = strstr(up + 1, "..");
    return text[0] == '/' && !up;
}

static bool s_is_mount_path(const char *text)
{
    return text[0] == '/' && !strchr(text, ':');
}

static bool s_is_variable(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '=')
            return false;
    return *text && strcmp(text, "TF_CONFIG") != 0;
}

static bool s_is_any(const char *text)
{
    (void)text;
    return true;
}

static const member_t s_volume[] = {{"name", "at most 63 of a-z, 0-9 and -", s_is_label},
    {"hostPath", "a path of the node, from /, without ..", s_is_host_path},
    {"mountPath", "a path of the container, from /, without :", s_is_mount_path}, {0}};
static const member_t s_variable[] = {
    {"name", "the name of a variable, and TF_CONFIG is the operator's", s_is_variable}, {"value", "", s_is_any}, {0}};

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_unknown(const tt_node_t *key, const char *name, const char *const *known)
{
    char names[128] = "";
    for (size_t i = 0, used = 0; known[i]; used = strlen(names), i++)
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", known[i]);
    return tt_node_err(key, TT_CONFIG, "'%.60s' is no key here; there are: %s", name, names);
}

/*  Each key is one of these, NULL at their end. */
static tt_status_t s_keys(const tt_node_t *map, const char *const *known)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map->value, name, value)
    {
        size_t at = 0;
        while (known[at] && strcmp(known[at], name) != 0)
            at++;
        const tt_node_t key = tt_node_get(map, name);
        if (!known[at])
            return s_unknown(&key, name, known);
    }
    return TT_OK;
}

/*  A number and a truth value are texts, too, as v0.1.0 took them. NULL: it is none of these. Caller frees. */
static char *s_text(const json_t *value)
{
    if (json_is_object(value) || json_is_array(value))
        return NULL;
    return json_is_string(value) ? tt_strdup(json_string_value(value))
           : value               ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
                                 : tt_strdup("");
}

static tt_status_t s_check(const tt_node_t *at, const member_t *member, const char *text)
{
    if (!member->fits(text))
        return tt_node_err(at, TT_CONFIG, "%s%s%.60s%s: expected %s", member->key, *text ? " '" : "", text,
            *text ? "'" : " is missing", member->expected);
    if (strlen(text) > TEXT_MAX)
        return tt_node_err(at, TT_CONFIG, "%s: expected at most %d bytes", member->key, TEXT_MAX);
    return TT_OK;
}

static tt_status_t s_member(const tt_node_t *entry, const member_t *member, json_t *out)
{
    const tt_node_t at = tt_node_get(entry, member->key);
    char *text = s_text(at.value);
    const tt_status_t status =
        text ? s_check(&at, member, text) : tt_node_err(&at, TT_CONFIG, "%s must be a text", member->key);
    if (status == TT_OK)
        json_object_set_new(out, member->key, json_string(text));
    free(text);
    return status;
}

/*  A new reference. */
static tt_status_t s_entry(const tt_node_t *at, const member_t *members, json_t **out)
{
    const char *keys[KEYS_MAX] = {NULL};
    size_t count = 0;
    for (; members[count].key; count++)
        keys[count] = members[count].key;
    if (!json_is_object(at->value))
        return tt_node_err(at, TT_CONFIG, "expected a mapping with %s and %s", keys[0], keys[1]);
    TT_TRY(s_keys(at, keys));
    json_t *entry = json_object();
    tt_status_t status = TT_OK;
    for (size_t i = 0; status == TT_OK && i < count; i++)
        status = s_member(at, &members[i], entry);
    if (status == TT_OK)
        *out = entry;
    else
        json_decref(entry);
    return status;
}

/*  Whoever of the list has the same text in `key`; NULL: nobody. */
static const json_t *s_same(const json_t *list, const char *key, const json_t *entry)
{
    return parts_named(list, key, json_string_value(json_object_get(entry, key)));
}

/*  Volumes, or variables: no two with one name, nor at one path of the container. */
static tt_status_t s_list(const tt_node_t *resource, const char *key, const member_t *members, json_t *out)
{
    tt_node_t list, item;
    json_t *entries = json_array();
    json_object_set_new(out, key, entries);
    TT_TRY(tt_node_list(resource, key, &list));
    for (size_t i = 0; (item = tt_node_at(&list, i)).value; i++) {
        json_t *entry = NULL;
        if (i == ENTRIES_MAX)
            return tt_node_err(&item, TT_CONFIG, "%s: expected at most %d", key, ENTRIES_MAX);
        TT_TRY(s_entry(&item, members, &entry));
        const char *twice = s_same(entries, "name", entry)                                               ? "name"
                            : json_object_get(entry, "mountPath") && s_same(entries, "mountPath", entry) ? "mountPath"
                                                                                                         : NULL;
        json_array_append_new(entries, entry);
        if (twice)
            return tt_node_err(&item, TT_CONFIG, "%s: another one of the resource has this %s", key, twice);
    }
    return TT_OK;
}

/*  A container may ask for two resources, and its pod has one volume of a name. */
static tt_status_t s_agree(const tt_node_t *at, const json_t *all, const json_t *now)
{
    const char *name;
    size_t i;
    json_t *other, *volume;
    json_object_foreach((json_t *)(uintptr_t)all, name, other)
    {
        json_array_foreach(json_object_get(now, "volumes"), i, volume)
        {
            const json_t *same = s_same(json_object_get(other, "volumes"), "name", volume);
            if (same && !json_equal(json_object_get(same, "hostPath"), json_object_get(volume, "hostPath")))
                return tt_node_err(at, TT_CONFIG, "volume %s has another hostPath with %s: give it another name",
                    parts_text(volume, "name", ""), name);
        }
    }
    return TT_OK;
}

static tt_status_t s_resource(const tt_node_t *at, const char *name, json_t *all)
{
    static const char *const keys[] = {"volumes", "envVars", NULL};
    if (!s_is_resource(name))
        return tt_node_err(at, TT_CONFIG, "'%.60s' is no name of a resource; expected one like nvidia.com/gpu", name);
    if (json_object_size(all) == RESOURCES_MAX)
        return tt_node_err(at, TT_CONFIG, "expected at most %d resources", RESOURCES_MAX);
    if (!json_is_object(at->value))
        return tt_node_err(at, TT_CONFIG, "%s: expected a mapping with volumes and envVars", name);
    TT_TRY(s_keys(at, keys));
    json_t *resource = json_object();
    tt_status_t status = s_list(at, "volumes", s_volume, resource);
    if (status == TT_OK)
        status = s_list(at, "envVars", s_variable, resource);
    if (status == TT_OK)
        status = s_agree(at, all, resource);
    json_object_set_new(all, name, resource);
    return status;
}

static tt_status_t s_resources(const tt_node_t *root, json_t *all)
{
    static const char *const keys[] = {"accelerators", "grpcServerFilePath", NULL};
    tt_node_t map;
    const char *name;
    json_t *value;
    TT_TRY(s_keys(root, keys));
    if (tt_node_get(root, keys[1]).value) /* the script that v0.1.0 gave to parameter servers; ours is built in */
        log_warn("%s: grpcServerFilePath has no effect", tt_manifest_name(root->file));
    TT_TRY(tt_node_map(root, keys[0], &map));
    json_object_foreach((json_t *)(uintptr_t)map.value, name, value)
    {
        const tt_node_t resource = tt_node_get(&map, name);
        TT_TRY(s_resource(&resource, name, all));
    }
    return TT_OK;
}

tt_status_t accelerators_read(json_t **out, const char *path)
{
    tt_manifest_t *file = NULL;
    TT_TRY(tt_manifest_load(&file, path));
    const tt_node_t root = tt_node_of(file, 0);
    json_t *all = json_object();
    const tt_status_t status = s_resources(&root, all);
    tt_manifest_destroy(&file);
    if (status == TT_OK)
        *out = all;
    else
        json_decref(all);
    return status;
}

/* ---- a container --------------------------------------------------------------------------------------------------------- */

static bool s_asks_for(const json_t *container, const char *resource)
{
    const json_t *resources = parts_object(container, "resources");
    return json_object_get(parts_object(resources, "requests"), resource) ||
           json_object_get(parts_object(resources, "limits"), resource);
}

static tt_status_t s_mount(json_t *spec, json_t *container, const json_t *volume)
{
    const char *name = parts_text(volume, "name", ""), *from = parts_text(volume, "hostPath", ""),
               *to = parts_text(volume, "mountPath", "");
    json_t *mounts = parts_member(container, "volumeMounts", json_array()),
           *volumes = parts_member(spec, "volumes", json_array());
    if (parts_named(mounts, "mountPath", to))
        return TT_OK;
    const json_t *there = parts_named(volumes, "name", name);
    if (there && !parts_is(parts_object(there, "hostPath"), "path", from))
        return tt_err(TT_INVALID,
            "its template has a volume %s that is not hostPath %s, which it gets with a resource: call one of the two "
            "something else",
            name, from);
    if (!there)
        json_array_append_new(volumes, json_pack("{s:s, s:{s:s}}", "name", name, "hostPath", "path", from));
    json_array_append_new(mounts, json_pack("{s:s, s:s}", "name", name, "mountPath", to));
    return TT_OK;
}

tt_status_t accelerators_dress(const json_t *self, json_t *pod, json_t *container)
{
    json_t *spec = json_object_get(pod, "spec"), *resource, *entry;
    const char *name;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)self, name, resource)
    {
        if (!s_asks_for(container, name))
            continue;
        json_array_foreach(json_object_get(resource, "volumes"), i, entry)
        {
            TT_TRY(s_mount(spec, container, entry));
        }
        json_array_foreach(json_object_get(resource, "envVars"), i, entry)
        {
            parts_env_of(container, parts_text(entry, "name", ""), parts_text(entry, "value", ""));
        }
    }
    return TT_OK;
}
