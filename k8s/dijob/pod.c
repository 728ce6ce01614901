/*  pod - a role's template -> the pod that is made of it. What we do not know of a template stays as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"

enum { ASKED_MAX = 128 };

/* ---- from a template ------------------------------------------------------------------------------------------------------ */

/*  Nothing and zero are the same: as the template says. */
static const char *s_asked(const char *quantity)
{
    return quantity && strcmp(quantity, "0") != 0 ? quantity : "";
}

static void s_annotate_asked(json_t *pod, const dijob_resources_t *asked)
{
    char *text = tt_sprintf("%s/%s/%s", s_asked(asked->cpus), s_asked(asked->memory), s_asked(asked->gpus));
    char *parts = tt_strdup(text);
    dijob_resources_t again;
    if (dijob_asked(&again, parts) && (again.cpus || again.memory || again.gpus))
        parts_annotate(pod, PARTS_OWN "resources", text);
    free(parts);
    free(text);
}

bool dijob_asked(dijob_resources_t *out, char *text)
{
    char *rest = text, *part[3];
    if (strlen(text) >= ASKED_MAX)
        return false;
    for (int i = 0; i < 3; i++) {
        part[i] = strsep(&rest, "/");
        if (!part[i] || (rest == NULL) != (i == 2))
            return false;
    }
    *out = (dijob_resources_t){*part[0] ? part[0] : NULL, *part[1] ? part[1] : NULL, *part[2] ? part[2] : NULL};
    return true;
}

void parts_replaces(json_t *pod, const dijob_pod_want_t *want)
{
    s_annotate_asked(pod, &want->resources);
    if (want->replaces)
        parts_annotate(pod, PARTS_OWN "replaces", want->replaces);
    if (want->backoff_s > 0)
        parts_annotate_int(pod, PARTS_OWN "backoff", want->backoff_s);
    if (want->failures > 0)
        parts_annotate_int(pod, PARTS_OWN "failures", want->failures);
}

void parts_volumes(json_t *spec, const json_t *volumes)
{
    json_t *there = json_array_size(volumes) > 0 ? parts_member(spec, "volumes", json_array()) : NULL;
    size_t i;
    json_t *volume;
    json_array_foreach(volumes, i, volume)
    {
        if (!parts_named(there, "name", parts_text(volume, "name", NULL)))
            json_array_append_new(there, json_deep_copy(volume));
    }
}

/* ---- of a role ------------------------------------------------------------------------------------------------------------ */

static const char *s_holder(dijob_role_t role)
{
    return dijob_role_label(role == DIJOB_DDP_LEARNER ? DIJOB_LEARNER : role);
}

static tt_status_t s_task_template(json_t **out, const json_t *job, int task)
{
    const json_t *tasks = parts_array(json_object_get(job, "spec"), "tasks");
    json_t *template_ = parts_object(json_array_get(tasks, (size_t)task), "template");
    if (!template_)
        return tt_err(TT_NOT_FOUND, "DIJob %s has no spec.tasks[%d].template", parts_job_name(job), task);
    *out = json_incref(template_);
    return TT_OK;
}

/*  A new reference. */
static tt_status_t s_template(json_t **out, const json_t *job, const dijob_pod_want_t *want)
{
    const char *holder = s_holder(want->role);
    if (want->role == DIJOB_TASK)
        return s_task_template(out, job, want->task);
    json_t *template_ = parts_object(json_object_get(json_object_get(job, "spec"), holder), "template");
    if (template_)
        *out = json_incref(template_);
    else if (want->role == DIJOB_AGGREGATOR)
        return parts_aggregator(out, job, want->agconfig);
    else
        return tt_err(TT_NOT_FOUND, "DIJob %s has no spec.%s.template", parts_job_name(job), holder);
    return TT_OK;
}

static void s_labels(json_t *pod, const json_t *job, const dijob_pod_want_t *want)
{
    parts_label(pod, "group-name", DIJOB_GROUP);
    parts_label(pod, "dijob-name", parts_job_name(job));
    parts_label(pod, "controller-name", "di-operator");
    parts_label(pod, "replica-type", dijob_role_label(want->role));
    parts_label(pod, "pod-name", want->name);
    parts_recommend(parts_labels(pod), "dijob", parts_job_name(job), dijob_role_label(want->role));
    parts_replaces(pod, want);
}

static void s_owners(json_t *pod, const json_t *job, const dijob_pod_want_t *want)
{
    json_t *owners = json_pack("[o]", parts_owner(job, false));
    if (want->aggregator)
        parts_annotate(pod, PARTS_OWN "aggregator", want->aggregator);
    if (want->aggregator && want->aggregator_uid)
        json_array_append_new(owners, json_pack("{s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind", "Pod", "name",
                                          want->aggregator, "uid", want->aggregator_uid));
    json_object_set_new(json_object_get(pod, "metadata"), "ownerReferences", owners);
}

/*  "<job>-coordinator.<namespace>:<port>" */
static char *s_coordinator_url(const json_t *job)
{
    const json_t *coordinator = json_object_get(json_object_get(job, "spec"), "coordinator");
    const json_t *spec = json_object_get(json_object_get(coordinator, "template"), "spec");
    return tt_sprintf("%s-coordinator.%s:%d", parts_job_name(job), parts_job_namespace(job),
        parts_port(spec, DIJOB_COORDINATOR, NULL));
}

/*  A coordinator that is not the job's first waits for members that were under way (docs/internals/pods.md). The status
 *  counts those before it. */
static void s_restarts(json_t *spec, const json_t *status)
{
    if (*parts_text(status, "coordinatorUID", ""))
        parts_env_int(
            spec, "KUBERNETES_COORDINATOR_RESTARTS", json_integer_value(json_object_get(status, "restarts")) + 1);
}

static void s_env(json_t *spec, const json_t *job, const dijob_pod_want_t *want)
{
    parts_env_int(spec, dijob_role_port_env(want->role), parts_port(spec, want->role, NULL));
    parts_env(spec, "KUBERNETES_POD_NAMESPACE", parts_job_namespace(job));
    parts_env(spec, "KUBERNETES_POD_NAME", want->name);
    parts_env(spec, "KUBERNETES_SERVER_URL", want->server_url ? want->server_url : "");
    if (want->role != DIJOB_COORDINATOR && !parts_is_tutti(job))
        return;
    char *url = s_coordinator_url(job);
    parts_env(spec, "KUBERNETES_COORDINATOR_URL", url);
    free(url);
    if (want->role == DIJOB_COORDINATOR && parts_is_tutti(job))
        s_restarts(spec, json_object_get(job, "status"));
}

/*  The role's usual port, said of a container named di-container that has none of its own. */
static void s_port(json_t *spec, dijob_role_t role)
{
    json_t *container = parts_named(json_object_get(spec, "containers"), "name", MAIN_CONTAINER);
    if (container)
        parts_add_port(container, MAIN_PORT, parts_port(spec, role, NULL));
}

/*  Request and limit of the main container; nothing asked for, or zero: as the template says. */
static void s_resource(json_t *spec, dijob_role_t role, const char *key, const char *value)
{
    double number = 0;
    json_t *container = parts_main(spec, role, NULL);
    if (!value || !container || tt_quantity(&number, value) != TT_OK || number <= 0)
        return;
    json_t *resources = parts_member(container, "resources", json_object());
    json_object_set_new(parts_member(resources, "limits", json_object()), key, json_string(value));
    json_object_set_new(parts_member(resources, "requests", json_object()), key, json_string(value));
}

static void s_resources(json_t *spec, const dijob_pod_want_t *want)
{
    char gpus[16];
    const bool ddp = want->role == DIJOB_DDP_LEARNER && want->gpus > 0;
    snprintf(gpus, sizeof gpus, "%d", want->gpus);
    s_resource(spec, want->role, "cpu", want->resources.cpus);
    s_resource(spec, want->role, "memory", want->resources.memory);
    s_resource(spec, want->role, GPU_KEY, ddp ? gpus : want->resources.gpus);
}

/*  Volumes of the job are for what its own templates describe, not for an AggregatorConfig of many jobs. */
static bool s_gets_volumes(const json_t *job, const dijob_pod_want_t *want)
{
    return want->role != DIJOB_AGGREGATOR || !want->agconfig ||
           parts_object(json_object_get(json_object_get(job, "spec"), "aggregator"), "template");
}

static void s_coordinator(json_t *spec, const json_t *job_spec)
{
    const char *class = parts_text(job_spec, "priorityClassName", "");
    if (!*parts_text(spec, "restartPolicy", ""))
        json_object_set_new(spec, "restartPolicy", json_string("Never"));
    if (*class) /* of this role only, as users of DI-orchestrator know it */
        json_object_set_new(spec, "priorityClassName", json_string(class));
}

static void s_spec(json_t *spec, const json_t *job, const dijob_pod_want_t *want)
{
    const json_t *job_spec = json_object_get(job, "spec");
    if (want->role == DIJOB_COORDINATOR)
        s_coordinator(spec, job_spec);
    if (s_gets_volumes(job, want))
        parts_volumes(spec, json_object_get(job_spec, "volumes"));
    s_port(spec, want->role);
    s_resources(spec, want);
    s_env(spec, job, want);
}

tt_status_t dijob_pod_template(json_t **out, const json_t *job, const json_t *agconfig, dijob_role_t role, int task)
{
    json_t *template_;
    TT_TRY(s_template(&template_, job, &(dijob_pod_want_t){.role = role, .task = task, .agconfig = agconfig}));
    json_t *pod = parts_pod_from(job, template_, ""), *metadata = json_object_get(pod, "metadata");
    json_decref(template_);
    if (role == DIJOB_COORDINATOR)
        s_coordinator(json_object_get(pod, "spec"), json_object_get(job, "spec"));
    json_object_del(metadata, "name");
    json_object_del(metadata, "namespace");
    *out = json_pack("{s:O, s:O}", "metadata", metadata, "spec", json_object_get(pod, "spec"));
    json_decref(pod);
    return TT_OK;
}

tt_status_t dijob_build_pod(json_t **out, const json_t *job, const dijob_pod_want_t *want)
{
    json_t *template_;
    if (want->role == DIJOB_TASK)
        return parts_task_pod(out, job, want);
    TT_TRY(s_template(&template_, job, want));
    json_t *pod = parts_pod_from(job, template_, want->name);
    json_decref(template_);
    s_labels(pod, job, want);
    s_owners(pod, job, want);
    s_spec(json_object_get(pod, "spec"), job, want);
    if (parts_is_tutti(job))
        parts_mount_curve(pod, job, want->old_curve);
    if (want->role == DIJOB_DDP_LEARNER)
        parts_ddp(pod, want);
    *out = pod;
    return TT_OK;
}
