/*  crew - a coordinator with a run directory of its own, and the processes of its run as links: two collectors, a learner, a
 *  controller, and clients that ask.
 *
 *  The coordinator is a process, which can be killed. Where time has to pass it is a thread of the test instead (by hand):
 *  then it and every link go by a clock that run_pass turns.
 *
 *  Threads: the test's. One run at a time. Every wait ends after PATIENCE_MS with a failed test. */
#pragma once
#include <jansson.h>
#include <pthread.h>
#include <sys/types.h>
#include "common/net/link.h"
#include "tests/test.h"

enum { PATIENCE_MS = 20000 };

typedef struct {
    char dir[128], endpoint[256], config[1024];
    int64_t start_ns;
    pid_t coordinator; /* 0 = it has ended, or is a thread */
    bool by_hand;
    tt_clock_t clock; /* by hand */
    pthread_t thread;
    _Atomic bool running; /* the thread */
    int code;             /* of the run, when the thread has ended */
} run_t;

/*  All in the first roster; the learner holds weights. None of them has work, so that none is stuck. */
typedef struct {
    tt_link_t *collectors[2], *learner, *controller;
    uint32_t era;
    uint64_t generation;
    char restore[512]; /* what the first roster says to begin from */
} crew_t;

/* ---- the run -------------------------------------------------------------------------------------------------------- */

/*  A run directory whose config ends with these lines, and its coordinator, started; for cmocka. Nobody is to be given up for
 *  silence, however long a process has to wait for the processor: where nothing else is said the lease is as long as the
 *  patience. */
int run_setup(void **state);
int run_setup_with(void **state, const char *own, bool by_hand);
int run_teardown(void **state);

void run_start(run_t *run);
/*  One more coordinator process in the same directory. */
pid_t run_spawn(const run_t *run);
/*  Wait for the coordinator's end: its exit code; -signal when killed. */
int run_wait(run_t *run);
/*  kill -9. */
void run_kill(run_t *run);
/*  result.json; the caller's. */
json_t *run_result(const run_t *run);
/*  Until the coordinator knows that the learner holds the weights. */
void run_wait_for_holds(const run_t *run);
/*  By hand: so much time goes by, in steps that are short against every lease; after each of them the coordinator has looked
 *  and has heard of `awake` members since. Its status then; the caller's. */
json_t *run_pass(run_t *run, tt_link_t *client, int64_t ms, size_t awake);

/* ---- links ---------------------------------------------------------------------------------------------------------- */

tt_link_t *run_link(const run_t *run, tt_peer_role_t role, int index);
/*  Wait for a message of this kind; others are dropped. */
void link_expect(tt_link_t *link, tt_msg_id_t type, tt_packet_t *out);
/*  A roster with so many collectors and learners. */
void link_expect_roster(tt_link_t *link, size_t collectors, size_t learners, tt_packet_t *out);
void link_skip(tt_link_t *link, tt_msg_id_t type);
void link_skip_roster(tt_link_t *link, size_t collectors, size_t learners);
/*  REQUEST and its REPLY. */
tt_status_t link_ask(tt_link_t *link, const char *verb, const char *body, tt_packet_t *out);
/*  What `status` says; the caller's. */
json_t *link_status(tt_link_t *client);
void link_send_stats(tt_link_t *learner, uint32_t era, uint64_t update);
void link_send_event(tt_link_t *from, const char *kind, const char *text, uint64_t env_steps);
/*  The same, with a reading of the sender's clock. */
void link_send_stats_at(tt_link_t *learner, uint32_t era, uint64_t update, int64_t time_ns);
void link_send_event_at(tt_link_t *from, const char *kind, const char *text, uint64_t env_steps, int64_t time_ns);

/* ---- the crew ------------------------------------------------------------------------------------------------------- */

void crew_begin(const run_t *run, crew_t *crew);
void crew_leave(crew_t *crew);

/*  A member that must be a number. */
double number_in(const json_t *object, const char *key);
