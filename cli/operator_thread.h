/*  operator_thread - an operator in a thread of a coordinator: one DIJob that keeps its own pods (docs/internals/k8s.md).
 *
 *  The coordinator knows nothing of Kubernetes; its subcommand puts the two together.
 *  Threads: start and end from the main thread; the operator has one of its own, which takes no signals. */
#pragma once
#include <stdbool.h>
#include "common/base/status.h"

typedef struct tt_operator_thread tt_operator_thread_t; /* opaque */

/*  job: a DIJob of our namespace by name, or a file with one ("NAME=FILE") where the cluster knows no DIJobs. The pod that we
 *  are in is its coordinator: KUBERNETES_POD_NAME, else HOSTNAME. */
tt_status_t tt_operator_thread_start(tt_operator_thread_t **self_p, const char *job);
/*  The coordinator has ended: that is written down, pods are cleaned up, then the thread ends. */
void tt_operator_thread_end(tt_operator_thread_t **self_p, bool well);
/*  It goes as a killed one does: nothing is written. */
void tt_operator_thread_drop(tt_operator_thread_t **self_p);
