/*  server - a small HTTP server on a loop: a request comes as a call, its answer may come later.
 *
 *  libmicrohttpd in external-epoll mode with suspended connections; loaded when first used (mhd.h).
 *  Threads: one, that of the loop which watches tt_server_fd.
 *
 *  GET /healthz is answered here, always and at once: that the loop turns is what it says.
 *
 *  Limits. A body is at most 64 KiB (413 beyond); a request that is refused has its body thrown away as it comes, to 1 MiB,
 *  so that the client can read why. A client has 10 s to bring a request whole, and 30 s to take the answer, and a second a MiB
 *  (conns.h); an answer that is not made in answer_ms is 503. A place is always free: when nearly all connections are open, the client that
 *  has been at its request or its answer for the longest time is cut off, and no more than half of them may wait for an
 *  answer (503 beyond). With more than half open, each is closed after its answer. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct tt_server tt_server_t; /* opaque */

typedef struct {
    uint64_t id;                       /* for tt_server_reply */
    const char *method, *path, *query; /* query: as it came, behind the '?', "" = none */
    const char *authorization;         /* of the header; NULL = none                   */
    const char *body;                  /* ends with a 0 byte; "" for on_head           */
    size_t size;
    const char *peer;  /* "10.0.0.7" */
} tt_server_request_t; /* borrowed until the call returns */
typedef void (*tt_server_fn)(void *ctx, const tt_server_request_t *request);

typedef struct {
    const char
        *address; /* "HOST:PORT" with a numeric address or localhost, port 0 = any free one; "[::]:8080", ":8080" =
                             every address                                                                               */
    uint32_t
        connections; /* 0 = 512                                                                                     */
    tt_server_fn
        on_head; /* the head of a request is here, its body is not: who replies now refuses to read that. NULL: all
                             bodies are read                                                                             */
    tt_server_fn on_request; /* a request is here as a whole     */
    void *ctx;
    const char *healthz;     /* what GET /healthz says, a constant; NULL = "ok\n"   */
    uint32_t answer_ms;      /* until an answer that is not made is 503; 0 = 30 s */
    const tt_clock_t *clock; /* of all deadlines; NULL = the real one */
} tt_server_opts_t;

/*  TT_INVALID: not an address; TT_EXISTS: in use; TT_UNSUPPORTED: no libmicrohttpd; TT_OS. */
tt_status_t tt_server_start(tt_server_t **self_p, const tt_server_opts_t *opts);
/*  Connections still open are closed. */
void tt_server_stop(tt_server_t **self_p);
int tt_server_fd(const tt_server_t *self);
int tt_server_port(const tt_server_t *self);
/*  Call it when tt_server_fd is readable, or tt_server_due_ms have passed. */
void tt_server_serve(tt_server_t *self);
/*  Requests that on_request has and whose answers are not out yet. */
size_t tt_server_pending(const tt_server_t *self);
/*  So many ms from now tt_server_serve is wanted though nothing is readable; -1 = not at all. */
int64_t tt_server_due_ms(const tt_server_t *self);
/*  From within on_head or on_request, or later than that; a number that is not waited for any more is fine. Content type
 *  "application/json" etc. */
void tt_server_reply(tt_server_t *self, uint64_t id, int code, const char *content_type, const char *body, size_t size);
/*  200 with the first `size` bytes of a file, which goes out in pieces as the client takes it: no memory grows with it. It must
 *  not be written to meanwhile; its name may go. name: as which it is to be saved, letters, digits, '.', '-'. Takes fd. */
void tt_server_reply_file(tt_server_t *self, uint64_t id, const char *name, int fd, uint64_t size);
