/*  histogram - how often a quantity was how large, counted by buckets as Prometheus has them.
 *
 *  Errors: those of the buffer. Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"

enum { TT_BUCKETS_MAX = 12 };

/*  Upper bounds, rising. */
typedef struct {
    size_t count;
    double bounds[TT_BUCKETS_MAX];
} tt_buckets_t;

typedef struct {
    uint64_t counts[TT_BUCKETS_MAX + 1]; /* of each bucket alone; the one behind the last bound is for all above */
    uint64_t count;
    double sum;
} tt_histogram_t;

void tt_histogram_observe(tt_histogram_t *self, const tt_buckets_t *buckets, double value);
/*  Its lines, without HELP and TYPE (tt_exposition_head). labels: "name=\"x\"", at least one. */
tt_status_t tt_histogram_write(
    const tt_histogram_t *self, const tt_buckets_t *buckets, tt_buf_t *out, const char *name, const char *labels);
