/*  writes - writes for a job, all at once: what each is, what its answer means. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/operator/parts.h"

#define METADATA_ONLY "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

/* ---- life ---------------------------------------------------------------------------------------------------------- */

writes_t *writes_new(operator_t *op, const dijob_t *job, void (*done)(void *ctx, writes_t *batch), void *ctx)
{
    writes_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->namespace_ = tt_strdup(job->meta.namespace_);
    self->job = tt_strdup(job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    self->job_version = job->meta.version;
    self->done = done;
    self->ctx = ctx;
    self->next = op->batches;
    self->link = &op->batches;
    if (self->next)
        self->next->link = &self->next;
    op->batches = self;
    return self;
}

void writes_lead(writes_t *self)
{
    self->lead = true;
}

static void s_write_free(writes_one_t *write)
{
    free(write->name);
    free(write->text);
    free(write->reason);
    free(write);
}

void writes_destroy(writes_t **self_p)
{
    writes_t *self = *self_p;
    if (!self)
        return;
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    for (size_t i = 0; i < self->count; i++)
        s_write_free(self->writes[i]);
    free(self->writes);
    free(self->namespace_);
    free(self->job);
    free(self);
    *self_p = NULL;
}

static writes_one_t *s_add(writes_t *self, writes_kind_t kind, const char *name)
{
    writes_one_t *write = tt_new0(sizeof *write);
    write->kind = kind;
    write->name = tt_strdup(name);
    write->batch = self;
    write->status = TT_AGAIN;
    if ((self->count & (self->count - 1)) == 0) /* 0 and powers of two */
        self->writes = tt_realloc(self->writes, tt_mul(self->count ? 2 * self->count : 1, sizeof *self->writes));
    self->writes[self->count++] = write;
    self->pending++;
    operator_writing(self->op, 1);
    return write;
}

/* ---- what an answer means ------------------------------------------------------------------------------------------ */

static const char *s_resource(writes_kind_t kind)
{
    return kind == WRITES_POD ? "pods" : kind == WRITES_SERVICE ? "services" : "secrets";
}

static const char *s_thing(writes_kind_t kind)
{
    return kind == WRITES_POD ? "pod" : kind == WRITES_SERVICE ? "service" : "secret";
}

typedef enum { SOMEBODYS, OURS, GOING } whose_t;

/*  The thing of that name as the store has it: does our job control it? GOING: another's, but not for long. */
static whose_t s_whose(const writes_one_t *write)
{
    const void *entry = write->store ? kube_store_get(write->store, write->batch->namespace_, write->name) : NULL;
    const dijob_pod_t *pod = write->kind == WRITES_POD ? entry : NULL;
    const dijob_service_t *service = write->kind == WRITES_SERVICE ? entry : NULL;
    if (!entry)
        return SOMEBODYS;
    if (strcmp(pod ? pod->job_uid : service->job_uid, write->batch->job_uid) == 0)
        return OURS;
    return (pod ? pod->deleting : service->deleting) ? GOING : SOMEBODYS;
}

static void s_tell(const writes_one_t *write)
{
    const writes_t *batch = write->batch;
    const kube_ref_t about = {.api_version = DIJOB_GROUP "/v1alpha1",
        .kind = "DIJob",
        .namespace_ = batch->namespace_,
        .name = batch->job,
        .uid = batch->job_uid,
        .version = batch->job_version};
    const char *verb = write->deletes ? "Delete" : "Create";
    char reason[32];
    if (batch->op->opts.manifest || (batch->lead && !operator_leads(batch->op)))
        return; /* there is no such object, or it is another's to tell of */
    if (write->status == TT_OK) {
        snprintf(reason, sizeof reason, "Successful%s", verb);
        kube_recorder_event(
            batch->op->recorder, &about, "Normal", reason, "%s %s: %s", verb, s_thing(write->kind), write->name);
    } else if (write->status != TT_INVALID &&
               write->status != TT_AGAIN) { /* what is refused is told once, by the plan */
        snprintf(reason, sizeof reason, "Failed%s", verb);
        kube_recorder_event(batch->op->recorder, &about, "Warning", reason, "%s %s: %s: %s", verb, s_thing(write->kind),
            write->name, write->text ? write->text : "?");
    }
}

static void s_end(writes_one_t *write, tt_status_t status, const kube_reply_t *reply)
{
    writes_t *batch = write->batch;
    write->status = status;
    if (reply->held_back)
        write->status = TT_AGAIN;
    else if (status != TT_OK) {
        write->text = tt_strdup(reply->text);
        write->reason = tt_strdup(reply->reason);
        log_warn("%s/%s: %s %s %s: %d %s", batch->namespace_, batch->job, write->deletes ? "delete" : "create",
            s_thing(write->kind), write->name, reply->code, reply->text);
    }
    s_tell(write);
    operator_writing(batch->op, -1);
    if (--batch->pending == 0)
        batch->done(batch->ctx, batch);
}

static void s_put(const writes_one_t *write, const kube_reply_t *reply)
{
    if (write->store && kube_store_put(write->store, reply->body, reply->size) != TT_OK)
        log_warn("the answer about %s %s: %s", s_thing(write->kind), write->name, tt_err_text());
}

/*  There was something of that name: is it ours, from a request whose answer we never saw? */
static void s_on_existing(void *ctx, const kube_reply_t *reply)
{
    writes_one_t *write = ctx;
    operator_count(write->batch->op, reply->code);
    if (reply->code == 200)
        s_put(write, reply);
    const whose_t whose = reply->code == 200 ? s_whose(write) : SOMEBODYS;
    if (whose == OURS || reply->code == 404) { /* 404: gone since; what is missing is seen at the next look */
        s_end(write, whose == OURS ? TT_OK : TT_AGAIN, reply);
        return;
    }
    kube_reply_t other = *reply;
    if (reply->code == 200)
        snprintf(other.text, sizeof other.text, "%s %s is there already and %s", s_thing(write->kind), write->name,
            whose == GOING ? "on its way out" : "does not belong to this job");
    s_end(write, whose == GOING ? TT_AGAIN : reply->code == 200 ? TT_EXISTS : TT_UNAVAILABLE, &other);
}

static void s_look(writes_one_t *write)
{
    char *path =
        tt_sprintf("/api/v1/namespaces/%s/%s/%s", write->batch->namespace_, s_resource(write->kind), write->name);
    const kube_request_t request = {.method = "GET", .path = path, .priority = KUBE_PODS};
    kube_client_send(write->batch->op->client, &request, s_on_existing, write);
    free(path);
}

static void s_on_created(void *ctx, const kube_reply_t *reply)
{
    writes_one_t *write = ctx;
    operator_count(write->batch->op, reply->code);
    write->code = reply->code;
    const bool refused = reply->code == 400 || reply->code == 403 || reply->code == 422;
    if (reply->code >= 200 && reply->code < 300) {
        s_put(write, reply);
        s_end(write, TT_OK, reply);
    } else if (reply->code == 409 && write->kind == WRITES_CURVE) {
        s_end(write, TT_OK, reply); /* we may create secrets and not read them; its owner is the job of that name */
    } else if (reply->code == 409) {
        s_look(write);
    } else {
        s_end(write, refused ? TT_INVALID : TT_UNAVAILABLE, reply);
    }
}

static void s_on_deleted(void *ctx, const kube_reply_t *reply)
{
    writes_one_t *write = ctx;
    operator_count(write->batch->op, reply->code);
    write->code = reply->code;
    const bool object =
        reply->code >= 200 && reply->code < 300 &&
        !memmem(reply->body, reply->size < 64 ? reply->size : 64, "\"Status\"", sizeof "\"Status\"" - 1);
    if (object) /* it has a time at which it will go */
        s_put(write, reply);
    else if (reply->code == 404 || (reply->code >= 200 && reply->code < 300))
        kube_store_gone(write->store, write->batch->namespace_, write->name, write->version);
    /* 409: it is another one by now, and the one that was meant is gone */
    const bool gone = reply->code == 404 || reply->code == 409 || (reply->code >= 200 && reply->code < 300);
    s_end(write, gone ? TT_OK : TT_UNAVAILABLE, reply);
}

/* ---- writes -------------------------------------------------------------------------------------------------------- */

static kube_store_t *s_store(const cache_t *cache, writes_kind_t kind, bool of_task)
{
    if (kind == WRITES_POD)
        return of_task ? cache->task_pods : cache->pods;
    return kind == WRITES_CURVE ? NULL : of_task ? cache->task_services : cache->services;
}

writes_one_t *writes_create(writes_t *self, writes_kind_t kind, const json_t *object)
{
    const json_t *name = json_object_get(json_object_get(object, "metadata"), "name");
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    writes_one_t *write = s_add(self, kind, json_string_value(name));
    write->store = s_store(self->op->cache, kind, json_object_get(labels, "diengine/operator") != NULL);
    char *path = tt_sprintf(
        "/api/v1/namespaces/%s/%s?fieldValidation=Strict&fieldManager=di-operator", self->namespace_, s_resource(kind));
    const bool secret = kind == WRITES_CURVE;
    char *body = secret ? dijob_dump_curve(object) : dijob_dump(object);
    const kube_request_t request = {.method = "POST",
        .path = path,
        .body = body,
        .secret = secret,
        .accept = secret ? METADATA_ONLY : NULL, /* the key is not to come back */
        .timeout_ms = WRITES_TURN_MS,
        .priority = kind == WRITES_SERVICE ? KUBE_SERVICES : KUBE_PODS,
        .may = self->lead ? operator_may : NULL,
        .may_ctx = self->op};
    kube_client_send(self->op->client, &request, s_on_created, write);
    free(path);
    tt_free_secret(body);
    return write;
}

writes_one_t *writes_delete(writes_t *self, writes_kind_t kind, const kube_meta_t *meta, int grace_s)
{
    writes_one_t *write = s_add(self, kind, meta->name);
    const bool of_task = kube_store_by_uid(s_store(self->op->cache, kind, true), meta->uid) != NULL;
    write->store = s_store(self->op->cache, kind, of_task);
    write->deletes = true;
    write->version = meta->version;
    snprintf(write->uid, sizeof write->uid, "%s", meta->uid);
    char grace[48] = "";
    if (grace_s >= 0)
        snprintf(grace, sizeof grace, "\"gracePeriodSeconds\":%d,", grace_s);
    char *path = tt_sprintf("/api/v1/namespaces/%s/%s/%s", self->namespace_, s_resource(kind), meta->name);
    char *body = tt_sprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",%s\"preconditions\":{\"uid\":\"%s\"}}", grace, meta->uid);
    const kube_request_t request = {.method = "DELETE",
        .path = path,
        .body = body,
        .timeout_ms = WRITES_TURN_MS,
        .priority = kind == WRITES_SERVICE ? KUBE_SERVICES : KUBE_PODS,
        .may = self->lead ? operator_may : NULL,
        .may_ctx = self->op};
    kube_client_send(self->op->client, &request, s_on_deleted, write);
    free(path);
    free(body);
    return write;
}
