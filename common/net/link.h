/*  link - a process's line to the coordinator: HELLO, heartbeats, reconnection, and the messages that come back.
 *
 *  A thread of its own owns the DEALER, so that a busy or stuck role still says that it lives, and what it does. Messages
 *  pass between it and the role through mailboxes (mutex + eventfd).
 *
 *  Threads: everything here is called from the role's thread, but for tt_link_send, tt_link_state and
 *  tt_link_progress (any). */
#pragma once
#include "common/net/net.h"

typedef struct {
    const char *endpoint;  /* of the coordinator's control socket, ipc or tcp       */
    const tt_keys_t *keys; /* needed for tcp; NULL = none                           */
    tt_peer_role_t role;
    int index; /* -1 = let the coordinator choose                       */
    const char *data_ipc, *data_tcp, *weights_ipc, *weights_tcp; /* what we bound; NULL = nothing */
    uint32_t memory;      /* descriptor, plus 1, of what others on this host may read (common/base/memfd.h); 0 = none */
    int hello_timeout_ms; /* no WELCOME for so long: TT_TIMEOUT from tt_link_next; 0 = 30 s */
    int patience_ms;      /* for the first WELCOME, and how long a coordinator may be silent; 0 = 30 s, ten leases */
    const char *pod;      /* "namespace/name" of our pod; NULL or "" = not in one  */
    const tt_clock_t *clock; /* NULL = real                                           */
} tt_link_opts_t;

typedef struct tt_link tt_link_t; /* opaque */

/*  Start the thread; returns at once. Options are copied. */
tt_status_t tt_link_start(tt_link_t **self_p, const tt_link_opts_t *opts);
/*  Send what is queued (at most 500 ms), end the thread, free. */
void tt_link_destroy(tt_link_t **self_p);
/*  The same where the coordinator has ended: what is queued is nobody's. */
void tt_link_abandon(tt_link_t **self_p);

/*  Readable when tt_link_next has something (for tt_loop_fd). */
int tt_link_fd(const tt_link_t *self);

/*  The next message from the coordinator (heartbeats are kept inside): WELCOME, ROSTER, DRAIN, STOP, SCALE, STATS, EVENT,
 *  REPLY. After a coordinator's restart WELCOME and ROSTER come again. TT_AGAIN: none now. TT_DENIED: REFUSED (text = its
 *  reason). TT_UNAVAILABLE: the coordinator has been silent for ten leases (or patience_ms): give up. TT_TIMEOUT: see hello_timeout_ms.
 *  TT_PROTOCOL: the coordinator speaks another wire version. */
tt_status_t tt_link_next(tt_link_t *self, tt_packet_t *out);
/*  Hand on all that have come, for a role's loop. The packet is cleared after each call; fn may take what it holds and
 *  leave it zeroed. TT_OK: none are left; else what fn said (the rest stays for the next call), or how the link ended. */
typedef tt_status_t (*tt_link_fn)(void *ctx, tt_packet_t *packet);
tt_status_t tt_link_each(tt_link_t *self, tt_link_fn fn, void *ctx);
/*  Wait for the next one, for tests and simple clients. */
tt_status_t tt_link_wait(tt_link_t *self, tt_packet_t *out, int64_t timeout_ms);

/*  Queue a message for the coordinator (kept and sent again after a reconnect when it is not STATS or HEARTBEAT). */
tt_status_t tt_link_send(tt_link_t *self, const void *msg);

/*  What this process does or waits for, for heartbeats; cheap enough for every batch. progress must grow. */
void tt_link_state(tt_link_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tt_link_progress(tt_link_t *self, uint64_t progress);
/*  What the role's time has gone to since the process started, for heartbeats (common/base/laps.h): names[count], which
 *  stay borrowed, and nanoseconds. As cheap as the above. */
void tt_link_spent(tt_link_t *self, const char *const *names, const int64_t *spent_ns, size_t count);

/*  What HELLO says when it must be said again: a learner that holds weights, the roster we act on. When `holds` changes,
 *  a heartbeat says so at once: who holds weights decides whether the run must roll back when another learner dies. */
void tt_link_holds(tt_link_t *self, bool holds, uint64_t update, uint32_t era, uint64_t generation);

/*  A learner without weights that could take part at once: heartbeats say so from now on, the first of them at once. */
void tt_link_warm(tt_link_t *self, bool warm);

/*  The roster that we act on from now on, for HELLO: a coordinator that lost its journal learns from it where the run is. */
void tt_link_roster(tt_link_t *self, const tt_msg_ROSTER_t *roster);

/*  Where the coordinator is, as far as we know (any thread): an endpoint with an address, where its name was one. */
void tt_link_where(const tt_link_t *self, char *out, size_t size);
/*  For how long the coordinator has said nothing (any thread). */
int64_t tt_link_silence_ms(const tt_link_t *self);

/*  Our number (after WELCOME), our instance, and whether we came over tcp (then tcp endpoints of the roster are used). */
uint32_t tt_link_index(const tt_link_t *self);
uint64_t tt_link_instance(const tt_link_t *self);
bool tt_link_remote(const tt_link_t *self);
