/*  manifest_job - a job that is a file, where the API server has no DIJobs: its coordinator's pod owns what it is made of,
 *  and its status is kept here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/manifest.h"
#include "k8s/operator/parts.h"

static tt_status_t s_put(cache_t *self, json_t *job)
{
    char *text = dijob_dump(job);
    const tt_status_t status = kube_store_put(self->jobs, text, strlen(text));
    free(text);
    return status;
}

/*  The DIJob of the file; borrowed from it. */
static tt_status_t s_find(json_t **out, const manifest_t *file, const cache_t *self)
{
    for (size_t i = 0; i < manifest_count(file); i++) {
        const json_t *object = manifest_at(file, i), *metadata = json_object_get(object, "metadata");
        const char *kind = json_string_value(json_object_get(object, "kind"));
        const char *name = json_string_value(json_object_get(metadata, "name"));
        if (kind && name && strcmp(kind, "DIJob") == 0 && strcmp(name, self->opts.only_job) == 0) {
            *out = manifest_at(file, i);
            return TT_OK;
        }
    }
    return tt_err(TT_CONFIG, "%s: there is no DIJob named %s", self->opts.manifest, self->opts.only_job);
}

tt_status_t cache_take_manifest(cache_t *self)
{
    const dijob_pod_t *own = cache_own(self);
    manifest_t *file = NULL;
    json_t *job = NULL;
    if (!own)
        return tt_err(TT_NOT_FOUND, "the pod that we are in is not known");
    TT_TRY(manifest_load(&file, self->opts.manifest));
    tt_status_t status = s_find(&job, file, self);
    if (status == TT_OK) {
        json_t *metadata = json_object_get(job, "metadata");
        json_object_del(metadata, "uid");
        json_object_set_new(metadata, "namespace", json_string(self->opts.namespace_));
        json_object_set_new(metadata, "resourceVersion", json_string("1"));
        json_object_set_new(metadata, "generation", json_integer(1));
        json_object_set_new(metadata, "ownerReferences",
            json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind", "Pod", "name", own->meta.name, "uid",
                own->meta.uid, "controller", 1));
        status = s_put(self, job);
    }
    manifest_destroy(&file);
    return status;
}

tt_status_t cache_keep_status(cache_t *self, const job_t *job, const char *status_text)
{
    json_t *object = json_loadb(job->text, job->text_size, 0, NULL), *status = json_loads(status_text, 0, NULL);
    char version[24];
    snprintf(version, sizeof version, "%llu", (unsigned long long)job->meta.version + 1);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    json_object_set_new(object, "status", status);
    const tt_status_t done = s_put(self, object);
    json_decref(object);
    return done;
}
