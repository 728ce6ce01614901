#include "k8s/tfjob/local.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "k8s/front/object.h"
#include "k8s/tfjob/tfjob.h"

static const tt_fields_type_t s_fields[] = {
#define FIELDS(type, fields) {#type, fields},
#include "k8s/tfjob/fields.def"
#undef FIELDS
    {0}};

static const char *const s_used[] = {"tfReplicaSpecs", "runPolicy", "cleanPodPolicy", "activeDeadlineSeconds",
    "backoffLimit", "ttlSecondsAfterFinished", "successPolicy", "enableDynamicWorker", "replicaSpecs", "RuntimeId",
    "tfImage", "terminationPolicy", NULL};

/*  Killed from outside: with "ExitCode" another comes in its place. */
static bool s_comes_again(const tfjob_pod_t *pod)
{
    return pod->exit_code == 130 || pod->exit_code == 137 || pod->exit_code == 138 || pod->exit_code == 143;
}

/*  Whoever fails first, and is not made anew, says with which code the run ends; nobody has to be there for the others to begin. */
static front_seen_t s_seen(const void *pod)
{
    const tfjob_pod_t *self = pod;
    const bool ended = self->phase == POD_SUCCEEDED || self->phase == POD_FAILED;
    return (front_seen_t){.group = self->type < TFJOB_TYPES ? tfjob_type_label((tfjob_type_t)self->type) : "",
        .phase = entry_phase(&self->as_pod),
        .failed = self->phase == POD_FAILED,
        .main_waits = self->exit_code < 0 && self->last_exit >= 0,
        .main_failed = self->phase == POD_FAILED && self->exit_code > 0,
        .exit_code = self->exit_code,
        .last_exit = self->last_exit,
        .ready = self->ready,
        .alive = !self->deleting && !ended,
        .tells = self->old ? self->decides : !s_comes_again(self),
        .again = !self->old && s_comes_again(self)};
}

static tt_status_t s_scale(json_t *job, const char *group, int64_t replicas)
{
    json_t *holder = tfjob_replica_spec(job, tfjob_type_find(group));
    if (!holder)
        return tt_err(TT_NOT_FOUND, "the job has no replicas of type %s", group);
    json_object_set_new(holder, "replicas", json_integer(replicas));
    return TT_OK;
}

/* ---- where pods are: TensorFlow's servers listen at every address, so no two places have the same port ------------------- */

static void s_address(const front_machine_t *machine, tfjob_type_t type, int32_t index, char ip[16])
{
    machine->address(machine->ctx, (unsigned)type * TFJOB_REPLICAS_MAX + (unsigned)index, ip);
}

/*  A place keeps its address and its port, and everybody's TF_CONFIG names them before they are taken: by the cluster's names where
 *  these lead somewhere. */
static char *s_host(void *ctx, const tfjob_t *job, tfjob_type_t type, int32_t index)
{
    const front_machine_t *machine = ctx;
    char ip[16], *name = tfjob_place_name(job, type, index);
    const unsigned port = machine->port(machine->ctx, name);
    s_address(machine, type, index, ip);
    char *host = machine->names && job->old.there ? tt_sprintf("%s:%u", name, port)
                 : machine->names                 ? tt_sprintf("%s.%s.svc:%u", name, machine->namespace_, port)
                                                  : tt_sprintf("%s:%u", ip, port);
    free(name);
    return host;
}

/*  A parameter server without a template is a script in a folder that is shown to it, and its command names who there is. Where
 *  no folder can be shown the script is in the command. */
static void s_command(const front_machine_t *machine, const tfjob_place_t *place, json_t *container)
{
    if (!tfjob_old_is_default(machine->job, place))
        return;
    json_t *command = tfjob_old_command(machine->job, place, s_host, (void *)(uintptr_t)machine);
    json_object_set_new(container, "command", command);
    if (machine->names)
        return;
    json_array_set_new(command, 1, json_string("-c"));
    json_array_insert_new(command, 2, json_string(tfjob_old_script));
    json_object_del(container, "volumeMounts");
}

static tt_status_t s_settle(
    const front_machine_t *machine, json_t *pod, const front_action_t *action, front_spot_t *spot)
{
    const tfjob_place_t *place = action->own;
    json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    json_t *container = parts_named(containers, "name", TFJOB_CONTAINER);
    s_command(machine, place, container);
    char *config = tfjob_tf_config_by(machine->job, place, s_host, (void *)(uintptr_t)machine);
    spot->port = machine->port(machine->ctx, action->name);
    s_address(machine, place->type, place->index, spot->ip);
    parts_set_port(container, TFJOB_PORT, spot->port);
    if (config)
        parts_env_of(container, "TF_CONFIG", config);
    free(config);
    return spot->port ? TT_OK : TT_UNAVAILABLE;
}

const front_local_t tfjob_local = {
    .fields = s_fields,
    .used = s_used,
    .policy = "runPolicy",
    .seen = s_seen,
    .scale = s_scale,
    .settle = s_settle,
};
