/*  role - a real role in a thread of the test, with a fake coordinator for its run.
 *
 *  Its clock stands but for what the test turns, and for a millisecond at each of the fake's turns: what a role puts off for
 *  a moment comes by waiting for it, and what it puts off for long does not.
 *  Threads: the test's; the role has its own. */
#pragma once
#include <pthread.h>
#include "common/net/location.h"
#include "tests/fake/coordinator.h"

typedef tt_status_t (*fake_role_fn)(const tt_location_t *location, int signals_fd);

typedef struct {
    fake_coordinator_t *run;
    fake_member_t *member;
    fake_role_fn fn;
    int signals;
    tt_clock_t clock;
    pthread_t thread;
    _Atomic bool ended;
    tt_status_t status; /* when it has ended */
} fake_role_t;

/*  Number 0 of its role. signals: as of tt_signals_open, -1 = none. */
void fake_role_start(fake_role_t *self, fake_coordinator_t *run, tt_peer_role_t role, fake_role_fn fn, int signals);
/*  STOP, unless it has ended by itself; its end. */
void fake_role_stop(fake_role_t *self);
/*  So much time goes by for it, at least a beat; then it has beaten, and said in its heartbeat what it does. */
void fake_role_pass(fake_role_t *self, int64_t ms);
