/*  reactor - what a client of servers waits for: transfers, file descriptors, timers. One thread, one libcurl multi handle.
 *
 *  The loop of common/net is for who has ZeroMQ's sockets, and knows no transfers.
 *  Threads: everything from the thread that runs the loop, but for tt_reactor_wake (any). Handlers may add and forget
 *  anything at any time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct tt_reactor tt_reactor_t; /* opaque */
typedef void (*tt_timer_fn)(void *ctx);
typedef void (*tt_fd_fn)(void *ctx, int fd);

/*  `clock` (NULL = the real one) is for timers. libcurl is loaded when the first client is made. */
tt_status_t tt_reactor_new(tt_reactor_t **self_p, const tt_clock_t *clock);
void tt_reactor_destroy(tt_reactor_t **self_p);

/*  Call fn once, after_ms from now; never from within this call. The number is never 0 and never used again. A heap:
 *  ten thousand timers are fine. Forgetting one that has fired, or 0, does nothing. */
uint64_t tt_reactor_timer(tt_reactor_t *self, int64_t after_ms, tt_timer_fn fn, void *ctx);
/*  The same for the end of a belief, such as a lease: of a turn in which both are due it comes before what is ready, and before libcurl
 *  sends anything. The other kind comes after that, since a deadline is for what has not come: after a stop all answers are there at once. */
uint64_t tt_reactor_timer_before(tt_reactor_t *self, int64_t after_ms, tt_timer_fn fn, void *ctx);
/*  Of either kind. */
void tt_reactor_forget_timer(tt_reactor_t *self, uint64_t timer);
/*  Call fn whenever fd is readable. Borrowed. */
void tt_reactor_fd(tt_reactor_t *self, int fd, tt_fd_fn fn, void *ctx);
void tt_reactor_forget_fd(tt_reactor_t *self, int fd);

/*  Handle what is ready; wait for it at most timeout_ms (-1 = for ever), and no longer than until the next timer. Returns
 *  after one turn, with or without anything done. Not from within a handler. TT_OS. */
tt_status_t tt_reactor_poll(tt_reactor_t *self, int64_t timeout_ms);
/*  Make a poll that waits return, from any thread or a signal handler. */
void tt_reactor_wake(tt_reactor_t *self);
const tt_clock_t *tt_reactor_clock(const tt_reactor_t *self);
