/*  curve - the key of a tutti job: a Secret, and its place in every container (docs/internals/pods.md). The file in it is
 *  what common/net/keys.c reads: a ZeroMQ certificate. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/net/net.h"
#include "k8s/dijob/parts.h"

#define VOLUME    "tutti-curve"
#define FOLDER    "/etc/tutti/curve"
#define FILE_NAME "curve.key"
enum { UID_PART = 8 };
enum { MODE = 0440 }; /* the group is the pod's fsGroup: that is how one who is not root reads it */

/*  The user's own, who makes it by hand where no operator may, and an older operator's have no UID in their name. Caller frees. */
static char *s_name(const char *job, const char *uid, bool plain)
{
    return plain ? tt_sprintf("%s-curve", job) : tt_sprintf("%s-curve-%.*s", job, UID_PART, uid);
}

tt_status_t dijob_build_curve(json_t **out, const dijob_t *job)
{
    tt_keys_t keys;
    char file[TT_KEYS_TEXT];
    TT_TRY(tt_keys_make(&keys));
    tt_keys_text(&keys, file);
    char *name = s_name(job->meta.name, job->meta.uid, false);
    const char *namespace_ = *job->meta.namespace_ ? job->meta.namespace_ : "default";
    *out = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s, s:s}, s:[o]}, s:s, s:b, s:{s:s}}", "apiVersion", "v1",
        "kind", "Secret", "metadata", "name", name, "namespace", namespace_, "labels", "group-name", DIJOB_GROUP,
        "dijob-name", job->meta.name, "controller-name", "di-operator", "ownerReferences",
        parts_owner_of_job(job, false), "type", "Opaque", "immutable", 1, "stringData", FILE_NAME, file);
    explicit_bzero(file, sizeof file);
    explicit_bzero(&keys, sizeof keys);
    free(name);
    return TT_OK;
}

static void s_mount(json_t *containers)
{
    size_t i;
    json_t *container;
    json_array_foreach(containers, i, container)
    {
        json_t *mounts = parts_member(container, "volumeMounts", json_array());
        if (!parts_named(mounts, "mountPath", FOLDER))
            json_array_append_new(
                mounts, json_pack("{s:s, s:s, s:b}", "name", VOLUME, "mountPath", FOLDER, "readOnly", 1));
    }
}

void parts_mount_curve(json_t *pod, const json_t *job, bool old)
{
    json_t *spec = json_object_get(pod, "spec");
    const char *uid = parts_text(json_object_get(job, "metadata"), "uid", "");
    const char *manager = parts_text(json_object_get(job, "spec"), "managedBy", "");
    const bool plain = old || !*uid || strcmp(manager, "coordinator") == 0;
    char *name = s_name(parts_job_name(job), uid, plain);
    if (!plain)
        parts_annotate(pod, PARTS_OWN "curve", name);
    json_t *volumes =
        json_pack("[{s:s, s:{s:s, s:i}}]", "name", VOLUME, "secret", "secretName", name, "defaultMode", MODE);
    parts_volumes(spec, volumes);
    json_decref(volumes);
    free(name);
    s_mount(json_object_get(spec, "containers"));
    s_mount(json_object_get(spec, "initContainers"));
}

bool dijob_has_old_curve(const dijob_pod_t *const *pods, size_t count)
{
    bool old = false;
    for (size_t i = 0; i < count; i++)
        old |= !pods[i]->own_curve;
    return old;
}
