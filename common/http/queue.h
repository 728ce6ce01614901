/*  queue - keys that want work: each waits at most once, and is worked on at most once at a time.
 *
 *  A key that is added while it is being worked on comes again when that is done. Failures come again after 5 ms doubling
 *  to 60 s, with up to 10 % of jitter; over all, failures come at most 10 a second once 100 have come at once (a bucket).
 *  Threads: the loop's. */
#pragma once
#include <stddef.h>
#include "common/http/buckets.h"
#include "common/http/reactor.h"

typedef struct tt_queue tt_queue_t;                      /* opaque */
typedef void (*tt_queue_fn)(void *ctx, const char *key); /* ends with tt_queue_done(key), then or later */

typedef struct {
    int64_t base_ms, max_ms; /* 0 = 5 ms, 60 s */
    int workers;             /* keys under way at a time; 0 = no limit */
} tt_queue_opts_t;

tt_status_t tt_queue_new(
    tt_queue_t **self_p, tt_reactor_t *loop, const tt_queue_opts_t *opts, tt_queue_fn fn, void *ctx);
void tt_queue_destroy(tt_queue_t **self_p);
void tt_queue_add(tt_queue_t *self, const char *key);
void tt_queue_add_after(tt_queue_t *self, const char *key, int64_t after_ms); /* the earlier time wins */
/*  The work on key is over: well (its failures are forgotten), or not (it comes again after its back-off). */
void tt_queue_done(tt_queue_t *self, const char *key, bool well);
/*  Not worked on while paused (no lease); what is added waits. */
void tt_queue_pause(tt_queue_t *self, bool paused);
size_t tt_queue_depth(const tt_queue_t *self);

/*  What client-go's queues tell of themselves; of the loop's clock. */
typedef struct {
    uint64_t adds;             /* of keys that did not wait already                               */
    uint64_t retries;          /* works that were not well                                        */
    tt_histogram_t wait, work; /* tt_buckets_queue: from the adding to the work, and the work */
} tt_queue_stats_t;
const tt_queue_stats_t *tt_queue_stats(const tt_queue_t *self);
/*  Keys whose last work was not well: they wait for their back-off, for their turn, or are worked on. */
size_t tt_queue_failing(const tt_queue_t *self);
