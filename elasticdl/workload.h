/*  workload - the program of a member: configured, started once at a time with its output in a file, watched and ended.
 *
 *  `exec.py > outputs.log` in the working directory, with NUM_WORKERS and TF_CONFIG in its environment. Nothing that it forked
 *  outlives it (controller/process.h).
 *
 *  Threads: one. */
#pragma once
#include <jansson.h>
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct workload workload_t; /* opaque */

typedef struct {
    const char *dir; /* its working directory                                                                       */
    const char
        *program; /* a path in there, or a program of the PATH; one that ends with .py is run by python           */
    const char
        *python; /* NULL = python, or python3 where there is none                                                */
    const char
        *output; /* the file that its output goes to, from its beginning at each start; NULL = dir/outputs.log   */
    const tt_clock_t *clock;
} workload_opts_t; /* strings are copied */

enum {
    WORKLOAD_TF_CONFIG = 48 << 10, /* the largest TF_CONFIG, bytes      */
    WORKLOAD_TAIL = 16 << 10,      /* the most that is shown of its log */
};

/*  Makes the caller a child subreaper. */
tt_status_t workload_new(workload_t **self_p, const workload_opts_t *opts);
/*  What runs is killed. */
void workload_destroy(workload_t **self_p);

/*  From the JSON of POST /config: NUM_WORKERS (a number, or its text) and TF_CONFIG (an object, or its text). TT_INVALID: says which is
 *  missing or wrong; TT_EXISTS: it runs. */
tt_status_t workload_configure(workload_t *self, const char *body, size_t size);
/*  TT_STOPPED: not configured yet, or asked to end; TT_EXISTS: it runs; TT_NOT_FOUND, TT_DENIED, TT_IO, TT_OS: it cannot be started. */
tt_status_t workload_run(workload_t *self);
/*  Ask it to end, SIGTERM and SIGKILL after the grace; nothing is started any more. */
void workload_stop(workload_t *self, int grace_ms);
/*  Look at what has ended; call it when a child ended, and when workload_due_ms says. Is it over since the last call? */
bool workload_poll(workload_t *self);
/*  ms until poll is wanted; -1 = not. */
int64_t workload_due_ms(const workload_t *self);
bool workload_runs(const workload_t *self);

/*  {"state": "idle|configured|running|ended", "exit_code": 0, "reason": "", "log": ""}: the exit code and reason of the newest end, null
 *  before it; the last `tail` bytes of its output. A new reference. */
json_t *workload_status(const workload_t *self, size_t tail);
