/*  attempt - one process of a job: what it is started with, and that nothing of it is left.
 *
 *  Its command is a line for /bin/sh, in the job's own directory, with the log of the job behind stdout and stderr. The shell around it
 *  leaves the exit code in a file, which outlives us. Threads: as the substrate. */
#pragma once
#include "controller/substrate.h"
#include "task/tasks.h"

/*  Where attempts run. */
typedef struct {
    tt_substrate_t *substrate; /* of processes, or of a cluster */
    const char *registry;      /* its folder                    */
    bool cluster;
} attempt_place_t;

/*  Start the attempt that job `at` has reached (task->rows[at].attempt) in a new directory. slot: "cpu:0", "gpu:1". again: a cluster may have
 *  it already; then it is found, and else begun. */
tt_status_t attempt_start(
    const attempt_place_t *place, const task_t *task, size_t at, const char *slot, bool again, tt_replica_id_t *out);
/*  Its shell has ended: so does all that it started, before anybody hears of it. TT_TIMEOUT, as survivors_end. */
tt_status_t attempt_end(const char *registry, int64_t job, uint32_t attempt, int patience_ms);
