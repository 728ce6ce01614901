/*  requests - what the command line and HTTP may ask of a running job: status, scale, stop, watch, snapshot.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "common/base/buf.h"
#include "coordinator/ends.h"

/*  Answer one. `identity`: of the observer that asks, NULL over HTTP. out gets JSON on TT_OK; otherwise tt_err_text() is
 *  for the person who asked.
 *    status               -> the whole state (status.h)
 *    scale {"collector":3, "learner":1} -> {"collector":{"desired":3,"ready":2}, ...}
 *    stop {"reason":"...", "code":130, "now":false} -> {}; each may be left out; no code over HTTP
 *    watch                -> {}; STATS, EVENT and SCALE follow; not over HTTP
 *    snapshot             -> the newest complete snapshot
 *  TT_USAGE: unknown verb; TT_INVALID: body is not what the verb takes, or out of range; TT_NOT_FOUND: no snapshot yet;
 *  TT_STOPPED: the run is ending. */
tt_status_t requests_answer(
    coordinator_t *self, const char *identity, const char *verb, const char *body, tt_buf_t *out);
