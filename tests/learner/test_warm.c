/*  A learner that warms up, while those that lend to it die at exact pieces, stand still, or the coordinator is away: a whole one, by a
 *  clock that the test turns. tests/chaos/positions.py kills real processes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/snapshot/pieces.h"
#include "learner/learner.h"
#include "learner/memory.h"
#include "learner/model.h"
#include "tests/fake/learner.h"
#include "tests/fake/role.h"
#include "tests/learner/segments.h"

enum { N = 4, T = 8, STATES = 8, BATCHES = 12, STALL_S = 60, LENDERS = 2, DEATHS = 4, ALL = 1000 };

typedef struct {
    fake_learner_t fake;
    fake_store_t nothing;
    int left;               /* pieces that it will still send */
    bool owes, dead;        /* owes: it was asked, and was silent */
    uint64_t answered;      /* id of the newest question that was */
    uint32_t sent[BATCHES]; /* how often                      */
} lender_t;

typedef struct {
    fake_coordinator_t run;
    fake_role_t joiner;
    model_t model;
    memory_t *memory; /* what they lend */
    lender_t lender[LENDERS];
} stage_t;

static stage_t s_stage; /* a test that fails leaves the learner's thread behind */

/*  A piece is one batch. */
static int s_lend(void *ctx, const tt_msg_FETCH_t *question, tt_msg_FETCHED_t *answer, zmq_msg_t frames[2])
{
    lender_t *self = ctx;
    if (question->era != s_stage.run.era) {
        answer->gone = true;
        return 0;
    }
    const uint64_t end = question->until && question->until < BATCHES ? question->until : BATCHES;
    if (self->left == 0) {
        self->owes = true;
        return -1;
    }
    answer->settled = BATCHES;
    answer->until = question->batch;
    if (question->batch >= end)
        return 0;
    answer->until++;
    self->left--;
    self->sent[question->batch] += question->id != self->answered; /* it is repeated if an answer takes its time */
    self->answered = question->id;
    tt_buf_t bytes;
    tt_buf_init(&bytes, 1 << 20);
    assert_ok(replay_save_batches(memory_replay(s_stage.memory), question->batch, answer->until, &bytes));
    tt_frame_new(&frames[0], bytes.size);
    tt_frame_new(&frames[1], TT_PIECE_HASH);
    memcpy(zmq_msg_data(&frames[0]), bytes.data, bytes.size);
    tt_piece_hash(bytes.data, bytes.size, zmq_msg_data(&frames[1]));
    tt_buf_free(&bytes);
    return 2;
}

/*  Batches by formula, and two that are not settled yet. */
static void s_fill(stage_t *self)
{
    const model_t *model = &self->model;
    assert_ok(memory_new(
        &self->memory, &model->train, model->columns, &model->shape.feed, model->algorithm->gamma(model->cfg)));
    for (uint64_t batch = 0; batch < BATCHES + 2; batch++) {
        zmq_msg_t frame;
        tt_segment_t at;
        const made_t made = {.batch = batch, .env_count = N};
        const tt_segment_shape_t shape = {.columns = model->columns, .T = T, .E = N, .K = N, .S = STATES};
        made_segment(&made, model->columns, T, STATES, &frame);
        tt_segment_map(&shape, zmq_msg_data(&frame), &at);
        const replay_part_t part = {.at = &at, .E = N, .K = N, .count = N};
        replay_t *replay = (replay_t *)(uintptr_t)memory_replay(self->memory); /* of ours */
        assert_ok(replay_insert(replay, batch, &part, 1, NULL));
        zmq_msg_close(&frame);
    }
}

static tt_status_t s_learn(const tt_location_t *location, int signals_fd)
{
    return learner_run(location, signals_fd, NULL);
}

/*  Two learners that are in the first roster, and one that is not yet; of the former, how many pieces they will send. */
static stage_t *s_open(int first, int second)
{
    stage_t *self = &s_stage;
    memset(self, 0, sizeof *self);
    fake_open(&self->run,
        tt_sprintf("name: warm\nenv: CartPole-v1\nnum_envs: %d\nnum_steps: %d\nlag: 1\nseed: 5\n"
                   "space: {obs: \"float32[4]\", action: discrete(2), env_state: %d}\n"
                   "network: {hidden: [8]}\nlearner: {shards: 4}\n"
                   "algorithm: {name: dqn, batch_size: 4, learning_starts: 32, train_every: 16, epsilon_steps: 100}\n"
                   "actor: {kind: argmax, epsilon: 1, epsilon_end: 0.05, epsilon_rows: 100, random_rows: 32}\n"
                   "replay: {capacity: 1024}\nnet: {stall_s: %d}\n",
            N, T, STATES, STALL_S));
    self->run.lease_ms = 600000; /* nobody here is silent */
    assert_ok(model_open(&self->model, self->run.config, 0));
    s_fill(self);
    fake_role_start(&self->joiner, &self->run, TT_PEER_LEARNER, s_learn, -1);
    for (uint32_t i = 0; i < LENDERS; i++) {
        lender_t *lender = &self->lender[i];
        fake_learner_open(&lender->fake, &self->run, &lender->nothing, i + 1);
        lender->fake.lend = s_lend;
        lender->fake.lend_ctx = lender;
        lender->left = i ? second : first;
        fake_in(&self->run, lender->fake.member);
    }
    fake_until(&self->run, self->joiner.member->hello, "HELLO");
    fake_roster(&self->run, true, NULL);
    return self;
}

static void s_die(stage_t *self, uint32_t which)
{
    fake_out(&self->run, self->lender[which].fake.member);
    fake_learner_close(&self->lender[which].fake);
    self->lender[which].dead = true;
}

static void s_close(stage_t *self)
{
    if (self->joiner.ended)
        pthread_join(self->joiner.thread, NULL);
    else
        fake_role_stop(&self->joiner);
    for (uint32_t i = 0; i < LENDERS; i++)
        if (!self->lender[i].dead)
            fake_learner_close(&self->lender[i].fake);
    memory_destroy(&self->memory);
    model_close(&self->model);
    fake_close(&self->run);
}

/*  Every batch came. Two at most came twice: a piece of the dead one's that waited for its turn, and one of the leader's, which is let go
 *  so that it can be asked for the oldest. */
static void s_check_sent(const stage_t *self)
{
    uint32_t again = 0;
    for (uint64_t b = 0; b < BATCHES; b++) {
        uint32_t times = 0;
        for (uint32_t i = 0; i < LENDERS; i++)
            times += self->lender[i].sent[b];
        assert_true(times >= 1);
        again += times - 1;
    }
    assert_true(again <= 2);
}

/*  One has sent so many pieces, is asked for the next, is silent, and dies. */
static void s_one_dies(uint32_t which, int pieces)
{
    stage_t *self = which ? s_open(ALL, pieces) : s_open(pieces, ALL);
    fake_until(&self->run, self->lender[which].owes, "a question that is not answered");
    fake_until(&self->run, strstr(self->joiner.member->state, "warming: has the replay up to batch"), "what it does");
    fake_role_pass(&self->joiner, (STALL_S - 10) * INT64_C(1000));
    assert_false(self->joiner.member->warm);
    s_die(self, which);
    fake_roster(&self->run, false, NULL);
    fake_until(&self->run, self->joiner.member->warm, "it to be warm");
    s_check_sent(self);
    s_close(self);
}

static void test_the_leader_dies_at_each_piece(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < DEATHS; pieces++)
        s_one_dies(0, pieces);
}

static void test_another_dies_at_each_piece(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < DEATHS; pieces++)
        s_one_dies(1, pieces);
}

/*  Those that hold it are gone, and an era begins anew: nothing of before counts. */
static void test_another_era(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < DEATHS; pieces++) {
        stage_t *self = s_open(pieces, ALL);
        fake_until(&self->run, self->lender[0].owes, "a question that is not answered");
        for (int i = 0; i < LENDERS; i++) {
            self->lender[i].left = ALL;
            self->lender[i].answered = 0;
            memset(self->lender[i].sent, 0, sizeof self->lender[i].sent);
        }
        fake_roster(&self->run, true, NULL);
        fake_until(&self->run, self->joiner.member->warm, "it to be warm");
        s_check_sent(self);
        s_close(self);
    }
}

/*  Pieces come without a coordinator; it is told when it is there again. */
static void test_the_coordinator_is_away(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < DEATHS; pieces++) {
        stage_t *self = s_open(pieces, ALL);
        fake_until(&self->run, self->lender[0].owes, "a question that is not answered");
        self->run.mute = true;
        self->lender[0].left = ALL;
        fake_learner_retry(&self->lender[0].fake);
        fake_role_pass(&self->joiner, STALL_S * INT64_C(1000));
        assert_false(self->joiner.ended);
        self->run.mute = false;
        fake_until(&self->run, self->joiner.member->warm, "it to be warm");
        s_check_sent(self);
        s_close(self);
    }
}

/*  They live and say nothing more: that ends it, so that it is started anew; the run goes on without it. */
static void test_who_lends_stands_still(void **state)
{
    (void)state;
    stage_t *self = s_open(1, 0);
    self->run.hands = NULL; /* its time begins before we hear of it; fake_role_pass turns them again */
    fake_until(&self->run, self->lender[0].owes, "a question that is not answered");
    fake_role_pass(&self->joiner, (2 * STALL_S - 5) * INT64_C(1000));
    assert_false(self->joiner.ended);
    tt_clock_turn(&self->joiner.clock, 10 * INT64_C(1000000000));
    fake_until(&self->run, self->joiner.ended, "its end");
    assert_int_equal(self->joiner.status, TT_UNAVAILABLE);
    s_close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_leader_dies_at_each_piece),
        cmocka_unit_test(test_another_dies_at_each_piece),
        cmocka_unit_test(test_another_era),
        cmocka_unit_test(test_the_coordinator_is_away),
        cmocka_unit_test(test_who_lends_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
