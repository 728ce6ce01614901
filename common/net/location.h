/*  location - where a role sits: how it reaches the coordinator, where it binds its own sockets, and by which clock it goes.
 *
 *  `--run DIR`: everything on ipc in DIR/sock (which may be a link to a shorter path); with a bind address tcp as well, so
 *  that roles on other hosts can reach it. `--coordinator tcp://HOST:PORT --key FILE`: tcp only. In a pod
 *  (docs/internals/pods.md) that, with the patience that a scheduler asks for.
 *
 *  Threads: plain data; one thread at a time. */
#pragma once
#include "common/net/link.h"
#include "common/net/net.h"

typedef struct {
    tt_peer_role_t role;
    int index;         /* -1: the coordinator chooses                       */
    char control[300]; /* the coordinator's endpoint                        */
    char dir[256];     /* of our ipc sockets; "" = none                     */
    char bind[128];    /* our address for tcp; "" = none                    */
    char pod[320];     /* "namespace/name" of our pod; "" = not in one      */
    bool secure;       /* keys are set                                      */
    tt_keys_t keys;
    const tt_clock_t *clock; /* of all that the role does; borrowed         */
} tt_location_t;

/*  What the command line said; NULL = not given. */
typedef struct {
    const char *run, *coordinator, *key, *bind;
    const char *pod;
    const tt_clock_t *clock; /* the real one, where no test gives another */
} tt_location_args_t;

/*  TT_USAGE: neither or both of run and coordinator, tcp without a key; TT_NOT_FOUND: no such run directory, or it has no
 *  sockets; TT_DENIED and others: the key file. Without a bind address a role on tcp takes the address that leads to the
 *  coordinator. */
tt_status_t tt_location_take(tt_location_t *self, tt_peer_role_t role, int index, const tt_location_args_t *args);

/*  The keys for sockets and link, NULL when there are none. */
const tt_keys_t *tt_location_keys(const tt_location_t *self);
/*  What this location says of the link to the coordinator; endpoints of our own are the role's to add. Borrows from self. */
tt_link_opts_t tt_location_link(const tt_location_t *self);

/*  Bind a socket wherever this location binds. `name` tells sockets of one role apart: "data", "weights".
 *  ipc and tcp [256] get the endpoints for HELLO, "" where there is none. */
tt_status_t tt_location_bind(const tt_location_t *self, tt_sock_t *sock, const char *name, char *ipc, char *tcp);
/*  Remove the socket files that tt_location_bind made. */
void tt_location_leave(const char *ipc);

/*  The endpoint at which this location reaches a member: ipc when we share its host, else tcp. TT_UNAVAILABLE: it has none. */
tt_status_t tt_location_reach(const tt_location_t *self, const char *ipc, const char *tcp, const char **out);
