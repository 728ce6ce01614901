/*  The aggregator as a role, over its real sockets: HELLO to STOP, and two learners' gradients of several chunks. */
#include "aggregator/aggregator.h"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "tests/test.h"

enum { SHARDS = 4, CHUNKS = 3, BIG = 1 << 16, SMALL = 40 };
static const char s_config[] = "env: CartPole-v1\nname: test\nnum_envs: 4\nlearner:\n  replicas: 2\n  shards: 4\n"
                               "space:\n  obs: 4\n  actions: 2\n  action_dims: 1\n";

typedef struct {
    char *dir;
    tt_sock_t *control, *learner[2];
    char peer[64], data[256];
    pthread_t thread;
    _Atomic bool ended;
    tt_status_t status;
    char state[128];
} stage_t;

static void *s_thread(void *ctx)
{
    stage_t *self = ctx;
    tt_location_t location;
    const tt_location_args_t args = {.run = self->dir};
    self->status = tt_location_take(&location, TT_PEER_AGGREGATOR, 0, &args);
    if (self->status == TT_OK)
        self->status = aggregator_run(&location, -1);
    self->ended = true;
    return NULL;
}

static void s_pump(stage_t *self)
{
    tt_packet_t packet = {0};
    while (tt_sock_recv(self->control, &packet) == TT_OK) {
        snprintf(self->peer, sizeof self->peer, "%s", packet.peer);
        if (packet.msg.type == TT_MSG_HELLO) {
            snprintf(self->data, sizeof self->data, "%s", packet.msg.HELLO.data_ipc);
            const tt_msg_WELCOME_t welcome = TT_MSG(WELCOME, .wire = TT_WIRE_VERSION, .beat_ms = 20, .lease_ms = 20000,
                .config = (char *)s_config, .run_dir = self->dir);
            assert_ok(tt_sock_send(self->control, self->peer, &welcome, NULL, 0));
        } else if (packet.msg.type == TT_MSG_HEARTBEAT) {
            snprintf(self->state, sizeof self->state, "%s", packet.msg.HEARTBEAT.state);
            tt_sock_send(self->control, self->peer, &TT_MSG(HEARTBEAT, .seq = packet.msg.HEARTBEAT.seq), NULL, 0);
        }
    }
    tt_packet_clear(&packet);
}

#define until(cond)                                                        \
    do {                                                                   \
        const int64_t until_end_ = tt_now_ms(tt_clock_real()) + 20000;     \
        while (!(cond)) {                                                  \
            assert_true(tt_now_ms(tt_clock_real()) < until_end_ && #cond); \
            s_pump(self);                                                  \
            poll(NULL, 0, 1);                                              \
        }                                                                  \
    } while (0)

static void s_roster(stage_t *self, uint64_t generation)
{
    tt_rec_MEMBER_t members[] = {
        {.role = TT_PEER_LEARNER, .index = 0, .instance = 1, .rank = 0},
        {.role = TT_PEER_LEARNER, .index = 5, .instance = 2, .rank = 1},
    };
    const tt_msg_ROSTER_t roster = TT_MSG(ROSTER, .era = 1, .epoch = generation, .generation = generation,
        .members = members, .members_count = TT_COUNT(members));
    assert_ok(tt_sock_send(self->control, self->peer, &roster, NULL, 0));
}

static int s_open(void **state)
{
    stage_t *self = *state = tt_new0(sizeof *self);
    char endpoint[256];
    self->dir = tt_strdup("/tmp/tt-aggregator-XXXXXX");
    assert_non_null(mkdtemp(self->dir));
    snprintf(endpoint, sizeof endpoint, "%s/sock", self->dir);
    assert_int_equal(mkdir(endpoint, 0700), 0);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/sock/control", self->dir);
    assert_ok(tt_sock_new(&self->control, TT_ROUTER, &(tt_sock_opts_t){.name = "control"}));
    assert_ok(tt_sock_bind(self->control, endpoint, NULL, 0));
    assert_int_equal(pthread_create(&self->thread, NULL, s_thread, self), 0);
    until(self->data[0]);
    for (int i = 0; i < 2; i++) {
        /* the second one had another number when it connected: a coordinator without its journal counts anew */
        const tt_sock_opts_t opts = {.name = "gradients", .identity = i ? "learner/3/2" : "learner/0/1"};
        assert_ok(tt_sock_new(&self->learner[i], TT_DEALER, &opts));
        assert_ok(tt_sock_connect(self->learner[i], self->data));
    }
    s_roster(self, 1);
    until(strncmp(self->state, "idle: 0 sums", 12) == 0); /* it knows the job */
    return 0;
}

static int s_close(void **state)
{
    stage_t *self = *state;
    assert_ok(tt_sock_send(self->control, self->peer, &TT_MSG(STOP, .reason = (char *)"the test is over"), NULL, 0));
    until(self->ended);
    pthread_join(self->thread, NULL);
    assert_int_equal(self->status, TT_OK);
    assert_int_equal(access(self->data + 6, F_OK), -1); /* it took its socket file away */
    tt_sock_destroy(&self->learner[0]);
    tt_sock_destroy(&self->learner[1]);
    tt_sock_destroy(&self->control);
    char *command = tt_sprintf("rm -rf '%s'", self->dir);
    assert_int_equal(system(command), 0);
    free(command);
    free(self->dir);
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
    until(strcmp(self->state, "waiting for GRAD of step 4 chunk 0 shard 2 from learner/5") == 0);
    s_grad(self, 1, 1, 4, 3);
    s_expect_sum(self, 0, 1, 4);
    until(strncmp(self->state, "idle", 4) == 0);
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
    assert_ok(tt_sock_connect(stranger, self->data));
    s_grad(self, 0, 1, 3, 2);
    until(strcmp(self->state, "waiting for GRAD of step 3 chunk 0 shard 2 from learner/5") == 0);
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
    until(strcmp(self->state, "waiting for GRAD of step 9 chunk 0 shard 2 from learner/5") == 0);
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
