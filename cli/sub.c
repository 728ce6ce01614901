#include "cli/sub.h"
#include <stdio.h>
#include "cli/cmd.h"
#include "cli/help.h"
#include "common/base/text.h"

int sub_dispatch(const char *parent, const char *noun, int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        int code;
        TT_AUTO(tt_args) args = tt_args_new(&code, parent, argc, argv);
        if (!args)
            return code;
        help_command(stderr, tt_command_find(parent));
        return tt_status_exit_code(TT_USAGE);
    }
    char name[64], prefix[32];
    snprintf(name, sizeof name, "%s %s", parent, argv[1]);
    snprintf(prefix, sizeof prefix, "%s ", parent);
    const tt_command_t *command = tt_command_find(name);
    if (command)
        return command->run(argc - 1, argv + 1);
    const char *near = tt_command_nearest(prefix, argv[1]);
    if (near)
        fprintf(stderr, "tutti %s: no %s '%s'; did you mean '%s'?\n", parent, noun, tt_shown(argv[1]), near);
    else
        fprintf(
            stderr, "tutti %s: no %s '%s'; 'tutti %s --help' lists them\n", parent, noun, tt_shown(argv[1]), parent);
    return tt_status_exit_code(TT_USAGE);
}
