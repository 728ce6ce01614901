/*  handout - a file of weights on its way out of a run: checked as a whole, then put where it is wanted, as a whole or not at all.
 *
 *  Read in pieces: memory does not grow with it.
 *  Threads: pure but for the file system; says on stderr what was handed out. */
#pragma once
#include "common/snapshot/checkpoints.h"

typedef struct {
    int fd;                        /* owned; of a file that nobody writes to any more; -1 = none yet */
    char name[TT_CHECKPOINT_NAME]; /* what the run calls it                                          */
    char of[300];                  /* the run, for a person                                          */
    tt_snapshot_info_t info;       /* after handout_check                                            */
} handout_t;

/*  May output (a path, "-" = stdout) be written to? TT_USAGE: it is a terminal. */
tt_status_t handout_may(const char *output);
/*  Is every byte as it was written? TT_DATA: damaged, foreign; handout_free is due in any case. */
tt_status_t handout_check(handout_t *self);
/*  What was checked, to output. TT_IO. */
tt_status_t handout_give(const handout_t *self, const char *output);
void handout_free(handout_t *self);
