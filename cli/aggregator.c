/*  aggregator - the role, as a process: cli/role.c reads the command line, aggregator/aggregator.c does the work. */
#include "aggregator/aggregator.h"
#include "cli/role.h"

const tt_option_t tt_opt_aggregator[] = {TT_ROLE_OPTIONS, {0}};

int tt_cmd_aggregator(int argc, char **argv)
{
    return tt_cli_role("aggregator", TT_PEER_AGGREGATOR, argc, argv, aggregator_run);
}
