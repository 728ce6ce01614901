/*  weights - the policy versions that have come and will be asked for: lag + 2 of them.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/net/net.h"
#include "common/base/status.h"

typedef struct {
    uint64_t version;
    zmq_msg_t params, norm;
} weights_version_t;

typedef struct {
    weights_version_t *at; /* [keep], unordered */
    size_t count, keep;
    size_t params_bytes, norm_bytes; /* what a version must have */
} weights_t;

void weights_init(weights_t *self, size_t keep, size_t params_bytes, size_t norm_bytes);
/*  Take a version's two frames (moved out). `need` is the oldest that will still be asked for: when there is no room, one
 *  before it goes first, then the one furthest beyond it, so that no number from the wire can keep out what is needed. A
 *  version that is there already, or is the first to go, is ignored.
 *  TT_PROTOCOL: frames of another size; nothing is taken. */
tt_status_t weights_add(weights_t *self, uint64_t version, uint64_t need, zmq_msg_t *frames, size_t frame_count);
/*  Exactly this version, NULL when it is not there. Borrowed until the next add. */
weights_version_t *weights_find(const weights_t *self, uint64_t version);
/*  The newest of `least` .. `most`, NULL when there is none. */
weights_version_t *weights_newest(const weights_t *self, uint64_t least, uint64_t most);
void weights_clear(weights_t *self);
void weights_free(weights_t *self);
