/*  pool - the threads of one learner: the same function on every lane, lane 0 on the caller.
 *
 *  A round is short (tens of microseconds), so a waiting thread first looks for a moment, then sleeps.
 *  Threads: one caller at a time; the function runs on every lane at the same time. */
#pragma once
#include <stdint.h>

typedef struct pool pool_t; /* opaque */
typedef void (*pool_fn)(void *ctx, uint32_t lane, uint32_t lanes);

/*  lanes >= 1 (one lane = no thread). Caller owns the pool. */
pool_t *pool_new(uint32_t lanes);
void pool_destroy(pool_t **self_p);
uint32_t pool_lanes(const pool_t *self);

/*  Call fn(ctx, lane, lanes) once for every lane; returns when all have ended. What they wrote is visible then. */
void pool_run(pool_t *self, pool_fn fn, void *ctx);
