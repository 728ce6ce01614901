/*  make - pods built by their front end, as in the cluster, each with an address of its own on this machine. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "local/run.h"

/*  The first port that a container names: with an address of its own a pod may have the cluster's. */
static uint16_t s_port(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    size_t i;
    json_t *container;
    json_array_foreach((json_t *)(uintptr_t)containers, i, container)
    {
        const json_t *port = json_array_get(json_object_get(container, "ports"), 0);
        const json_int_t number = json_integer_value(json_object_get(port, "containerPort"));
        if (number > 0 && number < 65536)
            return (uint16_t)number;
    }
    return 0;
}

/* ---- what a kind's settle asks this machine for ------------------------------------------------------------------------- */

static void s_address(void *ctx, unsigned n, char ip[16])
{
    place_address(((run_t *)ctx)->place, n, ip);
}

static uint16_t s_ports(void *ctx, unsigned count)
{
    uint16_t first = 0;
    return place_ports(((run_t *)ctx)->place, &first, count) == TT_OK ? first : 0;
}

static uint16_t s_kept_port(void *ctx, const char *key)
{
    json_t *ports = ((run_t *)ctx)->ports;
    uint16_t port = (uint16_t)json_integer_value(json_object_get(ports, key));
    if (port == 0 && (port = s_ports(ctx, 1)) != 0)
        json_object_set_new(ports, key, json_integer(port));
    return port;
}

static tt_status_t s_settle(run_t *self, json_t *pod, const front_action_t *action, front_spot_t *spot)
{
    const front_machine_t machine = {.job = self->seen,
        .whole = self->job,
        .namespace_ = self->place->namespace_,
        .names = self->place->kind != 0,
        .address = s_address,
        .ports = s_ports,
        .port = s_kept_port,
        .ctx = self};
    if (self->front->local->settle)
        TT_TRY(self->front->local->settle(&machine, pod, action, spot));
    if (!*spot->ip)
        place_address(self->place, self->place->next++, spot->ip);
    return TT_OK;
}

tt_status_t run_build(const run_t *self, json_t **out, const front_action_t *action)
{
    front_parts_t parts = {
        .job = self->seen, .whole = self->job, .config = self->opts->manifest->config, .server_url = self->server_url};
    if (action->what == FRONT_CREATE_SERVICE && action->name) {
        const size_t at = kubelet_find(self->kubelet, action->name);
        if (at == kubelet_count(self->kubelet))
            return tt_err(TT_NOT_FOUND, "a service of pod %s, which is not there", action->name);
        parts.pod = kubelet_pod(self->kubelet, at);
    }
    return self->front->build(out, action, &parts);
}

tt_status_t run_make(run_t *self, const front_action_t *action)
{
    json_t *pod = NULL;
    TT_TRY(run_build(self, &pod, action));
    front_spot_t spot = {.port = s_port(pod)};
    const tt_status_t status = s_settle(self, pod, action, &spot);
    if (status != TT_OK) {
        json_decref(pod);
        return status;
    }
    self->dirty = true;
    return kubelet_create(self->kubelet, pod, spot.ip, spot.port);
}

const void **run_pods(const run_t *self, size_t *count)
{
    *count = kubelet_count(self->kubelet);
    const void **pods = tt_array0(*count + 1, sizeof *pods);
    for (size_t i = 0; i < *count; i++)
        pods[i] = kubelet_pod(self->kubelet, i);
    return pods;
}
