/*  learner - a learner process: takes segments, trains in step with its fellow learners, publishes versions.
 *
 *  Whoever comes to the code first should read learner.c as a table of contents, then update.c.
 *
 *  Threads: learner_run uses the calling thread, the link's, the pool's and the evaluation's. */
#pragma once
#include "common/net/location.h"
#include "learner/evaluate.h"

/*  Be a learner until STOP, DRAIN, SIGTERM (tt_signals_open's fd, -1 = none), or an error. The location is borrowed.
 *  play: how a version is evaluated (eval.every).
 *  TT_OK: told to end. TT_UNAVAILABLE: the coordinator is gone. TT_TIMEOUT: nothing moved for twice net.stall_s.
 *  Others: what went wrong (the run has been told). */
tt_status_t learner_run(const tt_location_t *location, int signals_fd, evaluate_play_fn play);
