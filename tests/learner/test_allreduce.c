/*  The line to the aggregators, which the test plays: chunks, generations, restarts, silence. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/tree.h"
#include "learner/allreduce.h"
#include "tests/folder.h"

enum { SHARDS = 4, ROWS = 8, HEARD_MAX = 256, WAIT_MS = 10000 };

static const tt_net_spec_t s_spec = {
    .obs = 64,
    .towers = 2,
    .tower = {{.name = "actor", .hidden_count = 2, .hidden = {512, 512}, .out = 2},
        {.name = "critic", .hidden_count = 2, .hidden = {512, 512}, .out = 1}},
};

typedef struct {
    uint32_t aggregator;
    tt_msg_GRAD_t msg;
    size_t bytes;
    float first; /* of the chunk */
} heard_t;

typedef struct {
    char dir[FOLDER_MAX];
    tt_loop_t *loop;
    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_t *net;
    tt_table_t *table;
    tt_sums_t *sums;
    float *obs;
    uint32_t row[ROWS];
    size_t count;
    uint32_t chunks;
    tt_clock_t clock;
    allreduce_t *self;
    tt_sock_t *aggregator[2]; /* ROUTERs */
    uint32_t sockets;         /* made so far: their names */
    view_t view;
    char peer[64];
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

/*  A loss of which only the value head is wrong, by the row's number. */
static void s_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params, (void)input;
    for (uint32_t r = 0; r < block->rows; r++)
        block->d_head[1][r] = block->head[1][r] - (float)block->row[r];
}

static const tt_objective_t s_objective = {
    .name = "value", .stages = 2, .stage = {{.tower = 0, .grad = true}, {.tower = 1, .grad = true}}, .loss = s_loss};

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

static void s_open(world_t *world, uint32_t aggregators)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(folder_make(world->dir, "allreduce"), 0);
    world->clock = tt_clock_fake(0);
    assert_ok(tt_loop_new(&world->loop, NULL));
    assert_ok(tt_device_open(&world->device, NULL, 0, 1));
    assert_ok(tt_stream_new(&world->stream, world->device));
    assert_ok(tt_net_new(&world->net, world->device, &s_spec));
    const size_t params = tt_net_param_count(&s_spec);
    float *weights = tt_array0(params, sizeof *weights);
    for (size_t i = 0; i < params; i++) /* any will do; orthogonal ones of this size take their time */
        weights[i] = (float)((int)(i * 37 % 101) - 50) * 1e-3f;
    assert_ok(tt_net_put(world->net, world->stream, 0, weights));
    free(weights);
    assert_ok(tt_sums_new(&world->sums, world->net, SHARDS));
    world->obs = tt_array0(ROWS * (size_t)s_spec.obs, sizeof(float));
    for (uint32_t r = 0; r < ROWS; r++) {
        world->obs[(size_t)r * s_spec.obs + r] = 1;
        world->row[r] = r;
    }
    assert_ok(tt_table_new(&world->table, world->device, s_spec.obs * sizeof(float)));
    assert_ok(tt_table_put(world->table, world->stream, world->obs, ROWS));
    world->count = tt_net_grad_count(&s_spec);
    world->chunks = (uint32_t)((world->count + ALLREDUCE_CHUNK - 1) / ALLREDUCE_CHUNK);
    assert_true(world->chunks >= 3);
    const allreduce_cfg_t cfg = {.loop = world->loop,
        .index = 3,
        .instance = 9,
        .shards = SHARDS,
        .count = world->count,
        .resend_ms = 500,
        .clock = &world->clock};
    world->self = allreduce_new(&cfg);
    world->view =
        (view_t){.era = 1, .epoch = 1, .generation = 1, .member = true, .learners = 2, .aggregators = aggregators};
    world->view.aggregator = tt_array0(2, sizeof *world->view.aggregator);
    for (uint32_t i = 0; i < aggregators; i++)
        s_bind(world, i);
    assert_ok(allreduce_enter(world->self, &world->view));
}

static void s_close(world_t *world)
{
    allreduce_destroy(&world->self);
    for (uint32_t i = 0; i < 2; i++)
        if (world->aggregator[i])
            s_unbind(world, i);
    tt_sums_destroy(&world->sums);
    tt_table_destroy(&world->table);
    tt_net_destroy(&world->net);
    tt_stream_destroy(&world->stream);
    tt_device_close(&world->device);
    tt_loop_destroy(&world->loop);
    free(world->obs);
    view_clear(&world->view);
    assert_int_equal(folder_remove(world->dir), 0);
}

static void s_send(world_t *world, uint64_t step, uint32_t lo, uint32_t hi)
{
    const tt_pass_t pass = {.objective = &s_objective, .obs = {world->table}, .row = world->row, .rows = ROWS};
    assert_ok(tt_sums_compute(world->sums, world->stream, &pass, lo, hi));
    assert_ok(allreduce_send(world->self, step, world->sums, world->stream, lo, hi));
}

static const float *s_node(const world_t *world, uint32_t node)
{
    const float *out;
    assert_ok(tt_sums_node(world->sums, world->stream, node, &out));
    return out;
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
    const size_t from = (size_t)chunk * ALLREDUCE_CHUNK, left = world->count - from;
    const size_t floats = left < ALLREDUCE_CHUNK ? left : ALLREDUCE_CHUNK;
    zmq_msg_t frame;
    tt_frame_new(&frame, floats * sizeof(float));
    for (size_t i = 0; i < floats; i++)
        ((float *)zmq_msg_data(&frame))[i] = value + (float)chunk;
    const tt_msg_SUM_t sum =
        TT_MSG(SUM, .era = 1, .generation = generation, .step = step, .chunk = chunk, .chunks = world->chunks);
    assert_ok(tt_sock_send(world->aggregator[chunk % world->view.aggregators], world->peer, &sum, &frame, 1));
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
            assert_memory_equal(&heard->first, s_node(&world, heard->msg.node), sizeof(float));
        floats += heard->bytes / sizeof(float);
    }
    assert_int_equal(floats, 2 * world.count);
    assert_string_equal(world.peer, "learner/3/9");
    assert_null(allreduce_sum(world.self));
    s_answer_all(&world, 1, 7, 2.5f);
    const float *sum = s_sum(&world);
    for (size_t i = 0; i < world.count; i += 997)
        assert_true(sum[i] == 2.5f + (float)(i / ALLREDUCE_CHUNK));
    assert_true(sum[world.count - 1] == 2.5f + (float)(world.chunks - 1));
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
    assert_null(allreduce_kept(world.self, &step));
    float *sum = tt_array0(world.count, sizeof *sum);
    sum[0] = 3;
    allreduce_keep(world.self, 7, sum);
    assert_non_null(allreduce_kept(world.self, &step));
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

static void s_nudge(world_t *world)
{
    tt_clock_turn(&world->clock, 501 * INT64_C(1000000));
    assert_ok(allreduce_nudge(world->self));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
