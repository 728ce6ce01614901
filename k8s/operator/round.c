/*  round - one look at one job: plan, then do. New things first, then the status and its events, then removals: nothing is
 *  removed before the phase that is the reason for it has been written down. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/operator/parts.h"

enum { FORBIDDEN_MS = 60000 }; /* a quota may be freed, a right granted */

struct round {
    operator_t *op;
    char key[320], namespace_[64], job[256], job_uid[37];
    dijob_plan_t plan;
    bool failed, look; /* look: something came up that the plan is to know of */
    int needs;         /* FETCH_*: what the plan's pods are made of */
    bool was_final;    /* the job had ended when this look began */
    uint64_t version;  /* of the job that was looked at             */
    bool partly;       /* what aggregators are made of cannot be read now: the others are made */
    uint64_t request;
    writes_t *batch;
    round_t *next, **link;
};

static void s_status(round_t *self);
static void s_removals(round_t *self);
static void s_forget(round_t *self);

void round_key(char out[320], const char *namespace_, const char *job)
{
    snprintf(out, 320, "%s/%s", namespace_, job);
}

static void s_free(round_t *self)
{
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    kube_client_cancel(self->op->client, self->request);
    writes_destroy(&self->batch);
    dijob_plan_clear(&self->plan);
    free(self);
}

void round_drop_all(operator_t *op)
{
    while (op->rounds)
        s_free(op->rounds);
}

static job_t *s_job(const round_t *self)
{
    job_t *job = cache_job(self->op->cache, self->namespace_, self->job);
    return job && strcmp(job->meta.uid, self->job_uid) == 0 ? job : NULL;
}

static void s_end(round_t *self, bool well)
{
    kube_queue_t *queue = self->op->queue;
    char key[sizeof self->key];
    memcpy(key, self->key, sizeof key);
    job_t *job = s_job(self);
    const int64_t now_ms = tt_now_ms(kube_loop_clock(self->op->loop));
    const int64_t allowed_ms = job ? cache_refused_until(job, now_ms) : INT64_MAX;
    if (well && self->plan.again_s >= 0)
        kube_queue_add_after(queue, key, self->plan.again_s * 1000);
    if (allowed_ms < INT64_MAX)
        kube_queue_add_after(queue, key, allowed_ms - now_ms + 50); /* a look before it is over would change nothing */
    self->op->counters.failures += !well;
    s_free(self);
    kube_queue_done(queue, key, well);
}

/*  At once, from a new look. */
static void s_again(round_t *self)
{
    kube_queue_add(self->op->queue, self->key);
    s_end(self, true);
}

static bool s_has(const round_t *self, dijob_do_t what)
{
    for (size_t i = 0; i < self->plan.count; i++)
        if (self->plan.actions[i].what == what)
            return true;
    return false;
}

/* ---- new things ---------------------------------------------------------------------------------------------------- */

static void s_refused(round_t *self, job_t *job, const writes_one_t *write)
{
    const bool spec = write->code != 403;
    const int64_t now_ms = tt_now_ms(kube_loop_clock(self->op->loop));
    if (job)
        cache_refuse(job, &(dijob_refusal_t){.role = write->role,
                              .task = write->task,
                              .words = write->text,
                              .reason = write->reason,
                              .until_ms = spec ? INT64_MAX : now_ms + FORBIDDEN_MS});
}

static void s_on_created(void *ctx, writes_t *batch)
{
    round_t *self = ctx;
    job_t *job = s_job(self);
    for (size_t i = 0; i < batch->count; i++) {
        const writes_one_t *write = batch->writes[i];
        self->look |= write->kind != WRITES_SERVICE && (write->status == TT_OK || write->status == TT_INVALID);
        self->failed |= write->status != TT_OK && (write->status != TT_INVALID || write->kind != WRITES_POD);
        if (write->status == TT_INVALID && write->kind == WRITES_POD)
            s_refused(self, job, write);
        if (write->status == TT_OK && write->kind == WRITES_CURVE && job)
            job->curve = true;
        if (write->status == TT_OK && write->kind == WRITES_POD && job)
            cache_allow(job, write->role, write->task);
    }
    writes_destroy(&self->batch);
    if (self->look && !self->failed)
        s_again(self); /* the status is to tell of what there is now */
    else
        s_status(self);
}

static void s_create_pod(round_t *self, const fetched_t *fetched, const dijob_pod_want_t *asked)
{
    json_t *object = NULL;
    dijob_pod_want_t want = *asked;
    want.server_url = self->op->server_url;
    want.agconfig = fetched->agconfig;
    const int task = want.role == DIJOB_TASK ? want.task : -1;
    if (dijob_build_pod(&object, fetched->job, &want) == TT_OK) {
        writes_one_t *write = writes_create(self->batch, WRITES_POD, object);
        write->role = want.role;
        write->task = task;
    } else {
        job_t *job = s_job(self);
        log_warn("%s: %s", self->key, tt_err_text());
        if (job)
            cache_refuse(job, &(dijob_refusal_t){
                                  want.role, task, .words = tt_err_text(), .reason = "Invalid", .until_ms = INT64_MAX});
        self->look = job != NULL;
    }
    json_decref(object);
}

static void s_create_service(round_t *self, const job_t *job, const char *pod_name)
{
    json_t *object = NULL;
    const dijob_pod_t *pod = pod_name ? cache_pod(self->op->cache, self->namespace_, pod_name) : NULL;
    if (pod_name && !pod)
        return; /* gone since */
    const tt_status_t status =
        pod ? dijob_build_service(&object, job->dijob, pod) : dijob_build_job_service(&object, job->dijob);
    if (status == TT_OK)
        writes_create(self->batch, WRITES_SERVICE, object);
    else
        log_warn("%s: %s", self->key, tt_err_text());
    json_decref(object);
}

static void s_create_curve(round_t *self, const job_t *job)
{
    json_t *object = NULL;
    if (dijob_build_curve(&object, job->dijob) == TT_OK)
        writes_create(self->batch, WRITES_CURVE, object);
    else
        log_warn("%s: %s", self->key, tt_err_text());
    dijob_wipe_curve(&object);
}

static void s_create(round_t *self, const job_t *job, const fetched_t *fetched)
{
    const bool curve = s_has(self, DIJOB_DO_CREATE_CURVE); /* before the first pod */
    self->batch = writes_new(self->op, job->dijob, s_on_created, self);
    writes_lead(self->batch);
    for (size_t i = 0; i < self->plan.count; i++) {
        const dijob_action_t *action = &self->plan.actions[i];
        if (action->what == DIJOB_DO_CREATE_CURVE)
            s_create_curve(self, job);
        else if (action->what == DIJOB_DO_CREATE_POD && !curve &&
                 !(self->partly && action->pod.role == DIJOB_AGGREGATOR))
            s_create_pod(self, fetched, &action->pod);
        else if (action->what == DIJOB_DO_CREATE_SERVICE)
            s_create_service(self, job, action->name);
    }
    if (self->batch->count > 0)
        return;
    writes_destroy(&self->batch);
    if (self->look)
        s_again(self);
    else
        s_status(self);
}

static void s_on_fetched(void *ctx, tt_status_t status, const fetched_t *fetched)
{
    round_t *self = ctx;
    const job_t *job = s_job(self);
    if (status == TT_OK && job) {
        s_create(self, job, fetched);
    } else if (status == TT_UNAVAILABLE && (self->needs & FETCH_AGCONFIG)) {
        log_warn("%s: %s", self->key, tt_err_text());
        self->partly = self->failed = true; /* failed: the whole of it again, after a back-off */
        self->needs &= ~FETCH_AGCONFIG;
        fetch_begin(self->op, self->namespace_, self->job, self->needs, s_on_fetched, self);
    } else {
        s_end(self, status == TT_OK || status == TT_NOT_FOUND);
    }
}

/*  What templates the plan needs. */
static int s_needs(const round_t *self, const job_t *job)
{
    int what = 0;
    for (size_t i = 0; i < self->plan.count; i++)
        if (self->plan.actions[i].what == DIJOB_DO_CREATE_POD) {
            what |= FETCH_JOB;
            if (self->plan.actions[i].pod.role == DIJOB_AGGREGATOR && !job->dijob->has[DIJOB_AGGREGATOR])
                what |= FETCH_AGCONFIG;
        }
    return what;
}

/* ---- status and events --------------------------------------------------------------------------------------------- */

static kube_ref_t s_about(const round_t *self, const job_t *job)
{
    return (kube_ref_t){.api_version = DIJOB_GROUP "/v1alpha1",
        .kind = "DIJob",
        .namespace_ = self->namespace_,
        .name = self->job,
        .uid = self->job_uid,
        .version = job ? job->meta.version : 0};
}

static void s_events(round_t *self)
{
    const job_t *job = s_job(self);
    if (!job || self->op->opts.manifest || !operator_leads(self->op))
        return;
    const kube_ref_t about = s_about(self, job);
    for (size_t i = 0; i < self->plan.count; i++)
        if (self->plan.actions[i].what == DIJOB_DO_EVENT)
            kube_recorder_event(self->op->recorder, &about, self->plan.actions[i].type, self->plan.actions[i].reason,
                "%s", self->plan.actions[i].message);
}

static void s_on_status(void *ctx, const kube_reply_t *reply)
{
    round_t *self = ctx;
    self->request = 0;
    operator_count(self->op, reply->code);
    if (reply->code == 200) {
        if (!self->was_final) /* the watch may have told of it before this answer */
            operator_count_end(self->op, self->plan.status);
        if (kube_store_put(self->op->cache->jobs, reply->body, reply->size) != TT_OK)
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
    if (self->plan.status && self->op->opts.manifest &&
        cache_keep_status(self->op->cache, job, self->plan.status) != TT_OK)
        log_warn("%s: %s", self->key, tt_err_text());
    if (!self->plan.status || self->op->opts.manifest) {
        s_events(self);
        s_removals(self);
        return;
    }
    char *path =
        tt_sprintf(JOBS_PATH "/namespaces/%s/dijobs/%s/status?fieldManager=di-operator", self->namespace_, self->job);
    /* with the version that it was decided on: where somebody wrote meanwhile, 409, and it is decided anew */
    char *body = tt_sprintf("[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%llu\"},"
                            "{\"op\":\"add\",\"path\":\"/status\",\"value\":%s}]",
        (unsigned long long)job->meta.version, self->plan.status);
    const bool urgent = s_has(self, DIJOB_DO_DELETE_POD);
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
        if (kube_store_put(self->op->cache->jobs, reply->body, reply->size) != TT_OK)
            kube_store_gone(self->op->cache->jobs, self->namespace_, self->job, about.version);
        kube_recorder_event(self->op->recorder, &about, "Normal", "TTLExpired",
            "Delete DIJob: %s: its ttlSecondsAfterFinished is over", self->job);
    } else if (reply->code != 404 && reply->code != 409 && !reply->held_back) {
        log_warn("%s: its time is over, and it was not deleted: %d %s", self->key, reply->code, reply->text);
        kube_recorder_event(
            self->op->recorder, &about, "Warning", "FailedDelete", "Delete DIJob: %s: %s", self->job, reply->text);
    }
    s_end(self, gone || reply->code == 404 || reply->code == 409);
}

/*  The last of all. Only as it was looked at (409 else: somebody gave it more time), and the garbage collector takes with it
 *  what it owns, which goes first. */
static void s_forget(round_t *self)
{
    if (!s_job(self) || self->failed || !s_has(self, DIJOB_DO_DELETE_JOB)) {
        s_end(self, !self->failed);
        return;
    }
    if (self->plan.status) { /* it is another version by now, by our own doing */
        s_again(self);
        return;
    }
    char *path = tt_sprintf(JOBS_PATH "/namespaces/%s/dijobs/%s", self->namespace_, self->job);
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
    for (size_t i = 0; i < batch->count; i++)
        self->failed |= batch->writes[i]->status != TT_OK;
    s_forget(self);
}

static void s_remove(round_t *self, const dijob_action_t *action)
{
    const bool pod = action->what == DIJOB_DO_DELETE_POD;
    const cache_t *cache = self->op->cache;
    const kube_meta_t *meta = pod ? (const void *)cache_pod(cache, self->namespace_, action->name)
                                  : (const void *)cache_service(cache, self->namespace_, action->name);
    if (meta && meta != (const void *)cache_own(cache)) /* that ends by itself, and with its exit code */
        writes_delete(self->batch, pod ? WRITES_POD : WRITES_SERVICE, meta, pod ? action->grace_s : -1);
}

static void s_removals(round_t *self)
{
    const job_t *job = s_job(self);
    if (job && (s_has(self, DIJOB_DO_DELETE_POD) || s_has(self, DIJOB_DO_DELETE_SERVICE))) {
        self->batch = writes_new(self->op, job->dijob, s_on_removed, self);
        writes_lead(self->batch);
        for (size_t i = 0; i < self->plan.count; i++)
            if (self->plan.actions[i].what == DIJOB_DO_DELETE_POD ||
                self->plan.actions[i].what == DIJOB_DO_DELETE_SERVICE)
                s_remove(self, &self->plan.actions[i]);
        if (self->batch->count > 0)
            return;
        writes_destroy(&self->batch);
    }
    s_forget(self);
}

/* ---- a look -------------------------------------------------------------------------------------------------------- */

static tt_status_t s_plan(dijob_plan_t *out, operator_t *op, job_t *job)
{
    const dijob_pod_t **pods = NULL;
    const dijob_service_t **services = NULL;
    (void)cache_refused_until(job, tt_now_ms(kube_loop_clock(op->loop)));
    dijob_view_t view = {.job = job->dijob,
        .curve = job->curve || op->opts.own_pod, /* an embedded operator may not make secrets: the user does */
        .now_s = operator_now_s(op),
        .random = operator_random(op),
        .refusals = job->refused,
        .refusal_count = job->refused_count};
    view.pod_count = cache_pods(op->cache, job->meta.uid, &pods);
    view.service_count = cache_services(op->cache, job->meta.uid, &services);
    view.pods = pods;
    view.services = services;
    const tt_status_t status = dijob_plan(out, &view);
    free(pods);
    free(services);
    return status;
}

static round_t *s_new(operator_t *op, const char *key, const job_t *job)
{
    round_t *self = tt_new0(sizeof *self);
    self->op = op;
    snprintf(self->key, sizeof self->key, "%s", key);
    snprintf(self->namespace_, sizeof self->namespace_, "%s", job->meta.namespace_);
    snprintf(self->job, sizeof self->job, "%s", job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    self->next = op->rounds;
    self->link = &op->rounds;
    if (self->next)
        self->next->link = &self->next;
    op->rounds = self;
    return self;
}

void round_begin(void *ctx, const char *key)
{
    operator_t *op = ctx;
    const char *slash = strchr(key, '/');
    char namespace_[64];
    snprintf(namespace_, sizeof namespace_, "%.*s", (int)(slash - key), key);
    job_t *job = cache_job(op->cache, namespace_, slash + 1);
    op->counters.rounds++;
    if (!job || (job->dijob->embedded && !op->opts.only_job)) {
        kube_queue_done(op->queue, key, true);
        return;
    }
    round_t *self = s_new(op, key, job);
    self->was_final = dijob_phase_final(job->dijob->phase);
    self->version = job->meta.version;
    const tt_status_t status = s_plan(&self->plan, op, job);
    if (status != TT_OK) {
        log_error("%s: %s", key, tt_err_text());
        s_end(self, false);
        return;
    }
    self->needs = s_needs(self, job);
    if (!self->needs)
        cache_forget_text(job);
    if (self->needs)
        fetch_begin(op, self->namespace_, self->job, self->needs, s_on_fetched, self);
    else if (s_has(self, DIJOB_DO_CREATE_SERVICE) || s_has(self, DIJOB_DO_CREATE_CURVE))
        s_create(self, job, &(fetched_t){0});
    else
        s_status(self);
}
