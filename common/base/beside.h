/*  beside - a file or a folder while it is written: it gets its name when it is whole, and whoever is killed meanwhile, even with -9,
 *  leaves nothing half-written for ever.
 *
 *  A file has no name at all until then, where the file system can do that (O_TMPFILE). Otherwise, and a folder always, it lies beside
 *  its place as PATH.tutti-<pid>-<n>.tmp, locked as long as its writer lives. What has such a name, is the same user's and is
 *  locked by nobody was left by a killed one: the next that begins with the same PATH removes it. Where the file system knows
 *  no locks nothing is removed.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <limits.h>
#include <sys/types.h>
#include "common/base/status.h"

typedef struct {
    int fd;              /* of what is written; a folder's is for openat. -1: there is nothing (any more)        */
    bool folder, named;  /* named: it lies at `beside`                                                           */
    char path[PATH_MAX]; /* what it will be called                                                               */
    char beside[PATH_MAX];
} tt_beside_t;

/*  TT_DENIED, TT_INVALID: too long a path, TT_IO; so is a folder, a device, a pipe or a link to one, and what leads to an open file of
 *  somebody's by way of /proc (/dev/stdout): none of those is replaced. */
tt_status_t tt_beside_file(tt_beside_t *self, const char *path, mode_t mode);
/*  With a name from the start: for who hands it to a library that opens files itself, and for file systems without O_TMPFILE. */
tt_status_t tt_beside_named(tt_beside_t *self, const char *path, mode_t mode);
tt_status_t tt_beside_folder(tt_beside_t *self, const char *path);

/*  What killed writers left in a folder of files whose names end in `ending`, whichever they were to be. For who does not begin with the
 *  same PATH again. */
void tt_beside_sweep(const char *folder, const char *ending);

/*  It is whole and gets its name. replace: a file that is there goes, else it is TT_EXISTS. TT_DENIED, TT_IO; tt_beside_drop is due in any case. */
tt_status_t tt_beside_finish(tt_beside_t *self, bool replace);
/*  Remove what was not finished. */
void tt_beside_drop(tt_beside_t *self);

/*  `path` becomes a second name of the file `from`, in the same file system, at once: a file that is there goes. Others may replace either
 *  meanwhile, and do the same. TT_DENIED, TT_IO, TT_INVALID. */
tt_status_t tt_beside_link(const char *from, const char *path);
