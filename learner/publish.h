/*  publish - the newest policy versions a learner keeps, as frames ready to be sent.
 *
 *  A version is the parameters and both normalisers as of that version. The newest lag + 2 are kept, so that a batch can be
 *  collected again with exactly its version.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <zmq.h>
#include "common/net/net.h"

typedef struct {
    uint64_t version;
    zmq_msg_t params; /* float32, as tt_net_get gives them                                   */
    zmq_msg_t norm;   /* float64: the block of the observations' normaliser (common/rl/norm.h) */
    double *reward;   /* block of the rewards' normaliser                                    */
} version_t;

typedef struct {
    size_t params, norm, reward; /* numbers in each */
    uint32_t keep;
} publish_cfg_t;

typedef struct publish publish_t; /* opaque */

publish_t *publish_new(const publish_cfg_t *cfg);
void publish_destroy(publish_t **self_p);

/*  Forget all versions. */
void publish_reset(publish_t *self);
/*  A new version, larger than all before: room for it, to be filled in by the caller at once. Borrowed. */
version_t *publish_add(publish_t *self, uint64_t version);
float *version_params(version_t *self);
double *version_norm(version_t *self);

/*  NULL when it is not kept (any more, or yet). */
version_t *publish_find(const publish_t *self, uint64_t version);
/*  NULL when there is none. */
version_t *publish_newest(const publish_t *self);
version_t *publish_oldest(const publish_t *self);

/*  Send a version on the PUB. */
tt_status_t publish_send(version_t *version, tt_sock_t *pub, uint32_t era, uint64_t generation);
/*  References to both frames (no copy of the bytes), for an answer; the caller owns frames[2]. */
void publish_frames(version_t *version, zmq_msg_t frames[2]);
