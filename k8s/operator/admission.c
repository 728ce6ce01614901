/*  admission - jobs that wait in a queue of Kueue: their Workloads watched, made before any pod, and told when the pods are gone and
 *  when the job has ended.
 *
 *  What a Workload says decides: nothing is remembered but which generation of the job it was written for. Until the Workloads there
 *  are have been listed nothing is done about a job of a queue that has pods: it may have been admitted. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/http/query.h"
#include "k8s/api/dump.h"
#include "k8s/front/kueue.h"
#include "k8s/operator/parts.h"

enum { BY_JOB };
#define FLAVORS_PATH KUEUE_PATH "/resourceflavors"

struct admission {
    operator_t *op;
    kube_store_t *workloads;
    kube_reflector_t *watch;
    char *missing; /* why there are none: the server's words; NULL = there are, or nobody knows yet */
};

/* ---- Workloads, as the API server tells of them ---------------------------------------------------------------------- */

static tt_status_t s_decode(void *ctx, const char *json, size_t size, void **entry)
{
    (void)ctx;
    kueue_t *workload = NULL;
    TT_TRY(kueue_decode(&workload, json, size));
    *entry = workload;
    return TT_OK;
}

static void s_destroy(void *entry)
{
    kueue_t *workload = entry;
    kueue_destroy(&workload);
}

static const char *s_by_job(const void *entry)
{
    const kueue_t *workload = entry;
    return *workload->job_uid ? workload->job_uid : NULL;
}

static void s_changed(void *ctx, const void *before, const void *now)
{
    const admission_t *self = ctx;
    const kueue_t *workload = now ? now : before;
    const cache_t *cache = self->op->cache;
    for (size_t i = 0; cache && i < cache->kind_count; i++)
        if (strcmp(cache->kinds[i].front->kind, workload->kind) == 0)
            round_soon(self->op, &cache->kinds[i], workload->meta.namespace_, workload->job);
}

static void s_look_at_all(const admission_t *self)
{
    const cache_t *cache = self->op->cache;
    for (size_t i = 0; cache && i < cache->kind_count; i++) {
        const void *at = NULL;
        const kube_meta_t *job;
        while ((job = kube_store_each(cache->kinds[i].jobs, &at)) != NULL)
            if (job_info((const job_t *)job).queue)
                round_soon(self->op, &cache->kinds[i], job->namespace_, job->name);
    }
}

static void s_synced(void *ctx)
{
    admission_t *self = ctx;
    free(self->missing);
    self->missing = NULL;
    log_info("%zu Workloads of " KUEUE_API, kube_store_count(self->workloads));
    s_look_at_all(self);
}

static void s_missing(void *ctx, const kube_reply_t *reply)
{
    admission_t *self = ctx;
    if (self->missing)
        return;
    self->missing =
        tt_sprintf("no Workloads of " KUEUE_API " are served to the operator: %d %s", reply->code, reply->text);
    log_warn("jobs with a queue wait: %s; they are looked for again now and then", self->missing);
    s_look_at_all(self);
}

tt_status_t admission_new(admission_t **self_p, operator_t *op)
{
    admission_t *self = tt_new0(sizeof *self);
    *self_p = self;
    self->op = op;
    const kube_store_ops_t ops = {
        .decode = s_decode, .destroy = s_destroy, .index = {[BY_JOB] = s_by_job}, .changed = s_changed, .ctx = self};
    TT_TRY(kube_store_new(&self->workloads, &ops));
    const char *namespace_ = op->opts.namespace_;
    char *path =
        namespace_ ? tt_sprintf(KUEUE_PATH "/namespaces/%s/workloads", namespace_) : tt_strdup(KUEUE_PATH "/workloads");
    const kube_reflector_opts_t opts = {.path = path,
        .label_selector = "app.kubernetes.io/managed-by=tutti-operator",
        .synced = s_synced,
        .missing = s_missing,
        .ctx = self};
    const tt_status_t status = kube_reflector_new(&self->watch, op->client, self->workloads, &opts);
    free(path);
    return status;
}

void admission_destroy(admission_t **self_p)
{
    admission_t *self = *self_p;
    if (!self)
        return;
    kube_reflector_destroy(&self->watch);
    kube_store_destroy(&self->workloads);
    free(self->missing);
    free(self);
    *self_p = NULL;
}

static const kueue_t *s_of(const operator_t *op, const job_t *job)
{
    const void *at = NULL;
    return kube_store_next(op->admission->workloads, BY_JOB, job->meta.uid, &at);
}

/* ---- what is known of a job ------------------------------------------------------------------------------------------ */

/*  Pods that have their resources still. */
static bool s_has_pods(const job_t *job)
{
    const void **pods = NULL;
    size_t there = 0;
    const size_t count = cache_pods(job->kind, job->meta.uid, &pods);
    for (size_t i = 0; i < count; i++)
        there += !entry_ended(pods[i]);
    free(pods);
    return there > 0;
}

/*  Does the queue decide about its pods? */
static bool s_is_queued(const operator_t *op, const job_t *job)
{
    const front_job_t info = job_info(job);
    return op->admission && job->kind->front->pod_template && info.queue && !info.final && !info.deleting &&
           !info.embedded && !info.refusal && !info.suspended;
}

static const char *s_words(const operator_t *op, const job_t *job, const kueue_t *workload)
{
    if (op->admission->missing)
        return op->admission->missing;
    if (job->notes.unqueued)
        return job->notes.unqueued;
    return workload ? workload->words : "";
}

bool admission_see(front_admission_t *out, const operator_t *op, const job_t *job)
{
    *out = (front_admission_t){0};
    if (!s_is_queued(op, job))
        return true;
    if (!kube_reflector_synced(op->admission->watch) && (!op->admission->missing || s_has_pods(job)))
        return false;
    const kueue_t *workload = s_of(op, job);
    *out = (front_admission_t){.queue = job_info(job).queue,
        .admitted = workload && kueue_goes(workload),
        .words = s_words(op, job, workload)};
    if (out->admitted) {
        out->shares = workload->shares;
        out->share_count = workload->share_count;
    }
    return true;
}

bool admission_waits(const operator_t *op, const job_t *job)
{
    front_admission_t admission;
    return admission_see(&admission, op, job) && admission.queue && !admission.admitted;
}

/* ---- what is due ----------------------------------------------------------------------------------------------------- */

typedef enum { NOTHING, APPLY, RELEASE, FINISH, REMOVE } due_t;

/*  What it was written for: the label is of no generation. Caller frees. */
static char *s_written_for(const job_t *job)
{
    const front_job_t info = job_info(job);
    return tt_sprintf("%lld/%s", (long long)info.generation, info.queue);
}

/*  With quota reserved its sets cannot be changed any more. */
static due_t s_due_of_queued(const job_t *job, const kueue_t *workload)
{
    if (!workload) /* who was begun without, or whose was deleted, gives back first what it has */
        return s_has_pods(job) ? NOTHING : APPLY;
    if (workload->deleting || workload->finished)
        return NOTHING;
    if (workload->reserved)
        return workload->evicted && !s_has_pods(job) ? RELEASE : NOTHING;
    char *now = s_written_for(job);
    const bool written = job->notes.workload && strcmp(job->notes.workload, now) == 0;
    free(now);
    return written ? NOTHING : APPLY;
}

static due_t s_due(const operator_t *op, const job_t *job)
{
    if (!op->admission || !job->kind->front->pod_template || !kube_reflector_synced(op->admission->watch))
        return NOTHING;
    const front_job_t info = job_info(job);
    const kueue_t *workload = s_of(op, job);
    if (s_is_queued(op, job))
        return s_due_of_queued(job, workload);
    if (!workload || workload->deleting || info.deleting || info.embedded)
        return NOTHING;
    if (info.final)
        return workload->finished ? NOTHING : FINISH;
    if (info.suspended)
        return s_has_pods(job) ? NOTHING : REMOVE;
    return info.queue ? NOTHING : REMOVE;
}

bool admission_due(const operator_t *op, const job_t *job)
{
    return s_due(op, job) != NOTHING;
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static void s_take(const errand_t *self, const kube_reply_t *reply)
{
    if (kube_store_put(self->op->admission->workloads, reply->body, reply->size) != TT_OK)
        log_warn("%s/%s: its Workload: %s", self->namespace_, self->job, tt_err_text());
}

static void s_note_words(job_t *job, const char *words)
{
    free(job->notes.unqueued);
    job->notes.unqueued = words ? tt_strdup(words) : NULL;
}

static void s_refused(const errand_t *self, job_t *job, const char *words)
{
    if (!job->notes.unqueued || strcmp(job->notes.unqueued, words) != 0)
        errand_tell_of(self, "FailedCreate", "Create", words);
    s_note_words(job, words);
}

/*  Whatever refuses it, the job waits: without it it would take what is others'. */
static tt_status_t s_applied(errand_t *self, job_t *job, const kube_reply_t *reply)
{
    if (errand_well(reply)) {
        char *name = kueue_name(job->kind->front, job->own);
        if (reply->code == 201)
            errand_tell_made(self, name);
        free(name);
        free(job->notes.workload);
        job->notes.workload = self->of;
        self->of = NULL;
        s_note_words(job, NULL);
        s_take(self, reply);
        return TT_OK;
    }
    if (!reply->held_back)
        s_refused(self, job, reply->text);
    return TT_UNAVAILABLE;
}

static void s_gone(errand_t *self, job_t *job)
{
    free(job->notes.workload);
    job->notes.workload = NULL;
    const kueue_t *workload = s_of(self->op, job);
    if (workload)
        kube_store_gone(
            self->op->admission->workloads, workload->meta.namespace_, workload->meta.name, workload->meta.version);
}

/*  What cannot be made is told as if it had been refused. */
static void s_cannot(errand_t *self, job_t *job, const char *words)
{
    s_refused(self, job, words);
    errand_end(self, TT_UNAVAILABLE);
}

static void s_apply(errand_t *self)
{
    char *text = kube_dump(self->found);
    errand_apply(self, text);
    free(text);
}

static void s_on_class(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    job_t *job = errand_job(self);
    operator_count(self->op, reply->code);
    json_t *class_ = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL;
    const tt_status_t status = class_ ? kueue_rank(self->found, class_) : TT_UNAVAILABLE;
    json_decref(class_);
    if (!job || reply->held_back) {
        errand_end(self, job ? TT_UNAVAILABLE : TT_OK);
    } else if (status == TT_OK) {
        s_apply(self);
    } else {
        char *words = tt_sprintf("its priority class: %s", reply->code == 200 ? tt_err_text() : reply->text);
        s_cannot(self, job, words);
        free(words);
    }
}

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    errand_t *self = ctx;
    job_t *job = errand_job(self);
    if (status != TT_OK || !job || !job_info(job).queue) {
        errand_end(self, job ? status : TT_OK);
        return;
    }
    self->of = s_written_for(job);
    if (kueue_make(&self->found, job->kind->front, job->own, job_info(job).queue, fetched->job, fetched->config) !=
        TT_OK) {
        s_cannot(self, job, tt_err_text());
        return;
    }
    char *path = kueue_class_path(self->found, fetched->job);
    if (path)
        errand_send(self, (kube_request_t){.method = "GET"}, path, s_on_class);
    else
        s_apply(self);
    free(path);
}

/* ---- its status ------------------------------------------------------------------------------------------------------ */

static void s_on_told(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    operator_count(self->op, reply->code);
    if (errand_well(reply))
        s_take(self, reply);
    else if (reply->code != 409 && reply->code != 404 && !reply->held_back)
        errand_tell_of(self, "FailedUpdate", "Update", reply->text);
    errand_end(self, errand_well(reply) || reply->code == 404 ? TT_OK : TT_UNAVAILABLE);
}

/*  false: it is not what it was looked at for. */
static bool s_edit(const errand_t *self, const job_t *job)
{
    const front_job_t info = job_info(job);
    const due_t due = s_due(self->op, job);
    if (due == RELEASE) {
        kueue_release(self->found, operator_now_s(self->op));
    } else if (due == FINISH) {
        const char *phase = job->kind->front->phases[info.phase];
        char *words = tt_sprintf("%s %s: %s", job->kind->front->kind, self->job, phase);
        kueue_finish(self->found, strcmp(phase, "Succeeded") == 0, words, operator_now_s(self->op));
        free(words);
    }
    return due == RELEASE || due == FINISH;
}

/*  All of it as it was read, with its version: were it changed meanwhile, 409. */
static void s_on_found(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    const job_t *job = errand_job(self);
    operator_count(self->op, reply->code);
    self->found = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL;
    if (!job || !self->found || !s_edit(self, job)) {
        errand_end(self, !job || self->found || reply->code == 404 ? TT_OK : TT_UNAVAILABLE);
        return;
    }
    char *body = kube_dump(self->found), *path = tt_sprintf("%s/status", self->path);
    errand_send(self, (kube_request_t){.method = "PUT", .body = body}, path, s_on_told);
    free(body);
    free(path);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */

static errand_t *s_errand(operator_t *op, const job_t *job, errand_fn done, void *ctx)
{
    static const errand_way_t way = {.word = "workload", .applied = s_applied, .gone = s_gone};
    const kueue_t *workload = s_of(op, job);
    char *name = workload ? tt_strdup(workload->meta.name) : kueue_name(job->kind->front, job->own);
    char *path = tt_sprintf(KUEUE_PATH "/namespaces/%s/workloads/%s", job->meta.namespace_, name);
    errand_t *errand = errand_new(op, job, &way, path, done, ctx);
    free(name);
    free(path);
    return errand;
}

void admission_do(errand_t **out, operator_t *op, const job_t *job, errand_fn done, void *ctx)
{
    const due_t due = s_due(op, job);
    errand_t *errand = s_errand(op, job, done, ctx);
    *out = errand;
    if (due == REMOVE)
        errand_remove(errand);
    else if (due == APPLY)
        fetch_begin(op, job->kind, errand->namespace_, errand->job, kueue_needs(job->kind->front, job->own),
            s_on_fetched, errand);
    else
        errand_send(errand, (kube_request_t){.method = "GET"}, errand->path, s_on_found);
}

/* ---- where its pods go ----------------------------------------------------------------------------------------------- */

static void s_next_flavor(errand_t *self);

static void s_unknown(errand_t *self, const char *what, const kube_reply_t *reply)
{
    char *words = tt_sprintf("%s, which its Workload was admitted with: %s", what, reply->text);
    if (!reply->held_back)
        errand_tell(self, "FailedCreate", "No pod is made", words);
    free(words);
    errand_end(self, TT_UNAVAILABLE);
}

static void s_on_flavor(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    json_t *names = json_object_get(self->found, "names");
    const char *name = json_string_value(json_array_get(names, 0));
    json_t *flavor = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL;
    operator_count(self->op, reply->code);
    if (!flavor) {
        char *what = tt_sprintf("ResourceFlavor %s", name);
        s_unknown(self, what, reply);
        free(what);
        return;
    }
    json_object_set_new(json_object_get(self->found, "flavors"), name, flavor);
    json_array_remove(names, 0);
    s_next_flavor(self);
}

static void s_next_flavor(errand_t *self)
{
    const json_t *names = json_object_get(self->found, "names");
    const char *name = json_string_value(json_array_get(names, 0));
    if (!name) {
        self->made = kueue_updates(json_object_get(self->found, "workload"), json_object_get(self->found, "flavors"));
        errand_end(self, TT_OK);
        return;
    }
    char *escaped = tt_query_escape(name), *path = tt_sprintf(FLAVORS_PATH "/%s", escaped);
    errand_send(self, (kube_request_t){.method = "GET"}, path, s_on_flavor);
    free(escaped);
    free(path);
}

static void s_on_workload(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    json_t *workload = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL;
    operator_count(self->op, reply->code);
    if (!workload) {
        errand_end(self, TT_UNAVAILABLE); /* the watch tells what has become of it */
        return;
    }
    self->found = json_pack("{s:o, s:o, s:{}}", "workload", workload, "names", kueue_flavors(workload), "flavors");
    s_next_flavor(self);
}

errand_t *admission_updates(operator_t *op, const job_t *job, errand_fn done, void *ctx)
{
    errand_t *errand = s_errand(op, job, done, ctx);
    errand_send(errand, (kube_request_t){.method = "GET"}, errand->path, s_on_workload);
    return errand;
}
