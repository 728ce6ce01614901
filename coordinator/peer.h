/*  peer - one remote process as the coordinator sees it, and its state machine: one flat, total table.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/wire/msg.h"
#include "coordinator/usage.h"

typedef enum {
    PEER_NEW,      /* unknown until its HELLO                                        */
    PEER_WAITING,  /* welcome, not in the newest roster: joins with the next, or a spare */
    PEER_ACTIVE,   /* in the newest roster                                           */
    PEER_DRAINING, /* victim of a scale-down: left out from the newest roster on      */
    PEER_GONE,     /* removed                                                        */
    PEER_STATES
} peer_state_t;

typedef enum {
    PEER_HELLO,    /* first, or again                          */
    PEER_HEARD,    /* any other message                        */
    PEER_PLACED,   /* the roster now made names it             */
    PEER_LEFT_OUT, /* the roster now made does not             */
    PEER_VICTIM,   /* scale-down chose it                      */
    PEER_DRAINED,  /* it says that it has left                 */
    PEER_ENDED,    /* its process has ended (controller, /proc) */
    PEER_SILENT,   /* nothing heard for a lease                */
    PEER_EVENTS
} peer_event_t;

/*  What its HELLO says of the roster that it knows; era 0 = none. */
typedef struct {
    uint32_t era;
    uint64_t generation, epoch;
    uint32_t learners, place; /* learners in that roster; its own rank there + 1, 0 = not in it */
    bool holds;
} peer_claim_t;

typedef struct {
    char identity[64]; /* on the control socket: "<role>/<index>/<instance in hex>" */
    tt_peer_role_t role;
    uint32_t index, pid, memory; /* memory: as in HELLO */
    uint64_t instance;
    char *host, *pod, *data_ipc, *data_tcp, *weights_ipc, *weights_tcp; /* owned */
    peer_state_t state;
    bool holds; /* learner: has weights and optimiser state of this era                     */
    bool
        warm; /* could take part at once: a learner, if those have more to fetch than weights; a collector, if envs take long */
    bool told_to_leave; /* DRAIN went out; kept by the sender                                       */
    peer_claim_t claim;
    bool asks;     /* it asked to be let go                                                    */
    void *sock;    /* where it is reached; kept by the sender                                  */
    uint64_t told; /* newest epoch that went out to it; kept by the sender                     */
    uint32_t rank; /* learner: in the newest roster (or the journal's); UINT32_MAX = none      */
    uint32_t env_lo, env_count;
    uint64_t order; /* of arrival                                                               */
    int64_t seen_ns;
    uint64_t progress; /* of its heartbeats                                                        */
    int64_t came_ns;   /* first HELLO                                                              */
    int64_t moved_ns;  /* when progress last changed, or a roster came                             */
    char doing[128];   /* state of its last heartbeat                                              */
    usage_t usage;     /* of its last heartbeats                                                   */
} peer_t;

/*  A peer that is still PEER_NEW. Caller owns *self_p; the HELLO is borrowed for the call. */
void peer_new(peer_t **self_p, const char *identity, uint32_t index, const tt_msg_HELLO_t *hello);
void peer_destroy(peer_t **self_p);

/*  Something happened to it. true: the roster must be made anew. */
bool peer_fire(peer_t *self, peer_event_t event, int64_t now_ns);

/*  The table behind it, for the test that walks all cells: is there an action, and which state follows. */
bool peer_cell(peer_state_t state, peer_event_t event, peer_state_t *next);
const char *peer_state_name(peer_state_t state);
