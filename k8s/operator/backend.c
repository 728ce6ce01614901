#define TT_LOG_COMPONENT "operator"
#include "k8s/operator/backend.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/chain.h"
#include "common/base/log.h"
#include "common/base/mem.h"

enum { ANSWER_MAX = 16 << 20, LOOK_MS = 100, HOLD_MS = 10000 };

/*  A request waits for three batches of writes at most, one after the other, and twice for what pods are made of. */
_Static_assert(API_ANSWER_MS > 4 * WRITES_TURN_MS + HOLD_MS, "an answer comes after the writes it stands for");

/* ---- answers ------------------------------------------------------------------------------------------------------- */

static void s_answer(operator_t *op, uint64_t id, int code, tt_buf_t *body)
{
    operator_count_served(op, code);
    tt_server_reply(op->api.server, id, code, "application/json", tt_buf_text(body), body->size);
    tt_buf_free(body);
}

static void s_refuse(operator_t *op, uint64_t id, const char *method, tt_status_t status)
{
    tt_buf_t out;
    tt_buf_init(&out, ANSWER_MAX);
    const int code = replicas_refuse(&out, method, status);
    s_answer(op, id, code, &out);
}

static void s_reply(operator_t *op, uint64_t id, replicas_verb_t verb, json_t *data)
{
    tt_buf_t out;
    tt_buf_init(&out, ANSWER_MAX);
    const replicas_reply_t reply = {.code = 200, .data = data};
    int code = 200;
    if (replicas_print(&out, verb, &reply) != TT_OK) {
        tt_buf_clear(&out);
        code = replicas_refuse(&out, "GET", TT_INTERNAL);
    }
    json_decref(data);
    s_answer(op, id, code, &out);
}

/* ---- tasks --------------------------------------------------------------------------------------------------------- */

/*  Takes request. */
static task_t *s_task_new(operator_t *op, uint64_t id, replicas_request_t **request, const job_t *job)
{
    task_t *self = tt_new0(sizeof *self);
    self->op = op;
    self->id = id;
    self->request = *request;
    *request = NULL;
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    TT_CHAIN_ADD(&op->tasks, self);
    return self;
}

static void s_free(task_t *self)
{
    TT_CHAIN_REMOVE(self);
    replicas_work_clear(&self->work);
    writes_destroy(&self->batch);
    replicas_request_destroy(&self->request);
    free(self);
}

void task_end(task_t *self, tt_status_t status)
{
    const replicas_request_t *r = self->request;
    const replicas_reply_t reply = {.code = replicas_code(status),
        .text = status == TT_OK ? NULL : tt_err_text(),
        .data = replicas_data(&self->work.orders, r)};
    tt_buf_t out;
    tt_buf_init(&out, ANSWER_MAX);
    if (status != TT_OK)
        log_warn("%s/%s: asked for replicas: %s", r->namespace_, self->work.job, reply.text);
    (void)replicas_print(&out, r->verb, &reply);
    json_decref(reply.data);
    s_answer(self->op, self->id, reply.code, &out);
    s_free(self);
}

/* ---- what orders are made of ---------------------------------------------------------------------------------------- */

static uint64_t s_random(void *ctx)
{
    return operator_random(ctx);
}

static char *s_url(const void *ctx, const dijob_pod_t *pod, int gpu)
{
    (void)ctx;
    return dijob_pod_url(pod, gpu);
}

/*  Said once of a generation. */
static void s_declared(operator_t *op, job_t *job, dijob_role_t role)
{
    const kube_ref_t about =
        cache_ref(job->kind, job->meta.namespace_, job->meta.name, job->meta.uid, job->meta.version);
    if (!job->told && !op->opts.manifest)
        kube_recorder_event(job->kind->recorder, &about, "Normal", "ReplicasDeclared",
            "spec.%s.replicas counts: requests of the replicas API change nothing", dijob_role_label(role));
    job->told = true;
}

static void s_on_declared(void *ctx, const dijob_t *dijob, dijob_role_t role)
{
    operator_t *op = ctx;
    job_t *job = cache_job_by_uid(backend_kind(op), dijob->meta.uid);
    if (job)
        s_declared(op, job, role);
}

/*  The job may be gone, and its pods still there. */
void backend_view(const operator_t *op, const char *job_uid, replicas_view_t *out)
{
    const void **pods = NULL;
    const job_t *job = cache_job_by_uid(backend_kind(op), job_uid);
    *out = (replicas_view_t){.job = job ? backend_job(job) : NULL,
        .random = s_random,
        .url = s_url,
        .declared = s_on_declared,
        .ctx = (operator_t *)(uintptr_t)op};
    out->pod_count = cache_pods(backend_kind(op), job_uid, &pods);
    out->pods = (const dijob_pod_t *const *)pods;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/*  about: NULL = the tasks of the job. */
static json_t *s_of(const operator_t *op, const char *job_uid, const dijob_pod_t *about)
{
    replicas_view_t view;
    backend_view(op, job_uid, &view);
    json_t *data = about ? replicas_of(&view, about) : replicas_of_tasks(&view);
    free((void *)(uintptr_t)view.pods);
    return data;
}

/* ---- who asks, about what ------------------------------------------------------------------------------------------ */

/*  Is it a pod of this job? */
static bool s_may(const operator_t *op, const char *peer, const char *job_uid)
{
    if (op->opts.open_api)
        return true;
    if (op->opts.only_job && (strcmp(peer, "127.0.0.1") == 0 || strcmp(peer, "::1") == 0)) /* our own pod */
        return true;
    return cache_is_at(backend_kind(op), job_uid, peer);
}

static json_t *s_all(const operator_t *op, const replicas_request_t *r)
{
    json_t *list = json_array();
    const void *at = NULL;
    const dijob_pod_t *pod;
    while ((pod = kube_store_each(backend_kind(op)->shapes[0].pods, &at)) != NULL)
        if (pod->role == DIJOB_COORDINATOR && (!r->namespace_ || strcmp(pod->meta.namespace_, r->namespace_) == 0) &&
            s_may(op, r->peer, pod->job_uid))
            json_array_append_new(list, s_of(op, pod->job_uid, pod));
    return list;
}

/*  The pod that a request names; NULL = there is none. */
static const dijob_pod_t *s_named(const operator_t *op, const replicas_request_t *r)
{
    const char *name = replicas_about(r);
    return name && r->namespace_ ? backend_pod(op, r->namespace_, name) : NULL;
}

/*  The pod that a request is about, and its job. */
static tt_status_t s_find(
    const operator_t *op, const replicas_request_t *r, const dijob_pod_t **pod_out, const job_t **job_out)
{
    const dijob_pod_t *pod = s_named(op, r);
    TT_TRY(replicas_check_about(r, pod));
    const char *namespace_ = pod->meta.namespace_;
    const job_t *job = cache_job_by_uid(backend_kind(op), pod->job_uid);
    if (!job)
        return tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", namespace_, pod->job);
    if (!s_may(op, r->peer, job->meta.uid))
        return tt_err(TT_DENIED, "%s is no pod of DIJob %s/%s", r->peer, namespace_, pod->job);
    *pod_out = pod;
    *job_out = job;
    return TT_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_get(operator_t *op, const replicas_request_t *r, json_t **data)
{
    const dijob_pod_t *pod = NULL;
    const job_t *job = NULL;
    if (!replicas_about(r)) {
        *data = r->name ? NULL : s_all(op, r); /* by the job's name: never served, never an error */
        return TT_OK;
    }
    TT_TRY(s_find(op, r, &pod, &job));
    *data = s_of(op, job->meta.uid, pod);
    return TT_OK;
}

static tt_status_t s_v2(operator_t *op, const replicas_request_t *r, json_t **data)
{
    const job_t *job = cache_job(backend_kind(op), r->namespace_, r->name);
    if (!job)
        return tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", r->namespace_, r->name);
    if (!s_may(op, r->peer, job->meta.uid))
        return tt_err(TT_DENIED, "%s is no pod of DIJob %s/%s", r->peer, r->namespace_, r->name);
    if (r->verb == REPLICAS_GET)
        *data = s_of(op, job->meta.uid, NULL); /* the others are taken and change nothing: spec.tasks counts */
    return TT_OK;
}

/*  A queue has admitted what the spec declares: more than that would take what is others'. */
static tt_status_t s_may_wait(const operator_t *op, const job_t *job, const replicas_request_t *r)
{
    const int64_t *declared = backend_job(job)->replicas;
    front_admission_t admission;
    if (!admission_see(&admission, op, job) || (admission.queue && !admission.admitted))
        return tt_err(TT_EXISTS, "DIJob %s/%s waits for admission in its queue", job->meta.namespace_, job->meta.name);
    const bool collectors = r->collectors.replicas > 0 && declared[DIJOB_COLLECTOR] < 0;
    const bool learners = r->learners.replicas > 0 && declared[DIJOB_LEARNER] < 0;
    if (!admission.queue || r->verb != REPLICAS_CREATE || (!collectors && !learners))
        return TT_OK;
    return tt_err(TT_EXISTS,
        "DIJob %s/%s is of queue %s, which admits what the spec declares: spec.%s.replicas is not given",
        job->meta.namespace_, job->meta.name, admission.queue, collectors ? "collector" : "learner");
}

static tt_status_t s_write(operator_t *op, uint64_t id, replicas_request_t **r)
{
    const dijob_pod_t *pod = NULL;
    const job_t *job = NULL;
    TT_TRY(s_find(op, *r, &pod, &job));
    if (backend_job(job)->deleting || dijob_phase_final(backend_job(job)->phase))
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", job->meta.namespace_, job->meta.name);
    if (backend_job(job)->suspend)
        return tt_err(TT_EXISTS, "DIJob %s/%s is suspended", job->meta.namespace_, job->meta.name);
    TT_TRY(s_may_wait(op, job, *r));
    task_t *task = s_task_new(op, id, r, job);
    replicas_work_begin(&task->work, &backend_substrate, task, task->request, (dijob_role_t)pod->role);
    return TT_OK;
}

/*  Answers, unless it fails or becomes a task, which then has the request. */
static tt_status_t s_perform(operator_t *op, uint64_t id, replicas_request_t **r)
{
    const replicas_verb_t verb = (*r)->verb;
    json_t *data = NULL;
    tt_status_t status = TT_OK;
    if (atomic_load(&op->stop))
        status = tt_err(TT_UNAVAILABLE, "this replica of the operator is about to end; try again");
    else if (!cache_synced(op->cache))
        status = tt_err(TT_UNAVAILABLE, "jobs and pods are still being listed; try again");
    else if ((*r)->v2)
        status = s_v2(op, *r, &data);
    else if (verb == REPLICAS_GET)
        status = s_get(op, *r, &data);
    else
        status = s_write(op, id, r);
    if (status == TT_OK && *r)
        s_reply(op, id, verb, data);
    return status;
}

/* ---- callers whose address is not known yet ------------------------------------------------------------------------ */

struct asked {
    operator_t *op;
    uint64_t id, timer;
    char method[8];
    replicas_request_t *request;
    int64_t until_ms;
    asked_t *next, **link;
};

static void s_asked_free(asked_t *self)
{
    TT_CHAIN_REMOVE(self);
    tt_reactor_forget_timer(self->op->loop, self->timer);
    replicas_request_destroy(&self->request);
    free(self);
}

/*  A pod's program runs a second or so before its address stands in its status: who asks about a pod without one may well be
 *  that pod. DI-engine's coordinator does so at once, and an error would end it. */
static bool s_early(const operator_t *op, const replicas_request_t *r)
{
    const dijob_pod_t *pod = NULL;
    const void *at = NULL;
    if (!r->v2) {
        pod = s_named(op, r);
        return pod && !*pod->ip && !entry_ended(&pod->as_pod);
    }
    const job_t *job = cache_job(backend_kind(op), r->namespace_, r->name);
    while (job && (pod = kube_store_next(backend_kind(op)->shapes[1].pods, POD_BY_JOB, job->meta.uid, &at)) != NULL)
        if (!*pod->ip && !entry_ended(&pod->as_pod))
            return true;
    return false;
}

static void s_try(void *ctx)
{
    asked_t *self = ctx;
    operator_t *op = self->op;
    self->timer = 0;
    const tt_status_t status = s_perform(op, self->id, &self->request);
    if (status == TT_DENIED && tt_now_ms(tt_reactor_clock(op->loop)) < self->until_ms && s_early(op, self->request)) {
        self->timer = tt_reactor_timer(op->loop, LOOK_MS, s_try, self);
        return;
    }
    if (status != TT_OK)
        s_refuse(op, self->id, self->method, status);
    s_asked_free(self);
}

static tt_status_t s_request(operator_t *op, const tt_server_request_t *request)
{
    replicas_request_t *r = NULL;
    TT_TRY(replicas_parse(&r, request->method, request->path, request->query, request->body, request->size));
    snprintf(r->peer, sizeof r->peer, "%s", request->peer);
    asked_t *asked = tt_new0(sizeof *asked);
    *asked = (asked_t){
        .op = op, .id = request->id, .request = r, .until_ms = tt_now_ms(tt_reactor_clock(op->loop)) + HOLD_MS};
    snprintf(asked->method, sizeof asked->method, "%s", request->method);
    TT_CHAIN_ADD(&op->asked, asked);
    s_try(asked);
    return TT_OK;
}

void backend_request(void *ctx, const tt_server_request_t *request)
{
    operator_port_t *port = ctx;
    const tt_status_t status = s_request(port->op, request);
    if (status != TT_OK)
        s_refuse(port->op, request->id, request->method, status);
}

size_t backend_waiting(const operator_t *op)
{
    size_t count = 0;
    for (const asked_t *asked = op->asked; asked; asked = asked->next)
        count++;
    return count;
}

void backend_drop_all(operator_t *op)
{
    while (op->asked)
        s_asked_free(op->asked);
    while (op->tasks)
        s_free(op->tasks);
}
