/*  engine_rows - tasks and jobs as the engine has them, and how they are changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/base/mem.h"
#include "task/engine_parts.h"

void engine_say(const engine_t *self, const char *fmt, ...)
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

static tt_status_t s_reload(engine_t *self)
{
    int64_t version;
    TT_TRY(store_version(self->store, &version));
    if (version == self->version && self->list.count)
        return TT_OK;
    task_list_t list;
    TT_TRY(task_list_living(self->store, &list));
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
    if (step->fn)
        TT_TRY(step->fn(self, step->ctx));
    for (size_t i = 0; i < self->list.count; i++) {
        task_t *task = self->list.tasks[i];
        /* who only puts right what a dead engine left begins no task */
        if (!self->settling || task->states.state != TASK_REGISTERED)
            states_schedule(&task->states);
        TT_TRY(task_save(store, task));
    }
    return TT_OK;
}

tt_status_t engine_change(engine_t *self, tt_status_t (*fn)(engine_t *self, void *ctx), void *ctx)
{
    const tt_status_t status = store_tx(self->store, s_step, &(step_t){self, fn, ctx});
    if (status != TT_OK)
        self->version = -1;
    return status;
}

task_t *engine_find(const engine_t *self, int64_t job, size_t *at)
{
    for (size_t t = 0; t < self->list.count; t++)
        for (size_t i = 0; i < self->list.tasks[t]->states.count; i++)
            if (self->list.tasks[t]->states.jobs[i].id == job) {
                *at = i;
                return self->list.tasks[t];
            }
    return NULL;
}

void engine_set_text(char **at, const char *text)
{
    free(*at);
    *at = tt_strdup(text);
}

void engine_write_end(job_row_t *row, int code, const char *reason)
{
    row->exit_code = code;
    row->ended = time(NULL);
    row->touched = true;
    engine_set_text(&row->reason, reason);
    engine_set_text(&row->slot, NULL);
}

bool engine_has(const engine_t *self, const task_t *task)
{
    const engine_cluster_t *cluster = self->options->cluster;
    if (!cluster)
        return true;
    const size_t length = strlen(cluster->volume);
    return task->image && strncmp(task->dir, cluster->volume, length) == 0 &&
           strcmp(task->dir + length + 1, task->name) == 0;
}

attempt_place_t engine_place(const engine_t *self)
{
    return (attempt_place_t){self->substrate, store_folder(self->store), self->options->cluster != NULL};
}

void engine_add_child(engine_t *self, const engine_child_t *child)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 16;
        self->children = tt_realloc(self->children, tt_mul(self->room, sizeof *self->children));
    }
    self->children[self->count++] = *child;
}
