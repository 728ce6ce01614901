/*  Every split of the shards over learners and every order of arrival must give the bits of the plain recursion. */
#include "common/nn/tree.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/test.h"

enum { COUNT = 37 };

static uint64_t s_counter;

static uint32_t s_word(void)
{
    uint32_t words[4];
    tt_draw(words, 7, TT_STREAM_TEST, 0, s_counter++);
    return words[0];
}

/*  Numbers of very different size, so that another order of additions shows. */
static float s_number(void)
{
    const float unit = tt_unit_f32(s_word()) - 0.5f;
    return unit * (float)(1u << tt_below(s_word(), 24));
}

/*  The definition: a node is left + right. */
static void s_sum(float *out, float (*leaf)[COUNT], uint32_t shards, uint32_t node)
{
    if (node >= shards) {
        memcpy(out, leaf[node - shards], sizeof *leaf);
        return;
    }
    float right[COUNT];
    s_sum(out, leaf, shards, 2 * node);
    s_sum(right, leaf, shards, 2 * node + 1);
    for (size_t i = 0; i < COUNT; i++)
        out[i] = out[i] + right[i];
}

static int s_released;

static void s_release(void *ctx, void *owner)
{
    (void)ctx;
    s_released++;
    free(owner);
}

static void s_shuffle(uint32_t *nodes, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        const size_t j = tt_below(s_word(), (uint32_t)i);
        const uint32_t node = nodes[i - 1];
        nodes[i - 1] = nodes[j];
        nodes[j] = node;
    }
}

static void test_runs_cover_all_shards(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= 64; shards *= 2) {
        for (uint32_t learners = 1; learners <= shards; learners++) {
            uint32_t next = 0;
            for (uint32_t rank = 0; rank < learners; rank++) {
                uint32_t lo, hi, nodes[TT_TREE_RUN_MAX];
                tt_tree_run(shards, learners, rank, &lo, &hi);
                assert_int_equal(lo, next);
                assert_true(hi > lo && hi - lo <= shards / learners + 1);
                const size_t count = tt_tree_nodes(shards, lo, hi, nodes);
                uint32_t at = lo;
                for (size_t i = 0; i < count; i++) {
                    uint32_t a, b;
                    tt_tree_span(shards, nodes[i], &a, &b);
                    assert_int_equal(a, at);
                    at = b;
                    /* maximal: no two neighbours are siblings */
                    assert_false(i && nodes[i] % 2 == 1 && nodes[i - 1] == nodes[i] - 1);
                }
                assert_int_equal(at, hi);
                next = hi;
            }
            assert_int_equal(next, shards);
        }
    }
}

static void test_worst_run_fits(void **state)
{
    (void)state;
    uint32_t nodes[TT_TREE_RUN_MAX];
    assert_int_equal(tt_tree_nodes(TT_SHARDS_MAX, 1, TT_SHARDS_MAX - 1, nodes), 28);
    assert_int_equal(tt_tree_nodes(TT_SHARDS_MAX, 0, TT_SHARDS_MAX, nodes), 1);
    assert_int_equal(nodes[0], 1);
    assert_int_equal(tt_tree_nodes(4, 2, 2, nodes), 0);
}

static size_t s_nodes_of_all(uint32_t shards, uint32_t learners, uint32_t *nodes)
{
    size_t count = 0;
    for (uint32_t rank = 0; rank < learners; rank++) {
        uint32_t lo, hi;
        tt_tree_run(shards, learners, rank, &lo, &hi);
        count += tt_tree_nodes(shards, lo, hi, nodes + count);
    }
    return count;
}

static float *s_partial(float (*leaf)[COUNT], uint32_t shards, uint32_t node)
{
    float *data = tt_new0(COUNT * sizeof *data);
    s_sum(data, leaf, shards, node);
    return data;
}

static void test_any_split_and_order_gives_the_same_bits(void **state)
{
    (void)state;
    static float leaf[16][COUNT];
    for (uint32_t shards = 1; shards <= 16; shards *= 2) {
        for (size_t i = 0; i < (size_t)shards * COUNT; i++)
            leaf[i / COUNT][i % COUNT] = s_number();
        float expected[COUNT];
        s_sum(expected, leaf, shards, 1);
        tt_tree_t *tree;
        assert_ok(tt_tree_new(&tree, shards, COUNT, s_release, NULL));
        for (uint32_t learners = 1; learners <= shards; learners++) {
            for (int trial = 0; trial < 20; trial++) {
                uint32_t nodes[512];
                const size_t count = s_nodes_of_all(shards, learners, nodes);
                s_shuffle(nodes, count);
                bool done = false;
                s_released = 0;
                for (size_t i = 0; i < count; i++) {
                    assert_false(done);
                    float *data = s_partial(leaf, shards, nodes[i]);
                    done = tt_tree_add(tree, nodes[i], data, data);
                }
                assert_true(done);
                assert_int_equal(s_released, count - 1);
                assert_memory_equal(tt_tree_at(tree, 1, NULL), expected, sizeof expected);
                tt_tree_reset(tree);
                assert_int_equal(s_released, count);
                assert_null(tt_tree_at(tree, 1, NULL));
            }
        }
        tt_tree_destroy(&tree);
    }
}

/*  Any nodes at all, repeated, overlapping, until the root is there: a learner that comes back sends what it likes. */
static void test_repeats_and_overlaps_do_no_harm(void **state)
{
    (void)state;
    static float leaf[8][COUNT];
    for (size_t i = 0; i < (size_t)8 * COUNT; i++)
        leaf[i / COUNT][i % COUNT] = s_number();
    float expected[COUNT];
    s_sum(expected, leaf, 8, 1);
    tt_tree_t *tree;
    assert_ok(tt_tree_new(&tree, 8, COUNT, s_release, NULL));
    for (int trial = 0; trial < 300; trial++) {
        s_released = 0;
        int given = 0;
        bool done = false;
        while (!done) {
            const uint32_t node = 2 + tt_below(s_word(), 14);
            float *data = s_partial(leaf, 8, node);
            given++;
            done = tt_tree_add(tree, node, data, data);
        }
        assert_memory_equal(tt_tree_at(tree, 1, NULL), expected, sizeof expected);
        float *late = s_partial(leaf, 8, 5);
        assert_true(tt_tree_add(tree, 5, late, late));
        tt_tree_reset(tree);
        assert_int_equal(s_released, given + 1);
    }
    tt_tree_destroy(&tree);
}

static void test_bad_shards_are_refused(void **state)
{
    (void)state;
    tt_tree_t *tree = NULL;
    assert_int_equal(tt_tree_new(&tree, 0, 1, NULL, NULL), TT_INVALID);
    assert_int_equal(tt_tree_new(&tree, 12, 1, NULL, NULL), TT_INVALID);
    assert_int_equal(tt_tree_new(&tree, 2 * TT_SHARDS_MAX, 1, NULL, NULL), TT_INVALID);
    assert_null(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_cover_all_shards),
        cmocka_unit_test(test_worst_run_fits),
        cmocka_unit_test(test_any_split_and_order_gives_the_same_bits),
        cmocka_unit_test(test_repeats_and_overlaps_do_no_harm),
        cmocka_unit_test(test_bad_shards_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
