/*  resolve - the name in an endpoint as an address.
 *
 *  libzmq could do that itself, but in its I/O thread, which carries the experience too: a name server that does not
 *  answer would stop the training. Whoever connects by a name looks it up here, in a thread of its own choice, each time
 *  that it connects anew: what is behind the name may have moved.
 *
 *  Threads: any; waits for name servers (seconds, when they do not answer). */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

/*  "tcp://HOST:PORT" into its parts; an IPv6 address stands in brackets, and loses them. TT_USAGE: it is not that. */
tt_status_t tt_endpoint_split(const char *endpoint, char host[256], char port[16]);

/*  "tcp://name:port" -> "tcp://10.1.2.3:port" or "tcp://[fd00::3]:port", IPv4 first. Endpoints with an address, ipc ones
 *  and "*" are copied. TT_NOT_FOUND: the name has no address (yet). TT_USAGE: no endpoint, or it does not fit. */
tt_status_t tt_resolve(const char *endpoint, char *out, size_t size);
