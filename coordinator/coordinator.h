/*  coordinator - the process that keeps the roster of a run: who takes part, with which part, and when it is over.
 *
 *  It holds no tensors and sees no experience: HELLO, heartbeats, STATS and events come in, rosters go out. What it must
 *  not forget is in the journal, so it may be killed and started again at any time.
 *
 *  Threads: everything happens in the caller's thread; HTTP has a thread of its own that only passes requests on. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct {
    const char *run_dir; /* with config.yaml (resolved)                                              */
    int64_t start_ns;    /* CLOCK_MONOTONIC of the run's process start; 0 = the journal's, else ours */
    const char *key;     /* key file of coordinator.listen; NULL = RUN_DIR/key, made when missing     */
    const char *token;   /* file with the secret for HTTP; NULL = RUN_DIR/token, made when missing       */
    bool again; /* this run had a coordinator before: without a journal, its members are awaited for half a minute */
    bool alone; /* somebody else keeps the replicas (an operator): it waits for members without a deadline,
                            says in its log how it goes on, and SIGTERM ends this process and not the run        */
    const tt_clock_t *clock; /* NULL = real                                                          */
} coordinator_opts_t;

/*  Run until the end: a stop rule, a stop request, SIGTERM or a failure. *exit_code: of the process.
 *  Otherwise the coordinator could not begin (no config, run directory in use, damaged journal). */
tt_status_t coordinator_run(const coordinator_opts_t *opts, int *exit_code);
