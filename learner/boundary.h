/*  boundary - the state of the moment before an update's first step, kept while one lasts that may be given up: so the end of a run need not
 *  wait for it. A run that ends so is one that ended before that update began.
 *
 *  A copy costs as much as a snapshot does, so there is none of updates that follow a short one; none of an algorithm with a replay,
 *  whose updates are short; none where the beginning of this update was elsewhere (who joined within it).
 *
 *  boundary.c alone writes it; everyone else reads.
 *  Threads: the learner's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/snapshot/snapshot.h"

typedef struct core core_t;

typedef struct {
    int64_t begun_ns, lasted_ns; /* the update in hand; the one before, 0 = not known */
    bool there;                  /* `snapshot` is the state before the update in hand */
    bool left;                   /* and that has been given up                        */
    tt_snapshot_t snapshot;
} boundary_t;

/*  The update in hand begins; its first step has not been made. Fails as state_capture. */
tt_status_t boundary_begin(core_t *core);
/*  It is over. */
void boundary_end(core_t *core);
/*  A new era, or the end. */
void boundary_drop(boundary_t *self);
/*  May the update in hand be given up, and has it lasted so long that who asks for an end should not have to wait for it? */
bool boundary_may(const core_t *core);
bool boundary_is_long(const core_t *core);
void boundary_leave(core_t *core);
/*  Of the state before it; borrowed, until messages are handled. */
tt_snapshot_t boundary_snapshot(const core_t *core);
