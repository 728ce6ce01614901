/*  stage - a collector in a thread of its own, between a coordinator and learners that do what a test says (tests/fake).
 *
 *  Threads: the test's only; the collector has its own. */
#pragma once
#include "collector/rollout.h"
#include "tests/fake/learner.h"
#include "tests/fake/role.h"

enum { STAGE_LEARNERS = 3, STAGE_ENVS = 8, STAGE_STEPS = 32, STAGE_LEASE_MS = 2000 };

typedef struct {
    fake_coordinator_t run;
    fake_store_t store;
    fake_learner_t learner[STAGE_LEARNERS];
    fake_role_t collector;
    uint32_t lag;
    tt_actor_t actor;
    uint32_t units;                   /* of a GRU, 0 = there is none */
    char event[32], event_text[1024]; /* the newest EVENT */
    int first_steps;
    tt_columns_t *columns;
    tt_inference_t *net;
} stage_t;

/*  Bind everything and start a collector of CartPole, whose state in the job is larger than here by so much. */
void stage_open(stage_t *self, uint32_t lag, uint32_t other_state);
/*  The same whose policy and value function remember: a GRU each. */
void stage_open_recurrent(stage_t *self, uint32_t lag);
/*  The same that acts in this way. */
void stage_open_actor(stage_t *self, uint32_t lag, const tt_actor_t *actor);
/*  A collector that has not ended is told to STOP. */
void stage_close(stage_t *self);
#define stage_until(self, condition) fake_until(&(self)->run, condition, #condition)

/*  A roster with these learners (bits) in the order of their numbers, and our collector with that range (0 envs: without). */
void stage_roster(stage_t *self, uint32_t learners, uint32_t env_lo, uint32_t env_count);
/*  Versions below `count` are there from now on; rank 0 = learner 0 publishes the new ones. */
void stage_publish(stage_t *self, uint64_t count);
/*  The collector comes to wait, in these words, and goes on waiting for some time. */
void stage_stay(stage_t *self, const char *words);

/*  The k-th segment of a batch that a learner got, NULL when there is none. */
const fake_segment_t *stage_segment(const stage_t *self, uint32_t learner, uint64_t batch, size_t k);
/*  What a batch must be: all envs played from the start with the versions that `lag` calls for. The caller frees block. */
fake_segment_t stage_reference(stage_t *self, uint64_t batch);
/*  Is `part` the same as the envs of its range in `whole`? */
void stage_assert_part(const fake_segment_t *whole, const fake_segment_t *part);
