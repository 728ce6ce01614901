/*  kinds - the table of kinds. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "common/base/mem.h"
#include "k8s/front/front.h"

const front_t *const front_ends[] = {
#define FRONT(name) &name##_front,
#include "k8s/front/fronts.def"
#undef FRONT
};
const size_t front_end_count = TT_COUNT(front_ends);
_Static_assert(TT_COUNT(front_ends) <= FRONT_ENDS_MAX, "FRONT_ENDS_MAX is to be raised");

static tt_status_t s_unknown(const char *name, size_t size)
{
    char known[32 * FRONT_ENDS_MAX] = "";
    for (size_t i = 0, at = 0; i < front_end_count; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", front_ends[i]->name);
    return tt_err(TT_INVALID, "'%.*s' is no kind of job; there are: %s", (int)(size < 60 ? size : 60), name, known);
}

/*  Once each. */
static tt_status_t s_pick(const char *name, size_t size, const front_t **out, size_t *count)
{
    size_t at = 0, had = 0;
    while (at < front_end_count &&
           (strlen(front_ends[at]->name) != size || strncasecmp(front_ends[at]->name, name, size) != 0))
        at++;
    if (at == front_end_count)
        return s_unknown(name, size);
    while (had < *count && out[had] != front_ends[at])
        had++;
    out[had] = front_ends[at];
    *count += had == *count;
    return TT_OK;
}

tt_status_t front_pick(const char *names, const front_t **out, size_t *count)
{
    out[0] = front_ends[0];
    *count = 1;
    for (const char *at = names; at && *at;) {
        const size_t size = strcspn(at, ",");
        TT_TRY(s_pick(at, size, out, count));
        at += size + (at[size] == ',');
    }
    return TT_OK;
}

/*  "GROUP/VERSION" */
static bool s_is_of_group(const char *api_version, const char *group)
{
    const size_t size = strlen(group);
    return strncmp(api_version, group, size) == 0 && api_version[size] == '/';
}

const front_t *front_of(const json_t *object)
{
    const char *api_version = json_string_value(json_object_get(object, "apiVersion"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    for (size_t i = 0; api_version && kind && i < front_end_count; i++)
        if (strcmp(kind, front_ends[i]->kind) == 0 && s_is_of_group(api_version, front_ends[i]->group))
            return front_ends[i];
    return NULL;
}

size_t front_shape_count(const front_t *self)
{
    size_t count = 0;
    while (count < FRONT_SHAPES && self->shapes[count].selector)
        count++;
    return count;
}
