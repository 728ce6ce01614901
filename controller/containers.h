/*  containers - containers that belong together, each a replica of a substrate: who begins when, who comes again, who goes.
 *
 *  As in a pod: init containers run one after the other, but those that are always restarted are sidecars, which the next
 *  one waits for only until they have begun; the others begin when those are through, all at once. Who ends is started again
 *  as its policy says: at once, then after 1 s doubling to 60 s; a minute of life makes it new. Sidecars are asked to go
 *  when the others are through. One that cannot be started has ended with 128 and stays so.
 *
 *  Nothing here knows what a container is made of: its owner starts it, and keeps beside it whatever words it has.
 *  Threads: an instance belongs to one thread; never blocks. Time: the injected clock. */
#pragma once
#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "controller/substrate.h"

typedef enum {
    TT_CONTAINER_NEW,
    TT_CONTAINER_RUNNING,
    TT_CONTAINER_WAITING, /* to be started again at due_ms */
    TT_CONTAINER_ENDED
} tt_container_state_t;

typedef struct {
    bool init;
    bool dismissed; /* a sidecar that is not needed any more */
    tt_restart_t restart;
    tt_container_state_t state;
    tt_replica_id_t id; /* RUNNING */
    int exit_code;      /* of the newest end */
    int restarts;
    tt_backoff_t backoff;
    int64_t due_ms;
} tt_container_t;

typedef struct {
    tt_container_t *list; /* owned; init containers first */
    size_t count;
    tt_substrate_t *substrate; /* borrowed */
    const tt_clock_t *clock;   /* borrowed */
    bool stopping;             /* nothing begins any more */
    int64_t stop_at_ms;        /* when they are to be asked to end; 0 = they have been, or are not to be */
    int grace_ms;
} tt_containers_t;

/*  Start container `index` as a replica. Anything but TT_OK: it cannot be started. */
typedef tt_status_t (*tt_container_start_fn)(void *ctx, size_t index, tt_replica_id_t *id);

/*  All of them new; who is of init and each policy is the caller's to fill in. */
void tt_containers_init(tt_containers_t *self, size_t count, tt_substrate_t *substrate, const tt_clock_t *clock);
void tt_containers_clear(tt_containers_t *self);

/*  Start what is due, let go of what is not needed any more. Did anything change? */
bool tt_containers_step(tt_containers_t *self, tt_container_start_fn start, void *ctx);
/*  One of them has ended, and is started again or not. Index of it; `count` = it is none of these. */
size_t tt_containers_ended(tt_containers_t *self, const tt_replica_event_t *event);
/*  Nothing begins any more, and in after_ms what runs is asked to end, with so much time for it; 0 asks at once. Said again with
 *  another time it holds from then on. */
void tt_containers_stop(tt_containers_t *self, int64_t after_ms, int grace_ms);
/*  Milliseconds until step is wanted though nothing happened; -1 = not. */
int64_t tt_containers_due_ms(const tt_containers_t *self);

size_t tt_containers_running(const tt_containers_t *self);
/*  All but the init containers run. */
bool tt_containers_ready(const tt_containers_t *self);
/*  PENDING till one that is not of init has begun; SUCCEEDED or FAILED (an init container failed, too) once it is over. */
tt_job_phase_t tt_containers_phase(const tt_containers_t *self);
