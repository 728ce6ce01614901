#include "k8s/dijob/local.h"
#include <stdio.h>
#include <string.h>
#include "k8s/dijob/plan.h"

static const char *const s_used[] = {"cleanPodPolicy", "volumes", "coordinator", "collector", "learner", "aggregator",
    "tasks", "engine", "preemptible", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend",
    NULL};

static const char *s_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool s_runs_tutti(const void *job)
{
    return ((const dijob_t *)job)->tutti;
}

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
        const char *name = s_text(task, "name");
        snprintf(path, sizeof path, "spec.tasks[%zu]", i);
        TT_TRY(fn(ctx, &(front_template_t){path, *name ? name : s_text(task, "type"), task}));
    }
    return TT_OK;
}

static front_seen_t s_seen(const void *pod)
{
    static const char *const phases[] = {[POD_PENDING] = "Pending",
        [POD_RUNNING] = "Running",
        [POD_SUCCEEDED] = "Succeeded",
        [POD_FAILED] = "Failed",
        [POD_UNKNOWN] = "Unknown"};
    const dijob_pod_t *self = pod;
    const char *task = self->owner_pod ? self->owner_pod : "";
    return (front_seen_t){.group = self->role == DIJOB_TASK ? task : dijob_role_label((dijob_role_t)self->role),
        .phase = phases[self->phase],
        .failed = self->phase == POD_FAILED,
        .main_waits = self->main == MAIN_WAITING,
        .main_failed = self->main == MAIN_ERROR,
        .exit_code = self->exit_code,
        .last_exit = self->last_exit,
        .ready = self->ready,
        .alive = dijob_pod_alive(self),
        .tells = self->role == DIJOB_COORDINATOR || self->role == DIJOB_TASK,
        .leads = self->role == DIJOB_COORDINATOR};
}

static void s_set_port(void *pod, uint16_t port)
{
    ((dijob_pod_t *)pod)->port = port;
}

static bool s_group(const void *job, size_t i, front_group_t *out)
{
    const dijob_t *self = job;
    if (self->tasks_shape && i < self->task_count)
        *out = (front_group_t){self->tasks[i].name, self->tasks[i].replicas, true};
    else if (!self->tasks_shape && i < DIJOB_TASK)
        *out = (front_group_t){.name = dijob_role_label((dijob_role_t)i),
            .desired = i == DIJOB_COORDINATOR ? 1 : self->replicas[i],
            .asked = self->has[i] && i != DIJOB_DDP_LEARNER};
    else
        return false;
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_scale_task(json_t *spec, const dijob_t *job, const char *name, int64_t replicas)
{
    json_t *tasks = json_object_get(spec, "tasks");
    for (size_t i = 0; i < job->task_count; i++)
        if (strcmp(job->tasks[i].name, name) == 0) {
            json_object_set_new(json_array_get(tasks, i), "replicas", json_integer(replicas));
            return TT_OK;
        }
    return tt_err(TT_NOT_FOUND, "the job has no task %s", name);
}

static tt_status_t s_scale_role(json_t *spec, const char *name, int64_t replicas)
{
    json_t *role = json_object_get(spec, name);
    const bool scales =
        strcmp(name, "collector") == 0 || strcmp(name, "learner") == 0 || strcmp(name, "aggregator") == 0;
    if (!scales)
        return tt_err(TT_NOT_FOUND, "%s cannot be scaled: collector, learner and aggregator can", name);
    if (!role && strcmp(name, "aggregator") != 0)
        return tt_err(TT_NOT_FOUND, "the job has no spec.%s", name);
    if (!role)
        json_object_set_new(spec, name, role = json_object());
    json_object_set_new(role, "replicas", json_integer(replicas));
    return TT_OK;
}

static tt_status_t s_scale(json_t *job, const char *group, int64_t replicas)
{
    json_t *spec = json_object_get(job, "spec");
    dijob_t *seen = NULL;
    TT_TRY(dijob_from_json(&seen, job));
    const tt_status_t status =
        seen->tasks_shape ? s_scale_task(spec, seen, group, replicas) : s_scale_role(spec, group, replicas);
    dijob_destroy(&seen);
    return status;
}

const front_local_t dijob_local = {
    .used = s_used,
    .config_kind = "AggregatorConfig",
    .runs_tutti = s_runs_tutti,
    .templates = s_templates,
    .seen = s_seen,
    .set_port = s_set_port,
    .group = s_group,
    .scale = s_scale,
};
