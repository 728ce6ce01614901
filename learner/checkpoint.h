/*  checkpoint - snapshots as files: RUN_DIR/checkpoints/<update>.safetensors, best.safetensors, final.safetensors. A learner
 *  on ipc writes them; one that came over tcp has no run directory, and the coordinator writes them for it.
 *
 *  checkpoint.c alone reads and writes checkpoint_t.
 *  Threads: the learner's. */
#pragma once
#include "common/net/link.h"
#include "common/snapshot/checkpoints.h"

typedef struct core core_t;

typedef struct {
    int64_t newest_ns; /* when it was written, or tried; or when weights were got */
    tt_checkpoint_updates_t found;
    char bare[512]; /* why the final one has the weights alone; "" = it has all */
} checkpoint_t;

/*  There are weights: the time to the next begins, and what else the folder has is void if it is of later updates. */
void checkpoint_begin(core_t *core);
void checkpoint_end(checkpoint_t *self);
/*  The next is due at the next version. */
void checkpoint_hurry(core_t *core);
tt_status_t checkpoint_when_due(core_t *core);
/*  The final one; path[4096] gets its name. Another era may have begun when it returns. Where there is no room for it, it is written with
 *  the weights alone, and checkpoint->bare says why. */
tt_status_t checkpoint_final(core_t *core, char *path, size_t size);
/*  Is it the best of training, as far as we know? Then it says so itself. What was best before we led only its file
 *  knows, which is asked before it is replaced. */
bool checkpoint_is_best(const core_t *core, tt_snapshot_t *snapshot);
/*  A version alone, as the run's best, unless that has a greater return. What was best before we led only its file knows, which is asked
 *  (or the coordinator, who does it). One that cannot be kept is said, and the next that is better than what was kept has its turn. Another
 *  era may have begun when it returns. */
void checkpoint_best(core_t *core, const tt_snapshot_version_t *version, double return_mean);
