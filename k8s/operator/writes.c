/*  writes - writes for a job, all at once: what each is, what its answer means. */
#define TT_LOG_COMPONENT "operator"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/chain.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "k8s/api/dump.h"
#include "k8s/operator/parts.h"

#define METADATA_ONLY "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

/* ---- life ---------------------------------------------------------------------------------------------------------- */

const front_object_t writes_pod = {.api = "/api/v1", .resource = "pods", .word = "pod"};
const front_object_t writes_service = {.api = "/api/v1", .resource = "services", .word = "service"};

writes_t *writes_new(operator_t *op, const job_t *job, void (*done)(void *ctx, writes_t *batch), void *ctx)
{
    writes_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->kind = job->kind;
    self->namespace_ = tt_strdup(job->meta.namespace_);
    self->job = tt_strdup(job->meta.name);
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    self->job_version = job->meta.version;
    self->done = done;
    self->ctx = ctx;
    TT_CHAIN_ADD(&op->batches, self);
    return self;
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
    TT_CHAIN_REMOVE(self);
    for (size_t i = 0; i < self->count; i++)
        s_write_free(self->writes[i]);
    free(self->writes);
    free(self->namespace_);
    free(self->job);
    free(self);
    *self_p = NULL;
}

static writes_one_t *s_add(writes_t *self, const front_object_t *what, const char *name)
{
    writes_one_t *write = tt_new0(sizeof *write);
    write->what = what;
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

typedef enum { SOMEBODYS, OURS, GOING } whose_t;

/*  The thing of that name as the store has it: does our job control it? GOING: another's, but not for long. */
static whose_t s_whose(const writes_one_t *write)
{
    const front_service_t *entry =
        write->store ? kube_store_get(write->store, write->batch->namespace_, write->name) : NULL;
    if (!entry)
        return SOMEBODYS;
    if (strcmp(entry->job_uid, write->batch->job_uid) == 0)
        return OURS;
    return entry->deleting ? GOING : SOMEBODYS;
}

static void s_tell(const writes_one_t *write)
{
    const writes_t *batch = write->batch;
    const kube_ref_t about = cache_ref(batch->kind, batch->namespace_, batch->job, batch->job_uid, batch->job_version);
    const char *verb = write->deletes ? "Delete" : "Create";
    const bool planned = write->what == &writes_pod || write->what == &writes_service;
    char reason[32];
    if (batch->op->opts.manifest || (batch->lead && !operator_leads(batch->op)))
        return; /* there is no such object, or it is another's to tell of */
    if (write->status == TT_OK) {
        snprintf(reason, sizeof reason, "Successful%s", verb);
        kube_recorder_event(
            batch->kind->recorder, &about, "Normal", reason, "%s %s: %s", verb, write->what->word, write->name);
    } else if ((write->status != TT_INVALID || !planned) &&
               write->status != TT_AGAIN) { /* what of these is refused is told once, by the plan */
        snprintf(reason, sizeof reason, "Failed%s", verb);
        kube_recorder_event(batch->kind->recorder, &about, "Warning", reason, "%s %s: %s: %s", verb, write->what->word,
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
            write->what->word, write->name, reply->code, reply->text);
    }
    s_tell(write);
    operator_writing(batch->op, -1);
    if (--batch->pending == 0)
        batch->done(batch->ctx, batch);
}

static void s_put(const writes_one_t *write, const kube_reply_t *reply)
{
    if (write->store && kube_store_put(write->store, reply->body, reply->size) != TT_OK)
        log_warn("the answer about %s %s: %s", write->what->word, write->name, tt_err_text());
}

/*  Caller frees. */
static char *s_path(const writes_one_t *write)
{
    const front_object_t *what = write->what;
    return tt_sprintf("%s/namespaces/%s/%s/%s", what->api, write->batch->namespace_, what->resource, write->name);
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
        snprintf(other.text, sizeof other.text, "%s %s is there already and %s", write->what->word, write->name,
            whose == GOING ? "on its way out" : "does not belong to this job");
    s_end(write, whose == GOING ? TT_AGAIN : reply->code == 200 ? TT_EXISTS : TT_UNAVAILABLE, &other);
}

static void s_look(writes_one_t *write)
{
    char *path = s_path(write);
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
    } else if (reply->code == 409 && !write->store) {
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
    else if (write->store && (reply->code == 404 || (reply->code >= 200 && reply->code < 300)))
        kube_store_gone(write->store, write->batch->namespace_, write->name, write->version);
    /* 409: it is another one by now, and the one that was meant is gone */
    const bool gone = reply->code == 404 || reply->code == 409 || (reply->code >= 200 && reply->code < 300);
    s_end(write, gone ? TT_OK : TT_UNAVAILABLE, reply);
}

/* ---- writes -------------------------------------------------------------------------------------------------------- */

static kube_store_t *s_store(const kind_t *kind, const front_object_t *what, size_t shape)
{
    return what == &writes_pod       ? kind->shapes[shape].pods
           : what == &writes_service ? kind->shapes[shape].services
                                     : NULL;
}

/*  Of what has labels of two shapes the later one's. */
static kube_store_t *s_store_of_labels(const kind_t *kind, const front_object_t *what, const json_t *labels)
{
    size_t shape = kind->shape_count - 1;
    while (shape > 0 && !json_object_get(labels, kind->front->shapes[shape].own_label))
        shape--;
    return s_store(kind, what, shape);
}

static kube_store_t *s_store_of_uid(const kind_t *kind, const front_object_t *what, const char *uid)
{
    size_t shape = kind->shape_count - 1;
    kube_store_t *store = s_store(kind, what, shape);
    while (store && shape > 0 && !kube_store_by_uid(store, uid))
        store = s_store(kind, what, --shape);
    return store;
}

static void s_send(writes_one_t *write, kube_request_t request, kube_done_fn done)
{
    const writes_t *self = write->batch;
    request.timeout_ms = WRITES_TURN_MS;
    request.priority = write->what == &writes_service ? KUBE_SERVICES : KUBE_PODS;
    request.may = self->lead ? operator_may : NULL;
    request.may_ctx = self->op;
    kube_client_send(self->op->client, &request, done, write);
}

writes_one_t *writes_create(writes_t *self, const front_object_t *what, const json_t *object)
{
    const json_t *name = json_object_get(json_object_get(object, "metadata"), "name");
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    writes_one_t *write = s_add(self, what, json_string_value(name));
    write->store = s_store_of_labels(self->kind, what, labels);
    char *path = tt_sprintf("%s/namespaces/%s/%s?fieldValidation=Strict&fieldManager=%s", what->api, self->namespace_,
        what->resource, self->kind->front->manager);
    char *body = what->secret ? kube_dump_secret(object) : kube_dump(object);
    const kube_request_t request = {.method = "POST",
        .path = path,
        .body = body,
        .secret = what->secret,
        .accept = what->secret ? METADATA_ONLY : NULL}; /* the key is not to come back */
    s_send(write, request, s_on_created);
    free(path);
    tt_free_secret(body);
    return write;
}

writes_one_t *writes_delete(writes_t *self, const front_object_t *what, const kube_meta_t *meta, int grace_s)
{
    writes_one_t *write = s_add(self, what, meta->name);
    write->store = s_store_of_uid(self->kind, what, meta->uid);
    write->deletes = true;
    write->version = meta->version;
    snprintf(write->uid, sizeof write->uid, "%s", meta->uid);
    char grace[48] = "", uid[80] = "";
    if (grace_s >= 0)
        snprintf(grace, sizeof grace, ",\"gracePeriodSeconds\":%d", grace_s);
    if (*meta->uid)
        snprintf(uid, sizeof uid, ",\"preconditions\":{\"uid\":\"%s\"}", meta->uid);
    char *path = s_path(write);
    char *body = tt_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"%s%s}", grace, uid);
    s_send(write, (kube_request_t){.method = "DELETE", .path = path, .body = body}, s_on_deleted);
    free(path);
    free(body);
    return write;
}
