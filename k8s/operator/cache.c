/*  cache - jobs, their pods and their services, as the API server tells of them. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/operator/parts.h"

enum { TEXTS_MAX = 4 << 20 };

/* ---- texts of jobs, at most 4 MiB of them -------------------------------------------------------------------------- */

static void s_drop_text(job_t *job)
{
    if (!job->text)
        return;
    cache_t *cache = job->kind->cache;
    *(job->newer ? &job->newer->older : &cache->newest) = job->older;
    *(job->older ? &job->older->newer : &cache->oldest) = job->newer;
    cache->texts -= job->text_size;
    free(job->text);
    job->text = NULL;
    job->newer = job->older = NULL;
}

void cache_forget_text(job_t *job)
{
    if (!job->kind->cache->opts.manifest) /* nobody else has it */
        s_drop_text(job);
}

/*  text is taken. */
static void s_keep_text(job_t *job, char *text, size_t size)
{
    cache_t *cache = job->kind->cache;
    job->text = text;
    job->text_size = size;
    job->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = job;
    cache->newest = job;
    cache->texts += size;
    while (cache->texts > TEXTS_MAX && cache->oldest != job)
        cache_forget_text(cache->oldest);
}

/* ---- entries ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_decode_job(void *ctx, const char *json, size_t size, void **entry)
{
    kind_t *kind = ctx;
    void *own = NULL;
    TT_TRY(kind->front->job_decode(&own, json, size));
    job_t *job = tt_new0(sizeof *job);
    job->kind = kind;
    job->own = own;
    job->meta = *(const kube_meta_t *)own;
    const front_job_t info = job_info(job);
    const bool wanted = size <= TEXTS_MAX / 4 && !info.deleting && !info.final;
    if (wanted || kind->cache->opts.manifest) {
        char *text = tt_new0(size + 1);
        memcpy(text, json, size);
        s_keep_text(job, text, size);
    }
    *entry = job;
    return TT_OK;
}

void cache_forget_notes(job_t *job, uint64_t reign)
{
    front_refusals_clear(&job->notes.refused);
    free(job->notes.gang);
    free(job->notes.workload);
    free(job->notes.unqueued);
    job->notes = (job_notes_t){.reign = reign};
}

static void s_destroy_job(void *entry)
{
    job_t *job = entry;
    s_drop_text(job);
    cache_forget_notes(job, 0);
    job->kind->front->job_destroy(job->own);
    free(job);
}

static tt_status_t s_decode_pod(void *ctx, const char *json, size_t size, void **entry)
{
    return ((const kind_t *)ctx)->front->pod_decode(entry, json, size);
}

static tt_status_t s_decode_service(void *ctx, const char *json, size_t size, void **entry)
{
    return ((const kind_t *)ctx)->front->service_decode(entry, json, size);
}

/* ---- changes ------------------------------------------------------------------------------------------------------- */

/*  What we know of a job beside the object itself goes from one version to the next. */
static void s_inherit(job_t *before, job_t *now)
{
    const bool same = job_info(before).generation == job_info(now).generation;
    now->notes = before->notes;
    before->notes = (job_notes_t){0};
    if (!same) {
        front_refusals_clear(&now->notes.refused);
        return;
    }
    now->told = before->told;
    if (!before->text) /* not needed any more by then */
        cache_forget_text(now);
}

static void s_tell(const kind_t *self, const void *entry, const char *job)
{
    const cache_opts_t *opts = &self->cache->opts;
    opts->changed(opts->ctx, self, ((const kube_meta_t *)entry)->namespace_, job);
}

static void s_job_changed(void *ctx, const void *before, const void *now)
{
    const kube_meta_t *meta = now ? now : before;
    if (before && now && strcmp(((const job_t *)before)->meta.uid, ((const job_t *)now)->meta.uid) == 0)
        s_inherit((job_t *)(uintptr_t)before, (job_t *)(uintptr_t)now); /* ours, though the store lends them */
    s_tell(ctx, meta, meta->name);
}

/*  Of a pod, or of a service. */
static void s_owned_changed(void *ctx, const void *before, const void *now)
{
    const front_service_t *entry = now ? now : before;
    s_tell(ctx, entry, entry->job);
}

static void s_look(cache_t *self)
{
    if (cache_synced(self))
        self->opts.synced(self->opts.ctx);
}

/*  What came while its pods were not known was not looked at: round_begin. */
static void s_look_at_all(const kind_t *self)
{
    const void *at = NULL;
    const kube_meta_t *job;
    while ((job = kube_store_each(self->jobs, &at)) != NULL)
        s_tell(self, job, job->name);
}

static void s_synced(void *ctx)
{
    const kind_t *self = ctx;
    if (cache_kind_synced(self))
        s_look_at_all(self);
    s_look(self->cache);
}

static tt_status_t s_watch_shapes(kind_t *self);

/*  Whose jobs are not there has no pods to look for. */
static void s_jobs_synced(void *ctx)
{
    kind_t *self = ctx;
    if (self->missing)
        log_info("there are %ss now", self->front->kind);
    self->missing = false;
    if (s_watch_shapes(self) != TT_OK)
        log_error("pods and services of %ss: %s", self->front->kind, tt_err_text());
}

static bool s_is_empty(const cache_t *self)
{
    size_t missing = 0;
    for (size_t i = 0; i < self->kind_count; i++)
        missing += self->kinds[i].missing;
    return missing == self->kind_count;
}

/*  Who has but one kind of jobs need not have the others, nor the right to see them. */
static void s_jobs_missing(void *ctx, const kube_reply_t *reply)
{
    kind_t *self = ctx;
    if (self->missing)
        return;
    self->missing = true;
    tt_log(TT_LOG_COMPONENT, reply->code == 404 ? TT_LOG_INFO : TT_LOG_WARN,
        "no %ss are looked after: %d %s; they are looked for again now and then", self->front->kind, reply->code,
        reply->text);
    if (s_is_empty(self->cache))
        log_warn(
            "there is no kind of job to look after: kubectl apply -k k8s/deploy gives the cluster the CRDs and this "
            "account its rights");
    s_look(self->cache);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static const char *s_by_job(const void *entry)
{
    const front_service_t *self = entry;
    return *self->job_uid ? self->job_uid : NULL;
}

static const char *s_pod_by_ip(const void *pod)
{
    const front_pod_t *self = pod;
    return *self->ip ? self->ip : NULL;
}

static tt_status_t s_stores(kind_t *self)
{
    const kube_store_ops_t jobs = {
        .decode = s_decode_job, .destroy = s_destroy_job, .changed = s_job_changed, .ctx = self};
    const kube_store_ops_t pods = {.decode = s_decode_pod,
        .destroy = tt_pool_free,
        .index = {[POD_BY_JOB] = s_by_job, [POD_BY_IP] = s_pod_by_ip},
        .changed = s_owned_changed,
        .ctx = self};
    const kube_store_ops_t services = {.decode = s_decode_service,
        .destroy = tt_pool_free,
        .index = {[SERVICE_BY_JOB] = s_by_job},
        .changed = s_owned_changed,
        .ctx = self};
    TT_TRY(kube_store_new(&self->jobs, &jobs));
    for (size_t i = 0; i < self->shape_count; i++) {
        TT_TRY(kube_store_new(&self->shapes[i].pods, &pods));
        TT_TRY(kube_store_new(&self->shapes[i].services, &services));
    }
    return TT_OK;
}

/*  api: "/api/v1"; path: "/api/v1/namespaces/x/pods", of all namespaces "/api/v1/pods". */
static tt_status_t s_watch(kube_reflector_t **out, kind_t *self, kube_store_t *store, kube_reflector_opts_t opts,
    const char *api, const char *resource)
{
    const char *namespace_ = self->cache->opts.namespace_;
    char *path =
        namespace_ ? tt_sprintf("%s/namespaces/%s/%s", api, namespace_, resource) : tt_sprintf("%s/%s", api, resource);
    opts.path = path;
    opts.ctx = self;
    const tt_status_t status = kube_reflector_new(out, self->cache->client, store, &opts);
    free(path);
    return status;
}

static tt_status_t s_watch_jobs(kind_t *self)
{
    const char *job = self->cache->opts.only_job;
    char *field = job ? tt_sprintf("metadata.name=%s", job) : NULL;
    const kube_reflector_opts_t jobs = {.field_selector = field, .synced = s_jobs_synced, .missing = s_jobs_missing};
    const tt_status_t status = s_watch(&self->watch, self, self->jobs, jobs, self->path, self->front->plural);
    free(field);
    return status;
}

static tt_status_t s_watch_shape(kind_t *self, size_t at)
{
    const front_shape_t *labels = &self->front->shapes[at];
    shape_t *shape = &self->shapes[at];
    const char *job = self->cache->opts.only_job;
    char *selector =
        job ? tt_sprintf("%s,%s=%s", labels->selector, labels->job_label, job) : tt_strdup(labels->selector);
    const kube_reflector_opts_t pods = {.label_selector = selector, .drop = entry_pod_drop, .synced = s_synced};
    const kube_reflector_opts_t services = {.label_selector = selector, .metadata_only = true, .synced = s_synced};
    tt_status_t status = s_watch(&shape->watches[WATCH_PODS], self, shape->pods, pods, "/api/v1", "pods");
    if (status == TT_OK)
        status = s_watch(&shape->watches[WATCH_SERVICES], self, shape->services, services, "/api/v1", "services");
    free(selector);
    return status;
}

static tt_status_t s_watch_shapes(kind_t *self)
{
    for (size_t i = 0; i < self->shape_count; i++)
        TT_TRY(s_watch_shape(self, i));
    return TT_OK;
}

static tt_status_t s_open(kind_t *self, cache_t *cache, const front_t *front)
{
    *self = (kind_t){.front = front, .cache = cache, .shape_count = front_shape_count(front)};
    snprintf(self->api_version, sizeof self->api_version, "%s/%s", front->group, front->version);
    snprintf(self->path, sizeof self->path, "/apis/%s", self->api_version);
    TT_TRY(kube_recorder_new(&self->recorder, cache->client, front->reporter));
    TT_TRY(s_stores(self));
    return cache->opts.manifest ? s_watch_shapes(self) : s_watch_jobs(self);
}

static void s_close(kind_t *self)
{
    kube_reflector_destroy(&self->watch);
    for (size_t i = 0; i < self->shape_count; i++) {
        for (size_t k = 0; k < SHAPE_WATCHES; k++)
            kube_reflector_destroy(&self->shapes[i].watches[k]);
        kube_store_destroy(&self->shapes[i].pods);
        kube_store_destroy(&self->shapes[i].services);
    }
    kube_store_destroy(&self->jobs);
    kube_recorder_destroy(&self->recorder);
}

tt_status_t cache_new(cache_t **self_p, kube_client_t *client, const cache_opts_t *opts)
{
    cache_t *self = tt_new0(sizeof *self);
    tt_status_t status = TT_OK;
    self->opts = *opts;
    self->client = client;
    self->kinds = tt_array0(opts->front_count, sizeof *self->kinds);
    while (status == TT_OK && self->kind_count < opts->front_count) {
        const size_t at = self->kind_count++;
        status = s_open(&self->kinds[at], self, opts->fronts[at]);
    }
    if (status == TT_OK)
        *self_p = self;
    else
        cache_destroy(&self);
    return status;
}

void cache_destroy(cache_t **self_p)
{
    cache_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->kind_count; i++)
        s_close(&self->kinds[i]);
    free(self->kinds);
    free(self->own);
    free(self);
    *self_p = NULL;
}

bool cache_kind_synced(const kind_t *self)
{
    if (self->watch && !kube_reflector_synced(self->watch))
        return false;
    for (size_t i = 0; i < self->shape_count; i++)
        for (size_t k = 0; k < SHAPE_WATCHES; k++)
            if (!self->shapes[i].watches[k] || !kube_reflector_synced(self->shapes[i].watches[k]))
                return false;
    return true;
}

bool cache_synced(const cache_t *self)
{
    bool any = false;
    for (size_t i = 0; i < self->kind_count; i++) {
        const kind_t *kind = &self->kinds[i];
        if (!kind->missing && !cache_kind_synced(kind))
            return false;
        any |= !kind->missing;
    }
    return any;
}

/* ---- questions ----------------------------------------------------------------------------------------------------- */

kind_t *cache_kind(const cache_t *self, const front_t *front)
{
    size_t at = 0;
    while (at < self->kind_count && self->kinds[at].front != front)
        at++;
    TT_CHECK(at < self->kind_count);
    return &self->kinds[at];
}

kind_t *cache_kind_named(const cache_t *self, const char *name, size_t size)
{
    for (size_t i = 0; i < self->kind_count; i++)
        if (strlen(self->kinds[i].front->name) == size && strncmp(self->kinds[i].front->name, name, size) == 0)
            return &self->kinds[i];
    return NULL;
}

kube_ref_t cache_ref(const kind_t *self, const char *namespace_, const char *job, const char *uid, uint64_t version)
{
    return (kube_ref_t){.api_version = self->api_version,
        .kind = self->front->kind,
        .namespace_ = namespace_,
        .name = job,
        .uid = uid,
        .version = version};
}

job_t *cache_job(const kind_t *self, const char *namespace_, const char *name)
{
    return kube_store_get(self->jobs, namespace_, name);
}

job_t *cache_job_by_uid(const kind_t *self, const char *uid)
{
    return kube_store_by_uid(self->jobs, uid);
}

const void *cache_pod(const kind_t *self, const char *namespace_, const char *name)
{
    const void *pod = NULL;
    for (size_t i = 0; i < self->shape_count && !pod; i++)
        pod = kube_store_get(self->shapes[i].pods, namespace_, name);
    return pod;
}

const void *cache_service(const kind_t *self, const char *namespace_, const char *name)
{
    const void *service = NULL;
    for (size_t i = 0; i < self->shape_count && !service; i++)
        service = kube_store_get(self->shapes[i].services, namespace_, name);
    return service;
}

cache_counts_t cache_count(const cache_t *self)
{
    cache_counts_t counts = {0};
    for (size_t i = 0; i < self->kind_count; i++) {
        const kind_t *kind = &self->kinds[i];
        counts.jobs += kube_store_count(kind->jobs);
        for (size_t k = 0; k < kind->shape_count; k++) {
            counts.pods += kube_store_count(kind->shapes[k].pods);
            counts.services += kube_store_count(kind->shapes[k].services);
        }
    }
    return counts;
}

static bool s_is_at(const kube_store_t *store, const char *job_uid, const char *ip)
{
    const void *at = NULL;
    const front_pod_t *pod;
    while ((pod = kube_store_next(store, POD_BY_IP, ip, &at)) != NULL) {
        if (strcmp(pod->job_uid, job_uid) == 0 && !entry_ended(pod))
            return true;
    }
    return false;
}

bool cache_is_at(const kind_t *self, const char *job_uid, const char *ip)
{
    for (size_t i = 0; i < self->shape_count; i++)
        if (s_is_at(self->shapes[i].pods, job_uid, ip))
            return true;
    return false;
}

/*  Entries under a key, and room for one more. */
typedef struct {
    const void **all;
    size_t count, room;
} found_t;

static void s_find(found_t *self, const kube_store_t *store, int index, const char *key)
{
    const void *at = NULL, *entry;
    while ((entry = kube_store_next(store, index, key, &at)) != NULL) {
        if (self->count + 1 >= self->room)
            self->all = tt_realloc(self->all, tt_mul(self->room *= 2, sizeof *self->all));
        self->all[self->count++] = entry;
    }
}

static found_t s_found(void)
{
    enum { ROOM = 8 };
    return (found_t){.all = tt_array0(ROOM, sizeof(void *)), .room = ROOM};
}

static int s_by_age(const void *a, const void *b)
{
    const front_pod_t *x = *(const void *const *)a, *y = *(const void *const *)b;
    return x->created_s != y->created_s ? (x->created_s < y->created_s ? -1 : 1) : strcmp(x->meta.name, y->meta.name);
}

size_t cache_pods(const kind_t *self, const char *job_uid, const void ***out)
{
    found_t found = s_found();
    for (size_t i = 0; i < self->shape_count; i++)
        s_find(&found, self->shapes[i].pods, POD_BY_JOB, job_uid);
    cache_see_own(self, found.all, &found.count);
    qsort(found.all, found.count, sizeof *found.all, s_by_age);
    *out = found.all;
    return found.count;
}

size_t cache_services(const kind_t *self, const char *job_uid, const void ***out)
{
    found_t found = s_found();
    for (size_t i = 0; i < self->shape_count; i++)
        s_find(&found, self->shapes[i].services, SERVICE_BY_JOB, job_uid);
    *out = found.all;
    return found.count;
}
