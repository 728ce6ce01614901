/*  parts - what the files of this folder share; nobody else includes it. */
#pragma once
#include <stdbool.h>
#include "common/nn/safetensors.h"
#include "common/snapshot/checkpoints.h"

enum { PIECE_NUMBERS = 5 }; /* of each in NAME_PIECES: file, offset, bytes, first, next */

/*  What the state, or the steps, of an optimiser are called; group "": the only one. */
void snapshot_opt_name(char *out, size_t size, const char *group, bool state);
/*  Does its metadata's format fit, and does it have a checksum as that says? sealed: one was found and is right. TT_DATA. */
tt_status_t snapshot_identify(const tt_st_t *file, bool sealed);
/*  The update that a file's header names, which may be damaged, and whether it is bare. */
tt_status_t snapshot_peek(const char *path, uint64_t *update, bool *bare);
/*  Every entry of a folder; TT_OK too where there is no folder. TT_DENIED, TT_IO: it could not be read (to its end), in words with its
 *  path; take may have had a part. */
tt_status_t snapshot_each(const char *folder, void (*take)(void *ctx, const char *name), void *ctx);
/*  Is it certain that there is nothing to be read, now or later? Else it may pass: descriptors, a disk, permissions. */
bool snapshot_is_lost(tt_status_t status);
/*  The name of the i-th newest snapshot of a folder that can be gone on from, as far as their headers say, of those up to `update`; a
 *  second name of one does not count. TT_NOT_FOUND: there are not so many. Others: what is there could not be read. */
tt_status_t snapshot_nth(const char *folder, uint64_t update, size_t i, char out[TT_CHECKPOINT_NAME]);
