/*  api - the replicas API of a local run: what the operator does with pods of the cluster, done with local ones. Nobody but
 *  processes of this machine can ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "k8s/local/run_dijob.h"
#include "k8s/replicas/replicas.h"

enum { ANSWER_MAX = 4 << 20 };

typedef struct {
    run_t *run;
    const replicas_request_t *request;
    json_t *collectors, *learners; /* URLs; NULL = null in the answer */
} asked_t;

/* ---- lists ------------------------------------------------------------------------------------------------------------------ */

static void s_list(const run_t *run, json_t *list, const dijob_pod_t *pod)
{
    for (int gpu = 0; gpu <= (pod->role == DIJOB_DDP_LEARNER ? pod->gpu_ports : 0); gpu++) {
        char *url = run_url(run, pod, gpu);
        json_array_append_new(list, json_string(url));
        free(url);
    }
}

static void s_list_name(const asked_t *self, json_t *list, const char *name)
{
    const size_t at = kubelet_find(self->run->kubelet, name);
    if (at < kubelet_count(self->run->kubelet))
        s_list(self->run, list, kubelet_pod(self->run->kubelet, at));
}

static json_t *s_of_coordinator(const run_t *run, const char *name)
{
    json_t *collectors = json_array(), *learners = json_array();
    for (size_t i = 0; i < kubelet_count(run->kubelet); i++) {
        const dijob_pod_t *pod = kubelet_pod(run->kubelet, i);
        if (!dijob_pod_alive(pod))
            continue;
        if (pod->role == DIJOB_COLLECTOR)
            s_list(run, collectors, pod);
        else if (pod->role == DIJOB_LEARNER || pod->role == DIJOB_AGGREGATOR)
            s_list(run, learners, pod);
    }
    return replicas_object(run->place->namespace_, name, collectors, learners);
}

static json_t *s_of_aggregator(const run_t *run, const char *name)
{
    json_t *learners = json_array();
    for (size_t i = 0; i < kubelet_count(run->kubelet); i++) {
        const dijob_pod_t *pod = kubelet_pod(run->kubelet, i);
        if (pod->role == DIJOB_DDP_LEARNER && dijob_pod_alive(pod) && pod->owner_pod &&
            strcmp(pod->owner_pod, name) == 0)
            s_list(run, learners, pod);
    }
    return replicas_object(run->place->namespace_, name, NULL, learners);
}

/*  By rank; "" where nobody lives. */
static json_t *s_of_tasks(const run_t *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < kubelet_count(run->kubelet); i++) {
        const dijob_pod_t *pod = kubelet_pod(run->kubelet, i);
        if (pod->rank < 0 || pod->rank > 65535)
            continue;
        while (json_array_size(list) <= (size_t)pod->rank)
            json_array_append_new(list, json_string(""));
        if (!dijob_pod_alive(pod))
            continue;
        char *url = tt_sprintf("%s:%d", pod->ip, pod->port);
        json_array_set_new(list, (size_t)pod->rank, json_string(url));
        free(url);
    }
    return list;
}

static dijob_role_t s_role(const run_t *run, size_t at)
{
    const dijob_pod_t *pod = kubelet_pod(run->kubelet, at);
    return (dijob_role_t)pod->role;
}

/*  The pod that a request names, if it is of this job. */
static tt_status_t s_find(const run_t *run, const replicas_request_t *r, const dijob_pod_t **out)
{
    const char *name = r->coordinator ? r->coordinator : r->aggregator ? r->aggregator : "";
    const size_t at = kubelet_find(run->kubelet, name);
    const bool here = r->namespace_ && strcmp(r->namespace_, run->place->namespace_) == 0;
    if (!here || at == kubelet_count(run->kubelet) || !replicas_is_about(r, s_role(run, at)))
        return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", r->namespace_ ? r->namespace_ : "", name);
    *out = kubelet_pod(run->kubelet, at);
    return TT_OK;
}

static tt_status_t s_get(const run_t *run, const replicas_request_t *r, json_t **data)
{
    const dijob_pod_t *pod = NULL;
    char *name = tt_sprintf("%s-coordinator", run_name(run));
    const bool there = kubelet_find(run->kubelet, name) < kubelet_count(run->kubelet);
    const bool here = !r->namespace_ || strcmp(r->namespace_, run->place->namespace_) == 0;
    tt_status_t status = TT_OK;
    if (r->coordinator || r->aggregator)
        status = s_find(run, r, &pod);
    if (pod)
        *data = r->coordinator ? s_of_coordinator(run, pod->meta.name) : s_of_aggregator(run, pod->meta.name);
    else if (status == TT_OK && !r->name)
        *data = there && here ? json_pack("[o]", s_of_coordinator(run, name)) : json_array();
    free(name);
    return status;
}

/* ---- making ------------------------------------------------------------------------------------------------------------------- */

/*  One GPU machine: all its GPUs are in one pod. */
static tt_status_t s_make_ddp(run_t *run, const char *aggregator, int gpus, const dijob_resources_t *resources)
{
    const dijob_pod_t *pod = kubelet_pod(run->kubelet, kubelet_find(run->kubelet, aggregator));
    char *name = dijob_pod_name(run_name(run), DIJOB_DDP_LEARNER, &run->random);
    char *uid = tt_strdup(pod->meta.uid);
    const dijob_pod_want_t want = {.role = DIJOB_DDP_LEARNER,
        .name = name,
        .resources = *resources,
        .aggregator = aggregator,
        .aggregator_uid = uid,
        .world_size = gpus,
        .local_world_size = gpus,
        .gpus = gpus,
        .master = true};
    const tt_status_t status = run_make_dijob(run, &want);
    free(name);
    free(uid);
    return status;
}

/*  A ddp learner in another's place has that one's ranks and aggregator; the strings are the pods': for now only. */
static tt_status_t s_in_its_place(const run_t *run, dijob_pod_want_t *want)
{
    size_t count = 0;
    const dijob_pod_t **pods = (const dijob_pod_t **)run_pods(run, &count);
    const dijob_pod_t *old = kubelet_pod(run->kubelet, kubelet_find(run->kubelet, want->replaces));
    const bool found = dijob_ddp_want(want, pods, count, old, want->name);
    free(pods);
    return found ? TT_OK : tt_err(TT_EXISTS, "learner %s goes: its aggregator is not there", want->replaces);
}

/*  One replica; its URL goes to the list. */
static tt_status_t s_make_one(
    asked_t *self, dijob_role_t role, const replicas_ask_t *ask, const char *replaces, json_t *list)
{
    double gpus = 0;
    if (role == DIJOB_LEARNER && ask && ask->gpus && tt_quantity(&gpus, ask->gpus) == TT_OK && gpus > 1)
        role = DIJOB_AGGREGATOR;
    char *name = dijob_pod_name(run_name(self->run), role, &self->run->random);
    dijob_pod_want_t want = {.role = role, .name = name, .replaces = replaces};
    if (ask)
        want.resources = (dijob_resources_t){.cpus = ask->cpus, .memory = ask->memory, .gpus = ask->gpus};
    const dijob_resources_t resources = want.resources;
    if (role == DIJOB_AGGREGATOR)
        want.resources = (dijob_resources_t){0};
    tt_status_t status = role == DIJOB_DDP_LEARNER && replaces ? s_in_its_place(self->run, &want) : TT_OK;
    if (status == TT_OK)
        status = run_make_dijob(self->run, &want);
    if (status == TT_OK && role == DIJOB_AGGREGATOR && !replaces)
        status = s_make_ddp(self->run, name, gpus < 4096 ? (int)gpus : 4096, &resources);
    if (status == TT_OK)
        s_list_name(self, list, name);
    free(name);
    return status == TT_NOT_FOUND ? tt_err_wrap(TT_INVALID, "create replicas") : status;
}

/*  The spec says how many: what there is is answered, and no more made. */
static bool s_declared(const asked_t *self, dijob_role_t role)
{
    if (run_dijob(self->run)->replicas[role] < 0)
        return false;
    place_say(self->run->place,
        "Normal  ReplicasDeclared  spec.%s.replicas counts: requests of the replicas API change nothing",
        dijob_role_label(role));
    return true;
}

static tt_status_t s_make(asked_t *self, dijob_role_t role, const replicas_ask_t *ask, json_t *list)
{
    const run_t *run = self->run;
    int left = ask->replicas;
    if (left > 0 && s_declared(self, role)) {
        for (size_t i = 0; i < kubelet_count(run->kubelet) && left > 0; i++) {
            const dijob_pod_t *pod = kubelet_pod(run->kubelet, i);
            if (pod->role == role && dijob_pod_alive(pod)) {
                s_list(run, list, pod);
                left--;
            }
        }
        return TT_OK;
    }
    for (; left > 0; left--)
        TT_TRY(s_make_one(self, role, ask, NULL, list));
    return TT_OK;
}

/* ---- removing ------------------------------------------------------------------------------------------------------------------ */

static bool s_has(char *const *names, size_t count, const char *name)
{
    while (count > 0 && strcmp(names[count - 1], name) != 0)
        count--;
    return count > 0;
}

static size_t s_remove(asked_t *self, dijob_role_t role, int wanted, json_t *list)
{
    run_t *run = self->run;
    size_t count = 0;
    if (wanted < 1 || s_declared(self, role == DIJOB_AGGREGATOR ? DIJOB_LEARNER : role))
        return 0;
    const dijob_pod_t **pods = (const dijob_pod_t **)run_pods(run, &count),
                      **victims = tt_array0(count + 1, sizeof *victims);
    char **names = tt_array0(count + 1, sizeof *names);
    const size_t going = dijob_victims(pods, count, role, (size_t)wanted < count ? (size_t)wanted : count, victims);
    size_t named = 0; /* names first: what kubelet_delete touches is another pod_t than we have seen */
    for (size_t i = 0; i < going; i++) {
        s_list(run, list, victims[i]);
        names[named++] = tt_strdup(victims[i]->meta.name);
    }
    for (size_t i = 0; role == DIJOB_AGGREGATOR && i < count; i++) /* their learners have nothing to do without them */
        if (pods[i]->role == DIJOB_DDP_LEARNER && pods[i]->owner_pod && s_has(names, going, pods[i]->owner_pod))
            names[named++] = tt_strdup(pods[i]->meta.name);
    while (named > 0) {
        kubelet_delete(run->kubelet, names[--named], -1);
        free(names[named]);
    }
    run->dirty |= going > 0;
    free(names);
    free(victims);
    free(pods);
    return going;
}

/* ---- failed ones --------------------------------------------------------------------------------------------------------------- */

/*  The pod that was named: by its name, or by an address that was cut at its last dot, as DI-engine cuts names. */
static size_t s_named(const run_t *run, const char *name)
{
    const size_t count = kubelet_count(run->kubelet), at = kubelet_find(run->kubelet, name), length = strlen(name);
    for (size_t i = 0; at == count && i < count; i++)
        if (strncmp(kubelet_info(run->kubelet, i).ip, name, length) == 0 &&
            kubelet_info(run->kubelet, i).ip[length] == '.')
            return i;
    return at;
}

static tt_status_t s_replace_one(asked_t *self, const dijob_pod_t *pod, json_t *list)
{
    const dijob_role_t role = (dijob_role_t)pod->role;
    char *old = tt_strdup(pod->meta.name);
    const tt_status_t status = s_make_one(self, role, NULL, old, list);
    if (status == TT_OK)
        kubelet_delete(self->run->kubelet, old, 0);
    free(old);
    return status;
}

/*  The pod that has taken the place of `name` already; NULL. */
static const dijob_pod_t *s_successor(const run_t *run, const char *name)
{
    for (size_t i = 0; i < kubelet_count(run->kubelet); i++) {
        const dijob_pod_t *pod = kubelet_pod(run->kubelet, i);
        if (pod->replaces && strcmp(pod->replaces, name) == 0)
            return pod;
    }
    return NULL;
}

static tt_status_t s_replace(asked_t *self, dijob_role_t by, char **names, json_t **list)
{
    const run_t *run = self->run;
    for (size_t i = 0; names && names[i]; i++) {
        const size_t at = s_named(run, names[i]);
        const dijob_pod_t *pod = at < kubelet_count(run->kubelet) ? kubelet_pod(run->kubelet, at) : NULL;
        const dijob_pod_t *successor = s_successor(run, pod ? pod->meta.name : names[i]);
        if (!pod && !successor)
            return tt_err(TT_NOT_FOUND, "pod: %s/%s not exists in cache", run->place->namespace_, names[i]);
        TT_TRY(replicas_may_report(self->request, by, names[i], pod ? pod : successor));
        if (!*list)
            *list = json_array();
        if (successor)
            s_list(run, *list, successor);
        else
            TT_TRY(s_replace_one(self, pod, *list));
    }
    return TT_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_write(asked_t *self)
{
    const replicas_request_t *r = self->request;
    const dijob_pod_t *asks = NULL;
    TT_TRY(s_find(self->run, r, &asks));
    const dijob_role_t by = (dijob_role_t)asks->role;
    if (dijob_phase_final(run_dijob(self->run)->phase) || self->run->stopping)
        return tt_err(TT_EXISTS, "DIJob %s/%s is over", self->run->place->namespace_, run_name(self->run));
    if (r->verb == REPLICAS_FAILED) {
        TT_TRY(s_replace(self, by, r->failed_collectors, &self->collectors));
        return s_replace(self, by, r->failed_learners, &self->learners);
    }
    self->collectors = json_array();
    self->learners = json_array();
    if (r->verb == REPLICAS_DELETE) {
        s_remove(self, DIJOB_COLLECTOR, r->collectors.replicas, self->collectors);
        if (s_remove(self, DIJOB_LEARNER, r->learners.replicas, self->learners) == 0)
            s_remove(self, DIJOB_AGGREGATOR, r->learners.replicas, self->learners);
        return TT_OK;
    }
    TT_TRY(s_make(self, DIJOB_COLLECTOR, &r->collectors, self->collectors));
    return s_make(self, DIJOB_LEARNER, &r->learners, self->learners);
}

/*  Whatever came of a write, data says what has been made or removed. */
static tt_status_t s_answer(run_t *run, const replicas_request_t *r, tt_buf_t *out, int *code)
{
    replicas_reply_t reply = {.code = 200};
    tt_status_t status = TT_OK;
    if (r->v2) {
        const bool ours = strcmp(r->namespace_, run->place->namespace_) == 0 && strcmp(r->name, run_name(run)) == 0;
        status = ours ? TT_OK : tt_err(TT_NOT_FOUND, "dijob: %s/%s not exists in cache", r->namespace_, r->name);
        reply.data = ours && r->verb == REPLICAS_GET ? s_of_tasks(run) : NULL;
    } else if (r->verb == REPLICAS_GET) {
        status = s_get(run, r, &reply.data);
    } else {
        asked_t asked = {.run = run, .request = r};
        status = s_write(&asked);
        const bool known = status != TT_NOT_FOUND || asked.collectors || asked.learners;
        reply.data = replicas_object(known && r->namespace_ ? r->namespace_ : "",
            known && r->coordinator ? r->coordinator : "", asked.collectors, asked.learners);
    }
    reply.code = replicas_code(status);
    reply.text = status == TT_OK ? NULL : tt_err_text();
    *code = reply.code;
    const tt_status_t printed = replicas_print(out, r->verb, &reply);
    json_decref(reply.data);
    return printed;
}

void run_api(void *ctx, const tt_server_request_t *asked)
{
    run_t *run = ctx;
    replicas_request_t *request = NULL;
    tt_buf_t out;
    int code = 200;
    tt_buf_init(&out, ANSWER_MAX);
    const tt_status_t status =
        run->front != &dijob_front
            ? tt_err(TT_NOT_FOUND, "a %s has no replicas API", run->front->kind)
            : replicas_parse(&request, asked->method, asked->path, asked->query, asked->body, asked->size);
    if (status != TT_OK)
        code = replicas_refuse(&out, asked->method, status);
    else if (s_answer(run, request, &out, &code) != TT_OK)
        code = 500;
    replicas_request_destroy(&request);
    tt_server_reply(run->server, asked->id, code, "application/json", tt_buf_text(&out), out.size);
    tt_buf_free(&out);
}
