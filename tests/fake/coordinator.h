/*  coordinator - a coordinator that does what a test says: it welcomes the members that it was told of, answers their
 *  heartbeats, sends rosters when asked to, and notes what they say. It decides nothing.
 *
 *  A member is a process, a role in a thread (role.h), or another fake (learner.h, collector.h). All fakes of a test live on
 *  this one's loop, so that waiting for one serves all.
 *
 *  Threads: the test's. Every wait ends after patience_ms with a failed test. */
#pragma once
#include <sys/types.h>
#include "common/net/net.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { FAKE_MEMBERS = 20 };

typedef struct {
    tt_peer_role_t role;
    uint32_t index;
    pid_t pid;         /* the process whose HELLO counts; 0 = it has ended, or is a fake          */
    int code;          /* exit code of a process that was reaped; 128 + signal                    */
    uint64_t instance; /* the rest as in a roster; a process says it in its HELLO, but for these: */
    bool in;
    uint32_t rank, env_lo, env_count;
    char peer[64], data[256], weights[256];
    uint32_t memory;
    bool hello, holds, warm, drained; /* what it said */
    uint64_t beats, progress;         /* progress: of its newest heartbeat */
    char state[128], reason[64];      /* of its newest heartbeat; of DRAINED */
} fake_member_t;

typedef struct {
    char dir[FOLDER_MAX];       /* the run's directory, with sock/ */
    char *config;               /* owned; of the job, as WELCOME says it */
    uint32_t beat_ms, lease_ms; /* 100, 60000 */
    int64_t patience_ms;        /* 20000      */
    bool mute;                  /* no answers to heartbeats */
    tt_loop_t *loop;
    tt_sock_t *control;
    tt_clock_t *hands; /* turned by a millisecond at each turn; NULL = none */
    fake_member_t member[FAKE_MEMBERS];
    size_t members;
    uint32_t era;
    uint64_t epoch, generation;
    uint64_t stats_update; /* of the newest STATS */
    void (*on_event)(void *ctx, const tt_msg_EVENT_t *event);
    void (*on_roster)(void *ctx); /* it has been told         */
    void (*on_turn)(void *ctx);   /* after each look at the sockets; all may be NULL */
    void *ctx;
} fake_coordinator_t;

/*  Make the directory and bind. Takes config. */
void fake_open(fake_coordinator_t *self, char *config);
/*  The other fakes are closed before. */
void fake_close(fake_coordinator_t *self);

/*  One that will say HELLO from this process; a fake when pid is 0. */
fake_member_t *fake_add(fake_coordinator_t *self, tt_peer_role_t role, uint32_t index, pid_t pid);
/*  Take a member in (with the last rank), or out; fake_roster tells it. Learners make a generation. */
void fake_in(fake_coordinator_t *self, fake_member_t *member);
void fake_out(fake_coordinator_t *self, fake_member_t *member);
/*  The next epoch, to everyone who is there. restore may be NULL. */
void fake_roster(fake_coordinator_t *self, bool fresh, const char *restore);
/*  Once it is connected, unless its process has ended. */
void fake_send(fake_coordinator_t *self, fake_member_t *to, const void *msg);
/*  The same, if it is connected now. */
bool fake_try_send(fake_coordinator_t *self, const fake_member_t *to, const void *msg);

/*  One look at what has come: at most 20 ms. */
void fake_turn(fake_coordinator_t *self);
/*  Serve until `condition`; a test that waits too long fails with `what`. */
#define fake_until(self, condition, what)                            \
    do {                                                             \
        for (int64_t until_ms_ = fake_deadline(self); !(condition);) \
            fake_wait(self, until_ms_, what);                        \
    } while (0)
int64_t fake_deadline(const fake_coordinator_t *self);
void fake_wait(fake_coordinator_t *self, int64_t until_ms, const char *what);
