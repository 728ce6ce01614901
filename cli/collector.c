/*  collector - the role, as a process: cli/role.c reads the command line, collector/collector.c does the work. */
#include "collector/collector.h"
#include "cli/role.h"

const tt_option_t tt_opt_collector[] = {TT_ROLE_OPTIONS, {0}};

int tt_cmd_collector(int argc, char **argv)
{
    return tt_cli_role("collector", TT_PEER_COLLECTOR, argc, argv, collector_run);
}
