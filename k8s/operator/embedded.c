/*  embedded - an operator of one DIJob, in the pod that coordinates it: that pod as we know it, and a job that is a file where
 *  the API server has no DIJobs: its coordinator's pod owns what it is made of, and its status is kept here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/dijob.h"
#include "common/config/manifest.h"
#include "k8s/operator/parts.h"

/* ---- our pod ------------------------------------------------------------------------------------------------------- */

static const dijob_pod_t *s_own(const cache_t *self)
{
    const char *name = self->opts.own_pod;
    const dijob_pod_t *pod = name ? cache_pod(cache_kind(self, &dijob_front), self->opts.namespace_, name) : NULL;
    return pod && pod->role == DIJOB_COORDINATOR && strcmp(pod->job, self->opts.only_job) == 0 ? pod : NULL;
}

const void *cache_own(const cache_t *self)
{
    return s_own(self);
}

/*  Our own pod is the job's coordinator whoever made it; and it has ended when we say so, before anybody can see that. */
void cache_see_own(const kind_t *kind, const void **pods, size_t *count)
{
    cache_t *self = kind->cache;
    const dijob_pod_t *own = s_own(self);
    size_t at = 0;
    if (!own)
        return;
    while (at < *count && pods[at] != own)
        at++;
    *count += at == *count;
    if (!self->own)
        self->own = tt_new0(sizeof *own);
    dijob_pod_t *seen = self->own;
    *seen = *own;
    pods[at] = seen;
    if (!self->own_end)
        return;
    seen->phase = self->own_end == 's' ? POD_SUCCEEDED : POD_FAILED;
    seen->main = self->own_end == 's' ? MAIN_COMPLETED : MAIN_ERROR;
}

/* ---- a job that is a file ------------------------------------------------------------------------------------------ */

static tt_status_t s_put(const kind_t *kind, json_t *job)
{
    char *text = kube_dump(job);
    const tt_status_t status = kube_store_put(kind->jobs, text, strlen(text));
    free(text);
    return status;
}

/*  The DIJob of the file; borrowed from it. */
static tt_status_t s_find(json_t **out, const tt_manifest_t *file, const cache_t *self)
{
    for (size_t i = 0; i < tt_manifest_count(file); i++) {
        json_t *object = tt_manifest_at(file, i), *metadata = json_object_get(object, "metadata");
        const char *name = json_string_value(json_object_get(metadata, "name"));
        if (front_of(object) == &dijob_front && name && strcmp(name, self->opts.only_job) == 0) {
            *out = object;
            return TT_OK;
        }
    }
    return tt_err(TT_CONFIG, "%s: there is no DIJob named %s", self->opts.manifest, self->opts.only_job);
}

tt_status_t cache_take_manifest(cache_t *self)
{
    const dijob_pod_t *own = s_own(self);
    tt_manifest_t *file = NULL;
    json_t *job = NULL;
    if (!own)
        return tt_err(TT_NOT_FOUND, "the pod that we are in is not known");
    TT_TRY(tt_manifest_load(&file, self->opts.manifest));
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
        status = s_put(cache_kind(self, &dijob_front), job);
    }
    tt_manifest_destroy(&file);
    return status;
}

tt_status_t cache_keep_status(const job_t *job, const char *status_text)
{
    json_t *object = json_loadb(job->text, job->text_size, 0, NULL), *status = json_loads(status_text, 0, NULL);
    char version[24];
    snprintf(version, sizeof version, "%llu", (unsigned long long)job->meta.version + 1);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    json_object_set_new(object, "status", status);
    const tt_status_t done = s_put(job->kind, object);
    json_decref(object);
    return done;
}
