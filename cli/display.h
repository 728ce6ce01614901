/*  display - what `tutti run` shows while it runs: a block that is redrawn on a terminal, plain lines otherwise.
 *
 *  Threads: one. Writes to one stream; nothing else may write to it between begin and end. */
#pragma once
#include <stdio.h>
#include "common/config/train.h"
#include "controller/supervisor.h"

typedef struct tt_display tt_display_t;

/*  Borrows cfg and run. start_ns: monotonic start of the process. quiet: only notes. training (may be NULL) is
 *  called when the first statistics have come. */
tt_display_t *tt_display_new(FILE *stream, const tt_train_cfg_t *cfg, const tt_rundir_t *run, int64_t start_ns,
    bool quiet, void (*training)(void));
/*  Where the run has ended, as EVENT finished has it (NULL: nobody said so): the last statistics may not have come, if a
 *  coordinator was replaced shortly before. */
void tt_display_finished(tt_display_t *self, const char *finished);
/*  Draw a last time and leave the cursor below. */
void tt_display_destroy(tt_display_t **self_p);
/*  The callbacks for tt_supervise. Borrowed from the display. */
tt_watcher_t tt_display_watcher(tt_display_t *self);
