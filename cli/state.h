/*  state - what `ps` and `status` know of a run from its directory alone.
 *
 *  Threads: pure but for the file system. */
#pragma once
#include <jansson.h>
#include "controller/rundir.h"

/*  "running", or the status of summary.json, or else of the coordinator's result.json, or "killed" when it ended without any
 *  of them. Borrowed static text. */
const char *tt_run_state(const tt_rundir_t *run, json_t **summary);
