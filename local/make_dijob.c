/*  make_dijob - what differs on one machine for a DIJob's pods: every one has a free port and an address of its own, and
 *  the variables that dijob/build.h sets tell of those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/json.h"
#include "local/run_dijob.h"
#include "k8s/front/object.h"

enum { RANKS_MAX = 1000 }; /* numbers of addresses that a task has */

/* ---- variables that build has set -------------------------------------------------------------------------------------------- */

static void s_set_in(const json_t *containers, const char *name, const char *value)
{
    size_t i;
    json_t *container;
    json_array_foreach((json_t *)(uintptr_t)containers, i, container)
    {
        json_t *entry = parts_named(json_object_get(container, "env"), "name", name);
        if (entry)
            json_object_set_new(entry, "value", tt_json_text(value));
    }
}

static void s_set(const json_t *pod, const char *name, const char *value)
{
    const json_t *spec = json_object_get(pod, "spec");
    s_set_in(json_object_get(spec, "containers"), name, value);
    s_set_in(json_object_get(spec, "initContainers"), name, value);
}

static void s_set_int(const json_t *pod, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    s_set(pod, name, text);
}

/* ---- ports and addresses ------------------------------------------------------------------------------------------------------ */

static void s_container_ports(const json_t *pod, int port, int gpus)
{
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(json_object_get(pod, "spec"), "containers"), i, container)
    {
        json_t *ports = json_object_get(container, "ports"), *own = parts_named(ports, "name", "di-port");
        if (own)
            json_object_set_new(own, "containerPort", json_integer(port));
        for (int gpu = 1; gpu < gpus; gpu++) {
            char name[24];
            snprintf(name, sizeof name, "gpu-port-%d", gpu);
            json_t *further = parts_named(ports, "name", name);
            if (further)
                json_object_set_new(further, "containerPort", json_integer(port + gpu));
        }
    }
}

/*  All pods of one aggregator meet at one port of the first one's address. */
static tt_status_t s_master(run_t *self, const json_t *pod, const dijob_pod_want_t *want)
{
    const char *group = want->aggregator ? want->aggregator : "";
    if (!json_object_get(self->masters, group)) {
        uint16_t port = 0;
        TT_TRY(place_ports(self->place, &port, 1));
        json_object_set_new(self->masters, group, json_integer(port));
    }
    s_set_int(pod, "MASTER_PORT", (int)json_integer_value(json_object_get(self->masters, group)));
    s_set(pod, "MASTER_ADDR", "127.0.0.1");
    return TT_OK;
}

/*  The coordinator keeps its port and address when it is made anew: the others have been told. */
static tt_status_t s_coordinator(run_t *self)
{
    if (self->coordinator_port)
        return TT_OK;
    place_address(self->place, self->place->next++, self->coordinator_ip);
    return place_ports(self->place, &self->coordinator_port, 1);
}

static tt_status_t s_settle_role(
    run_t *self, const json_t *pod, const dijob_pod_want_t *want, char ip[16], uint16_t *port)
{
    const int gpus = want->role == DIJOB_DDP_LEARNER && want->gpus > 1 ? want->gpus : 1;
    TT_TRY(s_coordinator(self));
    if (want->role == DIJOB_COORDINATOR) {
        snprintf(ip, 16, "%s", self->coordinator_ip);
        *port = self->coordinator_port;
    } else {
        place_address(self->place, self->place->next++, ip);
        TT_TRY(place_ports(self->place, port, (unsigned)gpus));
    }
    char *coordinator = tt_sprintf("%s-coordinator", run_name(self));
    char *url = place_url(self->place, coordinator, self->coordinator_ip, self->coordinator_port);
    s_set(pod, "KUBERNETES_COORDINATOR_URL", url);
    s_set_int(pod, dijob_role_port_env(want->role), *port);
    s_container_ports(pod, *port, gpus);
    free(url);
    free(coordinator);
    return want->role == DIJOB_DDP_LEARNER ? s_master(self, pod, want) : TT_OK;
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------------- */

/*  Where names lead nowhere, DI_NODES are addresses: those of every rank are known before it is made. */
static void s_nodes(const run_t *self, const json_t *pod, const char *name, const char *type)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < run_dijob(self)->task_count; i++) {
        const dijob_task_t *task = &run_dijob(self)->tasks[i];
        for (unsigned rank = 0; rank < task->replicas && (!type || strcmp(task->type, type) == 0); rank++) {
            char ip[16];
            place_address(self->place, (unsigned)i * RANKS_MAX + rank, ip);
            (void)tt_buf_printf(&text, "%s%s", text.size ? "," : "", ip);
        }
    }
    s_set(pod, name, tt_buf_text(&text));
    tt_buf_free(&text);
}

static void s_settle_task(run_t *self, const json_t *pod, const dijob_pod_want_t *want, char ip[16])
{
    const dijob_task_t *task = &run_dijob(self)->tasks[want->task];
    place_address(self->place, (unsigned)want->task * RANKS_MAX + (unsigned)want->task_rank, ip);
    if (self->place->kind)
        return;
    char *own = tt_sprintf("DI_%s_NODES", task->name);
    for (char *c = own; *c; c++)
        *c = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    s_nodes(self, pod, "DI_NODES", NULL);
    s_nodes(self, pod, own, task->type);
    free(own);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------ */

tt_status_t run_settle_dijob(run_t *self, const json_t *pod, const front_action_t *action, char ip[16], uint16_t *port)
{
    const dijob_pod_want_t *want = action->own;
    *port = (uint16_t)dijob_role_port(want->role);
    if (want->role != DIJOB_TASK)
        return s_settle_role(self, pod, want, ip, port);
    s_settle_task(self, pod, want, ip);
    return TT_OK;
}

tt_status_t run_make_dijob(run_t *self, const dijob_pod_want_t *want)
{
    return run_make(self, &(front_action_t){.what = FRONT_CREATE_POD, .name = want->name, .own = want});
}

char *run_url(const run_t *self, const dijob_pod_t *pod, int gpu_port)
{
    return place_url(self->place, pod->meta.name, pod->ip, pod->port + gpu_port);
}
