/*  kube_open - a master comes to its cluster: who it is there, the token of its agents, the tasks that are there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "elasticdl/kube_parts.h"
#include "k8s/front/gang.h"
#include "k8s/front/kueue.h"
#include "common/base/base64.h"
#include "k8s/front/object.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"
#include "common/http/query.h"

enum { TIMEOUT_MS = 10000 };

static tt_status_t s_call(edl_kube_t *self, const char *method, const char *path, const char *body, json_t **answer)
{
    const kube_request_t request = {
        .method = method, .path = path, .body = body, .secret = body != NULL, .timeout_ms = TIMEOUT_MS};
    char *text = NULL;
    TT_TRY(kube_client_call(self->client, &request, &text));
    *answer = json_loads(text, 0, NULL);
    free(text);
    return *answer ? TT_OK : tt_err(TT_PROTOCOL, "the API server's answer to %s %s is no JSON", method, path);
}

/*  group: "/api/v1"; caller frees. */
static char *s_path(const edl_kube_t *self, const char *group, const char *rest)
{
    char *space = tt_query_escape(self->config->namespace_);
    char *path = tt_sprintf("%s/namespaces/%s/%s", group, space, rest);
    free(space);
    return path;
}

/* ---- the agents' token ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_take_token(edl_kube_t *self, const json_t *secret)
{
    size_t size = 0;
    const char *coded = parts_text(parts_object(secret, "data"), "token", "");
    char *token = tt_base64_decode(coded, &size);
    const bool good = token && strlen(token) == size && token_is(token);
    if (good)
        snprintf(self->base.token, sizeof self->base.token, "%s", token);
    tt_free_secret(token);
    return good ? TT_OK : tt_err(TT_DATA, "Secret " EDL_SECRET ": token is none; delete it, and a new one is made");
}

/*  The run directory has made one. */
static tt_status_t s_make_secret(edl_kube_t *self)
{
    char *path = s_path(self, "/api/v1", "secrets");
    json_t *object =
        json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind", "Secret", "metadata", "name",
            EDL_SECRET, "labels", "app.kubernetes.io/part-of", "tutti", "stringData", "token", self->base.token);
    char *body = json_dumps(object, JSON_COMPACT);
    json_t *answer = NULL;
    const tt_status_t status = s_call(self, "POST", path, body, &answer);
    tt_free_secret(body);
    json_decref(object);
    json_decref(answer);
    free(path);
    return status;
}

/*  One for all masters that this namespace ever has: pods of tasks that go on have it. */
static tt_status_t s_token(edl_kube_t *self)
{
    json_t *secret = NULL;
    TT_TRY(token_take(self->base.token, self->base.run_dir));
    char *path = s_path(self, "/api/v1", "secrets/" EDL_SECRET);
    tt_status_t status = s_call(self, "GET", path, NULL, &secret);
    if (status == TT_NOT_FOUND)
        status = s_make_secret(self);
    else if (status == TT_OK)
        status = s_take_token(self, secret);
    json_decref(secret);
    free(path);
    return status;
}

/* ---- the agents' image ------------------------------------------------------------------------------------------------------- */

static tt_status_t s_own_image(edl_kube_t *self, const char *pod)
{
    char *name = tt_query_escape(pod), *rest = tt_sprintf("pods/%s", name), *path = s_path(self, "/api/v1", rest);
    json_t *object = NULL;
    const tt_status_t status = s_call(self, "GET", path, NULL, &object);
    const json_t *first = json_array_get(parts_array(parts_object(object, "spec"), "containers"), 0);
    self->agent_image = tt_strdup(parts_text(first, "image", NULL));
    json_decref(object);
    free(path);
    free(rest);
    free(name);
    return status;
}

static tt_status_t s_agent_image(edl_kube_t *self, const char *given)
{
    const char *pod = getenv("POD_NAME");
    if (given)
        self->agent_image = strcmp(given, "none") == 0 ? NULL : tt_strdup(given);
    else if (pod)
        return s_own_image(self, pod);
    return TT_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_list(edl_kube_t *self)
{
    char *path = s_path(self, "/apis/apps/v1", "statefulsets?labelSelector=" EDL_LABEL);
    const tt_status_t status = s_call(self, "GET", path, NULL, &self->found);
    free(path);
    return status;
}

static tt_status_t s_open(edl_kube_t *self, const local_place_opts_t *opts, const edl_kube_opts_t *kube)
{
    const char *ip = getenv("POD_IP");
    self->base.run_dir = realpath(opts->run_dir, NULL);
    if (!self->base.run_dir)
        return tt_err_errno(TT_NOT_FOUND, "%s", opts->run_dir);
    snprintf(self->base.address, sizeof self->base.address, "%.100s", ip ? ip : "");
    if (kube->template_)
        TT_TRY(edl_templates_read(&self->templates, kube->template_));
    TT_TRY(kube_config_load(&self->config, &kube->kube));
    TT_TRY(kube_client_new(
        &self->client, self->loop, self->config, &(kube_client_opts_t){.agent = "tutti-master/" TT_VERSION}));
    TT_TRY(s_token(self));
    TT_TRY(s_agent_image(self, kube->agent_image));
    TT_TRY(s_list(self));
    self->dir = tt_strdup(opts->dir);
    self->program = tt_strdup(opts->program);
    self->python = tt_strdup(opts->python);
    self->objects = (edl_objects_t){.namespace_ = self->config->namespace_,
        .agent_image = self->agent_image,
        .dir = self->dir,
        .program = self->program,
        .python = self->python,
        .grace_s = opts->grace_s,
        .templates = self->templates};
    edl_sets_new(&self->sets, self->client, &self->objects, opts->clock);
    log_info("members are pods of namespace %s; their agent is that of %s", self->config->namespace_,
        self->agent_image ? self->agent_image : "the task's image");
    return TT_OK;
}

tt_status_t edl_kube_new(
    edl_place_t **self_p, const local_place_opts_t *opts, const edl_kube_opts_t *kube, tt_reactor_t *loop)
{
    edl_kube_t *self = tt_new0(sizeof *self);
    edl_place_t *base = &self->base;
    self->base = (edl_place_t){.ops = &edl_kube_ops, .stays = true, .images = true};
    self->loop = loop;
    self->base.gang = kube->gang;
    snprintf(self->base.queue, sizeof self->base.queue, "%s", kube->queue ? kube->queue : "");
    const tt_status_t status = s_open(self, opts, kube);
    if (status != TT_OK)
        base->ops->destroy(&base);
    else
        *self_p = base;
    return status;
}

/* ---- tasks that are there -------------------------------------------------------------------------------------------------------- */

static int s_by_number(const void *a, const void *b)
{
    const edl_found_t *one = a, *other = b;
    return (one->id > other->id) - (one->id < other->id);
}

/*  A clock that is set back makes nobody younger than new. */
static int64_t s_age_ms(int64_t made_s)
{
    const int64_t age_s = tt_wall_ns() / 1000000000 - made_s;
    return age_s > 0 ? age_s * 1000 : 0;
}

static void s_adopt(edl_kube_t *self, const edl_found_t *found, size_t count, bool over)
{
    static const edl_task_limits_t none = {0};
    edl_task_t *task;
    edl_task_new(&task, found->id, &found->request, &none, 0);
    edl_task_together(task, found->gang);
    for (size_t n = 0; n < count; n++)
        if (strcmp(found[n].request.name, found->request.name) != 0)
            log_warn("two tasks have the number %d: %s is left alone", found->id, found[n].request.name);
        else if (!edl_sets_find(self->sets, found->id, found[n].type))
            edl_sets_adopt(self->sets, task, &found[n], over);
    edl_task_destroy(&task);
}

/*  Of one task: its sets, next to each other. */
static size_t s_recover_one(edl_kube_t *self, const edl_found_t *found, size_t count, edl_found_fn fn, void *ctx)
{
    const char *end = NULL;
    int64_t made_s = found->made_s;
    size_t n = 0;
    for (; n < count && found[n].id == found->id; n++) {
        end = end ? end : found[n].end;
        made_s = found[n].made_s < made_s ? found[n].made_s : made_s;
    }
    s_adopt(self, found, n, end != NULL);
    json_t *record = end ? json_loads(end, 0, NULL) : NULL;
    fn(ctx, &(edl_past_t){.id = found->id,
                .request = &found->request,
                .gang = found->gang,
                .age_ms = s_age_ms(made_s),
                .record = record});
    json_decref(record);
    return n;
}

/*  Of a task that has sets they look after it. */
static tt_status_t s_sweep_one(edl_kube_t *self, const json_t *group)
{
    const json_t *metadata = parts_object(group, "metadata"), *labels = parts_object(metadata, "labels");
    const char *name = parts_text(metadata, "name", ""), *id = parts_text(labels, EDL_LABEL, "");
    if (!*id || strcmp(parts_text(labels, "app", ""), name) != 0) /* none of a master's */
        return TT_OK;
    for (int type = 0; type < EDL_TYPES; type++)
        if (edl_sets_find(self->sets, atoi(id), (elasticdl_type_t)type))
            return TT_OK;
    char *space = tt_query_escape(self->config->namespace_), *path = gang_path(self->base.gang, space, name);
    json_t *answer = NULL;
    const tt_status_t status = s_call(self, "DELETE", path, NULL, &answer);
    log_info("PodGroup %s is of no task that is there: %s", name, status == TT_OK ? "it is deleted" : tt_err_text());
    json_decref(answer);
    free(path);
    free(space);
    return status == TT_NOT_FOUND ? TT_OK : status;
}

/*  Before a number can be given to another task. */
static tt_status_t s_sweep(edl_kube_t *self)
{
    const gang_t *gang = self->base.gang;
    char *space = tt_query_escape(self->config->namespace_), *all = gang_path(gang, space, "");
    char *path = tt_sprintf("%s?labelSelector=" EDL_LABEL, all);
    json_t *groups = NULL, *group;
    size_t n;
    tt_status_t status = s_call(self, "GET", path, NULL, &groups);
    if (status == TT_NOT_FOUND)
        status =
            tt_err(TT_UNAVAILABLE, "this cluster has no PodGroups (%s/%s): --gang %s wants that scheduler and its CRDs",
                gang->group, gang->version, gang->name);
    json_array_foreach(parts_array(groups, "items"), n, group)
    {
        if (status == TT_OK)
            status = s_sweep_one(self, group);
    }
    json_decref(groups);
    free(path);
    free(all);
    free(space);
    return status;
}

/*  Where every task is to wait in a queue of Kueue's its Workloads are to be had. */
static tt_status_t s_find_queues(edl_kube_t *self)
{
    char *path = s_path(self, KUEUE_PATH, "workloads?limit=1");
    json_t *workloads = NULL;
    tt_status_t status = s_call(self, "GET", path, NULL, &workloads);
    if (status == TT_NOT_FOUND)
        status =
            tt_err(TT_UNAVAILABLE, "this cluster has no Workloads (" KUEUE_API "): --queue wants Kueue and its CRDs");
    json_decref(workloads);
    free(path);
    return status;
}

tt_status_t edl_kube_recover(edl_place_t *base, edl_found_fn fn, void *ctx)
{
    edl_kube_t *self = (edl_kube_t *)base;
    const json_t *items = parts_array(self->found, "items"), *item;
    edl_found_t *found = tt_array0(json_array_size(items), sizeof *found);
    size_t count = 0, n;
    json_array_foreach(items, n, item)
    {
        if (edl_set_read(&found[count], item) == TT_OK)
            count++;
        else
            log_warn("%s; it is left alone", tt_err_text());
    }
    if (count)
        qsort(found, count, sizeof *found, s_by_number);
    for (n = 0; n < count;)
        n += s_recover_one(self, &found[n], count - n, fn, ctx);
    free(found);
    if (!json_is_array(items))
        return tt_err(TT_PROTOCOL, "the API server's list of StatefulSets is none");
    if (self->base.queue[0])
        TT_TRY(s_find_queues(self));
    return self->base.gang ? s_sweep(self) : TT_OK;
}
