/*  rm - remove ended runs with all their files. */
#include "cli/cmd.h"
#include "controller/rundir.h"

const tt_option_t tt_opt_rm[] = {{0}};

int tt_cmd_rm(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "rm", argc, argv);
    if (!args)
        return code;
    int worst = 0;
    for (size_t i = 0; tt_operand(args, i); i++) {
        tt_rundir_t run;
        tt_status_t status = tt_rundir_find(&run, tt_operand(args, i));
        if (status == TT_OK)
            status = tt_rundir_remove(&run);
        if (status != TT_OK)
            worst = tt_args_fail(args, status);
    }
    return worst;
}
