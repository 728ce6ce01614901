/*  histogram - seconds counted by buckets, as Prometheus and the controllers of Kubernetes have them.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { KUBE_BUCKETS_MAX = 12 };

/*  Upper bounds, rising; those of client-go's metrics (k8s.io/component-base 0.33, metrics/prometheus), to the last bit. */
typedef struct {
    size_t count;
    double bounds[KUBE_BUCKETS_MAX];
} kube_buckets_t;
extern const kube_buckets_t kube_buckets_queue;   /* workqueue_*_duration_seconds: 1e-08 ... 10      */
extern const kube_buckets_t kube_buckets_request; /* rest_client_*_duration_seconds: 0.005 ... 60 */

typedef struct {
    uint64_t counts[KUBE_BUCKETS_MAX + 1]; /* of each bucket alone; the one behind the last bound is for all above */
    uint64_t count;
    double sum;
} kube_histogram_t;

void kube_histogram_observe(kube_histogram_t *self, const kube_buckets_t *buckets, double seconds);
