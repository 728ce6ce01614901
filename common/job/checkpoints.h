/*  checkpoints - the folder RUN_DIR/checkpoints: <update>.safetensors, best.safetensors, final.safetensors.
 *
 *  Written by the learner of rank 0 where it sees the run directory, else by the coordinator for it.
 *  Threads: pure but for the file system; one writer at a time. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

enum { TT_CHECKPOINT_NAME = 64 };
#define TT_CHECKPOINT_FINAL "final.safetensors"
#define TT_CHECKPOINT_BEST  "best.safetensors"

/*  The path of the folder, which is made when it is not there. TT_IO: no place to write. */
tt_status_t tt_checkpoints_open(const char *run_dir, char *out, size_t size);
/*  "00000123.safetensors" */
void tt_checkpoint_name(char out[TT_CHECKPOINT_NAME], uint64_t update);
/*  Is it such a name, or TT_CHECKPOINT_FINAL? Anything else from outside is refused. */
bool tt_checkpoint_is_name(const char *name);

/*  A second name for a file of the folder, put in place at once. */
tt_status_t tt_checkpoint_alias(const char *folder, const char *name, const char *alias);
/*  The newest of those that are named by their update. TT_NOT_FOUND: there is none. */
tt_status_t tt_checkpoints_newest(const char *folder, char out[TT_CHECKPOINT_NAME]);
/*  Remove all but the newest `keep` (at least one) of those that are named by their update. */
void tt_checkpoints_keep(const char *folder, uint32_t keep);
