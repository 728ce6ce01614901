/*  lock - one engine a registry: engine.lock in its folder, held by flock as long as its process lives, with its number in it.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include "common/base/status.h"

/*  Hold it: *fd stays open till then. TT_EXISTS: another process does. */
tt_status_t lock_try(const char *folder, int *fd);
/*  The same for an engine, which signs. It waits a little: a command that only puts right what a dead engine left is soon done. */
tt_status_t lock_take(const char *folder, int *fd);
/*  The process that holds it; 0: nobody, -1: it has not signed. */
int lock_holder(const char *folder);
