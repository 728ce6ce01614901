#include "k8s/dijob/local.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"
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

/* ---- where pods are ------------------------------------------------------------------------------------------------------ */

static void s_container_ports(const json_t *spec, int port, int gpus)
{
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        parts_set_port(container, MAIN_PORT, port);
        for (int gpu = 1; gpu < gpus; gpu++) {
            char name[24];
            snprintf(name, sizeof name, "gpu-port-%d", gpu);
            parts_set_port(container, name, port + gpu);
        }
    }
}

/*  All pods of one aggregator meet at one port of the first one's address. */
static tt_status_t s_master(const front_machine_t *machine, json_t *spec, const dijob_pod_want_t *want)
{
    const uint16_t port = machine->port(machine->ctx, want->aggregator ? want->aggregator : "");
    parts_env_int(spec, "MASTER_PORT", port);
    parts_env(spec, "MASTER_ADDR", "127.0.0.1");
    return port ? TT_OK : TT_UNAVAILABLE;
}

/*  The coordinator keeps its port and address when it is made anew: the others have been told. */
static tt_status_t s_settle_role(
    const front_machine_t *machine, json_t *spec, const dijob_pod_want_t *want, front_spot_t *spot)
{
    const bool leads = want->role == DIJOB_COORDINATOR;
    const int gpus = want->role == DIJOB_DDP_LEARNER && want->gpus > 1 ? want->gpus : 1;
    const uint16_t port = machine->port(machine->ctx, "coordinator");
    char ip[16];
    machine->address(machine->ctx, 0, ip);
    if (leads)
        snprintf(spot->ip, sizeof spot->ip, "%s", ip);
    spot->port = leads ? port : machine->ports(machine->ctx, (unsigned)gpus);
    if (!port || !spot->port)
        return TT_UNAVAILABLE;
    if (leads || parts_is_tutti(machine->whole)) {
        char *url = machine->names
                        ? tt_sprintf("%s-coordinator.%s:%d", parts_job_name(machine->whole), machine->namespace_, port)
                        : tt_sprintf("%s:%d", ip, port);
        parts_env(spec, "KUBERNETES_COORDINATOR_URL", url);
        free(url);
    }
    parts_env_int(spec, dijob_role_port_env(want->role), spot->port);
    s_container_ports(spec, spot->port, gpus);
    return want->role == DIJOB_DDP_LEARNER ? s_master(machine, spec, want) : TT_OK;
}

static tt_status_t s_settle(
    const front_machine_t *machine, json_t *pod, const front_action_t *action, front_spot_t *spot)
{
    const dijob_pod_want_t *want = action->own;
    json_t *spec = json_object_get(pod, "spec");
    spot->port = (uint16_t)dijob_role_port(want->role);
    return want->role == DIJOB_TASK ? parts_task_settle(machine, spec, want, spot)
                                    : s_settle_role(machine, spec, want, spot);
}

const front_local_t dijob_local = {
    .fields = s_fields,
    .used = s_used,
    .config_kind = "AggregatorConfig",
    .runs_tutti = s_runs_tutti,
    .seen = s_seen,
    .scale = s_scale,
    .settle = s_settle,
};
