/*  ask - questions (FETCH) to another learner: one at a time, asked again until it is answered.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/net/net.h"
#include "learner/view.h"

typedef struct {
    tt_loop_t *loop; /* borrowed */
    const tt_keys_t *keys;
    const char *name; /* behind our identity, where more than one leads to the same learner; NULL = "" */
    uint32_t index;   /* of this learner */
    uint64_t instance;
    int64_t repeat_ms;
    const tt_clock_t *clock;
} ask_cfg_t;

typedef struct ask ask_t; /* opaque */

ask_t *ask_new(const ask_cfg_t *cfg);
void ask_destroy(ask_t **self_p);

/*  Ask `whom` the question (its id is ours to set), or look whether the answer has come: the same question is sent again
 *  only after repeat_ms, or to another process. TT_OK: *out is the FETCHED that answers it (the caller clears it);
 *  TT_AGAIN: not yet. */
tt_status_t ask_for(ask_t *self, const view_peer_t *whom, const tt_msg_FETCH_t *question, tt_packet_t *out);
