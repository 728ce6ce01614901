/*  buckets - bounds of client-go's metrics (k8s.io/component-base 0.33, metrics/prometheus), to the last bit. Threads: any. */
#pragma once
#include "common/http/histogram.h"

extern const tt_buckets_t tt_buckets_queue;   /* workqueue_*_duration_seconds: 1e-08 ... 10    */
extern const tt_buckets_t tt_buckets_request; /* rest_client_*_duration_seconds: 0.005 ... 60 */
