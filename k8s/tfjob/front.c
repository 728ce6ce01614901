/*  front - TFJobs as the operator and the local run see any kind of job (k8s/front/front.h). */
#include "k8s/front/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/front/accelerators.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/plan.h"
#include "k8s/tfjob/local.h"

/* ---- entries ------------------------------------------------------------------------------------------------------------ */

FRONT_DECODE(s_job_decode, tfjob_t, tfjob_decode)
FRONT_DECODE(s_pod_decode, tfjob_pod_t, tfjob_pod_decode)
FRONT_DECODE(s_service_decode, tfjob_service_t, tfjob_service_decode)

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
        .suspended = self->suspend,
        .embedded = self->elsewhere,
        .final = self->phase == TFJOB_PHASE_SUCCEEDED || self->phase == TFJOB_PHASE_FAILED,
        .refusal = self->invalid};
}

/* ---- the rest ----------------------------------------------------------------------------------------------------------- */

/*  CUSTOM_CLUSTER_DOMAIN of the operator's environment, as Kubeflow's: what the cluster's names end in. The container that gets
 *  TF_CONFIG is the one that gets what accelerators are given with, as in tf-operator v0.1.0. */
static tt_status_t s_build_pod(json_t **out, const tfjob_place_t *place, const front_parts_t *parts)
{
    json_t *pod = NULL;
    TT_TRY(tfjob_build_pod(&pod, parts->job, parts->whole, place, getenv("CUSTOM_CLUSTER_DOMAIN")));
    json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    const tt_status_t status =
        accelerators_dress(parts->accelerators, pod, parts_named(containers, "name", TFJOB_CONTAINER));
    if (status == TT_OK)
        *out = pod;
    else
        json_decref(pod);
    return status;
}

static tt_status_t s_build(json_t **out, const front_action_t *action, const front_parts_t *parts)
{
    if (action->what == FRONT_CREATE_POD)
        return s_build_pod(out, action->own, parts);
    *out = action->what == FRONT_CREATE_OBJECT
               ? tfjob_old_build(parts->job, parts->whole, (tfjob_old_object_t)action->object)
               : tfjob_build_service(parts->job, action->own);
    return TT_OK;
}

static bool s_group(const void *job, size_t i, front_group_t *out)
{
    const tfjob_t *self = job;
    if (i >= TFJOB_TYPES)
        return false;
    *out = (front_group_t){.name = tfjob_type_label((tfjob_type_t)i),
        .min = self->types[i].there ? self->types[i].replicas : 0,
        .desired = self->types[i].there ? self->types[i].replicas : 0,
        .asked = self->types[i].there};
    return true;
}

static const json_t *s_scheduling(const json_t *job)
{
    return parts_object(parts_object(json_object_get(job, "spec"), "runPolicy"), "schedulingPolicy");
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
    const json_t *failed = parts_condition(conditions, "Failed");
    const bool bad = parts_is(failed, "status", "True");
    const bool well = !bad && parts_is(parts_condition(conditions, "Succeeded"), "status", "True");
    return (front_end_t){.ended = well || bad, .well = well, .reason = bad ? s_reason(failed) : NULL};
}

const front_t tfjob_front = {
    .name = "tfjob",
    .kind = "TFJob",
    .group = TFJOB_GROUP,
    .version = "v1",
    .also = {"v1alpha1"},
    .plural = "tfjobs",
    .old_api = "tensorflow.org/v1alpha1",
    .old_kind = "TfJob",
    .accelerators = true,
    .manager = "tf-operator",
    .reporter = "tfjob-controller",
    /* ours have the labels of both generations, and are of the older shape; what has the younger's alone is another operator's */
    .shapes = {{.selector = TFJOB_TODAY "operator-name=" TFJOB_CONTROLLER "," TFJOB_TODAY
                                        "job-name,group-name!=" TFJOB_GROUP,
                   .job_label = TFJOB_TODAY "job-name",
                   .own_label = TFJOB_TODAY "operator-name",
                   .prefix = "tf_today_"},
        {.selector = "group-name=" TFJOB_GROUP ",job-name",
            .job_label = "job-name",
            .own_label = "group-name",
            .prefix = "tf_"}},
    .objects = {[TFJOB_OLD_SCRIPT] = {.api = "/api/v1", .resource = "configmaps", .word = "ConfigMap"},
        [TFJOB_OLD_BOARD] = {.api = "/apis/apps/v1", .resource = "deployments", .word = "Deployment"},
        [TFJOB_OLD_BOARD_SERVICE] = {.api = "/api/v1", .resource = "services", .word = "service"}},
    .phases = tfjob_phases,
    .job_decode = s_job_decode,
    .job_destroy = s_job_destroy,
    .job = s_job,
    .pod_decode = s_pod_decode,
    .service_decode = s_service_decode,
    .plan = tfjob_plan,
    .build = s_build,
    .end = s_end,
    .templates = tfjob_templates,
    .group_at = s_group,
    .scheduling = s_scheduling,
    .local = &tfjob_local,
};
