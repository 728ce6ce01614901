/*  round - one look at one job: plan, then do. New things first, then the status and its events, then removals: nothing is
 *  removed before the phase that is the reason for it has been written down. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/chain.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/api/dump.h"
#include "k8s/front/kueue.h"
#include "k8s/operator/parts.h"

enum { FORBIDDEN_MS = 60000 }; /* a quota may be freed, a right granted */

struct round {
    operator_t *op;
    kind_t *kind;
    char key[ROUND_KEY], namespace_[64], job[256], job_uid[37];
    front_plan_t plan;
    bool failed, look; /* look: something came up that the plan is to know of */
    int needs;         /* FRONT_NEEDS_*: what the plan's pods are made of */
    bool grouped;      /* pods that are made are of the job's PodGroup */
    json_t *updates;   /* what pods that are made get from the job's queue; NULL = nothing */
    bool was_final;    /* the job had ended when this look began */
    uint64_t version;  /* of the job that was looked at             */
    int64_t made_of;   /* the generation of the job that pods are made of */
    bool partly;       /* front_t.config cannot be read now: those that are made without it are made */
    uint64_t request;
    writes_t *batch;
    errand_t *errand;
    round_t *next, **link;
};

static void s_fetch(round_t *self);
static void s_status(round_t *self);
static void s_removals(round_t *self);
static void s_tell_queue(round_t *self);
static void s_remove_all(round_t *self);
static void s_forget(round_t *self);

void round_key(char out[ROUND_KEY], const kind_t *kind, const char *namespace_, const char *job)
{
    snprintf(out, ROUND_KEY, "%s/%s/%s", kind->front->name, namespace_, job);
}

void round_soon(void *ctx, const kind_t *kind, const char *namespace_, const char *job)
{
    operator_t *op = ctx;
    char key[ROUND_KEY];
    round_key(key, kind, namespace_, job);
    tt_queue_add(op->queue, key);
}

static void s_free(round_t *self)
{
    TT_CHAIN_REMOVE(self);
    kube_client_cancel(self->op->client, self->request);
    writes_destroy(&self->batch);
    errand_drop(self->errand);
    json_decref(self->updates);
    front_plan_clear(&self->plan);
    free(self);
}

void round_drop_all(operator_t *op)
{
    while (op->rounds)
        s_free(op->rounds);
}

static job_t *s_job(const round_t *self)
{
    job_t *job = cache_job(self->kind, self->namespace_, self->job);
    return job && strcmp(job->meta.uid, self->job_uid) == 0 ? job : NULL;
}

static void s_end(round_t *self, bool well)
{
    tt_queue_t *queue = self->op->queue;
    char key[sizeof self->key];
    memcpy(key, self->key, sizeof key);
    job_t *job = s_job(self);
    const int64_t now_ms = tt_now_ms(tt_reactor_clock(self->op->loop));
    const int64_t allowed_ms = job ? front_refused_until(&job->notes.refused, now_ms) : INT64_MAX;
    if (well && self->plan.again_s >= 0)
        tt_queue_add_after(queue, key, self->plan.again_s * 1000);
    if (allowed_ms < INT64_MAX)
        tt_queue_add_after(queue, key, allowed_ms - now_ms + 50); /* a look before it is over would change nothing */
    self->op->counters.failures += !well && operator_leads(self->op); /* what was held back is another's to do */
    s_free(self);
    tt_queue_done(queue, key, well);
}

/*  At once, from a new look. */
static void s_again(round_t *self)
{
    tt_queue_add(self->op->queue, self->key);
    s_end(self, true);
}

static bool s_has(const round_t *self, front_do_t what)
{
    for (size_t i = 0; i < self->plan.count; i++)
        if (self->plan.actions[i].what == what)
            return true;
    return false;
}

/* ---- new things ---------------------------------------------------------------------------------------------------- */

/*  Pods of the job as it is: of what it was before the change that may mend it nothing is noted. */
static void s_refused(round_t *self, front_refusal_t refusal)
{
    job_t *job = s_job(self);
    if (job && job_info(job).generation == self->made_of)
        front_refuse(&job->notes.refused, &refusal);
}

/*  Of an object beside pods and services the job is to remember that it is there, or that it is gone. */
static void s_remember(job_t *job, const writes_one_t *write)
{
    uint32_t bit = 0;
    for (size_t i = 0; i < FRONT_OBJECTS; i++)
        if (write->what == &job->kind->front->objects[i] && write->status == TT_OK)
            bit = 1u << i;
    job->notes.made = write->deletes ? job->notes.made & ~bit : job->notes.made | bit;
    job->notes.removed = write->deletes ? job->notes.removed | bit : job->notes.removed & ~bit;
}

static void s_on_created(void *ctx, writes_t *batch)
{
    round_t *self = ctx;
    job_t *job = s_job(self);
    const int64_t soon_ms = tt_now_ms(tt_reactor_clock(self->op->loop)) + FORBIDDEN_MS;
    for (size_t i = 0; i < batch->count; i++) {
        const writes_one_t *write = batch->writes[i];
        const bool pod = write->what == &writes_pod;
        self->look |= write->what != &writes_service && (write->status == TT_OK || write->status == TT_INVALID);
        self->failed |= write->status != TT_OK && (write->status != TT_INVALID || !pod);
        if (write->status == TT_INVALID && pod)
            s_refused(self,
                (front_refusal_t){write->group, write->text, write->reason, write->code == 403 ? soon_ms : INT64_MAX});
        if (write->status == TT_OK && pod && job)
            front_allow(&job->notes.refused, write->group);
        if (job)
            s_remember(job, write);
    }
    writes_destroy(&self->batch);
    if (self->look && !self->failed)
        s_again(self); /* the status is to tell of what there is now */
    else
        s_status(self);
}

/*  A pod that cannot be built is refused by ourselves, in our words. */
static void s_not_built(round_t *self, const front_action_t *action)
{
    log_warn("%s: %s", self->key, tt_err_text());
    if (action->what != FRONT_CREATE_POD)
        return;
    s_refused(self, (front_refusal_t){action->group, tt_err_text(), "Invalid", INT64_MAX});
    self->look = true;
}

static const front_object_t *s_what(const round_t *self, const front_action_t *action)
{
    return action->what == FRONT_CREATE_POD       ? &writes_pod
           : action->what == FRONT_CREATE_SERVICE ? &writes_service
                                                  : &self->kind->front->objects[action->object];
}

static void s_create_one(round_t *self, const job_t *job, const fetched_t *fetched, const front_action_t *action)
{
    const front_object_t *what = s_what(self, action);
    front_parts_t parts = {.job = job->own,
        .whole = fetched->job,
        .config = fetched->config,
        .server_url = self->op->server_url,
        .accelerators = self->op->accelerators};
    json_t *object = NULL;
    if (action->what == FRONT_CREATE_SERVICE && action->name) {
        parts.pod = cache_pod(self->kind, self->namespace_, action->name);
        if (!parts.pod)
            return; /* gone since */
    }
    if (self->kind->front->build(&object, action, &parts) == TT_OK) {
        if (action->what == FRONT_CREATE_POD && self->grouped)
            gang_dress(self->op->gang, object, job->meta.name);
        if (action->what == FRONT_CREATE_POD && self->updates)
            kueue_dress(object, self->updates, action->who);
        writes_create(self->batch, what, object)->group = action->group;
    } else {
        s_not_built(self, action);
    }
    if (what->secret)
        kube_wipe_secret(&object);
    else
        json_decref(object);
}

static bool s_is_made(const round_t *self, const front_action_t *action)
{
    if (action->what == FRONT_CREATE_POD)
        return !s_has(self, FRONT_CREATE_OBJECT) && !(self->partly && (action->needs & FRONT_NEEDS_CONFIG));
    return action->what == FRONT_CREATE_SERVICE || action->what == FRONT_CREATE_OBJECT;
}

static void s_create(round_t *self, const job_t *job, const fetched_t *fetched)
{
    self->made_of = job_info(job).generation;
    self->batch = writes_new(self->op, job, s_on_created, self);
    self->batch->lead = true;
    for (size_t i = 0; i < self->plan.count; i++)
        if (s_is_made(self, &self->plan.actions[i]))
            s_create_one(self, job, fetched, &self->plan.actions[i]);
    if (self->batch->count == 0)
        s_on_created(self, self->batch);
}

/*  The pods come in the next round, which finds the PodGroup as it is to be. Where that cannot be written none comes, but what
 *  is to go goes. */
static void s_on_group(void *ctx, tt_status_t status, const json_t *made)
{
    (void)made;
    round_t *self = ctx;
    self->errand = NULL;
    self->failed |= status != TT_OK;
    if (status == TT_OK)
        s_again(self);
    else if (s_has(self, FRONT_CREATE_POD))
        s_end(self, false);
    else
        s_status(self);
}

/*  First the PodGroup, then its pods: a scheduler that meets a pod without its group leaves it. */
static void s_create_with_group(round_t *self, const job_t *job, const fetched_t *fetched)
{
    char *text = self->grouped ? gang_due(self->op, job, fetched->job) : NULL;
    if (text)
        self->errand = gang_write(self->op, job, text, s_on_group, self);
    else
        s_create(self, job, fetched);
    free(text);
}

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    round_t *self = ctx;
    const job_t *job = s_job(self);
    if (status == TT_OK && job) {
        s_create_with_group(self, job, fetched);
    } else if (status == TT_UNAVAILABLE && (self->needs & FRONT_NEEDS_CONFIG)) {
        log_warn("%s: %s", self->key, tt_err_text());
        self->partly = self->failed = true; /* failed: the whole of it again, after a back-off */
        self->needs &= ~FRONT_NEEDS_CONFIG;
        s_fetch(self);
    } else {
        s_end(self, status == TT_OK || status == TT_NOT_FOUND);
    }
}

static void s_fetch(round_t *self)
{
    fetch_begin(self->op, self->kind, self->namespace_, self->job, self->needs, s_on_fetched, self);
}

static void s_on_updates(void *ctx, tt_status_t status, const json_t *made)
{
    round_t *self = ctx;
    self->errand = NULL;
    self->updates = json_incref((json_t *)(uintptr_t)made);
    if (status == TT_OK)
        s_fetch(self);
    else
        s_end(self, false);
}

/*  What templates the plan needs. */
static int s_needs(const round_t *self)
{
    int what = 0;
    for (size_t i = 0; i < self->plan.count; i++)
        what |= self->plan.actions[i].needs;
    return what;
}

/* ---- status and events --------------------------------------------------------------------------------------------- */

static kube_ref_t s_about(const round_t *self, const job_t *job)
{
    return cache_ref(self->kind, self->namespace_, self->job, self->job_uid, job ? job->meta.version : 0);
}

static void s_events(round_t *self)
{
    const job_t *job = s_job(self);
    if (!job || self->op->opts.manifest || !operator_leads(self->op))
        return;
    const kube_ref_t about = s_about(self, job);
    for (size_t i = 0; i < self->plan.count; i++)
        if (self->plan.actions[i].what == FRONT_EVENT)
            kube_recorder_event(self->kind->recorder, &about, self->plan.actions[i].type, self->plan.actions[i].reason,
                "%s", self->plan.actions[i].message);
}

static void s_on_status(void *ctx, const kube_reply_t *reply)
{
    round_t *self = ctx;
    self->request = 0;
    operator_count(self->op, reply->code);
    if (reply->code == 200) {
        if (!self->was_final) /* the watch may have told of it before this answer */
            operator_count_end(self->op, self->kind->front, self->plan.status);
        if (kube_store_put(self->kind->jobs, reply->body, reply->size) != TT_OK)
            log_warn("%s: the answer to the status: %s", self->key, tt_err_text());
        s_events(self);
        s_removals(self);
        return;
    }
    if (reply->code != 409 && reply->code != 404 && !reply->held_back)
        log_warn("%s: the status was not taken: %d %s", self->key, reply->code, reply->text);
    s_end(self, reply->code == 404);
}

static void s_status(round_t *self)
{
    const job_t *job = s_job(self);
    if (!job) {
        s_end(self, true);
        return;
    }
    if (self->plan.status && self->op->opts.manifest && cache_keep_status(job, self->plan.status) != TT_OK)
        log_warn("%s: %s", self->key, tt_err_text());
    if (!self->plan.status || self->op->opts.manifest) {
        s_events(self);
        s_removals(self);
        return;
    }
    const front_t *front = self->kind->front;
    char *path = tt_sprintf("%s/namespaces/%s/%s/%s/status?fieldManager=%s", self->kind->path, self->namespace_,
        front->plural, self->job, front->manager);
    /* with the version that it was decided on: where somebody wrote meanwhile, 409, and it is decided anew */
    char *body = tt_sprintf("[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%llu\"},"
                            "{\"op\":\"add\",\"path\":\"/status\",\"value\":%s}]",
        (unsigned long long)job->meta.version, self->plan.status);
    const bool urgent = s_has(self, FRONT_DELETE_POD);
    const kube_request_t request = {.method = "PATCH",
        .path = path,
        .body = body,
        .content_type = "application/json-patch+json",
        .timeout_ms = 2 * WRITES_TURN_MS,
        .priority = urgent ? KUBE_SERVICES : KUBE_STATUS,
        .may = operator_may,
        .may_ctx = self->op};
    self->request = kube_client_send(self->op->client, &request, s_on_status, self);
    free(path);
    free(body);
}

/* ---- removals ------------------------------------------------------------------------------------------------------ */

static void s_on_forgotten(void *ctx, const kube_reply_t *reply)
{
    round_t *self = ctx;
    const bool gone = reply->code >= 200 && reply->code < 300;
    const kube_ref_t about = s_about(self, s_job(self));
    self->request = 0;
    operator_count(self->op, reply->code);
    if (gone) { /* with a time at which it will go, once what it owns has gone */
        self->op->counters.expired++;
        if (kube_store_put(self->kind->jobs, reply->body, reply->size) != TT_OK)
            kube_store_gone(self->kind->jobs, self->namespace_, self->job, about.version);
        kube_recorder_event(self->kind->recorder, &about, "Normal", "TTLExpired",
            "Delete %s: %s: its ttlSecondsAfterFinished is over", about.kind, self->job);
    } else if (reply->code != 404 && reply->code != 409 && !reply->held_back) {
        log_warn("%s: its time is over, and it was not deleted: %d %s", self->key, reply->code, reply->text);
        kube_recorder_event(self->kind->recorder, &about, "Warning", "FailedDelete", "Delete %s: %s: %s", about.kind,
            self->job, reply->text);
    }
    s_end(self, gone || reply->code == 404 || reply->code == 409);
}

/*  The last of all. Only as it was looked at (409 else: somebody gave it more time), and the garbage collector takes with it
 *  what it owns, which goes first. */
static void s_forget(round_t *self)
{
    if (!s_job(self) || self->failed || !s_has(self, FRONT_DELETE_JOB)) {
        s_end(self, !self->failed);
        return;
    }
    if (self->plan.status) { /* it is another version by now, by our own doing */
        s_again(self);
        return;
    }
    char *path =
        tt_sprintf("%s/namespaces/%s/%s/%s", self->kind->path, self->namespace_, self->kind->front->plural, self->job);
    char *body = tt_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Foreground\","
                            "\"preconditions\":{\"uid\":\"%s\",\"resourceVersion\":\"%llu\"}}",
        self->job_uid, (unsigned long long)self->version);
    const kube_request_t request = {.method = "DELETE",
        .path = path,
        .body = body,
        .timeout_ms = WRITES_TURN_MS,
        .priority = KUBE_STATUS,
        .may = operator_may,
        .may_ctx = self->op};
    self->request = kube_client_send(self->op->client, &request, s_on_forgotten, self);
    free(path);
    free(body);
}

static void s_on_removed(void *ctx, writes_t *batch)
{
    round_t *self = ctx;
    job_t *job = s_job(self);
    for (size_t i = 0; i < batch->count; i++) {
        self->failed |= batch->writes[i]->status != TT_OK;
        if (job)
            s_remember(job, batch->writes[i]);
    }
    s_forget(self);
}

static void s_remove(round_t *self, const front_action_t *action)
{
    const kube_meta_t *meta = NULL;
    if (action->what == FRONT_DELETE_OBJECT) {
        writes_delete(self->batch, &self->kind->front->objects[action->object],
            &(kube_meta_t){.name = (char *)(uintptr_t)action->name}, -1);
    } else if (action->what == FRONT_DELETE_SERVICE) {
        if ((meta = cache_service(self->kind, self->namespace_, action->name)) != NULL)
            writes_delete(self->batch, &writes_service, meta, -1);
    } else if (action->what == FRONT_DELETE_POD) {
        meta = cache_pod(self->kind, self->namespace_, action->name);
        if (meta && meta != cache_own(self->op->cache)) /* that ends by itself, and with its exit code */
            writes_delete(self->batch, &writes_pod, meta, action->grace_s);
    }
}

static bool s_removes(const round_t *self)
{
    return s_has(self, FRONT_DELETE_POD) || s_has(self, FRONT_DELETE_SERVICE) || s_has(self, FRONT_DELETE_OBJECT);
}

static void s_on_ungrouped(void *ctx, tt_status_t status, const json_t *made)
{
    (void)made;
    round_t *self = ctx;
    self->errand = NULL;
    self->failed |= status != TT_OK;
    s_tell_queue(self);
}

/*  Its PodGroup would hold its place in the queue. */
static void s_removals(round_t *self)
{
    const job_t *job = s_job(self);
    if (job && gang_over(self->op, job))
        self->errand = gang_remove(self->op, job, s_on_ungrouped, self);
    else
        s_tell_queue(self);
}

static void s_on_queue_told(void *ctx, tt_status_t status, const json_t *made)
{
    (void)made;
    round_t *self = ctx;
    self->errand = NULL;
    self->failed |= status != TT_OK;
    s_remove_all(self);
}

/*  Its Workload: to be made, told that the pods are gone or that the job has ended, or to go. */
static void s_tell_queue(round_t *self)
{
    const job_t *job = s_job(self);
    if (job && admission_due(self->op, job))
        admission_do(&self->errand, self->op, job, s_on_queue_told, self);
    else
        s_remove_all(self);
}

static void s_remove_all(round_t *self)
{
    const job_t *job = s_job(self);
    if (job && s_removes(self)) {
        self->batch = writes_new(self->op, job, s_on_removed, self);
        self->batch->lead = true;
        for (size_t i = 0; i < self->plan.count; i++)
            s_remove(self, &self->plan.actions[i]);
        if (self->batch->count > 0)
            return;
        writes_destroy(&self->batch);
    }
    s_forget(self);
}

/* ---- a look -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_plan(front_plan_t *out, operator_t *op, job_t *job, const front_admission_t *admission)
{
    const void **pods = NULL, **services = NULL;
    (void)front_refused_until(&job->notes.refused, tt_now_ms(tt_reactor_clock(op->loop)));
    front_view_t view = {.job = job->own,
        /* an embedded operator may not make secrets: the user does */
        .made = op->opts.own_pod ? UINT32_MAX : job->notes.made,
        .removed = job->notes.removed,
        .now_s = operator_now_s(op),
        .random = operator_random(op),
        .refusals = job->notes.refused.list,
        .refusal_count = job->notes.refused.count,
        .admission = *admission};
    view.pod_count = cache_pods(job->kind, job->meta.uid, &pods);
    view.service_count = cache_services(job->kind, job->meta.uid, &services);
    view.pods = pods;
    view.services = services;
    const tt_status_t status = job->kind->front->plan(out, &view);
    free(pods);
    free(services);
    return status;
}

static round_t *s_new(operator_t *op, const char *key, const job_t *job)
{
    round_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->kind = job->kind;
    snprintf(self->key, sizeof self->key, "%s", key);
    snprintf(self->namespace_, sizeof self->namespace_, "%s", job->meta.namespace_);
    snprintf(self->job, sizeof self->job, "%s", job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    TT_CHAIN_ADD(&op->rounds, self);
    return self;
}

/*  The job of a key; NULL: it is gone. */
static job_t *s_find(const operator_t *op, const char *key)
{
    const char *namespace_ = strchr(key, '/') + 1, *name = strchr(namespace_, '/') + 1;
    const kind_t *kind = cache_kind_named(op->cache, key, (size_t)(namespace_ - key) - 1);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(name - namespace_) - 1, namespace_);
    return kind ? cache_job(kind, text, name) : NULL;
}

void round_begin(void *ctx, const char *key)
{
    operator_t *op = ctx;
    job_t *job = s_find(op, key);
    op->counters.rounds++;
    if (job && job->notes.reign != op->reign) /* here, as answers to what we sent before may have come since */
        cache_forget_notes(job, op->reign);
    front_admission_t admission;
    /* of a kind that came later: pods and services, too */
    const bool known = job && cache_kind_synced(job->kind) && admission_see(&admission, op, job);
    if (!known || (job_info(job).embedded && !op->opts.only_job)) {
        tt_queue_done(op->queue, key, true);
        return;
    }
    round_t *self = s_new(op, key, job);
    self->was_final = job_info(job).final;
    self->version = job->meta.version;
    const tt_status_t status = s_plan(&self->plan, op, job, &admission);
    if (status != TT_OK) {
        log_error("%s: %s", key, tt_err_text());
        s_end(self, false);
        return;
    }
    self->needs = s_needs(self);
    const bool pods = s_has(self, FRONT_CREATE_POD) || s_has(self, FRONT_DELETE_POD);
    self->grouped = pods && !gang_over(op, job) && gang_groups(op, job);
    if (self->grouped) /* the resources that its pods ask for are added up */
        self->needs |= FRONT_NEEDS_JOB;
    if (!self->needs)
        cache_forget_text(job);
    if (admission.queue && s_has(self, FRONT_CREATE_POD))
        self->errand = admission_updates(op, job, s_on_updates, self);
    else if (self->needs)
        s_fetch(self);
    else if (s_has(self, FRONT_CREATE_SERVICE) || s_has(self, FRONT_CREATE_OBJECT))
        s_create(self, job, &(fetched_t){0});
    else
        s_status(self);
}
