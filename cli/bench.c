/*  bench - finds the benchmark in one table (cli/bench.def) and calls it. */
#include "cli/cmd.h"
#include "cli/help.h"
#include <stdio.h>
#include <string.h>

const tt_option_t tt_opt_bench[] = {{0}};

int tt_cmd_bench(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        int code;
        TT_AUTO(tt_args) args = tt_args_new(&code, "bench", argc, argv);
        if (!args)
            return code;
        help_command(stderr, tt_command_find("bench"));
        return tt_status_exit_code(TT_USAGE);
    }
    char name[64];
    snprintf(name, sizeof name, "bench %s", argv[1]);
    const tt_command_t *command = tt_command_find(name);
    if (command)
        return command->run(argc - 1, argv + 1);
    const char *near = tt_command_nearest("bench ", argv[1]);
    if (near)
        fprintf(stderr, "tutti bench: no benchmark '%s'; did you mean '%s'?\n", argv[1], near);
    else
        fprintf(stderr, "tutti bench: no benchmark '%s'; 'tutti bench --help' lists them\n", argv[1]);
    return tt_status_exit_code(TT_USAGE);
}
