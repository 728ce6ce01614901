/*  front - DIJobs as the operator and the local run see any kind of job (k8s/front/front.h). */
#include "k8s/front/front.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/local.h"
#include "k8s/dijob/plan.h"
#include "k8s/dijob/rules.h"

enum { CURVE }; /* index into s_objects */

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

/* ---- the plan ----------------------------------------------------------------------------------------------------------- */

/*  An aggregator's template is the job's, or an AggregatorConfig's. */
static int s_template_needs(const dijob_t *job, dijob_role_t role)
{
    const bool config = role == DIJOB_AGGREGATOR && !job->has[DIJOB_AGGREGATOR];
    return FRONT_NEEDS_JOB | (config ? FRONT_NEEDS_CONFIG : 0);
}

static front_action_t s_create_pod(const dijob_t *job, const dijob_action_t *action)
{
    const bool task = action->pod.role == DIJOB_TASK;
    return (front_action_t){.what = FRONT_CREATE_POD,
        .group = dijob_group(action->pod.role, action->pod.task),
        .who = task ? job->tasks[action->pod.task].name : dijob_role_label(action->pod.role),
        .needs = s_template_needs(job, action->pod.role)};
}

static front_action_t s_action(const dijob_t *job, const dijob_action_t *action)
{
    static const front_do_t whats[] = {[DIJOB_DO_DELETE_POD] = FRONT_DELETE_POD,
        [DIJOB_DO_CREATE_SERVICE] = FRONT_CREATE_SERVICE,
        [DIJOB_DO_DELETE_SERVICE] = FRONT_DELETE_SERVICE,
        [DIJOB_DO_CREATE_CURVE] = FRONT_CREATE_OBJECT,
        [DIJOB_DO_DELETE_JOB] = FRONT_DELETE_JOB,
        [DIJOB_DO_EVENT] = FRONT_EVENT};
    front_action_t out = action->what == DIJOB_DO_CREATE_POD
                             ? s_create_pod(job, action)
                             : (front_action_t){.what = whats[action->what], .object = CURVE};
    out.name = action->name;
    out.grace_s = action->grace_s;
    out.type = action->type;
    out.reason = action->reason;
    out.message = action->message;
    out.own = action;
    return out;
}

static tt_status_t s_plan(front_plan_t *out, const front_view_t *view)
{
    const dijob_view_t own = {.job = view->job,
        .pods = (const dijob_pod_t *const *)view->pods,
        .pod_count = view->pod_count,
        .services = (const dijob_service_t *const *)view->services,
        .service_count = view->service_count,
        .curve = view->made & 1u << CURVE,
        .now_s = view->now_s,
        .random = view->random,
        .refusals = view->refusals,
        .refusal_count = view->refusal_count,
        .admission = view->admission};
    dijob_plan_t *plan = tt_new0(sizeof *plan);
    const tt_status_t status = dijob_plan(plan, &own);
    *out = (front_plan_t){.actions = tt_array0(plan->count, sizeof *out->actions),
        .count = plan->count,
        .status = plan->status,
        .again_s = plan->again_s,
        .own = plan};
    for (size_t i = 0; i < plan->count; i++)
        out->actions[i] = s_action(view->job, &plan->actions[i]);
    return status;
}

static void s_plan_clear(front_plan_t *plan)
{
    if (plan->own)
        dijob_plan_clear(plan->own);
    free(plan->own);
    free(plan->actions);
    *plan = (front_plan_t){.again_s = -1};
}

static tt_status_t s_build_pod(json_t **out, const dijob_action_t *action, const front_parts_t *parts)
{
    dijob_pod_want_t want = action->pod;
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
            .needs = s_template_needs(self, (dijob_role_t)i)};
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
    .objects = {[CURVE] = {.api = "/api/v1", .resource = "secrets", .word = "secret", .secret = true}},
    .phases = s_phases,
    .job_decode = s_job_decode,
    .job_destroy = s_job_destroy,
    .job = s_job,
    .pod_decode = s_pod_decode,
    .service_decode = s_service_decode,
    .plan = s_plan,
    .plan_clear = s_plan_clear,
    .build = s_build,
    .end = s_end,
    .templates = s_templates,
    .group_at = s_group,
    .pod_template = s_pod_template,
    .local = &dijob_local,
};
