/*  signals - SIGTERM and SIGINT as a file descriptor, so that a role ends from its loop and not from a handler.
 *
 *  Threads: call either open before any other thread starts: threads inherit that these signals are blocked. */
#pragma once
#include "common/base/status.h"

/*  Block SIGTERM and SIGINT for this process, ignore SIGPIPE; *fd_out is readable when one came. Close it with close(). */
tt_status_t tt_signals_open(int *fd_out);
/*  The same for one that a person started and that has children: SIGHUP and SIGCHLD, too. */
tt_status_t tt_signals_open_parent(int *fd_out);
/*  The signal that came, 0 when none did; *sender is the process that sent it. Neither blocks. */
int tt_signals_next(int fd);
int tt_signals_next_from(int fd, int *sender);
