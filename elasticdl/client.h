/*  client - questions to a master, one at a time, from a process that has nothing else to do.
 *
 *  Threads: the caller's; no question waits longer than 15 s for its answer. */
#pragma once
#include <jansson.h>
#include "elasticdl/request.h"
#include "common/http/reactor.h"

typedef struct {
    char url[512];     /* without a slash at its end */
    const char *token; /* borrowed; NULL = none      */
    tt_reactor_t *loop;
} elasticdl_client_t;

/*  TT_USAGE: not a URL. */
tt_status_t elasticdl_client_open(elasticdl_client_t *self, const char *url, const char *token);
void elasticdl_client_close(elasticdl_client_t *self);

/*  The task as the master shows it; a new reference. TT_UNAVAILABLE: nobody answers, or it has no room; TT_INVALID: the master's words;
 *  TT_DENIED: it wants a token; TT_PROTOCOL: it is no master. */
tt_status_t elasticdl_client_create(elasticdl_client_t *self, const elasticdl_request_t *request, json_t **task);
/*  Look at it until it is over. *task is replaced by what it is then; fn sees each. TT_UNAVAILABLE: nobody has answered for 30 s; a master
 *  that another follows does not for a while. */
tt_status_t elasticdl_client_follow(
    elasticdl_client_t *self, json_t **task, void (*fn)(void *ctx, const json_t *task), void *ctx);
