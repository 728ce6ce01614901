/*  cache - jobs, their pods and their services, as the API server tells of them. */
#define TT_LOG_COMPONENT "operator"
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
    cache_t *cache = job->cache;
    *(job->newer ? &job->newer->older : &cache->newest) = job->older;
    *(job->older ? &job->older->newer : &cache->oldest) = job->newer;
    cache->texts -= job->text_size;
    free(job->text);
    job->text = NULL;
    job->newer = job->older = NULL;
}

void cache_forget_text(job_t *job)
{
    if (!job->cache->opts.manifest) /* nobody else has it */
        s_drop_text(job);
}

/*  text is taken. */
static void s_keep_text(job_t *job, char *text, size_t size)
{
    cache_t *cache = job->cache;
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
    dijob_t *dijob = NULL;
    TT_TRY(dijob_decode(&dijob, json, size));
    job_t *job = tt_new0(sizeof *job);
    job->cache = ctx;
    job->dijob = dijob;
    job->meta = dijob->meta;
    const bool wanted = size <= TEXTS_MAX / 4 && !dijob->deleting && !dijob_phase_final(dijob->phase);
    if (wanted || job->cache->opts.manifest) {
        char *text = tt_new0(size + 1);
        memcpy(text, json, size);
        s_keep_text(job, text, size);
    }
    *entry = job;
    return TT_OK;
}

static void s_refusal_clear(dijob_refusal_t *refusal)
{
    free((char *)(uintptr_t)refusal->words);
    free((char *)(uintptr_t)refusal->reason);
}

static void s_destroy_job(void *entry)
{
    job_t *job = entry;
    s_drop_text(job);
    for (size_t i = 0; i < job->refused_count; i++)
        s_refusal_clear(&job->refused[i]);
    free(job->refused);
    dijob_destroy(&job->dijob);
    free(job);
}

static tt_status_t s_decode_pod(void *ctx, const char *json, size_t size, void **entry)
{
    (void)ctx;
    dijob_pod_t *pod = NULL;
    TT_TRY(dijob_pod_decode(&pod, json, size));
    *entry = pod;
    return TT_OK;
}

static void s_destroy_pod(void *entry)
{
    dijob_pod_t *pod = entry;
    dijob_pod_destroy(&pod);
}

static tt_status_t s_decode_service(void *ctx, const char *json, size_t size, void **entry)
{
    (void)ctx;
    dijob_service_t *service = NULL;
    TT_TRY(dijob_service_decode(&service, json, size));
    *entry = service;
    return TT_OK;
}

static void s_destroy_service(void *entry)
{
    dijob_service_t *service = entry;
    dijob_service_destroy(&service);
}

static const char *s_pod_job(const void *entry, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const dijob_pod_t *pod = entry;
    return *pod->job_uid ? pod->job_uid : NULL;
}

static const char *s_pod_ip(const void *entry, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const dijob_pod_t *pod = entry;
    return *pod->ip ? pod->ip : NULL;
}

static const char *s_service_job(const void *entry, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const dijob_service_t *service = entry;
    return *service->job_uid ? service->job_uid : NULL;
}

/* ---- changes ------------------------------------------------------------------------------------------------------- */

/*  What we know of a job beside the object itself goes from one version to the next. */
static void s_inherit(job_t *before, job_t *now)
{
    const bool same = before->dijob->generation == now->dijob->generation;
    now->curve = before->curve;
    if (!same)
        return;
    now->told = before->told;
    now->refused = before->refused;
    now->refused_count = before->refused_count;
    before->refused = NULL;
    before->refused_count = 0;
    if (!before->text) /* not needed any more by then */
        cache_forget_text(now);
}

static void s_job_changed(void *ctx, const void *before, const void *now)
{
    cache_t *self = ctx;
    const kube_meta_t *meta = now ? now : before;
    if (before && now && strcmp(((const job_t *)before)->meta.uid, ((const job_t *)now)->meta.uid) == 0)
        s_inherit((job_t *)(uintptr_t)before, (job_t *)(uintptr_t)now); /* ours, though the store lends them */
    self->opts.changed(self->opts.ctx, meta->namespace_, meta->name);
}

static void s_pod_changed(void *ctx, const void *before, const void *now)
{
    cache_t *self = ctx;
    const dijob_pod_t *pod = now ? now : before;
    self->opts.changed(self->opts.ctx, pod->meta.namespace_, pod->job);
}

static void s_service_changed(void *ctx, const void *before, const void *now)
{
    cache_t *self = ctx;
    const dijob_service_t *service = now ? now : before;
    self->opts.changed(self->opts.ctx, service->meta.namespace_, service->job);
}

static void s_synced(void *ctx)
{
    cache_t *self = ctx;
    if (cache_synced(self))
        self->opts.synced(self->opts.ctx);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static tt_status_t s_stores(cache_t *self)
{
    const kube_store_ops_t jobs = {
        .decode = s_decode_job, .destroy = s_destroy_job, .changed = s_job_changed, .ctx = self};
    const kube_store_ops_t pods = {.decode = s_decode_pod,
        .destroy = s_destroy_pod,
        .index = {[POD_BY_JOB] = s_pod_job, [POD_BY_IP] = s_pod_ip},
        .changed = s_pod_changed,
        .ctx = self};
    const kube_store_ops_t services = {.decode = s_decode_service,
        .destroy = s_destroy_service,
        .index = {[SERVICE_BY_JOB] = s_service_job},
        .changed = s_service_changed,
        .ctx = self};
    TT_TRY(kube_store_new(&self->jobs, &jobs));
    TT_TRY(kube_store_new(&self->pods, &pods));
    TT_TRY(kube_store_new(&self->task_pods, &pods));
    TT_TRY(kube_store_new(&self->services, &services));
    return kube_store_new(&self->task_services, &services);
}

/*  "/api/v1/namespaces/x/pods", of all namespaces "/api/v1/pods". Caller frees. */
static char *s_path(const cache_t *self, const char *api, const char *resource)
{
    return self->opts.namespace_ ? tt_sprintf("%s/namespaces/%s/%s", api, self->opts.namespace_, resource)
                                 : tt_sprintf("%s/%s", api, resource);
}

static tt_status_t s_watch(
    cache_t *self, int which, kube_store_t *store, kube_reflector_opts_t opts, const char *api, const char *resource)
{
    char *path = s_path(self, api, resource);
    opts.path = path;
    opts.synced = s_synced;
    opts.ctx = self;
    const tt_status_t status = kube_reflector_new(&self->watches[which], self->client, store, &opts);
    free(path);
    return status;
}

static tt_status_t s_watch_jobs(cache_t *self)
{
    char *field = self->opts.only_job ? tt_sprintf("metadata.name=%s", self->opts.only_job) : NULL;
    const kube_reflector_opts_t jobs = {.field_selector = field};
    const tt_status_t status = s_watch(self, WATCH_JOBS, self->jobs, jobs, JOBS_PATH, "dijobs");
    free(field);
    return status;
}

/*  Pods and services of roles, or of tasks; `of_job`: the label that names the job. */
static tt_status_t s_watch_shape(cache_t *self, bool tasks, const char *ours, const char *of_job)
{
    const char *job = self->opts.only_job;
    char *labels = job ? tt_sprintf("%s,%s=%s", ours, of_job, job) : tt_strdup(ours);
    const kube_reflector_opts_t pods = {.label_selector = labels, .drop = dijob_pod_drop};
    const kube_reflector_opts_t services = {.label_selector = labels, .metadata_only = true};
    tt_status_t status = s_watch(
        self, tasks ? WATCH_TASK_PODS : WATCH_PODS, tasks ? self->task_pods : self->pods, pods, "/api/v1", "pods");
    if (status == TT_OK)
        status = s_watch(self, tasks ? WATCH_TASK_SERVICES : WATCH_SERVICES,
            tasks ? self->task_services : self->services, services, "/api/v1", "services");
    free(labels);
    return status;
}

/*  No selector says "this label or that one", and DI-orchestrator's two versions have none in common: two watches, and no
 *  pod in both. */
static tt_status_t s_watches(cache_t *self)
{
    if (!self->opts.manifest)
        TT_TRY(s_watch_jobs(self));
    TT_TRY(s_watch_shape(self, false, "controller-name=di-operator,!diengine/operator", "dijob-name"));
    return s_watch_shape(self, true, "diengine/operator=di-operator", "diengine/job");
}

tt_status_t cache_new(cache_t **self_p, kube_client_t *client, const cache_opts_t *opts)
{
    cache_t *self = tt_new0(sizeof *self);
    self->opts = *opts;
    self->client = client;
    tt_status_t status = s_stores(self);
    if (status == TT_OK)
        status = s_watches(self);
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
    for (size_t i = 0; i < CACHE_WATCHES; i++)
        kube_reflector_destroy(&self->watches[i]);
    kube_store_destroy(&self->jobs);
    kube_store_destroy(&self->pods);
    kube_store_destroy(&self->services);
    kube_store_destroy(&self->task_pods);
    kube_store_destroy(&self->task_services);
    free(self);
    *self_p = NULL;
}

bool cache_synced(const cache_t *self)
{
    for (int i = self->opts.manifest ? WATCH_JOBS + 1 : WATCH_JOBS; i < CACHE_WATCHES; i++)
        if (!self->watches[i] || !kube_reflector_synced(self->watches[i]))
            return false;
    return true;
}

/* ---- questions ----------------------------------------------------------------------------------------------------- */

job_t *cache_job(const cache_t *self, const char *namespace_, const char *name)
{
    return kube_store_get(self->jobs, namespace_, name);
}

const dijob_pod_t *cache_pod(const cache_t *self, const char *namespace_, const char *name)
{
    const dijob_pod_t *pod = kube_store_get(self->pods, namespace_, name);
    return pod ? pod : kube_store_get(self->task_pods, namespace_, name);
}

const dijob_service_t *cache_service(const cache_t *self, const char *namespace_, const char *name)
{
    const dijob_service_t *service = kube_store_get(self->services, namespace_, name);
    return service ? service : kube_store_get(self->task_services, namespace_, name);
}

size_t cache_pod_count(const cache_t *self)
{
    return kube_store_count(self->pods) + kube_store_count(self->task_pods);
}

size_t cache_service_count(const cache_t *self)
{
    return kube_store_count(self->services) + kube_store_count(self->task_services);
}

bool cache_has_address(const dijob_pod_t *pod)
{
    return pod->phase != POD_SUCCEEDED && pod->phase != POD_FAILED;
}

static bool s_is_at(const kube_store_t *store, const char *job_uid, const char *ip)
{
    const void *at = NULL;
    const dijob_pod_t *pod;
    while ((pod = kube_store_next(store, POD_BY_IP, ip, &at)) != NULL)
        if (strcmp(pod->job_uid, job_uid) == 0 && cache_has_address(pod))
            return true;
    return false;
}

bool cache_is_at(const cache_t *self, const char *job_uid, const char *ip)
{
    return s_is_at(self->pods, job_uid, ip) || s_is_at(self->task_pods, job_uid, ip);
}

job_t *cache_job_by_uid(const cache_t *self, const char *uid)
{
    return kube_store_by_uid(self->jobs, uid);
}

static int s_by_age(const void *a, const void *b)
{
    const dijob_pod_t *x = *(const dijob_pod_t *const *)a, *y = *(const dijob_pod_t *const *)b;
    return x->created_s != y->created_s ? (x->created_s < y->created_s ? -1 : 1) : strcmp(x->meta.name, y->meta.name);
}

const dijob_pod_t *cache_own(const cache_t *self)
{
    const dijob_pod_t *pod =
        self->opts.own_pod ? kube_store_get(self->pods, self->opts.namespace_, self->opts.own_pod) : NULL;
    return pod && pod->role == DIJOB_COORDINATOR && strcmp(pod->job, self->opts.only_job) == 0 ? pod : NULL;
}

/*  Our own pod is the job's coordinator whoever made it; and it has ended when we say so, before anybody can see that. */
static void s_own(cache_t *self, const dijob_pod_t **pods, size_t *count)
{
    const dijob_pod_t *own = cache_own(self);
    size_t at = 0;
    if (!own)
        return;
    while (at < *count && pods[at] != own)
        at++;
    *count += at == *count;
    self->own = *own;
    pods[at] = &self->own;
    if (!self->own_end)
        return;
    self->own.phase = self->own_end == 's' ? POD_SUCCEEDED : POD_FAILED;
    self->own.main = self->own_end == 's' ? MAIN_COMPLETED : MAIN_ERROR;
}

/*  What two stores have under a key, and room for one more. Returns how many; *out is the caller's. */
static size_t s_both(const kube_store_t *one, const kube_store_t *two, int index, const char *key, const void ***out)
{
    const kube_store_t *const stores[] = {one, two};
    size_t count = 0, room = 8;
    const void **all = tt_array0(room + 1, sizeof *all), *entry;
    for (size_t i = 0; i < TT_COUNT(stores); i++) {
        const void *at = NULL;
        while ((entry = kube_store_next(stores[i], index, key, &at)) != NULL) {
            if (count == room)
                all = tt_realloc(all, tt_mul((room *= 2) + 1, sizeof *all));
            all[count++] = entry;
        }
    }
    *out = all;
    return count;
}

size_t cache_pods(cache_t *self, const char *job_uid, const dijob_pod_t ***out)
{
    const void **all;
    size_t count = s_both(self->pods, self->task_pods, POD_BY_JOB, job_uid, &all);
    const dijob_pod_t **pods = (const dijob_pod_t **)all;
    s_own(self, pods, &count);
    qsort(pods, count, sizeof *pods, s_by_age);
    *out = pods;
    return count;
}

size_t cache_services(const cache_t *self, const char *job_uid, const dijob_service_t ***out)
{
    const void **all;
    const size_t count = s_both(self->services, self->task_services, SERVICE_BY_JOB, job_uid, &all);
    *out = (const dijob_service_t **)all;
    return count;
}

/* ---- what the server refused --------------------------------------------------------------------------------------- */

static void s_refusal_drop(job_t *job, size_t at)
{
    s_refusal_clear(&job->refused[at]);
    job->refused[at] = job->refused[--job->refused_count];
}

void cache_allow(job_t *job, dijob_role_t role, int task)
{
    for (size_t i = job->refused_count; i-- > 0;)
        if (job->refused[i].role == role && job->refused[i].task == task)
            s_refusal_drop(job, i);
}

void cache_refuse(job_t *job, const dijob_refusal_t *refusal)
{
    cache_allow(job, refusal->role, refusal->task);
    job->refused = tt_realloc(job->refused, tt_mul(job->refused_count + 1, sizeof *job->refused));
    dijob_refusal_t *kept = &job->refused[job->refused_count++];
    *kept = *refusal;
    kept->words = tt_strdup(refusal->words);
    kept->reason = tt_strdup(refusal->reason);
}

int64_t cache_refused_until(job_t *job, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = job->refused_count; i-- > 0;)
        if (job->refused[i].until_ms <= now_ms)
            s_refusal_drop(job, i);
        else if (job->refused[i].until_ms < next_ms)
            next_ms = job->refused[i].until_ms;
    return next_ms;
}
