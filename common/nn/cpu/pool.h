/*  pool - the threads of a device: the same function on every lane, lane 0 on the caller.
 *
 *  A round is mostly short (tens of microseconds), so a waiting thread first looks for a moment, then sleeps.
 *  Threads: one caller at a time; the function runs on every lane at the same time. */
#pragma once
#include <stdint.h>
#include "common/base/progress.h"
#include "common/base/status.h"

typedef struct cpu_pool cpu_pool_t; /* opaque */
typedef void (*cpu_pool_fn)(void *ctx, uint32_t lane, uint32_t lanes);

/*  lanes >= 1 (one lane = no thread). Caller owns the pool. TT_OS: the system lets us have no more threads. */
tt_status_t cpu_pool_new(cpu_pool_t **self_p, uint32_t lanes);
void cpu_pool_destroy(cpu_pool_t **self_p);

/*  Call fn(ctx, lane, lanes) once for every lane; returns when all have ended. What they wrote is visible then.
 *  progress is called on the caller's thread: when lane 0 tells, and, once that has ended, ten times a second if another lane
 *  has told since. */
void cpu_pool_run(cpu_pool_t *self, cpu_pool_fn fn, void *ctx, tt_progress_t progress);
/*  Called by the function: `lane`, its own, has done a part of what it has to do. */
void cpu_pool_tell(cpu_pool_t *self, uint32_t lane);
