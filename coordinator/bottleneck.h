/*  bottleneck - what holds a run up, in a sentence for a person: who waits for whom, and would more replicas help? An
 *  estimate from where the time went in the last seconds; nothing is decided by it.
 *
 *  Threads: pure. */
#pragma once
#include "coordinator/usage.h"

typedef struct {
    uint64_t lag;
    uint32_t collectors, learners; /* that take part                                          */
    uint32_t num_envs, shards;
    uint32_t processors; /* of the one host that all are on; 0 = there are several, or not known */
    const usage_mean_t *collector, *learner;
    double cpus; /* that all members keep busy                              */
} bottleneck_t;

/*  false: nothing can be said yet; out is "" then. */
bool bottleneck_say(const bottleneck_t *facts, char *out, size_t size);
