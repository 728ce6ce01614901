/*  Episode statistics by hand, the ring over more than 100 episodes, save and load in the middle. */
#include "common/rl/episodes.h"
#include <math.h>
#include "tests/test.h"

#define assert_near(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) <= (tolerance))

typedef struct {
    uint32_t t[8], env[8];
    double ret[8];
    int count;
} seen_t;

static void s_seen(void *ctx, uint32_t t, uint32_t env, double ret, double length)
{
    seen_t *seen = ctx;
    (void)length;
    seen->t[seen->count] = t;
    seen->env[seen->count] = env;
    seen->ret[seen->count++] = ret;
}

static void test_by_hand(void **state)
{
    (void)state;
    tt_episodes_t *episodes = tt_episodes_new(2);
    assert_true(isnan(tt_episodes_return_mean(episodes)));
    const float reward[] = {1, 10, 2, 20, 4, 40};
    const uint8_t terminated[] = {0, 0, 1, 0, 0, 0}, truncated[] = {0, 0, 0, 1, 0, 1};
    seen_t seen = {0};
    tt_episodes_feed(episodes, 3, reward, terminated, truncated, s_seen, &seen);
    assert_int_equal(seen.count, 3);
    assert_true(seen.env[0] == 0 && seen.t[0] == 1 && seen.ret[0] == 3);
    assert_true(seen.env[1] == 1 && seen.t[1] == 1 && seen.ret[1] == 30);
    assert_true(seen.env[2] == 1 && seen.t[2] == 2 && seen.ret[2] == 40);
    assert_int_equal(tt_episodes_count(episodes), 3);
    assert_near(tt_episodes_return_mean(episodes), 73.0 / 3, 1e-12);
    assert_near(tt_episodes_length_mean(episodes), 5.0 / 3, 1e-12);
    tt_episodes_destroy(&episodes);
    assert_null(episodes);
}

/*  Episode k has return k; after 250 of them the mean is that of 150 .. 249, also when saved and loaded on the way. */
static void test_last_hundred(void **state)
{
    (void)state;
    tt_episodes_t *episodes = tt_episodes_new(1);
    double block[2 + 2 + 2 * TT_EPISODES_LAST];
    assert_int_equal(tt_episodes_block_count(1), TT_COUNT(block));
    for (int k = 0; k < 250; k++) {
        const float reward = (float)k;
        const uint8_t yes = 1, no = 0;
        tt_episodes_feed(episodes, 1, &reward, &yes, &no, NULL, NULL);
        if (k == 99)
            assert_near(tt_episodes_return_mean(episodes), 49.5, 1e-12);
        if (k == 130) {
            tt_episodes_save(episodes, block);
            tt_episodes_destroy(&episodes);
            episodes = tt_episodes_new(1);
            assert_ok(tt_episodes_load(episodes, block, TT_COUNT(block)));
        }
    }
    assert_near(tt_episodes_return_mean(episodes), 199.5, 1e-12);
    assert_int_equal(tt_episodes_load(episodes, block, 3), TT_DATA);
    block[0] = 1.5;
    assert_int_equal(tt_episodes_load(episodes, block, TT_COUNT(block)), TT_DATA);
    block[0] = -1;
    assert_int_equal(tt_episodes_load(episodes, block, TT_COUNT(block)), TT_DATA);
    block[0] = 1;
    block[5] = NAN;
    assert_int_equal(tt_episodes_load(episodes, block, TT_COUNT(block)), TT_DATA);
    assert_near(tt_episodes_return_mean(episodes), 199.5, 1e-12);
    tt_episodes_destroy(&episodes);
}

static void s_feed_one(tt_episodes_t *episodes, float reward, uint8_t ended)
{
    const uint8_t no = 0;
    tt_episodes_feed(episodes, 1, &reward, &ended, &no, NULL, NULL);
}

/*  Env begins anew in mid-episode: what came before is no episode. Saved and loaded in between. */
static void test_an_env_that_begins_anew(void **state)
{
    (void)state;
    tt_episodes_t *episodes = tt_episodes_new(1);
    double block[2 + 2 + 2 * TT_EPISODES_LAST];
    const uint32_t none = 0, three = 3;
    assert_int_equal(tt_episodes_join(episodes, &none), 0);
    for (int t = 0; t < 3; t++)
        s_feed_one(episodes, 100, 0);
    assert_int_equal(tt_episodes_join(episodes, &three), 0);
    assert_int_equal(tt_episodes_broken(episodes)[0], 0);
    tt_episodes_save(episodes, block);
    assert_int_equal(tt_episodes_join(episodes, &none), 1);
    assert_int_equal(tt_episodes_broken(episodes)[0], 1);
    s_feed_one(episodes, 1, 0);
    s_feed_one(episodes, 2, 1);
    assert_int_equal(tt_episodes_count(episodes), 1);
    assert_near(tt_episodes_return_mean(episodes), 3, 0);
    assert_near(tt_episodes_length_mean(episodes), 2, 0);
    assert_ok(tt_episodes_load(episodes, block, TT_COUNT(block)));
    assert_int_equal(tt_episodes_join(episodes, &three), 0);
    s_feed_one(episodes, 100, 1);
    assert_near(tt_episodes_return_mean(episodes), 400, 0);
    tt_episodes_destroy(&episodes);
}

/*  An env is in the middle of an episode of which nothing was seen: that one does not count, the next one does. */
static void test_an_episode_whose_beginning_was_not_seen(void **state)
{
    (void)state;
    tt_episodes_t *episodes = tt_episodes_new(1);
    double block[2 + 2 + 2 * TT_EPISODES_LAST];
    const uint32_t seven = 7, eight = 8;
    assert_int_equal(tt_episodes_join(episodes, &seven), 1);
    s_feed_one(episodes, 5, 0);
    assert_int_equal(tt_episodes_join(episodes, &eight), 0); /* it goes on, and it is still unseen */
    tt_episodes_save(episodes, block);
    assert_ok(tt_episodes_load(episodes, block, TT_COUNT(block)));
    s_feed_one(episodes, 5, 1);
    assert_int_equal(tt_episodes_count(episodes), 0);
    s_feed_one(episodes, 5, 1);
    assert_int_equal(tt_episodes_count(episodes), 1);
    assert_near(tt_episodes_return_mean(episodes), 5, 0);
    tt_episodes_destroy(&episodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_last_hundred),
        cmocka_unit_test(test_an_env_that_begins_anew),
        cmocka_unit_test(test_an_episode_whose_beginning_was_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
