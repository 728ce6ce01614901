/*  The line to the aggregators, which the test plays: chunks, generations, restarts, silence. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "learner/allreduce.h"
#include "tests/folder.h"

enum { SHARDS = 4, COUNT = 2 * ALLREDUCE_CHUNK + 1000, HEARD_MAX = 256, WAIT_MS = 10000 };

typedef struct {
    uint32_t aggregator;
    tt_msg_GRAD_t msg;
    size_t bytes;
    float first; /* of the chunk */
} heard_t;

typedef struct {
    char dir[FOLDER_MAX];
    tt_loop_t *loop;
    float *node[2 * SHARDS]; /* [COUNT] sums of nodes; NULL: not asked for yet */
    uint32_t chunks;
    tt_clock_t clock;
    allreduce_t *self;
    tt_memfd_t memory[2];     /* of both learners; without size: nothing is shared */
    allreduce_t *other;       /* the second learner; NULL: there is none here      */
    view_t others;            /* what it sees                                      */
    tt_sock_t *aggregator[2]; /* ROUTERs */
    uint32_t sockets;         /* made so far: their names */
    view_t view;
    char peer[64];
    bool reached; /* what sums say */
    heard_t heard[HEARD_MAX];
    size_t heard_count;
    int hwm;         /* of the next socket; 0 = as ever. Then only these are counted: */
    uint64_t newest; /* the step heard last       */
    size_t of_7;     /* messages of step 7        */
} world_t;

static tt_status_t s_on_grad(void *ctx, tt_sock_t *sock, tt_packet_t *packet)
{
    world_t *world = ctx;
    assert_int_equal(packet->msg.type, TT_MSG_GRAD);
    assert_int_equal(packet->frame_count, 1);
    world->newest = packet->msg.GRAD.step;
    world->of_7 += world->newest == 7;
    if (world->hwm)
        return TT_OK;
    assert_true(world->heard_count < HEARD_MAX);
    heard_t *heard = &world->heard[world->heard_count++];
    heard->aggregator = sock == world->aggregator[1];
    heard->msg = packet->msg.GRAD;
    heard->bytes = zmq_msg_size(&packet->frame[0]);
    memcpy(&heard->first, zmq_msg_data(&packet->frame[0]), sizeof heard->first);
    memcpy(world->peer, packet->peer, sizeof world->peer);
    return TT_OK;
}

static void s_bind(world_t *world, uint32_t i)
{
    const tt_sock_opts_t opts = {.name = "aggregator", .hwm = world->hwm};
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "ipc://%s/%u", world->dir, world->sockets);
    assert_ok(tt_sock_new(&world->aggregator[i], TT_ROUTER, &opts));
    assert_ok(tt_sock_bind(world->aggregator[i], endpoint, NULL, 0));
    tt_loop_sock(world->loop, world->aggregator[i], s_on_grad, world);
    world->view.aggregator[i] = (view_peer_t){.index = i, .instance = 100 + world->sockets++};
    snprintf(world->view.aggregator[i].data, sizeof world->view.aggregator[i].data, "%s", endpoint);
}

static void s_unbind(world_t *world, uint32_t i)
{
    tt_loop_forget_sock(world->loop, world->aggregator[i]);
    tt_sock_destroy(&world->aggregator[i]);
}

static allreduce_t *s_learner(world_t *world, uint32_t rank, tt_memfd_t *memory)
{
    return allreduce_new(&(allreduce_cfg_t){.loop = world->loop,
        .index = 3 + rank,
        .instance = 9 + rank,
        .shards = SHARDS,
        .count = COUNT,
        .memory = memory,
        .dir = world->dir,
        .resend_ms = 500,
        .clock = &world->clock});
}

static void s_open_sharing(world_t *world, uint32_t aggregators, bool share)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(folder_make(world->dir, "allreduce"), 0);
    world->clock = tt_clock_fake(0);
    assert_ok(tt_loop_new(&world->loop, NULL));
    world->chunks = 3;
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_ok(tt_memfd_make(&world->memory[rank], EXCHANGE_NAME));
    world->self = s_learner(world, 0, share ? &world->memory[0] : NULL);
    world->view =
        (view_t){.era = 1, .epoch = 1, .generation = 1, .member = true, .learners = 2, .aggregators = aggregators};
    world->view.aggregator = tt_array0(2, sizeof *world->view.aggregator);
    world->view.learner = tt_array0(2, sizeof *world->view.learner);
    for (uint32_t rank = 0; rank < 2; rank++)
        world->view.learner[rank] = (view_peer_t){.index = 3 + rank,
            .instance = 9 + rank,
            .pid = (uint32_t)getpid(),
            .memory = share ? world->memory[rank].fd : -1};
    for (uint32_t i = 0; i < aggregators; i++)
        s_bind(world, i);
    assert_ok(allreduce_enter(world->self, &world->view));
}

static void s_open(world_t *world, uint32_t aggregators)
{
    s_open_sharing(world, aggregators, false);
}

/*  The second learner sees what the first one sees. */
static void s_other_enters(world_t *world)
{
    world->others = world->view;
    world->others.rank = 1;
    assert_ok(allreduce_enter(world->other, &world->others));
}

/*  Both of one host, with an aggregator. */
static void s_open_both(world_t *world)
{
    s_open_sharing(world, 1, true);
    world->other = s_learner(world, 1, &world->memory[1]);
    s_other_enters(world);
}

static void s_close(world_t *world)
{
    allreduce_destroy(&world->self);
    allreduce_destroy(&world->other);
    for (uint32_t rank = 0; rank < 2; rank++)
        tt_memfd_drop(&world->memory[rank]);
    for (uint32_t i = 0; i < 2; i++)
        if (world->aggregator[i])
            s_unbind(world, i);
    tt_loop_destroy(&world->loop);
    for (uint32_t node = 0; node < 2 * SHARDS; node++)
        free(world->node[node]);
    view_clear(&world->view);
    assert_int_equal(folder_remove(world->dir), 0);
}

static tt_status_t s_node(void *ctx, uint32_t node, const float **out)
{
    world_t *world = ctx;
    if (!world->node[node]) {
        world->node[node] = tt_array0(COUNT, sizeof(float));
        for (size_t i = 0; i < COUNT; i++)
            world->node[node][i] = (float)node + (float)(i % 1009) * 1e-3f;
    }
    *out = world->node[node];
    return TT_OK;
}

static void s_send(world_t *world, uint64_t step, uint32_t lo, uint32_t hi)
{
    assert_ok(allreduce_send(world->self, step, lo, hi, s_node, world));
}

static void s_hear(world_t *world, size_t count)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + WAIT_MS;
    while (world->heard_count < count) {
        const tt_status_t status = tt_loop_poll(world->loop, 100);
        assert_true(status == TT_OK || status == TT_AGAIN);
        assert_true(tt_now_ms(tt_clock_real()) < until);
    }
}

/*  Nothing more comes, as far as a moment can tell: what was sent before has come through the same sockets. */
static void s_hear_no_more(world_t *world, size_t count)
{
    for (int i = 0; i < 5; i++)
        tt_loop_poll(world->loop, 2);
    assert_int_equal(world->heard_count, count);
}

static void s_answer(world_t *world, uint64_t generation, uint64_t step, uint32_t chunk, float value)
{
    const size_t from = (size_t)chunk * ALLREDUCE_CHUNK, left = COUNT - from;
    const size_t floats = left < ALLREDUCE_CHUNK ? left : ALLREDUCE_CHUNK;
    zmq_msg_t frame;
    tt_frame_new(&frame, floats * sizeof(float));
    for (size_t i = 0; i < floats; i++)
        ((float *)zmq_msg_data(&frame))[i] = value + (float)chunk;
    const tt_msg_SUM_t sum = TT_MSG(SUM, .era = 1, .generation = generation, .step = step, .chunk = chunk,
        .chunks = world->chunks, .reaches = world->reached);
    if (world->other) {
        zmq_msg_t copy;
        zmq_msg_init(&copy);
        zmq_msg_copy(&copy, &frame);
        assert_ok(tt_sock_send(world->aggregator[0], "learner/4/a", &sum, &copy, 1));
        tt_frame_close(&copy);
    }
    assert_ok(tt_sock_send(world->aggregator[chunk % world->view.aggregators],
        world->other ? "learner/3/9" : world->peer, &sum, &frame, 1));
    tt_frame_close(&frame);
}

static void s_answer_all(world_t *world, uint64_t generation, uint64_t step, float value)
{
    for (uint32_t chunk = world->chunks; chunk-- > 0;)
        s_answer(world, generation, step, chunk, value);
}

static const float *s_sum(world_t *world)
{
    const int64_t until = tt_now_ms(tt_clock_real()) + WAIT_MS;
    while (!allreduce_sum(world->self)) {
        tt_loop_poll(world->loop, 100);
        assert_true(tt_now_ms(tt_clock_real()) < until);
    }
    return allreduce_sum(world->self);
}

static void s_nudge(world_t *world)
{
    tt_clock_turn(&world->clock, 501 * INT64_C(1000000));
    assert_ok(allreduce_nudge(world->self));
}

static void test_chunks_go_round_the_aggregators(void **state)
{
    (void)state;
    static world_t world;
    s_open(&world, 2);
    s_send(&world, 7, 1, 4); /* nodes 5 and 3 */
    s_hear(&world, 2 * (size_t)world.chunks);
    size_t floats = 0;
    for (size_t i = 0; i < world.heard_count; i++) {
        const heard_t *heard = &world.heard[i];
        assert_int_equal(heard->aggregator, heard->msg.chunk % 2);
        assert_int_equal(heard->msg.step, 7);
        assert_int_equal(heard->msg.shards, SHARDS);
        assert_int_equal(heard->msg.chunks, world.chunks);
        assert_true(heard->msg.node == 5 || heard->msg.node == 3);
        if (heard->msg.chunk == 0)
            assert_true(heard->first == (float)heard->msg.node);
        floats += heard->bytes / sizeof(float);
    }
    assert_int_equal(floats, 2 * (size_t)COUNT);
    assert_string_equal(world.peer, "learner/3/9");
    assert_null(allreduce_sum(world.self));
    s_answer_all(&world, 1, 7, 2.5f);
    const float *sum = s_sum(&world);
    for (size_t i = 0; i < (size_t)COUNT; i += 997)
        assert_true(sum[i] == 2.5f + (float)(i / ALLREDUCE_CHUNK));
    assert_true(sum[(size_t)COUNT - 1] == 2.5f + (float)(world.chunks - 1));
    s_close(&world);
}

static void test_other_steps_and_generations_are_not_taken(void **state)
{
    (void)state;
    static world_t world;
    s_open(&world, 1);
    s_send(&world, 7, 0, 2);
    s_hear(&world, world.chunks);
    s_answer_all(&world, 1, 6, 1);
    s_answer_all(&world, 2, 7, 1);
    s_answer_all(&world, 0, 7, 1);
    for (uint32_t chunk = 1; chunk < world.chunks; chunk++) {
        s_answer(&world, 1, 7, chunk, 1);
        s_answer(&world, 1, 7, chunk, 9); /* again: not taken */
    }
    for (int i = 0; i < 20; i++)
        tt_loop_poll(world.loop, 2);
    assert_null(allreduce_sum(world.self));
    s_answer(&world, 1, 7, 0, 1);
    assert_true(s_sum(&world)[ALLREDUCE_CHUNK] == 2);
    s_close(&world);
}

/*  A peer may be a step behind: on entering a generation the sum of the last finished step goes out as the root. */
static void test_a_new_generation_gets_the_last_sum_first(void **state)
{
    (void)state;
    static world_t world;
    s_open(&world, 1);
    s_send(&world, 7, 0, 2);
    s_hear(&world, world.chunks);
    s_answer_all(&world, 1, 7, 4);
    s_sum(&world);
    allreduce_finish(world.self);
    s_send(&world, 8, 0, 2);
    s_hear(&world, 2 * (size_t)world.chunks);
    world.view.generation = 2;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, 3 * (size_t)world.chunks);
    for (size_t i = 2 * (size_t)world.chunks; i < world.heard_count; i++) {
        assert_int_equal(world.heard[i].msg.node, 1);
        assert_int_equal(world.heard[i].msg.step, 7);
        assert_int_equal(world.heard[i].msg.generation, 2);
        assert_true(world.heard[i].first == 4 + (float)world.heard[i].msg.chunk);
    }
    s_answer_all(&world, 1, 8, 5); /* too late: the step starts again in generation 2 */
    s_hear_no_more(&world, 3 * (size_t)world.chunks);
    assert_null(allreduce_sum(world.self));
    s_send(&world, 8, 0, 4);
    s_hear(&world, 4 * (size_t)world.chunks);
    assert_int_equal(world.heard[world.heard_count - 1].msg.node, 1);
    s_answer_all(&world, 2, 8, 5);
    assert_true(s_sum(&world)[0] == 5);
    s_close(&world);
}

/*  One that joined ahead of the others helps those behind, as its rank 0 would have. */
static void test_a_joiner_hands_on_the_sum_it_was_given(void **state)
{
    (void)state;
    static world_t world;
    s_open(&world, 1);
    uint64_t step = 0;
    assert_null(allreduce_last_sum(world.self, &step));
    float *sum = tt_array0((size_t)COUNT, sizeof *sum);
    sum[0] = 3;
    allreduce_keep(world.self, 7, sum);
    assert_non_null(allreduce_last_sum(world.self, &step));
    assert_int_equal(step, 7);
    world.view.generation = 2;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, world.chunks);
    assert_int_equal(world.heard[0].msg.node, 1);
    assert_int_equal(world.heard[0].msg.step, 7);
    assert_true(world.heard[0].first == 3);
    free(sum);
    s_close(&world);
}

static void test_an_aggregator_that_comes_back_gets_everything_again(void **state)
{
    (void)state;
    static world_t world;
    s_open(&world, 2);
    s_send(&world, 7, 0, 2);
    s_hear(&world, world.chunks);
    s_answer_all(&world, 1, 7, 4);
    s_sum(&world);
    allreduce_finish(world.self);
    s_send(&world, 8, 0, 2);
    s_hear(&world, 2 * (size_t)world.chunks);
    s_unbind(&world, 1);
    world.view.aggregators = 1;
    assert_ok(allreduce_enter(world.self, &world.view)); /* its chunks move to the one that is left */
    s_hear(&world, 4 * (size_t)world.chunks);
    for (size_t i = 2 * (size_t)world.chunks; i < world.heard_count; i++)
        assert_int_equal(world.heard[i].aggregator, 0);
    s_bind(&world, 1);
    world.view.aggregators = 2;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, 6 * (size_t)world.chunks);
    assert_ok(allreduce_enter(world.self, &world.view)); /* the same roster again says nothing new */
    s_hear_no_more(&world, 6 * (size_t)world.chunks);
    s_answer_all(&world, 1, 8, 6);
    assert_true(s_sum(&world)[0] == 6);
    s_close(&world);
}

static void test_after_a_silence_it_is_sent_again(void **state)
{
    (void)state;
    static world_t world;
    char text[64];
    s_open(&world, 1);
    s_send(&world, 7, 0, 2);
    s_hear(&world, world.chunks);
    tt_clock_turn(&world.clock, 499 * INT64_C(1000000));
    assert_ok(allreduce_nudge(world.self));
    s_hear_no_more(&world, world.chunks);
    tt_clock_turn(&world.clock, 2 * INT64_C(1000000));
    assert_ok(allreduce_nudge(world.self));
    s_hear(&world, 2 * (size_t)world.chunks);
    assert_string_equal(allreduce_awaited(world.self, text, sizeof text), "aggregator/0");
    s_answer_all(&world, 1, 7, 1);
    s_sum(&world);
    allreduce_finish(world.self);
    tt_clock_turn(&world.clock, 5000 * INT64_C(1000000));
    assert_ok(allreduce_nudge(world.self)); /* nothing is in hand */
    s_hear_no_more(&world, 2 * (size_t)world.chunks);
    s_close(&world);
}

/* ---- both learners on one host ----------------------------------------------------------------------------------------- */

/*  A step of both that is sent, and answered. */
static void s_sent_step(world_t *world, uint64_t generation, uint64_t step)
{
    const size_t before = world->heard_count;
    assert_ok(allreduce_send(world->self, step, 0, 2, s_node, world));
    assert_ok(allreduce_send(world->other, step, 2, 4, s_node, world));
    s_hear(world, before + 2 * (size_t)world->chunks);
    s_answer_all(world, generation, step, 1);
    assert_true(s_sum(world)[0] == 1);
    for (const int64_t until = tt_now_ms(tt_clock_real()) + WAIT_MS; !allreduce_sum(world->other);) {
        tt_loop_poll(world->loop, 100);
        assert_true(tt_now_ms(tt_clock_real()) < until);
    }
    allreduce_finish(world->self);
    allreduce_finish(world->other);
}

static bool s_said(const heard_t *heard)
{
    return heard->msg.reaches;
}

static bool s_all_said(const world_t *world, size_t from)
{
    for (; from < world->heard_count; from++)
        if (!s_said(&world->heard[from]))
            return false;
    return true;
}

/*  By definition: nodes 2 and 3, side by side. */
static void s_check_sum(const float *sum)
{
    assert_non_null(sum);
    for (size_t i = 0; i < COUNT; i += 499) {
        const float term = (float)(i % 1009) * 1e-3f;
        assert_true(sum[i] == (2 + term) + (3 + term));
    }
}

/*  A generation begins with sending; once a sum says that all reach all, nothing is sent any more, and the sum is the tree's. */
static void test_learners_of_one_host_send_nothing(void **state)
{
    (void)state;
    static world_t world;
    char text[64];
    s_open_both(&world);
    world.reached = true;
    s_sent_step(&world, 1, 7);
    assert_true(s_all_said(&world, 0));
    const size_t heard = world.heard_count;
    for (uint64_t step = 8; step < 12; step++) {
        assert_ok(allreduce_send(world.self, step, 0, 2, s_node, &world));
        assert_null(allreduce_sum(world.self));
        assert_string_equal(allreduce_awaited(world.self, text, sizeof text), "learner/4");
        assert_ok(allreduce_send(world.other, step, 2, 4, s_node, &world));
        assert_ok(tt_loop_poll(world.loop, WAIT_MS)); /* woken */
        s_check_sum(allreduce_sum(world.self));
        s_check_sum(allreduce_sum(world.other));
        allreduce_finish(world.self);
        allreduce_finish(world.other);
    }
    s_hear_no_more(&world, heard);
    s_close(&world);
}

static void test_as_long_as_a_sum_does_not_say_so_they_send(void **state)
{
    (void)state;
    static world_t world;
    s_open_both(&world);
    for (uint64_t step = 7; step < 10; step++)
        s_sent_step(&world, 1, step);
    assert_true(s_all_said(&world, 0)); /* it is for the sum to say */
    s_close(&world);
}

/*  One sum of several says that not all reach all: it is so of the step. */
static void test_every_chunk_has_to_say_so(void **state)
{
    (void)state;
    static world_t world;
    for (uint32_t but = 0; but < 3; but++) {
        s_open_both(&world);
        assert_ok(allreduce_send(world.self, 7, 0, 2, s_node, &world));
        s_hear(&world, world.chunks);
        assert_ok(allreduce_send(world.other, 7, 2, 4, s_node, &world));
        s_hear(&world, 2 * (size_t)world.chunks);
        for (uint32_t chunk = 0; chunk < world.chunks; chunk++) {
            world.reached = chunk != but;
            s_answer(&world, 1, 7, chunk, 1);
        }
        s_sum(&world);
        allreduce_finish(world.self);
        assert_ok(allreduce_send(world.self, 8, 0, 2, s_node, &world));
        s_hear(&world, 3 * (size_t)world.chunks);
        s_close(&world);
    }
}

/*  Whatever was held before: of a new generation somebody may be new, or on another host. */
static void test_a_new_generation_sends_again(void **state)
{
    (void)state;
    static world_t world;
    s_open_both(&world);
    world.reached = true;
    s_sent_step(&world, 1, 7);
    assert_ok(allreduce_send(world.self, 8, 0, 2, s_node, &world));
    assert_ok(allreduce_send(world.other, 8, 2, 4, s_node, &world));
    s_check_sum(allreduce_sum(world.self));
    allreduce_finish(world.self);
    assert_ok(allreduce_send(world.self, 9, 0, 2, s_node, &world)); /* it is a step ahead */
    const size_t heard = world.heard_count;
    world.view.generation = 2;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, heard + world.chunks);
    for (size_t i = heard; i < world.heard_count; i++) { /* the sum of the step that was held, as the root */
        assert_int_equal(world.heard[i].msg.node, 1);
        assert_int_equal(world.heard[i].msg.step, 8);
        assert_false(s_said(&world.heard[i])); /* who is there now it does not know */
    }
    assert_true(world.heard[heard].first == 2.0f + 3.0f);
    assert_ok(allreduce_send(world.self, 9, 0, 2, s_node, &world));
    s_hear(&world, heard + 2 * (size_t)world.chunks);
    s_close(&world);
}

/*  An aggregator that comes back is told of the step that was sent last, and that all reach all: another learner may lack its sum. What was
 *  held is no aggregator's. */
static void test_an_aggregator_hears_of_what_was_sent(void **state)
{
    (void)state;
    static world_t world;
    s_open_both(&world);
    world.reached = true;
    s_sent_step(&world, 1, 7);
    assert_ok(allreduce_send(world.self, 8, 0, 2, s_node, &world));
    const size_t heard = world.heard_count;
    s_unbind(&world, 0);
    s_bind(&world, 0);
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, heard + world.chunks);
    assert_int_equal(world.heard[heard].msg.node, 1);
    assert_int_equal(world.heard[heard].msg.step, 7);
    assert_true(s_all_said(&world, heard));
    s_other_enters(&world);
    s_hear(&world, heard + 2 * (size_t)world.chunks);
    assert_ok(allreduce_send(world.other, 8, 2, 4, s_node, &world));
    s_check_sum(allreduce_sum(world.other));
    s_check_sum(allreduce_sum(world.self));
    allreduce_finish(world.self);
    s_unbind(&world, 0);
    s_bind(&world, 0);
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear_no_more(&world, heard + 2 * (size_t)world.chunks);
    s_close(&world);
}

/*  Silence is none of theirs: who waits for a peer has nothing to say again. */
static void test_a_held_step_is_not_sent_after_a_silence(void **state)
{
    (void)state;
    static world_t world;
    s_open_both(&world);
    world.reached = true;
    s_sent_step(&world, 1, 7);
    for (uint64_t step = 8; step < 10; step++) {
        assert_ok(allreduce_send(world.self, step, 0, 2, s_node, &world));
        assert_ok(allreduce_send(world.other, step, 2, 4, s_node, &world));
        s_check_sum(allreduce_sum(world.self));
        s_check_sum(allreduce_sum(world.other));
        allreduce_finish(world.self);
        allreduce_finish(world.other);
    }
    assert_ok(allreduce_send(world.self, 10, 0, 2, s_node, &world));
    const size_t heard = world.heard_count;
    s_nudge(&world);
    s_hear_no_more(&world, heard);
    s_close(&world);
}

static void test_without_an_aggregator_it_says_so(void **state)
{
    (void)state;
    static world_t world;
    char text[64];
    s_open(&world, 0);
    s_send(&world, 7, 0, 2);
    assert_string_equal(allreduce_awaited(world.self, text, sizeof text), "an aggregator to join");
    s_bind(&world, 0);
    world.view.aggregators = 1;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_hear(&world, world.chunks);
    s_close(&world);
}

/*  An aggregator that stands still: however often it is said again, little waits for it: what queues and sockets hold, eleven times on a quiet
 *  machine, and some more where the threads between them are slow. */
static void test_what_waits_for_a_stopped_aggregator_is_bounded(void **state)
{
    enum { SAID = 1000 };
    (void)state;
    static world_t world;
    s_open(&world, 0);
    world.hwm = 1;
    s_bind(&world, 0);
    world.view.aggregators = 1;
    assert_ok(allreduce_enter(world.self, &world.view));
    s_send(&world, 7, 0, 2);
    for (int i = 0; i < SAID; i++)
        s_nudge(&world);
    allreduce_finish(world.self);
    s_send(&world, 8, 0, 2); /* perhaps there is no room for it yet */
    const int64_t until = tt_now_ms(tt_clock_real()) + WAIT_MS;
    while (world.newest < 8) {
        tt_loop_poll(world.loop, 10);
        s_nudge(&world);
        assert_true(tt_now_ms(tt_clock_real()) < until);
    }
    assert_in_range(world.of_7, world.chunks, SAID / 20 * (size_t)world.chunks);
    s_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_go_round_the_aggregators),
        cmocka_unit_test(test_other_steps_and_generations_are_not_taken),
        cmocka_unit_test(test_a_new_generation_gets_the_last_sum_first),
        cmocka_unit_test(test_a_joiner_hands_on_the_sum_it_was_given),
        cmocka_unit_test(test_an_aggregator_that_comes_back_gets_everything_again),
        cmocka_unit_test(test_after_a_silence_it_is_sent_again),
        cmocka_unit_test(test_what_waits_for_a_stopped_aggregator_is_bounded),
        cmocka_unit_test(test_without_an_aggregator_it_says_so),
        cmocka_unit_test(test_learners_of_one_host_send_nothing),
        cmocka_unit_test(test_as_long_as_a_sum_does_not_say_so_they_send),
        cmocka_unit_test(test_every_chunk_has_to_say_so),
        cmocka_unit_test(test_a_new_generation_sends_again),
        cmocka_unit_test(test_an_aggregator_hears_of_what_was_sent),
        cmocka_unit_test(test_a_held_step_is_not_sent_after_a_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
