/*  job - `tutti run` with the manifest of a DIJob (local/).
 *
 *  Threads: main thread, before any other exists. */
#pragma once
#include <stdint.h>
#include "cli/options.h"

/*  The whole command; returns the exit code: 0, the coordinator's own, 130 or 143 after a signal. */
int tt_run_job(const tt_args_t *args, int64_t start_ns);

/*  TT_USAGE: --set, --seed or --env was given, and the settings are the manifest's. */
tt_status_t tt_job_refuse_settings(const tt_args_t *args);
