/*  Partial sums in shared memory: the bits of one tree however shards are split, whole or not at all, and nobody sleeps on. */
#include "learner/exchange.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/nn/tree.h"
#include "tests/draws.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { MOST = 8, COUNT = 5000 };

typedef struct {
    char dir[FOLDER_MAX];
    uint32_t shards, learners;
    tt_memfd_t memory[MOST];
    tt_loop_t *loop[MOST];
    exchange_t *learner[MOST];
    view_t view[MOST];
    float *shard[64]; /* [COUNT] */
} world_t;

static void s_fill(world_t *world)
{
    draws_t draws = {.seed = world->shards * 100 + world->learners};
    for (uint32_t s = 0; s < world->shards; s++) {
        world->shard[s] = tt_array0(COUNT, sizeof(float));
        for (size_t i = 0; i < COUNT; i++)
            world->shard[s][i] = ((float)draws_below(&draws, 2000001) - 1e6f) * 1e-3f;
    }
}

static void s_view(world_t *world, uint32_t rank, uint64_t generation)
{
    view_clear(&world->view[rank]);
    world->view[rank] =
        (view_t){.era = 1, .generation = generation, .member = true, .rank = rank, .learners = world->learners};
    world->view[rank].learner = tt_array0(world->learners, sizeof *world->view[rank].learner);
    for (uint32_t i = 0; i < world->learners; i++)
        world->view[rank].learner[i] = (view_peer_t){
            .index = 10 + i, .instance = 100 + i, .pid = (uint32_t)getpid(), .memory = world->memory[i].fd};
}

static void s_begin(world_t *world, uint32_t rank)
{
    assert_ok(tt_loop_new(&world->loop[rank], NULL));
    world->learner[rank] = exchange_new(&(exchange_cfg_t){.memory = &world->memory[rank],
        .loop = world->loop[rank],
        .dir = world->dir,
        .index = 10 + rank,
        .instance = 100 + rank,
        .shards = world->shards,
        .count = COUNT});
}

static void s_open(world_t *world, uint32_t shards, uint32_t learners)
{
    *world = (world_t){.shards = shards, .learners = learners};
    assert_int_equal(folder_make(world->dir, "exchange"), 0);
    for (uint32_t rank = 0; rank < learners; rank++)
        assert_ok(tt_memfd_make(&world->memory[rank], EXCHANGE_NAME));
    for (uint32_t rank = 0; rank < learners; rank++)
        s_begin(world, rank);
    for (uint32_t rank = 0; rank < learners; rank++) {
        s_view(world, rank, 1);
        exchange_enter(world->learner[rank], &world->view[rank]);
    }
    s_fill(world);
}

static void s_end(world_t *world, uint32_t rank)
{
    exchange_destroy(&world->learner[rank]);
    tt_loop_destroy(&world->loop[rank]);
    tt_memfd_drop(&world->memory[rank]);
}

static void s_close(world_t *world)
{
    for (uint32_t rank = 0; rank < world->learners; rank++) {
        if (world->learner[rank])
            s_end(world, rank);
        view_clear(&world->view[rank]);
    }
    for (uint32_t s = 0; s < world->shards; s++)
        free(world->shard[s]);
    assert_int_equal(folder_remove(world->dir), 0);
}

/*  The sum of a node's shards, by definition. */
static void s_node(const world_t *world, uint32_t node, float *out)
{
    if (node >= world->shards) {
        memcpy(out, world->shard[node - world->shards], COUNT * sizeof *out);
        return;
    }
    float *right = tt_array0(COUNT, sizeof *right);
    s_node(world, 2 * node, out);
    s_node(world, 2 * node + 1, right);
    for (size_t i = 0; i < COUNT; i++)
        out[i] += right[i];
    free(right);
}

static void s_put(world_t *world, uint32_t rank, const exchange_step_t *which)
{
    uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
    float *sum[TT_TREE_RUN_MAX];
    tt_tree_run(world->shards, world->learners, rank, &lo, &hi);
    const size_t count = tt_tree_nodes(world->shards, lo, hi, nodes);
    for (size_t i = 0; i < count; i++) {
        sum[i] = tt_array0(COUNT, sizeof(float));
        s_node(world, nodes[i], sum[i]);
    }
    exchange_put(world->learner[rank], which, (const float *const *)sum);
    for (size_t i = 0; i < count; i++)
        free(sum[i]);
}

static void s_check_split(uint32_t shards, uint32_t learners)
{
    world_t world;
    float *expected = tt_array0(COUNT, sizeof *expected), *sum = tt_array0(COUNT, sizeof *sum);
    s_open(&world, shards, learners);
    s_node(&world, 1, expected);
    for (uint64_t step = 7; step < 10; step++) {
        const exchange_step_t which = {1, 1, step};
        for (uint32_t rank = 0; rank < learners; rank++) {
            assert_true(exchange_reaches(world.learner[rank]));
            s_put(&world, rank, &which);
        }
        for (uint32_t rank = 0; rank < learners; rank++) {
            memset(sum, 0, COUNT * sizeof *sum);
            assert_true(exchange_sum(world.learner[rank], &which, sum));
            assert_memory_equal(sum, expected, COUNT * sizeof *sum);
        }
    }
    s_close(&world);
    free(expected);
    free(sum);
}

static void test_any_split_has_the_bits_of_one_tree(void **state)
{
    (void)state;
    for (uint32_t shards = 2; shards <= 64; shards *= 2)
        for (uint32_t learners = 2; learners <= shards && learners <= MOST; learners++)
            s_check_split(shards, learners);
}

static bool s_is_woken(world_t *world, uint32_t rank)
{
    return tt_loop_poll(world->loop[rank], 0) == TT_OK;
}

/*  Who asks too early sleeps, is told whom he waits for, and is woken by each that comes. */
static void test_who_waits_is_woken(void **state)
{
    (void)state;
    world_t world;
    float *sum = tt_array0(COUNT, sizeof *sum);
    const exchange_step_t which = {1, 1, 5}, next = {1, 1, 6};
    s_open(&world, 4, 3);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_true(exchange_reaches(world.learner[rank]));
    s_put(&world, 1, &which);
    assert_false(exchange_sum(world.learner[1], &which, sum));
    assert_int_equal(exchange_awaited(world.learner[1], &which), 10);
    assert_false(s_is_woken(&world, 1));
    s_put(&world, 0, &which);
    assert_true(s_is_woken(&world, 1));
    assert_false(exchange_sum(world.learner[1], &which, sum));
    assert_int_equal(exchange_awaited(world.learner[1], &which), 12);
    s_put(&world, 2, &which);
    assert_true(s_is_woken(&world, 1));
    assert_false(s_is_woken(&world, 0)); /* it did not ask */
    assert_true(exchange_sum(world.learner[1], &which, sum));
    assert_int_equal(exchange_awaited(world.learner[1], &which), UINT32_MAX);
    s_put(&world, 0, &next);
    assert_false(s_is_woken(&world, 1)); /* it sleeps no more */
    s_close(&world);
    free(sum);
}

/*  A peer that is a step behind finds what it lacks, also when its owner has gone on, or is dead. */
static void test_a_step_stays_until_the_one_after_the_next(void **state)
{
    (void)state;
    world_t world;
    float *sum = tt_array0(COUNT, sizeof *sum);
    const exchange_step_t which[] = {{1, 1, 5}, {1, 1, 6}, {1, 1, 7}};
    s_open(&world, 4, 2);
    assert_true(exchange_reaches(world.learner[0]) && exchange_reaches(world.learner[1]));
    s_put(&world, 0, &which[0]);
    s_put(&world, 1, &which[0]);
    s_put(&world, 0, &which[1]);
    assert_true(exchange_sum(world.learner[1], &which[0], sum));
    s_end(&world, 0);
    assert_true(exchange_sum(world.learner[1], &which[0], sum));
    s_put(&world, 1, &which[1]);
    assert_true(exchange_sum(world.learner[1], &which[1], sum));
    assert_false(exchange_sum(world.learner[1], &which[2], sum));
    s_close(&world);
    free(sum);
}

/*  One that went on without us has other numbers there: nothing is summed, whatever of the name differs. */
static void test_another_step_is_not_summed(void **state)
{
    (void)state;
    world_t world;
    float *sum = tt_array0(COUNT, sizeof *sum);
    const exchange_step_t which = {1, 1, 5};
    const exchange_step_t others[] = {{1, 1, 7}, {1, 2, 5}, {2, 1, 5}};
    s_open(&world, 4, 2);
    assert_true(exchange_reaches(world.learner[0]) && exchange_reaches(world.learner[1]));
    for (size_t i = 0; i < TT_COUNT(others); i++) {
        s_put(&world, 0, &which);
        s_put(&world, 1, &which);
        assert_true(exchange_sum(world.learner[1], &which, sum));
        s_put(&world, 0, &others[i]);
        assert_false(exchange_sum(world.learner[1], &which, sum));
    }
    s_close(&world);
    free(sum);
}

/*  A learner that came later is found later; of a new generation who stays needs no second look. */
static void test_one_that_comes_later_is_reached_later(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 4, 2);
    s_end(&world, 1);
    assert_false(exchange_reaches(world.learner[0])); /* no such descriptor */
    assert_ok(tt_memfd_make(&world.memory[1], EXCHANGE_NAME));
    s_view(&world, 0, 2);
    exchange_enter(world.learner[0], &world.view[0]);
    assert_false(exchange_reaches(world.learner[0])); /* not sized yet */
    s_begin(&world, 1);
    assert_true(exchange_reaches(world.learner[0]));
    s_view(&world, 0, 3);
    exchange_enter(world.learner[0], &world.view[0]);
    assert_true(exchange_reaches(world.learner[0]));
    s_close(&world);
}

/*  Another instance, another job, nothing at all. */
static void test_what_does_not_fit_is_not_reached(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 4, 2);
    world.view[0].learner[1].instance = 7;
    exchange_enter(world.learner[0], &world.view[0]);
    assert_false(exchange_reaches(world.learner[0]));
    world.view[0].learner[1].instance = 101;
    world.view[0].learner[1].memory = -1; /* on another host */
    exchange_enter(world.learner[0], &world.view[0]);
    assert_false(exchange_reaches(world.learner[0]));
    world.view[0].learners = 1;
    exchange_enter(world.learner[0], &world.view[0]);
    assert_false(exchange_reaches(world.learner[0]));
    s_close(&world);
}

static void test_without_memory_nothing_is_shared(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 4, 2);
    exchange_t *without = exchange_new(&(exchange_cfg_t){.instance = 100, .shards = 4, .count = COUNT});
    exchange_enter(without, &world.view[0]);
    assert_false(exchange_reaches(without));
    exchange_destroy(&without);
    s_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split_has_the_bits_of_one_tree),
        cmocka_unit_test(test_who_waits_is_woken),
        cmocka_unit_test(test_a_step_stays_until_the_one_after_the_next),
        cmocka_unit_test(test_another_step_is_not_summed),
        cmocka_unit_test(test_one_that_comes_later_is_reached_later),
        cmocka_unit_test(test_what_does_not_fit_is_not_reached),
        cmocka_unit_test(test_without_memory_nothing_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
