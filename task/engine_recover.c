/*  engine_recover - what an engine that died left behind: exit codes, processes, pods. */
#include <stdio.h>
#include <string.h>
#include "task/cluster.h"
#include "task/engine_parts.h"
#include "task/place.h"
#include "task/survivors.h"

enum { MARK_MAX = 4200 };

/*  What it left is known by its exit code. Pods go on without an engine; of processes nothing is left. */
static void s_recover_job(engine_t *self, task_t *task, size_t at)
{
    const char *slot = task->rows[at].slot;
    const bool pod = slot && strncmp(slot, ENGINE_POD, strlen(ENGINE_POD)) == 0;
    int code;
    char reason[64];
    if (place_exit(task->dir, (uint32_t)at, task->rows[at].attempt, &code)) {
        snprintf(reason, sizeof reason, "exit code %d", code);
        engine_write_end(&task->rows[at], code, reason);
        states_ended(&task->states, at, code == 0);
        engine_say(self, "%s job_configId_%zu had ended: %s", task->name, at, reason);
    } else if (!pod) {
        engine_write_end(&task->rows[at], -1, "lost with the process that ran it");
        states_lost(&task->states, at);
        engine_say(self, "%s job_configId_%zu was lost: it will run again", task->name, at);
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

tt_status_t engine_recover(engine_t *self)
{
    char mark[MARK_MAX];
    snprintf(mark, sizeof mark, SURVIVORS_OF_REGISTRY "=%s", store_folder(self->store));
    TT_TRY(survivors_end(mark, NULL, SURVIVORS_PATIENCE_MS));
    return engine_change(self, s_recover, NULL);
}

/*  Pods that an engine before us started. One that is to be killed is not begun for it. */
static tt_status_t s_adopt(engine_t *self, const task_t *task, size_t at)
{
    const job_row_t *row = &task->rows[at];
    engine_child_t child = {.job = task->states.jobs[at].id, .attempt = row->attempt, .gpu = task->gpu};
    const attempt_place_t place = engine_place(self);
    snprintf(child.slot, sizeof child.slot, "%s", row->slot ? row->slot : ENGINE_POD);
    if (task->states.jobs[at].state == JOB_KILL)
        cluster_adopt(self->substrate, child.job, child.attempt, &child.replica);
    else
        TT_TRY(attempt_start(&place, task, at, child.slot, true, &child.replica));
    engine_add_child(self, &child);
    engine_say(self, "%s job_configId_%zu goes on in %s", task->name, at, child.slot);
    return TT_OK;
}

tt_status_t engine_adopt(engine_t *self)
{
    for (size_t t = 0; t < self->list.count; t++) {
        const task_t *task = self->list.tasks[t];
        for (size_t i = 0; i < task->states.count; i++)
            if (engine_has(self, task) &&
                (task->states.jobs[i].state == JOB_RUNNING || task->states.jobs[i].state == JOB_KILL))
                TT_TRY(s_adopt(self, task, i));
    }
    return TT_OK;
}
