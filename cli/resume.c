/*  resume - continue an ended run from its newest snapshot, with the replica counts last asked for. */
#include <stdio.h>
#include "cli/cmd.h"
#include "cli/launch.h"
#include "common/base/clock.h"

const tt_option_t tt_opt_resume[] = {{"detach", 0, NULL, "return as soon as it trains and leave it going"},
    {"quiet", 'q', NULL, "show only the end"},
    {"output", 'o', "text|json", "json: one object on stdout at the end, everything else on stderr"}, {0}};

/*  The settings are those of the run's beginning: its resolved config. */
static tt_status_t s_read(tt_train_cfg_t *cfg, const tt_rundir_t *run)
{
    tt_buf_t text;
    tt_buf_init(&text, 1 << 20);
    tt_status_t status = tt_rundir_read(run, "config.yaml", &text);
    if (status != TT_OK && tt_rundir_read(run, "job.json", &text) == TT_OK)
        status = tt_err(TT_UNSUPPORTED, "%s was a DIJob: its manifest begins another one with 'tutti run'", run->name);
    if (status == TT_OK)
        status = tt_train_parse(cfg, tt_buf_text(&text), text.size);
    tt_buf_free(&text);
    return status;
}

int tt_cmd_resume(int argc, char **argv)
{
    const int64_t start_ns = tt_process_start_ns();
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "resume", argc, argv);
    if (!args)
        return code;
    tt_rundir_t run;
    tt_train_cfg_t cfg;
    tt_status_t status = tt_rundir_find(&run, tt_operand(args, 0));
    if (status == TT_OK)
        status = s_read(&cfg, &run);
    if (status == TT_OK && tt_rundir_live(&run))
        status = tt_err(TT_EXISTS, "run %s is running already", run.name);
    if (status != TT_OK)
        return tt_args_fail(args, status);
    const tt_launch_t launch = {.run = &run,
        .cfg = &cfg,
        .start_ns = start_ns,
        .resume = true,
        .detach = tt_arg_given(args, "detach"),
        .json = tt_arg_is(args, "output", "json"),
        .quiet = tt_arg_given(args, "quiet")};
    return tt_launch(&launch);
}
