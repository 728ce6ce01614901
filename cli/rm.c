/*  rm - remove ended runs with all their files: those that are named, all, or all that ended some time ago. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/cmd.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "controller/rundir.h"

const tt_option_t tt_opt_rm[] = {
    {"all", 0, NULL, "every ended run"},
    {"older", 0, "AGE", "every run that ended so long ago: 90s, 30m, 12h, 7d, 2w"},
    {"force", 'f', NULL, "with what else somebody put into a run's directory"},
    {0},
};

typedef struct {
    const tt_args_t *args;
    int64_t before_s; /* since 1970: what ended later stays */
    int worst;        /* exit code */
} removal_t;

static void s_fail(removal_t *self, tt_status_t status)
{
    self->worst = tt_args_fail(self->args, status);
}

/*  When it wrote the last of what every end, and every life, writes; where there is nothing yet, when it was made. */
static int64_t s_ended_s(const tt_rundir_t *run)
{
    static const char *const files[] = {"summary.json", "result.json", "metrics.jsonl", "journal.db", "run.json", "."};
    int64_t newest = 0;
    for (size_t i = 0; i < TT_COUNT(files) && (!newest || i + 1 < TT_COUNT(files)); i++) {
        char path[sizeof run->path + 16];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", run->path, files[i]);
        if (stat(path, &info) == 0 && info.st_mtim.tv_sec > newest)
            newest = info.st_mtim.tv_sec;
    }
    return newest;
}

/* ---- the registry's ------------------------------------------------------------------------------------------------- */

static tt_status_t s_remove_one(const removal_t *self, const tt_rundir_t *run)
{
    return tt_arg_given(self->args, "force") ? tt_rundir_remove_all(run) : tt_rundir_remove(run);
}

static void s_remove(void *ctx, const tt_rundir_t *run)
{
    removal_t *self = ctx;
    if (tt_rundir_live(run) || s_ended_s(run) > self->before_s)
        return;
    const tt_status_t status = s_remove_one(self, run);
    if (status == TT_OK)
        printf("removed %s, %s\n", tt_shown(run->name), tt_shown(run->path));
    else if (status != TT_EXISTS) /* it was begun again just now */
        s_fail(self, status);
}

static tt_status_t s_remove_all(removal_t *self)
{
    int64_t age_s = 0;
    if (tt_operand_count(self->args))
        return tt_err(TT_USAGE, "--all and --older choose the runs; '%s' is one too many", tt_operand(self->args, 0));
    TT_TRY(tt_arg_age(self->args, "older", &age_s));
    self->before_s = age_s ? tt_wall_ns() / 1000000000 - age_s : INT64_MAX;
    return tt_registry_each(s_remove, self);
}

/* ---- the command ---------------------------------------------------------------------------------------------------- */

static void s_remove_named(removal_t *self)
{
    for (size_t i = 0; tt_operand(self->args, i); i++) {
        tt_rundir_t run;
        tt_status_t status = tt_rundir_find(&run, tt_operand(self->args, i));
        if (status == TT_OK)
            status = s_remove_one(self, &run);
        if (status != TT_OK)
            s_fail(self, status);
    }
}

int tt_cmd_rm(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "rm", argc, argv);
    if (!args)
        return code;
    removal_t self = {.args = args};
    const bool all = tt_arg_given(args, "all") || tt_arg_given(args, "older");
    tt_status_t status = TT_OK;
    if (all)
        status = s_remove_all(&self);
    else if (tt_operand_count(args))
        s_remove_named(&self);
    else
        status = tt_err(TT_USAGE, "RUN is missing; or --all, or --older AGE");
    if (status != TT_OK)
        s_fail(&self, status);
    return self.worst;
}
