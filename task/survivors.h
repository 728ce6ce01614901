/*  survivors - processes that jobs started and that are still there. Whatever a job starts carries two marks in its environment: the
 *  registry's, TT_TASKS=<folder>, and the attempt's, TT_TASK_MARK=<id>.<attempt>. When an attempt has ended, all that has its mark ends;
 *  when an engine begins, and holds the registry's lock, all that has the registry's does, so that no job ever runs twice at once.
 *
 *  Threads: pure but for the system. */
#pragma once
#include "common/base/status.h"

#define SURVIVORS_OF_REGISTRY "TT_TASKS"
#define SURVIVORS_OF_ATTEMPT  "TT_TASK_MARK"

enum { SURVIVORS_PATIENCE_MS = 5000 }; /* what a killed process may take to go */

/*  Kill those that have both marks in their environment, until none is left. mark: "NAME=value", and so is more (NULL = that one is
 *  enough). TT_TIMEOUT: one is still there after patience_ms; 0: they are killed and looked for once. */
tt_status_t survivors_end(const char *mark, const char *more, int patience_ms);
