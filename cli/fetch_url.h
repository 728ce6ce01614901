/*  fetch_url - the weights of a living run from its coordinator, over HTTP (coordinator/http.h).
 *
 *  What comes is kept in a file without a name beside the output until it is whole and checked, so nothing is left behind, however
 *  this ends. The coordinator does not read what it sends: where the newest is damaged, the one before it is asked for.
 *
 *  Threads: the caller's; waits at most ten seconds for a connection, thirty for the next bytes. */
#pragma once
#include <stdbool.h>
#include "cli/handout.h"

typedef struct {
    const char *url;    /* "http://HOST:PORT", or of a proxy before it                       */
    const char *token;  /* a file; NULL = the text in the environment's TUTTI_TOKEN          */
    const char *output; /* where it will go to; "-" = stdout                                 */
    bool best;          /* the best (cli/weights.h), not the newest                          */
} fetch_url_t;

bool fetch_is_url(const char *operand);
/*  *out: checked. TT_USAGE: the URL, or no token; TT_DENIED: a wrong token; TT_NOT_FOUND: no weights yet; TT_UNAVAILABLE: nobody
 *  answers, or it broke off; TT_DATA: none is whole; TT_IO. handout_free is due in any case. */
tt_status_t fetch_url(handout_t *out, const fetch_url_t *opts);
