/*  sockdir - RUN_DIR/sock, where a run's sockets are on this host: a private directory (0700), or a link to one in /tmp where
 *  the run's path is too long for a socket's.
 *
 *  Such a directory in /tmp says in a link of its own whose it is ("run", naming the run directory's device and inode), so that
 *  nobody removes another run's because a link said so.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

/*  Make it, or take the one that is there; a link that leads anywhere else is replaced. TT_IO, TT_DENIED: another's. */
tt_status_t tt_sockdir_open(const char *run_dir);
/*  Remove it with the sockets in it. What a link names is removed only if it is this run's; nothing but sockets is. */
void tt_sockdir_close(const char *run_dir);
/*  Where it is, without links. TT_NOT_FOUND; TT_INVALID: too long for the name of a socket. */
tt_status_t tt_sockdir_find(const char *run_dir, char *out, size_t size);
