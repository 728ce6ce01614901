#include "elasticdl/tasks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "elasticdl/call.h"
#include "elasticdl/master.h"
#define TT_LOG_COMPONENT "master"
#include "common/base/log.h"

enum { CALL_MS = 10000, WATCH_MS = 10000, LOG_TAIL = 2048 };

const edl_task_limits_t edl_tasks_usual = {
    .ready_ms = 60000, .step_ms = 30000, .silent_ms = 30000, .end_ms = 120000, .poll_ms = 20};
const edl_task_limits_t edl_tasks_in_pods = {
    .ready_ms = 600000, .step_ms = 30000, .silent_ms = 30000, .end_ms = 120000, .poll_ms = 100};

/*  A question to the agent of a member. */
typedef struct {
    edl_tasks_t *tasks;
    int task, member; /* task: its number: it may be forgotten before the answer comes */
    call_t *call;
} ask_t;

typedef struct {
    edl_task_t *task;
    ask_t *asks; /* one a member */
    char state[16];
    bool closed; /* its place was told that it is ending */
    bool ended;  /* its outcome was decided by a master before this one */
} entry_t;

struct tasks {
    edl_place_t *place;
    tt_reactor_t *loop;
    const edl_task_limits_t *limits;
    const tt_clock_t *clock;
    entry_t entries[ELASTICDL_TASKS_MAX];
    size_t count;
    int next_id;
    uint64_t created, finished[EDL_TASK_OUTCOMES];
};

/* ---- the list ------------------------------------------------------------------------------------------------------------ */

void edl_tasks_new(edl_tasks_t **self_p, edl_place_t *place, tt_reactor_t *loop, const edl_task_limits_t *limits,
    const tt_clock_t *clock)
{
    edl_tasks_t *self = tt_new0(sizeof *self);
    self->place = place;
    self->loop = loop;
    self->limits = limits ? limits : &edl_tasks_usual;
    self->clock = tt_clock_or_real(clock);
    *self_p = self;
}

static void s_cancel(entry_t *entry)
{
    for (int i = 0; i < entry->task->count; i++)
        call_cancel(&entry->asks[i].call);
}

static void s_forget(edl_tasks_t *self, size_t i)
{
    entry_t *entry = &self->entries[i];
    s_cancel(entry);
    free(entry->asks);
    edl_task_destroy(&entry->task);
    memmove(entry, entry + 1, (--self->count - i) * sizeof *entry);
}

void edl_tasks_destroy(edl_tasks_t **self_p)
{
    edl_tasks_t *self = *self_p;
    if (!self)
        return;
    while (self->count)
        s_forget(self, self->count - 1);
    free(self);
    *self_p = NULL;
}

static bool s_over(const entry_t *entry)
{
    return entry->task->step == EDL_TASK_OVER;
}

size_t edl_tasks_living(const edl_tasks_t *self)
{
    size_t living = 0;
    for (size_t i = 0; i < self->count; i++)
        living += !s_over(&self->entries[i]);
    return living;
}

static int s_running(const edl_task_t *task)
{
    int running = 0;
    for (int i = 0; i < task->count; i++)
        running += task->members[i].state == MEMBER_RUNNING;
    return running;
}

edl_tasks_stats_t edl_tasks_stats(const edl_tasks_t *self)
{
    edl_tasks_stats_t out = {.created = self->created};
    memcpy(out.finished, self->finished, sizeof out.finished);
    for (size_t i = 0; i < self->count; i++) {
        const entry_t *entry = &self->entries[i];
        out.members += s_over(entry) ? 0 : entry->task->count;
        out.running += s_over(entry) ? 0 : s_running(entry->task);
    }
    return out;
}

/*  And what its place keeps of it. */
static void s_forget_all(edl_tasks_t *self, size_t i)
{
    if (self->place->ops->forget)
        self->place->ops->forget(self->place, self->entries[i].task);
    s_forget(self, i);
}

static void s_make_room(edl_tasks_t *self)
{
    for (size_t i = 0; i < self->count && self->count == ELASTICDL_TASKS_MAX; i++)
        if (s_over(&self->entries[i]))
            s_forget_all(self, i);
}

static void s_add(edl_tasks_t *self, edl_task_t *task)
{
    entry_t entry = {.task = task};
    entry.asks = tt_array0((size_t)task->count, sizeof *entry.asks);
    for (int i = 0; i < task->count; i++)
        entry.asks[i] = (ask_t){.tasks = self, .task = task->id, .member = i};
    self->entries[self->count++] = entry;
    if (task->id >= self->next_id)
        self->next_id = task->id + 1;
}

tt_status_t edl_tasks_create(edl_tasks_t *self, const elasticdl_request_t *request, edl_task_t **out)
{
    if (edl_tasks_living(self) >= ELASTICDL_TASKS)
        return tt_err(
            TT_UNAVAILABLE, "%d tasks are not over yet, and no more are possible: delete one", ELASTICDL_TASKS);
    const int members = edl_tasks_stats(self).members;
    if (members + request->workers + request->ps > ELASTICDL_AGENTS)
        return tt_err(TT_UNAVAILABLE, "%d members run, and no more than %d are possible: delete a task", members,
            ELASTICDL_AGENTS);
    if (request->queue[0] && !self->place->ops->admits)
        return tt_err(TT_INVALID, "queue is '%s'; only a master on a cluster has queues", request->queue);
    if (self->place->images && !request->image[0])
        return tt_err(TT_INVALID, "img is missing: the image that the members of the task run");
    elasticdl_request_t own = *request;
    if (!own.queue[0])
        snprintf(own.queue, sizeof own.queue, "%s", self->place->queue);
    s_make_room(self);
    edl_task_new(out, self->next_id, &own, self->limits, tt_now_ms(self->clock));
    edl_task_together(*out, self->place->gang);
    s_add(self, *out);
    self->created++;
    return TT_OK;
}

void edl_tasks_adopt(edl_tasks_t *self, const edl_past_t *past)
{
    const json_t *record = past->record;
    edl_task_t *task;
    s_make_room(self);
    if (self->count == ELASTICDL_TASKS_MAX || edl_tasks_find_id(self, past->id))
        return;
    edl_task_new(&task, past->id, past->request, self->limits, tt_now_ms(self->clock));
    edl_task_together(task, past->gang);
    task->adopted = true;
    task->begun_ms -= past->age_ms;
    const bool ended = record && edl_task_restore(task, record, tt_now_ms(self->clock)) == TT_OK;
    if (record && !ended)
        log_warn("task %s, id %d: %s; it is taken as one that goes on", past->request->name, past->id, tt_err_text());
    s_add(self, task);
    self->entries[self->count - 1].ended = ended;
}

edl_task_t *edl_tasks_find_id(const edl_tasks_t *self, int id)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->entries[i].task->id == id)
            return self->entries[i].task;
    return NULL;
}

edl_task_t *edl_tasks_find_name(const edl_tasks_t *self, const char *name)
{
    for (size_t i = self->count; i-- > 0;)
        if (strcmp(self->entries[i].task->request.name, name) == 0)
            return self->entries[i].task;
    return NULL;
}

edl_task_t *edl_tasks_nth(const edl_tasks_t *self, size_t n)
{
    return n < self->count ? self->entries[n].task : NULL;
}

void edl_tasks_delete(edl_tasks_t *self, edl_task_t *task)
{
    if (task->step != EDL_TASK_OVER) {
        edl_task_delete(task, tt_now_ms(self->clock));
        return;
    }
    for (size_t i = 0; i < self->count; i++)
        if (self->entries[i].task == task) {
            s_forget_all(self, i);
            return;
        }
}

void edl_tasks_end_all(edl_tasks_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        edl_task_delete(self->entries[i].task, tt_now_ms(self->clock));
}

/* ---- questions to agents --------------------------------------------------------------------------------------------------- */

static void s_on_answer(void *ctx, int code, const char *text)
{
    ask_t *ask = ctx;
    edl_tasks_t *self = ask->tasks;
    edl_task_t *task = edl_tasks_find_id(self, ask->task);
    ask->call = NULL; /* it frees itself */
    if (code == 200 && self->place->ops->heard)
        self->place->ops->heard(self->place, task, ask->member, text);
    edl_task_heard(task, ask->member, code, text, tt_now_ms(self->clock));
}

static char *s_body(const edl_tasks_t *self, const edl_task_t *task, int member)
{
    const elasticdl_cluster_t cluster = edl_task_cluster(task);
    return elasticdl_config_body(&cluster, member, self->place->address, task->id);
}

static void s_ask(edl_tasks_t *self, entry_t *entry, int i, edl_task_act_t act)
{
    static const char *const paths[] = {[EDL_TASK_ASK_READY] = "/status?tail=2048",
        [EDL_TASK_SEND_CONFIG] = "/config",
        [EDL_TASK_SEND_RUN] = "/run",
        [EDL_TASK_WATCH] = "/status"};
    const edl_task_member_t *member = &entry->task->members[i];
    char url[256];
    const int used = snprintf(url, sizeof url, "%s%s", member->url, paths[act]);
    if (act == EDL_TASK_WATCH)
        snprintf(url + used, sizeof url - (size_t)used, "?wait_ms=%d&tail=%d", WATCH_MS, LOG_TAIL);
    char *body = act == EDL_TASK_SEND_CONFIG ? s_body(self, entry->task, i) : NULL;
    const call_opts_t opts = {.url = url,
        .body = body,
        .token = self->place->token,
        .timeout_ms = CALL_MS + (act == EDL_TASK_WATCH ? WATCH_MS : 0),
        .fn = s_on_answer,
        .ctx = &entry->asks[i]};
    if (act == EDL_TASK_SEND_RUN && self->place->ops->release)
        self->place->ops->release(self->place, member->place);
    if (call_start(&entry->asks[i].call, self->loop, &opts) != TT_OK)
        edl_task_fail(entry->task, tt_err_text(), tt_now_ms(self->clock));
    free(body);
}

/* ---- members ------------------------------------------------------------------------------------------------------------------ */

static void s_make(edl_tasks_t *self, edl_task_t *task, int i)
{
    uint64_t id = 0;
    if (self->place->ops->make(self->place, task, i, &id) == TT_OK)
        edl_task_made(task, i, id);
    else
        edl_task_fail(task, tt_err_text(), tt_now_ms(self->clock));
}

static void s_find(edl_tasks_t *self, edl_task_t *task, int i)
{
    char url[128], address[ELASTICDL_ADDRESS], waits[EDL_TASK_WAITS] = "";
    const tt_status_t status = self->place->ops->find(self->place, task->members[i].place, url, address, waits);
    if (status == TT_AGAIN)
        edl_task_waits(task, i, waits);
    if (status == TT_OK || status == TT_AGAIN)
        edl_task_found(task, i, status == TT_OK ? url : NULL, address, tt_now_ms(self->clock));
    else
        edl_task_fail(task, tt_err_text(), tt_now_ms(self->clock));
}

static void s_end(edl_tasks_t *self, uint64_t place)
{
    if (self->place->ops->end)
        self->place->ops->end(self->place, place);
}

static void s_do(edl_tasks_t *self, entry_t *entry, edl_task_act_t act, int i)
{
    if (act == EDL_TASK_MAKE)
        s_make(self, entry->task, i);
    else if (act == EDL_TASK_FIND)
        s_find(self, entry->task, i);
    else if (act == EDL_TASK_END)
        s_end(self, entry->task->members[i].place);
    else
        s_ask(self, entry, i, act);
}

static void s_lost(edl_tasks_t *self, uint64_t place, const char *reason)
{
    for (size_t t = 0; t < self->count; t++) {
        entry_t *entry = &self->entries[t];
        for (int i = 0; i < entry->task->count; i++)
            if (entry->task->members[i].present && entry->task->members[i].place == place) {
                call_cancel(&entry->asks[i].call);
                edl_task_lost(entry->task, i, reason, tt_now_ms(self->clock));
                return;
            }
    }
}

/*  What its agents would still say to us does not matter. */
static void s_close(edl_tasks_t *self, entry_t *entry)
{
    s_cancel(entry);
    if (!entry->closed && self->place->ops->close)
        self->place->ops->close(self->place, entry->task);
    entry->closed = true;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

static void s_say(edl_tasks_t *self, entry_t *entry)
{
    const edl_task_t *task = entry->task;
    if (strcmp(entry->state, edl_task_state(task)) == 0)
        return;
    snprintf(entry->state, sizeof entry->state, "%s", edl_task_state(task));
    if (s_over(entry) && !entry->ended)
        self->finished[task->outcome]++;
    log_info("task %s, id %d: %s%s%s", task->request.name, task->id, entry->state, task->reason[0] ? ": " : "",
        task->reason);
}

/*  What its queue says of a task that has one; of members that it is to give back no answers are waited for. */
static void s_ask_queue(edl_tasks_t *self, entry_t *entry)
{
    edl_task_t *task = entry->task;
    char words[EDL_TASK_WAITS] = "";
    bool admitted = false;
    if (!task->request.queue[0] || task->step >= EDL_TASK_ENDING)
        return;
    if (self->place->ops->admits(self->place, task, &admitted, words) != TT_OK)
        edl_task_fail(task, tt_err_text(), tt_now_ms(self->clock));
    else
        edl_task_admit(task, admitted, words);
    if (!admitted)
        s_cancel(entry);
}

void edl_tasks_step(edl_tasks_t *self)
{
    uint64_t place;
    char reason[EDL_TASK_WAITS];
    while (self->place->ops->gone(self->place, &place, reason))
        s_lost(self, place, reason);
    for (size_t t = 0; t < self->count; t++) {
        entry_t *entry = &self->entries[t];
        int member = 0;
        s_ask_queue(self, entry);
        for (edl_task_act_t act;
             (act = edl_task_next(entry->task, &member, tt_now_ms(self->clock))) != EDL_TASK_NOTHING;)
            s_do(self, entry, act, member);
        if (entry->task->step >= EDL_TASK_ENDING)
            s_close(self, entry);
        s_say(self, entry);
    }
}

int64_t edl_tasks_due_ms(const edl_tasks_t *self)
{
    int64_t due = self->place->ops->due_ms(self->place);
    for (size_t t = 0; t < self->count; t++) {
        const int64_t own = edl_task_due_ms(self->entries[t].task, tt_now_ms(self->clock));
        if (own >= 0 && (due < 0 || own < due))
            due = own;
    }
    return due;
}
