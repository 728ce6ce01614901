/*  controller - keeps as many replicas of each role running as the job asks for.
 *
 *  Desired numbers come from the job and from tt_controller_scale; actual ones from the substrate's events. Replica
 *  numbers of a role are 0 .. desired-1. A replica that ends while it is wanted is started again: at once the first
 *  time, then after 100 ms, doubling to 10 s; 30 s of life reset that. Some ends are final and fail the job: an exit
 *  code that says that a repetition cannot help (sysexits 64 usage, 65 data, 66 no input, 70 internal error, 73 cannot
 *  create, 77 permission, 78 configuration; 79 diverged), more ends in a row than the role's backoff_limit without any progress of the job since the start of each
 *  (tt_controller_progress), or a failure where
 *  restart is NEVER. A role with decides_job ends the job when a replica of it succeeds.
 *
 *  Another replica that ends with 0 was told to go, by a word that has perhaps not come to us yet, or by a person. Which
 *  of them only the coordinator knows: it is started again when that says so (tt_controller_missed).
 *
 *  Threads: one. Time: the injected clock. Never blocks. */
#pragma once
#include "common/base/clock.h"
#include "controller/substrate.h"

typedef struct tt_controller tt_controller_t;

/*  Told about every start and end, from within the calls below. */
typedef struct {
    void (*started)(void *ctx, const char *role, uint32_t index, tt_replica_id_t id);
    void (*ended)(void *ctx, const char *role, uint32_t index, const tt_replica_event_t *event);
    void *ctx;
} tt_observer_t;

/*  Borrows job, substrate and clock. TT_CONFIG as tt_job_check. */
tt_status_t tt_controller_new(tt_controller_t **self_p, const tt_job_t *job, tt_substrate_t *substrate,
    const tt_clock_t *clock, const tt_observer_t *observer);
void tt_controller_destroy(tt_controller_t **self_p);

/*  Handle ends, start what is wanted and missing, stop what lingers. Call when a child ended and when
 *  tt_controller_due_ms says so. A failure to start a replica counts as an end with code 71. */
tt_status_t tt_controller_tick(tt_controller_t *self);

/*  Milliseconds until tick must be called though nothing happened; -1 = never. */
int64_t tt_controller_due_ms(const tt_controller_t *self);

/*  Change desired numbers. Replicas over the number are expected to end by themselves (the coordinator drains them) and
 *  are stopped after grace_ms. TT_NOT_FOUND: no such role. */
tt_status_t tt_controller_scale(tt_controller_t *self, const char *role, uint32_t replicas, int grace_ms);

/*  The job is ending by itself: replicas that end are not started again, but for those that decide the job and were killed. */
void tt_controller_wind_down(tt_controller_t *self);

/*  No more starts: ask everything to end (roles that decide the job last: not asked, they end by themselves), kill after
 *  grace_ms. tick goes on until tt_controller_running is 0. */
void tt_controller_stop(tt_controller_t *self, int grace_ms);

/*  The process behind a replica number, 0 = none is running. */
tt_replica_id_t tt_controller_replica(const tt_controller_t *self, const char *role, uint32_t index);
/*  End it at once, whatever it does: it is stopped, or hangs. What is wanted is started again as after any end. */
void tt_controller_kill(tt_controller_t *self, const char *role, uint32_t index);
/*  Of a replica that ended with 0 as process `pid` the coordinator says that it did not tell it to go, or that it is wanted
 *  all the same: it is started again as after any end. */
void tt_controller_missed(tt_controller_t *self, const char *role, uint32_t index, int pid);
/*  The job has got on: whoever ends after this has not ended in vain. */
void tt_controller_progress(tt_controller_t *self);
/*  Tell the observer once more of every replica that runs, and of each end that waits for tt_controller_missed: who listens
 *  behind it is new. */
void tt_controller_retell(const tt_controller_t *self);

/*  Replicas alive now, of one role or (NULL) of all. */
uint32_t tt_controller_running(const tt_controller_t *self, const char *role);

/*  RUNNING until the job has ended: SUCCEEDED, or FAILED with the exit code and the reason for a person (borrowed). */
tt_job_phase_t tt_controller_phase(const tt_controller_t *self, int *exit_code, const char **reason);
