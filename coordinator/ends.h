/*  ends - how a run ends: its stop rule, a stop request, a failure; and the summary of it.
 *
 *  Whatever the way: the end is journaled, RUN_DIR/result.json written, controllers and watchers get EVENT finished (its
 *  text is the summary, JSON) or EVENT failed (its text is for a person), everybody gets STOP.
 *
 *  Summary fields: those of rank 0's EVENT finished, and status, reason, rolled_back, restored_from, wall_s, first_step_s,
 *  solved_at_s, solved_at_steps, sps (docs/architecture.md section 8). Times count from the run's process start.
 *
 *  Threads: the coordinator's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/wire/msg.h"
#include "coordinator/peer.h"

typedef struct coordinator coordinator_t;

typedef enum { ENDS_RUNNING, ENDS_STOPPING, ENDS_ENDED } ends_phase_t;

typedef struct {
    ends_phase_t phase;
    char reason[256];
    uint32_t code;       /* that fits the reason of the stop request             */
    int64_t deadline_ns; /* STOPPING: rank 0 has until then for its last snapshot */
    int exit_code;       /* ENDED                                                */
} ends_t;

const char *ends_phase_name(ends_phase_t phase);

/*  Somebody asks for the end. Rank 0 finishes its update and writes a snapshot; `now` (or a second signal): at once. */
void ends_stop(coordinator_t *self, const char *reason, uint32_t code, bool now);
/*  This process ends and the run does not: nobody is told, nothing is journaled; another coordinator goes on. */
void ends_leave(coordinator_t *self, const char *why, uint32_t code);
/*  Rank 0 says that it is over. */
void ends_finished(coordinator_t *self, const tt_msg_EVENT_t *event);
/*  The run cannot go on: text for a person, exit code. */
void ends_fail(coordinator_t *self, uint32_t code, const char *text);

/*  A roster went out: a new rank 0 must hear of a stop under way. */
void ends_roster(coordinator_t *self);
/*  A peer is there: if it is rank 0, it is told of a stop under way once more, which a connection that broke may have lost. */
void ends_heard(coordinator_t *self, const peer_t *peer);
/*  Time passes. Returns when it wants to be called again. */
int64_t ends_tick(coordinator_t *self);

/*  An earlier coordinator of this session journaled the end and died before all had heard of it: say it again. */
void ends_repeat(coordinator_t *self, const char *json, uint32_t code);
