/*  metrics - the single writer of RUN_DIR/metrics.jsonl: one JSON object a line, one line an update.
 *
 *  {"era", "updates", "env_steps", "episodes", "return_mean", "length_mean", "lag_max", "dropped", "broken_trajectories", "wall_s", "sps", and
 *  the metrics by their names}. wall_s counts from the run's process start; a number that is not finite is null.
 *  Each (era, update, env_steps) is written once, over restarts of the coordinator too; a line that a dying coordinator left
 *  half-written is cut off.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include "common/wire/msg.h"

typedef struct metrics metrics_t; /* opaque */

/*  TT_IO; TT_DATA: the last line is not ours. */
tt_status_t metrics_open(metrics_t **self_p, const char *path);
/*  The era of the newest line, 0 when there is none. Mends the file as metrics_open does, and fails as it does. */
tt_status_t metrics_last_era(const char *path, uint32_t *era);
/*  The newest line, as it is written; nothing is called when there is none. Mends the file too. */
tt_status_t metrics_last(const char *path, void (*take)(void *ctx, const json_t *line), void *ctx);
/*  Writes what is pending. */
void metrics_close(metrics_t **self_p);

/*  Costs a few microseconds and, when much is pending, one write. sps: over the last seconds. */
tt_status_t metrics_add(metrics_t *self, const tt_msg_STATS_t *stats, double wall_s, double sps);
/*  The same with era, updates, env_steps, wall_s and the metrics alone; *fresh: it was written now. */
tt_status_t metrics_add_short(metrics_t *self, const tt_msg_STATS_t *stats, double wall_s, bool *fresh);
tt_status_t metrics_flush(metrics_t *self);
