/*  Sums: any split over learners and lanes gives the same bits, and the sum is the gradient. */
#include "tests/nn/fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/nn/tree.h"

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
static void s_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    (void)params;
    (void)input;
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
    place_t place;
    tt_net_t *net;
    tt_table_t *table;
    tt_sums_t *sums;
    float *obs;
    uint32_t row[ROWS];
} world_t;

static void s_open_with(world_t *world, const tt_net_spec_t *spec, uint32_t lanes, uint32_t shards)
{
    *world = (world_t){.obs = tt_array0(ROWS * D, sizeof(float))};
    fixture_open(&world->place, lanes);
    assert_ok(tt_net_new(&world->net, world->place.device, spec));
    assert_ok(tt_net_init(world->net, world->place.stream, 3, (const float[]){1.0f, 1.0f}, 0.0f, TT_NO_PROGRESS));
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t d = 0; d < D; d++)
            world->obs[r * D + d] = s_random(100 + d, r);
        world->row[r] = (r * 37) % ROWS; /* a permutation: 37 and 96 share no factor */
    }
    assert_ok(tt_table_new(&world->table, world->place.device, D * sizeof(float)));
    assert_ok(tt_table_put(world->table, world->place.stream, world->obs, ROWS));
    assert_ok(tt_sums_new(&world->sums, world->net, shards));
}

static void s_open(world_t *world, uint32_t lanes, uint32_t shards)
{
    s_open_with(world, &s_spec, lanes, shards);
}

static void s_close(world_t *world)
{
    tt_sums_destroy(&world->sums);
    tt_table_destroy(&world->table);
    tt_net_destroy(&world->net);
    fixture_close(&world->place);
    free(world->obs);
}

static tt_pass_t s_pass(const world_t *world, uint32_t rows)
{
    return (tt_pass_t){.objective = &s_objective, .obs = {world->table}, .row = world->row, .rows = rows};
}

static void s_compute(world_t *world, uint32_t rows, uint32_t lo, uint32_t hi)
{
    const tt_pass_t pass = s_pass(world, rows);
    assert_ok(tt_sums_compute(world->sums, world->place.stream, &pass, lo, hi));
    assert_ok(tt_stream_sync(world->place.stream));
}

static const float *s_node(world_t *world, uint32_t node)
{
    const float *sum = NULL;
    assert_ok(tt_sums_node(world->sums, world->place.stream, node, &sum));
    return sum;
}

/*  The root by `learners` learners of `lanes` lanes each: what an aggregator would do with their nodes. */
static void s_root(uint32_t shards, uint32_t learners, uint32_t lanes, float *out)
{
    world_t world;
    s_open(&world, lanes, shards);
    const size_t count = tt_net_grad_count(&s_spec);
    tt_tree_t *tree = NULL;
    assert_ok(tt_tree_new(&tree, shards, count, NULL, NULL));
    float **copies = tt_array0(2 * (size_t)shards, sizeof *copies);
    size_t copied = 0;
    for (uint32_t rank = learners; rank-- > 0;) { /* the last rank first: arrival must not matter */
        uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
        tt_tree_run(shards, learners, rank, &lo, &hi);
        s_compute(&world, ROWS, lo, hi);
        const size_t n = tt_tree_nodes(shards, lo, hi, nodes);
        for (size_t i = 0; i < n; i++) {
            float *copy = copies[copied++] = tt_aligned0(count * sizeof(float));
            memcpy(copy, s_node(&world, nodes[i]), count * sizeof(float));
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
    s_close(&world);
}

static void test_any_split_gives_the_same_bits(void **state)
{
    (void)state;
    const size_t count = tt_net_grad_count(&s_spec);
    float *want = tt_aligned0(count * sizeof(float)), *have = tt_aligned0(count * sizeof(float));
    for (uint32_t shards = 1; shards <= 16; shards *= 2) {
        s_root(shards, 1, 1, want);
        assert_true(want[tt_net_stats_offset(&s_spec)] == ROWS);
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
    const size_t count = tt_net_grad_count(&s_spec);
    float *whole = tt_aligned0(count * sizeof(float)), *sum = tt_aligned0(count * sizeof(float));
    s_root(1, 1, 1, whole);
    s_root(8, 3, 2, sum);
    double norm = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(fabsf(whole[i] - sum[i]) <= 1e-3f);
        norm += fabs((double)whole[i]);
    }
    assert_true(norm > 1);
    free(whole);
    free(sum);
}

/*  Shards are then of unequal size, or empty: whoever computes them, on however many lanes, the same sum. */
static void test_rows_that_do_not_divide(void **state)
{
    (void)state;
    const uint32_t some[] = {ROWS - 1, 5, 1};
    const size_t bytes = tt_net_grad_count(&s_spec) * sizeof(float);
    for (size_t i = 0; i < TT_COUNT(some); i++) {
        float *first = tt_aligned0(bytes);
        for (uint32_t lanes = 1; lanes <= 3; lanes++) {
            world_t world;
            uint32_t rows = 0;
            s_open(&world, lanes, 8);
            for (uint32_t s = 0; s < 8; s++)
                rows += tt_sums_first(8, some[i], s + 1) - tt_sums_first(8, some[i], s);
            assert_int_equal(rows, some[i]);
            s_compute(&world, some[i], 0, 8);
            if (lanes == 1)
                memcpy(first, s_node(&world, 1), bytes);
            assert_memory_equal(s_node(&world, 1), first, bytes);
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
    s_open(&world, 2, 4);
    s_compute(&world, ROWS, 0, 4);
    s_compute(&world, 0, 0, 4);
    const float *sum = s_node(&world, 1);
    for (size_t i = 0; i < tt_net_grad_count(&s_spec); i++)
        assert_true(sum[i] == 0);
    s_close(&world);
}

/*  Nodes that were not computed, steps and reports without the sum of all. */
static void test_what_is_not_there(void **state)
{
    (void)state;
    world_t world;
    const float *node = NULL;
    float stats[TT_LOSS_STATS];
    const tt_opt_spec_t sgd = {.kind = TT_OPT_SGD};
    tt_opt_t *opt = NULL;
    s_open(&world, 1, 4);
    tt_stream_t *stream = world.place.stream;
    assert_ok(tt_opt_new(&opt, world.net, 0, &sgd));
    assert_int_equal(tt_sums_node(world.sums, stream, 1, &node), TT_INVALID);
    s_compute(&world, ROWS, 1, 3);
    assert_int_equal(tt_sums_node(world.sums, stream, 1, &node), TT_INVALID);
    assert_int_equal(tt_sums_node(world.sums, stream, 4, &node), TT_INVALID);
    assert_int_equal(tt_sums_node(world.sums, stream, 3, &node), TT_INVALID);
    assert_int_equal(tt_opt_step(opt, stream, world.sums, 0.1f), TT_INVALID);
    assert_int_equal(tt_net_report(world.net, stream, world.sums, stats, NULL), TT_INVALID);
    assert_int_equal(tt_opt_steps(opt), 0);
    assert_ok(tt_sums_node(world.sums, stream, 5, &node));
    assert_non_null(node);
    assert_int_equal(tt_sums_new(&(tt_sums_t *){NULL}, world.net, 3), TT_INVALID);
    tt_opt_destroy(&opt);
    s_close(&world);
}

/*  The call or the sync says so, and nothing behind the table is read. */
static tt_status_t s_try(world_t *world, const tt_pass_t *pass)
{
    const tt_status_t queued = tt_sums_compute(world->sums, world->place.stream, pass, 0, 4);
    return queued == TT_OK ? tt_stream_sync(world->place.stream) : queued;
}

static void test_rows_that_no_table_has(void **state)
{
    (void)state;
    world_t world;
    s_open(&world, 2, 4);
    tt_table_t *input = NULL;
    tt_pass_t pass = s_pass(&world, ROWS);
    const void *const list[] = {world.obs};
    assert_ok(tt_table_new(&input, world.place.device, 1));
    pass.input[TT_INPUTS_MAX - 1] = input;
    assert_ok(tt_table_put(input, world.place.stream, world.obs, ROWS - 1));
    assert_int_equal(s_try(&world, &pass), TT_INVALID);
    assert_string_equal(tt_err_text(), "objective distance: row 95 of tables that have 95");
    assert_ok(tt_table_put(input, world.place.stream, world.obs, ROWS));
    assert_ok(s_try(&world, &pass));
    assert_ok(tt_table_put(input, world.place.stream, world.obs, 1)); /* for all rows */
    assert_ok(s_try(&world, &pass));
    world.row[ROWS / 2] = ROWS;
    assert_int_equal(s_try(&world, &pass), TT_INVALID);
    world.row[ROWS / 2] = 0;
    assert_ok(tt_table_put_rows(input, world.place.stream, list, 1));
    assert_int_equal(s_try(&world, &pass), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "the rows of input 79 do not lie side by side"));
    tt_table_destroy(&input);
    assert_int_equal(
        tt_net_forward(world.net, world.place.stream, 0, world.table, ROWS + 1, NULL, (float *[2]){NULL}), TT_INVALID);
    const struct {
        size_t first, rows;
    } beyond[] = {{ROWS, 1}, {1, ROWS}, {ROWS + 1, 1}, {SIZE_MAX, 2}};
    for (size_t i = 0; i < TT_COUNT(beyond); i++)
        assert_int_equal(tt_net_forward_from(world.net, world.place.stream, 0, world.table, beyond[i].first,
                             beyond[i].rows, NULL, (float *[2]){NULL}),
            TT_INVALID);
    s_close(&world);
}

/*  A sum from elsewhere is node 1 for steps, reports and those who ask. */
static void test_a_sum_that_was_put(void **state)
{
    (void)state;
    world_t world;
    const size_t count = tt_net_grad_count(&s_spec), at = tt_net_stats_offset(&s_spec);
    s_open(&world, 1, 4);
    float *sum = tt_array0(count, sizeof *sum), stats[TT_LOSS_STATS];
    tt_norms_t norms;
    sum[0] = 3;
    sum[1] = 4;
    sum[at + 5] = 7;
    const tt_opt_spec_t sgd = {.kind = TT_OPT_SGD};
    tt_opt_t *opt = NULL;
    assert_ok(tt_opt_new(&opt, world.net, 0, &sgd));
    float *before = fixture_params(&world.place, world.net, 0);
    s_compute(&world, ROWS, 0, 2);
    assert_ok(tt_sums_put(world.sums, world.place.stream, sum));
    assert_ok(tt_opt_step(opt, world.place.stream, world.sums, 0.5f));
    assert_ok(fixture_report(&world.place, world.net, world.sums, stats, &norms));
    assert_true(norms.newest[0] == 5 && stats[5] == 7 && stats[0] == 0);
    assert_memory_equal(s_node(&world, 1), sum, count * sizeof *sum);
    float *after = fixture_params(&world.place, world.net, 0);
    assert_true(after[0] == before[0] - 1.5f && after[1] == before[1] - 2.0f && after[2] == before[2]);
    free(before);
    free(after);
    free(sum);
    tt_opt_destroy(&opt);
    s_close(&world);
}

/*  An objective of the actor alone has zeros for the critic, also where a pass before it left a gradient. */
static void s_actor_loss(const void *params, const void *const *input, const tt_loss_block_t *block)
{
    tt_loss_block_t both = *block;
    float d_value[TT_BLOCK];
    both.head[1] = block->head[0];
    both.d_head[1] = d_value;
    s_loss(params, input, &both);
}

/*  Node 1 has zeros for the critic. */
static void s_assert_no_critic(world_t *world)
{
    size_t count = 0;
    const tt_tensor_t *tensor = tt_net_tensors(world->net, &count);
    const float *sum = s_node(world, 1);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; strncmp(tensor[t].name, "critic", 6) == 0 && i < tensor[t].rows * tensor[t].cols; i++)
            assert_true(sum[tensor[t].offset + i] == 0);
}

/*  After a pass that trained both. `asked`: a node before the step. */
static void s_train_the_actor(world_t *world, tt_opt_t *critic, uint32_t rows, bool asked)
{
    const tt_objective_t actor = {
        .name = "actor's distance", .stages = 1, .stage = {{.tower = 0, .grad = true}}, .loss = s_actor_loss};
    tt_norms_t norms;
    s_compute(world, rows, 0, 4);
    tt_pass_t pass = s_pass(world, rows);
    pass.objective = &actor;
    assert_ok(tt_sums_compute(world->sums, world->place.stream, &pass, 0, 4));
    if (asked)
        s_assert_no_critic(world);
    if (!critic)
        return;
    assert_ok(tt_opt_step(critic, world->place.stream, world->sums, 0.5f));
    assert_ok(fixture_report(&world->place, world->net, world->sums, NULL, &norms));
    assert_true(norms.newest[1] == 0);
}

/*  In a group of its own, or in the actor's; shards by themselves, and all in one block. */
static void test_a_tower_that_is_not_trained(void **state)
{
    const tt_opt_spec_t sgd = {.kind = TT_OPT_SGD};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        world_t world;
        tt_net_spec_t spec = s_spec;
        tt_opt_t *opt = NULL;
        spec.tower[1].group = i % 2;
        s_open_with(&world, &spec, 1, 4);
        float *before = fixture_params(&world.place, world.net, 0);
        if (spec.tower[1].group)
            assert_ok(tt_opt_new(&opt, world.net, 1, &sgd));
        s_train_the_actor(&world, opt, i < 2 ? ROWS : TT_BLOCK, false);
        s_train_the_actor(&world, opt, i < 2 ? ROWS : TT_BLOCK, true);
        float *after = fixture_params(&world.place, world.net, 0);
        assert_memory_equal(after, before, tt_net_param_count(&spec) * sizeof *after);
        free(before);
        free(after);
        tt_opt_destroy(&opt);
        s_close(&world);
    }
}

static void test_forward_is_the_same_on_any_lanes(void **state)
{
    (void)state;
    float head[4][ROWS * OUT], value[4][ROWS];
    for (uint32_t lanes = 1; lanes <= 4; lanes++) {
        world_t world;
        s_open(&world, lanes, 1);
        const size_t rows = ROWS - 7; /* a last block that is not full */
        memset(head[lanes - 1], 0, sizeof head[0]);
        memset(value[lanes - 1], 0, sizeof value[0]);
        float *const out[] = {head[lanes - 1], value[lanes - 1]};
        assert_ok(tt_net_forward(world.net, world.place.stream, 0, world.table, rows, NULL, out));
        assert_ok(tt_stream_sync(world.place.stream));
        assert_true(value[lanes - 1][rows - 1] != 0 && value[lanes - 1][rows] == 0);
        assert_memory_equal(head[0], head[lanes - 1], sizeof head[0]);
        assert_memory_equal(value[0], value[lanes - 1], sizeof value[0]);
        s_close(&world);
    }
}

/*  All rows at once, or in pieces of any size, that begin anywhere. */
static void test_forward_in_pieces(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, TT_BLOCK, TT_BLOCK + 1, ROWS - 1};
    float head[ROWS * OUT], value[ROWS];
    world_t world;
    s_open(&world, 2, 1);
    assert_ok(tt_net_forward(world.net, world.place.stream, 0, world.table, ROWS, NULL, (float *[]){head, value}));
    assert_ok(tt_stream_sync(world.place.stream));
    for (size_t p = 0; p < TT_COUNT(pieces); p++) {
        float heads[ROWS * OUT] = {0}, values[ROWS] = {0};
        for (size_t first = 0, rows; first < ROWS; first += rows) {
            rows = ROWS - first < pieces[p] ? ROWS - first : pieces[p];
            float *const out[] = {heads + first * OUT, values + first};
            assert_ok(tt_net_forward_from(world.net, world.place.stream, 0, world.table, first, rows, NULL, out));
        }
        assert_ok(tt_stream_sync(world.place.stream));
        assert_memory_equal(heads, head, sizeof head);
        assert_memory_equal(values, value, sizeof value);
    }
    s_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split_gives_the_same_bits),
        cmocka_unit_test(test_the_sum_is_the_gradient_of_all_rows),
        cmocka_unit_test(test_rows_that_do_not_divide),
        cmocka_unit_test(test_forward_in_pieces),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_rows_that_no_table_has),
        cmocka_unit_test(test_a_sum_that_was_put),
        cmocka_unit_test(test_a_tower_that_is_not_trained),
        cmocka_unit_test(test_forward_is_the_same_on_any_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
