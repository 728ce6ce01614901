/*  peers - the learners of the roster as a collector sees them: a DEALER to each, one SUB to all, their credit, and how
 *  far each has been sent the kept segments.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/resend.h"
#include "common/net/location.h"

typedef struct {
    uint64_t instance;
    uint32_t index, rank;
    char data[256], weights[256]; /* endpoints as we reach them */
    tt_sock_t *sock;
    bool credited;   /* CREDIT for the current roster has come                */
    uint64_t upto;   /* batches below may be sent                             */
    uint64_t base;   /* first batch that it has not got complete              */
    uint64_t next;   /* first batch that it has not been sent                 */
    uint32_t part;   /* segments of that which it has been sent               */
    int64_t base_ns; /* since when base stands still                          */
    bool gone;       /* while a roster is taken                               */
} peer_t;

typedef struct {
    const tt_location_t *location;
    tt_loop_t *loop;
    tt_on_packet_fn on_packet; /* for all sockets */
    void *ctx;
    char identity[64];
    size_t max_bytes; /* largest frame a learner may send */
    tt_sock_t *sub;
    peer_t *at; /* [count] */
    size_t count;
} peers_t;

tt_status_t peers_init(peers_t *self);
void peers_free(peers_t *self);

/*  Follow a roster: connect to new learners, leave those that are gone, all credit void. NULL: leave all.
 *  TT_UNAVAILABLE: a learner that this host cannot reach. */
tt_status_t peers_take(peers_t *self, const tt_msg_ROSTER_t *roster);

/*  All credit is void: say ATTACH again. */
void peers_uncredit(peers_t *self);

/*  NULL when nobody has it. */
peer_t *peers_of_sock(const peers_t *self, const tt_sock_t *sock);
peer_t *peers_of_rank(const peers_t *self, uint32_t rank);

/*  The first that it is to be sent next is this batch's. */
void peers_aim(peer_t *peer, uint64_t batch);
/*  The same for all: the batch that each of them lacks. */
void peers_aim_all(peers_t *self);

/*  The first peer without credit for this roster / whose credit does not cover `batch`; NULL: none lacks it. */
peer_t *peers_silent(const peers_t *self);
peer_t *peers_tight(const peers_t *self, uint64_t batch);
/*  The smallest base. */
uint64_t peers_start(const peers_t *self);

/*  Send every peer the kept segments that it has not been sent, as far as its socket takes them. */
void peers_flush(peers_t *self, const resend_t *resend, uint64_t end);
