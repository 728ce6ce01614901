#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "elasticdl/call.h"
#include "elasticdl/kube_parts.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"

enum { LAST_WORDS_MS = 10000 }; /* as long as any agent may take to answer: they are asked for once */

/* ---- which member ---------------------------------------------------------------------------------------------------------- */

static uint64_t s_id(int task, int member)
{
    return (uint64_t)task << 16 | (uint64_t)member;
}

static edl_set_t *s_set_of(const edl_kube_t *self, const edl_task_t *task, int member, int *ordinal)
{
    const elasticdl_cluster_t cluster = edl_task_cluster(task);
    *ordinal = elasticdl_member_index(&cluster, member);
    return edl_sets_find(self->sets, task->id, elasticdl_member_type(&cluster, member));
}

/*  Members count over both sets: parameter servers, then workers. Either set may have gone before the other. */
static edl_set_t *s_set(const edl_kube_t *self, uint64_t id, int *ordinal)
{
    const int task = (int)(id >> 16), member = (int)(id & 0xffff);
    edl_set_t *workers = edl_sets_find(self->sets, task, ELASTICDL_WORKER);
    edl_set_t *set = workers && member >= workers->first ? workers : edl_sets_find(self->sets, task, ELASTICDL_PS);
    TT_CHECK(set != NULL);
    *ordinal = member - set->first;
    return set;
}

/* ---- made and found -------------------------------------------------------------------------------------------------------- */

/*  Its sets are asked for when it comes, and have no pods before it is admitted. */
static tt_status_t s_admits(edl_place_t *base, const edl_task_t *task, bool *admitted, char words[EDL_TASK_WAITS])
{
    edl_kube_t *self = (edl_kube_t *)base;
    edl_set_t *set = NULL;
    for (int type = 0; type < EDL_TYPES; type++) {
        if (type == ELASTICDL_PS && task->request.ps == 0)
            continue;
        set = edl_sets_find(self->sets, task->id, (elasticdl_type_t)type);
        if (!set)
            TT_TRY(edl_sets_add(self->sets, task, (elasticdl_type_t)type, &set));
        if (set->pods[0].lost[0] && !set->pods[0].made)
            return tt_err(TT_UNAVAILABLE, "%s", set->pods[0].lost);
        if (set->queue->lost[0])
            return tt_err(TT_UNAVAILABLE, "%s", set->queue->lost);
    }
    *admitted = set->queue->admitted;
    snprintf(words, EDL_TASK_WAITS, "%s", set->queue->words);
    return TT_OK;
}

static tt_status_t s_make(edl_place_t *base, const edl_task_t *task, int member, uint64_t *id)
{
    edl_kube_t *self = (edl_kube_t *)base;
    const elasticdl_cluster_t cluster = edl_task_cluster(task);
    int ordinal;
    edl_set_t *set = s_set_of(self, task, member, &ordinal);
    if (!set)
        TT_TRY(edl_sets_add(self->sets, task, elasticdl_member_type(&cluster, member), &set));
    set->pods[ordinal].made = true;
    *id = s_id(task->id, member);
    return TT_OK;
}

static tt_status_t s_find(
    edl_place_t *base, uint64_t id, char url[128], char address[ELASTICDL_ADDRESS], char waits[EDL_TASK_WAITS])
{
    edl_kube_t *self = (edl_kube_t *)base;
    int ordinal;
    edl_set_t *set = s_set(self, id, &ordinal);
    edl_set_pod_t *pod = &set->pods[ordinal];
    snprintf(waits, EDL_TASK_WAITS, "%s", pod->trouble);
    if (!pod->ready || pod->lost[0] || set->create || set->service) /* programs need the Service's names */
        return TT_AGAIN;
    const bool six = strchr(pod->ip, ':') != NULL;
    snprintf(url, 128, "http://%s%s%s:%d", six ? "[" : "", pod->ip, six ? "]" : "", EDL_AGENT_PORT);
    edl_set_address(address, &self->objects, set->name, ordinal);
    pod->found = true;
    return TT_OK;
}

/* ---- what programs write ----------------------------------------------------------------------------------------------------- */

/*  Its pod goes with its task, so what it wrote is kept here. */
static void s_keep(const edl_kube_t *self, const char *folder, const char *member, const char *status)
{
    json_t *told = json_loads(status, 0, NULL);
    const char *log = json_string_value(json_object_get(told, "log"));
    char *path = tt_sprintf("%s/%s/%s", self->base.run_dir, folder, member);
    if (log && log[0] &&
        (tt_file_make_path(path, 0755) != TT_OK || tt_file_replace(path, "outputs.log", log, 0644) != TT_OK))
        log_warn("what %s of %s wrote is not kept: %s", member, folder, tt_err_text());
    free(path);
    json_decref(told);
}

static void s_heard(edl_place_t *base, const edl_task_t *task, int member, const char *status)
{
    char folder[EDL_TASK_FOLDER], name[16];
    if (status[0] != '{') /* of /config or /run */
        return;
    edl_task_folder(task, folder);
    edl_task_member_name(task, member, name);
    s_keep((edl_kube_t *)base, folder, name, status);
}

/*  A program that still runs when its task ends. */
struct last_words {
    last_words_t *next;
    edl_kube_t *place;
    call_t *call;
    uint64_t member; /* its set is held, so it is there when the answer comes */
    char folder[EDL_TASK_FOLDER], name[16];
};

static void s_drop_last_words(edl_kube_t *self, last_words_t *last)
{
    last_words_t **at = &self->last;
    while (*at != last)
        at = &(*at)->next;
    *at = last->next;
    call_cancel(&last->call);
    free(last);
}

static void s_on_last_words(void *ctx, int code, const char *text)
{
    last_words_t *last = ctx;
    int ordinal;
    edl_set_t *set = s_set(last->place, last->member, &ordinal);
    if (code == 200)
        s_keep(last->place, last->folder, last->name, text);
    set->holds--;
    last->call = NULL; /* it frees itself */
    s_drop_last_words(last->place, last);
}

static void s_ask_last_words(edl_kube_t *self, const edl_task_t *task, int member)
{
    char url[160];
    int ordinal;
    edl_set_t *set = s_set_of(self, task, member, &ordinal);
    snprintf(url, sizeof url, "%s/status", task->members[member].url);
    last_words_t *last = tt_new0(sizeof *last);
    last->place = self;
    last->member = s_id(task->id, member);
    edl_task_folder(task, last->folder);
    edl_task_member_name(task, member, last->name);
    const call_opts_t opts = {
        .url = url, .token = self->base.token, .timeout_ms = LAST_WORDS_MS, .fn = s_on_last_words, .ctx = last};
    last->next = self->last;
    self->last = last;
    if (call_start(&last->call, self->loop, &opts) == TT_OK)
        set->holds++;
    else
        s_drop_last_words(self, last);
}

/* ---- ended ------------------------------------------------------------------------------------------------------------------- */

static void s_close(edl_place_t *base, const edl_task_t *task)
{
    edl_kube_t *self = (edl_kube_t *)base;
    for (int i = 0; i < task->count; i++)
        if (task->members[i].present && task->members[i].state == MEMBER_RUNNING)
            s_ask_last_words(self, task, i);
    for (int type = ELASTICDL_PS; type <= ELASTICDL_WORKER; type++) {
        edl_set_t *set = edl_sets_find(self->sets, task->id, (elasticdl_type_t)type);
        if (!set)
            continue;
        edl_set_finish(set, edl_task_record(task));
        if (set->queue)
            set->queue->well = task->outcome == EDL_TASK_SUCCEEDED;
        if (task->outcome == EDL_TASK_DELETED)
            edl_set_remove(set);
    }
}

static void s_forget(edl_place_t *base, const edl_task_t *task)
{
    edl_kube_t *self = (edl_kube_t *)base;
    for (int type = ELASTICDL_PS; type <= ELASTICDL_WORKER; type++) {
        edl_set_t *set = edl_sets_find(self->sets, task->id, (elasticdl_type_t)type);
        if (set)
            edl_set_remove(set);
    }
}

static bool s_gone_of(edl_set_t *set, int *ordinal, char reason[EDL_TASK_WAITS])
{
    for (int i = 0; i < set->count; i++) {
        edl_set_pod_t *pod = &set->pods[i];
        const bool rests = edl_set_rests(set) && !set->ending;
        if (!pod->made || pod->gone || !(set->ending ? set->clear : rests ? set->idle : pod->lost[0]))
            continue;
        snprintf(reason, EDL_TASK_WAITS, "%s", pod->lost[0] ? pod->lost : "its pod was ended");
        *pod = rests ? (edl_set_pod_t){0} : *pod; /* the next of that name is another one */
        pod->gone = !rests;
        *ordinal = i;
        return true;
    }
    return false;
}

static bool s_gone(edl_place_t *base, uint64_t *id, char reason[EDL_TASK_WAITS])
{
    edl_kube_t *self = (edl_kube_t *)base;
    edl_set_t *set;
    int ordinal;
    edl_sets_turn(self->sets);
    for (size_t n = 0; (set = edl_sets_nth(self->sets, n)) != NULL; n++)
        if (s_gone_of(set, &ordinal, reason)) {
            *id = s_id(set->task, set->first + ordinal);
            return true;
        }
    return false;
}

static int64_t s_due_ms(const edl_place_t *base)
{
    return edl_sets_due_ms(((const edl_kube_t *)base)->sets);
}

static void s_destroy(edl_place_t **self_p)
{
    edl_kube_t *self = (edl_kube_t *)*self_p;
    while (self->last)
        s_drop_last_words(self, self->last);
    edl_sets_destroy(&self->sets);
    kube_client_destroy(&self->client);
    kube_config_destroy(&self->config);
    json_decref(self->found);
    edl_templates_clear(&self->templates);
    free(self->base.run_dir);
    free(self->agent_image);
    free(self->dir);
    free(self->program);
    free(self->python);
    free(self);
    *self_p = NULL;
}

const edl_place_ops_t edl_kube_ops = {
    .admits = s_admits,
    .make = s_make,
    .find = s_find,
    .heard = s_heard,
    .close = s_close,
    .gone = s_gone,
    .forget = s_forget,
    .due_ms = s_due_ms,
    .destroy = s_destroy,
};
