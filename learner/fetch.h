/*  fetch - answers to FETCH: at once when possible, else when it has become possible.
 *
 *  fetch.c alone reads and writes fetch_t.
 *  Threads: the learner's. */
#pragma once
#include "common/net/net.h"

typedef struct core core_t;

/*  A FETCH that has no answer yet. */
typedef struct {
    char peer[64];
    tt_msg_FETCH_t msg;
} pending_t;

typedef struct {
    pending_t *pending;
    size_t count;
} fetch_t;

void fetch_take(core_t *core, const char *peer, const tt_msg_FETCH_t *msg);
/*  Look at all that wait: called whenever an answer may have become possible. */
void fetch_retry(core_t *core);
void fetch_close(fetch_t *self);

/*  Send an answer. TT_OK: answered, or nobody is there to hear it; TT_AGAIN: not yet. gone: there will be no answer. */
tt_status_t fetch_send(core_t *core, const pending_t *to, tt_msg_FETCHED_t *answer, zmq_msg_t *frames, size_t count);
tt_status_t fetch_gone(core_t *core, const pending_t *to);
