/*  decode - a TFJob's JSON -> tfjob_t. What the schema in k8s/crd cannot say, and what came by another schema, is said here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k8s/tfjob/decode.h"

/* ---- replicas ------------------------------------------------------------------------------------------------------------- */

static void s_port(tfjob_t *self, tfjob_replicas_t *type, const json_t *container, const char *where)
{
    const json_t *port = parts_named(json_object_get(container, "ports"), "name", TFJOB_PORT);
    char holder[128];
    snprintf(holder, sizeof holder, "%s.template: port " TFJOB_PORT, where);
    type->port = (uint16_t)spec_number(&self->invalid, port, holder, "containerPort", TFJOB_PORT_NUMBER, 1, 65535);
}

void tfjob_containers(tfjob_t *self, tfjob_replicas_t *type, const json_t *template_, const char *where)
{
    const json_t *spec = parts_object(template_, "spec"), *containers = parts_array(spec, "containers");
    const json_t *main_ = parts_named(containers, "name", TFJOB_CONTAINER);
    static const char *const policies[] = {
        [TFJOB_ALWAYS] = "Always", [TFJOB_ON_FAILURE] = "OnFailure", [TFJOB_NEVER] = "Never"};
    const char *policy = parts_text(spec, "restartPolicy", "");
    size_t i;
    json_t *container;
    if (!containers || json_array_size(containers) == 0)
        INVALID(self, "expected %s.template.spec.containers", where);
    else if (!main_)
        INVALID(self, "%s.template has no container named " TFJOB_CONTAINER, where);
    json_array_foreach(containers, i, container)
    {
        if (!*parts_text(container, "name", "") || !*parts_text(container, "image", ""))
            INVALID(self, "%s.template.spec.containers[%zu]: expected a name and an image", where, i);
    }
    s_port(self, type, main_, where);
    type->overruled = *policy && (type->restart >= TT_COUNT(policies) || strcmp(policy, policies[type->restart]) != 0);
}

/*  The chief is one, and where there are parameter servers or workers there is one at least. */
static void s_count(tfjob_t *self, tfjob_type_t type, const json_t *holder, const char *where)
{
    const bool one = type == TFJOB_CHIEF || type == TFJOB_MASTER;
    const int64_t least = type == TFJOB_EVALUATOR ? 0 : 1, most = one ? 1 : TFJOB_REPLICAS_MAX;
    self->types[type].replicas = (int32_t)spec_number(&self->invalid, holder, where, "replicas", 1, least, most);
}

static void s_replicas(tfjob_t *self, tfjob_type_t type, const json_t *holder, const char *where)
{
    static const char *const words[] = {"", "Always", "OnFailure", "Never", "ExitCode"};
    static const tfjob_restart_t restarts[] = {
        TFJOB_NEVER, TFJOB_ALWAYS, TFJOB_ON_FAILURE, TFJOB_NEVER, TFJOB_EXIT_CODE, TFJOB_NEVER};
    tfjob_replicas_t *replicas = &self->types[type];
    const json_t *template_ = parts_object(holder, "template");
    replicas->there = true;
    s_count(self, type, holder, where);
    replicas->restart = restarts[spec_word(&self->invalid, holder, where, "restartPolicy", words, TT_COUNT(words))];
    if (template_)
        tfjob_containers(self, replicas, template_, where);
    else
        INVALID(self, "expected %s.template", where);
}

/*  Keys in any case, each type once. */
static void s_specs(tfjob_t *self, const json_t *specs)
{
    const char *key;
    json_t *holder;
    char where[80];
    json_object_foreach((json_t *)(uintptr_t)specs, key, holder)
    {
        const tfjob_type_t type = tfjob_type_find(key);
        snprintf(where, sizeof where, "spec.tfReplicaSpecs.%.40s", key);
        if (type == TFJOB_TYPES)
            INVALID(self, "%s: not one of Chief, Evaluator, Master, PS, Worker", where);
        else if (self->types[type].there)
            INVALID(self, "%s: there are two of this type, in other cases", where);
        else if (!json_is_object(holder))
            INVALID(self, "%s: expected a mapping", where);
        else
            s_replicas(self, type, holder, where);
    }
}

/*  Somebody has to say when the job is done, and not two. */
static void s_deciders(tfjob_t *self)
{
    const bool chief = self->types[TFJOB_CHIEF].there, master = self->types[TFJOB_MASTER].there;
    if (chief && master)
        INVALID(self, "spec.tfReplicaSpecs: more than one of Chief and Master");
    if (!chief && !master && !self->types[TFJOB_WORKER].there)
        INVALID(
            self, "spec.tfReplicaSpecs: expected a Chief, a Master or a Worker, or nobody says when the job is done");
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------ */

/*  runPolicy's; up to v1.0.0-rc.0 it stood under spec itself, and examples have it there still. */
static const json_t *s_holder(const json_t *spec, const char *key, const char **where)
{
    const json_t *policy = parts_object(spec, "runPolicy"), *member = json_object_get(policy, key);
    const bool new = member && !json_is_null(member);
    *where = new ? "spec.runPolicy" : "spec";
    return new ? policy : spec;
}

static int64_t s_run_number(tfjob_t *self, const json_t *spec, const char *key)
{
    const char *where;
    const json_t *holder = s_holder(spec, key, &where);
    return spec_number(&self->invalid, holder, where, key, -1, 0, INT32_MAX);
}

/*  As Kubeflow has it since 1.9: MultiKueue copies such a job to another cluster, and writes the status from there. */
static bool s_is_elsewhere(const json_t *spec)
{
    const char *by = parts_text(parts_object(spec, "runPolicy"), "managedBy", "");
    return *by && strcmp(by, "kubeflow.org/training-operator") != 0;
}

static void s_run_policy(tfjob_t *self, const json_t *spec)
{
    static const char *const words[] = {"", "Running", "All", "ALL", "None"};
    static const tt_clean_t cleans[] = {
        TT_CLEAN_RUNNING, TT_CLEAN_RUNNING, TT_CLEAN_ALL, TT_CLEAN_ALL, TT_CLEAN_NONE, TT_CLEAN_RUNNING};
    const json_t *policy = json_object_get(spec, "runPolicy");
    const char *where;
    if (policy && !json_is_null(policy) && !json_is_object(policy))
        INVALID(self, "spec.runPolicy: expected a mapping");
    const json_t *holder = s_holder(spec, "cleanPodPolicy", &where);
    self->clean = cleans[spec_word(&self->invalid, holder, where, "cleanPodPolicy", words, TT_COUNT(words))];
    self->deadline_s = s_run_number(self, spec, "activeDeadlineSeconds");
    self->ttl_s = s_run_number(self, spec, "ttlSecondsAfterFinished");
    self->backoff_limit = s_run_number(self, spec, "backoffLimit");
    self->suspend = spec_flag(&self->invalid, parts_object(spec, "runPolicy"), "spec.runPolicy", "suspend");
    self->elsewhere = s_is_elsewhere(spec);
}

/*  Every replica's name is that of a service, so a DNS label of RFC 1035. */
static void s_names(tfjob_t *self)
{
    const char *name = self->meta.name;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (name[length] || name[0] < 'a')
        INVALID(
            self, "metadata.name: '%.80s' is not made of lower case letters, digits and dashes, a letter first", name);
    for (int type = 0; type < TFJOB_TYPES; type++) {
        const tfjob_replicas_t *replicas = &self->types[type];
        if (!replicas->there || replicas->replicas == 0)
            continue;
        char *last = tfjob_place_name(self, (tfjob_type_t)type, replicas->replicas - 1);
        if (strlen(last) > TFJOB_NAME_MAX)
            INVALID(self, "metadata.name: '%.80s' would be a service's name, which has at most %d characters", last,
                TFJOB_NAME_MAX);
        free(last);
    }
}

static void s_spec(tfjob_t *self, const json_t *object, const json_t *spec)
{
    static const char *const policies[] = {"", "AllWorkers"};
    const json_t *specs = parts_object(spec, "tfReplicaSpecs");
    const json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
    if (specs && json_object_get(spec, "replicaSpecs"))
        INVALID(self, "spec.replicaSpecs: this is v1alpha1's, and tfReplicaSpecs v1's; expected one of them");
    if (!specs || json_object_size(specs) == 0)
        INVALID(self, "expected spec.tfReplicaSpecs");
    s_specs(self, specs);
    s_deciders(self);
    s_run_policy(self, spec);
    self->all_workers = spec_word(&self->invalid, spec, "spec", "successPolicy", policies, TT_COUNT(policies)) == 1;
    self->dynamic = spec_flag(&self->invalid, spec, "spec", "enableDynamicWorker");
    self->old_sparse = strcmp(parts_text(notes, PARTS_OWN "sparse-cluster-key", ""), "sparseCluster") == 0;
}

static bool s_is_on(const json_t *status, tfjob_phase_t phase)
{
    return parts_is(parts_condition(json_object_get(status, "conditions"), tfjob_phases[phase]), "status", "True");
}

static void s_status(tfjob_t *self, const json_t *status)
{
    static const tfjob_phase_t order[] = {TFJOB_PHASE_FAILED, TFJOB_PHASE_SUCCEEDED, TFJOB_PHASE_SUSPENDED,
        TFJOB_PHASE_RESTARTING, TFJOB_PHASE_RUNNING, TFJOB_PHASE_CREATED};
    for (size_t i = 0; i < TT_COUNT(order) && self->phase == TFJOB_PHASE_NONE; i++)
        if (s_is_on(status, order[i]))
            self->phase = order[i];
    if (status)
        self->status = kube_dump(status);
}

tt_status_t tfjob_from_json(tfjob_t **out, const json_t *object)
{
    tfjob_t head = {0};
    const json_t *spec = parts_object(object, "spec");
    TT_TRY(spec_head(object, "TFJob", TFJOB_GROUP, &head.meta, &head.generation, &head.deleting));
    tfjob_t *self = tt_new0(sizeof *self);
    *self = head;
    if (!spec)
        INVALID(self, "expected spec");
    if (tfjob_is_old(spec))
        tfjob_old_spec(self, spec);
    else
        s_spec(self, object, spec);
    s_names(self);
    s_status(self, parts_object(object, "status"));
    *out = self;
    return TT_OK;
}

tt_status_t tfjob_decode(tfjob_t **out, const char *json, size_t size)
{
    json_t *object = NULL;
    TT_TRY(spec_load(&object, "a TFJob", json, size));
    const tt_status_t status = tfjob_from_json(out, object);
    json_decref(object);
    return status;
}

void tfjob_destroy(tfjob_t **self_p)
{
    tfjob_t *self = *self_p;
    if (!self)
        return;
    free(self->status);
    free(self->invalid);
    kube_meta_clear(&self->meta);
    free(self);
    *self_p = NULL;
}
