/*  world - real learner and aggregator processes with a coordinator and a collector made by the test.
 *
 *  The coordinator is this process: it welcomes, sends rosters when the test says so, and listens. The collector makes up
 *  its segments by formula from (batch, env) alone, so that the same job always sees the same experience, and the weights
 *  at the end may be compared bit by bit.
 *
 *  Threads: one. Every wait ends after WORLD_WAIT_MS with a failed test. */
#pragma once
#include "tests/test.h"
#include <sys/types.h>
#include "common/net/net.h"

enum { WORLD_WAIT_MS = 60000, WORLD_MEMBERS = 16 };

typedef struct {
    tt_peer_role_t role;
    uint32_t index;
    pid_t pid; /* 0 = ended */
    int code;  /* exit code; 128 + signal */
    bool hello, holds, in, drained;
    uint32_t rank;
    uint64_t instance;
    char peer[64], data[256], weights[256];
    tt_sock_t *feed; /* learner: the collector's DEALER */
    bool credited;   /* of this epoch */
    uint64_t upto, base, next, acked;
} world_member_t;

typedef struct {
    char dir[64];
    char *config;
    tt_loop_t *loop;
    tt_sock_t *control;
    world_member_t member[WORLD_MEMBERS];
    size_t members;
    uint32_t era;
    uint64_t epoch, generation;
    uint32_t N, T, D, S, lag;
    uint64_t gate; /* batches from here on are not sent (UINT64_MAX = all are) */
    bool twins;    /* where copies differ: learners other than 0 get other ones   */
    bool starve;   /* where copies differ: they get none                          */
    float poison;  /* added to every reward */
    bool copies;   /* send what was sent before again, in other cuts           */
    char sha[65];  /* of EVENT finished; "" = not yet                          */
    char checkpoint[256], reason[64];
    uint64_t updates, trained;
    char failed[512]; /* text of EVENT failed */
    char snapshot[256];
    uint64_t snapshots, stats_update, solved; /* solved: how often that was said; it is with 100 episodes */
} world_t;

/*  `more`: lines of YAML behind the defaults of the harness. */
void world_open(world_t *world, const char *more);
/*  Kill what still runs, remove the run directory. */
void world_close(world_t *world);

/*  For cmocka: close the world that a failed test left open (so worlds are static: its stack is gone by then). */
int world_teardown(void **state);

/*  Start a process and wait for its HELLO. */
world_member_t *world_start(world_t *world, tt_peer_role_t role, uint32_t index);
/*  Take a member in (learners get the last rank), or out; world_roster then tells everyone. */
void world_in(world_t *world, world_member_t *member);
void world_out(world_t *world, world_member_t *member);
void world_roster(world_t *world, bool fresh, const char *restore);
void world_send(world_t *world, world_member_t *to, const void *msg);
/*  kill(2) and wait for its end. */
void world_kill(world_t *world, world_member_t *member, int signal);

/*  One look at what has come (at most 20 ms). */
void world_tick(world_t *world);
/*  Serve until `condition`; fails the test with `what` after WORLD_WAIT_MS. */
#define world_until(world, condition, what)                       \
    do {                                                          \
        for (int64_t until_ms_ = world_deadline(); !(condition);) \
            world_wait(world, until_ms_, what);                   \
    } while (0)
int64_t world_deadline(void);
void world_wait(world_t *world, int64_t until_ms, const char *what);

/*  The batch that rank 0 waits for or trains on. */
uint64_t world_update(const world_t *world);
/*  Send STOP to all and see them end with 0. */
void world_stop(world_t *world);
