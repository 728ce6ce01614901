/*  The part of metadata that every entry begins with. */
#include "common/base/mem.h"
#include "k8s/api/store_fill.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

bool kube_version_read(const char *text, uint64_t *version)
{
    if (!text || *text < '0' || *text > '9')
        return false;
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *version = value;
    return true;
}

/*  Fit to be one part of a path. */
static bool s_is_name(const char *name)
{
    return name && *name && strlen(name) <= 253 && !strpbrk(name, "/%?#") && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

tt_status_t kube_meta_read(kube_meta_t *meta, const struct json_t *object)
{
    const json_t *from = json_object_get(object, "metadata");
    const json_t *space = json_object_get(from, "namespace");
    const char *name = json_string_value(json_object_get(from, "name"));
    const char *uid = json_string_value(json_object_get(from, "uid"));
    uint64_t version = 0;
    if (!s_is_name(name))
        return tt_err(TT_DATA, "metadata.name is missing or no name");
    if (space && (!json_is_string(space) || (*json_string_value(space) && !s_is_name(json_string_value(space)))))
        return tt_err(TT_DATA, "%s: metadata.namespace is no name", name);
    if (!uid || !*uid || strlen(uid) >= sizeof meta->uid)
        return tt_err(TT_DATA, "%s: metadata.uid is missing or longer than %zu", name, sizeof meta->uid - 1);
    if (!kube_version_read(json_string_value(json_object_get(from, "resourceVersion")), &version))
        return tt_err(TT_DATA, "%s: metadata.resourceVersion is missing or no number", name);
    *meta = (kube_meta_t){.namespace_ = tt_strdup(space ? json_string_value(space) : ""), .name = tt_strdup(name)};
    strcpy(meta->uid, uid);
    meta->version = version;
    return TT_OK;
}

void kube_meta_clear(kube_meta_t *meta)
{
    free(meta->namespace_);
    free(meta->name);
    *meta = (kube_meta_t){0};
}
