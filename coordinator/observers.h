/*  observers - who is connected without taking part: controllers and clients of the command line.
 *
 *  Controllers get SCALE, EVENT and STATS; clients do once they asked to watch. STATS is passed on at most 20 times a
 *  second, the newest always.
 *  Threads: the coordinator's. */
#pragma once
#include "common/base/clock.h"
#include "common/wire/msg.h"

typedef struct observers observers_t; /* opaque */

observers_t *observers_new(const tt_clock_t *clock, int64_t lease_ns);
void observers_destroy(observers_t **self_p);

/*  Its HELLO; index = its number. TT_DENIED: too many of them. */
tt_status_t observers_hello(
    observers_t *self, const char *identity, void *sock, const tt_msg_HELLO_t *hello, uint32_t *index);
/*  A message came from it; false: it has not said HELLO. */
bool observers_heard(observers_t *self, const char *identity);
tt_peer_role_t observers_role(const observers_t *self, const char *identity); /* TT_PEER_NONE: unknown */
void observers_watch(observers_t *self, const char *identity);
void observers_leave(observers_t *self, const char *identity);

/*  EVENT or SCALE to all who listen; what only controllers can do, to them alone. */
void observers_tell(observers_t *self, const void *msg);
void observers_order(observers_t *self, const void *msg);
/*  The newest STATS, packed away; goes out now or when observers_flush finds it due. Borrowed for the call. */
void observers_stats(observers_t *self, const tt_msg_STATS_t *stats);
/*  Send what is due, drop who has been silent for a lease. Returns when it wants to be called again. */
int64_t observers_flush(observers_t *self, bool now);

/*  Number of controllers. */
size_t observers_controllers(const observers_t *self);
