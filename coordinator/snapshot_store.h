/*  snapshot_store - snapshots that come and go over the wire: learners on other hosts have no run directory, the coordinator has.
 *
 *  STORE carries a piece of a file of RUN_DIR/checkpoints; STORED says how much is there and, when all is, that it has its
 *  name. LOAD asks for a piece of the snapshot that the newest roster names; LOADED carries it. Each piece is asked for
 *  and answered by itself, so either side may be started again in between: the sender begins anew.
 *
 *  Only the learner of rank 0 stores and loads, and nothing but snapshots. Files are written beside, compared
 *  with their checksum when all of it is there, and renamed.
 *  Threads: the coordinator's; writes and syncs in it. */
#pragma once
#include "common/net/net.h"
#include "common/snapshot/seal.h"

typedef struct coordinator coordinator_t;

typedef struct {
    int fd; /* of the file that is coming in, -1 = none */
    char name[64];
    uint64_t instance, size, offset;
    tt_seal_check_t seal; /* of what has come */
} snapshot_store_t;

void snapshot_store_init(snapshot_store_t *self);
/*  The coordinator begins: what one that was killed had of a file goes. Once it holds the run's lock. */
void snapshot_store_sweep(const coordinator_t *self);
/*  Forget the file that was coming in. */
void snapshot_store_free(coordinator_t *self);

/*  STORE or LOAD came from `identity`, which needs not have said HELLO: its learner has. */
void snapshot_store_packet(coordinator_t *self, tt_sock_t *sock, tt_packet_t *packet);
