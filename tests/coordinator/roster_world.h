/*  roster_world - a roster with a clock that stands, and processes that say hello to it; for the tests of roster. */
#pragma once
#include "coordinator/roster.h"

static const int64_t MS = 1000000, SECOND = 1000000000;

typedef struct {
    tt_clock_t clock;
    roster_t *roster;
} world_t;

/*  What a process says that it knows of a run that is under way; all 0 = nothing. */
typedef struct {
    bool holds;
    uint32_t era;
    uint64_t generation, epoch;
    uint32_t learners, place;
} knows_t;

/*  A job that wants so many of each role, with a lease of 5 s. */
world_t *world_new(uint32_t num_envs, uint32_t shards, uint32_t collectors, uint32_t learners, uint32_t aggregators);
/*  Learners, or collectors, of this job warm up. */
void world_collectors_warm(world_t *w);
void world_warms(world_t *w);
void world_end(world_t *w);
/*  A run of one collector and `learners` learners that all hold weights; learner i has instance 100 + i. */
world_t *world_running(uint32_t learners);
tt_status_t world_try_hello(world_t *w, tt_peer_role_t role, int index, uint64_t instance, knows_t knows, peer_t **out);
/*  The hello of one that knows nothing; it must be let in. */
peer_t *world_hello(world_t *w, tt_peer_role_t role, int index, uint64_t instance);
/*  A controller saw process `pid` (0 = whichever) of a number end. */
void world_ended(world_t *w, tt_peer_role_t role, uint32_t index, uint32_t pid);
/*  A roster is due now. */
bool world_due(world_t *w);
/*  Make the roster that is due. restore: what an era would begin from. */
bool world_make(world_t *w, const char *restore);
/*  Let pass what later rosters wait for, and make the one that is due. */
bool world_publish(world_t *w, const char *restore);
/*  A heartbeat in this era that says whether the peer holds weights. */
void world_holds(world_t *w, peer_t *peer, bool holds);
/*  A heartbeat that says whether it could take part at once; the roster of its era is `era`. */
void world_warm(world_t *w, peer_t *peer, bool warm, uint32_t era);
