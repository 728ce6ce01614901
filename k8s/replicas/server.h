/*  server - a small HTTP server on a loop: a request comes as a call, its answer may come later.
 *
 *  libmicrohttpd in external-epoll mode with suspended connections; loaded when first used (common/http/mhd.h).
 *  Threads: one, that of the loop which watches server_fd. Limits: 256 connections, 64 KiB a body (413 beyond), 10 s idle,
 *  30 s to answer (then 503). With more than half of the connections open, each is closed after its answer. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

typedef struct server server_t; /* opaque */

typedef struct {
    uint64_t id;                       /* for server_reply */
    const char *method, *path, *query; /* query: as it came, behind the '?', "" = none */
    const char *body;                  /* ends with a 0 byte */
    size_t size;
    const char *peer; /* "10.0.0.7" */
} server_request_t;   /* borrowed until the call returns */
typedef void (*server_fn)(void *ctx, const server_request_t *request);

/*  "HOST:PORT" with an address, port 0 = any free one; "[::]:8080", ":8080" = every address. TT_EXISTS: in use. */
tt_status_t server_start(server_t **self_p, const char *address, server_fn fn, void *ctx);
/*  Connections still open are closed. */
void server_stop(server_t **self_p);
int server_fd(const server_t *self);
int server_port(const server_t *self);
/*  Call it when server_fd is readable, or server_due_ms have passed. */
void server_serve(server_t *self);
/*  So many ms from now server_serve is wanted though nothing is readable; -1 = not at all. */
int64_t server_due_ms(const server_t *self);
/*  From within fn or later; a number that is not waited for any more is fine. Content type "application/json" etc. */
void server_reply(server_t *self, uint64_t id, int code, const char *content_type, const char *body, size_t size);
