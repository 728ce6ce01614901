/*  feed - the data socket: who attached, what they may send, what they sent.
 *
 *  feed.c alone reads and writes feed_t.
 *  Threads: the learner's. */
#pragma once
#include "common/net/net.h"

typedef struct core core_t;

/*  A collector that attached to us. */
typedef struct {
    char peer[64];
    uint64_t instance;
    uint32_t era;
    uint64_t epoch;
} attached_t;

typedef struct {
    attached_t *attached;
    size_t count;
    uint32_t warnings; /* of what was dropped */
} feed_t;

tt_status_t feed_on_packet(void *ctx, tt_sock_t *sock, tt_packet_t *packet);
void feed_credit_all(core_t *core);
void feed_ack_all(core_t *core);
/*  A new roster: forget who is gone, answer who attached ahead of it. */
void feed_on_roster(core_t *core);
void feed_close(feed_t *self);
