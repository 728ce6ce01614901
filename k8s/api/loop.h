/*  loop - what an operator waits for: transfers, file descriptors, timers. One thread, one libcurl multi handle.
 *
 *  Threads: everything from the thread that runs the loop, but for kube_loop_wake (any). Handlers may add and forget
 *  anything at any time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/clock.h"
#include "common/base/status.h"

typedef struct kube_loop kube_loop_t; /* opaque */
typedef void (*kube_timer_fn)(void *ctx);
typedef void (*kube_fd_fn)(void *ctx, int fd);

/*  `clock` (NULL = the real one) is for timers. libcurl is loaded when the first client is made. */
tt_status_t kube_loop_new(kube_loop_t **self_p, const tt_clock_t *clock);
void kube_loop_destroy(kube_loop_t **self_p);

/*  Call fn once, after_ms from now; never from within this call. The number is never 0 and never used again. A heap:
 *  ten thousand timers are fine. Forgetting one that has fired, or 0, does nothing. */
uint64_t kube_loop_timer(kube_loop_t *self, int64_t after_ms, kube_timer_fn fn, void *ctx);
void kube_loop_forget_timer(kube_loop_t *self, uint64_t timer);
/*  Call fn whenever fd is readable. Borrowed. */
void kube_loop_fd(kube_loop_t *self, int fd, kube_fd_fn fn, void *ctx);
void kube_loop_forget_fd(kube_loop_t *self, int fd);

/*  Handle what is ready; wait for it at most timeout_ms (-1 = for ever), and no longer than until the next timer. Returns
 *  after one turn, with or without anything done. Not from within a handler. TT_OS. */
tt_status_t kube_loop_poll(kube_loop_t *self, int64_t timeout_ms);
/*  Make a poll that waits return, from any thread or a signal handler. */
void kube_loop_wake(kube_loop_t *self);
const tt_clock_t *kube_loop_clock(const kube_loop_t *self);
