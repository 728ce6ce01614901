/*  agent - what runs in every pod of a task: an HTTP server beside the program that trains.
 *
 *      POST /config    JSON with NUM_WORKERS and TF_CONFIG            200 OK; 400 with words; 409 while the program runs
 *      GET  /run       start the program                               200 OK at once; 409: not configured, or it runs; 500: it cannot be started
 *      GET  /status    ?tail=BYTES (16 KiB), ?wait_ms=N                {"state", "exit_code", "reason", "log", "member"}
 *      GET  /healthz
 *
 *  A /status with wait_ms of at most 20,000 that finds the program running is answered when that ends, or when the time is over: so its
 *  end is known at once and nobody has to ask often.
 *
 *  Threads: one. */
#pragma once
#include "elasticdl/workload.h"

typedef struct {
    const char *listen;   /* "ADDRESS:PORT" (common/http/server.h)                                           */
    const char *token;    /* a request has to bring it; NULL = none                                          */
    const char *announce; /* a folder: agent.json with "url" and "pid" is there once it serves; NULL = not   */
    const char *member;   /* who this is, for /status; NULL = ""                                             */
    int grace_ms;         /* from SIGTERM to the program until SIGKILL                                       */
    int stop_fd;          /* tt_signals_open_parent                                                          */
    workload_opts_t workload;
} elasticdl_agent_opts_t;

enum { ELASTICDL_WAIT_MS = 20000 }; /* the longest wait_ms */

/*  Serve until SIGTERM, SIGINT or SIGHUP; the program is ended before it returns. TT_EXISTS: the address is in use; TT_INVALID,
 *  TT_UNSUPPORTED, TT_NOT_FOUND, TT_IO, TT_OS. */
tt_status_t elasticdl_agent_run(const elasticdl_agent_opts_t *opts);
