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
#include "common/http/token.h"
#include "elasticdl/cluster.h"

typedef struct local local_place_t; /* opaque */

typedef struct {
    const char *run_dir; /* is there                                              */
    const char *dir;     /* working directory of every program                    */
    const char *program; /* NULL = exec.py (elasticdl/workload.h)                 */
    const char *python;  /* NULL = as there                                       */
    int grace_s;         /* from SIGTERM to a program until it is killed          */
    const tt_clock_t *clock;
} local_place_opts_t; /* strings are copied */

/*  Makes the caller a child subreaper. TT_IO, TT_OS, TT_NOT_FOUND. */
tt_status_t local_place_new(local_place_t **self_p, const local_place_opts_t *opts);
/*  Everything that runs is killed. */
void local_place_destroy(local_place_t **self_p);

/*  Start the agent of a member; task: "default-0". */
tt_status_t local_place_make(local_place_t *self, const char *task, const char *member, uint64_t *id);
/*  Where its agent serves, and where its program is to. TT_AGAIN: not yet. */
tt_status_t local_place_find(local_place_t *self, uint64_t id, char url[128], char address[ELASTICDL_ADDRESS]);
/*  Its program is about to be started: its port is let go. */
void local_place_release(local_place_t *self, uint64_t id);
void local_place_end(local_place_t *self, uint64_t id);
/*  The next one that is gone, and why. False: none. Ask when a child ended, and when local_place_due_ms says. */
bool local_place_gone(local_place_t *self, uint64_t *id, char reason[128]);
int64_t local_place_due_ms(const local_place_t *self);
/*  What agents want to see. */
const char *local_place_token(const local_place_t *self);
/*  What a member's program has written; the caller closes it. TT_NOT_FOUND: nothing yet. */
tt_status_t local_place_log(local_place_t *self, const char *task, const char *member, int *fd);
