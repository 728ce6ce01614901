/*  roster - who takes part: members, leases, ranks, env ranges, spares; when a new roster is due and what it says.
 *
 *  Pure logic: no sockets, no files, time from an injected clock. A roster is computed from the peers (peer.h), never
 *  patched. docs/internals/protocol.md, "Rosters".
 *
 *  Threads: an instance belongs to one thread. Peers are borrowed until the next call that may remove one
 *  (roster_leave, roster_tick). */
#pragma once
#include "common/base/clock.h"
#include "coordinator/peer.h"

/*  ROSTER_NUMBER_MAX, of an era, epoch or generation: more than a run can have, and far from where counting on would wrap
 *  around. What a HELLO says of the roster that it knows may become ours (roster_adopt.c), and what the journal says does. */
enum {
    ROSTER_BY_HAND = 10000,   /* processes that ask for a number get one from here on; scaling leaves them alone */
    ROSTER_PEERS_MAX = 65535, /* of one role, spares included                                                   */
    ROSTER_NUMBER_MAX = 1 << 30
};

#define ROSTER_ROLES ((uint32_t)TT_PEER_AGGREGATOR + 1)

typedef struct {
    uint32_t num_envs;    /* collectors that can take part                                      */
    uint32_t shards;      /* learners that can take part                                        */
    bool warms;           /* while somebody holds weights, a learner takes part once it says that it is warm */
    bool collectors_warm; /* while another one plays, a collector does so once it says that it is warm */
    uint32_t desired[ROSTER_ROLES];
    int64_t lease_ns;        /* silence after which a peer counts as dead                          */
    int64_t first_wait_ns;   /* the first roster waits so long for the rest of the replicas        */
    int64_t coalesce_ns;     /* later ones wait so long for more changes                           */
    int64_t expect_until_ns; /* without a journal: until then members of a run under way are expected; 0 = not */
} roster_cfg_t;

/*  What a journal remembers of the newest roster. */
typedef struct {
    tt_peer_role_t role;
    uint32_t index;
    uint64_t instance;
    uint32_t rank;
} roster_past_member_t;

typedef struct {
    uint32_t era;
    uint64_t epoch, generation;
    bool fresh; /* the newest roster was: its era has not begun, if its rank 0 comes back without weights */
    uint32_t rolled_back;
    bool ended;          /* that run came to its end: nothing is lost by going on from its last snapshot   */
    bool went_on;        /* the same run goes on: its processes may still be there         */
    const char *restore; /* of a fresh one: the snapshot to begin it from; NULL or "" = none */
    const roster_past_member_t *members;
    size_t member_count;
} roster_past_t;

typedef struct roster roster_t; /* opaque */

tt_status_t roster_new(roster_t **self_p, const roster_cfg_t *cfg, const tt_clock_t *clock);
void roster_destroy(roster_t **self_p);

/*  Go on where an earlier coordinator of this run stopped: numbers only grow, members that come back keep their ranks,
 *  and the first roster waits for them, at most a lease. Call before the first HELLO. past is borrowed for the call. */
void roster_continue(roster_t *self, const roster_past_t *past);

/*  Eras up to this one are over, whoever knows of them: the next to begin is a later one. */
void roster_begin_after(roster_t *self, uint32_t era);

/*  A HELLO came from `identity` over `sock`. *out: the peer, new or known; its number is out->index.
 *  TT_DENIED with a text for the sender: wrong role, number in use or too large, role full, weights of another time. */
tt_status_t roster_hello(roster_t *self, const char *identity, void *sock, const tt_msg_HELLO_t *hello, peer_t **out);

/*  The peer behind an identity / the live holder of a number / the same when it is process `pid` (0 = whichever); NULL = none. */
peer_t *roster_find(const roster_t *self, const char *identity);
peer_t *roster_holder(const roster_t *self, tt_peer_role_t role, uint32_t index);
peer_t *roster_process(const roster_t *self, tt_peer_role_t role, uint32_t index, uint32_t pid);

/*  A message / a heartbeat came from it. */
void roster_heard(roster_t *self, peer_t *peer);
void roster_beat(roster_t *self, peer_t *peer, const tt_msg_HEARTBEAT_t *beat);

/*  It has left (PEER_DRAINED, PEER_ENDED). why: for the log. The peer is gone after the call. */
void roster_leave(roster_t *self, peer_t *peer, peer_event_t event, const char *why);
/*  It asks to be let go: out of the next roster; a learner that alone holds the weights when another one holds them. */
void roster_asks(roster_t *self, peer_t *peer);

/*  Replicas asked for. Victims of a scale-down are those with the highest numbers; a learner that alone holds the
 *  weights stays until another one holds them. */
void roster_desire(roster_t *self, tt_peer_role_t role, uint32_t count);
uint32_t roster_desired(const roster_t *self, tt_peer_role_t role);
/*  Replicas in the newest roster. */
uint32_t roster_ready(const roster_t *self, tt_peer_role_t role);

/*  Those beyond what the config has work for (learner.shards, num_envs); they wait for a place. */
uint32_t roster_spares(const roster_t *self, tt_peer_role_t role);

/*  Remove who has been silent for a lease. Called half a lease too late, it gives everybody that half lease more. */
void roster_tick(roster_t *self);

/*  When the next roster is due, or a lease can end; 0 = at once, INT64_MAX = never. */
int64_t roster_due_ns(roster_t *self);
int64_t roster_lease_due_ns(const roster_t *self);

/*  Make the roster that is due. restore(ctx) is asked when nobody holds weights and an era begins: the snapshot to begin
 *  it from, "" = none. false: nobody's part changes, nothing to announce. */
bool roster_publish(roster_t *self, const char *(*restore)(void *ctx), void *ctx);
/*  Rank 0 cannot begin the era from what it was given: another begins, and `restore` is asked again. Nothing if it has begun. */
void roster_begin_again(roster_t *self);
/*  Fill a message with the newest roster; everything in it is borrowed until the next call that changes the roster. */
void roster_message(const roster_t *self, tt_msg_ROSTER_t *out);

bool roster_announced(const roster_t *self); /* is there a roster yet                              */
bool roster_fresh(const roster_t *self);     /* the newest one starts its era                      */
uint32_t roster_era(const roster_t *self);
uint64_t roster_epoch(const roster_t *self);
uint64_t roster_generation(const roster_t *self);
uint32_t roster_rolled_back(const roster_t *self); /* eras begun because nobody held weights any more */
bool roster_took_over(const roster_t *self);       /* without a journal, a run that had been another coordinator's */

/*  Is it a learner that fetches what it needs to take part? How many of a role do. */
bool roster_is_warming(const roster_t *self, const peer_t *peer);
uint32_t roster_warming(const roster_t *self, tt_peer_role_t role);

/*  There is no roster yet, and the next one goes on with what members of an earlier one hold: they are here, or may still come. */
bool roster_goes_on(const roster_t *self);

/*  The learner of rank 0 in the newest roster, NULL = none. */
peer_t *roster_rank0(const roster_t *self);

/*  Peers in order of arrival, spares and victims included. */
size_t roster_peer_count(const roster_t *self);
peer_t *roster_peer(const roster_t *self, size_t i);

/*  A member that has not got on for `stall_ns` and does not say that it is idle; one that says "waiting for" only where nobody
 *  has. Of several one that does not wait for others, then the one stuck longest. NULL = none. */
const peer_t *roster_stalled(const roster_t *self, int64_t stall_ns);
