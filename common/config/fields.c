#include "common/config/fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/status.h"
#include "common/config/config.h"

enum { DEPTH_MAX = 64, NAMES_MAX = 128, NAME_BYTES = 64 }; /* of a manifest; fields of the largest type: 40 */

static const tt_fields_type_t s_types[] = {
#define FIELDS(type, fields) {#type, fields},
#include "common/config/kubernetes.def"
#undef FIELDS
    {0}};

typedef struct {
    tt_fields_unknown_t *out;
    const tt_fields_type_t *own; /* may be NULL */
} walk_t;

static const tt_fields_type_t *s_find(const tt_fields_type_t *table, const char *name, size_t length)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == length && strncmp(table->name, name, length) == 0)
            return table;
    return NULL;
}

static const tt_fields_type_t *s_type(const walk_t *self, const char *name, size_t length)
{
    const tt_fields_type_t *own = s_find(self->own, name, length);
    return own ? own : s_find(s_types, name, length);
}

/*  What a field holds. */
typedef struct {
    const tt_fields_type_t *type; /* NULL = not looked into                  */
    bool map;                     /* of free keys, with a `type` at each     */
} inner_t;

static inner_t s_inner(const walk_t *self, const char *text, size_t length)
{
    const bool map = length > 0 && *text == '*';
    return (inner_t){.type = s_type(self, text + map, length - map), .map = map};
}

/*  Has the type this field? */
static bool s_has(const walk_t *self, const tt_fields_type_t *type, const char *field, inner_t *inner)
{
    const size_t length = strlen(field);
    for (const char *at = type->fields, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, " ");
        const size_t name = strcspn(at, ": ");
        if (name != length || strncmp(at, field, length) != 0)
            continue;
        *inner = at[name] == ':' ? s_inner(self, at + name + 1, (size_t)(end - at) - name - 1) : (inner_t){0};
        return true;
    }
    return false;
}

static void s_nearest(tt_fields_unknown_t *out, const tt_fields_type_t *type)
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

static bool s_walk(const walk_t *self, const json_t *value, const tt_fields_type_t *type, int depth);

static bool s_list(const walk_t *self, const json_t *list, const tt_fields_type_t *type, int depth)
{
    tt_fields_unknown_t *out = self->out;
    const size_t length = strlen(out->path);
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        snprintf(out->path + length, sizeof out->path - length, "[%zu]", i);
        if (s_walk(self, item, type, depth))
            return true;
    }
    out->path[length] = '\0';
    return false;
}

/*  The key at the end of the path; its length before that. */
static size_t s_enter(tt_fields_unknown_t *out, const char *key)
{
    const size_t length = strlen(out->path);
    snprintf(out->path + length, sizeof out->path - length, "%s%s", length ? "." : "", key);
    return length;
}

/*  Keys of the user's own. */
static bool s_map(const walk_t *self, const json_t *map, const tt_fields_type_t *type, int depth)
{
    tt_fields_unknown_t *out = self->out;
    const char *key;
    json_t *inside;
    json_object_foreach((json_t *)(uintptr_t)map, key, inside)
    {
        const size_t length = s_enter(out, key);
        if (s_walk(self, inside, type, depth))
            return true;
        out->path[length] = '\0';
    }
    return false;
}

static bool s_is_wrong(
    const walk_t *self, const char *key, const json_t *inside, const tt_fields_type_t *type, int depth)
{
    tt_fields_unknown_t *out = self->out;
    inner_t inner = {0};
    if (!s_has(self, type, key, &inner)) {
        snprintf(out->field, sizeof out->field, "%s", key);
        out->type = type->name;
        s_nearest(out, type);
        return true;
    }
    if (!inner.type)
        return false;
    return inner.map ? s_map(self, inside, inner.type, depth) : s_walk(self, inside, inner.type, depth);
}

/*  Leaves the path of what was found. A value of another shape than its type's is for others to refuse. */
static bool s_walk(const walk_t *self, const json_t *value, const tt_fields_type_t *type, int depth)
{
    tt_fields_unknown_t *out = self->out;
    const char *key;
    json_t *inside;
    if (depth == DEPTH_MAX)
        return false;
    if (json_is_array(value))
        return s_list(self, value, type, depth + 1);
    json_object_foreach((json_t *)(uintptr_t)value, key, inside)
    {
        const size_t length = s_enter(out, key);
        if (s_is_wrong(self, key, inside, type, depth + 1))
            return true;
        out->path[length] = '\0';
    }
    return false;
}

bool tt_fields_unknown(tt_fields_unknown_t *out, const json_t *object, const tt_fields_type_t *own)
{
    const walk_t walk = {out, own};
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const tt_fields_type_t *type = kind ? s_type(&walk, kind, strlen(kind)) : NULL;
    *out = (tt_fields_unknown_t){0};
    return type && s_walk(&walk, object, type, 0);
}

tt_status_t tt_fields_err(const tt_fields_unknown_t *self, const char *where)
{
    return tt_err(TT_CONFIG, "%s: %s: %s has no field '%s'%s%s%s", where, self->path, self->type, self->field,
        *self->near ? "; did you mean '" : "", self->near, *self->near ? "'?" : "");
}
