/*  file - files opened and written with care: what is not a file is refused, and what is written is there as a whole.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <sys/types.h>
#include "common/base/progress.h"
#include "common/base/status.h"

/*  Open an ordinary file for reading (close-on-exec). What would block or never end is refused at once: a FIFO, a device, a
 *  socket. TT_NOT_FOUND, TT_DENIED, TT_IO (a directory, too), TT_DATA: not an ordinary file. */
tt_status_t tt_file_open(int *fd, const char *path);
/*  The same question for who hands the path to another library. */
tt_status_t tt_file_check(const char *path);

/*  Write all of it, however many pieces that takes. On false errno says why, and *done how much is written (NULL: unwanted). */
bool tt_file_write(int fd, const void *data, size_t size, size_t *done);
/*  The same, piece by piece: each is brought to the disk (sync) before the next, so that the kernel's memory does not hide how slow that is,
 *  and progress hears of it. The last one the caller syncs. */
enum { TT_FILE_PIECE = 16 << 20 };
bool tt_file_write_pieces(int fd, const void *data, size_t size, bool sync, tt_progress_t progress);
/*  Open a file of lines to append to, made when missing; one whose last line lacks its end gets that first, so that what comes
 *  is on a line of its own. A link is not followed. TT_DENIED, TT_IO. */
tt_status_t tt_file_append(int *fd, const char *path, mode_t mode);
/*  Write DIR/NAME: as a whole or not at all (beside.h); what is there as a link is replaced, and not followed. Whoever of several is last
 *  wins. TT_DENIED, TT_IO, with errno. */
tt_status_t tt_file_replace(const char *dir, const char *name, const char *text, mode_t mode);

/*  Write a file of a person's, synced: as a whole or not at all (beside.h). replace: what is there goes, else it is TT_EXISTS. TT_DENIED,
 *  TT_IO, with nothing left behind. */
tt_status_t tt_file_save(const char *path, const void *data, size_t size, bool replace);
/*  The second before there is anything to write: is there something of that name? TT_EXISTS. */
tt_status_t tt_file_is_free(const char *path);

/*  Does the umask leave its owner all rights to what is made? Else nobody could enter a directory that is made now. Asked before the
 *  first of several is made. TT_DENIED. */
tt_status_t tt_file_check_umask(void);

/*  mkdir -p: what is missing above it is made with 0777 less the umask, itself with mode. TT_OK too when it is there.
 *  TT_DENIED: not permitted, or not with this umask; TT_IO. */
tt_status_t tt_file_make_path(const char *path, mode_t mode);
