#define TT_LOG_COMPONENT "operator"
#include "k8s/operator/backend.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/chain.h"
#include "common/base/log.h"
#include "common/base/mem.h"

enum { LOOK_MS = 100, HOLD_MS = 10000 };

/*  A request waits for three batches of writes at most, one after the other, and twice for what pods are made of. */
_Static_assert(API_ANSWER_MS > 4 * WRITES_TURN_MS + HOLD_MS, "an answer comes after the writes it stands for");

struct asked {
    operator_t *op;
    uint64_t id, timer;
    char method[8];
    replicas_request_t *request; /* NULL = a task has it */
    int64_t until_ms;
    asked_t *next, **link;
};

static void s_refuse(operator_t *op, uint64_t id, const char *method, tt_status_t status)
{
    operator_count_served(op, replicas_answer_refused(op->api.server, id, method, status));
}

/* ---- tasks --------------------------------------------------------------------------------------------------------- */

/*  Takes the request. */
static task_t *s_task_new(asked_t *asked, const job_t *job)
{
    task_t *self = tt_new0(sizeof *self);
    self->op = asked->op;
    self->id = asked->id;
    self->request = asked->request;
    asked->request = NULL;
    snprintf(self->job_uid, sizeof self->job_uid, "%s", job->meta.uid);
    TT_CHAIN_ADD(&self->op->tasks, self);
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
    if (status != TT_OK)
        log_warn("%s/%s: asked for replicas: %s", r->namespace_, self->work.job, tt_err_text());
    json_t *data = replicas_data(&self->work.orders, r);
    operator_count_served(self->op, replicas_answer(self->op->api.server, self->id, r->verb, status, data));
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

/* ---- who asks, about what ------------------------------------------------------------------------------------------ */

/*  Is it a pod of this job? */
static bool s_may(void *ctx, const char *peer, const char *job_uid)
{
    const operator_t *op = ((asked_t *)ctx)->op;
    if (op->opts.open_api)
        return true;
    if (op->opts.only_job && (strcmp(peer, "127.0.0.1") == 0 || strcmp(peer, "::1") == 0)) /* our own pod */
        return true;
    return cache_is_at(backend_kind(op), job_uid, peer);
}

static void s_view(void *ctx, const char *job_uid, replicas_view_t *out)
{
    backend_view(((asked_t *)ctx)->op, job_uid, out);
}

static const dijob_pod_t *s_pod(void *ctx, const char *namespace_, const char *name)
{
    return backend_pod(((asked_t *)ctx)->op, namespace_, name);
}

static const dijob_t *s_job(void *ctx, const char *namespace_, const char *name)
{
    const job_t *job = cache_job(backend_kind(((asked_t *)ctx)->op), namespace_, name);
    return job ? backend_job(job) : NULL;
}

static const dijob_pod_t *s_each(void *ctx, const void **at)
{
    return kube_store_each(backend_kind(((asked_t *)ctx)->op)->shapes[0].pods, at);
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

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

static tt_status_t s_write(void *ctx, const replicas_request_t *request, const dijob_pod_t *about, json_t **data)
{
    asked_t *asked = ctx;
    const job_t *job = cache_job_by_uid(backend_kind(asked->op), about->job_uid);
    (void)data;
    if (backend_job(job)->deleting || dijob_phase_final(backend_job(job)->phase))
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", job->meta.namespace_, job->meta.name);
    if (backend_job(job)->suspend)
        return tt_err(TT_EXISTS, "DIJob %s/%s is suspended", job->meta.namespace_, job->meta.name);
    TT_TRY(s_may_wait(asked->op, job, request));
    task_t *task = s_task_new(asked, job);
    replicas_work_begin(&task->work, &backend_substrate, task, request, (dijob_role_t)about->role);
    return TT_OK;
}

static const replicas_host_t s_host = {
    .view = s_view, .pod = s_pod, .job = s_job, .each = s_each, .may = s_may, .write = s_write};

/*  Answers, unless it fails or becomes a task, which then has the request. */
static tt_status_t s_perform(asked_t *self)
{
    operator_t *op = self->op;
    json_t *data = NULL;
    if (atomic_load(&op->stop))
        return tt_err(TT_UNAVAILABLE, "this replica of the operator is about to end; try again");
    if (!cache_synced(op->cache))
        return tt_err(TT_UNAVAILABLE, "jobs and pods are still being listed; try again");
    TT_TRY(replicas_serve(&s_host, self, self->request, &data));
    if (self->request)
        operator_count_served(op, replicas_answer(op->api.server, self->id, self->request->verb, TT_OK, data));
    return TT_OK;
}

/* ---- callers whose address is not known yet ------------------------------------------------------------------------ */

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
        const char *name = replicas_about(r);
        pod = name && r->namespace_ ? backend_pod(op, r->namespace_, name) : NULL;
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
    const tt_status_t status = s_perform(self);
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
