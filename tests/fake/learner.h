/*  learner - a learner as collectors see it: ATTACH gets CREDIT, FETCH gets what is there, segments are kept. It learns
 *  nothing; what there is, and what it says of itself, the test decides.
 *
 *  Threads: the test's. */
#pragma once
#include "common/wire/segment.h"
#include "tests/fake/coordinator.h"

enum { FAKE_SEGMENTS = 64 };

typedef struct {
    tt_msg_SEGMENT_t msg;
    tt_segment_shape_t shape;
    void *block; /* owned */
    size_t bytes;
} fake_segment_t;

/*  What all learners of a run have. */
typedef struct {
    const tt_columns_t *columns; /* borrowed: of what collectors send; set before the first segment */
    uint64_t published;          /* versions below are there */
    bool silent_pub;             /* PUB says nothing         */
    const uint8_t *states;       /* of all envs, [N][state_bytes]; NULL = not yet */
    size_t state_bytes;
    void (*version)(void *ctx, uint64_t version, zmq_msg_t frames[2]); /* WEIGHTS' */
    void *ctx;
} fake_store_t;

typedef struct {
    fake_coordinator_t *run;
    fake_store_t *store;
    fake_member_t *member;
    tt_sock_t *data, *pub;
    char peer[64];       /* the collector that attached; "" = none */
    bool answers;        /* ATTACH gets CREDIT           */
    uint64_t upto, base; /* what CREDIT says             */
    uint64_t epoch;      /* of the newest ATTACH         */
    fake_segment_t segment[FAKE_SEGMENTS];
    size_t segments;
    tt_msg_FETCH_t pending[8]; /* cannot be answered yet */
    size_t pendings;
    uint32_t weights_fetched, envs_fetched;
    int (*lend)(void *ctx, const tt_msg_FETCH_t *question, tt_msg_FETCHED_t *answer, zmq_msg_t frames[2]);
    void *lend_ctx; /* answers FETCH of the replay or of a batch: its frames, -1 = not yet; NULL = never */
    bool gone;      /* the next FETCH of env states is answered: gone, and the base is behind it from then on */
} fake_learner_t;

void fake_learner_open(fake_learner_t *self, fake_coordinator_t *run, fake_store_t *store, uint32_t index);
void fake_learner_close(fake_learner_t *self);

/*  Say CREDIT now, and to every ATTACH from now on. */
void fake_learner_credit(fake_learner_t *self, uint64_t base, uint64_t upto);
void fake_learner_ack(fake_learner_t *self, uint64_t below);
/*  Publish one version. */
void fake_learner_publish(fake_learner_t *self, uint64_t version);
/*  Answer what can be answered by now. */
void fake_learner_retry(fake_learner_t *self);
