/*  lease - one of several holds it: leader election by a coordination.k8s.io/v1 Lease.
 *
 *  Times as measured by our own monotonic clock since we saw the lease's record change, never by comparing wall clocks of two machines. We stop believing
 *  that we hold it renew_ms after our last renewal began, before anybody else may take it (lease_ms). Freed on a clean end
 *  (holderIdentity ""), when we stop believing before that is written.
 *  Threads: the loop's. */
#pragma once
#include "k8s/api/client.h"

typedef struct kube_lease kube_lease_t; /* opaque */

typedef struct {
    const char *namespace_, *name, *holder; /* holder: the pod's UID, or host_pid_random outside one */
    int lease_ms, renew_ms, retry_ms;       /* 0 = 6000, 4000, 1000                                  */
    void (*changed)(void *ctx, bool held);
    void *ctx;
} kube_lease_opts_t;

tt_status_t kube_lease_new(kube_lease_t **self_p, kube_client_t *client, const kube_lease_opts_t *opts);
/*  Frees the lease where we hold it (runs the loop for at most 3 s, half of what others would wait). */
void kube_lease_destroy(kube_lease_t **self_p);
bool kube_lease_held(const kube_lease_t *self);
/*  "" when nobody. Borrowed. */
const char *kube_lease_holder(const kube_lease_t *self);
