/*  task create - flags as orchestra_create.py has them. */
#include <stdio.h>
#include "cli/cmd.h"
#include "common/base/text.h"
#include "task/place.h"
#include "task/tasks.h"

const tt_option_t tt_opt_task_create[] = {
    {"configFile", 'c', "DATASET", "the data set of config files: one job each, in the order of their names"},
    {"dataFile", 'd', "DATASET", "the data set that every job reads; none where the command has no %DATA"},
    {"outputFile", 'o', "NAME", "the name of a job's output"},
    {"task", 't', "NAME", "the task's name: user.<username>.<anything>, new"},
    {"exec", 0, "LINE", "the command, with %DATA, %IN and %OUT in it"},
    {"secondaryData", 0, "DICT", "more data sets and their keys: {'%REF': 'user.me.ref'}"},
    {"sd", 0, "DICT", "the same"},
    {"containerImage", 0, "IMAGE", "the image of its jobs on a cluster; on this machine they run without one"},
    {"gpu", 0, NULL, "a job wants a card"},
    {"et", 0, "N", "a number of your own, for jobs as TT_ET"},
    {"eta", 0, "N", "a number of your own, for jobs as TT_ETA"},
    {"testers", 0, "N", "jobs that run before the others (10)"},
    {"pass", 0, "PERCENT", "of the testers that have to end well, or the task is broken (80)"},
    {"bypass", 0, NULL, "no testers"},
    {"retries", 0, "N", "how often a job that fails is tried again by itself, 0 to 3 (0)"},
    {"dry_run", 0, NULL, "check everything and say what would be made; make nothing"},
    {0},
};

static tt_status_t s_numbers(const tt_args_t *args, task_new_t *out)
{
    uint64_t testers = TASK_TESTERS, pass = TASK_TEST_PASS, retries = 0, et = 0, eta = 0;
    TT_TRY(tt_arg_u64(args, "testers", &testers, 1, TASK_JOBS_MAX));
    TT_TRY(tt_arg_u64(args, "pass", &pass, 1, 100));
    TT_TRY(tt_arg_u64(args, "retries", &retries, 0, TASK_RETRIES_MAX));
    TT_TRY(tt_arg_u64(args, "et", &et, 0, 1000000));
    TT_TRY(tt_arg_u64(args, "eta", &eta, 0, 1000000));
    out->testers = (uint32_t)testers;
    out->pass = (uint32_t)pass;
    out->retries = (uint32_t)retries;
    out->et = tt_arg_given(args, "et") ? (int64_t)et : -1;
    out->eta = tt_arg_given(args, "eta") ? (int64_t)eta : -1;
    return TT_OK;
}

static tt_status_t s_read(const tt_args_t *args, task_new_t *out)
{
    static const char *const wanted[] = {"configFile", "outputFile", "task", "exec"};
    for (size_t i = 0; i < TT_COUNT(wanted); i++)
        if (!tt_arg(args, wanted[i]))
            return tt_err(TT_USAGE, "--%s is missing", wanted[i]);
    *out = (task_new_t){.config_set = tt_arg(args, "configFile"),
        .data_set = tt_arg(args, "dataFile"),
        .output = tt_arg(args, "outputFile"),
        .name = tt_arg(args, "task"),
        .exec = tt_arg(args, "exec"),
        .secondary = tt_arg(args, tt_arg_given(args, "sd") ? "sd" : "secondaryData"),
        .image = tt_arg(args, "containerImage"),
        .volume = ".",
        .gpu = tt_arg_given(args, "gpu"),
        .bypass = tt_arg_given(args, "bypass"),
        .dry = tt_arg_given(args, "dry_run")};
    return s_numbers(args, out);
}

static tt_status_t s_create(const tt_args_t *args)
{
    TT_AUTO(store) store = NULL;
    task_new_t wanted;
    char dir[PLACE_MAX];
    size_t jobs;
    TT_TRY(s_read(args, &wanted));
    TT_TRY(store_open(&store));
    TT_TRY(task_create(store, &wanted, dir, &jobs));
    printf("%s: %zu job%s in %s%s\n", wanted.name, jobs, jobs == 1 ? "" : "s", tt_shown(dir),
        wanted.dry ? " (nothing was made)" : "");
    if (wanted.image)
        fprintf(stderr, "on this machine jobs run as they are, without %s; 'tutti task run --claim' runs them in it\n",
            wanted.image);
    return TT_OK;
}

int tt_cmd_task_create(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "task create", argc, argv);
    if (!args)
        return code;
    const tt_status_t status = s_create(args);
    return status == TT_OK ? 0 : tt_args_fail(args, status);
}
