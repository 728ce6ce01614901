/*  replicas - the processes that a controller keeps for this run, and which of them say nothing any more.
 *
 *  A process that is stopped, or hangs before its HELLO, does not end by itself, and only its controller can end it. So
 *  each that is known to run is looked for among the roster's peers: one that was there and has been silent for a lease,
 *  or that has not come for longer than a start may take, is told, and told again each lease while it still runs.
 *
 *  Pure logic, time from an injected clock. Threads: the coordinator's. */
#pragma once
#include "coordinator/roster.h"

typedef struct {
    tt_peer_role_t role;
    uint32_t index, pid;
    bool heard;      /* it has been among the peers                                      */
    bool told;       /* that it is silent, since it was heard last                       */
    int64_t seen_ns; /* its last word; before that, when we learned that it was started  */
    int64_t told_ns; /* when that was told last                                          */
    char doing[128]; /* its last state                                                   */
} replica_t;

typedef struct replicas replicas_t; /* opaque */

replicas_t *replicas_new(const tt_clock_t *clock, int64_t lease_ns);
void replicas_destroy(replicas_t **self_p);

/*  What its controller says, any number of times. pid 0: whichever process has the number. */
void replicas_started(replicas_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid);
void replicas_ended(replicas_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid);

/*  Look for all of them; `tell` is called for those that are silent, `again` when not for the first time. Time in which
 *  we were away ourselves is nobody's silence. */
typedef void (*replicas_tell_fn)(void *ctx, const replica_t *replica, double silent_s, bool again);
void replicas_turn(replicas_t *self, const roster_t *roster, replicas_tell_fn tell, void *ctx);
