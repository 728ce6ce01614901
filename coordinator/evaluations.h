/*  evaluations - how versions did in evaluation (eval.every): RUN_DIR/evaluations.jsonl, one JSON object a version, and the newest
 *  of them for status, metrics, event files and the summary.
 *
 *  {"era", "updates", "env_steps", "wall_s", and "eval/mean_reward" and its like, as evaluations_names lists them}. A version is
 *  written once in an era, over restarts of the coordinator and of the learner that leads: what comes again has the same bits.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include "common/wire/msg.h"

enum { EVALUATIONS_METRICS = 9, EVALUATIONS_NAME = 32 };

typedef struct evaluations evaluations_t; /* opaque */

/*  Nothing is made before there is something to write. TT_IO; TT_DATA: the last line is not ours. */
tt_status_t evaluations_open(evaluations_t **self_p, const char *run_dir);
void evaluations_close(evaluations_t **self_p);

/*  *fresh: it is of no version that is there already. */
tt_status_t evaluations_add(evaluations_t *self, const tt_msg_EVALUATED_t *m, double wall_s, bool *fresh);

/*  The newest as metrics: "eval/mean_reward" and so on, and their number (0: there is none yet, or self is NULL). Names are static. */
size_t evaluations_newest(const evaluations_t *self, tt_rec_METRIC_t out[EVALUATIONS_METRICS]);
/*  What a metric is, for a person. */
const char *evaluations_help(size_t metric);
/*  The newest as an object, with names that lack "eval/"; null: there is none. */
json_t *evaluations_json(const evaluations_t *self);
