/*  learner - the role, as a process: cli/role.c reads the command line, learner/learner.c does the work. */
#include "learner/learner.h"
#include "cli/evaluator.h"
#include "cli/role.h"

const tt_option_t tt_opt_learner[] = {TT_ROLE_OPTIONS, {0}};

static tt_status_t s_run(const tt_location_t *location, int signals_fd)
{
    return learner_run(location, signals_fd, evaluator_play);
}

int tt_cmd_learner(int argc, char **argv)
{
    return tt_cli_role("learner", TT_PEER_LEARNER, argc, argv, s_run);
}
