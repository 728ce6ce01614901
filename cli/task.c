/*  task - retry, kill, delete, slots: what is changed of a task that is there (task/tasks.h). */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/sub.h"
#include "cli/task.h"
#include "common/base/clock.h"
#include "task/engine.h"
#include "task/tasks.h"

enum { KILL_PATIENCE_MS = 30000, LOOK_MS = 100 };

#define TASK_OPTION                            \
    {                                          \
        "task", 't', "TASK", "the task's name" \
    }

const tt_option_t tt_opt_task[] = {{0}};
const tt_option_t tt_opt_task_retry[] = {TASK_OPTION, {0}};
const tt_option_t tt_opt_task_kill[] = {TASK_OPTION, {0}};
const tt_option_t tt_opt_task_delete[] = {TASK_OPTION,
    {"remove", 0, NULL, "remove its directory, too, with all results"},
    {"force", 0, NULL, "kill it first, where it has not ended"}, {0}};
const tt_option_t tt_opt_task_slots[] = {{"cpu", 0, "N", "jobs at once that want no card; 'all' = one a processor"},
    {"gpu", 0, "LIST", "cards, for one job each: 0,1; '' = none"}, {0}};

int tt_cmd_task(int argc, char **argv)
{
    return sub_dispatch("task", "command", argc, argv);
}

/*  The store, and the name after -t; what a dead run left behind is put right first. */
static tt_status_t s_open(const tt_args_t *args, store_t **store, const char **name)
{
    *name = tt_arg(args, "task");
    if (!*name)
        return tt_err(TT_USAGE, "--task is missing");
    TT_TRY(store_open(store));
    return engine_settle(*store);
}

static int s_change(const char *command, int argc, char **argv, tt_status_t (*fn)(store_t *store, const char *name))
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, command, argc, argv);
    TT_AUTO(store) store = NULL;
    const char *name;
    if (!args)
        return code;
    tt_status_t status = s_open(args, &store, &name);
    if (status == TT_OK)
        status = fn(store, name);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

static tt_status_t s_retry(store_t *store, const char *name)
{
    TT_TRY(task_retry(store, name));
    if (!engine_pid(store))
        fprintf(stderr, "nothing runs them at present: tutti task run\n");
    return TT_OK;
}

int tt_cmd_task_retry(int argc, char **argv)
{
    return s_change("task retry", argc, argv, s_retry);
}

static tt_status_t s_state(store_t *store, const char *name, task_state_t *out)
{
    task_list_t list;
    TT_TRY(task_list_load(store, &list, name));
    *out = list.tasks[0]->states.state;
    task_list_free(&list);
    return TT_OK;
}

static tt_status_t s_kill(store_t *store, const char *name)
{
    task_state_t state;
    TT_TRY(task_kill(store, name));
    TT_TRY(s_state(store, name, &state));
    if (!task_state_ended(state) && !engine_pid(store))
        fprintf(stderr, "its pods are ended by the next 'tutti task run --claim'\n");
    return TT_OK;
}

int tt_cmd_task_kill(int argc, char **argv)
{
    return s_change("task kill", argc, argv, s_kill);
}

/*  Kill it, and wait until its last process is gone. */
static tt_status_t s_kill_and_wait(store_t *store, const char *name)
{
    task_state_t state;
    const int64_t until = tt_now_ms(tt_clock_real()) + KILL_PATIENCE_MS;
    TT_TRY(s_state(store, name, &state));
    if (!task_state_ended(state))
        TT_TRY(task_kill(store, name));
    for (;;) {
        TT_TRY(engine_settle(store)); /* where its engine has died */
        TT_TRY(s_state(store, name, &state));
        if (task_state_ended(state))
            return TT_OK;
        if (tt_now_ms(tt_clock_real()) >= until)
            return tt_err(TT_TIMEOUT,
                "jobs of %s have not ended after %d s; pods are ended by 'tutti task run --claim'", name,
                KILL_PATIENCE_MS / 1000);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static tt_status_t s_delete(const tt_args_t *args)
{
    TT_AUTO(store) store = NULL;
    const char *name;
    TT_TRY(s_open(args, &store, &name));
    if (tt_arg_given(args, "force"))
        TT_TRY(s_kill_and_wait(store, name));
    return task_delete(store, name, tt_arg_given(args, "remove"));
}

int tt_cmd_task_delete(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task delete", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_delete(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}

/* ---- slots ----------------------------------------------------------------------------------------------------------- */

/*  Also of `task run`. */
tt_status_t task_set_slots(const tt_args_t *args, store_t *store)
{
    uint64_t cpus = 0;
    int wanted = -2;
    if (tt_arg_is(args, "cpu", "all"))
        wanted = -1;
    else if (tt_arg_given(args, "cpu"))
        TT_TRY(tt_arg_u64(args, "cpu", &cpus, 0, ENGINE_SLOTS_MAX));
    if (tt_arg_given(args, "cpu") && wanted != -1)
        wanted = (int)cpus;
    return wanted == -2 && !tt_arg_given(args, "gpu") ? TT_OK : engine_slots_set(store, wanted, tt_arg(args, "gpu"));
}

static tt_status_t s_slots(const tt_args_t *args)
{
    TT_AUTO(store) store = NULL;
    engine_slots_t slots;
    TT_TRY(store_open(&store));
    TT_TRY(task_set_slots(args, store));
    TT_TRY(engine_slots(store, &slots));
    printf("cpu  %zu\ngpu ", slots.cpus);
    for (size_t i = 0; i < slots.gpus; i++)
        printf("%s%s", i ? "," : " ", slots.gpu[i]);
    puts(slots.gpus ? "" : " none");
    return TT_OK;
}

int tt_cmd_task_slots(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task slots", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_slots(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
