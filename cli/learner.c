/*  learner - the role, as a process: cli/role.c reads the command line, learner/learner.c does the work. */
#include "learner/learner.h"
#include "cli/role.h"

const tt_option_t tt_opt_learner[] = {TT_ROLE_OPTIONS, {0}};

int tt_cmd_learner(int argc, char **argv)
{
    return tt_cli_role("learner", TT_PEER_LEARNER, argc, argv, learner_run);
}
