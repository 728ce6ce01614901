/*  http - the coordinator over HTTP: status, scale, stop, metrics, on 127.0.0.1 unless the config says otherwise.
 *
 *    GET  /healthz   "ok", without a token       GET  /status    the whole state, JSON (status.h)
 *    GET  /metrics   Prometheus' text format     POST /scale     {"collector": 3, "learner": 1}
 *    POST /stop      {"reason": "...", "now": false}
 *    GET  /weights   a snapshot as it lies there, the newest, or as the query says (weights.h)
 *
 *  Everything but /healthz wants "Authorization: Bearer <token>" (RUN_DIR/token, made when missing, or another file). A body is at
 *  most 64 KiB. Errors are {"error": text}. RUN_DIR/http.json names the URL while it is served.
 *
 *  The token is asked for before the body: what an unauthorised client sends is not kept. How long a client may take, and
 *  how many there may be: common/http/server.h.
 *
 *  Threads: one, that of the coordinator's loop. */
#pragma once
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct http http_t; /* opaque */

/*  Answers a request: fills out (JSON or text) and returns what came of it; the error text is tt_err_text(). verb: as in
 *  requests.h, or "metrics". */
typedef tt_status_t (*http_answer_fn)(void *ctx, const char *verb, const char *body, tt_buf_t *out);

/*  A file to be sent. */
typedef struct {
    char name[64];
    int fd;
    uint64_t size;
} http_file_t;

/*  Answers GET /weights; http owns out->fd then. query: behind the '?', "" = none. */
typedef tt_status_t (*http_weights_fn)(void *ctx, const char *query, http_file_t *out);

typedef struct {
    const char *address; /* "HOST:PORT", port 0 = any free one */
    const char *run_dir;
    const char *token; /* a file; NULL = RUN_DIR/token, made when missing */
    http_answer_fn answer;
    http_weights_fn weights;
    void *ctx;
    const tt_clock_t *clock;
} http_opts_t;

/*  TT_EXISTS: the port is in use; TT_INVALID: not an address; TT_IO: run directory; and as token_read. */
tt_status_t http_start(http_t **self_p, const http_opts_t *opts);
/*  Connections still open are closed. */
void http_stop(http_t **self_p);

/*  Call http_serve when this is readable (for tt_loop_fd), or http_due_ms have passed (-1 = not at all). */
int http_fd(const http_t *self);
int64_t http_due_ms(const http_t *self);
void http_serve(http_t *self);

/*  "http://127.0.0.1:40123"; borrowed. */
const char *http_url(const http_t *self);
