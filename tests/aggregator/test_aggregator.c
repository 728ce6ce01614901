/*  The aggregator as a role, over its real sockets: HELLO to STOP, and two learners' gradients of several chunks. */
#include "aggregator/aggregator.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/fake/role.h"

enum { SHARDS = 4, CHUNKS = 3, BIG = 1 << 16, SMALL = 40, REPORT_MS = 250 };
static const char s_config[] = "env: CartPole-v1\nname: test\nnum_envs: 4\nlearner:\n  replicas: 2\n  shards: 4\n"
                               "space: {obs: 'float32[4]', action: discrete(2)}\n";

typedef struct {
    fake_coordinator_t run;
    fake_role_t aggregator;
    tt_sock_t *learner[2];
} stage_t;

#define until(condition) fake_until(&self->run, condition, #condition)

/*  It comes to say so of itself, in a report: the next, or a later one, but those come as slowly as we wait. So nothing that waits for a
 *  roster is given up before, however long its thread is held up while its link's thread beats. */
static void s_until_says(stage_t *self, const char *words)
{
    fake_role_pass(&self->aggregator, REPORT_MS);
    fake_until(&self->run, strcmp(self->aggregator.member->state, words) == 0, words);
}

static void s_roster(stage_t *self, uint64_t generation)
{
    self->run.generation = generation;
    fake_roster(&self->run, generation == 1, NULL);
}

/*  A learner of the roster, and its socket under the name that it had when it connected. */
static void s_learner(stage_t *self, int rank, uint32_t index, uint64_t instance, const char *identity)
{
    fake_member_t *learner = fake_add(&self->run, TT_PEER_LEARNER, index, 0);
    learner->instance = instance;
    fake_in(&self->run, learner);
    assert_ok(
        tt_sock_new(&self->learner[rank], TT_DEALER, &(tt_sock_opts_t){.name = "gradients", .identity = identity}));
    assert_ok(tt_sock_connect(self->learner[rank], self->aggregator.member->data));
}

static int s_open(void **state)
{
    stage_t *self = *state = tt_new0(sizeof *self);
    fake_open(&self->run, tt_strdup(s_config));
    self->run.beat_ms = 20;
    fake_role_start(&self->aggregator, &self->run, TT_PEER_AGGREGATOR, aggregator_run, -1);
    until(self->aggregator.member->hello);
    s_learner(self, 0, 0, 1, "learner/0/1");
    s_learner(self, 1, 5, 2, "learner/3/2"); /* a coordinator without its journal counts anew */
    s_roster(self, 1);
    s_until_says(self, "idle: 0 sums finished"); /* it knows the job */
    return 0;
}

static int s_close(void **state)
{
    stage_t *self = *state;
    fake_role_stop(&self->aggregator);
    assert_int_equal(self->aggregator.status, TT_OK);
    assert_int_equal(access(self->aggregator.member->data + 6, F_OK), -1); /* it took its socket file away */
    tt_sock_destroy(&self->learner[0]);
    tt_sock_destroy(&self->learner[1]);
    fake_close(&self->run);
    free(self);
    return 0;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static size_t s_count(uint32_t chunk)
{
    return chunk == CHUNKS - 1 ? SMALL : BIG;
}

static float s_leaf(uint64_t step, uint32_t shard, uint32_t chunk, size_t i)
{
    return (float)((step * 7 + shard * 1000003 + chunk * 31 + i) % 9973) * (shard % 2 ? 1e-6f : 1.7f);
}

static float s_node(uint64_t step, uint32_t node, uint32_t chunk, size_t i)
{
    if (node >= SHARDS)
        return s_leaf(step, node - SHARDS, chunk, i);
    return s_node(step, 2 * node, chunk, i) + s_node(step, 2 * node + 1, chunk, i);
}

static void s_grad_by(tt_sock_t *sock, uint32_t era, uint64_t generation, uint64_t step, uint32_t node)
{
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const tt_msg_GRAD_t grad = TT_MSG(GRAD, .era = era, .generation = generation, .step = step, .node = node,
            .shards = SHARDS, .chunk = chunk, .chunks = CHUNKS);
        zmq_msg_t frame;
        tt_frame_new(&frame, s_count(chunk) * sizeof(float));
        for (size_t i = 0; i < s_count(chunk); i++)
            ((float *)zmq_msg_data(&frame))[i] = s_node(step, node, chunk, i);
        assert_ok(tt_sock_send(sock, NULL, &grad, &frame, 1));
    }
}

static void s_grad(stage_t *self, int learner, uint64_t generation, uint64_t step, uint32_t node)
{
    s_grad_by(self->learner[learner], 1, generation, step, node);
}

/*  All chunks of one step arrive, each once, with the right numbers. */
static void s_expect_sum(stage_t *self, int learner, uint64_t generation, uint64_t step)
{
    tt_packet_t packet = {0};
    bool seen[CHUNKS] = {0};
    for (int n = 0; n < CHUNKS; n++) {
        until(tt_sock_recv(self->learner[learner], &packet) == TT_OK);
        const tt_msg_SUM_t *sum = &packet.msg.SUM;
        assert_int_equal(packet.msg.type, TT_MSG_SUM);
        assert_true(sum->generation == generation && sum->step == step && sum->chunks == CHUNKS && sum->chunk < CHUNKS);
        assert_false(seen[sum->chunk]);
        seen[sum->chunk] = true;
        assert_int_equal(zmq_msg_size(&packet.frame[0]), s_count(sum->chunk) * sizeof(float));
        float *data = tt_array0(s_count(sum->chunk), sizeof *data); /* a small frame need not be aligned */
        memcpy(data, zmq_msg_data(&packet.frame[0]), zmq_msg_size(&packet.frame[0]));
        for (size_t i = 0; i < s_count(sum->chunk); i++)
            assert_true(data[i] == s_node(step, 1, sum->chunk, i));
        free(data);
    }
    tt_packet_clear(&packet);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_two_learners(void **state)
{
    stage_t *self = *state;
    for (uint64_t step = 0; step < 3; step++) {
        s_grad(self, step % 2 == 0, 1, step, 2 + (step % 2 == 0));
        s_grad(self, step % 2 != 0, 1, step, 2 + (step % 2 != 0));
        s_expect_sum(self, 0, 1, step);
        s_expect_sum(self, 1, 1, step);
    }
}

/*  One of two dies in the middle of a step: the other redoes it alone in the next generation. */
static void test_survivor_goes_on_alone(void **state)
{
    stage_t *self = *state;
    s_grad(self, 0, 1, 8, 2);
    s_grad(self, 1, 1, 8, 3);
    s_expect_sum(self, 0, 1, 8);
    s_expect_sum(self, 1, 1, 8);
    s_grad(self, 0, 1, 9, 2);
    s_roster(self, 2);
    s_grad(self, 0, 2, 8, 1); /* the sum it kept */
    s_expect_sum(self, 0, 2, 8);
    s_grad(self, 0, 2, 9, 1);
    s_expect_sum(self, 0, 2, 9);
}

static void test_state_names_who_is_missing(void **state)
{
    stage_t *self = *state;
    s_grad(self, 0, 1, 4, 2);
    s_until_says(self, "waiting for GRAD of step 4 chunk 0 shard 2 from learner/5");
    s_grad(self, 1, 1, 4, 3);
    s_expect_sum(self, 0, 1, 4);
    s_until_says(self, "idle: 3 sums finished"); /* of a chunk each */
}

static void test_nonsense_is_dropped(void **state)
{
    stage_t *self = *state;
    assert_ok(tt_sock_send(self->learner[1], NULL, &TT_MSG(CREDIT, .upto = 4), NULL, 0));
    assert_ok(tt_sock_send(self->learner[1], NULL, &TT_MSG(GRAD, .era = 1, .node = 1, .shards = SHARDS), NULL, 0));
    s_grad(self, 0, 1, 0, 2);
    s_grad(self, 1, 1, 0, 3);
    s_expect_sum(self, 0, 1, 0);
    s_expect_sum(self, 1, 1, 0);
}

/*  Numbers that cannot be, from a learner and from a stranger, stall nobody: not those of a far era, which would void
 *  what is in hand, nor of a far step. */
static void test_numbers_that_cannot_be_stall_nobody(void **state)
{
    stage_t *self = *state;
    tt_sock_t *stranger;
    assert_ok(tt_sock_new(&stranger, TT_DEALER, &(tt_sock_opts_t){.name = "gradients", .identity = "learner/7/bad"}));
    assert_ok(tt_sock_connect(stranger, self->aggregator.member->data));
    s_grad(self, 0, 1, 3, 2);
    s_until_says(self, "waiting for GRAD of step 3 chunk 0 shard 2 from learner/5");
    s_grad_by(stranger, 1, 1, UINT64_MAX, 1);
    s_grad_by(stranger, 1, 1, 3, 1); /* as if it were the whole sum: nothing of a stranger's is summed */
    s_grad_by(stranger, UINT32_MAX, 1, 0, 1);
    s_grad_by(self->learner[1], UINT32_MAX, 1, 0, 1);
    s_grad_by(self->learner[1], 1, UINT64_MAX, 0, 1);
    s_grad_by(self->learner[1], 1, 1, UINT64_MAX, 1);
    for (uint64_t step = 3; step < 6; step++) {
        if (step > 3)
            s_grad(self, 0, 1, step, 2);
        s_grad(self, 1, 1, step, 3);
        s_expect_sum(self, 0, 1, step);
        s_expect_sum(self, 1, 1, step);
    }
    tt_sock_destroy(&stranger);
}

/*  A learner may hear of a generation before we do: what it sends then waits for the roster. */
static void test_a_gradient_waits_for_its_roster(void **state)
{
    stage_t *self = *state;
    s_grad(self, 0, 2, 3, 2);
    s_grad(self, 1, 2, 3, 3);
    s_grad(self, 0, 1, 9, 2); /* read after those, and so they have been read when it shows */
    s_until_says(self, "waiting for GRAD of step 9 chunk 0 shard 2 from learner/5");
    s_roster(self, 2);
    s_expect_sum(self, 0, 2, 3);
    s_expect_sum(self, 1, 2, 3);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, s_open, s_close)
    const struct CMUnitTest tests[] = {
        T(test_two_learners),
        T(test_survivor_goes_on_alone),
        T(test_state_names_who_is_missing),
        T(test_nonsense_is_dropped),
        T(test_numbers_that_cannot_be_stall_nobody),
        T(test_a_gradient_waits_for_its_roster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
