/*  supervisor - a local run from its first process to its last: the controller on the process substrate, the link to the
 *  job's coordinator, and the signals of the person who started it.
 *
 *  The coordinator decides what is desired (SCALE) and when the run has ended (it exits with 0 after EVENT finished);
 *  the supervisor tells it what started and ended (REPLICA). SIGINT, SIGTERM and SIGHUP ask for a clean end with a
 *  snapshot; another one (guard.h says what is one), or finish_ms without an end, kills. So does a run directory that is
 *  gone, or was moved: nobody could find the run. TT_IO's exit code then, and nothing more is written by its path.
 *
 *  Threads: call from the main thread, with no other thread running; blocks until the run has ended and every process
 *  of it is gone. */
#pragma once
#include "common/base/clock.h"
#include "common/job/job.h"
#include "common/wire/msg.h"
#include "controller/rundir.h"

/*  What a display may want to know; every function may be NULL. Called from tt_supervise. */
typedef struct {
    void (*stats)(void *ctx, const tt_msg_STATS_t *stats);
    void (*event)(void *ctx, const tt_msg_EVENT_t *event);
    void (*roster)(void *ctx, const tt_msg_ROSTER_t *roster);
    void (*scale)(void *ctx, const tt_msg_SCALE_t *scale);
    void (*note)(void *ctx, const char *text); /* "collector/1: killed by SIGKILL; starting it again" */
    void (*tick)(void *ctx);                   /* about every 100 ms                                  */
    void *ctx;
} tt_watcher_t;

typedef struct {
    const tt_rundir_t *run;
    int lock;      /* of the run, as tt_rundir_lock gave it                                     */
    tt_job_t *job; /* borrowed                                                                  */
    bool resume;   /* start the coordinator alone; the others when it says how many             */
    int finish_ms; /* from the first signal to killing; 0 = 60 s                                */
    tt_watcher_t watcher;
    const tt_clock_t *clock; /* NULL = real                                                     */
} tt_supervise_opts_t;

typedef struct {
    tt_job_phase_t phase; /* SUCCEEDED, FAILED, STOPPED                          */
    int exit_code;        /* of `tutti run`: 0, 130, 143, or what went wrong     */
    int signal;           /* that ended it, 0 = none                             */
    char reason[1024];    /* for a person, where it failed                       */
    char *finished;       /* EVENT finished's JSON, owned; NULL when it never came */
} tt_outcome_t;

/*  TT_OS, TT_IO: could not even begin. Otherwise TT_OK and the outcome. The caller frees out->finished. */
tt_status_t tt_supervise(tt_outcome_t *out, const tt_supervise_opts_t *opts);
