#include "task/engine.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "controller/process.h"
#include "task/cluster.h"
#include "task/engine_parts.h"
#include "task/lock.h"
#include "task/place.h"
#include "task/survivors.h"
#define TT_LOG_COMPONENT "task"
#include "common/base/log.h"

enum { POLL_MS = 200, EVENTS = 64 };

/* ---- ended ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const engine_child_t *child;
    char said[1024]; /* when it is written */
} end_t;

static tt_status_t s_write_job_end(engine_t *self, void *ctx)
{
    end_t *end = ctx;
    const engine_child_t *child = end->child;
    size_t at;
    task_t *task = engine_find(self, child->job, &at);
    if (!task || task->rows[at].attempt != child->attempt)
        return TT_OK; /* deleted */
    const job_state_t state = task->states.jobs[at].state;
    if (state != JOB_RUNNING && state != JOB_KILL)
        return TT_OK;
    int code = child->code;
    char reason[sizeof child->reason];
    snprintf(reason, sizeof reason, "%s", child->reason);
    const bool known = place_exit(task->dir, (uint32_t)at, child->attempt, &code);
    if (known) /* whatever became of its shell after that; what we end ourselves ends with its shell */
        snprintf(reason, sizeof reason, "exit code %d%s", code,
            code == 128 + SIGKILL ? " (SIGKILL, not by tutti: out of memory, mostly)" : "");
    engine_write_end(&task->rows[at], code, reason);
    if (child->broke)
        states_broke(&task->states, at);
    else if (child->lost && !known)
        states_lost(&task->states, at);
    else
        states_ended(&task->states, at, code == 0);
    snprintf(end->said, sizeof end->said, "%s job_configId_%zu %s: %s", task->name, at,
        job_state_name(task->states.jobs[at].state), reason);
    return TT_OK;
}

/*  Who does not go is waited for once, and then only looked for: others have their turn. */
static tt_status_t s_end_survivors(const engine_t *self, const engine_child_t *child)
{
    const char *folder = store_folder(self->store);
    if (self->options->cluster || child->broke)
        return TT_OK;
    if (child->stays)
        TT_TRY(attempt_end(folder, child->job, child->attempt, 0));
    return attempt_end(folder, child->job, child->attempt, SURVIVORS_PATIENCE_MS);
}

static tt_status_t s_finish(engine_t *self, size_t i)
{
    end_t end = {.child = &self->children[i]};
    TT_TRY(s_end_survivors(self, end.child));
    TT_TRY(engine_change(self, s_write_job_end, &end));
    if (end.said[0])
        engine_say(self, "%s", end.said);
    self->children[i] = self->children[--self->count];
    return TT_OK;
}

static void s_say_stays(engine_t *self, engine_child_t *child)
{
    if (!child->stays)
        engine_say(self, "%s is not free, and its job has not ended: %s", child->slot, tt_err_text());
    child->stays = true;
}

static tt_status_t s_finish_all(engine_t *self)
{
    for (size_t i = 0; i < self->count;) {
        const bool ended = self->children[i].ended;
        const tt_status_t status = ended ? s_finish(self, i) : TT_OK;
        if (status == TT_TIMEOUT)
            s_say_stays(self, &self->children[i]);
        else
            TT_TRY(status);
        i += !ended || status == TT_TIMEOUT; /* the last one has the place of who is gone */
    }
    return TT_OK;
}

static void s_ended(engine_t *self, const tt_replica_event_t *event)
{
    size_t i = 0;
    while (i < self->count && self->children[i].replica != event->id)
        i++;
    TT_CHECK(i < self->count);
    engine_child_t *child = &self->children[i];
    child->ended = true;
    child->code = event->exit_code;
    /* Where we have ended it, it did not fail. */
    child->lost = self->ended_by && !self->options->cluster && event->exit_code != 0;
    snprintf(child->reason, sizeof child->reason, "%s%s", event->reason, event->why);
}

static tt_status_t s_reap(engine_t *self)
{
    tt_replica_event_t events[EVENTS];
    size_t count = EVENTS;
    TT_TRY(self->substrate->ops->poll(self->substrate, events, &count));
    for (size_t i = 0; i < count; i++)
        s_ended(self, &events[i]);
    return s_finish_all(self);
}

static size_t s_running(const engine_t *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++)
        count += !self->children[i].ended;
    return count;
}

/*  Of what runs, ask that to end which is to be killed, or of which nobody knows any more. */
static void s_stop_unwanted(engine_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        engine_child_t *child = &self->children[i];
        size_t at;
        const task_t *task = engine_find(self, child->job, &at);
        const bool wanted =
            task && task->states.jobs[at].state == JOB_RUNNING && (!self->ended_by || self->options->cluster);
        if (wanted || child->asked || child->ended)
            continue;
        child->asked = true;
        (void)self->substrate->ops->stop(self->substrate, child->replica, ENGINE_GRACE_MS);
    }
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
        const char *where = self->options->cluster ? ENGINE_POD : "";
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
    engine_child_t child;
    bool held; /* one for which there is a slot failed a moment ago */
} next_t;

/*  May it begin now? One that failed is left alone for a while, and others have its slot. */
static bool s_may_begin(const engine_t *self, const task_t *task, size_t at, bool *held)
{
    const task_job_t *job = &task->states.jobs[at];
    if (job->state != JOB_ASSIGNED || s_has_child(self, job->id))
        return false;
    const bool waits = states_wait_s(job, task->rows[at].ended, time(NULL)) > 0;
    *held |= waits;
    return !waits;
}

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
        if (self->list.tasks[t]->refused || !engine_has(self, self->list.tasks[t]) ||
            !s_free_slot(self, self->list.tasks[t]->gpu, slot, sizeof slot))
            continue;
        for (size_t i = 0; i < all[t]->count; i++)
            if (s_may_begin(self, self->list.tasks[t], i, &next->held) && all[t]->jobs[i].priority > best) {
                best = all[t]->jobs[i].priority;
                next->task = self->list.tasks[t];
                next->at = i;
                next->child = (engine_child_t){.job = all[t]->jobs[i].id, .gpu = next->task->gpu};
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
    engine_set_text(&row->slot, next->child.slot);
    engine_set_text(&row->reason, NULL);
    states_started(&next->task->states, next->at);
    return TT_OK;
}

static tt_status_t s_start_next(engine_t *self, bool *started, bool *held)
{
    next_t next = {0};
    *started = false;
    TT_TRY(engine_change(self, s_choose, &next));
    *held = next.held;
    if (!next.task)
        return TT_OK;
    *started = true;
    const attempt_place_t place = engine_place(self);
    const tt_status_t status = attempt_start(&place, next.task, next.at, next.child.slot, false, &next.child.replica);
    if (status == TT_OK) {
        engine_say(self, "%s job_configId_%zu started on %s", next.task->name, next.at, next.child.slot);
        engine_add_child(self, &next.child);
        return TT_OK;
    }
    next.task->refused = true; /* what is wrong with this one is so with its siblings, mostly: others come first */
    next.child.ended = next.child.broke = true;
    next.child.code = -1;
    snprintf(next.child.reason, sizeof next.child.reason, "%s", tt_err_text());
    engine_add_child(self, &next.child);
    return s_finish(self, self->count - 1);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------- */

static void s_heed(engine_t *self)
{
    for (int signal; (signal = tt_signals_next(self->signals)) != 0;)
        if (signal != SIGCHLD && !self->ended_by)
            self->ended_by = signal;
}

static void s_wait(engine_t *self)
{
    struct pollfd wait = {.fd = self->signals, .events = POLLIN};
    (void)poll(&wait, 1, POLL_MS); /* after which is looked what others have written */
    s_heed(self);
}

static size_t s_waiting(const engine_t *self, const char **gpu_task)
{
    size_t count = 0;
    for (size_t t = 0; t < self->list.count; t++) {
        const task_t *task = self->list.tasks[t];
        if (!engine_has(self, task))
            continue;
        for (size_t i = 0; i < task->states.count; i++)
            count += task->states.jobs[i].state == JOB_ASSIGNED;
        if (task->gpu && !task_state_ended(task->states.state))
            *gpu_task = task->name;
    }
    return count;
}

/*  Tasks that are no concern of a cluster's engine. */
static void s_say_left(const engine_t *self)
{
    for (size_t t = 0; t < self->list.count; t++) {
        const task_t *task = self->list.tasks[t];
        if (!engine_has(self, task) && !task_state_ended(task->states.state))
            engine_say(self, "%s is left: %s", task->name,
                task->image ? "it does not stand in this directory" : "it was created without --containerImage");
    }
}

/*  Nothing runs, and nothing could be started. */
static tt_status_t s_idle(const engine_t *self, bool *over)
{
    const char *gpu_task = NULL;
    const size_t waiting = s_waiting(self, &gpu_task);
    *over = !self->options->stay;
    if (*over)
        s_say_left(self);
    if (waiting == 0 || self->options->stay)
        return TT_OK;
    if (gpu_task && self->slots.gpus == 0)
        return tt_err(TT_UNAVAILABLE, "%zu jobs wait, and %s wants a card: 'tutti task run --gpu 0' gives it one",
            waiting, gpu_task);
    return tt_err(TT_UNAVAILABLE,
        "%zu jobs wait, and there is no slot for them: 'tutti task run --cpu 1' gives them one", waiting);
}

/*  What can be; is there one that could be later: its task was passed by because a job of it was refused, or it failed a moment ago? */
static tt_status_t s_start_all(engine_t *self, bool *later)
{
    bool started = true;
    *later = false;
    for (size_t t = 0; t < self->list.count; t++)
        self->list.tasks[t]->refused = false;
    while (!self->ended_by && started) {
        TT_TRY(s_start_next(self, &started, later));
        if (self->options->cluster) /* it may take its time for each; ends of processes are for s_wait to hear */
            s_heed(self);
    }
    for (size_t t = 0; t < self->list.count; t++)
        *later |= self->list.tasks[t]->refused;
    return TT_OK;
}

static tt_status_t s_turn(engine_t *self, bool *over)
{
    bool later;
    TT_TRY(s_reap(self));
    TT_TRY(engine_change(self, NULL, NULL));
    s_stop_unwanted(self);
    TT_TRY(s_start_all(self, &later));
    if (self->ended_by)
        *over = s_running(self) == 0;    /* what does not end is the next engine's */
    else if (self->count == 0 && !later) /* else some have their turn yet */
        TT_TRY(s_idle(self, over));
    return TT_OK;
}

/*  Is it worth another turn? The store may be another's, or its disk full: jobs that run are not ended for that. */
static bool s_may_pass(const engine_t *self, tt_status_t status)
{
    return !self->ended_by && (status == TT_EXISTS || (status == TT_IO && s_running(self) > 0));
}

static void s_say_held(engine_t *self, tt_status_t status)
{
    if (status != TT_OK && !self->held)
        engine_say(self, "jobs go on, but nothing can be written down, and nothing begins: %s", tt_err_text());
    self->held = status != TT_OK;
}

static tt_status_t s_loop(engine_t *self)
{
    bool over = false;
    while (!over) {
        const tt_status_t status = s_turn(self, &over);
        if (!s_may_pass(self, status))
            TT_TRY(status);
        s_say_held(self, status);
        if (!over)
            s_wait(self);
        over |= self->ended_by && self->options->cluster; /* pods go on */
    }
    return TT_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static tt_status_t s_begin_cluster(engine_t *self)
{
    char registry[STORE_WORD];
    TT_TRY(store_word(self->store, registry));
    const engine_cluster_t *cluster = self->options->cluster;
    const cluster_opts_t opts = {
        .kube = cluster->kube, .rules = cluster->rules, .claim = cluster->claim, .registry = registry};
    TT_TRY(cluster_new(&self->substrate, &opts));
    return engine_adopt(self);
}

/*  Nobody is an engine beside us, and no command puts right meanwhile what it takes for a dead engine's. */
static tt_status_t s_lock(engine_t *self)
{
    const char *folder = store_folder(self->store);
    TT_TRY(lock_run(folder, &self->run_lock));
    const tt_status_t status = lock_take(folder, false, &self->lock);
    if (status != TT_EXISTS)
        return status;
    engine_say(self, "another command has %s/engine.lock: waiting for it", folder);
    return lock_take(folder, true, &self->lock);
}

static tt_status_t s_begin(engine_t *self)
{
    const char *inside = getenv(SURVIVORS_OF_REGISTRY);
    if (inside && strcmp(inside, store_folder(self->store)) == 0)
        return tt_err(TT_USAGE, "this is a job of the same registry: it cannot run the others");
    TT_TRY(s_lock(self));
    TT_TRY(tt_signals_open_parent(&self->signals));
    TT_TRY(engine_recover(self));
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
    if (self->run_lock >= 0)
        close(self->run_lock); /* who is the next waits for the other one */
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
    self->version = self->run_lock = self->lock = self->signals = -1;
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
        status = engine_recover(self);
    else if (status == TT_EXISTS)
        status = TT_OK;         /* it does so itself */
    if (status == TT_TIMEOUT) { /* what still runs is not shown as ended */
        log_warn("%s", tt_err_text());
        status = TT_OK;
    }
    s_end(self);
    return status;
}

int engine_pid(store_t *store)
{
    return lock_holder(store_folder(store));
}
