/*  http - the coordinator over HTTP: status, scale, stop, metrics, on 127.0.0.1 unless the config says otherwise.
 *
 *    GET  /healthz   "ok", without a token       GET  /status    the whole state, JSON (status.h)
 *    GET  /metrics   Prometheus' text format     POST /scale     {"collector": 3, "learner": 1}
 *    POST /stop      {"reason": "...", "now": false}
 *
 *  Everything but /healthz wants "Authorization: Bearer <RUN_DIR/token>" (mode 0600, made when missing). A body is at
 *  most 64 KiB. Errors are {"error": text}. RUN_DIR/http.json names the URL while it is served.
 *
 *  Threads: the server runs in a thread of its own that knows nothing of the coordinator: it puts a request into a slot
 *  (mutex, eventfd) and waits, with a deadline, for the loop's thread to answer it in http_serve. Everything below is
 *  called from the loop's thread. */
#pragma once
#include "common/base/buf.h"
#include "common/base/status.h"

typedef struct http http_t; /* opaque */

/*  Serve at "HOST:PORT" (port 0 = any free one). TT_EXISTS: in use; TT_INVALID: not an address; TT_IO: run directory. */
tt_status_t http_start(http_t **self_p, const char *address, const char *run_dir);
/*  Ends the thread; a request that waits is answered with 503. */
void http_stop(http_t **self_p);

/*  Readable when a request waits (for tt_loop_fd). */
int http_fd(const http_t *self);
/*  Answers the request that waits, if one does. `answer` fills out (JSON or text) and returns what came of it; the error
 *  text is tt_err_text(). verb: as in requests.h, or "metrics". */
typedef tt_status_t (*http_answer_fn)(void *ctx, const char *verb, const char *body, tt_buf_t *out);
void http_serve(http_t *self, http_answer_fn answer, void *ctx);

/*  "http://127.0.0.1:40123"; borrowed. */
const char *http_url(const http_t *self);
