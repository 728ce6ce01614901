/*  A whole learner that follows: what it has of a batch, and what another rank 0 makes of it. Those who lead, and the collectors, are the
 *  test's; nothing is ever summed, so that no step is done. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "common/base/mem.h"
#include "learner/learner.h"
#include "learner/model.h"
#include "tests/fake/learner.h"
#include "tests/fake/role.h"

enum { N = 4, HALF = N / 2, T = 32, LEADERS = 2, COLLECTORS = 2 };

#define BEGUN "waiting for SUM"
#define HELD  "idle: finished (return_mean)"

#define PPO "algorithm: {name: ppo, epochs: 1, minibatches: 1}\n"
#define DQN                                                                                             \
    "algorithm: {name: dqn, batch_size: 4, learning_starts: 32, train_every: 16, epsilon_steps: 100}\n" \
    "actor: {kind: argmax, epsilon: 1, epsilon_end: 0.05, epsilon_rows: 100, random_rows: 32}\n"        \
    "replay: {capacity: 100k}\n"

typedef struct stage stage_t;

/*  One that leads: what it made batch 0 of is what the roster says, with so much reward for a step. */
typedef struct {
    stage_t *stage;
    fake_learner_t fake;
    float reward;
    bool knows;        /* its batch is complete      */
    uint32_t asked[N]; /* for the segment from there */
} leader_t;

struct stage {
    fake_coordinator_t run;
    fake_role_t learner;
    fake_store_t nothing;
    leader_t leader[LEADERS];
    fake_member_t *collector[COLLECTORS];
    model_t model;
    tt_sock_t *sock; /* of a collector, to the learner */
    tt_msg_CREDIT_t credit;
};

static stage_t s_stage; /* a test that fails leaves the learner's thread behind */

/* ---- segments --------------------------------------------------------------------------------------------------------- */

/*  Every step is an episode. */
static tt_msg_SEGMENT_t s_make(uint64_t batch, const fake_member_t *by, float reward, zmq_msg_t *frame)
{
    const tt_columns_t *columns = s_stage.model.columns;
    const tt_segment_shape_t shape = {.columns = columns, .T = T, .E = by->env_count};
    size_t bytes = 0;
    assert_ok(tt_segment_size(&shape, &bytes));
    void *block = tt_aligned0(bytes);
    tt_segment_t at;
    tt_segment_map(&shape, block, &at);
    for (uint32_t i = 0; i < T * by->env_count; i++) {
        at.reward[i] = reward;
        at.terminated[i] = true;
    }
    tt_frame_new(frame, bytes);
    memcpy(zmq_msg_data(frame), block, bytes);
    free(block);
    return TT_MSG(SEGMENT, .era = s_stage.run.era, .instance = by->instance, .batch = batch, .env_lo = by->env_lo,
        .env_count = by->env_count, .steps = T, .columns = columns->hash);
}

static int s_tell_composition(tt_msg_FETCHED_t *answer)
{
    static tt_rec_SLICE_t slice[COLLECTORS];
    answer->slices = slice;
    for (int i = 0; i < COLLECTORS; i++) {
        const fake_member_t *by = s_stage.collector[i];
        if (by->in)
            slice[answer->slices_count++] =
                (tt_rec_SLICE_t){.instance = by->instance, .env_lo = by->env_lo, .env_count = by->env_count};
    }
    return 0;
}

static int s_lend(void *ctx, const tt_msg_FETCH_t *question, tt_msg_FETCHED_t *answer, zmq_msg_t frames[2])
{
    leader_t *self = ctx;
    if (question->what != TT_FETCH_BATCH || question->batch != 0 || !self->knows)
        return -1;
    if (question->env_count == 0)
        return s_tell_composition(answer);
    const fake_member_t *by = NULL;
    for (int i = 0; i < COLLECTORS; i++)
        if (s_stage.collector[i]->in && s_stage.collector[i]->env_lo == question->env_lo)
            by = s_stage.collector[i];
    assert_non_null(by);
    assert_int_equal(question->env_count, by->env_count);
    self->asked[by->env_lo]++;
    const tt_msg_SEGMENT_t msg = s_make(0, by, self->reward, &frames[1]);
    tt_buf_t bytes;
    tt_buf_init(&bytes, 4096);
    assert_ok(tt_msg_pack(&bytes, &msg));
    tt_frame_new(&frames[0], bytes.size);
    memcpy(zmq_msg_data(&frames[0]), bytes.data, bytes.size);
    tt_buf_free(&bytes);
    return 2;
}

/*  The first collector's own, of as many batches as there is credit for. */
static void s_send_both(stage_t *self)
{
    for (uint64_t batch = 0; batch < 2; batch++) {
        zmq_msg_t frame;
        const tt_msg_SEGMENT_t msg = s_make(batch, self->collector[0], 2, &frame);
        assert_ok(tt_sock_send(self->sock, NULL, &msg, &frame, 1));
        tt_frame_close(&frame);
    }
}

static tt_status_t s_on_credit(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)sock;
    if (packet->msg.type == TT_MSG_CREDIT)
        ((stage_t *)ctx)->credit = packet->msg.CREDIT;
    return TT_OK;
}

/*  The first batch that it lacks, by the newest roster, of what was sent before. */
static uint64_t s_base(stage_t *self)
{
    const fake_coordinator_t *run = &self->run;
    self->credit = (tt_msg_CREDIT_t){0};
    assert_ok(tt_sock_send(self->sock, NULL,
        &TT_MSG(ATTACH, .role = TT_PEER_COLLECTOR, .instance = self->collector[0]->instance, .era = run->era,
            .epoch = run->epoch),
        NULL, 0));
    fake_until(&self->run, self->credit.upto && self->credit.epoch == run->epoch, "credit");
    return self->credit.base;
}

/* ---- rosters ---------------------------------------------------------------------------------------------------------- */

/*  The first so many envs are the first collector's, the others the second's. */
static void s_deal(stage_t *self, uint32_t envs)
{
    fake_member_t *first = self->collector[0], *second = self->collector[1];
    first->env_count = second->env_lo = envs;
    second->env_count = N - envs;
    first->in = first->env_count > 0;
    second->in = second->env_count > 0;
}

/*  This one leads, nobody else that did. */
static void s_lead(stage_t *self, leader_t *leader)
{
    for (int i = 0; i < LEADERS; i++)
        fake_out(&self->run, self->leader[i].fake.member);
    fake_in(&self->run, leader->fake.member);
    leader->fake.member->rank = 0;
    self->learner.member->rank = 1;
    fake_roster(&self->run, false, NULL);
}

static void s_until_it_is(stage_t *self, const char *doing)
{
    fake_until(&self->run, strstr(self->learner.member->state, doing), doing);
}

/*  The same once more: what it said of itself before is not meant. */
static void s_until_it_is_again(stage_t *self, const char *doing)
{
    fake_role_pass(&self->learner, self->run.beat_ms);
    s_until_it_is(self, doing);
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_learn(const tt_location_t *location, int signals_fd)
{
    return learner_run(location, signals_fd, NULL);
}

static void s_open_sock(stage_t *self)
{
    const tt_sock_opts_t opts = {.name = "segments", .identity = "collector/0/1"};
    assert_ok(tt_sock_new(&self->sock, TT_DEALER, &opts));
    assert_ok(tt_sock_connect(self->sock, self->learner.member->data));
    tt_loop_sock(self->run.loop, self->sock, s_on_credit, self);
}

/*  One that made the weights, and now follows; the first collector has all envs, which cannot be saved. */
static stage_t *s_open(const char *more)
{
    stage_t *self = &s_stage;
    memset(self, 0, sizeof *self);
    fake_open(&self->run, tt_sprintf("name: compose\nenv: CartPole-v1\nnum_envs: %d\nnum_steps: %d\nlag: 1\nseed: 5\n"
                                     "space: {obs: \"float32[4]\", action: discrete(2), env_state: 0}\n"
                                     "network: {hidden: [8]}\nlearner: {shards: 2}\n%s",
                              N, T, more));
    self->run.lease_ms = 600000; /* nobody here is silent */
    assert_ok(model_open(&self->model, self->run.config, 0));
    fake_role_start(&self->learner, &self->run, TT_PEER_LEARNER, s_learn, -1);
    for (uint32_t i = 0; i < LEADERS; i++) {
        leader_t *leader = &self->leader[i];
        fake_learner_open(&leader->fake, &self->run, &self->nothing, i + 1);
        leader->fake.lend = s_lend;
        leader->fake.lend_ctx = leader;
        leader->reward = 1;
        leader->knows = true;
    }
    for (uint32_t i = 0; i < COLLECTORS; i++) {
        self->collector[i] = fake_add(&self->run, TT_PEER_COLLECTOR, i, 0);
        self->collector[i]->instance = 1 + i;
    }
    fake_until(&self->run, self->learner.member->hello, "HELLO");
    fake_in(&self->run, self->learner.member);
    s_deal(self, N);
    fake_roster(&self->run, true, NULL);
    fake_until(&self->run, self->learner.member->holds, "it to hold weights");
    fake_member_t *aggregator = fake_add(&self->run, TT_PEER_AGGREGATOR, 0, 0);
    snprintf(aggregator->data, sizeof aggregator->data, "ipc://%.200s/sock/nobody", self->run.dir);
    fake_in(&self->run, aggregator);
    s_open_sock(self);
    return self;
}

static void s_close(stage_t *self)
{
    if (self->learner.ended)
        pthread_join(self->learner.thread, NULL);
    else
        fake_role_stop(&self->learner);
    for (uint32_t i = 0; i < LEADERS; i++)
        fake_learner_close(&self->leader[i].fake);
    tt_loop_forget_sock(self->run.loop, self->sock);
    tt_sock_destroy(&self->sock);
    model_close(&self->model);
    fake_close(&self->run);
}

/* ---- a range moves ---------------------------------------------------------------------------------------------------- */

/*  It got whole batches of a collector before it knew that half of the range moves, and rank 0 got them after that: dropped them, and has
 *  what was collected again, which says the same of itself. So it has to ask for all of that. */
static void test_a_whole_batch_of_a_range_that_moved(void **state)
{
    (void)state;
    stage_t *self = s_open(PPO);
    leader_t *leader = &self->leader[0];
    leader->knows = false;
    s_lead(self, leader);
    assert_int_equal(s_base(self), 0); /* from here on it trains on nothing by itself */
    s_send_both(self);
    assert_int_equal(s_base(self), 2);
    fake_roster(&self->run, false, NULL); /* nothing moves */
    assert_int_equal(s_base(self), 2);
    self->run.epoch++; /* all may have moved, and moved back */
    fake_roster(&self->run, false, NULL);
    assert_int_equal(s_base(self), 0);
    s_send_both(self);
    assert_int_equal(s_base(self), 2);
    s_deal(self, HALF);
    fake_roster(&self->run, false, NULL);
    assert_int_equal(s_base(self), 0);
    leader->knows = true;
    fake_learner_retry(&leader->fake);
    s_until_it_is(self, BEGUN);
    assert_int_equal(leader->asked[0], 1);
    assert_int_equal(leader->asked[HALF], 1);
    s_deal(self, N);
    fake_roster(&self->run, false, NULL);
    assert_int_equal(s_base(self), 1); /* it is in use */
    s_close(self);
}

/* ---- another leads ---------------------------------------------------------------------------------------------------- */

/*  The first leader dies with the collector, whose heir has played as the second one says. */
static void s_succeed(stage_t *self, float reward)
{
    leader_t *second = &self->leader[1];
    second->reward = reward;
    s_deal(self, 0);
    s_lead(self, second);
    fake_until(&self->run, second->asked[0] == 1, "the other's copies to be asked for");
}

/*  Nothing comes out of a replay again. */
static void test_a_batch_that_went_into_the_replay(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        stage_t *self = s_open(DQN);
        s_lead(self, &self->leader[0]);
        s_until_it_is(self, BEGUN);
        s_succeed(self, other ? 2 : 1);
        if (other) {
            fake_until(&self->run, self->learner.ended, "its end");
            assert_int_equal(self->learner.status, TT_UNAVAILABLE); /* after which it is started again */
            fake_until(&self->run, self->learner.member->drained, "DRAINED");
        } else
            s_until_it_is_again(self, BEGUN);
        s_close(self);
    }
}

/*  By the first one's batch the run is over, by the second one's it is not. */
static void test_a_rule_that_held(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        stage_t *self = s_open(PPO "stop: {return_mean: 5}\n");
        self->leader[0].reward = 6;
        s_lead(self, &self->leader[0]);
        s_until_it_is(self, HELD);
        s_succeed(self, other ? 4 : 5);
        s_until_it_is_again(self, other ? BEGUN : HELD);
        s_close(self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_batch_of_a_range_that_moved),
        cmocka_unit_test(test_a_batch_that_went_into_the_replay),
        cmocka_unit_test(test_a_rule_that_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
