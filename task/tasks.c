#include "task/tasks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/config/config.h"
#include "task/place.h"

/* ---- read ---------------------------------------------------------------------------------------------------------------- */

static void s_free(task_t *self)
{
    for (size_t i = 0; i < self->states.count; i++) {
        free(self->rows[i].config);
        free(self->rows[i].slot);
        free(self->rows[i].reason);
    }
    free(self->name);
    free(self->username);
    free(self->dir);
    free(self->exec);
    free(self->output);
    free(self->image);
    free(self->states.jobs);
    free(self->were);
    free(self->rows);
    free(self);
}

void task_list_free(task_list_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        s_free(self->tasks[i]);
    free(self->tasks);
    *self = (task_list_t){0};
}

static char *s_dup(sqlite3_stmt *row, int column)
{
    return tt_strdup((const char *)sqlite3_column_text(row, column));
}

static int64_t s_or_none(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, column);
}

#define TASK_COLUMNS \
    "id, name, username, dir, exec, output, image, gpu, et, eta, state, bypass, testers, pass, retries, created"

static tt_status_t s_take_task(void *ctx, sqlite3_stmt *row)
{
    task_list_t *list = ctx;
    task_t *self = tt_new0(sizeof *self);
    list->tasks = tt_realloc(list->tasks, tt_mul(list->count + 1, sizeof(task_t *)));
    list->tasks[list->count++] = self;
    self->id = sqlite3_column_int64(row, 0);
    self->name = s_dup(row, 1);
    self->username = s_dup(row, 2);
    self->dir = s_dup(row, 3);
    self->exec = s_dup(row, 4);
    self->output = s_dup(row, 5);
    self->image = s_dup(row, 6);
    self->gpu = sqlite3_column_int64(row, 7) != 0;
    self->et = s_or_none(row, 8);
    self->eta = s_or_none(row, 9);
    if (!task_state_of(store_text(row, 10), &self->states.state))
        return tt_err(TT_DATA, "task %s: '%.40s' is no state of a task; the registry is damaged", self->name,
            store_text(row, 10));
    self->was = self->states.state;
    self->states.bypass = sqlite3_column_int64(row, 11) != 0;
    self->states.testers = (uint32_t)sqlite3_column_int64(row, 12);
    self->states.pass = (uint32_t)sqlite3_column_int64(row, 13);
    self->states.retries = (uint32_t)sqlite3_column_int64(row, 14);
    self->created = sqlite3_column_int64(row, 15);
    return TT_OK;
}

static tt_status_t s_take_job(void *ctx, sqlite3_stmt *row)
{
    task_t *self = ctx;
    const size_t at = self->states.count;
    if (at >= TASK_JOBS_MAX || sqlite3_column_int64(row, 1) != (int64_t)at)
        return tt_err(TT_DATA, "task %s: its jobs are not numbered 0, 1, ...; the registry is damaged", self->name);
    if ((at & (at - 1)) == 0) { /* room for 1, 2, 4, ... */
        const size_t room = at ? 2 * at : 1;
        self->states.jobs = tt_realloc(self->states.jobs, tt_mul(room, sizeof *self->states.jobs));
        self->were = tt_realloc(self->were, tt_mul(room, sizeof *self->were));
        self->rows = tt_realloc(self->rows, tt_mul(room, sizeof *self->rows));
    }
    task_job_t *job = &self->states.jobs[at];
    *job = (task_job_t){
        .id = sqlite3_column_int64(row, 0), .tried = (uint32_t)sqlite3_column_int64(row, 4), .priority = -1};
    if (!job_state_of(store_text(row, 3), &job->state))
        return tt_err(
            TT_DATA, "task %s: '%.40s' is no state of a job; the registry is damaged", self->name, store_text(row, 3));
    self->were[at] = job->state;
    self->rows[at] = (job_row_t){.config = tt_strdup(store_text(row, 2)),
        .attempt = (uint32_t)sqlite3_column_int64(row, 5),
        .slot = s_dup(row, 6),
        .exit_code = (int)s_or_none(row, 7),
        .reason = s_dup(row, 8),
        .started = sqlite3_column_int64(row, 9),
        .ended = sqlite3_column_int64(row, 10)};
    self->states.count++;
    return TT_OK;
}

static tt_status_t s_take_use(void *ctx, sqlite3_stmt *row)
{
    task_t *self = ctx;
    const char *key = store_text(row, 0), *set = store_text(row, 1);
    if (strcmp(key, "%IN") == 0)
        snprintf(self->config_set, sizeof self->config_set, "%.255s", set);
    else if (strcmp(key, "%DATA") == 0)
        snprintf(self->data_set, sizeof self->data_set, "%.255s", set);
    else if (self->secondary_count < EXEC_SECONDARY_MAX) {
        exec_secondary_t *secondary = &self->secondary[self->secondary_count++];
        snprintf(secondary->key, sizeof secondary->key, "%.63s", key);
        snprintf(secondary->value, sizeof secondary->value, "%.255s", set);
    }
    return TT_OK;
}

static tt_status_t s_load_parts(store_t *store, task_t *self)
{
    TT_TRY(
        store_run(store, "SELECT key, dataset FROM uses WHERE task = ? ORDER BY key", s_take_use, self, "i", self->id));
    TT_TRY(store_run(store,
        "SELECT id, config_id, config, state, tried, attempt, slot, exit_code, reason, started, ended FROM jobs WHERE "
        "task = ?"
        " ORDER BY config_id",
        s_take_job, self, "i", self->id));
    if (self->states.count == 0)
        return tt_err(TT_DATA, "task %s has no jobs; the registry is damaged", self->name);
    return TT_OK;
}

/*  Of the tasks that fit: `which` is the rest of the query, with one text at most. */
static tt_status_t s_load(store_t *store, task_list_t *out, const char *which, const char *text)
{
    task_list_t list = {0};
    char sql[512];
    const int length = snprintf(sql, sizeof sql, "SELECT " TASK_COLUMNS " FROM tasks %s", which);
    TT_CHECK(length < (int)sizeof sql);
    tt_status_t status = store_run(store, sql, s_take_task, &list, text ? "s" : "", text);
    for (size_t i = 0; status == TT_OK && i < list.count; i++)
        status = s_load_parts(store, list.tasks[i]);
    if (status == TT_OK)
        *out = list;
    else
        task_list_free(&list);
    return status;
}

typedef struct {
    char **names;
    size_t count;
} names_t;

static tt_status_t s_push(void *ctx, const char *name)
{
    names_t *all = ctx;
    all->names = tt_realloc(all->names, tt_mul(all->count + 1, sizeof *all->names));
    all->names[all->count++] = tt_strdup(name);
    return TT_OK;
}

static tt_status_t s_missing(store_t *store, const char *name)
{
    names_t all = {0};
    tt_status_t status = task_each_name(store, s_push, &all);
    const char *near = tt_nearest(name, (const char *const *)all.names, all.count);
    if (status == TT_OK)
        status = near ? tt_err(TT_NOT_FOUND, "no task '%.200s'; did you mean '%s'?", name, near)
                      : tt_err(TT_NOT_FOUND, "no task '%.200s'; 'tutti task list' shows them", name);
    for (size_t i = 0; i < all.count; i++)
        free(all.names[i]);
    free(all.names);
    return status;
}

tt_status_t task_list_load(store_t *store, task_list_t *out, const char *name)
{
    if (!name)
        return s_load(store, out, "ORDER BY id", NULL);
    task_list_t list;
    TT_TRY(s_load(store, &list, "WHERE name = ?", name));
    if (list.count == 0)
        return s_missing(store, name);
    *out = list;
    return TT_OK;
}

/*  The words of task_state_ended and of jobs that run (tests/task/test_tasks.c holds them against states.h). */
tt_status_t task_list_living(store_t *store, task_list_t *out)
{
    return s_load(store, out,
        "WHERE state NOT IN ('done', 'finalized', 'broken', 'killed', 'removing')"
        " OR id IN (SELECT task FROM jobs WHERE state IN ('running', 'kill')) ORDER BY id",
        NULL);
}

typedef struct {
    tt_status_t (*fn)(void *ctx, const char *name);
    void *ctx;
} each_name_t;

static tt_status_t s_give_name(void *ctx, sqlite3_stmt *row)
{
    const each_name_t *each = ctx;
    return each->fn(each->ctx, store_text(row, 0));
}

tt_status_t task_each_name(store_t *store, tt_status_t (*fn)(void *ctx, const char *name), void *ctx)
{
    return store_run(store, "SELECT name FROM tasks ORDER BY id", s_give_name, &(each_name_t){fn, ctx}, "");
}

/* ---- written --------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_save_job(store_t *store, task_t *self, size_t at)
{
    const task_job_t *job = &self->states.jobs[at];
    job_row_t *row = &self->rows[at];
    TT_TRY(store_run(store,
        "UPDATE jobs SET state = ?, tried = ?, attempt = ?, slot = ?, exit_code = nullif(?, -1), reason = ?, started = "
        "?, ended = ?"
        " WHERE id = ?",
        NULL, NULL, "siisisiii", job_state_name(job->state), (int64_t)job->tried, (int64_t)row->attempt, row->slot,
        (int64_t)row->exit_code, row->reason, row->started, row->ended, job->id));
    self->were[at] = job->state;
    row->touched = false;
    return TT_OK;
}

tt_status_t task_save(store_t *store, task_t *self)
{
    for (size_t i = 0; i < self->states.count; i++)
        if (self->rows[i].touched || self->were[i] != self->states.jobs[i].state)
            TT_TRY(s_save_job(store, self, i));
    if (self->was != self->states.state)
        TT_TRY(store_run(store, "UPDATE tasks SET state = ? WHERE id = ?", NULL, NULL, "si",
            task_state_name(self->states.state), self->id));
    self->was = self->states.state;
    return TT_OK;
}

typedef struct {
    const char *name;
    tt_status_t (*fn)(task_states_t *self);
} change_t;

static tt_status_t s_change(void *ctx, store_t *store)
{
    const change_t *change = ctx;
    task_list_t list;
    TT_TRY(task_list_load(store, &list, change->name));
    tt_status_t status = change->fn(&list.tasks[0]->states);
    if (status == TT_OK) {
        states_schedule(&list.tasks[0]->states);
        status = task_save(store, list.tasks[0]);
    } else {
        status = tt_err_wrap(status, "%s", change->name);
    }
    task_list_free(&list);
    return status;
}

tt_status_t task_kill(store_t *store, const char *name)
{
    return store_tx(store, s_change, &(change_t){name, states_kill});
}

tt_status_t task_retry(store_t *store, const char *name)
{
    return store_tx(store, s_change, &(change_t){name, states_retry});
}

/* ---- deleted --------------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    bool remove;
    int64_t id;
    int place; /* what is to be removed; -1 = nothing */
    char dir[PLACE_MAX];
} delete_t;

static tt_status_t s_forget(store_t *store, int64_t id)
{
    return store_run(store, "DELETE FROM tasks WHERE id = ?", NULL, NULL, "i", id);
}

static tt_status_t s_delete_ended(delete_t *self, store_t *store, task_t *task)
{
    if (!task_state_ended(task->states.state))
        return tt_err(TT_EXISTS, "%s has not ended (%s); 'tutti task kill -t %s' ends it, --force does so first",
            task->name, task_state_name(task->states.state), task->name);
    if (!self->remove)
        return s_forget(store, task->id);
    TT_TRY(place_open(task->dir, task->name, &self->place));
    self->id = task->id;
    snprintf(self->dir, sizeof self->dir, "%s", task->dir);
    task->states.state = TASK_REMOVING; /* nobody begins it, nor makes another of its name */
    return task_save(store, task);
}

static tt_status_t s_delete(void *ctx, store_t *store)
{
    delete_t *self = ctx;
    task_list_t list;
    TT_TRY(task_list_load(store, &list, self->name));
    const tt_status_t status = s_delete_ended(self, store, list.tasks[0]);
    task_list_free(&list);
    return status;
}

tt_status_t task_delete(store_t *store, const char *name, bool remove)
{
    delete_t self = {.name = name, .remove = remove, .place = -1};
    const tt_status_t status = store_tx(store, s_delete, &self);
    if (status != TT_OK && self.place >= 0)
        close(self.place);
    if (status != TT_OK || !remove)
        return status;
    TT_TRY(place_empty(self.place, self.dir)); /* before the row: what could not be removed can be tried again */
    return s_forget(store, self.id);
}

/* ---- what runs ------------------------------------------------------------------------------------------------------------- */

tt_status_t task_line(const task_t *self, size_t job, const char *root, tt_buf_t *out)
{
    enum { OWN = 3 };
    char paths[OWN + EXEC_SECONDARY_MAX][PLACE_MAX];
    exec_pair_t pairs[OWN + EXEC_SECONDARY_MAX] = {{"%IN", paths[0]}, {"%OUT", paths[1]}};
    size_t count = 2;
    const char *config = self->rows[job].config;
    char place[PLACE_MAX];
    place_job_path(place, root, (uint32_t)job);
    snprintf(paths[0], PLACE_MAX, "%.3000s/%s%s%.400s", root, self->config_set, *config ? "/" : "", config);
    snprintf(paths[1], PLACE_MAX, "%.3800s/%.200s", place, self->output);
    if (self->data_set[0]) {
        snprintf(paths[count], PLACE_MAX, "%.3000s/%s", root, self->data_set);
        pairs[count] = (exec_pair_t){"%DATA", paths[count]};
        count++;
    }
    for (size_t i = 0; i < self->secondary_count; i++, count++) {
        snprintf(paths[count], PLACE_MAX, "%.3000s/%s", root, self->secondary[i].value);
        pairs[count] = (exec_pair_t){self->secondary[i].key, paths[count]};
    }
    return exec_fill(out, self->exec, pairs, count);
}
