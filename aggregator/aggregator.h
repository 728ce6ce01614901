/*  aggregator - the role that finishes the learners' gradient sums. This file and aggregator.c are its table of contents:
 *  bind, say HELLO, learn the job, then answer GRAD with SUM until told to stop.
 *
 *  Threads: one call, one thread (the link to the coordinator has a thread of its own). */
#pragma once
#include "common/net/location.h"

/*  Be an aggregator until STOP, DRAIN, SIGTERM (tt_signals_open's fd, -1 = none), or an error.
 *  TT_OK: told to end. Else as tt_link_next and tt_sock_bind say. The location is borrowed. */
tt_status_t aggregator_run(const tt_location_t *location, int signals_fd);
