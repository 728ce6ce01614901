/*  summary - how a run ended, as the JSON object that scripts rely on and as a few lines for a person.
 *
 *  Threads: pure. */
#pragma once
#include <jansson.h>
#include <stdio.h>
#include "controller/supervisor.h"

/*  The object of docs/architecture.md section 8, every key present (null where unknown). New reference. */
json_t *tt_summary(const tt_rundir_t *run, const tt_outcome_t *outcome, double wall_s);

/*  "succeeded", "failed" or "stopped": what the run's end amounts to. A run that was asked to stop by another terminal
 *  counts as stopped though its coordinator ended well. */
tt_job_phase_t tt_summary_phase(const tt_outcome_t *outcome);

/*  From the second life of a run on: which it is, and what changed with it ("life", "changed"). */
void tt_summary_print_life(FILE *stream, const json_t *summary);
/*  A few lines for a person. */
void tt_summary_print(FILE *stream, const json_t *summary, const char *failure);
