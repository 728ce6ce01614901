#include "k8s/replicas/serve.h"
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 16 << 20 };

/*  One call. */
typedef struct {
    const replicas_host_t *host;
    void *ctx;
    const replicas_request_t *request;
} call_t;

/*  about: NULL = the tasks of the job. */
static json_t *s_of(const call_t *self, const char *job_uid, const dijob_pod_t *about)
{
    replicas_view_t view;
    self->host->view(self->ctx, job_uid, &view);
    json_t *data = about ? replicas_of(&view, about) : replicas_of_tasks(&view);
    free((void *)(uintptr_t)view.pods);
    return data;
}

static bool s_may(const call_t *self, const char *job_uid)
{
    return !self->host->may || self->host->may(self->ctx, self->request->peer, job_uid);
}

static tt_status_t s_check(const call_t *self, const char *job_uid, const char *namespace_, const char *job)
{
    return s_may(self, job_uid)
               ? TT_OK
               : tt_err(TT_DENIED, "%s is no pod of DIJob %s/%s", self->request->peer, namespace_, job);
}

/*  The pod that the request is about; its job is there, and who asks may. */
static tt_status_t s_find(const call_t *self, const dijob_pod_t **out)
{
    const replicas_request_t *r = self->request;
    const char *name = replicas_about(r);
    const dijob_pod_t *pod = name && r->namespace_ ? self->host->pod(self->ctx, r->namespace_, name) : NULL;
    replicas_view_t view;
    TT_TRY(replicas_check_about(r, pod));
    self->host->view(self->ctx, pod->job_uid, &view);
    free((void *)(uintptr_t)view.pods);
    if (!view.job)
        return tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", pod->meta.namespace_, pod->job);
    *out = pod;
    return s_check(self, pod->job_uid, pod->meta.namespace_, pod->job);
}

/*  Of every coordinator that who asks may ask about. */
static json_t *s_all(const call_t *self)
{
    const char *namespace_ = self->request->namespace_;
    json_t *list = json_array();
    const void *at = NULL;
    const dijob_pod_t *pod;
    while ((pod = self->host->each(self->ctx, &at)) != NULL)
        if (pod->role == DIJOB_COORDINATOR && (!namespace_ || strcmp(pod->meta.namespace_, namespace_) == 0) &&
            s_may(self, pod->job_uid))
            json_array_append_new(list, s_of(self, pod->job_uid, pod));
    return list;
}

static tt_status_t s_get(const call_t *self, json_t **data)
{
    const dijob_pod_t *pod = NULL;
    if (!replicas_about(self->request)) {
        *data = self->request->name ? NULL : s_all(self); /* by the job's name: never served, never an error */
        return TT_OK;
    }
    TT_TRY(s_find(self, &pod));
    *data = s_of(self, pod->job_uid, pod);
    return TT_OK;
}

static tt_status_t s_v2(const call_t *self, json_t **data)
{
    const replicas_request_t *r = self->request;
    const dijob_t *job = self->host->job(self->ctx, r->namespace_, r->name);
    if (!job)
        return tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", r->namespace_, r->name);
    TT_TRY(s_check(self, job->meta.uid, r->namespace_, r->name));
    if (r->verb == REPLICAS_GET)
        *data = s_of(self, job->meta.uid, NULL); /* the others are taken and change nothing: spec.tasks counts */
    return TT_OK;
}

tt_status_t replicas_serve(const replicas_host_t *host, void *ctx, const replicas_request_t *request, json_t **data)
{
    const call_t self = {.host = host, .ctx = ctx, .request = request};
    const dijob_pod_t *pod = NULL;
    if (request->v2)
        return s_v2(&self, data);
    if (request->verb == REPLICAS_GET)
        return s_get(&self, data);
    TT_TRY(s_find(&self, &pod));
    return host->write(ctx, request, pod, data);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

static int s_send(tt_server_t *server, uint64_t id, int code, tt_buf_t *body)
{
    tt_server_reply(server, id, code, "application/json", tt_buf_text(body), body->size);
    tt_buf_free(body);
    return code;
}

int replicas_answer_refused(tt_server_t *server, uint64_t id, const char *method, tt_status_t status)
{
    tt_buf_t out;
    tt_buf_init(&out, ANSWER_MAX);
    const int code = replicas_refuse(&out, method, status);
    return s_send(server, id, code, &out);
}

int replicas_answer(tt_server_t *server, uint64_t id, replicas_verb_t verb, tt_status_t status, json_t *data)
{
    const replicas_reply_t reply = {
        .code = replicas_code(status), .text = status == TT_OK ? NULL : tt_err_text(), .data = data};
    if (status != TT_OK && !data)
        return replicas_answer_refused(server, id, verb == REPLICAS_GET ? "GET" : "POST", status);
    tt_buf_t out;
    tt_buf_init(&out, ANSWER_MAX);
    const tt_status_t printed = replicas_print(&out, verb, &reply);
    json_decref(data);
    if (printed == TT_OK)
        return s_send(server, id, reply.code, &out);
    tt_buf_free(&out);
    return replicas_answer_refused(server, id, "GET", TT_INTERNAL);
}
