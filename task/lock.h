/*  lock - one engine a registry, by two files in its folder that are held by flock. run.lock keeps engines from each other: nobody else
 *  has it, and an engine as long as its process lives. engine.lock keeps them from commands: an engine has it, with its process's number
 *  in it, from before its first deed to its end, and for a while a command that looks for one or puts right what a dead one left.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include "common/base/status.h"

/*  Hold run.lock: *fd stays open till then. TT_EXISTS: another engine lives. One that is about to be gone is waited for a little. */
tt_status_t lock_run(const char *folder, int *fd);
/*  Hold engine.lock, for a command. TT_EXISTS: an engine does, or another command. */
tt_status_t lock_try(const char *folder, int *fd);
/*  The same for the engine that has run.lock, and it signs. wait: for however long a command takes, which may be held up. */
tt_status_t lock_take(const char *folder, bool wait, int *fd);
/*  The process that holds engine.lock; 0: nobody, -1: it has not signed. */
int lock_holder(const char *folder);
