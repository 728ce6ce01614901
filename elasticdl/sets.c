#include "elasticdl/sets.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/text.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"
#include "common/http/query.h"

enum { TIMEOUT_MS = 10000, AGAIN_MS = 1000, LOOK_SOON_MS = 300, LOOK_MS = 3000 };

/*  What a set asks for, in this order. */
typedef enum {
    STEP_CREATE,
    STEP_SERVE,
    STEP_SCALE,
    STEP_UNSERVE,
    STEP_REMOVE,
    STEP_IDENTIFY,
    STEP_RAISE,
    STEP_LOWER,
    STEP_NONE
} step_t;

struct edl_sets {
    kube_client_t *client;
    const edl_objects_t *objects;
    const tt_clock_t *clock;
    char *set_path, *service_path, *pod_path, *event_path; /* of the namespace */
    edl_set_t **sets;
    size_t count;
    edl_group_t **groups; /* those that a set has */
    size_t group_count;
    edl_queue_t **queues; /* the same */
    size_t queue_count;
    uint64_t look, events; /* requests under way */
    uint64_t looks;        /* lists of pods that were asked for */
    int64_t looked_ms;
    bool silent;
};

/* ---- the list ------------------------------------------------------------------------------------------------------------ */

void edl_sets_new(edl_sets_t **self_p, kube_client_t *client, const edl_objects_t *objects, const tt_clock_t *clock)
{
    edl_sets_t *self = tt_new0(sizeof *self);
    self->client = client;
    self->objects = objects;
    self->clock = tt_clock_or_real(clock);
    self->looked_ms = -LOOK_MS;
    char *space = tt_query_escape(objects->namespace_);
    self->set_path = tt_sprintf("/apis/apps/v1/namespaces/%s/statefulsets", space);
    self->service_path = tt_sprintf("/api/v1/namespaces/%s/services", space);
    self->pod_path = tt_sprintf("/api/v1/namespaces/%s/pods?labelSelector=" EDL_LABEL, space);
    self->event_path = tt_sprintf("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind%%3DStatefulSet%%2C"
                                  "reason%%3DFailedCreate",
        space);
    free(space);
    *self_p = self;
}

/*  When the last set has gone that had it. */
static void s_drop_group(edl_sets_t *self, edl_group_t *group)
{
    size_t at = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->sets[i]->group == group)
            return;
    while (self->groups[at] != group)
        at++;
    edl_group_destroy(&self->groups[at]);
    self->groups[at] = self->groups[--self->group_count];
}

static void s_drop_queue(edl_sets_t *self, edl_queue_t *queue)
{
    size_t at = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->sets[i]->queue == queue)
            return;
    while (self->queues[at] != queue)
        at++;
    edl_queue_destroy(&self->queues[at]);
    self->queues[at] = self->queues[--self->queue_count];
}

static void s_drop(edl_sets_t *self, size_t i)
{
    edl_set_t *set = self->sets[i];
    edl_group_t *group = set->group;
    edl_queue_t *queue = set->queue;
    kube_client_cancel(self->client, set->request);
    free(set->pods);
    free(set->create);
    free(set->service);
    free(set->end);
    free(set);
    self->sets[i] = self->sets[--self->count];
    if (group)
        s_drop_group(self, group);
    if (queue)
        s_drop_queue(self, queue);
}

void edl_sets_destroy(edl_sets_t **self_p)
{
    edl_sets_t *self = *self_p;
    if (!self)
        return;
    kube_client_cancel(self->client, self->look);
    kube_client_cancel(self->client, self->events);
    while (self->count)
        s_drop(self, self->count - 1);
    free(self->sets);
    free(self->groups);
    free(self->queues);
    free(self->set_path);
    free(self->service_path);
    free(self->pod_path);
    free(self->event_path);
    free(self);
    *self_p = NULL;
}

edl_set_t *edl_sets_nth(edl_sets_t *self, size_t n)
{
    return n < self->count ? self->sets[n] : NULL;
}

edl_set_t *edl_sets_find(edl_sets_t *self, int task, elasticdl_type_t type)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->sets[i]->task == task && self->sets[i]->type == type)
            return self->sets[i];
    return NULL;
}

static edl_set_t *s_named(const edl_sets_t *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->sets[i]->name, name) == 0)
            return self->sets[i];
    return NULL;
}

static char *s_text(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    TT_CHECK(text != NULL);
    json_decref(object);
    return text;
}

/*  Both sets of a task have one. */
static edl_group_t *s_group(edl_sets_t *self, const edl_task_t *task, bool adopted)
{
    if (!task->gang)
        return NULL;
    for (size_t i = 0; i < self->group_count; i++)
        if (self->groups[i]->task == task->id)
            return self->groups[i];
    self->groups = tt_realloc(self->groups, tt_mul(self->group_count + 1, sizeof *self->groups));
    edl_group_new(&self->groups[self->group_count], self->client, self->clock, self->objects, task, adopted);
    return self->groups[self->group_count++];
}

static edl_queue_t *s_queue(edl_sets_t *self, const edl_task_t *task, bool adopted)
{
    if (!task->request.queue[0])
        return NULL;
    for (size_t i = 0; i < self->queue_count; i++)
        if (self->queues[i]->task == task->id)
            return self->queues[i];
    self->queues = tt_realloc(self->queues, tt_mul(self->queue_count + 1, sizeof *self->queues));
    edl_queue_new(&self->queues[self->queue_count], self->client, self->clock, self->objects, task, adopted);
    return self->queues[self->queue_count++];
}

static edl_set_t *s_new(edl_sets_t *self, const edl_task_t *task, elasticdl_type_t type, bool adopted)
{
    edl_set_t *set = tt_new0(sizeof *set);
    set->sets = self;
    set->task = task->id;
    set->type = type;
    set->first = type == ELASTICDL_PS ? 0 : task->request.ps;
    set->count = type == ELASTICDL_PS ? task->request.ps : task->request.workers;
    set->pods = tt_array0((size_t)set->count, sizeof *set->pods);
    set->service = s_text(edl_service(self->objects, task, type));
    set->group = s_group(self, task, adopted);
    set->queue = s_queue(self, task, adopted);
    set->idle = set->unserved = !adopted;
    set->adopted = set->tried[STEP_CREATE] = set->tried[STEP_SERVE] = adopted;
    self->sets = tt_realloc(self->sets, tt_mul(self->count + 1, sizeof *self->sets));
    self->sets[self->count++] = set;
    return set;
}

tt_status_t edl_sets_add(edl_sets_t *self, const edl_task_t *task, elasticdl_type_t type, edl_set_t **out)
{
    char name[EDL_SET_NAME];
    TT_TRY(edl_set_name(name, task->request.name, type, task->id));
    edl_set_t *set = s_new(self, task, type, false);
    snprintf(set->name, sizeof set->name, "%s", name);
    set->create = s_text(edl_set(self->objects, task, type));
    *out = set;
    return TT_OK;
}

void edl_sets_adopt(edl_sets_t *self, const edl_task_t *task, const edl_found_t *found, bool over)
{
    edl_set_t *set = s_new(self, task, found->type, true);
    const tt_status_t status = edl_set_name(set->name, task->request.name, found->type, task->id);
    TT_CHECK(status == TT_OK); /* it was read with this name */
    set->over = over;
    set->raised = found->raised;
    snprintf(set->uid, sizeof set->uid, "%s", found->uid);
}

/*  It was not asked for, and will not be: what has its name is somebody else's. */
static void s_never(edl_set_t *set)
{
    set->foreign[STEP_CREATE] = true;
    free(set->create);
    free(set->service);
    set->create = set->service = NULL;
}

void edl_set_finish(edl_set_t *set, json_t *record)
{
    if (set->ending) {
        json_decref(record);
        return;
    }
    set->ending = true;
    set->end = s_text(edl_set_end(record));
    if (set->create && !set->request && !set->tried[STEP_CREATE])
        s_never(set);
    set->sets->looked_ms = -LOOK_MS;
}

void edl_set_remove(edl_set_t *set)
{
    set->remove = true;
}

/* ---- one request --------------------------------------------------------------------------------------------------------- */

static step_t s_next_of_end(const edl_set_t *set)
{
    if (set->foreign[STEP_CREATE])
        return STEP_NONE;
    if (!set->scaled)
        return set->holds == 0 ? STEP_SCALE : STEP_NONE;
    if (!set->unserved && !set->foreign[STEP_SERVE])
        return STEP_UNSERVE;
    return set->remove && set->clear && (!set->group || set->group->gone) ? STEP_REMOVE : STEP_NONE;
}

/*  The set comes before its Workload, which it owns, and that before its group and its pods. */
static step_t s_next_of_queued(const edl_set_t *set)
{
    const bool may = set->queue->admitted;
    if (set->create)
        return STEP_CREATE;
    if (!set->uid[0])
        return STEP_IDENTIFY;
    if (set->service)
        return STEP_SERVE;
    if (may && (!set->raised || set->moving))
        return set->group && !set->group->there ? STEP_NONE : STEP_RAISE;
    return edl_set_rests(set) && set->raised && set->holds == 0 ? STEP_LOWER : STEP_NONE;
}

/*  Its group first, and away before the set that says that there was one. */
static step_t s_next(const edl_set_t *set)
{
    if (set->ending)
        return s_next_of_end(set);
    if (set->over) /* it is about to be told so */
        return STEP_NONE;
    if (set->queue)
        return s_next_of_queued(set);
    if (set->group && !set->group->there)
        return STEP_NONE;
    return set->create ? STEP_CREATE : set->service ? STEP_SERVE : STEP_NONE;
}

typedef struct {
    const char *method, *type;
    bool service; /* about the Service, and not the StatefulSet */
    int fine;     /* a code that is as good as 200              */
} row_t;

static const row_t s_rows[] = {
    [STEP_CREATE] = {"POST", NULL, false, 0},
    [STEP_SERVE] = {"POST", NULL, true, 0},
    [STEP_SCALE] = {"PATCH", "application/merge-patch+json", false, 404},
    [STEP_UNSERVE] = {"DELETE", NULL, true, 404},
    [STEP_REMOVE] = {"DELETE", NULL, false, 404},
    [STEP_IDENTIFY] = {"GET", NULL, false, 0},
    [STEP_RAISE] = {"PATCH", "application/json-patch+json", false, 0},
    [STEP_LOWER] = {"PATCH", "application/merge-patch+json", false, 404},
};

/*  Caller frees. */
static char *s_body(const edl_set_t *set)
{
    switch (set->step) {
    case STEP_CREATE:
        return tt_strdup(set->create);
    case STEP_SERVE:
        return tt_strdup(set->service);
    case STEP_SCALE:
        return tt_strdup(set->end);
    case STEP_RAISE:
        return s_text(edl_set_raise(set->sets->objects, set->queue->like, set->type, set->queue->updates));
    case STEP_LOWER:
        return s_text(edl_set_lower());
    default:
        return NULL;
    }
}

static void s_lose_all(edl_set_t *set, const char *words)
{
    for (int i = 0; i < set->count; i++)
        tt_text_copy(set->pods[i].lost, sizeof set->pods[i].lost, words);
}

static void s_done(edl_set_t *set)
{
    char **bodies[] = {[STEP_CREATE] = &set->create, [STEP_SERVE] = &set->service, [STEP_SCALE] = &set->end};
    if (set->step < (int)TT_COUNT(bodies)) {
        free(*bodies[set->step]);
        *bodies[set->step] = NULL;
    }
    if (set->step == STEP_SCALE) {
        set->scaled = true;
        set->scaled_look = set->sets->looks;
    }
    set->unserved |= set->step == STEP_UNSERVE;
    if (set->step == STEP_RAISE || set->step == STEP_LOWER) {
        set->moving = false;
        set->raised = set->step == STEP_RAISE;
        set->scaled_look = set->sets->looks;
    }
    set->silent = false;
    set->sets->looked_ms = -LOOK_MS;
}

static void s_again(edl_set_t *set, const char *words)
{
    if (!set->silent)
        log_warn("%s; trying on", words);
    set->silent = true;
    set->again_ms = tt_now_ms(set->sets->clock) + AGAIN_MS;
}

/*  An object of that name that we did not ask for is somebody's: it is left alone. tried: it may have been made before. What a set in a queue
 *  cannot have pods without ends its task. */
static void s_refused(edl_set_t *set, const kube_reply_t *reply, bool tried)
{
    char words[EDL_TASK_WAITS];
    const char *kind = s_rows[set->step].service ? "Service" : "StatefulSet";
    const bool vital = set->step != STEP_LOWER && set->step >= STEP_IDENTIFY && reply->code != 409;
    snprintf(words, sizeof words, "the API server refuses %s %s: %.300s", kind, set->name, reply->text);
    if (set->step <= STEP_SERVE || vital)
        s_lose_all(set, words);
    if (set->step > STEP_SERVE) {
        s_again(set, words);
        return;
    }
    set->foreign[set->step] = reply->code == 409 || !tried;
    s_done(set);
    free(set->service); /* without the set there is nothing to serve */
    set->service = NULL;
}

/*  Of a set as it is there: who owns its Workload. */
static void s_identify(edl_set_t *set, const kube_reply_t *reply)
{
    json_t *object = json_loadb(reply->body, reply->size, 0, NULL);
    const char *uid = json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));
    snprintf(set->uid, sizeof set->uid, "%s", uid ? uid : "");
    json_decref(object);
}

static bool s_is_late(const kube_reply_t *reply)
{
    return reply->code == 0 || reply->code == 429 || reply->code >= 500;
}

static void s_on_answer(void *ctx, const kube_reply_t *reply)
{
    edl_set_t *set = ctx;
    const bool tried = set->step <= STEP_SERVE && set->tried[set->step];
    set->request = 0;
    if (reply->code / 100 == 2 || (reply->code && reply->code == s_rows[set->step].fine) ||
        (reply->code == 409 && set->step <= STEP_SERVE && tried)) {
        if (set->queue && reply->code / 100 == 2 && (set->step == STEP_CREATE || set->step == STEP_IDENTIFY))
            s_identify(set, reply);
        s_done(set);
        if (set->step == STEP_REMOVE)
            for (size_t i = 0; i < set->sets->count; i++)
                if (set->sets->sets[i] == set) {
                    s_drop(set->sets, i);
                    return;
                }
        return;
    }
    if (!s_is_late(reply)) {
        s_refused(set, reply, tried);
        return;
    }
    if (set->step <= STEP_SERVE)
        set->tried[set->step] = true; /* it may have been made */
    char words[EDL_TASK_WAITS];
    snprintf(words, sizeof words, "%s of %s: %.300s", s_rows[set->step].method, set->name, reply->text);
    s_again(set, words);
}

static void s_drive(edl_sets_t *self, edl_set_t *set)
{
    const step_t step = s_next(set);
    if (set->request || step == STEP_NONE || tt_now_ms(self->clock) < set->again_ms)
        return;
    set->step = (int)step;
    const row_t *row = &s_rows[step];
    const char *base = row->service ? self->service_path : self->set_path;
    char *body = s_body(set), *path = step <= STEP_SERVE ? tt_strdup(base) : tt_sprintf("%s/%s", base, set->name);
    const kube_request_t request = {
        .method = row->method, .path = path, .body = body, .content_type = row->type, .timeout_ms = TIMEOUT_MS};
    set->request = kube_client_send(self->client, &request, s_on_answer, set);
    set->unserved &= step != STEP_SERVE;
    if (step == STEP_RAISE || step == STEP_LOWER) { /* without an answer there may be pods */
        set->moving = set->raised = true;
        set->idle = false;
    }
    free(body);
    free(path);
}

/* ---- pods ------------------------------------------------------------------------------------------------------------------ */

static void s_lose(edl_set_pod_t *pod, const char *what)
{
    if (!pod->lost[0])
        snprintf(pod->lost, sizeof pod->lost, "%s%s%.300s", what, pod->trouble[0] ? ": " : "", pod->trouble);
}

static void s_saw(edl_sets_t *self, const edl_pod_t *info)
{
    edl_set_t *set = s_named(self, info->set);
    if (!set || info->ordinal >= set->count)
        return;
    edl_set_pod_t *pod = &set->pods[info->ordinal];
    const bool begun = pod->found || set->adopted;
    pod->seen = true;
    pod->ready = info->ready && !info->leaving && info->ip[0];
    if (info->trouble[0] || !pod->found) /* of one that goes its last words are kept */
        snprintf(pod->trouble, sizeof pod->trouble, "%s", info->trouble);
    if (set->ending || edl_set_rests(set))
        return;
    if (begun && info->restarted)
        s_lose(pod, "its agent has ended and was started anew, and its program is gone");
    else if (pod->found && (info->leaving || strcmp(pod->uid, info->uid) != 0))
        s_lose(pod, "its pod was deleted");
    snprintf(pod->uid, sizeof pod->uid, "%s", info->uid);
    snprintf(pod->ip, sizeof pod->ip, "%s", info->ip);
}

/*  Of a set that rests: whoever comes now is of another life. Whom its task has still is said to be gone first (kube.c). */
static void s_emptied(edl_set_t *set)
{
    set->idle = true;
    set->adopted = false;
    for (int i = 0; i < set->count; i++)
        if (!set->pods[i].made)
            set->pods[i] = (edl_set_pod_t){0};
}

/*  After a list: who is not in it any more. */
static void s_missed(edl_sets_t *self, edl_set_t *set)
{
    bool any = false;
    for (int i = 0; i < set->count; i++) {
        any |= set->pods[i].seen;
        if (set->pods[i].found && !set->pods[i].seen && !set->ending && !edl_set_rests(set))
            s_lose(&set->pods[i], "its pod is gone: somebody deleted it, or its node");
    }
    const bool empty = !any && self->looks > set->scaled_look;
    if (set->queue && !set->raised && !set->idle && empty)
        s_emptied(set);
    set->clear = set->ending && (set->foreign[STEP_CREATE] || (set->scaled && empty));
}

static void s_on_events(void *ctx, const kube_reply_t *reply)
{
    edl_sets_t *self = ctx;
    self->events = 0;
    json_t *list = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL, *item;
    size_t n;
    json_array_foreach(json_object_get(list, "items"), n, item)
    {
        char name[EDL_SET_NAME], why[EDL_TASK_WAITS];
        edl_set_t *set = edl_event_read(name, why, item) == TT_OK ? s_named(self, name) : NULL;
        for (int i = 0; set && i < set->count; i++)
            if (!set->pods[i].seen)
                snprintf(set->pods[i].trouble, sizeof set->pods[i].trouble, "%s", why);
    }
    json_decref(list);
}

static bool s_has_to_have_pods(const edl_set_t *set)
{
    return !set->ending && !set->create && !edl_set_rests(set);
}

/*  A pod that is not made has no status: why says an event about its set. Who may not list events is not told. */
static void s_ask_why(edl_sets_t *self)
{
    bool missing = false;
    for (size_t i = 0; i < self->count; i++)
        for (int k = 0; k < self->sets[i]->count; k++)
            missing |= s_has_to_have_pods(self->sets[i]) && !self->sets[i]->pods[k].seen;
    const kube_request_t request = {.method = "GET", .path = self->event_path, .timeout_ms = TIMEOUT_MS};
    if (missing && !self->events)
        self->events = kube_client_send(self->client, &request, s_on_events, self);
}

static void s_on_pods(void *ctx, const kube_reply_t *reply)
{
    edl_sets_t *self = ctx;
    self->look = 0;
    json_t *list = reply->code == 200 ? json_loadb(reply->body, reply->size, 0, NULL) : NULL, *item;
    const bool silent = !json_is_array(json_object_get(list, "items"));
    if (silent && !self->silent)
        log_warn("pods cannot be listed: %s; trying on", reply->code == 200 ? "the answer is no list" : reply->text);
    self->silent = silent;
    size_t n;
    for (size_t i = 0; i < self->count && !silent; i++)
        for (int k = 0; k < self->sets[i]->count; k++)
            self->sets[i]->pods[k].seen = self->sets[i]->pods[k].ready = false;
    json_array_foreach(json_object_get(list, "items"), n, item)
    {
        edl_pod_t info;
        if (edl_pod_read(&info, item) == TT_OK)
            s_saw(self, &info);
    }
    for (size_t i = 0; i < self->count && !silent; i++)
        s_missed(self, self->sets[i]);
    json_decref(list);
    if (!silent)
        s_ask_why(self);
}

/*  How soon pods are to be looked at; -1 = there are none. */
static int64_t s_pace_ms(const edl_sets_t *self)
{
    int64_t pace = -1;
    for (size_t i = 0; i < self->count; i++) {
        const edl_set_t *set = self->sets[i];
        if (set->ending ? !set->clear : set->create || set->service || (edl_set_rests(set) && !set->idle))
            return LOOK_SOON_MS;
        if (edl_set_rests(set))
            continue;
        for (int k = 0; k < set->count && !set->ending; k++)
            if (set->pods[k].made && !set->pods[k].found)
                return LOOK_SOON_MS;
        pace = set->ending ? pace : LOOK_MS;
    }
    return pace;
}

/* ---- groups ---------------------------------------------------------------------------------------------------------------- */

static void s_turn_group(edl_sets_t *self, edl_group_t *group)
{
    group->wanted = false;
    group->over = true;
    for (size_t i = 0; i < self->count; i++) {
        edl_set_t *set = self->sets[i];
        if (set->group != group)
            continue;
        group->wanted |= !set->ending && !set->over && (!set->queue || set->queue->admitted);
        group->over &= set->ending ? set->clear : edl_set_rests(set) && set->idle;
        if (group->lost[0] && (set->create || set->queue))
            s_lose_all(set, group->lost);
        if (group->lost[0] && set->create)
            s_never(set);
    }
    edl_group_turn(group);
}

/* ---- queues ---------------------------------------------------------------------------------------------------------------- */

bool edl_set_rests(const edl_set_t *set)
{
    return set->queue && set->queue->known && !set->queue->admitted;
}

static void s_turn_queue(edl_sets_t *self, edl_queue_t *queue)
{
    queue->pods = false;
    queue->over = true;
    for (size_t i = 0; i < self->count; i++) {
        edl_set_t *set = self->sets[i];
        if (set->queue != queue)
            continue;
        queue->pods |= set->ending ? !set->clear : set->raised || !set->idle;
        queue->over &= set->ending;
        if (set->type != ELASTICDL_WORKER)
            continue;
        if (queue->orphaned)
            set->uid[0] = '\0';
        queue->orphaned = false;
        snprintf(queue->owner, sizeof queue->owner, "%s", set->uid);
    }
    edl_queue_turn(queue);
}

void edl_sets_turn(edl_sets_t *self)
{
    for (size_t i = 0; i < self->group_count; i++)
        s_turn_group(self, self->groups[i]);
    for (size_t i = 0; i < self->queue_count; i++)
        s_turn_queue(self, self->queues[i]);
    for (size_t i = 0; i < self->count; i++)
        s_drive(self, self->sets[i]);
    const int64_t pace = s_pace_ms(self), now = tt_now_ms(self->clock);
    if (pace < 0 || self->look || now - self->looked_ms < pace)
        return;
    const kube_request_t request = {.method = "GET", .path = self->pod_path, .timeout_ms = TIMEOUT_MS};
    self->looked_ms = now;
    self->looks++;
    self->look = kube_client_send(self->client, &request, s_on_pods, self);
}

int64_t edl_sets_due_ms(const edl_sets_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->sets[i]->request && s_next(self->sets[i]) != STEP_NONE)
            return LOOK_SOON_MS;
    for (size_t i = 0; i < self->group_count; i++)
        if (edl_group_waits(self->groups[i]))
            return LOOK_SOON_MS;
    int64_t due = s_pace_ms(self);
    for (size_t i = 0; i < self->queue_count; i++) {
        const int64_t own = edl_queue_due_ms(self->queues[i]);
        if (own >= 0 && (due < 0 || own < due))
            due = own;
    }
    return due;
}
