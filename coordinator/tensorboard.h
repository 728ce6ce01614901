/*  tensorboard - an event file that TensorBoard reads: RUN_DIR/events.out.tfevents.<time>.<host>.<pid>.tutti
 *
 *  Formats: TFRecord framing (u64 length, masked CRC32C of it, data, masked CRC32C of that; all little-endian;
 *  tensorflow/core/lib/io/record_writer.h) around protobuf Event and Summary messages (tensorflow/core/framework/
 *  summary.proto, core/util/event.proto), encoded by hand: five fields. The x axis is env steps.
 *
 *  Names as CleanRL's and SB3's users know them: charts/episodic_return, charts/episodic_length, charts/SPS, and the
 *  metrics of the algorithm (losses/...).
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/wire/msg.h"

typedef struct tensorboard tensorboard_t; /* opaque */

tt_status_t tensorboard_open(tensorboard_t **self_p, const char *dir);
/*  Writes what is pending. */
void tensorboard_close(tensorboard_t **self_p);

/*  One event with a value for each finite number. wall_s: seconds since 1970. */
tt_status_t tensorboard_add(tensorboard_t *self, const tt_msg_STATS_t *stats, double wall_s, double sps);
/*  The same of these numbers alone. A STATS's metrics "eval/..." are of an older version, which has an event of its own: they are left
 *  out of the other. */
tt_status_t tensorboard_add_metrics(
    tensorboard_t *self, uint64_t env_steps, double wall_s, const tt_rec_METRIC_t *metric, size_t count);
tt_status_t tensorboard_flush(tensorboard_t *self);
