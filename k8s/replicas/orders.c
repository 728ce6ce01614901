#include "k8s/replicas/orders.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

enum { DDP_PARTS = 256, GPUS_MAX = 4096, RANKS_MAX = 65536 };

/* ---- lists --------------------------------------------------------------------------------------------------------- */

/*  A pod's address: of a ddp learner one a GPU. */
static void s_list(json_t *list, const replicas_view_t *view, const dijob_pod_t *pod)
{
    for (int gpu = 0; gpu <= (pod->role == DIJOB_DDP_LEARNER ? pod->gpu_ports : 0); gpu++) {
        char *url = view->url(view->ctx, pod, gpu);
        json_array_append_new(list, json_string(url));
        free(url);
    }
}

static json_t *s_of_coordinator(const replicas_view_t *view, const dijob_pod_t *coordinator)
{
    json_t *collectors = json_array(), *learners = json_array();
    for (size_t i = 0; i < view->pod_count; i++) {
        const dijob_pod_t *pod = view->pods[i];
        if (!dijob_pod_alive(pod))
            continue;
        if (pod->role == DIJOB_COLLECTOR)
            s_list(collectors, view, pod);
        else if (pod->role == DIJOB_LEARNER || pod->role == DIJOB_AGGREGATOR)
            s_list(learners, view, pod);
    }
    return replicas_object(coordinator->meta.namespace_, coordinator->meta.name, collectors, learners);
}

static bool s_is_its(const dijob_pod_t *pod, const dijob_pod_t *aggregator)
{
    return pod->role == DIJOB_DDP_LEARNER && pod->owner_pod && strcmp(pod->owner_pod, aggregator->meta.name) == 0;
}

static json_t *s_of_aggregator(const replicas_view_t *view, const dijob_pod_t *aggregator)
{
    json_t *learners = json_array();
    for (size_t i = 0; i < view->pod_count; i++)
        if (s_is_its(view->pods[i], aggregator) && dijob_pod_alive(view->pods[i]))
            s_list(learners, view, view->pods[i]);
    return replicas_object(aggregator->meta.namespace_, aggregator->meta.name, NULL, learners);
}

json_t *replicas_of(const replicas_view_t *view, const dijob_pod_t *about)
{
    return about->role == DIJOB_AGGREGATOR ? s_of_aggregator(view, about) : s_of_coordinator(view, about);
}

/*  Addresses by rank, "" where a rank has none, not yet or not any more. */
json_t *replicas_of_tasks(const replicas_view_t *view)
{
    json_t *list = json_array();
    for (size_t i = 0; i < view->pod_count; i++) {
        const dijob_pod_t *pod = view->pods[i];
        char url[80] = "";
        if (pod->rank < 0 || pod->rank >= RANKS_MAX)
            continue;
        while (json_array_size(list) <= (size_t)pod->rank)
            json_array_append_new(list, json_string(""));
        if (!*pod->ip || !dijob_pod_alive(pod))
            continue;
        snprintf(url, sizeof url, "%s:%d", pod->ip, pod->port);
        json_array_set_new(list, (size_t)pod->rank, json_string(url));
    }
    if (json_array_size(list) > 0)
        return list;
    json_decref(list);
    return NULL;
}

const dijob_pod_t *replicas_find(const replicas_view_t *view, const char *name)
{
    for (size_t i = 0; i < view->pod_count; i++)
        if (strcmp(view->pods[i]->meta.name, name) == 0)
            return view->pods[i];
    return NULL;
}

/* ---- orders -------------------------------------------------------------------------------------------------------- */

typedef struct {
    replicas_orders_t *out;
    const replicas_view_t *view;
    const replicas_request_t *request;
    dijob_role_t by;
} taker_t;

static json_t *s_side(const taker_t *self, bool learner)
{
    return learner ? self->out->learners : self->out->collectors;
}

static replicas_order_t *s_order(taker_t *self, dijob_role_t role, bool learner, uint64_t random)
{
    replicas_orders_t *out = self->out;
    if ((out->count & (out->count - 1)) == 0)
        out->orders = tt_realloc(out->orders, tt_mul(out->count ? 2 * out->count : 1, sizeof *out->orders));
    replicas_order_t *order = &out->orders[out->count++];
    *order = (replicas_order_t){.learner = learner,
        .want = {.role = role,
            .name = dijob_pod_name(self->view->job->meta.name, role, &random),
            .task = -1,
            .rank = -1,
            .task_rank = -1}};
    return order;
}

static bool s_declared(const taker_t *self, dijob_role_t role)
{
    if (self->view->job->replicas[role] < 0)
        return false;
    self->view->declared(self->view->ctx, self->view->job, role);
    return true;
}

/*  The spec counts: the addresses of those that are there, n at most. */
static void s_list_existing(const taker_t *self, dijob_role_t role, int n, json_t *list)
{
    const replicas_view_t *view = self->view;
    for (size_t i = 0; i < view->pod_count && (int)json_array_size(list) < n; i++)
        if (view->pods[i]->role == role && dijob_pod_alive(view->pods[i]))
            s_list(list, view, view->pods[i]);
}

static int s_alive(const replicas_view_t *view, dijob_role_t role)
{
    int alive = 0;
    for (size_t i = 0; i < view->pod_count; i++)
        alive += view->pods[i]->role == role && dijob_pod_alive(view->pods[i]);
    return alive;
}

/*  Learners with several GPUs are counted by their aggregators, as they are asked for. */
static tt_status_t s_room(const taker_t *self, dijob_role_t role, dijob_role_t counted, int asked)
{
    const int64_t most = self->view->job->most[role], there = s_alive(self->view, counted);
    if (most > 0 && there + asked > most)
        return tt_err(TT_INVALID, "%ss.replicas: %d more than the %lld that are there, and spec.%s.maxReplicas is %lld",
            dijob_role_label(role), asked, (long long)there, dijob_role_label(role), (long long)most);
    return TT_OK;
}

static dijob_resources_t s_resources(const replicas_ask_t *ask)
{
    return (dijob_resources_t){.cpus = ask->cpus, .memory = ask->memory, .gpus = ask->gpus};
}

static tt_status_t s_ask(taker_t *self, dijob_role_t role, const replicas_ask_t *ask)
{
    const bool learner = role == DIJOB_LEARNER;
    double gpus = 0;
    if (ask->replicas == 0)
        return TT_OK;
    if (!self->view->job->has[role])
        return tt_err(
            TT_INVALID, "DIJob %s has no spec.%s.template", self->view->job->meta.name, dijob_role_label(role));
    if (s_declared(self, role)) {
        s_list_existing(self, role, ask->replicas, s_side(self, learner));
        return TT_OK;
    }
    if (learner && ask->gpus)
        TT_TRY(tt_quantity(&gpus, ask->gpus));
    if (gpus > GPUS_MAX)
        return tt_err(TT_INVALID, "learners.gpus: more than %d", GPUS_MAX);
    TT_TRY(s_room(self, role, gpus > 1 ? DIJOB_AGGREGATOR : role, ask->replicas));
    for (int i = 0; i < ask->replicas; i++) {
        const uint64_t random = self->view->random(self->view->ctx);
        replicas_order_t *order = s_order(self, gpus > 1 ? DIJOB_AGGREGATOR : role, learner, random);
        order->gpus = gpus > 1 ? (int)gpus : 0;
        if (order->gpus == 0) /* else they are for the ddp learners, not for their aggregator */
            order->want.resources = s_resources(ask);
    }
    return TT_OK;
}

/* ---- in the place of failed ones ------------------------------------------------------------------------------------- */

/*  The pod that is reported: by its name, or by an address that was cut at its last dot. */
static const dijob_pod_t *s_reported(const replicas_view_t *view, const char *name)
{
    const dijob_pod_t *pod = replicas_find(view, name);
    const size_t length = strlen(name);
    for (size_t i = 0; !pod && view->cut && i < view->pod_count; i++)
        if (strncmp(view->pods[i]->ip, name, length) == 0 && view->pods[i]->ip[length] == '.')
            pod = view->pods[i];
    return pod;
}

/*  The pod that has taken the place of `name` already; NULL. */
static const dijob_pod_t *s_successor(const replicas_view_t *view, const char *name)
{
    const dijob_pod_t *found = NULL;
    for (size_t i = 0; i < view->pod_count; i++)
        if (view->pods[i]->replaces && strcmp(view->pods[i]->replaces, name) == 0)
            found = view->pods[i];
    return found;
}

static tt_status_t s_failed(taker_t *self, const char *name, bool learner)
{
    const replicas_view_t *view = self->view;
    const dijob_pod_t *pod = s_reported(view, name), *successor = s_successor(view, pod ? pod->meta.name : name);
    if (!pod && !successor)
        return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", self->request->namespace_, name);
    TT_TRY(replicas_may_report(self->request, self->by, name, pod ? pod : successor));
    if (successor) /* reported before, or seen by ourselves */
        s_list(s_side(self, learner), view, successor);
    if (successor && (!pod || !dijob_pod_alive(pod)))
        return TT_OK;
    const dijob_role_t role = (dijob_role_t)pod->role;
    replicas_order_t *order = s_order(self, role, learner, dijob_name_seed(pod->meta.uid));
    order->want.replaces = tt_strdup(pod->meta.name);
    order->want.failures = dijob_failures(pod);
    order->asked = tt_strdup(pod->asked);
    if (order->asked)
        (void)dijob_asked(&order->want.resources, order->asked);
    order->only_delete = successor || s_declared(self, role); /* the plan makes the new one */
    return TT_OK;
}

static tt_status_t s_each_failed(taker_t *self, char **names, bool learners)
{
    for (size_t i = 0; names && names[i]; i++)
        TT_TRY(s_failed(self, names[i], learners));
    return TT_OK;
}

/* ---- those that are wanted no longer ---------------------------------------------------------------------------------- */

static void s_go(taker_t *self, const dijob_pod_t *pod)
{
    replicas_orders_t *out = self->out;
    if (!out->going) /* no pod goes twice */
        out->going = tt_array0(self->view->pod_count, sizeof *out->going);
    out->going[out->going_count++] = pod;
}

/*  No more than leave minReplicas. */
static size_t s_spare(const replicas_view_t *view, dijob_role_t role, int n)
{
    const dijob_role_t bounded = role == DIJOB_AGGREGATOR ? DIJOB_LEARNER : role;
    const int64_t least = view->job->least[bounded], spare = s_alive(view, role) - (least > 0 ? least : 0);
    return (size_t)(spare < 0 ? 0 : spare < n ? spare : n);
}

/*  Idle and young ones first; the ddp learners of an aggregator have no work without it. Returns how many go. */
static size_t s_remove(taker_t *self, dijob_role_t role, int n, json_t *list)
{
    const replicas_view_t *view = self->view;
    const dijob_pod_t **victims = tt_array0(view->pod_count + 1, sizeof *victims);
    const size_t going = dijob_victims(view->pods, view->pod_count, role, s_spare(view, role, n), victims);
    for (size_t i = 0; i < going; i++) {
        s_list(list, view, victims[i]);
        s_go(self, victims[i]);
        for (size_t k = 0; role == DIJOB_AGGREGATOR && k < view->pod_count; k++)
            if (s_is_its(view->pods[k], victims[i]) && !view->pods[k]->deleting)
                s_go(self, view->pods[k]);
    }
    free(victims);
    return going;
}

static void s_fewer(taker_t *self)
{
    const int collectors = self->request->collectors.replicas, learners = self->request->learners.replicas;
    if (collectors > 0 && !s_declared(self, DIJOB_COLLECTOR))
        s_remove(self, DIJOB_COLLECTOR, collectors, self->out->collectors);
    if (learners > 0 && !s_declared(self, DIJOB_LEARNER) &&
        s_remove(self, DIJOB_LEARNER, learners, self->out->learners) == 0)
        s_remove(self, DIJOB_AGGREGATOR, learners, self->out->learners);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------- */

tt_status_t replicas_orders(
    replicas_orders_t *out, const replicas_view_t *view, const replicas_request_t *request, dijob_role_t by)
{
    taker_t self = {.out = out, .view = view, .request = request, .by = by};
    *out = (replicas_orders_t){.collectors = json_array(), .learners = json_array()};
    switch (request->verb) {
    case REPLICAS_CREATE:
        TT_TRY(s_ask(&self, DIJOB_COLLECTOR, &request->collectors));
        return s_ask(&self, DIJOB_LEARNER, &request->learners);
    case REPLICAS_FAILED:
        TT_TRY(s_each_failed(&self, request->failed_collectors, false));
        return s_each_failed(&self, request->failed_learners, true);
    case REPLICAS_DELETE:
        s_fewer(&self);
        return TT_OK;
    case REPLICAS_GET:
        break;
    }
    return TT_OK;
}

void replicas_orders_clear(replicas_orders_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free((char *)(uintptr_t)self->orders[i].want.name);
        free((char *)(uintptr_t)self->orders[i].want.replaces);
        free(self->orders[i].asked);
    }
    free(self->orders);
    free(self->going);
    json_decref(self->collectors);
    json_decref(self->learners);
    *self = (replicas_orders_t){0};
}

void replicas_made(replicas_orders_t *self, size_t order, const replicas_view_t *view)
{
    const dijob_pod_t *pod = replicas_find(view, self->orders[order].want.name);
    self->orders[order].made = true;
    if (pod)
        s_list(self->orders[order].learner ? self->learners : self->collectors, view, pod);
}

tt_status_t replicas_want(const replicas_order_t *order, const replicas_view_t *view, dijob_pod_want_t *out)
{
    *out = order->want;
    out->old_curve = dijob_has_old_curve(view->pods, view->pod_count);
    if (out->role != DIJOB_DDP_LEARNER || !out->replaces)
        return TT_OK;
    const dijob_pod_t *old = replicas_find(view, out->replaces);
    return old && dijob_ddp_want(out, view->pods, view->pod_count, old, order->want.name)
               ? TT_OK
               : tt_err(TT_EXISTS, "learner %s goes: its aggregator is not there", order->want.replaces);
}

void replicas_ddp(const replicas_order_t *order, const replicas_request_t *request, const replicas_view_t *view,
    int per_node, void (*make)(void *ctx, const dijob_pod_want_t *want), void *ctx)
{
    int parts[DDP_PARTS], start = 0;
    const dijob_pod_t *aggregator = replicas_find(view, order->want.name);
    const size_t all = dijob_ddp_split(order->gpus, per_node, parts, DDP_PARTS),
                 count = all < DDP_PARTS ? all : DDP_PARTS;
    uint64_t random = view->random(view->ctx);
    char *master = dijob_pod_name(view->job->meta.name, DIJOB_DDP_LEARNER, &random);
    for (size_t i = 0; aggregator && i < count; i++) {
        char *name = i == 0 ? tt_strdup(master) : dijob_pod_name(view->job->meta.name, DIJOB_DDP_LEARNER, &random);
        make(ctx, &(dijob_pod_want_t){.role = DIJOB_DDP_LEARNER,
                      .name = name,
                      .resources = s_resources(&request->learners),
                      .aggregator = aggregator->meta.name,
                      .aggregator_uid = aggregator->meta.uid,
                      .world_size = order->gpus,
                      .local_world_size = parts[i],
                      .start_rank = start,
                      .gpus = parts[i],
                      .split = all > 1,
                      .master = i == 0,
                      .master_name = master,
                      .task = -1,
                      .rank = -1,
                      .task_rank = -1,
                      .old_curve = dijob_has_old_curve(view->pods, view->pod_count)});
        start += parts[i];
        free(name);
    }
    free(master);
}

/*  Of a list of failed replicas that nobody reported the answer is null. */
static json_t *s_listed(const replicas_request_t *request, json_t *list)
{
    return request->verb == REPLICAS_FAILED && json_array_size(list) == 0 ? NULL : json_incref(list);
}

json_t *replicas_data(const replicas_orders_t *self, const replicas_request_t *request)
{
    return replicas_object(request->namespace_, request->coordinator ? request->coordinator : request->aggregator,
        s_listed(request, self->collectors), s_listed(request, self->learners));
}
