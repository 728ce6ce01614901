/*  What comes to a learner from another process is compared with its checksum as a file is: the state that a joiner fetches, and
 *  the snapshot that a learner on another host loads by way of the coordinator. One wrong bit, and it ends; it never trains on. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/base/signals.h"
#include "learner/learner.h"
#include "tests/fake/collector.h"
#include "tests/fake/role.h"
#include "tests/learner/segments.h"

enum { BYTES_MAX = 1 << 24 };

typedef struct {
    fake_coordinator_t run;
    fake_role_t learner;
    int signals;
    char failed[512], snapshot[512]; /* texts of EVENTs */
} stage_t;

static stage_t s_stage; /* a test that fails leaves the learner's thread behind */
static tt_buf_t s_state, s_file;

/* ---- a learner --------------------------------------------------------------------------------------------------------- */

static void s_on_event(void *ctx, const tt_msg_EVENT_t *event)
{
    stage_t *self = ctx;
    if (strcmp(event->kind, "failed") == 0)
        snprintf(self->failed, sizeof self->failed, "%s", event->text);
    if (strcmp(event->kind, "snapshot") == 0)
        snprintf(self->snapshot, sizeof self->snapshot, "%s", event->text);
}

static tt_status_t s_learn(const tt_location_t *location, int signals_fd)
{
    return learner_run(location, signals_fd, NULL);
}

/*  It does not see the run's directory. */
static tt_status_t s_learn_elsewhere(const tt_location_t *location, int signals_fd)
{
    tt_location_t there = *location;
    there.dir[0] = '\0';
    return learner_run(&there, signals_fd, NULL);
}

static stage_t *s_open(fake_role_fn fn)
{
    stage_t *self = &s_stage;
    memset(self, 0, sizeof *self);
    fake_open(&self->run, tt_strdup("name: damaged\nenv: CartPole-v1\nnum_envs: 4\nnum_steps: 8\nlag: 0\nseed: 5\n"
                                    "space: {obs: \"float32[4]\", action: discrete(2), env_state: 8}\n"
                                    "network: {hidden: [8]}\nlearner: {shards: 2}\ncheckpoint: {every_s: 0.01}\n"
                                    "algorithm: {name: ppo, epochs: 1, minibatches: 1}\n"));
    self->run.lease_ms = 600000; /* nobody here is silent */
    self->run.on_event = s_on_event;
    self->run.ctx = self;
    assert_ok(tt_signals_open(&self->signals));
    fake_role_start(&self->learner, &self->run, TT_PEER_LEARNER, fn, self->signals);
    fake_until(&self->run, self->learner.member->hello, "HELLO");
    return self;
}

static void s_close(stage_t *self)
{
    fake_role_stop(&self->learner);
    close(self->signals);
    fake_close(&self->run);
}

/* ---- what is whole ------------------------------------------------------------------------------------------------------ */

static fake_collector_t s_collector;

static void s_on_roster(void *ctx)
{
    (void)ctx;
    fake_collector_attach(&s_collector);
}

static void s_on_turn(void *ctx)
{
    (void)ctx;
    fake_collector_feed(&s_collector);
}

static tt_status_t s_keep(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)ctx, (void)sock;
    if (packet->msg.type == TT_MSG_FETCHED && packet->frame_count == 1 && s_state.size == 0)
        return tt_buf_add(&s_state, zmq_msg_data(&packet->frame[0]), zmq_msg_size(&packet->frame[0]));
    return TT_OK;
}

static void s_fetch_state(stage_t *self)
{
    tt_sock_t *sock = NULL;
    const tt_sock_opts_t opts = {.name = "joiner", .identity = "learner/1/99", .max_bytes = BYTES_MAX};
    assert_ok(tt_sock_new(&sock, TT_DEALER, &opts));
    assert_ok(tt_sock_connect(sock, self->learner.member->data));
    tt_loop_sock(self->run.loop, sock, s_keep, NULL);
    const tt_msg_FETCH_t question =
        TT_MSG(FETCH, .id = 1, .what = TT_FETCH_STATE, .era = self->run.era, .generation = self->run.generation);
    assert_ok(tt_sock_send(sock, NULL, &question, NULL, 0));
    fake_until(&self->run, s_state.size > 0, "a learner's state");
    tt_loop_forget_sock(self->run.loop, sock);
    tt_sock_destroy(&sock);
}

/*  One that trains says what a joiner would get, and leaves a snapshot. */
static int s_setup(void **state)
{
    (void)state;
    tt_buf_init(&s_state, BYTES_MAX);
    tt_buf_init(&s_file, BYTES_MAX);
    stage_t *self = s_open(s_learn);
    tt_columns_t *columns = made_columns("float32[4]", "discrete(2)", false);
    s_collector = (fake_collector_t){.N = 4, .T = 8, .S = 8, .columns = columns};
    self->run.on_roster = s_on_roster;
    self->run.on_turn = s_on_turn;
    fake_collector_open(&s_collector, &self->run);
    fake_in(&self->run, self->learner.member);
    fake_roster(&self->run, true, NULL);
    fake_until(&self->run, self->snapshot[0], "a snapshot");
    s_fetch_state(self);
    assert_ok(tt_buf_read_file(&s_file, self->snapshot));
    fake_role_stop(&self->learner);
    close(self->signals);
    fake_collector_close(&s_collector);
    fake_close(&self->run);
    tt_columns_destroy(&columns);
    return 0;
}

static int s_teardown(void **state)
{
    (void)state;
    tt_buf_free(&s_state);
    tt_buf_free(&s_file);
    return 0;
}

/* ---- what is sent ------------------------------------------------------------------------------------------------------- */

/*  What answers, and what it says: the bytes but for one bit, or as many as there are before that. */
typedef struct {
    const tt_buf_t *bytes;
    size_t at, size;
    bool flip;
    size_t answers;
    bool holds; /* so the learner says, in a heartbeat */
} answer_t;

static answer_t s_answer;

static void s_frame(zmq_msg_t *frame)
{
    tt_frame_new(frame, s_answer.size);
    memcpy(zmq_msg_data(frame), s_answer.bytes->data, s_answer.size);
    if (s_answer.flip)
        ((char *)zmq_msg_data(frame))[s_answer.at] ^= 4;
    s_answer.answers++;
}

static tt_status_t s_on_fetch(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)ctx;
    const tt_msg_FETCH_t *m = &packet->msg.FETCH;
    if (packet->msg.type != TT_MSG_FETCH || m->what != TT_FETCH_STATE)
        return TT_OK;
    const tt_msg_FETCHED_t answer =
        TT_MSG(FETCHED, .id = m->id, .what = m->what, .era = m->era, .generation = m->generation);
    zmq_msg_t frame;
    s_frame(&frame);
    const tt_status_t status = tt_sock_send(sock, packet->peer, &answer, &frame, 1);
    tt_frame_close(&frame);
    return status;
}

static tt_status_t s_on_load(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    (void)ctx;
    if (packet->msg.type == TT_MSG_HEARTBEAT)
        s_answer.holds = packet->msg.HEARTBEAT.holds;
    if (packet->msg.type != TT_MSG_LOAD)
        return TT_OK;
    const tt_msg_LOADED_t answer = TT_MSG(LOADED, .size = s_answer.size);
    zmq_msg_t frame;
    s_frame(&frame);
    const tt_status_t status = tt_sock_send(sock, packet->peer, &answer, &frame, 1);
    tt_frame_close(&frame);
    return status;
}

/*  Rank 0 of the roster that it joins answers as a learner does. */
static void s_join(const answer_t *answer, void (*judge)(stage_t *self))
{
    char endpoint[128];
    tt_sock_t *sock = NULL;
    stage_t *self = s_open(s_learn);
    s_answer = *answer;
    fake_member_t *leader = fake_add(&self->run, TT_PEER_LEARNER, 1, 0);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/sock/leader", self->run.dir);
    assert_ok(tt_sock_new(&sock, TT_ROUTER, &(tt_sock_opts_t){.name = "leader", .max_bytes = BYTES_MAX}));
    assert_ok(tt_sock_bind(sock, endpoint, NULL, 0));
    tt_loop_sock(self->run.loop, sock, s_on_fetch, NULL);
    self->run.era = 1;
    leader->instance = 77;
    snprintf(leader->data, sizeof leader->data, "%s", endpoint);
    fake_in(&self->run, leader);
    fake_in(&self->run, self->learner.member);
    fake_roster(&self->run, false, NULL);
    judge(self);
    tt_loop_forget_sock(self->run.loop, sock);
    tt_sock_destroy(&sock);
    s_close(self);
}

/*  The coordinator sends pieces of a file in a directory that the learner does not see. */
static void s_load(const answer_t *answer, void (*judge)(stage_t *self))
{
    stage_t *self = s_open(s_learn_elsewhere);
    s_answer = *answer;
    fake_in(&self->run, self->learner.member);
    fake_roster(&self->run, true, "/elsewhere/checkpoints/00000003.safetensors");
    tt_loop_forget_sock(self->run.loop, self->run.control);
    tt_loop_sock(self->run.loop, self->run.control, s_on_load, NULL);
    judge(self);
    s_close(self);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------- */

static bool s_holds(const stage_t *self)
{
    return self->learner.member->holds || s_answer.holds;
}

/*  It asks once: no time goes by. */
static void s_is_refused(stage_t *self)
{
    self->run.hands = NULL;
    fake_until(&self->run, self->learner.ended, "the end of a learner that was sent what is damaged");
    assert_int_equal(self->learner.status, TT_DATA);
    assert_false(s_holds(self));
    assert_int_equal(s_answer.answers, 1);
}

static void s_is_taken(stage_t *self)
{
    const tt_msg_STOP_t stop = TT_MSG(STOP, .reason = (char *)(uintptr_t) "the test is over");
    fake_until(&self->run, s_holds(self), "weights");
    fake_until(
        &self->run, self->learner.ended || fake_try_send(&self->run, self->learner.member, &stop), "a connection");
    fake_until(&self->run, self->learner.ended, "its end");
    assert_ok(self->learner.status);
}

static void s_try(void (*hand)(const answer_t *answer, void (*judge)(stage_t *self)), const tt_buf_t *bytes)
{
    const size_t size = bytes->size;
    const size_t at[] = {9, size / 3, size / 2, size - 1};
    hand(&(answer_t){.bytes = bytes, .size = size}, s_is_taken);
    for (size_t i = 0; i < TT_COUNT(at); i++)
        hand(&(answer_t){.bytes = bytes, .size = size, .at = at[i], .flip = true}, s_is_refused);
    hand(&(answer_t){.bytes = bytes, .size = size - 1}, s_is_refused); /* torn */
    hand(&(answer_t){.bytes = bytes, .size = 0}, s_is_refused);
}

static void test_a_joiner_refuses_a_damaged_state(void **state)
{
    (void)state;
    s_try(s_join, &s_state);
}

static void test_a_learner_elsewhere_refuses_a_damaged_snapshot(void **state)
{
    (void)state;
    s_try(s_load, &s_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_joiner_refuses_a_damaged_state),
        cmocka_unit_test(test_a_learner_elsewhere_refuses_a_damaged_snapshot)};
    return cmocka_run_group_tests(tests, s_setup, s_teardown);
}
