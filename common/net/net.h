/*  net - sockets that carry our messages, and the loop that serves them.
 *
 *  ZeroMQ underneath (CZMQ for context, certificates and authentication). Each socket has one owner thread, a
 *  high-water mark, a linger, a largest message and a reconnect interval of 2 ms. Nothing here waits without a deadline.
 *
 *  Endpoints: "ipc:///path" on one host, "tcp://address:port" between hosts (port `*` or 0 = any free one). A tcp
 *  endpoint that is not loopback is refused without keys (CURVE).
 *  Threads: create, use and destroy a socket or loop in one thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <zmq.h>
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/wire/msg.h"

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/*  One CURVE key pair per job: whoever has the file may join. The file is a ZeroMQ certificate (zcert), mode 0600; one
 *  that belongs to root may be readable for its group (0640), as in a Secret that Kubernetes mounts with fsGroup. */
typedef struct {
    char public_key[41], secret_key[41]; /* Z85 */
} tt_keys_t;

enum { TT_KEYS_TEXT = 256 };

tt_status_t tt_keys_create(tt_keys_t *out, const char *path); /* makes and writes; TT_EXISTS when the file is there */
tt_status_t tt_keys_read(tt_keys_t *out, const char *path);   /* TT_DENIED when others may read it                  */
tt_status_t tt_keys_make(tt_keys_t *out);                     /* a new pair, in memory                              */
/*  What such a file holds, for who keeps it elsewhere (a Secret's data "curve.key"). */
void tt_keys_text(const tt_keys_t *self, char out[TT_KEYS_TEXT]);

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

typedef enum { TT_ROUTER, TT_DEALER, TT_PUB, TT_SUB } tt_sock_type_t;

enum { TT_SOCK_BYTES = 8 << 20 }; /* default for max_bytes: larger than any header */

typedef struct {
    const char *name;      /* for logs and error texts: "segments"                        */
    const char *identity;  /* DEALER: who we are to the ROUTER, <= 63 bytes; NULL = none  */
    int hwm;               /* messages each way, a peer; 0 = 1000. They may all wait for a peer that stands still:
                              where frames are large, it says how many of them                */
    size_t max_bytes;      /* largest frame sent and accepted (a peer that sends a larger one is cut off);
                              0 = TT_SOCK_BYTES                                           */
    int linger_ms;         /* how long destroy may wait for unsent messages; 0 = not      */
    const tt_keys_t *keys; /* NULL = ipc and loopback only                                */
} tt_sock_opts_t;

typedef struct tt_sock tt_sock_t; /* opaque */

tt_status_t tt_sock_new(tt_sock_t **self_p, tt_sock_type_t type, const tt_sock_opts_t *opts);
void tt_sock_destroy(tt_sock_t **self_p);

/*  Bind; `actual` (may be NULL) gets the endpoint with its real port. TT_EXISTS: in use; TT_INVALID: not an endpoint;
 *  TT_DENIED: tcp that others can reach, without keys. One socket may be bound to ipc and tcp: CURVE is for tcp only. */
tt_status_t tt_sock_bind(tt_sock_t *self, const char *endpoint, char *actual, size_t size);
/*  Connecting succeeds before the peer is there. Connecting twice to one endpoint is a no-op. */
tt_status_t tt_sock_connect(tt_sock_t *self, const char *endpoint);
tt_status_t tt_sock_disconnect(tt_sock_t *self, const char *endpoint);

/*  A received message: header, sender (ROUTER) and raw frames. */
enum { TT_FRAMES_MAX = 2 };
typedef struct {
    tt_msg_t msg;
    char peer[64]; /* ROUTER: the sender's identity as text; see tt_peer_named */
    size_t frame_count;
    zmq_msg_t frame[TT_FRAMES_MAX]; /* owned; the receiver may zmq_msg_move them out */
} tt_packet_t;

/*  Did the sender name its socket? One that did is without a name all the same for what it had sent and nobody had read when a
 *  newer connection took its name over. */
bool tt_peer_named(const char *peer);

/*  Release what a packet holds. Safe on a zeroed or cleared one. */
void tt_packet_clear(tt_packet_t *self);

/*  Send a message (any message struct) with raw frames; never blocks. Frames are consumed (empty afterwards) on TT_OK
 *  and untouched otherwise: to keep one, zmq_msg_copy it first (a reference, no copy of the bytes).
 *  peer: ROUTER only. TT_AGAIN: high-water mark reached; TT_UNAVAILABLE: ROUTER has no such peer (any more). */
tt_status_t tt_sock_send(tt_sock_t *self, const char *peer, const void *msg, zmq_msg_t *frames, size_t frame_count);

/*  Receive one; never blocks. TT_AGAIN: nothing there. TT_PROTOCOL: dropped a message that breaks the rules (counted;
 *  the text names peer, message, field); the caller may go on. `out` is cleared first. */
tt_status_t tt_sock_recv(tt_sock_t *self, tt_packet_t *out);
uint64_t tt_sock_violations(const tt_sock_t *self);

/*  A frame of `size` bytes, 64-byte aligned, to be filled and sent. */
void tt_frame_new(zmq_msg_t *out, size_t size);
/*  Let go of a reference to a frame and leave it empty: zmq_msg_close, told to ThreadSanitizer. */
void tt_frame_close(zmq_msg_t *frame);
/*  A frame around memory of the caller's, given back through done(memory, hint) from ZeroMQ's thread. */
void tt_frame_wrap(zmq_msg_t *out, void *memory, size_t size, void (*done)(void *memory, void *hint), void *hint);

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

typedef struct tt_loop tt_loop_t; /* opaque */

/*  Handlers run in the loop's thread, may change what the loop serves, and must not poll it. A status other than TT_OK
 *  ends tt_loop_poll with it. */
typedef tt_status_t (*tt_on_packet_fn)(void *ctx, tt_sock_t *sock, tt_packet_t *packet); /* may take frames */
typedef tt_status_t (*tt_on_fd_fn)(void *ctx, int fd);
typedef tt_status_t (*tt_on_timer_fn)(void *ctx);

/*  `clock` (NULL = the real one) is for timers; under a fake one a waiting loop looks at it every 2 ms. */
tt_status_t tt_loop_new(tt_loop_t **self_p, const tt_clock_t *clock);
void tt_loop_destroy(tt_loop_t **self_p);
/*  Serve a socket / a readable file descriptor / a timer (first after after_ms, then each every_ms, 0 = once; or once, when
 *  the loop's clock shows due_ns). Borrowed. */
void tt_loop_sock(tt_loop_t *self, tt_sock_t *sock, tt_on_packet_fn fn, void *ctx);
void tt_loop_fd(tt_loop_t *self, int fd, tt_on_fd_fn fn, void *ctx);
int tt_loop_timer(tt_loop_t *self, int64_t after_ms, int64_t every_ms, tt_on_timer_fn fn, void *ctx);
int tt_loop_timer_at(tt_loop_t *self, int64_t due_ns, tt_on_timer_fn fn, void *ctx);
void tt_loop_forget_sock(tt_loop_t *self, tt_sock_t *sock);
void tt_loop_forget_fd(tt_loop_t *self, int fd);
void tt_loop_forget_timer(tt_loop_t *self, int timer);

/*  Handle everything that is ready; when nothing is, wait at most timeout_ms (0 = just look: about 1 us) for something;
 *  the loop's clock, or the real one, whichever gets there first.
 *  TT_OK: something was handled; TT_AGAIN: nothing was (or a signal came); else what a handler returned. Handles at most
 *  1024 packets. A message that breaks the rules is logged and dropped. */
tt_status_t tt_loop_poll(tt_loop_t *self, int64_t timeout_ms);
