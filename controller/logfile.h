/*  logfile - the log of a replica, which does not grow without end: one that became larger than its limit keeps its beginning, a line that
 *  says how much is missing there, and its newest part. Who follows a log reads on where he was, whatever it has lost since.
 *
 *  The file stays the same, and whoever writes it goes on: all of them append. Nobody who writes is held up, so what is written in the
 *  moment in which the file becomes shorter may be missing, too. Readers are: they and a trim take turns (flock).
 *
 *  Threads: any, each file one at a time. */
#pragma once
#include <stdint.h>
#include <sys/types.h>
#include "common/base/status.h"

/*  TT_CONFIG: TT_LOG_MB is no number of MiB. */
tt_status_t tt_logfile_check(void);
/*  Bytes, by TT_LOG_MB; what it should not be counts as not set. Main thread (getenv). */
uint64_t tt_logfile_limit(void);

/*  If it is larger than the limit. What cannot be done is left; and while somebody reads, so is the file, till it is twice as large. */
void tt_logfile_trim(const char *path, uint64_t limit);

/*  Where something is missing: the line that says so is at .. after - 1, instead of so many bytes. */
typedef struct {
    off_t at, after; /* 0, 0: nothing is */
    uint64_t dropped;
} tt_logfile_gap_t;
tt_logfile_gap_t tt_logfile_gap(int fd);

/*  Who follows a log; zeros: from its beginning on. */
typedef struct {
    off_t shown; /* of all that was ever written there */
    off_t size;  /* when it was last looked at         */
    tt_logfile_gap_t gap;
} tt_logfile_reader_t;
/*  What comes next, of whole lines, or of what there is if they are longer than `most` or nothing more will come; how many bytes of text.
 *  0: nothing as yet. What was missed is passed over: the line that says so is part of the text. */
size_t tt_logfile_next(tt_logfile_reader_t *self, int fd, char *text, size_t most, bool to_the_end);
