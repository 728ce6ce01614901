/*  kinds - the table of kinds. */
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/front.h"

const front_t *const front_ends[] = {
#define X(name) &name,
    FRONT_MAP(X)
#undef X
};
const size_t front_end_count = TT_COUNT(front_ends);

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
