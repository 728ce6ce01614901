/*  metrics - what Prometheus reads of a master (GET /metrics): its tasks and members by state, ends since it was started, and process_*.
 *
 *  Errors: those of the buffer. Threads: that of the tasks. */
#pragma once
#include "common/base/buf.h"
#include "elasticdl/tasks.h"

/*  started_s: when the master's process was started, since 1970. */
tt_status_t edl_metrics(tt_buf_t *out, const edl_tasks_t *tasks, double started_s);
