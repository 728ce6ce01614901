/*  weights - which file of a run has its trained weights: for eval, export and fetch.
 *
 *  Threads: pure but for the file system; says on stderr what it has passed over. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "common/base/status.h"

/*  The final checkpoint of a run's directory; while it runs, also if it was resumed, or when it was killed, or when the final one is damaged, the
 *  newest that is whole: all of a file is read for that. best: that with the
 *  best mean return at a checkpoint, or with eval.every in an evaluation. A DIJob's coordinator had a directory of its own, in a volume. TT_NOT_FOUND: there is none
 *  yet; TT_DATA: none is whole. */
tt_status_t weights_of_run(char *path, size_t size, const char *run_dir, bool best);
/*  The same for RUN|FILE: a run's name or directory, its folder of checkpoints, or a checkpoint file. TT_DENIED. TT_USAGE: best of a file. */
tt_status_t weights_of(char *path, size_t size, const char *operand, bool best);
