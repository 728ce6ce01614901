/*  client - one question or order to the coordinator of a live run, over its control socket.
 *
 *  Threads: starts and ends a link's thread inside each call. */
#pragma once
#include <jansson.h>
#include "controller/rundir.h"

/*  Send REQUEST verb with body (JSON text or ""), wait for the REPLY. *out (may be NULL): its body parsed, new reference.
 *  TT_UNAVAILABLE: the run is not running, or is ending, or ended before it answered, or its coordinator did not answer within
 *  timeout_ms; else what the reply says, with its words. */
tt_status_t tt_client_ask(const tt_rundir_t *run, const char *verb, const char *body, int timeout_ms, json_t **out);
