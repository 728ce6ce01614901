/*  keep - the way of a replay to the disk, beside the training: a thread that appends pieces of it to files (common/snapshot/pieces.h)
 *  and puts a snapshot in place when all that it refers to is there, synced.
 *
 *  Who gives pieces gives them in order; what is on disk is known when it was taken back. When a write fails, or would leave less than
 *  KEEP_SPARE of the disk to everybody else, what no snapshot refers to is removed, and is given again: keep_next goes back.
 *  Files that the newest two snapshots do not refer to are removed after each: those of this thread, those that were in
 *  the folder at keep_new and keep_forget, and those of keep_inherit; so are snapshots beyond the newest, if they were
 *  there at keep_new or keep_forget. So a writer that has been replaced, and does not know it yet, never removes what its successor writes.
 *
 *  Threads: one writes, and sees nothing but what was given; all calls are the learner's thread's. */
#pragma once
#include "common/snapshot/checkpoints.h"

/*  Bytes: of what waits to be written; of the disk, for others. */
enum { KEEP_ROOM = 32 << 20, KEEP_SPARE = 16 << 20 };

typedef struct keep keep_t; /* opaque */

typedef struct {
    const char *folder;  /* of the snapshots                    */
    uint64_t instance;   /* of this process, for names of files */
    uint64_t file_bytes; /* a file that has so many is followed by another */
} keep_cfg_t;

/*  TT_OS: there is no thread for it. Caller owns *self_p. */
tt_status_t keep_new(keep_t **self_p, const keep_cfg_t *cfg);
/*  What is not written yet is given up. A thread that hangs in a write is left behind after ten seconds. */
void keep_destroy(keep_t **self_p);
/*  An eventfd, readable when something was done; for the caller to read away. */
int keep_fd(const keep_t *self);

/*  Nothing is on disk, what is under way does not count. */
void keep_forget(keep_t *self);
/*  The process `instance` does not lead any more: what it has written is swept, too. */
void keep_inherit(keep_t *self, uint64_t instance);
/*  These are on disk already. */
void keep_adopt(keep_t *self, const tt_piece_t *piece, size_t pieces);

/*  The first batch to be given next, where `oldest` is the oldest that is left. */
uint64_t keep_next(const keep_t *self, uint64_t oldest);
/*  May a piece be given? */
bool keep_has_room(const keep_t *self);
/*  What was given and is not done, or not taken yet. */
uint32_t keep_under_way(const keep_t *self);
/*  So many times something of it, however small a part, came to the disk; keep_fd is readable then, too. */
uint64_t keep_moved(const keep_t *self);
/*  Batches first .. next - 1; the bytes are taken. Snapshots beyond `update` are void. */
void keep_piece(keep_t *self, tt_buf_t *bytes, uint32_t era, uint64_t update, uint64_t first, uint64_t next);
/*  Those on disk that have batches from `oldest` on; borrowed until the next call. */
const tt_piece_t *keep_pieces(keep_t *self, uint64_t oldest, size_t *count);

typedef struct {
    char name[TT_CHECKPOINT_NAME];
    bool best;     /* gets that name too, unless what has it is as good */
    uint32_t keep; /* tt_checkpoints_keep */
    uint64_t update, env_steps;
    double return_mean;
} keep_snapshot_t;

/*  Put a snapshot in place, whose pieces are all on disk; the bytes are taken. */
void keep_snapshot(keep_t *self, tt_buf_t *bytes, const keep_snapshot_t *what);

/*  What has been done since. TT_OK: *out is in place, and the replay's files have *disk bytes. TT_AGAIN: no snapshot came to its
 *  end. Others: something failed, in these words; what was under way does not count. */
tt_status_t keep_take(keep_t *self, keep_snapshot_t *out, uint64_t *disk);
