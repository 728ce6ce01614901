/*  make - pods built by their front end, as in the cluster, each with an address of its own on this machine. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "local/run.h"

/*  Kinds whose pods have to be told of more than a name that /etc/hosts knows. */
static const struct {
    const front_t *front;
    tt_status_t (*settle)(run_t *self, const json_t *pod, const front_action_t *action, char ip[16], uint16_t *port);
} s_settlers[] = {{&dijob_front, run_settle_dijob}, {&tfjob_front, run_settle_tfjob}};

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

static tt_status_t s_settle(run_t *self, const json_t *pod, const front_action_t *action, char ip[16], uint16_t *port)
{
    for (size_t i = 0; i < TT_COUNT(s_settlers); i++)
        if (s_settlers[i].front == self->front)
            return s_settlers[i].settle(self, pod, action, ip, port);
    place_address(self->place, self->place->next++, ip);
    *port = s_port(pod);
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
    char ip[16] = "";
    uint16_t port = 0;
    TT_TRY(run_build(self, &pod, action));
    const tt_status_t status = s_settle(self, pod, action, ip, &port);
    if (status != TT_OK) {
        json_decref(pod);
        return status;
    }
    self->dirty = true;
    return kubelet_create(self->kubelet, pod, ip, port);
}

const void **run_pods(const run_t *self, size_t *count)
{
    *count = kubelet_count(self->kubelet);
    const void **pods = tt_array0(*count + 1, sizeof *pods);
    for (size_t i = 0; i < *count; i++)
        pods[i] = kubelet_pod(self->kubelet, i);
    return pods;
}
