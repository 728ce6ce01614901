/*  status - the state of a run as JSON: what `tutti status`, HTTP's /status and the live block show.
 *
 *  {"run", "run_dir", "phase": "starting|running|stopping|ended", "name", "env", "seed", "start_ns", "wall_s",
 *   "era", "epoch", "generation", "rolled_back", "replaced", "replaced_last", "restored_from", "updates", "env_steps",
 *   "episodes", "sps", "return_mean", "threshold", "lag_max", "solved_at_s", "time_share": {role: {stage: 0 .. 1}},
 *   "memory_bytes", "bottleneck", "stop": {"env_steps", "return_mean", "wall_s"},
 *   "replicas": {"collector": {"desired", "ready", "spare"}, "learner": ..., "aggregator": ...},
 *   "members": [{"role", "index", "pid", "host", "phase", "state", "seen_ms", "holds", "rank", "env_lo",
 *               "env_count", "time_share": {stage: 0 .. 1}, "memory_bytes", "cpus"}],
 *   "snapshots": number, "snapshot": newest or null, "snapshot_failures": number,
 *   "snapshot_failure": {"reason", "since_s", "failures"} or null when the newest was made, "http": url or null, "listen": endpoint or null}
 *
 *  Threads: the coordinator's. The caller owns what is returned (json_decref). */
#pragma once
#include <jansson.h>
#include "common/base/buf.h"
#include "coordinator/ends.h"
#include "coordinator/journal.h"

json_t *status_json(const coordinator_t *self);
json_t *status_counts_json(const coordinator_t *self);
json_t *status_snapshot_json(const journal_snapshot_t *snapshot);

/*  The same numbers in Prometheus' text format. */
tt_status_t status_prometheus(const coordinator_t *self, tt_buf_t *out);
