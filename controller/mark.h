/*  mark - what makes a directory a run: the file .tutti-run, whose first line is "tutti-run 1".
 *
 *  It is written into a new or empty directory only, so what a marked directory holds belongs to the run, but for what somebody put
 *  there since: `tutti rm` looks for that first (mark_strangers). Runs of 0.1 have no mark; they are known by what they hold: run.json as `tutti run` wrote it or a SQLite
 *  journal.db, beside config.yaml or job.json. Such a directory is a run for those who only look or resume; to be removed it
 *  must hold nothing at all but what 0.1 wrote.
 *
 *  Threads: pure but for the file system. Links in the directory are not followed. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

#define MARK_FILE ".tutti-run"

typedef enum {
    MARK_NONE,  /* no run                                                   */
    MARK_HOLDS, /* holds a run, and perhaps other things: not to be removed */
    MARK_RUN,   /* is a run's alone                                        */
} mark_t;

mark_t mark_look(const char *dir);
/*  The same of a directory that is open. */
mark_t mark_look_at(int dir);
/*  Mark an open directory, unless it holds anything yet (but a file system's lost+found). TT_IO. */
tt_status_t mark_write(int dir);
/*  What else than a run's lies in an open directory: how many entries, and `out` names the first three of them, in words. Names
 *  decide, as no version ever wrote others. TT_IO: it cannot be listed. */
tt_status_t mark_strangers(int dir, size_t *count, char *out, size_t size);
/*  See to it that the mark lasts through a power failure, its name, too. Without one, nothing is done. Takes as long as the disk
 *  does. TT_IO. */
tt_status_t mark_sync(int dir);
/*  Mark a run of 0.1, before a later version writes into it what that did not know. */
tt_status_t mark_renew(int dir);
