/*  front - TFJobs as the operator and the local run see any kind of job (k8s/front/front.h). */
#include "k8s/front/front.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/object.h"
#include "k8s/tfjob/plan.h"
#include "k8s/tfjob/local.h"

/* ---- entries ------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_job_decode(void **out, const char *json, size_t size)
{
    tfjob_t *job = NULL;
    TT_TRY(tfjob_decode(&job, json, size));
    *out = job;
    return TT_OK;
}

static void s_job_destroy(void *job)
{
    tfjob_t *self = job;
    tfjob_destroy(&self);
}

static front_job_t s_job(const void *job)
{
    const tfjob_t *self = job;
    return (front_job_t){.generation = self->generation,
        .phase = (int)self->phase,
        .deleting = self->deleting,
        .final = self->phase == TFJOB_PHASE_SUCCEEDED || self->phase == TFJOB_PHASE_FAILED,
        .refusal = self->invalid};
}

static tt_status_t s_pod_decode(void **out, const char *json, size_t size)
{
    tfjob_pod_t *pod = NULL;
    TT_TRY(tfjob_pod_decode(&pod, json, size));
    *out = pod;
    return TT_OK;
}

static void s_pod_destroy(void *pod)
{
    tfjob_pod_t *self = pod;
    tfjob_pod_destroy(&self);
}

static front_pod_t s_pod(const void *pod)
{
    const tfjob_pod_t *self = pod;
    return (front_pod_t){.job = self->job,
        .job_uid = self->job_uid,
        .ip = self->ip,
        .component = self->type < TFJOB_TYPES ? tfjob_type_label((tfjob_type_t)self->type) : "",
        .created_s = self->created_s,
        .port = self->port,
        .deleting = self->deleting,
        .ended = self->phase == TFJOB_POD_SUCCEEDED || self->phase == TFJOB_POD_FAILED};
}

static tt_status_t s_service_decode(void **out, const char *json, size_t size)
{
    tfjob_service_t *service = NULL;
    TT_TRY(tfjob_service_decode(&service, json, size));
    *out = service;
    return TT_OK;
}

static void s_service_destroy(void *service)
{
    tfjob_service_t *self = service;
    tfjob_service_destroy(&self);
}

static front_service_t s_service(const void *service)
{
    const tfjob_service_t *self = service;
    return (front_service_t){.job = self->job, .job_uid = self->job_uid, .deleting = self->deleting};
}

static const char *s_pod_by_job(const void *pod, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const tfjob_pod_t *self = pod;
    return *self->job_uid ? self->job_uid : NULL;
}

static const char *s_pod_by_ip(const void *pod, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const tfjob_pod_t *self = pod;
    return *self->ip ? self->ip : NULL;
}

static const char *s_service_by_job(const void *service, char *buf, size_t size)
{
    (void)buf;
    (void)size;
    const tfjob_service_t *self = service;
    return *self->job_uid ? self->job_uid : NULL;
}

/* ---- the rest ----------------------------------------------------------------------------------------------------------- */

/*  CUSTOM_CLUSTER_DOMAIN of the operator's environment, as Kubeflow's: what the cluster's names end in. */
static tt_status_t s_build(json_t **out, const front_action_t *action, const front_parts_t *parts)
{
    if (action->what == FRONT_CREATE_POD)
        return tfjob_build_pod(out, parts->job, parts->whole, action->own, getenv("CUSTOM_CLUSTER_DOMAIN"));
    *out = tfjob_build_service(parts->job, action->own);
    return TT_OK;
}

/*  One word for metrics and exit codes, as batch/v1's Job has it: Kubeflow's reason is the same for all. */
static const char *s_reason(const json_t *failed)
{
    const char *words = parts_text(failed, "message", "");
    if (strstr(words, PLAN_LATE))
        return "DeadlineExceeded";
    return strstr(words, PLAN_LIMIT) ? "BackoffLimitExceeded" : parts_text(failed, "reason", NULL);
}

static front_end_t s_end(const json_t *status)
{
    const json_t *conditions = json_object_get(status, "conditions");
    const json_t *failed = plan_condition(conditions, "Failed");
    const bool bad = plan_is(failed, "status", "True");
    const bool well = !bad && plan_is(plan_condition(conditions, "Succeeded"), "status", "True");
    return (front_end_t){.ended = well || bad, .well = well, .reason = bad ? s_reason(failed) : NULL};
}

const front_t tfjob_front = {
    .name = "tfjob",
    .kind = "TFJob",
    .group = TFJOB_GROUP,
    .version = "v1",
    .plural = "tfjobs",
    .manager = "tf-operator",
    .reporter = "tfjob-controller",
    .shapes = {{.selector = "group-name=" TFJOB_GROUP ",job-name",
        .job_label = "job-name",
        .own_label = "group-name",
        .prefix = "tf_"}},
    .phases = tfjob_phases,
    .pod_drop = tfjob_pod_drop,
    .job_decode = s_job_decode,
    .job_destroy = s_job_destroy,
    .job = s_job,
    .pod_decode = s_pod_decode,
    .pod_destroy = s_pod_destroy,
    .pod = s_pod,
    .service_decode = s_service_decode,
    .service_destroy = s_service_destroy,
    .service = s_service,
    .pod_by_job = s_pod_by_job,
    .pod_by_ip = s_pod_by_ip,
    .service_by_job = s_service_by_job,
    .plan = tfjob_plan,
    .plan_clear = tfjob_plan_clear,
    .build = s_build,
    .end = s_end,
    .local = &tfjob_local,
};
