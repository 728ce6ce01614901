/*  logfile - the log of a replica, which does not grow without end: one that became larger than its limit keeps its beginning, a line that
 *  says how much is missing there, and its newest part.
 *
 *  The file stays the same, and whoever writes it goes on: all of them append. Between reading the newest part and putting it in its
 *  place nobody is held up, so what is written in that moment may be missing, too.
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

/*  If it is larger than the limit. What cannot be done is left. */
void tt_logfile_trim(const char *path, uint64_t limit);

/*  Where something is missing: the line that says so is at .. after - 1, instead of so many bytes. */
typedef struct {
    off_t at, after; /* 0, 0: nothing is */
    uint64_t dropped;
} tt_logfile_gap_t;
tt_logfile_gap_t tt_logfile_gap(int fd);
