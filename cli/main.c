/*  main - tutti: finds the subcommand in one table (cli/commands.def) and calls it. */
#include "cli/cmd.h"
#include "cli/help.h"
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include "common/base/descriptors.h"

static int s_unknown(const char *name)
{
    const char *near = tt_command_nearest("", name);
    if (near)
        fprintf(stderr, "tutti: no command '%s'; did you mean 'tutti %s'?\n", name, near);
    else
        fprintf(stderr, "tutti: no command '%s'; 'tutti help' lists them\n", name);
    return tt_status_exit_code(TT_USAGE);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "tutti"); /* replicas are started through /proc/self/exe and would be called "exe" */
    tt_descriptors_raise();
    if (argc < 2) {
        help_overview(stderr);
        return tt_status_exit_code(TT_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview(stdout);
        return 0;
    }
    const bool version = strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0;
    const char *name = version ? "version" : argv[1];
    const tt_command_t *command = strchr(name, ' ') ? NULL : tt_command_find(name);
    if (!command)
        return s_unknown(name);
    return command->run(argc - 1, argv + 1);
}
