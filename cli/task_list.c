/*  task list, task jobs - tables of tasks and of jobs, for a person and for a program. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "task/engine.h"
#include "task/place.h"
#include "task/tasks.h"

enum { WATCH_MS = 1000 };

#define OUTPUT_OPTION                                          \
    {                                                          \
        "output", 'o', "text|json", "json: an array on stdout" \
    }

const tt_option_t tt_opt_task_list[] = {
    {"watch", 'w', NULL, "again and again, until all tasks have ended"}, OUTPUT_OPTION, {0}};
const tt_option_t tt_opt_task_jobs[] = {{"task", 't', "TASK", "the task's name"}, OUTPUT_OPTION, {0}};

/* ---- tasks ----------------------------------------------------------------------------------------------------------- */

static size_t s_in(const task_t *task, job_state_t state)
{
    size_t count = 0;
    for (size_t i = 0; i < task->states.count; i++)
        count += task->states.jobs[i].state == state;
    return count;
}

/*  The columns of orchestra_print.py. Failed: those that could not be started, too. */
typedef struct {
    size_t assigned, testing, running, failed, done;
} columns_t;

static columns_t s_columns(const task_t *task)
{
    const size_t busy = s_in(task, JOB_RUNNING) + s_in(task, JOB_KILL);
    const bool testing = task->states.state == TASK_TESTING;
    return (columns_t){.assigned = s_in(task, JOB_ASSIGNED),
        .testing = testing ? busy : 0,
        .running = testing ? 0 : busy,
        .failed = s_in(task, JOB_FAILED) + s_in(task, JOB_BROKEN),
        .done = s_in(task, JOB_DONE)};
}

/*  A long name: its beginning and its end. */
static const char *s_short(const char *name, char *out, size_t size)
{
    const size_t length = strlen(name);
    if (length <= 80)
        return name;
    snprintf(out, size, "%.40s...%s", name, name + length - 30);
    return out;
}

static void s_print_tasks(const task_list_t *list)
{
    char name[128];
    size_t width = strlen("taskname");
    for (size_t i = 0; i < list->count; i++)
        width = strlen(s_short(list->tasks[i]->name, name, sizeof name)) > width
                    ? strlen(s_short(list->tasks[i]->name, name, sizeof name))
                    : width;
    printf("%-12s %-*s %8s %8s %8s %8s %8s  %s\n", "username", (int)width, "taskname", "assigned", "testing", "running",
        "failed", "done", "status");
    for (size_t i = 0; i < list->count; i++) {
        const task_t *task = list->tasks[i];
        const columns_t columns = s_columns(task);
        printf("%-12s %-*s %8zu %8zu %8zu %8zu %8zu  %s\n", task->username, (int)width,
            s_short(task->name, name, sizeof name), columns.assigned, columns.testing, columns.running, columns.failed,
            columns.done, task_state_name(task->states.state));
    }
}

static json_t *s_task_object(const task_t *task)
{
    const columns_t columns = s_columns(task);
    json_t *row = json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:b, s:I}", "username",
        tt_json_text(task->username), "taskname", tt_json_text(task->name), "jobs", (json_int_t)task->states.count,
        "assigned", (json_int_t)columns.assigned, "testing", (json_int_t)columns.testing, "running",
        (json_int_t)columns.running, "failed", (json_int_t)columns.failed, "done", (json_int_t)columns.done, "status",
        task_state_name(task->states.state), "dir", tt_json_text(task->dir), "exec", tt_json_text(task->exec), "gpu",
        task->gpu, "created", (json_int_t)task->created);
    if (task->image)
        json_object_set_new(row, "containerImage", tt_json_text(task->image));
    if (task->et >= 0)
        json_object_set_new(row, "et", json_integer(task->et));
    if (task->eta >= 0)
        json_object_set_new(row, "eta", json_integer(task->eta));
    return row;
}

static void s_dump(json_t *rows)
{
    json_dumpf(rows, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(rows);
}

static void s_show_tasks(const task_list_t *list, bool json)
{
    if (!json) {
        s_print_tasks(list);
        return;
    }
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(rows, s_task_object(list->tasks[i]));
    s_dump(rows);
}

static bool s_all_ended(const task_list_t *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!task_state_ended(list->tasks[i]->states.state))
            return false;
    return true;
}

static tt_status_t s_look(store_t *store, bool json, bool clear, bool *ended)
{
    task_list_t list;
    TT_TRY(engine_settle(store));
    TT_TRY(task_list_load(store, &list, NULL));
    if (clear)
        fputs("\033[H\033[J", stdout);
    s_show_tasks(&list, json);
    fflush(stdout);
    *ended = s_all_ended(&list);
    task_list_free(&list);
    return TT_OK;
}

static tt_status_t s_list(bool json, bool watch)
{
    TT_AUTO(store) store = NULL;
    bool ended = false;
    TT_TRY(store_open(&store));
    TT_TRY(s_look(store, json, watch && isatty(STDOUT_FILENO), &ended));
    while (watch && !ended) {
        (void)poll(NULL, 0, WATCH_MS);
        TT_TRY(s_look(store, json, isatty(STDOUT_FILENO), &ended));
    }
    return TT_OK;
}

int tt_cmd_task_list(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task list", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_list(tt_arg_is(args, "output", "json"), tt_arg_given(args, "watch"));
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------------ */

static void s_print_jobs(const task_t *task)
{
    printf("%-8s %-10s %8s %8s  %-24s %s\n", "configId", "status", "attempt", "exit", "config", "why");
    for (size_t i = 0; i < task->states.count; i++) {
        const job_row_t *row = &task->rows[i];
        char exit_code[16] = "-";
        if (row->exit_code >= 0)
            snprintf(exit_code, sizeof exit_code, "%d", row->exit_code);
        printf("%-8zu %-10s %8u %8s  %-24s %s\n", i, job_state_name(task->states.jobs[i].state), row->attempt,
            exit_code, *row->config ? row->config : task->config_set,
            row->slot     ? row->slot
            : row->reason ? row->reason
                          : "");
    }
    printf("logs: %s/logs/job_configId_<configId>.log\n", tt_shown(task->dir));
}

static json_t *s_job_object(const task_t *task, size_t at)
{
    const job_row_t *row = &task->rows[at];
    char log[PLACE_MAX], dir[PLACE_MAX];
    place_log_path(log, task->dir, (uint32_t)at);
    place_job_path(dir, task->dir, (uint32_t)at);
    json_t *object = json_pack("{s:I, s:s, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o}", "configId", (json_int_t)at,
        "status", job_state_name(task->states.jobs[at].state), "config", tt_json_text(row->config), "attempt",
        (json_int_t)row->attempt, "retries", (json_int_t)task->states.jobs[at].tried, "slot", tt_json_text(row->slot),
        "reason", tt_json_text(row->reason), "started", (json_int_t)row->started, "ended", (json_int_t)row->ended,
        "dir", tt_json_text(dir), "log", tt_json_text(log));
    json_object_set_new(object, "exit_code", row->exit_code >= 0 ? json_integer(row->exit_code) : json_null());
    return object;
}

static tt_status_t s_jobs(const tt_args_t *args)
{
    TT_AUTO(store) store = NULL;
    task_list_t list;
    if (!tt_arg(args, "task"))
        return tt_err(TT_USAGE, "--task is missing");
    TT_TRY(store_open(&store));
    TT_TRY(engine_settle(store));
    TT_TRY(task_list_load(store, &list, tt_arg(args, "task")));
    if (tt_arg_is(args, "output", "json")) {
        json_t *rows = json_array();
        for (size_t i = 0; i < list.tasks[0]->states.count; i++)
            json_array_append_new(rows, s_job_object(list.tasks[0], i));
        s_dump(rows);
    } else {
        s_print_jobs(list.tasks[0]);
    }
    task_list_free(&list);
    return TT_OK;
}

int tt_cmd_task_jobs(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task jobs", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_jobs(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
