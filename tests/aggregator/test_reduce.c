/*  The aggregator's rules without sockets: every order of arrival gives the bits of the plain recursion, everyone who sent
 *  is answered once, generations and steps replace one another, and bad input changes nothing. */
#include "aggregator/reduce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/rng.h"
#include "common/net/net.h"
#include "common/nn/tree.h"
#include "tests/test.h"

enum { SHARDS = 8, COUNT = 33, ANSWERS = 256 };

static uint64_t s_counter;

static uint32_t s_word(void)
{
    uint32_t words[4];
    tt_draw(words, 11, TT_STREAM_TEST, 0, s_counter++);
    return words[0];
}

/* ---- what was answered ------------------------------------------------------------------------------------------- */

typedef struct {
    char peer[64];
    tt_msg_SUM_t sum;
    float data[COUNT];
} answer_t;

typedef struct {
    answer_t at[ANSWERS];
    size_t count;
    tt_status_t say; /* what sending returns */
} answers_t;

static answers_t s_answers;

static tt_status_t s_send(void *ctx, const char *peer, const tt_msg_SUM_t *sum, zmq_msg_t *frame)
{
    assert_ptr_equal(ctx, &s_answers);
    if (s_answers.say != TT_OK)
        return s_answers.say;
    assert_true(s_answers.count < ANSWERS);
    answer_t *answer = &s_answers.at[s_answers.count++];
    snprintf(answer->peer, sizeof answer->peer, "%s", peer);
    answer->sum = *sum;
    assert_int_equal(zmq_msg_size(frame), sizeof answer->data);
    memcpy(answer->data, zmq_msg_data(frame), sizeof answer->data);
    tt_frame_close(frame);
    zmq_msg_init(frame);
    return TT_OK;
}

static size_t s_answers_to(const char *peer, uint64_t step)
{
    size_t count = 0;
    for (size_t i = 0; i < s_answers.count; i++)
        count += strcmp(s_answers.at[i].peer, peer) == 0 && s_answers.at[i].sum.step == step;
    return count;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/*  Shard gradients are a function of (step, shard, element), of very different size. */
static float s_leaf(uint64_t step, uint32_t shard, size_t i)
{
    uint32_t words[4];
    tt_draw(words, 3, TT_STREAM_TEST, shard, step << 32 | i);
    return (tt_unit_f32(words[0]) - 0.5f) * (float)(1u << (words[1] % 24));
}

static float s_node(uint64_t step, uint32_t node, size_t i)
{
    return node >= SHARDS ? s_leaf(step, node - SHARDS, i) : s_node(step, 2 * node, i) + s_node(step, 2 * node + 1, i);
}

typedef struct {
    uint32_t era;
    uint64_t generation, step;
    uint32_t node;
} grad_t;

static bool s_reaches; /* what the next ones say */

static tt_msg_GRAD_t s_message(grad_t g)
{
    return TT_MSG(GRAD, .era = g.era, .generation = g.generation, .step = g.step, .node = g.node, .shards = SHARDS,
        .chunk = 0, .chunks = 1, .reaches = s_reaches);
}

static void s_frame(zmq_msg_t *frame, grad_t g)
{
    tt_frame_new(frame, COUNT * sizeof(float));
    for (size_t i = 0; i < COUNT; i++)
        ((float *)zmq_msg_data(frame))[i] = s_node(g.step, g.node, i);
}

static tt_status_t s_grad(reduce_t *reduce, const char *peer, grad_t g)
{
    zmq_msg_t frame;
    s_frame(&frame, g);
    const tt_msg_GRAD_t msg = s_message(g);
    const tt_status_t status = reduce_grad(reduce, peer, &msg, &frame);
    assert_int_equal(zmq_msg_size(&frame), 0); /* taken in every case */
    tt_frame_close(&frame);
    return status;
}

static void s_assert_sums_right(void)
{
    for (size_t a = 0; a < s_answers.count; a++)
        for (size_t i = 0; i < COUNT; i++)
            assert_true(s_answers.at[a].data[i] == s_node(s_answers.at[a].sum.step, 1, i));
}

static int s_setup(void **state)
{
    const reduce_limits_t limits = {.shards = SHARDS, .chunks = 4, .chunk_bytes = 1 << 16};
    memset(&s_answers, 0, sizeof s_answers);
    if (reduce_new((reduce_t **)state, &limits, s_send, &s_answers) != TT_OK)
        return -1;
    reduce_enter(*state, 1, 1);
    return 0;
}

static int s_teardown(void **state)
{
    reduce_destroy((reduce_t **)state);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

typedef struct {
    char peer[24];
    uint32_t node;
} part_t;

static size_t s_parts(uint32_t learners, part_t *parts)
{
    size_t count = 0;
    for (uint32_t rank = 0; rank < learners; rank++) {
        uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
        tt_tree_run(SHARDS, learners, rank, &lo, &hi);
        const size_t n = tt_tree_nodes(SHARDS, lo, hi, nodes);
        for (size_t i = 0; i < n; i++, count++) {
            snprintf(parts[count].peer, sizeof parts[count].peer, "learner/%u", rank);
            parts[count].node = nodes[i];
        }
    }
    return count;
}

static void test_every_split_and_order(void **state)
{
    uint64_t step = 0;
    for (uint32_t learners = 1; learners <= SHARDS; learners++) {
        reduce_enter(*state, 1, learners);
        for (int trial = 0; trial < 20; trial++, step++) {
            part_t parts[64];
            const size_t count = s_parts(learners, parts);
            for (size_t i = count; i > 1; i--) {
                const size_t j = tt_below(s_word(), (uint32_t)i);
                const part_t part = parts[i - 1];
                parts[i - 1] = parts[j];
                parts[j] = part;
            }
            s_answers.count = 0;
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(s_answers.count, 0);
                assert_ok(s_grad(*state, parts[i].peer, (grad_t){1, learners, step, parts[i].node}));
            }
            assert_int_equal(s_answers.count, learners);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(s_answers_to(parts[i].peer, step), 1);
            s_assert_sums_right();
        }
    }
    assert_int_equal(reduce_sums(*state), step);
    assert_int_equal(reduce_dropped(*state), 0);
}

/*  A survivor is one step ahead and serves the sum of the step before as a root; the other gets that and no other. */
static void test_new_generation_serves_the_step_before(void **state)
{
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 7, 2}));
    reduce_enter(*state, 1, 2);
    assert_ok(s_grad(*state, "a", (grad_t){1, 2, 6, 1})); /* generation 2: what a sent for step 7 is void */
    assert_int_equal(s_answers_to("a", 6), 1);
    assert_ok(s_grad(*state, "a", (grad_t){1, 2, 7, 2}));
    assert_int_equal(s_grad(*state, "b", (grad_t){1, 2, 5, 1}), TT_PROTOCOL); /* two behind: that cannot be */
    assert_non_null(strstr(tt_err_text(), "GRAD of step 5 from b: a is at step 7"));
    assert_int_equal(reduce_dropped(*state), 1);
    assert_ok(s_grad(*state, "b", (grad_t){1, 2, 6, 3})); /* late: answered with what is there */
    assert_int_equal(s_answers_to("b", 6), 1);
    assert_int_equal(s_answers_to("b", 7), 0);
    assert_ok(s_grad(*state, "b", (grad_t){1, 2, 7, 3}));
    assert_int_equal(s_answers_to("a", 7), 1);
    assert_int_equal(s_answers_to("b", 7), 1);
    s_assert_sums_right();
}

static void test_older_generation_is_dropped(void **state)
{
    reduce_enter(*state, 1, 3);
    assert_ok(s_grad(*state, "a", (grad_t){1, 2, 4, 1}));
    assert_int_equal(s_answers.count, 0);
    reduce_enter(*state, 2, 1); /* another era: its generations count anew */
    assert_ok(s_grad(*state, "a", (grad_t){1, 9, 4, 1}));
    assert_int_equal(s_answers.count, 0);
    assert_int_equal(reduce_dropped(*state), 2);
    assert_ok(s_grad(*state, "a", (grad_t){2, 1, 4, 1}));
    assert_int_equal(s_answers_to("a", 4), 1);
    reduce_enter(*state, 1, 5); /* an old roster changes nothing */
    assert_ok(s_grad(*state, "b", (grad_t){2, 1, 4, 3}));
    assert_int_equal(s_answers_to("b", 4), 1);
}

static void test_repeat_is_answered_again(void **state)
{
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 0, 2}));
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 0, 6}));
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 0, 7}));
    assert_int_equal(s_answers_to("b", 0), 1);
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 0, 6})); /* it sends all again: one more answer, not two */
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 0, 7}));
    assert_int_equal(s_answers_to("b", 0), 2);
    assert_int_equal(s_answers_to("a", 0), 1);
    s_assert_sums_right();
}

static void test_only_two_steps_are_kept(void **state)
{
    for (uint64_t step = 0; step < 5; step++)
        assert_ok(s_grad(*state, "a", (grad_t){1, 1, step, 1}));
    assert_int_equal(s_grad(*state, "b", (grad_t){1, 1, 2, 3}), TT_PROTOCOL);
    assert_int_equal(s_answers_to("b", 2), 0);
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 3, 3}));
    assert_int_equal(s_answers_to("b", 3), 1);
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 4, 3}));
    assert_int_equal(s_answers_to("b", 4), 1);
    s_assert_sums_right();
}

/*  TT_AGAIN, and the frame is still there. */
static void s_assert_ahead(reduce_t *reduce, const char *peer, grad_t g)
{
    zmq_msg_t frame;
    s_frame(&frame, g);
    const tt_msg_GRAD_t msg = s_message(g);
    assert_int_equal(reduce_grad(reduce, peer, &msg, &frame), TT_AGAIN);
    assert_int_equal(zmq_msg_size(&frame), COUNT * sizeof(float));
    tt_frame_close(&frame);
}

/*  Tags that cannot be yet change nothing: what is in hand is finished as if they had not come. */
static void test_what_is_ahead_voids_nothing(void **state)
{
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 5, 2}));
    s_assert_ahead(*state, "b", (grad_t){UINT32_MAX, 1, 5, 1});
    s_assert_ahead(*state, "b", (grad_t){1, UINT64_MAX, 5, 1});
    s_assert_ahead(*state, "b", (grad_t){1, 2, 5, 1});
    s_assert_ahead(*state, "b", (grad_t){1, 1, UINT64_MAX, 1});
    s_assert_ahead(*state, "b", (grad_t){1, 1, 7, 1});
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 5, 3}));
    assert_int_equal(s_answers_to("a", 5), 1);
    assert_int_equal(s_answers_to("b", 5), 1);
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 6, 1}));
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 7, 1}));
    assert_int_equal(s_answers_to("a", 7), 1);
    reduce_enter(*state, 1, 2);
    assert_ok(s_grad(*state, "b", (grad_t){1, 2, 5, 1}));
    s_assert_sums_right();
}

/*  Chunks that were another aggregator's for a while come back at any step; then the rule holds again. */
static void test_other_chunks_may_be_steps_further(void **state)
{
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 5, 2}));
    s_assert_ahead(*state, "a", (grad_t){1, 1, 99, 1});
    reduce_moved(*state);
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 99, 1}));
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 100, 2}));
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 100, 3}));
    assert_int_equal(s_answers_to("b", 100), 1);
    s_assert_ahead(*state, "a", (grad_t){1, 1, 102, 1});
    s_assert_sums_right();
}

static void test_full_socket_is_tried_again(void **state)
{
    s_answers.say = TT_AGAIN;
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 0, 1}));
    assert_int_equal(reduce_flush(*state), 1);
    s_answers.say = TT_OK;
    assert_int_equal(reduce_flush(*state), 0);
    assert_int_equal(s_answers_to("a", 0), 1);
    assert_int_equal(reduce_flush(*state), 0);
    assert_int_equal(s_answers_to("a", 0), 1);
}

static void test_peer_that_is_gone(void **state)
{
    s_answers.say = TT_UNAVAILABLE;
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 0, 1}));
    s_answers.say = TT_OK;
    assert_int_equal(reduce_flush(*state), 0);
    assert_int_equal(s_answers.count, 0);
}

/*  A frame that somebody else holds too must not be summed into. */
static void test_shared_frames_are_left_alone(void **state)
{
    const grad_t left = {1, 1, 0, 2}, right = {1, 1, 0, 3};
    const tt_msg_GRAD_t msg = s_message(left);
    zmq_msg_t mine, frame;
    s_frame(&mine, left);
    zmq_msg_init(&frame);
    zmq_msg_copy(&frame, &mine);
    assert_ok(reduce_grad(*state, "a", &msg, &frame));
    assert_ok(s_grad(*state, "b", right));
    assert_int_equal(s_answers.count, 2);
    s_assert_sums_right();
    for (size_t i = 0; i < COUNT; i++)
        assert_true(((float *)zmq_msg_data(&mine))[i] == s_node(0, 2, i));
    tt_frame_close(&mine);
    tt_frame_close(&frame);
}

static tt_status_t s_bad(reduce_t *reduce, tt_msg_GRAD_t msg, size_t bytes)
{
    zmq_msg_t frame;
    tt_frame_new(&frame, bytes);
    memset(zmq_msg_data(&frame), 0, bytes);
    const tt_status_t status = reduce_grad(reduce, "bad", &msg, &frame);
    tt_frame_close(&frame);
    return status;
}

static void test_bad_input_changes_nothing(void **state)
{
    const grad_t g = {1, 1, 3, 2};
    const tt_msg_GRAD_t good = s_message(g);
    tt_msg_GRAD_t bad = good;
    assert_ok(s_grad(*state, "a", g));
    bad.shards = 16;
    bad.generation = 99; /* a broken message must not void the generation either */
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.node = 0;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.node = 2 * SHARDS;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.chunks = 0;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.chunks = 5;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.chunk = 1;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.chunks = 2;
    assert_int_equal(s_bad(*state, bad, COUNT * 4), TT_PROTOCOL);
    bad = good, bad.node = 3;
    assert_int_equal(s_bad(*state, bad, COUNT * 4 - 4), TT_PROTOCOL);
    assert_int_equal(s_bad(*state, bad, COUNT * 4 - 1), TT_PROTOCOL);
    assert_int_equal(s_bad(*state, bad, 0), TT_PROTOCOL);
    assert_int_equal(s_bad(*state, bad, (1 << 16) + 4), TT_PROTOCOL);
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 3, 3}));
    assert_int_equal(s_answers_to("a", 3), 1);
    assert_int_equal(s_answers_to("b", 3), 1);
    s_assert_sums_right();
}

static void test_too_many_senders(void **state)
{
    char name[16];
    for (int i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "l%d", i);
        assert_ok(s_grad(*state, name, (grad_t){1, 1, 0, 9}));
    }
    assert_int_equal(s_grad(*state, "one more", (grad_t){1, 1, 0, 10}), TT_PROTOCOL);
}

/*  Whether all learners reach each other's memory: all that a sum is made of have to say so. A root was summed before, and speaks for all. */
static void test_a_sum_says_what_all_its_parts_say(void **state)
{
    const struct {
        uint32_t node[3];
        bool reaches[3], says;
    } cases[] = {
        {{2, 6, 7}, {true, true, true}, true},
        {{2, 6, 7}, {false, true, true}, false},
        {{2, 6, 7}, {true, true, false}, false},
        {{2, 6, 1}, {false, false, true}, true},
        {{2, 6, 1}, {true, true, false}, false},
    };
    for (uint64_t step = 0; step < TT_COUNT(cases); step++) {
        s_answers.count = 0;
        for (size_t k = 0; k < 3; k++) {
            s_reaches = cases[step].reaches[k];
            assert_ok(s_grad(*state, k ? "b" : "a", (grad_t){1, 1, step, cases[step].node[k]}));
        }
        assert_int_equal(s_answers.count, 2);
        for (size_t a = 0; a < 2; a++)
            assert_int_equal(s_answers.at[a].sum.reaches, cases[step].says);
    }
    s_reaches = false;
    s_assert_sums_right();
}

static void test_gap_names_the_missing_shard(void **state)
{
    reduce_gap_t gap;
    assert_false(reduce_gap(*state, &gap));
    assert_ok(s_grad(*state, "a", (grad_t){1, 1, 4, 2}));
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 4, 7}));
    assert_true(reduce_gap(*state, &gap));
    assert_int_equal(gap.step, 4);
    assert_int_equal(gap.shard, 4);
    assert_ok(s_grad(*state, "b", (grad_t){1, 1, 4, 6}));
    assert_false(reduce_gap(*state, &gap));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, s_setup, s_teardown)
    const struct CMUnitTest tests[] = {
        T(test_every_split_and_order),
        T(test_new_generation_serves_the_step_before),
        T(test_older_generation_is_dropped),
        T(test_repeat_is_answered_again),
        T(test_only_two_steps_are_kept),
        T(test_what_is_ahead_voids_nothing),
        T(test_other_chunks_may_be_steps_further),
        T(test_full_socket_is_tried_again),
        T(test_peer_that_is_gone),
        T(test_shared_frames_are_left_alone),
        T(test_bad_input_changes_nothing),
        T(test_too_many_senders),
        T(test_a_sum_says_what_all_its_parts_say),
        T(test_gap_names_the_missing_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
