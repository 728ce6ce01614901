/*  collector - the role that plays: it collects batches of its range of envs with the policy version that the batch calls
 *  for, and sends them to every learner.
 *
 *  Where things are: collector.c   the life of the role, what the coordinator says, the loop
 *                    batches.c     from a roster to segments: attach, fetch states, wait, play, send (protocol.md)
 *                    rollout.c     the hot path: T steps of E envs into one block
 *                    peers.c       the learners: sockets, credit, what each was sent
 *                    weights.c     policy versions that have come      resend.c   segments not yet acknowledged
 *                    blocks.c      memory for segments                 vec.c, registry.c, envs/   the environments
 *
 *  Threads: one call, one thread (the link to the coordinator has a thread of its own). */
#pragma once
#include "common/net/location.h"

/*  Be a collector until STOP, DRAIN, SIGTERM (tt_signals_open's fd, -1 = none), or an error.
 *  TT_OK: told to end. TT_INTERNAL: an env failed (the run has been told, with its name). Else as tt_link_next says.
 *  The location is borrowed. */
tt_status_t collector_run(const tt_location_t *location, int signals_fd);
