/*  coordinator - the role that keeps the roster of a run (coordinator/coordinator.h). */
#include "cli/cmd.h"
#include <stdint.h>
#include "common/base/log.h"
#include "coordinator/coordinator.h"

const tt_option_t tt_opt_coordinator[] = {
    {"run", 0, "DIR", "run directory, with the resolved config.yaml"},
    {"index", 0, "N", "number within the role; there is only 0 (default 0)"},
    {"start-ns", 0, "N", "CLOCK_MONOTONIC of the run's process start (default: the journal's, or this process's)"},
    {0},
};

int tt_cmd_coordinator(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "coordinator", argc, argv);
    if (!args)
        return code;
    uint64_t index = 0, start_ns = 0;
    tt_status_t status = tt_arg_u64(args, "index", &index, 0, 0);
    if (status == TT_OK)
        status = tt_arg_u64(args, "start-ns", &start_ns, 0, INT64_MAX);
    if (status == TT_OK && !tt_arg(args, "run"))
        status = tt_err(TT_USAGE, "--run DIR is needed");
    if (status != TT_OK)
        return tt_args_fail(args, status);
    tt_log_init("coordinator", 0);
    const coordinator_opts_t opts = {.run_dir = tt_arg(args, "run"), .start_ns = (int64_t)start_ns};
    status = coordinator_run(&opts, &code);
    return status == TT_OK ? code : tt_args_fail(args, status);
}
