/*  local - the members of tasks as processes of this machine: an agent each on a loopback port, and a port for its program.
 *
 *  RUN/<task>-<id>/<member>/ holds agent.json and outputs.log, RUN/logs/<task>-<id>-<member>.log what the agent said. RUN/token is
 *  what the agents want to see.
 *
 *  A program's port is free on every address and held until the program is about to be started, since a TensorFlow server binds them all.
 *
 *  Threads: one. */
#pragma once
#include "common/base/clock.h"
#include "elasticdl/place.h"

typedef struct {
    const char *run_dir; /* is there                                              */
    const char *dir;     /* working directory of every program                    */
    const char *program; /* NULL = exec.py (elasticdl/workload.h)                 */
    const char *python;  /* NULL = as there                                       */
    int grace_s;         /* from SIGTERM to a program until it is killed          */
    const tt_clock_t *clock;
} local_place_opts_t; /* strings are copied */

/*  Makes the caller a child subreaper. When it is destroyed everything that runs is killed. TT_IO, TT_OS, TT_NOT_FOUND. */
tt_status_t local_place_new(edl_place_t **self_p, const local_place_opts_t *opts);
