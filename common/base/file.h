/*  file - files opened and written with care: what is not a file is refused, and what is written is there as a whole.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <sys/types.h>
#include "common/base/status.h"

/*  Open an ordinary file for reading (close-on-exec). What would block or never end is refused at once: a FIFO, a device, a
 *  socket. TT_NOT_FOUND, TT_DENIED, TT_IO (a directory, too), TT_DATA: not an ordinary file. */
tt_status_t tt_file_open(int *fd, const char *path);
/*  The same question for who hands the path to another library. */
tt_status_t tt_file_check(const char *path);
