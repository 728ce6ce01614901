/*  keeping - snapshots whose replay is in files beside them, seen from the training: it goes on while they are written.
 *
 *  When a snapshot is due, every end of an update hands over a few pieces of the replay that are not on disk yet (keep.h). As soon as
 *  they are there, but for what is little enough to be in the snapshot itself, the snapshot is made of what is then, and handed over too. So
 *  the training waits for memory to be copied, and for a disk only that is slower than the experience comes, or at the end.
 *
 *  keeping.c alone reads and writes keeping_t.
 *  Threads: the learner's. */
#pragma once
#include "learner/keep.h"
#include "common/snapshot/snapshot.h"

typedef struct core core_t;

typedef enum { KEEPING_NOTHING, KEEPING_COPIES, KEEPING_WRITES } keeping_phase_t;

typedef struct {
    keep_t *keep; /* NULL: not needed yet */
    keeping_phase_t phase;
    int64_t since_ns; /* a snapshot is under way              */
    uint64_t given;   /* bytes of pieces for it               */
    uint64_t disk;    /* bytes of the replay's files          */
    bool broken;      /* the newest load failed for a file    */
    char why[512];
    uint32_t refused_era; /* whose snapshot cannot be gone on from */
} keeping_t;

/*  Is the replay kept like that? Else there is none, or it is not to be saved, or files are not ours to write. */
bool keeping_does(const core_t *core);
/*  There are weights: what is in the folder is looked at. */
void keeping_begin(core_t *core);
/*  Another one leads now than the process `leader`. */
void keeping_inherit(core_t *core, uint64_t leader);
/*  A version was made. due: begin with a snapshot, unless one is under way. */
tt_status_t keeping_turn(core_t *core, bool due);
/*  The final one, now. TT_STOPPED: an era began, or the process is to end. */
tt_status_t keeping_final(core_t *core);
/*  A new era. */
void keeping_reset(core_t *core);
void keeping_close(keeping_t *self);

/*  Bytes of the replay's files, as of the newest snapshot. */
uint64_t keeping_disk(const core_t *core);

/*  The replay of a snapshot, with its pieces in `folder`; "": the snapshot came from a run directory elsewhere; NULL: from another learner. What was
 *  not kept, or is not to be, begins empty. */
tt_status_t keeping_load(core_t *core, const tt_snapshot_t *from, const char *folder);
/*  The load failed: was it for its files? Then the coordinator is asked for another snapshot. */
bool keeping_refuse(core_t *core, const char *path);
/*  Is it so for the era that we are to begin? */
bool keeping_refused(const core_t *core);
