#include "k8s/dijob/local.h"
#include <stdio.h>
#include <string.h>
#include "k8s/dijob/plan.h"

static const tt_fields_type_t s_fields[] = {
#define FIELDS(type, fields) {#type, fields},
#include "k8s/dijob/fields.def"
#undef FIELDS
    {0}};

static const char *const s_used[] = {"cleanPodPolicy", "volumes", "coordinator", "collector", "learner", "aggregator",
    "tasks", "engine", "preemptible", "backoffLimit", "podFailurePolicy", "activeDeadlineSeconds",
    "ttlSecondsAfterFinished", "suspend", NULL};

static bool s_runs_tutti(const void *job)
{
    return ((const dijob_t *)job)->tutti;
}

static front_seen_t s_seen(const void *pod)
{
    const dijob_pod_t *self = pod;
    const char *task = self->owner_pod ? self->owner_pod : "";
    return (front_seen_t){.group = self->role == DIJOB_TASK ? task : dijob_role_label((dijob_role_t)self->role),
        .phase = entry_phase(&self->as_pod),
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
    .fields = s_fields,
    .used = s_used,
    .config_kind = "AggregatorConfig",
    .runs_tutti = s_runs_tutti,
    .seen = s_seen,
    .scale = s_scale,
};
