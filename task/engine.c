#include "task/engine.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "controller/process.h"
#include "task/attempt.h"
#include "task/cluster.h"
#include "task/lock.h"
#include "task/place.h"
#include "task/survivors.h"
#include "task/tasks.h"

enum { POLL_MS = 200, EVENTS = 64, MARK_MAX = 4200 };

typedef struct {
    tt_replica_id_t replica;
    int64_t job; /* of the store */
    uint32_t attempt;
    bool gpu, asked; /* asked: to end */
    char slot[ENGINE_GPU_NAME + 16];
} child_t;

typedef struct {
    store_t *store;
    const engine_options_t *options;
    tt_substrate_t *substrate;
    task_list_t list; /* the store's, as of version */
    int64_t version;
    engine_slots_t slots;
    child_t *children;
    size_t count, room;
    int lock, signals, ended_by; /* ended_by: a signal */
    bool settling;               /* nothing is begun */
} engine_t;

static void s_say(const engine_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void s_say(const engine_t *self, const char *fmt, ...)
{
    char line[1024];
    va_list values;
    if (!self->options->say)
        return;
    va_start(values, fmt);
    vsnprintf(line, sizeof line, fmt, values);
    va_end(values);
    self->options->say(self->options->ctx, line);
}

/* ---- what is so, and how it is changed ------------------------------------------------------------------------------- */

static tt_status_t s_reload(engine_t *self)
{
    int64_t version;
    TT_TRY(store_version(self->store, &version));
    if (version == self->version && self->list.count)
        return TT_OK;
    task_list_t list;
    TT_TRY(task_list_load(self->store, &list, NULL));
    TT_TRY(engine_slots(self->store, &self->slots));
    task_list_free(&self->list);
    self->list = list;
    self->version = version;
    return TT_OK;
}

typedef struct {
    engine_t *engine;
    tt_status_t (*fn)(engine_t *self, void *ctx);
    void *ctx;
} step_t;

static tt_status_t s_step(void *ctx, store_t *store)
{
    const step_t *step = ctx;
    engine_t *self = step->engine;
    TT_TRY(s_reload(self));
    TT_TRY(step->fn(self, step->ctx));
    for (size_t i = 0; i < self->list.count; i++) {
        task_t *task = self->list.tasks[i];
        if (!self->settling || task->states.state != TASK_REGISTERED)
            states_schedule(&task->states);
        TT_TRY(task_save(store, task));
    }
    return TT_OK;
}

/*  Change what is so by fn, on what is so now. After a failure the store is right, and what we have is not. */
static tt_status_t s_change(engine_t *self, tt_status_t (*fn)(engine_t *self, void *ctx), void *ctx)
{
    const tt_status_t status = store_tx(self->store, s_step, &(step_t){self, fn, ctx});
    if (status != TT_OK)
        self->version = -1;
    return status;
}

static tt_status_t s_nothing(engine_t *self, void *ctx)
{
    (void)self;
    (void)ctx;
    return TT_OK;
}

/*  The task and the index of a job in it; NULL: it was deleted. */
static task_t *s_find(const engine_t *self, int64_t job, size_t *at)
{
    for (size_t t = 0; t < self->list.count; t++)
        for (size_t i = 0; i < self->list.tasks[t]->states.count; i++)
            if (self->list.tasks[t]->states.jobs[i].id == job) {
                *at = i;
                return self->list.tasks[t];
            }
    return NULL;
}

static void s_set_text(char **at, const char *text)
{
    free(*at);
    *at = tt_strdup(text);
}

/*  How an attempt went, in its row. code -1: not known. */
static void s_write_end(job_row_t *row, int code, const char *reason)
{
    row->exit_code = code;
    row->ended = time(NULL);
    row->touched = true;
    s_set_text(&row->reason, reason);
    s_set_text(&row->slot, NULL);
}

/* ---- after a death --------------------------------------------------------------------------------------------------- */

#define POD "pod/" /* how slots of a cluster begin */

/*  What it left is known by its exit code. Pods go on without an engine; of processes nothing is left. */
static void s_recover_job(engine_t *self, task_t *task, size_t at)
{
    const char *slot = task->rows[at].slot;
    const bool pod = slot && strncmp(slot, POD, strlen(POD)) == 0;
    int code;
    char reason[64];
    if (place_exit(task->dir, (uint32_t)at, task->rows[at].attempt, &code)) {
        snprintf(reason, sizeof reason, "exit code %d", code);
        s_write_end(&task->rows[at], code, reason);
        states_ended(&task->states, at, code == 0);
        s_say(self, "%s job_configId_%zu had ended: %s", task->name, at, reason);
    } else if (!pod) {
        s_write_end(&task->rows[at], -1, "lost with the process that ran it");
        states_lost(&task->states, at);
        s_say(self, "%s job_configId_%zu was lost: it will run again", task->name, at);
    }
}

static tt_status_t s_recover(engine_t *self, void *ctx)
{
    (void)ctx;
    for (size_t t = 0; t < self->list.count; t++) {
        task_t *task = self->list.tasks[t];
        for (size_t i = 0; i < task->states.count; i++)
            if (task->states.jobs[i].state == JOB_RUNNING || task->states.jobs[i].state == JOB_KILL)
                s_recover_job(self, task, i);
    }
    return TT_OK;
}

/*  With the lock held: whatever runs now is nobody's. */
static tt_status_t s_settle(engine_t *self)
{
    char mark[MARK_MAX];
    snprintf(mark, sizeof mark, SURVIVORS_OF_REGISTRY "=%s", store_folder(self->store));
    TT_TRY(survivors_end(mark, NULL));
    return s_change(self, s_recover, NULL);
}

/* ---- where ----------------------------------------------------------------------------------------------------------- */

static bool s_is_ours(const engine_t *self, const task_t *task)
{
    const engine_cluster_t *cluster = self->options->cluster;
    if (!cluster)
        return true;
    const size_t length = strlen(cluster->volume);
    return task->image && strncmp(task->dir, cluster->volume, length) == 0 &&
           strcmp(task->dir + length + 1, task->name) == 0;
}

static attempt_place_t s_place(const engine_t *self)
{
    return (attempt_place_t){self->substrate, store_folder(self->store), self->options->cluster != NULL};
}

/* ---- started --------------------------------------------------------------------------------------------------------- */

static bool s_is_taken(const engine_t *self, const char *slot)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->children[i].slot, slot) == 0)
            return true;
    return false;
}

static bool s_free_slot(const engine_t *self, bool gpu, char *out, size_t size)
{
    for (size_t i = 0; i < (gpu ? self->slots.gpus : self->slots.cpus); i++) {
        const char *where = self->options->cluster ? POD : "";
        if (gpu)
            snprintf(out, size, "%sgpu:%s", where, self->slots.gpu[i]);
        else
            snprintf(out, size, "%scpu:%zu", where, i);
        if (!s_is_taken(self, out))
            return true;
    }
    return false;
}

/*  Is a process of it still there? Its attempt may have been lost to us, its slot and its mark are not. */
static bool s_has_child(const engine_t *self, int64_t job)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->children[i].job == job)
            return true;
    return false;
}

typedef struct {
    task_t *task; /* NULL = none */
    size_t at;
    child_t child;
} next_t;

/*  The assigned job of the highest priority for which there is a slot. */
static tt_status_t s_choose(engine_t *self, void *ctx)
{
    next_t *next = ctx;
    task_states_t **all = tt_array0(self->list.count + 1, sizeof *all);
    double best = -2;
    for (size_t t = 0; t < self->list.count; t++)
        all[t] = &self->list.tasks[t]->states;
    for (size_t t = 0; t < self->list.count; t++)
        states_schedule(all[t]);
    states_priorities(all, self->list.count);
    for (size_t t = 0; t < self->list.count; t++) {
        char slot[sizeof next->child.slot];
        if (!s_is_ours(self, self->list.tasks[t]) || !s_free_slot(self, self->list.tasks[t]->gpu, slot, sizeof slot))
            continue;
        for (size_t i = 0; i < all[t]->count; i++)
            if (all[t]->jobs[i].state == JOB_ASSIGNED && all[t]->jobs[i].priority > best &&
                !s_has_child(self, all[t]->jobs[i].id)) {
                best = all[t]->jobs[i].priority;
                *next = (next_t){self->list.tasks[t], i, {.job = all[t]->jobs[i].id, .gpu = self->list.tasks[t]->gpu}};
                snprintf(next->child.slot, sizeof next->child.slot, "%s", slot);
            }
    }
    free(all);
    if (!next->task)
        return TT_OK;
    job_row_t *row = &next->task->rows[next->at];
    next->child.attempt = ++row->attempt;
    row->exit_code = -1;
    row->started = time(NULL);
    row->ended = 0;
    row->touched = true;
    s_set_text(&row->slot, next->child.slot);
    s_set_text(&row->reason, NULL);
    states_started(&next->task->states, next->at);
    return TT_OK;
}

typedef struct {
    const child_t *child;
    int code;
    const char *reason;
    bool broke, lost;
} end_t;

static tt_status_t s_write_job_end(engine_t *self, void *ctx)
{
    const end_t *end = ctx;
    size_t at;
    task_t *task = s_find(self, end->child->job, &at);
    if (!task || task->rows[at].attempt != end->child->attempt)
        return TT_OK; /* deleted */
    const job_state_t state = task->states.jobs[at].state;
    if (state != JOB_RUNNING && state != JOB_KILL)
        return TT_OK;
    int code = end->code;
    char reason[512];
    snprintf(reason, sizeof reason, "%s", end->reason);
    const bool known = place_exit(task->dir, (uint32_t)at, end->child->attempt, &code);
    if (known) /* whatever became of its shell after that */
        snprintf(reason, sizeof reason, "exit code %d", code);
    s_write_end(&task->rows[at], code, reason);
    if (end->broke)
        states_broke(&task->states, at);
    else if (end->lost && !known)
        states_lost(&task->states, at);
    else
        states_ended(&task->states, at, code == 0);
    s_say(self, "%s job_configId_%zu %s: %s", task->name, at, job_state_name(task->states.jobs[at].state), reason);
    return TT_OK;
}

static void s_add_child(engine_t *self, const child_t *child)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->children = tt_realloc(self->children, tt_mul(self->room, sizeof *self->children));
    }
    self->children[self->count++] = *child;
}

static tt_status_t s_start_next(engine_t *self, bool *started)
{
    next_t next = {0};
    *started = false;
    TT_TRY(s_change(self, s_choose, &next));
    if (!next.task)
        return TT_OK;
    *started = true;
    const attempt_place_t place = s_place(self);
    const tt_status_t status = attempt_start(&place, next.task, next.at, next.child.slot, false, &next.child.replica);
    if (status == TT_OK) {
        s_say(self, "%s job_configId_%zu started on %s", next.task->name, next.at, next.child.slot);
        s_add_child(self, &next.child);
        return TT_OK;
    }
    char reason[512];
    snprintf(reason, sizeof reason, "%s", tt_err_text());
    return s_change(self, s_write_job_end, &(end_t){.child = &next.child, .code = -1, .reason = reason, .broke = true});
}

/*  Pods that an engine before us started. One that is to be killed is not begun for it. */
static tt_status_t s_adopt(engine_t *self, const task_t *task, size_t at)
{
    const job_row_t *row = &task->rows[at];
    child_t child = {.job = task->states.jobs[at].id, .attempt = row->attempt, .gpu = task->gpu};
    const attempt_place_t place = s_place(self);
    snprintf(child.slot, sizeof child.slot, "%s", row->slot ? row->slot : POD);
    if (task->states.jobs[at].state == JOB_KILL)
        cluster_adopt(self->substrate, child.job, child.attempt, &child.replica);
    else
        TT_TRY(attempt_start(&place, task, at, child.slot, true, &child.replica));
    s_add_child(self, &child);
    s_say(self, "%s job_configId_%zu goes on in %s", task->name, at, child.slot);
    return TT_OK;
}

static tt_status_t s_adopt_all(engine_t *self)
{
    for (size_t t = 0; t < self->list.count; t++) {
        const task_t *task = self->list.tasks[t];
        for (size_t i = 0; i < task->states.count; i++)
            if (s_is_ours(self, task) &&
                (task->states.jobs[i].state == JOB_RUNNING || task->states.jobs[i].state == JOB_KILL))
                TT_TRY(s_adopt(self, task, i));
    }
    return TT_OK;
}

/* ---- ended ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_ended(engine_t *self, const tt_replica_event_t *event)
{
    size_t i = 0;
    while (i < self->count && self->children[i].replica != event->id)
        i++;
    TT_CHECK(i < self->count);
    const child_t child = self->children[i];
    self->children[i] = self->children[--self->count];
    if (!self->options->cluster)
        TT_TRY(attempt_end(store_folder(self->store), child.job, child.attempt));
    /* Where we have ended it, it did not fail. */
    const bool lost = self->ended_by && !self->options->cluster && event->exit_code != 0;
    return s_change(self, s_write_job_end,
        &(end_t){.child = &child, .code = event->exit_code, .reason = event->reason, .lost = lost});
}

static tt_status_t s_reap(engine_t *self)
{
    tt_replica_event_t events[EVENTS];
    size_t count = EVENTS;
    TT_TRY(self->substrate->ops->poll(self->substrate, events, &count));
    for (size_t i = 0; i < count; i++)
        TT_TRY(s_ended(self, &events[i]));
    return TT_OK;
}

/*  Of what runs, ask that to end which is to be killed, or of which nobody knows any more. */
static void s_stop_unwanted(engine_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        child_t *child = &self->children[i];
        size_t at;
        const task_t *task = s_find(self, child->job, &at);
        const bool wanted =
            task && task->states.jobs[at].state == JOB_RUNNING && (!self->ended_by || self->options->cluster);
        if (wanted || child->asked)
            continue;
        child->asked = true;
        (void)self->substrate->ops->stop(self->substrate, child->replica, ENGINE_GRACE_MS);
    }
}

/* ---- the loop -------------------------------------------------------------------------------------------------------- */

static void s_wait(engine_t *self)
{
    struct pollfd wait = {.fd = self->signals, .events = POLLIN};
    (void)poll(&wait, 1, POLL_MS); /* after which is looked what others have written */
    for (int signal; (signal = tt_signals_next(self->signals)) != 0;)
        if (signal != SIGCHLD && !self->ended_by)
            self->ended_by = signal;
}

static size_t s_waiting(const engine_t *self, const char **gpu_task)
{
    size_t count = 0;
    for (size_t t = 0; t < self->list.count; t++) {
        const task_t *task = self->list.tasks[t];
        if (!s_is_ours(self, task))
            continue;
        for (size_t i = 0; i < task->states.count; i++)
            count += task->states.jobs[i].state == JOB_ASSIGNED;
        if (task->gpu && !task_state_ended(task->states.state))
            *gpu_task = task->name;
    }
    return count;
}

/*  Nothing runs, and nothing could be started. */
static tt_status_t s_idle(const engine_t *self, bool *over)
{
    const char *gpu_task = NULL;
    const size_t waiting = s_waiting(self, &gpu_task);
    *over = !self->options->stay;
    if (waiting == 0 || self->options->stay)
        return TT_OK;
    if (gpu_task && self->slots.gpus == 0)
        return tt_err(TT_UNAVAILABLE, "%zu jobs wait, and %s wants a card: 'tutti task run --gpu 0' gives it one",
            waiting, gpu_task);
    return tt_err(TT_UNAVAILABLE,
        "%zu jobs wait, and there is no slot for them: 'tutti task run --cpu 1' gives them one", waiting);
}

static tt_status_t s_turn(engine_t *self, bool *over)
{
    bool started = true;
    TT_TRY(s_reap(self));
    TT_TRY(s_change(self, s_nothing, NULL));
    s_stop_unwanted(self);
    while (!self->ended_by && started)
        TT_TRY(s_start_next(self, &started));
    if (self->ended_by && (self->count == 0 || self->options->cluster)) /* pods go on */
        *over = true;
    else if (self->count == 0)
        TT_TRY(s_idle(self, over));
    return TT_OK;
}

static tt_status_t s_loop(engine_t *self)
{
    bool over = false;
    while (!over) {
        TT_TRY(s_turn(self, &over));
        if (!over)
            s_wait(self);
    }
    return TT_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_begin_cluster(engine_t *self)
{
    char registry[STORE_WORD];
    TT_TRY(store_word(self->store, registry));
    const engine_cluster_t *cluster = self->options->cluster;
    const cluster_opts_t opts = {.kube = cluster->kube, .claim = cluster->claim, .registry = registry};
    TT_TRY(cluster_new(&self->substrate, &opts));
    return s_adopt_all(self);
}

static tt_status_t s_begin(engine_t *self)
{
    const char *inside = getenv(SURVIVORS_OF_REGISTRY);
    if (inside && strcmp(inside, store_folder(self->store)) == 0)
        return tt_err(TT_USAGE, "this is a job of the same registry: it cannot run the others");
    TT_TRY(lock_take(store_folder(self->store), &self->lock));
    TT_TRY(tt_signals_open_parent(&self->signals));
    TT_TRY(s_settle(self));
    return self->options->cluster
               ? s_begin_cluster(self)
               : tt_process_substrate_new(&self->substrate, store_folder(self->store), tt_clock_real());
}

static void s_end(engine_t *self)
{
    if (self->substrate)
        self->substrate->ops->destroy(&self->substrate);
    if (self->signals >= 0)
        close(self->signals);
    if (self->lock >= 0)
        close(self->lock); /* last: what we started is gone */
    task_list_free(&self->list);
    free(self->children);
    free(self);
}

static engine_t *s_new(store_t *store, const engine_options_t *options)
{
    engine_t *self = tt_new0(sizeof *self);
    self->store = store;
    self->options = options;
    self->version = self->lock = self->signals = -1;
    return self;
}

tt_status_t engine_run(store_t *store, const engine_options_t *options, int *signal)
{
    engine_t *self = s_new(store, options);
    tt_status_t status = s_begin(self);
    if (status == TT_OK)
        status = s_loop(self);
    *signal = self->ended_by;
    s_end(self);
    return status;
}

tt_status_t engine_settle(store_t *store)
{
    engine_t *self = s_new(store, &(engine_options_t){0});
    self->settling = true;
    tt_status_t status = lock_try(store_folder(store), &self->lock);
    if (status == TT_OK)
        status = s_settle(self);
    else if (status == TT_EXISTS)
        status = TT_OK; /* it does so itself */
    s_end(self);
    return status;
}

int engine_pid(store_t *store)
{
    return lock_holder(store_folder(store));
}
