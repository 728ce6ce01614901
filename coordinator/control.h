/*  control - the coordinator's control sockets: one ROUTER on ipc in the run directory, one on tcp when asked for.
 *
 *  Threads: the coordinator's. */
#pragma once
#include "common/net/net.h"
#include "coordinator/roster.h"

typedef struct control control_t; /* opaque */

typedef struct {
    const char *run_dir;
    const char *listen; /* "" = this host only                                          */
    const char *key;    /* file; NULL = RUN_DIR/key, which is made when missing         */
    tt_on_packet_fn on_packet;
    void *ctx;
} control_opts_t;

/*  Bind RUN_DIR/sock/control (the directory is made when missing; a link to a short private one when its path is too
 *  long for a socket) and `listen` with the job's keys. Packets go to on_packet.
 *  TT_EXISTS: another coordinator has the run directory, or the port is in use. */
tt_status_t control_open(control_t **self_p, tt_loop_t *loop, const control_opts_t *opts);
/*  Waits up to half a second until what was sent has gone out. */
void control_close(control_t **self_p);

/*  Where other hosts reach us: "tcp://...", "" = nowhere. Borrowed. */
const char *control_listen(const control_t *self);

/*  Is this the socket for other hosts? */
bool control_is_tcp(const control_t *self, const tt_sock_t *sock);

/*  Send to one identity. false: it is not there, or does not read (logged at debug). */
bool control_send(void *sock, const char *identity, const void *msg);

/*  Send the newest roster to every peer that has not got it, and tell victims to leave. */
void control_announce(roster_t *roster);
/*  The same for one peer, after its HELLO or heartbeat. */
void control_tell(const roster_t *roster, peer_t *peer);
/*  STOP to every peer. */
void control_stop(roster_t *roster, const char *reason, uint32_t code);
