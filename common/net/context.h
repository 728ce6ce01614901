/*  context - the process's one ZeroMQ context: made for its first socket, ended with its last.
 *
 *  So a process that opens no socket starts no thread, one that has closed its sockets may fork, and nothing is left for
 *  exit to wait for. Inside tt_net only.
 *  Threads: any. */
#pragma once
#include "common/base/status.h"

/*  The context, held until tt_context_drop. */
void *tt_context_hold(void);
/*  Let go of it. The last one ends it, and waits for messages within their sockets' linger. */
void tt_context_drop(void);

/*  From now on peers that speak CURVE to our sockets must hold the key that their ZAP domain names (ZeroMQ RFC 27: we set
 *  the job's public key as the domain). Call while holding the context, before the socket is bound. */
tt_status_t tt_context_guard(void);
