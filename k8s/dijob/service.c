/*  service - headless services: names under which pods find each other. */
#include <stdio.h>
#include <stdlib.h>
#include "common/base/mem.h"
#include "k8s/dijob/parts.h"

/*  A job that is a file is owned by what owns its pods. */
json_t *parts_owner_of_job(const dijob_t *job, bool block)
{
    json_t *owner = job->owner ? json_loads(job->owner, 0, NULL) : NULL;
    return owner ? owner : parts_owner_of(DIJOB_GROUP "/v1alpha1", "DIJob", job->meta.name, job->meta.uid, block);
}

static void s_port(json_t *ports, const char *name, int port)
{
    if (port <= 65535)
        json_array_append_new(ports, json_pack("{s:s, s:i}", "name", name, "port", port));
}

/*  What it selects by it has itself, and the labels that are recommended beside. selector and ports are taken. */
static json_t *s_service(
    const dijob_t *job, const char *name, const char *component, json_t *selector, json_t *ports, bool block)
{
    json_t *labels = json_copy(selector);
    parts_recommend(labels, "dijob", job->meta.name, component);
    return parts_service(job->meta.namespace_, name, labels, parts_owner_of_job(job, block), selector, ports);
}

static json_t *s_ports(const dijob_pod_t *pod)
{
    json_t *ports = json_array();
    s_port(ports, MAIN_PORT, pod->port);
    for (int i = 1; i <= pod->gpu_ports; i++) {
        char name[24];
        snprintf(name, sizeof name, "gpu-port-%d", i);
        s_port(ports, name, pod->port + i);
    }
    if (pod->ddp_master)
        s_port(ports, "master-port", PORT_MASTER);
    return ports;
}

tt_status_t dijob_build_service(json_t **out, const dijob_t *job, const dijob_pod_t *pod)
{
    const char *role = dijob_role_label((dijob_role_t)pod->role);
    if (pod->role == DIJOB_TASK)
        return tt_err(TT_INVALID, "%s: a task's pods have the job's service", pod->meta.name);
    json_t *selector = json_pack("{s:s, s:s, s:s, s:s, s:s}", "group-name", DIJOB_GROUP, "dijob-name", job->meta.name,
        "controller-name", "di-operator", "replica-type", role, "pod-name", pod->meta.name);
    if (pod->ddp_master)
        json_object_set_new(selector, "ddp-learner-type", json_string("ddp-learner-master"));
    *out = s_service(job, pod->meta.name, role, selector, s_ports(pod), false);
    return TT_OK;
}

tt_status_t dijob_build_job_service(json_t **out, const dijob_t *job)
{
    json_t *ports = json_array();
    char *name = tt_sprintf("di-%s", job->meta.name);
    s_port(ports, MAIN_PORT, PORT_TASK);
    json_t *selector = json_pack("{s:s, s:s}", "diengine/job", job->meta.name, "diengine/operator", "di-operator");
    json_t *service = s_service(job, name, "", selector, ports, true); /* the selector is as upstream's */
    json_object_set_new(parts_labels(service), "controller-name", json_string("di-operator"));
    free(name);
    *out = service;
    return TT_OK;
}
