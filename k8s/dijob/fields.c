#include "k8s/dijob/fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/status.h"
#include "common/config/config.h"

enum { DEPTH_MAX = 64, NAMES_MAX = 128, NAME_BYTES = 64 }; /* of a manifest; fields of the largest type: 40 */

typedef struct {
    const char *name, *fields;
} type_t;

static const type_t s_types[] = {
#define FIELDS(type, fields) {#type, fields},
#include "k8s/dijob/fields.def"
#undef FIELDS
};

static const type_t *s_type(const char *name, size_t length)
{
    for (size_t i = 0; i < TT_COUNT(s_types); i++)
        if (strlen(s_types[i].name) == length && strncmp(s_types[i].name, name, length) == 0)
            return &s_types[i];
    return NULL;
}

/*  Has the type this field? *inner: the type of what it holds, NULL = not looked into. */
static bool s_has(const type_t *type, const char *field, const type_t **inner)
{
    const size_t length = strlen(field);
    for (const char *at = type->fields, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, " ");
        const size_t name = strcspn(at, ": ");
        if (name != length || strncmp(at, field, length) != 0)
            continue;
        *inner = at[name] == ':' ? s_type(at + name + 1, (size_t)(end - at) - name - 1) : NULL;
        return true;
    }
    return false;
}

static void s_nearest(dijob_unknown_t *out, const type_t *type)
{
    char names[NAMES_MAX][NAME_BYTES];
    const char *list[NAMES_MAX];
    size_t count = 0;
    for (const char *at = type->fields; *at && count < NAMES_MAX; at += strspn(at, " ")) {
        snprintf(names[count], NAME_BYTES, "%.*s", (int)strcspn(at, ": "), at);
        list[count] = names[count];
        count++;
        at += strcspn(at, " ");
    }
    const char *near = tt_nearest(out->field, list, count);
    snprintf(out->near, sizeof out->near, "%s", near ? near : "");
}

static bool s_walk(dijob_unknown_t *out, const json_t *value, const type_t *type, int depth);

static bool s_list(dijob_unknown_t *out, const json_t *list, const type_t *type, int depth)
{
    const size_t length = strlen(out->path);
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        snprintf(out->path + length, sizeof out->path - length, "[%zu]", i);
        if (s_walk(out, item, type, depth))
            return true;
    }
    out->path[length] = '\0';
    return false;
}

/*  Leaves the path of what was found. A value of another shape than its type's is for others to refuse. */
static bool s_walk(dijob_unknown_t *out, const json_t *value, const type_t *type, int depth)
{
    const size_t length = strlen(out->path);
    const char *key;
    json_t *inside;
    if (depth == DEPTH_MAX)
        return false;
    if (json_is_array(value))
        return s_list(out, value, type, depth + 1);
    json_object_foreach((json_t *)(uintptr_t)value, key, inside)
    {
        const type_t *inner = NULL;
        snprintf(out->path + length, sizeof out->path - length, "%s%s", length ? "." : "", key);
        if (!s_has(type, key, &inner)) {
            snprintf(out->field, sizeof out->field, "%s", key);
            out->type = type->name;
            s_nearest(out, type);
            return true;
        }
        if (inner && s_walk(out, inside, inner, depth + 1))
            return true;
    }
    out->path[length] = '\0';
    return false;
}

bool dijob_unknown_field(dijob_unknown_t *out, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const type_t *type = kind ? s_type(kind, strlen(kind)) : NULL;
    *out = (dijob_unknown_t){0};
    return type && s_walk(out, object, type, 0);
}
