/*  call - one HTTP request to an agent or a master, on a loop. libcurl, loaded when the first is made.
 *
 *  Threads: the loop's. */
#pragma once
#include "common/http/reactor.h"

typedef struct call call_t; /* opaque */

/*  code: of HTTP; 0 = no answer, and text says why. Text ends with a 0 byte; borrowed. The call is over: it frees itself. */
typedef void (*call_fn)(void *ctx, int code, const char *text);

typedef struct {
    const char *url;
    const char *body;  /* POST; NULL = GET */
    const char *token; /* NULL = none      */
    int timeout_ms;
    call_fn fn;
    void *ctx;
} call_opts_t; /* strings are copied */

enum { CALL_ANSWER = 4 << 20 }; /* the largest answer; a longer one is none */

/*  fn is called once, from the loop, unless the call is cancelled. TT_UNSUPPORTED: libcurl is not installed. */
tt_status_t call_start(call_t **self_p, tt_reactor_t *loop, const call_opts_t *opts);
/*  fn will not be called. NULL is fine. */
void call_cancel(call_t **self_p);
