/*  tree - removing a directory with all that it holds. Every step is taken from a directory that is open already, so that no link
 *  and no rename leads out of it; links are removed and not followed, file systems that are mounted below stay.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include "common/base/status.h"

/*  Remove what the open directory `dir` holds, but for the entry `keep` (NULL = nothing stays). path: what it is called in messages.
 *  TT_DENIED, TT_IO with the first entry that could not be removed; the rest is gone all the same. */
tt_status_t tt_tree_empty(int dir, const char *path, const char *keep);
