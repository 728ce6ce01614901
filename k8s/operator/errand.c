/*  errand - requests about an object that a job owns beside its pods, of a group that the cluster may not have: its PodGroup, its
 *  Workload. One after the other; what they come to is noted in the job by whoever sent it (errand_way_t). */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/operator/parts.h"

errand_t *errand_new(
    operator_t *op, const job_t *job, const errand_way_t *way, const char *path, errand_fn done, void *ctx)
{
    errand_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->kind = job->kind;
    self->way = way;
    self->path = tt_strdup(path);
    self->namespace_ = tt_strdup(job->meta.namespace_);
    self->job = tt_strdup(job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    self->job_version = job->meta.version;
    self->done = done;
    self->ctx = ctx;
    return self;
}

void errand_drop(errand_t *self)
{
    if (!self)
        return;
    kube_client_cancel(self->op->client, self->request);
    json_decref(self->found);
    json_decref(self->made);
    free(self->path);
    free(self->namespace_);
    free(self->job);
    free(self->text);
    free(self->of);
    free(self);
}

void errand_end(errand_t *self, tt_status_t status)
{
    json_t *made = json_incref(self->made);
    const errand_fn done = self->done;
    void *ctx = self->ctx;
    self->request = 0;
    errand_drop(self);
    done(ctx, status, made);
    json_decref(made);
}

job_t *errand_job(const errand_t *self)
{
    job_t *job = cache_job(self->kind, self->namespace_, self->job);
    return job && strcmp(job->meta.uid, self->job_uid) == 0 ? job : NULL;
}

void errand_send(errand_t *self, kube_request_t request, const char *path, kube_done_fn done)
{
    request.path = path;
    request.timeout_ms = WRITES_TURN_MS;
    request.priority = KUBE_PODS;
    request.may = operator_may;
    request.may_ctx = self->op;
    self->request = kube_client_send(self->op->client, &request, done, self);
}

bool errand_well(const kube_reply_t *reply)
{
    return reply->code >= 200 && reply->code < 300;
}

void errand_tell(const errand_t *self, const char *reason, const char *does, const char *words)
{
    const kube_ref_t about = cache_ref(self->kind, self->namespace_, self->job, self->job_uid, self->job_version);
    log_warn("%s/%s: %s: %s", self->namespace_, self->job, does, words);
    if (operator_leads(self->op))
        kube_recorder_event(self->kind->recorder, &about, "Warning", reason, "%s: %s", does, words);
}

void errand_tell_of(const errand_t *self, const char *reason, const char *verb, const char *words)
{
    char *does = tt_sprintf("%s %s", verb, self->way->word);
    errand_tell(self, reason, does, words);
    free(does);
}

void errand_tell_made(const errand_t *self, const char *name)
{
    const kube_ref_t about = cache_ref(self->kind, self->namespace_, self->job, self->job_uid, self->job_version);
    kube_recorder_event(
        self->kind->recorder, &about, "Normal", "SuccessfulCreate", "Create %s: %s", self->way->word, name);
}

/* ---- writing -------------------------------------------------------------------------------------------------------- */

static void s_on_applied(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    job_t *job = errand_job(self);
    operator_count(self->op, reply->code);
    errand_end(self, job ? self->way->applied(self, job, reply) : TT_OK);
}

void errand_apply(errand_t *self, const char *text)
{
    char *path = tt_sprintf("%s?force=true&fieldManager=%s", self->path, self->kind->front->manager);
    self->text = tt_strdup(text);
    errand_send(self, (kube_request_t){.method = "PATCH", .body = text, .content_type = "application/apply-patch+yaml"},
        path, s_on_applied);
    free(path);
}

/* ---- removing ------------------------------------------------------------------------------------------------------- */

/*  gone: there is none of this job any more. */
static void s_removed(errand_t *self, const kube_reply_t *reply, bool gone)
{
    job_t *job = errand_job(self);
    if (job && gone)
        self->way->gone(self, job);
    else if (job && !reply->held_back)
        errand_tell_of(self, "FailedDelete", "Delete", reply->text);
    errand_end(self, gone || !job ? TT_OK : TT_UNAVAILABLE);
}

static void s_on_removed(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    operator_count(self->op, reply->code);
    s_removed(self, reply, errand_well(reply) || reply->code == 404 || reply->code == 409); /* 409: another's by now */
}

/*  Only if it is this job's: another kind's job, or a person, may have one of that name. "" = it is not. */
static void s_uid(char uid[37], const errand_t *self, const kube_reply_t *reply)
{
    json_t *object = json_loadb(reply->body, reply->size, 0, NULL);
    const json_t *metadata = json_object_get(object, "metadata");
    const bool ours = strcmp(parts_text(parts_controller(metadata), "uid", ""), self->job_uid) == 0;
    snprintf(uid, 37, "%s", ours ? parts_text(metadata, "uid", "") : "");
    json_decref(object);
}

static void s_on_found(void *ctx, const kube_reply_t *reply)
{
    errand_t *self = ctx;
    char uid[37] = "";
    operator_count(self->op, reply->code);
    if (reply->code == 200)
        s_uid(uid, self, reply);
    if (!*uid) {
        s_removed(self, reply, reply->code == 200 || reply->code == 404);
        return;
    }
    char *body =
        tt_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"%s\"}}", uid);
    errand_send(self, (kube_request_t){.method = "DELETE", .body = body}, self->path, s_on_removed);
    free(body);
}

void errand_remove(errand_t *self)
{
    errand_send(self, (kube_request_t){.method = "GET"}, self->path, s_on_found);
}
