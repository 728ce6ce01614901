/*  checkpoints - the folder RUN_DIR/checkpoints: <update>.safetensors, best.safetensors, final.safetensors, and the files of a replay
 *  that these refer to (pieces.h).
 *
 *  Written by the learner of rank 0 where it sees the run directory, else by the coordinator for it.
 *  Threads: pure but for the file system. Two processes may write at a time, while one takes over from the other. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/snapshot/snapshot.h"

enum { TT_CHECKPOINT_NAME = 64, TT_CHECKPOINTS_LEAST = 2 };
#define TT_CHECKPOINTS      "checkpoints" /* the folder, in a run directory */
#define TT_CHECKPOINT_FINAL "final.safetensors"
#define TT_CHECKPOINT_BEST  "best.safetensors"

/*  The path of the folder, which is made when it is not there. TT_IO: no place to write. */
tt_status_t tt_checkpoints_open(const char *run_dir, char *out, size_t size);
/*  "00000123.safetensors", and back: false when the name says no update. */
void tt_checkpoint_name(char out[TT_CHECKPOINT_NAME], uint64_t update);
bool tt_checkpoint_update(const char *name, uint64_t *out);
/*  Is it such a name, or TT_CHECKPOINT_FINAL? With TT_CHECKPOINT_BEST: what a learner may store. Anything else from outside is refused. */
bool tt_checkpoint_is_name(const char *name);

/*  Is a mean return of so much more than that of the folder's best? True where there is none, or a damaged one. TT_DENIED, TT_IO: it cannot be
 *  read, which may pass, and it may be better. */
tt_status_t tt_checkpoint_exceeds_best(const char *folder, double return_mean, bool *exceeds);

/*  A second name for a file of the folder, put in place at once. */
tt_status_t tt_checkpoint_alias(const char *folder, const char *name, const char *alias);
/*  TT_CHECKPOINT_BEST for one with this mean return if it exceeds that. A best that cannot be read stays, and the log says so. */
tt_status_t tt_checkpoint_alias_best(const char *folder, const char *name, double return_mean);

/*  Updates of those in the folder that are named by theirs, newest first, instead of what `out` holds; none where there is no folder.
 *  TT_DENIED, TT_IO: it cannot be read, and `out` is empty. */
typedef struct {
    uint64_t *at; /* owned */
    size_t count;
} tt_checkpoint_updates_t;

tt_status_t tt_checkpoints_list(const char *folder, tt_checkpoint_updates_t *out);
void tt_checkpoint_updates_free(tt_checkpoint_updates_t *self);

/*  Of those that are named by their update, remove all but the newest `keep` up to `update` (at least TT_CHECKPOINTS_LEAST:
 *  should the newest be damaged, there is one before it).
 *  found: what was there when the writer began, or went back, before it wrote any. Those of them that are beyond `update`, which was written
 *  just now, are of a time that the run has gone back from: they go first. One that came later is of a writer that has taken over, which
 *  this one does not know yet: it stays. NULL: nobody can have taken over. */
void tt_checkpoints_keep(const char *folder, uint32_t keep, uint64_t update, const tt_checkpoint_updates_t *found);

/*  The name of the newest that is named by its update, of those before `below`: for who has found that one damaged. The folder is
 *  another's to write, and is not swept. TT_NOT_FOUND; TT_DENIED, TT_IO: the folder cannot be read. */
tt_status_t tt_checkpoints_below(const char *folder, uint64_t below, char out[TT_CHECKPOINT_NAME]);

/*  The newest snapshot of the folder that is whole, by the update it holds; all of the file is read for it. */
typedef struct {
    char name[TT_CHECKPOINT_NAME];
    tt_snapshot_info_t info; /* tt_snapshot_info_free is due */
} tt_checkpoint_t;

/*  bad (may be NULL) hears of each that would be newer, and why it is not taken. TT_NOT_FOUND: there is none in the folder,
 *  or no folder. TT_DENIED, TT_IO: the folder cannot be read, so nobody knows. TT_DATA: none of them is whole, or can be read; the text is
 *  about the newest. What they refer to is not looked at: it may be a hundred
 *  times as much. */
typedef void (*tt_checkpoint_bad_fn)(void *ctx, const char *name, const char *why);
tt_status_t tt_checkpoints_newest(const char *folder, tt_checkpoint_t *out, tt_checkpoint_bad_fn bad, void *ctx);
/*  The same; known says why one that is whole cannot be gone on from all the same, NULL: it can. */
typedef const char *(*tt_checkpoint_known_fn)(void *ctx, const char *name);
tt_status_t tt_checkpoints_newest_but(
    const char *folder, tt_checkpoint_t *out, tt_checkpoint_known_fn known, tt_checkpoint_bad_fn bad, void *ctx);

/*  Names of a replay's files. */
typedef struct {
    char (*name)[TT_PIECE_FILE]; /* owned */
    size_t count;
} tt_piece_files_t;

void tt_piece_files_add(tt_piece_files_t *self, const char *name);
bool tt_piece_files_has(const tt_piece_files_t *self, const char *name);
void tt_piece_files_free(tt_piece_files_t *self);
/*  Those that are in the folder; none where there is none. TT_DENIED, TT_IO: it cannot be read, and `out` may have a part. */
tt_status_t tt_piece_files_list(const char *folder, tt_piece_files_t *out);
/*  Of `files` remove what the newest TT_CHECKPOINTS_LEAST snapshots up to `update` do not refer to, and forget it; `open` (NULL: none) is
 *  being written. Where the folder, or one of these, cannot be read, which may pass, nothing is removed, and the log says so. Bytes of what
 *  stays. */
uint64_t tt_checkpoints_sweep(const char *folder, uint64_t update, tt_piece_files_t *files, const char *open);
