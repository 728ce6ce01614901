/*  launch - what `tutti run` and `tutti resume` share once the run directory stands: guard, supervision, display, summary.
 *
 *  Threads: main thread, before any other exists. */
#pragma once
#include "common/config/train.h"
#include "controller/rundir.h"
#include <jansson.h>

typedef struct {
    const tt_rundir_t *run;
    const tt_train_cfg_t *cfg;
    int64_t start_ns;   /* monotonic start of the process                                   */
    const char *config; /* the job's resolved config, as YAML; NULL with work                     */
    bool resume;
    const json_t
        *changed; /* what a resume changes in the run's config: it is written there, and to the history; else NULL */
    const char *upgraded; /* which of an older version's keys are read as what: as changed; NULL = none */
    bool detach;          /* leave the run going and return when it trains                    */
    bool json;            /* JSON alone on stdout                                             */
    bool quiet;
    /*  What runs instead of a training job of ours (cfg is NULL then): returns the exit code, and calls started once there is
     *  no need to wait for it any more. NULL = supervise cfg's job. */
    int (*work)(void *ctx, void (*started)(void));
    void *ctx;
} tt_launch_t;

/*  Blocks until the run has ended (or, detached, trains). Returns the process's exit code; messages are printed.
 *  Holds the run's lock; removes its sockets at the end. */
int tt_launch(const tt_launch_t *launch);
