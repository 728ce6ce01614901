/*  world - real learner and aggregator processes, with a coordinator and a collector made by the test (tests/fake).
 *
 *  Threads: one. Every wait ends after a minute with a failed test. */
#pragma once
#include "tests/fake/collector.h"

typedef struct {
    fake_coordinator_t run;
    fake_collector_t collector;
    tt_columns_t *columns;
    bool may_fail; /* else a failure of the run is the test's */
    char sha[65];  /* of EVENT finished; "" = not yet */
    char checkpoint[256], reason[64];
    uint64_t updates, trained;
    char failed[512]; /* text of EVENT failed */
    char snapshot[256];
    uint64_t snapshots, solved; /* solved: how often that was said; it is with 100 episodes */
} world_t;

/*  `more`: lines of YAML behind the defaults of the harness; "# any spaces" among them: not one vector and one choice, but a
 *  dict, a tuple and a mask; "# bytes only": nothing that a normaliser knows;
 *  "# sums are sent": learners share no memory. */
void world_open(world_t *world, const char *more);
/*  Kill what still runs, remove the run directory. */
void world_close(world_t *world);

/*  For cmocka: close the world that a failed test left open (so worlds are static: its stack is gone by then). */
int world_teardown(void **state);

/*  Start a process and wait for its HELLO. */
fake_member_t *world_start(world_t *world, tt_peer_role_t role, uint32_t index);
/*  kill(2) and wait for its end. */
void world_kill(world_t *world, fake_member_t *member, int signal);
#define world_until(world, condition, what) fake_until(&(world)->run, condition, what)

/*  The batch that rank 0 waits for or trains on. */
uint64_t world_update(const world_t *world);
/*  Send STOP to all and see them end with 0. */
void world_stop(world_t *world);
