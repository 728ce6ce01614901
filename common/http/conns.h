/*  conns - the connections of a server, and how long each may hold its place.
 *
 *  A client has READ_MS from connecting, or from its last answer, until its request is here whole, and WRITE_MS to take
 *  the answer, and a second more for each WRITE_BYTES of it; how often it sends or takes a byte meanwhile does not matter. While the answer is made, the client is not
 *  the one who is late: nothing is due then. Who is over its time is cut off by shutdown(2), and libmicrohttpd finds it
 *  closed.
 *
 *  Threads: an instance belongs to one thread. Time is the caller's. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { CONN_READ_MS = 10000, CONN_WRITE_MS = 30000, CONN_WRITE_BYTES = 1 << 20 };

typedef enum {
    CONN_READING, /* nothing, or a part of a request, has come */
    CONN_WAITING, /* the request is here, its answer is not    */
    CONN_WRITING, /* the client takes the answer               */
    CONN_CUT      /* shut down by us, not closed yet           */
} conn_phase_t;

typedef struct conn conn_t;
struct conn {
    int fd; /* borrowed */
    conn_phase_t phase;
    int64_t since_ms; /* of the phase */
    int64_t write_ms; /* CONN_WRITING: so long it may take */
    conn_t *next;
};

typedef struct {
    conn_t *first;
    size_t open; /* those that are not cut */
} conns_t;

conn_t *conns_add(conns_t *self, int fd, int64_t now_ms);
/*  The connection is closed; *conn_p is freed. NULL is fine. */
void conns_remove(conns_t *self, conn_t **conn_p);
void conn_enter(conn_t *self, conn_phase_t phase, int64_t now_ms);
/*  CONN_WRITING, an answer of `size` bytes. */
void conn_write(conn_t *self, uint64_t size, int64_t now_ms);

/*  Cut off who is over its time. */
void conns_expire(conns_t *self, int64_t now_ms);
/*  Cut off clients that are read or written, the one that has been for the longest time first, until `most` are open or
 *  none of them is left: who connects next finds a place. */
void conns_make_room(conns_t *self, size_t most);
/*  When conns_expire finds somebody; INT64_MAX = never. */
int64_t conns_due_ms(const conns_t *self);
