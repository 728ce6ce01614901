#include "k8s/tfjob/local.h"
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

const front_local_t tfjob_local = {
    .fields = s_fields,
    .used = s_used,
    .policy = "runPolicy",
    .seen = s_seen,
    .scale = s_scale,
};
