#include "common/http/histogram.h"
#include <inttypes.h>
#include "common/http/exposition.h"

void tt_histogram_observe(tt_histogram_t *self, const tt_buckets_t *buckets, double value)
{
    size_t i = 0;
    while (i < buckets->count && value > buckets->bounds[i])
        i++;
    self->counts[i]++;
    self->count++;
    self->sum += value;
}

tt_status_t tt_histogram_write(
    const tt_histogram_t *self, const tt_buckets_t *buckets, tt_buf_t *out, const char *name, const char *labels)
{
    uint64_t below = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        char bound[32];
        tt_exposition_number(bound, buckets->bounds[i]);
        below += self->counts[i];
        TT_TRY(tt_buf_printf(out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels, bound, below));
    }
    TT_TRY(tt_buf_printf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, self->count));
    return tt_buf_printf(
        out, "%s_sum{%s} %.15g\n%s_count{%s} %" PRIu64 "\n", name, labels, self->sum, name, labels, self->count);
}
