/*  process - the process substrate: a replica is a child process on this machine, with a log file of its own.
 *
 *  No process is left behind: a replica has its own process group, dies with the process that holds the substrate
 *  (PR_SET_PDEATHSIG), and what it forked is killed when it ends: its group, and, since the holder is a child subreaper,
 *  whatever left the group and still carries the replica's mark (TT_REPLICA) in its environment.
 *
 *  A replica finds in its environment TT_RUN_DIR, TT_ROLE, TT_INDEX and TT_REPLICA; `$(NAME)` in its command and
 *  arguments is replaced from its environment, as Kubernetes does. A template without a command runs tutti itself.
 *
 *  A substrate without a run directory is for a process that is itself a replica: what it starts has an output, and in its environment
 *  TT_WORKLOAD beside what it inherits, so that whoever keeps the replica finds it by TT_REPLICA as before.
 *
 *  Threads: everything, start above all, from one thread (the death signal follows the thread that forked). */
#pragma once
#include "common/base/clock.h"
#include "controller/substrate.h"

/*  run_dir (copied; NULL: every spec has an output): logs go to run_dir/logs/<role>-<index>.log, appended. They are bounded (logfile.h), and
 *  so is run_dir/logs/run.log, the caller's own where it is detached. clock (borrowed): of graces. Makes the caller a
 *  child subreaper. */
tt_status_t tt_process_substrate_new(tt_substrate_t **self_p, const char *run_dir, const tt_clock_t *clock);

/*  Process id of a live replica, 0 if it has ended. */
int tt_process_pid(const tt_substrate_t *self, tt_replica_id_t id);
