#define TT_LOG_COMPONENT "operator"
#include "k8s/front/accelerators.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/config/yaml_tree.h"
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

static const char *s_text(tt_yaml_node_t node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "";
}

static tt_status_t s_unknown(const tt_yaml_t *file, tt_yaml_node_t key, const char *const *known)
{
    char *names = tt_strdup(known[0]);
    for (size_t i = 1; known[i]; i++) {
        char *more = tt_sprintf("%s, %s", names, known[i]);
        free(names);
        names = more;
    }
    const tt_status_t status =
        tt_yaml_err(file, key, TT_CONFIG, "'%.60s' is no key here; there are: %s", s_text(key), names);
    free(names);
    return status;
}

/*  Each key is one of these (NULL at their end), and is there once. */
static tt_status_t s_keys(tt_yaml_t *file, tt_yaml_node_t map, const char *const *known)
{
    tt_yaml_node_t key, value;
    bool seen[KEYS_MAX] = {0};
    for (size_t i = 0; (key = tt_yaml_key(file, map, i, &value)) != NULL; i++) {
        size_t at = 0;
        while (known[at] && strcmp(known[at], s_text(key)) != 0)
            at++;
        if (!known[at])
            return s_unknown(file, key, known);
        if (seen[at])
            return tt_yaml_err(file, key, TT_CONFIG, "%s is there twice", known[at]);
        seen[at] = true;
    }
    return TT_OK;
}

static tt_status_t s_member(tt_yaml_t *file, tt_yaml_node_t node, const member_t *member, json_t *out)
{
    const char *text = "";
    TT_TRY(tt_yaml_text(file, node, member->key, &text));
    tt_yaml_node_t at = tt_yaml_get(file, node, member->key);
    if (!member->fits(text))
        return tt_yaml_err(file, at ? at : node, TT_CONFIG, "%s%s%.60s%s: expected %s", member->key, *text ? " '" : "",
            text, *text ? "'" : " is missing", member->expected);
    json_t *value = strlen(text) <= TEXT_MAX ? json_string(text) : NULL;
    if (!value)
        return tt_yaml_err(file, at, TT_CONFIG, "%s: expected at most %d bytes of UTF-8", member->key, TEXT_MAX);
    json_object_set_new(out, member->key, value);
    return TT_OK;
}

/*  A new reference. */
static tt_status_t s_entry(tt_yaml_t *file, tt_yaml_node_t node, const member_t *members, json_t **out)
{
    const char *keys[KEYS_MAX] = {NULL};
    size_t count = 0;
    for (; members[count].key; count++)
        keys[count] = members[count].key;
    if (node->type != YAML_MAPPING_NODE)
        return tt_yaml_err(file, node, TT_CONFIG, "expected a mapping with %s and %s", keys[0], keys[1]);
    TT_TRY(s_keys(file, node, keys));
    json_t *entry = json_object();
    tt_status_t status = TT_OK;
    for (size_t i = 0; status == TT_OK && i < count; i++)
        status = s_member(file, node, &members[i], entry);
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
static tt_status_t s_list(tt_yaml_t *file, tt_yaml_node_t node, const char *key, const member_t *members, json_t *out)
{
    tt_yaml_node_t list = NULL, item;
    json_t *entries = json_array();
    json_object_set_new(out, key, entries);
    TT_TRY(tt_yaml_list(file, node, key, &list));
    for (size_t i = 0; (item = tt_yaml_at(file, list, i)) != NULL; i++) {
        json_t *entry = NULL;
        if (i == ENTRIES_MAX)
            return tt_yaml_err(file, item, TT_CONFIG, "%s: expected at most %d", key, ENTRIES_MAX);
        TT_TRY(s_entry(file, item, members, &entry));
        const char *twice = s_same(entries, "name", entry)                                               ? "name"
                            : json_object_get(entry, "mountPath") && s_same(entries, "mountPath", entry) ? "mountPath"
                                                                                                         : NULL;
        json_array_append_new(entries, entry);
        if (twice)
            return tt_yaml_err(file, item, TT_CONFIG, "%s: another one of the resource has this %s", key, twice);
    }
    return TT_OK;
}

/*  A container may ask for two resources, and its pod has one volume of a name. */
static tt_status_t s_agree(tt_yaml_t *file, tt_yaml_node_t at, const json_t *all, const json_t *now)
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
                return tt_yaml_err(file, at, TT_CONFIG, "volume %s has another hostPath with %s: give it another name",
                    parts_text(volume, "name", ""), name);
        }
    }
    return TT_OK;
}

static tt_status_t s_resource(tt_yaml_t *file, tt_yaml_node_t key, tt_yaml_node_t value, json_t *all)
{
    static const char *const keys[] = {"volumes", "envVars", NULL};
    const char *name = s_text(key);
    if (!s_is_resource(name))
        return tt_yaml_err(
            file, key, TT_CONFIG, "'%.60s' is no name of a resource; expected one like nvidia.com/gpu", name);
    if (json_object_get(all, name))
        return tt_yaml_err(file, key, TT_CONFIG, "%s is there twice", name);
    if (json_object_size(all) == RESOURCES_MAX)
        return tt_yaml_err(file, key, TT_CONFIG, "expected at most %d resources", RESOURCES_MAX);
    if (value && value->type != YAML_MAPPING_NODE)
        return tt_yaml_err(file, value, TT_CONFIG, "%s: expected a mapping with volumes and envVars", name);
    TT_TRY(s_keys(file, value, keys));
    json_t *resource = json_object();
    tt_status_t status = s_list(file, value, "volumes", s_volume, resource);
    if (status == TT_OK)
        status = s_list(file, value, "envVars", s_variable, resource);
    if (status == TT_OK)
        status = s_agree(file, key, all, resource);
    json_object_set_new(all, name, resource);
    return status;
}

static tt_status_t s_resources(tt_yaml_t *file, json_t *all)
{
    static const char *const keys[] = {"accelerators", "grpcServerFilePath", NULL};
    tt_yaml_node_t root = tt_yaml_root(file), map = NULL, key, value;
    if (root && root->type != YAML_MAPPING_NODE)
        return tt_yaml_err(file, root, TT_CONFIG, "expected a mapping with accelerators");
    TT_TRY(s_keys(file, root, keys));
    if (tt_yaml_get(file, root, keys[1])) /* the script that v0.1.0 gave to parameter servers; ours is built in */
        log_warn("%s: grpcServerFilePath has no effect", file->path);
    TT_TRY(tt_yaml_map(file, root, keys[0], &map));
    for (size_t i = 0; (key = tt_yaml_key(file, map, i, &value)) != NULL; i++)
        TT_TRY(s_resource(file, key, value, all));
    return TT_OK;
}

tt_status_t accelerators_read(json_t **out, const char *path)
{
    tt_yaml_t *file = NULL;
    TT_TRY(tt_yaml_read(&file, path));
    json_t *all = json_object();
    const tt_status_t status = s_resources(file, all);
    tt_yaml_destroy(&file);
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
