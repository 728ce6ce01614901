/*  view - what a learner needs of the newest ROSTER.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/net/location.h"

typedef struct {
    uint32_t index;
    uint64_t instance;
    char data[256]; /* endpoint of its ROUTER, as we reach it; "" = none                 */
    uint32_t pid;   /* and the descriptor, in that process, of memory that we may read:  */
    int memory;     /* -1 = it has none, or is on another host                           */
} view_peer_t;

/*  A collector's range of envs. */
typedef struct {
    uint64_t instance;
    uint32_t env_lo, env_count;
} view_range_t;

typedef struct {
    uint32_t era; /* 0 = no roster yet */
    uint64_t epoch, generation;
    char *restore; /* owned; NULL = none */
    bool fresh;
    bool member; /* we take part, as `rank` */
    uint32_t rank;
    view_peer_t *learner; /* [learners] by rank */
    uint32_t learners;
    view_peer_t *aggregator; /* [aggregators] by index */
    uint32_t aggregators;
    view_range_t *collector; /* [collectors] */
    uint32_t collectors;
} view_t;

/*  Replace *self by what a roster says to the learner `instance` that sits at `location`. */
void view_take(view_t *self, const tt_msg_ROSTER_t *roster, uint64_t instance, const tt_location_t *location);
void view_clear(view_t *self);
bool view_has_collector(const view_t *self, uint64_t instance);
/*  Is this range, as a whole, that collector's now? */
bool view_has_range(const view_t *self, uint64_t instance, uint32_t env_lo, uint32_t env_count);
