/*  front - DIJobs as the operator and the local run see any kind of job (k8s/front/front.h). */
#include "k8s/front/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/local.h"
#include "k8s/dijob/rules.h"

static const char *const s_phases[DIJOB_PHASES + 1] = {
#define X(name, text) [DIJOB_PHASE_##name] = text,
    DIJOB_PHASE_MAP(X)
#undef X
};

/* ---- entries ------------------------------------------------------------------------------------------------------------ */

FRONT_DECODE(s_job_decode, dijob_t, dijob_decode)
FRONT_DECODE(s_pod_decode, dijob_pod_t, dijob_pod_decode)
FRONT_DECODE(s_service_decode, dijob_service_t, dijob_service_decode)

static void s_job_destroy(void *job)
{
    dijob_t *self = job;
    dijob_destroy(&self);
}

static front_job_t s_job(const void *job)
{
    const dijob_t *self = job;
    return (front_job_t){.generation = self->generation,
        .phase = (int)self->phase,
        .deleting = self->deleting,
        .suspended = self->suspend,
        .final = dijob_phase_final(self->phase),
        .embedded = self->embedded,
        .refusal = dijob_refusal(self),
        .queue = self->queue};
}

/* ---- building ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_build_pod(json_t **out, const dijob_pod_want_t *asked, const front_parts_t *parts)
{
    dijob_pod_want_t want = *asked;
    want.server_url = parts->server_url;
    want.agconfig = parts->config;
    return dijob_build_pod(out, parts->whole, &want);
}

static tt_status_t s_build(json_t **out, const front_action_t *action, const front_parts_t *parts)
{
    if (action->what == FRONT_CREATE_POD)
        return s_build_pod(out, action->own, parts);
    if (action->what == FRONT_CREATE_OBJECT)
        return dijob_build_curve(out, parts->job);
    return parts->pod ? dijob_build_service(out, parts->job, parts->pod) : dijob_build_job_service(out, parts->job);
}

/* ---- the rest ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_templates(const json_t *job, front_template_fn fn, void *ctx)
{
    static const char *const roles[] = {"coordinator", "collector", "learner", "aggregator"};
    const json_t *spec = json_object_get(job, "spec");
    char path[64];
    size_t i;
    json_t *task;
    for (size_t k = 0; k < TT_COUNT(roles); k++) {
        snprintf(path, sizeof path, "spec.%s", roles[k]);
        TT_TRY(fn(ctx, &(front_template_t){path, roles[k], json_object_get(spec, roles[k])}));
    }
    json_array_foreach(json_object_get(spec, "tasks"), i, task)
    {
        const char *name = parts_text(task, "name", "");
        snprintf(path, sizeof path, "spec.tasks[%zu]", i);
        TT_TRY(fn(ctx, &(front_template_t){path, *name ? name : parts_text(task, "type", ""), task}));
    }
    return TT_OK;
}

static bool s_group(const void *job, size_t i, front_group_t *out)
{
    const dijob_t *self = job;
    if (self->tasks_shape && i < self->task_count)
        *out = (front_group_t){.name = self->tasks[i].name,
            .min = self->tasks[i].replicas,
            .wanted = self->tasks[i].replicas,
            .desired = self->tasks[i].replicas,
            .asked = true,
            .needs = FRONT_NEEDS_JOB};
    else if (!self->tasks_shape && i < DIJOB_TASK)
        *out = (front_group_t){.name = dijob_role_label((dijob_role_t)i),
            .min = rules_least(self, (dijob_role_t)i),
            .wanted = rules_wanted(self, (dijob_role_t)i),
            .desired = i == DIJOB_COORDINATOR ? 1 : self->replicas[i],
            .asked = self->has[i] && i != DIJOB_DDP_LEARNER,
            .needs = planner_needs(self, (dijob_role_t)i)};
    else
        return false;
    return true;
}

static tt_status_t s_pod_template(json_t **out, const json_t *job, const json_t *config, size_t i)
{
    const json_t *tasks = parts_array(json_object_get(job, "spec"), "tasks");
    return tasks ? dijob_pod_template(out, job, NULL, DIJOB_TASK, (int)i)
                 : dijob_pod_template(out, job, config, (dijob_role_t)i, -1);
}

static front_end_t s_end(const json_t *status)
{
    const char *phase = json_string_value(json_object_get(status, "phase"));
    const bool well = phase && strcmp(phase, dijob_phase_name(DIJOB_PHASE_SUCCEEDED)) == 0;
    const bool failed = phase && strcmp(phase, dijob_phase_name(DIJOB_PHASE_FAILED)) == 0;
    return (front_end_t){.ended = well || failed,
        .well = well,
        .reason = failed ? json_string_value(json_object_get(status, "reason")) : NULL};
}

const front_t dijob_front = {
    .name = "dijob",
    .kind = "DIJob",
    .group = DIJOB_GROUP,
    .version = "v1alpha1",
    .also = {"v2alpha1"},
    .plural = "dijobs",
    .manager = "di-operator",
    .reporter = "di-orchestrator",
    .config = "aggregatorconfigs",
    /* DI-orchestrator's two versions have no label in common; what has both is a task's */
    .shapes = {{.selector = "controller-name=di-operator,!diengine/operator",
                   .job_label = "dijob-name",
                   .own_label = "controller-name",
                   .prefix = ""},
        {.selector = "diengine/operator=di-operator",
            .job_label = "diengine/job",
            .own_label = "diengine/operator",
            .prefix = "task_"}},
    .objects = {[DIJOB_CURVE] = {.api = "/api/v1", .resource = "secrets", .word = "secret", .secret = true}},
    .phases = s_phases,
    .job_decode = s_job_decode,
    .job_destroy = s_job_destroy,
    .job = s_job,
    .pod_decode = s_pod_decode,
    .service_decode = s_service_decode,
    .plan = dijob_plan,
    .build = s_build,
    .end = s_end,
    .templates = s_templates,
    .group_at = s_group,
    .pod_template = s_pod_template,
    .local = &dijob_local,
};
