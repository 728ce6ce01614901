/*  Shards: any split over learners and threads gives the same bits, and the sum is the gradient. */
#include "tests/test.h"
#include "tests/learner/near.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/tree.h"
#include "learner/shards.h"

enum { D = 4, OUT = 3, ROWS = 96 };

static const tt_net_spec_t s_spec = {
    .obs = D,
    .towers = 2,
    .tower = {{.name = "actor", .hidden_count = 2, .hidden = {16, 16}, .out = OUT},
        {.name = "critic", .hidden_count = 2, .hidden = {16, 16}, .out = 1}},
};

static float s_random(uint32_t who, uint64_t counter)
{
    uint32_t words[4];
    tt_draw(words, 7, TT_STREAM_TEST, who, counter);
    return tt_unit_f32(words[0]) * 2 - 1;
}

/*  Half the squared distance of the heads from numbers that depend on the row; stats[0] counts rows. */
static void s_loss(const void *ctx, const tt_loss_block_t *block)
{
    (void)ctx;
    for (uint32_t r = 0; r < block->rows; r++) {
        for (uint32_t a = 0; a < OUT; a++)
            block->d_head[0][a * TT_BLOCK + r] = block->head[0][a * TT_BLOCK + r] - s_random(a, block->row[r]);
        block->d_head[1][r] = block->head[1][r] - s_random(OUT, block->row[r]);
        block->stats[0] += 1;
    }
}

static const tt_objective_t s_objective = {
    .name = "distance", .stages = 2, .stage = {{.tower = 0, .grad = true}, {.tower = 1, .grad = true}}, .loss = s_loss};

typedef struct {
    tt_device_t *device;
    tt_net_t *net;
    float *obs;
    const float *rows[ROWS];
    uint32_t row[ROWS];
} world_t;

static void s_open(world_t *world, uint32_t lanes)
{
    assert_ok(tt_device_open(&world->device, "cpu", 0));
    assert_ok(tt_net_new(&world->net, world->device, &s_spec, lanes));
    assert_ok(tt_net_init(world->net, 3, (const float[]){1.0f, 1.0f}, 0.0f));
    world->obs = tt_array0(ROWS * D, sizeof(float));
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t d = 0; d < D; d++)
            world->obs[r * D + d] = s_random(100 + d, r);
        world->rows[r] = world->obs + r * D;
        world->row[r] = (r * 37) % ROWS; /* a permutation: 37 and 96 share no factor */
    }
}

static void s_close(world_t *world)
{
    tt_net_destroy(&world->net);
    tt_device_close(&world->device);
    free(world->obs);
}

/*  The root by `learners` learners of `lanes` threads each: what an aggregator would do with their nodes. */
static void s_root(uint32_t shards, uint32_t learners, uint32_t lanes, float *out)
{
    world_t world;
    s_open(&world, lanes);
    pool_t *pool = pool_new(lanes);
    shards_t *self = shards_new(world.net, pool, shards);
    const size_t count = tt_net_grad_count(&s_spec);
    const shards_work_t work = {{world.rows}, world.row, ROWS, &s_objective, NULL};
    tt_tree_t *tree = NULL;
    assert_ok(tt_tree_new(&tree, shards, count, NULL, NULL));
    float **copies = tt_array0(2 * (size_t)shards, sizeof *copies);
    size_t copied = 0;
    for (uint32_t rank = learners; rank-- > 0;) { /* the last rank first: arrival must not matter */
        uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
        tt_tree_run(shards, learners, rank, &lo, &hi);
        assert_ok(shards_compute(self, &work, lo, hi));
        const size_t n = tt_tree_nodes(shards, lo, hi, nodes);
        for (size_t i = 0; i < n; i++) {
            float *copy = copies[copied++] = tt_aligned0(count * sizeof(float));
            memcpy(copy, shards_node(self, nodes[i]), count * sizeof(float));
            tt_tree_add(tree, nodes[i], copy, NULL);
        }
    }
    const float *root = tt_tree_at(tree, 1, NULL);
    assert_non_null(root);
    memcpy(out, root, count * sizeof(float));
    tt_tree_destroy(&tree);
    while (copied)
        free(copies[--copied]);
    free(copies);
    shards_destroy(&self);
    pool_destroy(&pool);
    s_close(&world);
}

static void test_any_split_gives_the_same_bits(void **state)
{
    (void)state;
    const size_t count = tt_net_grad_count(&s_spec);
    float *want = tt_aligned0(count * sizeof(float)), *have = tt_aligned0(count * sizeof(float));
    for (uint32_t shards = 1; shards <= 16; shards *= 2) {
        s_root(shards, 1, 1, want);
        assert_near(want[tt_net_stats_offset(&s_spec)], ROWS, 0);
        for (uint32_t learners = 1; learners <= shards; learners++)
            for (uint32_t lanes = 1; lanes <= 4; lanes++) {
                s_root(shards, learners, lanes, have);
                assert_memory_equal(want, have, count * sizeof(float));
            }
    }
    free(want);
    free(have);
}

static void test_the_sum_is_the_gradient_of_all_rows(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 1);
    const size_t count = tt_net_grad_count(&s_spec);
    float *whole = tt_aligned0(count * sizeof(float)), *sum = tt_aligned0(count * sizeof(float));
    const float *obs[ROWS];
    for (uint32_t r = 0; r < ROWS; r++)
        obs[r] = world.rows[world.row[r]];
    const tt_pass_t pass = {.objective = &s_objective, .obs = {obs}, .row = world.row, .rows = ROWS};
    assert_ok(tt_net_shard_grad(world.net, 0, &pass, whole));
    s_root(8, 3, 2, sum);
    double norm = 0;
    for (size_t i = 0; i < count; i++) {
        assert_near(whole[i], sum[i], 1e-3);
        norm += fabs((double)whole[i]);
    }
    assert_true(norm > 1);
    free(whole);
    free(sum);
    s_close(&world);
}

/*  Shards are then of unequal size, or empty: whoever computes them, on however many threads, the same sum. */
static void test_rows_that_do_not_divide(void **state)
{
    (void)state;
    const uint32_t some[] = {ROWS - 1, 5, 1};
    for (size_t i = 0; i < TT_COUNT(some); i++) {
        float *first = NULL;
        for (uint32_t lanes = 1; lanes <= 3; lanes++) {
            world_t world;
            s_open(&world, lanes);
            pool_t *pool = pool_new(lanes);
            shards_t *self = shards_new(world.net, pool, 8);
            const size_t bytes = tt_net_grad_count(&s_spec) * sizeof(float);
            const shards_work_t work = {{world.rows}, world.row, some[i], &s_objective, NULL};
            uint32_t rows = 0;
            for (uint32_t s = 0; s < 8; s++)
                rows += shards_first(self, some[i], s + 1) - shards_first(self, some[i], s);
            assert_int_equal(rows, some[i]);
            assert_ok(shards_compute(self, &work, 0, 8));
            if (!first) {
                first = tt_aligned0(bytes);
                memcpy(first, shards_node(self, 1), bytes);
            }
            assert_memory_equal(shards_node(self, 1), first, bytes);
            shards_destroy(&self);
            pool_destroy(&pool);
            s_close(&world);
        }
        free(first);
    }
}

/*  A step of nothing is a sum all the same. */
static void test_no_rows(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 2);
    pool_t *pool = pool_new(2);
    shards_t *self = shards_new(world.net, pool, 4);
    const shards_work_t some = {{world.rows}, world.row, ROWS, &s_objective, NULL}, none = {.rows = 0};
    assert_ok(shards_compute(self, &some, 0, 4));
    assert_ok(shards_compute(self, &none, 0, 4));
    for (size_t i = 0; i < tt_net_grad_count(&s_spec); i++)
        assert_true(shards_node(self, 1)[i] == 0);
    shards_destroy(&self);
    pool_destroy(&pool);
    s_close(&world);
}

static void test_forward_is_the_same_on_any_threads(void **state)
{
    (void)state;
    float head[4][ROWS * OUT], value[4][ROWS];
    for (uint32_t lanes = 1; lanes <= 4; lanes++) {
        world_t world;
        s_open(&world, lanes);
        pool_t *pool = pool_new(lanes);
        shards_t *self = shards_new(world.net, pool, 4);
        const size_t rows = ROWS - 7; /* a last block that is not full */
        memset(head[lanes - 1], 0, sizeof head[0]);
        memset(value[lanes - 1], 0, sizeof value[0]);
        assert_ok(shards_forward(self, world.rows, rows, (float *const[]){head[lanes - 1], value[lanes - 1]}));
        assert_true(value[lanes - 1][rows - 1] != 0 && value[lanes - 1][rows] == 0);
        assert_memory_equal(head[0], head[lanes - 1], sizeof head[0]);
        assert_memory_equal(value[0], value[lanes - 1], sizeof value[0]);
        shards_destroy(&self);
        pool_destroy(&pool);
        s_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split_gives_the_same_bits),
        cmocka_unit_test(test_the_sum_is_the_gradient_of_all_rows),
        cmocka_unit_test(test_rows_that_do_not_divide),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_forward_is_the_same_on_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
