/*  A tree of sums against additions one by one, and what rounding must not do. */
#include <math.h>
#include <string.h>
#include "common/base/rng.h"
#include "learner/replay/sumtree.h"
#include "tests/test.h"

static double s_random(uint32_t who, uint64_t k)
{
    uint32_t word[4];
    tt_draw(word, 5, TT_STREAM_TEST, who, k);
    return tt_unit_f64(word[0], word[1]);
}

static double s_sum(const double *p, uint64_t n)
{
    return n == 1 ? *p : s_sum(p, n / 2) + s_sum(p + n / 2, n / 2);
}

static void test_sums_follow_the_leaves_alone(void **state)
{
    (void)state;
    for (uint64_t slots = 1; slots <= 256; slots *= 2) {
        sumtree_t tree, again;
        double p[256] = {0};
        sumtree_init(&tree, slots);
        sumtree_init(&again, slots);
        for (uint64_t k = 0; k < 200; k++) { /* runs round the end, some cleared */
            const uint64_t from = (uint64_t)(s_random(1, k) * 1e6),
                           count = 1 + (uint64_t)(s_random(2, k) * (double)slots);
            const uint64_t run = count > slots ? slots : count;
            for (uint64_t i = 0; i < run; i++) {
                p[(from + i) % slots] = k % 5 ? s_random(3, k * 256 + i) : 0;
                sumtree_put(&tree, (from + i) % slots, p[(from + i) % slots]);
            }
            if (k % 5)
                sumtree_refresh(&tree, from, run);
            else
                sumtree_clear(&tree, from, run);
            assert_true(sumtree_sum(&tree) == s_sum(p, slots));
        }
        for (uint64_t i = slots; i-- > 0;) { /* another order, the same bits */
            sumtree_put(&again, i, p[i]);
            sumtree_refresh(&again, i, 1);
        }
        assert_memory_equal(tree.node + 1, again.node + 1, (2 * slots - 1) * sizeof *tree.node);
        uint64_t these[150];
        for (uint64_t k = 0; k < 150; k++) { /* here and there, some of them twice */
            these[k] = (uint64_t)(s_random(8, k) * (double)slots);
            sumtree_put(&tree, these[k], s_random(9, k));
            sumtree_put(&again, these[k], s_random(9, k));
        }
        sumtree_refresh_these(&tree, these, 150);
        sumtree_refresh(&again, 0, slots);
        assert_memory_equal(tree.node + 1, again.node + 1, (2 * slots - 1) * sizeof *tree.node);
        sumtree_free(&tree);
        sumtree_free(&again);
    }
}

static uint64_t s_find(const sumtree_t *tree, double u)
{
    uint64_t slot;
    sumtree_find(tree, &u, &slot, 1);
    return slot;
}

static void test_find_by_hand(void **state)
{
    (void)state;
    sumtree_t tree;
    sumtree_init(&tree, 8);
    const double p[8] = {0, 1, 0, 2, 0, 0, 4, 0};
    for (uint64_t i = 0; i < 8; i++)
        sumtree_put(&tree, i, p[i]);
    sumtree_refresh(&tree, 0, 8);
    const struct {
        double u;
        uint64_t slot;
    } want[] = {{0, 1}, {0.999, 1}, {1, 3}, {2.999, 3}, {3, 6}, {6.999, 6}, {7, 6}, {1e9, 6}};
    for (size_t i = 0; i < TT_COUNT(want); i++)
        assert_int_equal(s_find(&tree, want[i].u), want[i].slot);
    double many[100]; /* more than a group: as one by one */
    uint64_t slot[100];
    for (uint64_t k = 0; k < 100; k++)
        many[k] = s_random(7, k) * 7;
    sumtree_find(&tree, many, slot, 100);
    for (uint64_t k = 0; k < 100; k++)
        assert_int_equal(slot[k], s_find(&tree, many[k]));
    sumtree_free(&tree);
}

/*  Weights of very different sizes: whatever is lost in subtracting, an empty slot is never found. */
static void test_never_an_empty_slot(void **state)
{
    (void)state;
    enum { SLOTS = 64 };
    sumtree_t tree;
    sumtree_init(&tree, SLOTS);
    for (uint64_t round = 0; round < 200; round++) {
        sumtree_clear(&tree, 0, SLOTS);
        for (uint64_t i = 0; i < SLOTS; i++)
            if (s_random(4, round * SLOTS + i) < 0.4)
                sumtree_put(&tree, i, pow(10, s_random(5, round * SLOTS + i) * 40 - 20));
        sumtree_put(&tree, round % SLOTS, 1e-30);
        sumtree_refresh(&tree, 0, SLOTS);
        const double sum = sumtree_sum(&tree);
        for (uint64_t k = 0; k < 100; k++)
            assert_true(sumtree_at(&tree, s_find(&tree, s_random(6, k) * sum)) > 0);
        assert_true(sumtree_at(&tree, s_find(&tree, nextafter(sum, 0))) > 0);
        assert_true(sumtree_at(&tree, s_find(&tree, sum)) > 0);
    }
    sumtree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_follow_the_leaves_alone),
        cmocka_unit_test(test_find_by_hand),
        cmocka_unit_test(test_never_an_empty_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
