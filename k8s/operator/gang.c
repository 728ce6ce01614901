/*  gang - a job's PodGroup on the API server: written before its pods, gone when they are.
 *
 *  It is not watched. What was written last is remembered in the job; after a restart it is written once more, when pods are. It is
 *  applied (server-side), so that making and changing are one request, and members that a scheduler set stay. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/api/dump.h"
#include "k8s/operator/parts.h"

struct gang_call {
    operator_t *op;
    kind_t *kind;
    char *namespace_, *job, job_uid[37], *text; /* text: as it is written; NULL = it is removed */
    uint64_t job_version, request;
    gang_fn done;
    void *ctx;
};

/* ---- what is due ---------------------------------------------------------------------------------------------------- */

bool gang_over(const operator_t *op, const job_t *job)
{
    const front_job_t info = job_info(job);
    return op->gang && !job->ungrouped && !info.deleting && (info.final || info.suspended);
}

bool gang_groups(const operator_t *op, const job_t *job)
{
    const void **pods = NULL;
    size_t alive = 0, grouped = 0;
    if (!op->gang || op->opts.manifest || op->opts.own_pod || job_info(job).refusal)
        return false;
    const size_t count = cache_pods(job->kind, job->meta.uid, &pods);
    for (size_t i = 0; i < count; i++) {
        const front_pod_t *pod = pods[i];
        const bool counts = !pod->deleting && !entry_ended(pod);
        alive += counts;
        grouped += counts && pod->grouped;
    }
    free(pods);
    return alive ? grouped > 0 : !job->gangless;
}

char *gang_due(const operator_t *op, const job_t *job, const json_t *whole)
{
    json_t *group = gang_make(op->gang, job->kind->front, job->own, whole);
    char *text = group ? kube_dump(group) : NULL;
    json_decref(group);
    if (!text || !job->gang || strcmp(text, job->gang) != 0)
        return text;
    free(text);
    return NULL;
}

/* ---- requests ------------------------------------------------------------------------------------------------------- */

static job_t *s_job(const gang_call_t *self)
{
    job_t *job = cache_job(self->kind, self->namespace_, self->job);
    return job && strcmp(job->meta.uid, self->job_uid) == 0 ? job : NULL;
}

static gang_call_t *s_new(operator_t *op, const job_t *job, gang_fn done, void *ctx)
{
    gang_call_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->kind = job->kind;
    self->namespace_ = tt_strdup(job->meta.namespace_);
    self->job = tt_strdup(job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    self->job_version = job->meta.version;
    self->done = done;
    self->ctx = ctx;
    return self;
}

void gang_drop(gang_call_t *self)
{
    if (!self)
        return;
    kube_client_cancel(self->op->client, self->request);
    free(self->namespace_);
    free(self->job);
    free(self->text);
    free(self);
}

static void s_end(gang_call_t *self, tt_status_t status)
{
    const gang_fn done = self->done;
    void *ctx = self->ctx;
    self->request = 0;
    gang_drop(self);
    done(ctx, status);
}

static void s_send(gang_call_t *self, kube_request_t request, const char *query, kube_done_fn done)
{
    char *path = gang_path(self->op->gang, self->namespace_, self->job), *full = tt_sprintf("%s%s", path, query);
    request.path = full;
    request.timeout_ms = WRITES_TURN_MS;
    request.priority = KUBE_PODS;
    request.may = operator_may;
    request.may_ctx = self->op;
    self->request = kube_client_send(self->op->client, &request, done, self);
    free(path);
    free(full);
}

static void s_tell(const gang_call_t *self, const char *reason, const char *does, const char *words)
{
    const kube_ref_t about = cache_ref(self->kind, self->namespace_, self->job, self->job_uid, self->job_version);
    log_warn("%s/%s: %s: %s", self->namespace_, self->job, does, words);
    if (operator_leads(self->op))
        kube_recorder_event(self->kind->recorder, &about, "Warning", reason, "%s: %s", does, words);
}

/* ---- writing -------------------------------------------------------------------------------------------------------- */

static bool s_is_made(const kube_reply_t *reply)
{
    return reply->code >= 200 && reply->code < 300;
}

static void s_note_made(gang_call_t *self, job_t *job)
{
    const kube_ref_t about = cache_ref(self->kind, self->namespace_, self->job, self->job_uid, self->job_version);
    if (!job->gang)
        kube_recorder_event(
            self->kind->recorder, &about, "Normal", "SuccessfulCreate", "Create podgroup: %s", self->job);
    free(job->gang);
    job->gang = self->text;
    self->text = NULL;
    job->gangless = job->ungrouped = false;
}

/*  404: the cluster has no PodGroups. That is somebody's mistake, but no reason for the job to wait for ever. */
static void s_on_written(void *ctx, const kube_reply_t *reply)
{
    gang_call_t *self = ctx;
    job_t *job = s_job(self);
    operator_count(self->op, reply->code);
    if (job && s_is_made(reply)) {
        s_note_made(self, job);
    } else if (job && reply->code == 404) {
        s_tell(self, "NoPodGroups", "The pods are made without a PodGroup", reply->text);
        job->gangless = true;
    } else if (job && !reply->held_back) {
        s_tell(self, "FailedCreate", "Create podgroup", reply->text);
    }
    s_end(self, !job || s_is_made(reply) || reply->code == 404 ? TT_OK : TT_UNAVAILABLE);
}

gang_call_t *gang_write(operator_t *op, const job_t *job, const char *text, gang_fn done, void *ctx)
{
    gang_call_t *self = s_new(op, job, done, ctx);
    self->text = tt_strdup(text);
    char *query = tt_sprintf("?force=true&fieldManager=%s", job->kind->front->manager);
    s_send(self, (kube_request_t){.method = "PATCH", .body = text, .content_type = "application/apply-patch+yaml"},
        query, s_on_written);
    free(query);
    return self;
}

/* ---- removing ------------------------------------------------------------------------------------------------------- */

/*  gone: there is none of this job any more. */
static void s_removed(gang_call_t *self, const kube_reply_t *reply, bool gone)
{
    job_t *job = s_job(self);
    if (job && gone) {
        free(job->gang);
        job->gang = NULL;
        job->gangless = false;
        job->ungrouped = true;
    } else if (job && !reply->held_back) {
        s_tell(self, "FailedDelete", "Delete podgroup", reply->text);
    }
    s_end(self, gone || !job ? TT_OK : TT_UNAVAILABLE);
}

static void s_on_removed(void *ctx, const kube_reply_t *reply)
{
    gang_call_t *self = ctx;
    operator_count(self->op, reply->code);
    s_removed(self, reply, s_is_made(reply) || reply->code == 404 || reply->code == 409); /* 409: another's by now */
}

/*  Only if it is this job's: another kind's job, or a person, may have one of that name. "" = it is not. */
static void s_uid(char uid[37], const gang_call_t *self, const kube_reply_t *reply)
{
    json_t *group = json_loadb(reply->body, reply->size, 0, NULL);
    const json_t *metadata = json_object_get(group, "metadata");
    const bool ours = strcmp(parts_text(parts_controller(metadata), "uid", ""), self->job_uid) == 0;
    snprintf(uid, 37, "%s", ours ? parts_text(metadata, "uid", "") : "");
    json_decref(group);
}

static void s_on_found(void *ctx, const kube_reply_t *reply)
{
    gang_call_t *self = ctx;
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
    s_send(self, (kube_request_t){.method = "DELETE", .body = body}, "", s_on_removed);
    free(body);
}

gang_call_t *gang_remove(operator_t *op, const job_t *job, gang_fn done, void *ctx)
{
    gang_call_t *self = s_new(op, job, done, ctx);
    s_send(self, (kube_request_t){.method = "GET"}, "", s_on_found);
    return self;
}
