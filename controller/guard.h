/*  guard - a second process that outlives kill -9 of the first.
 *
 *  `tutti run` is two processes: the one that the user's shell waits for (the guard) and its child, which holds the
 *  controller. Each is a child subreaper, so whoever survives the other ends everything below it: no process is left
 *  behind, whichever of the two is killed.
 *
 *  Threads: call before any thread or ZeroMQ context exists. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/status.h"

/*  Fork. Returns TT_OK in the child only. The parent passes SIGINT, SIGTERM, SIGHUP and SIGQUIT on (those of the
 *  terminal reach the child anyway), waits, ends whatever is left below it, calls lost(ctx, signal) if the child was
 *  killed by a signal, and exits with the child's code (128 + signal). If the parent dies the child gets SIGTERM. */
tt_status_t tt_guard_enter(void (*lost)(void *ctx, int signal), void *ctx);

/*  In the child: has the guard died? */
bool tt_guard_gone(void);

/*  Requests to end that came as signals. One may come in two ways: timeout(1) signals the guard and then the group of both,
 *  and the guard passes its share on when it gets to it. Zeroed: nobody has asked. */
typedef struct {
    int64_t at_ms[2]; /* when it came directly, when by the guard; 0 = it did not */
} tt_asked_t;

typedef enum { TT_ASKED_FIRST, TT_ASKED_ECHO, TT_ASKED_TWICE } tt_asking_t;

/*  sender: of the signal. now_ms > 0. ECHO: of the request that is known already. TWICE: it is meant seriously. */
tt_asking_t tt_asked(tt_asked_t *self, int sender, int64_t now_ms);
