/*  stage - a collector in a thread of its own, between a coordinator and learners that do what a test says.
 *
 *  The test's thread pumps the sockets: HELLO is welcomed, heartbeats are answered, ATTACH gets CREDIT, FETCH gets what is
 *  there, and everything that came is written down.
 *  Threads: the test's only; the collector has its own. */
#pragma once
#include <pthread.h>
#include <zmq.h>
#include "collector/rollout.h"
#include "common/net/net.h"
#include "common/wire/segment.h"

enum { STAGE_LEARNERS = 3, STAGE_SEGMENTS = 64, STAGE_ENVS = 8, STAGE_STEPS = 32, STAGE_VERSIONS = 16 };

typedef struct {
    tt_msg_SEGMENT_t msg;
    tt_segment_shape_t shape;
    void *block; /* owned */
    size_t bytes;
} stage_segment_t;

typedef struct {
    tt_sock_t *data, *pub;
    char data_ipc[256], weights_ipc[256], peer[64];
    bool answers;        /* ATTACH gets CREDIT           */
    uint64_t upto, base; /* what CREDIT says             */
    uint64_t epoch;      /* of the newest ATTACH         */
    stage_segment_t segment[STAGE_SEGMENTS];
    size_t segments;
    tt_msg_FETCH_t pending[8]; /* cannot be answered yet */
    size_t pendings;
    uint32_t weights_fetched, envs_fetched;
    bool gone; /* the next FETCH of env states is answered: gone, and the base is behind it from then on */
} stage_learner_t;

typedef struct {
    char *dir, *config;
    uint32_t lag;
    tt_sock_t *control;
    char peer[64];     /* the collector on the control socket, "" = not there yet */
    uint64_t instance; /* its                                                     */
    uint32_t era;
    uint64_t epoch;
    stage_learner_t learner[STAGE_LEARNERS];
    uint64_t published;    /* versions below are there */
    bool silent_pub;       /* PUB says nothing          */
    const uint8_t *states; /* what FETCH of env states gets: [STAGE_ENVS][state]; NULL = not yet */
    size_t state_bytes;
    char event[32], event_text[1024], drained[64];
    int first_steps;
    pthread_t thread;
    int signals;
    _Atomic bool ended;
    tt_status_t status; /* of collector_run, when ended */
    tt_device_t *device;
    tt_net_t *net;
    uint32_t env_state; /* what the config says */
} stage_t;

/*  Bind everything and start a collector of CartPole. */
void stage_open(stage_t *self, uint32_t lag);
/*  A collector that has not ended is told to STOP. */
void stage_close(stage_t *self);

/*  Handle what is there; wait at most a few milliseconds for it. */
void stage_pump(stage_t *self);
/*  Pump until cond holds; the test fails after 20 s. */
#define stage_until(self, cond)                                        \
    do {                                                               \
        const int64_t stage_end_ = tt_now_ms(tt_clock_real()) + 20000; \
        while (!(cond)) {                                              \
            if (tt_now_ms(tt_clock_real()) > stage_end_)               \
                fail_msg("still not: %s", #cond);                      \
            stage_pump(self);                                          \
        }                                                              \
    } while (0)

/*  A roster with these learners (bits) in the order of their numbers, and our collector with that range (0 envs: without). */
void stage_roster(stage_t *self, uint32_t learners, uint32_t env_lo, uint32_t env_count);
/*  Say CREDIT to the collector now. */
void stage_credit(stage_t *self, uint32_t learner, uint64_t base, uint64_t upto);
void stage_ack(stage_t *self, uint32_t learner, uint64_t below);
/*  Versions below `count` are there from now on; rank 0 = learner 0 publishes the new ones. */
void stage_publish(stage_t *self, uint64_t count);

/*  The k-th segment of a batch that a learner got, NULL when there is none. */
const stage_segment_t *stage_segment(const stage_t *self, uint32_t learner, uint64_t batch, size_t k);
/*  What a batch must be: all envs played from the start with the versions that `lag` calls for. The caller frees block. */
stage_segment_t stage_reference(stage_t *self, uint64_t batch);
/*  Is `part` the same as the envs of its range in `whole`? */
void stage_assert_part(const stage_segment_t *whole, const stage_segment_t *part);
