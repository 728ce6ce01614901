/*  metrics - the text that Prometheus reads (format 0.0.4). Names, labels and buckets: docs/internals/k8s-metrics.md.
 *
 *  Threads: the loop's. */
#pragma once
#include "common/base/buf.h"
#include "k8s/operator/parts.h"

void metrics_write(tt_buf_t *out, const operator_t *op);
/*  metrics_standard.c: those that every controller of Kubernetes and every program has, under the names that dashboards ask for. */
void metrics_standard(tt_buf_t *out, const operator_t *op);
