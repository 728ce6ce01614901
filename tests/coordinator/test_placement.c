/*  placement: ranges partition 0 .. num_envs-1; orders and limits. */
#include <stdlib.h>
#include <string.h>
#include "coordinator/placement.h"
#include "tests/test.h"

static void test_ranges_are_a_near_equal_partition(void **state)
{
    (void)state;
    for (uint32_t envs = 1; envs <= 64; envs++) {
        for (size_t n = 1; n <= envs; n++) {
            uint32_t next = 0;
            for (size_t i = 0; i < n; i++) {
                uint32_t lo = 0, count = 0;
                placement_range(envs, i, n, &lo, &count);
                assert_int_equal(lo, next);
                assert_true(count == envs / n || count == envs / n + 1);
                next = lo + count;
            }
            assert_int_equal(next, envs);
        }
    }
}

static void test_ranges_of_many_envs_do_not_overflow(void **state)
{
    (void)state;
    uint32_t lo = 0, count = 0;
    placement_range(UINT32_MAX, 4094, 4095, &lo, &count);
    assert_true((uint64_t)lo + count == UINT32_MAX);
}

typedef struct {
    tt_peer_role_t role;
    uint32_t index, rank;
    peer_state_t state;
    bool holds;
} row_t;

static peer_t **s_peers(const row_t *rows, size_t count)
{
    peer_t **peers = calloc(count, sizeof *peers);
    for (size_t i = 0; i < count; i++) {
        peers[i] = calloc(1, sizeof **peers);
        peers[i]->role = rows[i].role;
        peers[i]->index = rows[i].index;
        peers[i]->rank = rows[i].rank;
        peers[i]->state = rows[i].state;
        peers[i]->holds = rows[i].holds;
        peers[i]->order = i;
    }
    return peers;
}

static void s_free(peer_t **peers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(peers[i]);
    free(peers);
}

#define NO_RANK UINT32_MAX

/*  The learners placed among these rows must have these numbers, in this order. */
static void s_expect_learners(const row_t *rows, size_t count, const uint32_t *expected, size_t expected_count)
{
    peer_t **peers = s_peers(rows, count);
    placement_t placed;
    placement_make(&placed, peers, count, &(placement_limits_t){.num_envs = 4, .shards = 8});
    assert_int_equal(placed.learner_count, expected_count);
    for (size_t i = 0; i < expected_count; i++)
        assert_int_equal(placed.learners[i]->index, expected[i]);
    placement_free(&placed);
    s_free(peers, count);
}

static void test_joiners_come_last_in_order_of_their_numbers(void **state)
{
    (void)state;
    const row_t rows[] = {
        {TT_PEER_AGGREGATOR, 0, NO_RANK, PEER_ACTIVE, false},
        {TT_PEER_LEARNER, 4, NO_RANK, PEER_WAITING, false},
        {TT_PEER_LEARNER, 0, NO_RANK, PEER_WAITING, false},
        {TT_PEER_LEARNER, 3, 0, PEER_ACTIVE, true},
        {TT_PEER_LEARNER, 2, 1, PEER_ACTIVE, true},
        {TT_PEER_LEARNER, 1, 2, PEER_DRAINING, true},
    };
    s_expect_learners(rows, TT_COUNT(rows), (const uint32_t[]){3, 2, 0, 4}, 4);
}

static void test_rank_0_holds_the_weights(void **state)
{
    (void)state;
    const row_t rows[] = {
        {TT_PEER_AGGREGATOR, 0, NO_RANK, PEER_ACTIVE, false},
        {TT_PEER_LEARNER, 0, 1, PEER_ACTIVE, false},
        {TT_PEER_LEARNER, 1, 2, PEER_ACTIVE, true},
        {TT_PEER_LEARNER, 2, 3, PEER_ACTIVE, true},
    };
    s_expect_learners(rows, TT_COUNT(rows), (const uint32_t[]){1, 0, 2}, 3);
}

static void test_without_an_aggregator_nobody_joins_the_first_learner(void **state)
{
    (void)state;
    const row_t joiners[] = {
        {TT_PEER_LEARNER, 0, NO_RANK, PEER_WAITING, false},
        {TT_PEER_LEARNER, 1, NO_RANK, PEER_WAITING, false},
    };
    s_expect_learners(joiners, TT_COUNT(joiners), (const uint32_t[]){0}, 1);
    const row_t active[] = {
        /* two that summed already wait for the next aggregator */
        {TT_PEER_LEARNER, 0, 0, PEER_ACTIVE, true},
        {TT_PEER_LEARNER, 1, 1, PEER_ACTIVE, true},
    };
    s_expect_learners(active, TT_COUNT(active), (const uint32_t[]){0, 1}, 2);
}

static void test_limits_keep_those_who_take_part(void **state)
{
    (void)state;
    const row_t rows[] = {
        {TT_PEER_COLLECTOR, 1, NO_RANK, PEER_WAITING, false},
        {TT_PEER_COLLECTOR, 0, NO_RANK, PEER_WAITING, false},
        {TT_PEER_COLLECTOR, 3, NO_RANK, PEER_ACTIVE, false},
        {TT_PEER_COLLECTOR, 2, NO_RANK, PEER_GONE, false},
    };
    peer_t **peers = s_peers(rows, TT_COUNT(rows));
    placement_t placed;
    placement_make(&placed, peers, TT_COUNT(rows), &(placement_limits_t){.num_envs = 2, .shards = 1});
    assert_int_equal(placed.collector_count, 2);
    assert_int_equal(placed.collectors[0]->index, 1); /* the earliest of those that wait */
    assert_int_equal(placed.collectors[1]->index, 3); /* takes part already */
    placement_free(&placed);
    s_free(peers, TT_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_are_a_near_equal_partition),
        cmocka_unit_test(test_ranges_of_many_envs_do_not_overflow),
        cmocka_unit_test(test_joiners_come_last_in_order_of_their_numbers),
        cmocka_unit_test(test_rank_0_holds_the_weights),
        cmocka_unit_test(test_without_an_aggregator_nobody_joins_the_first_learner),
        cmocka_unit_test(test_limits_keep_those_who_take_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
