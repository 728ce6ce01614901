/*  placement - which peers take part, in which order, with which part: the arithmetic behind a roster.
 *
 *  Learners: those of the newest roster keep their order, joiners follow in order of their numbers; but rank 0 holds the
 *  weights whenever somebody does. Where learners warm up, who does not hold the weights and was not in the newest roster is left out
 *  until it is warm, unless nobody holds them. Collectors and aggregators: in order of their numbers; when there are too many
 *  collectors, those that already take part go first, then the earliest. Where collectors warm up, one that is not warm is left out as long as
 *  another takes part.
 *
 *  Threads: pure; the arrays belong to the placement. */
#pragma once
#include "coordinator/roster.h"

typedef struct {
    uint32_t num_envs;           /* N                                                             */
    uint32_t shards;             /* S                                                             */
    bool warms, collectors_warm; /* roster_cfg_t                                        */
} placement_limits_t;

typedef struct {
    peer_t **learners, **collectors, **aggregators; /* owned arrays of borrowed peers         */
    size_t learner_count, collector_count, aggregator_count;
} placement_t;

/*  Choose among the peers that are waiting or active. Without an aggregator no learner joins beside the first. */
void placement_make(placement_t *out, peer_t *const *peers, size_t count, const placement_limits_t *limits);
void placement_free(placement_t *self);

/*  Envs [*lo, *lo + *count) of collector i of n: contiguous, near-equal, a partition of 0 .. num_envs-1. */
void placement_range(uint32_t num_envs, size_t i, size_t n, uint32_t *lo, uint32_t *count);
