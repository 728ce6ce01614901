/*  role - what `tutti collector`, `tutti learner` and `tutti aggregator` have in common: options, log, signals, location.
 *
 *  Threads: main thread only. */
#pragma once
#include "cli/cmd.h"
#include "common/net/location.h"

/*  The options of a role's table. */
#define TT_ROLE_OPTIONS                                                                               \
    {"run", 0, "DIR", "run directory of a job on this host"},                                         \
        {"coordinator", 0, "ENDPOINT", "tcp://HOST:PORT of a job on another host; needs --key"},      \
        {"key", 0, "FILE", "the job's key"},                                                          \
        {"bind", 0, "ADDRESS",                                                                        \
            "own address for roles on other hosts (default: the one that leads to the coordinator)"}, \
    {                                                                                                 \
        "index", 0, "N", "number within the role (default: the coordinator chooses)"                  \
    }

/*  Be that role from start to end; returns the process's exit code. `command` is its name: "collector". */
int tt_cli_role(const char *command, tt_peer_role_t role, int argc, char **argv,
    tt_status_t (*run)(const tt_location_t *location, int signals_fd));
