/*  Every kind of space through the vec, both ways: conversions, masks, ends, saved states, and what it refuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/rl/policy.h"
#include "tests/collector/load.h"
#include "tests/collector/range.h"
#include "tests/collector/zoo.h"

enum { N = 6 };

/*  Actions of N envs, and what a step gives. */
typedef struct {
    uint8_t bits[N][3];
    float force[N];
    int32_t go[N], moves[N][2];
    float push[N][2];
    float reward[N];
    uint8_t terminated[N], truncated[N];
} io_t;

static tt_status_t step(const range_t *range, io_t *io)
{
    const void *const action[ZOO_ACTIONS] = {io->bits, io->force, io->go, io->moves, io->push};
    return tt_vec_step(range->vec, action, io->reward, io->terminated, io->truncated);
}

/*  Allowed actions by a policy that knows nothing; draws by the env's own clock, as collectors make them. */
static void choose(const range_t *range, uint32_t lo, io_t *io)
{
    tt_policy_t policy;
    float head[N][64] = {0}, log_std[3] = {0};
    uint32_t who[N];
    uint64_t clock[N];
    void *const action[ZOO_ACTIONS] = {io->bits, io->force, io->go, io->moves, io->push};
    tt_policy_of(&policy, range->columns);
    for (uint32_t i = 0; i < range->count; i++) {
        who[i] = lo + i;
        clock[i] = tt_vec_clock(range->vec, i);
    }
    const tt_dist_draw_t draw = {7, TT_STREAM_TEST, who, clock};
    tt_policy_sample(&policy, &head[0][0], log_std, tt_vec_mask(range->vec), range->count, &draw, action, NULL);
}

#define SEEN(range, type, column) ((const type *)tt_vec_obs((range)->vec)[column])

static int sound(void **state)
{
    (void)state;
    zoo_fault = ZOO_SOUND;
    return 0;
}

static void test_numbers_go_both_ways(void **state)
{
    (void)state;
    RANGE range = range_open(&zoo_env, 1, 0, 2);
    io_t io = {.bits = {{0, 1, 1}, {1, 0, 0}},
        .force = {3.5f, -2},
        .go = {1, 3},
        .moves = {{1, 2}, {0, 2}},
        .push = {{0.5f, 7}, {-0.25f, -INFINITY}}};
    assert_int_equal(SEEN(&range, int32_t, ZOO_CHOICE)[0], 2); /* the env says 0, which is choice 2 from -2 */
    assert_int_equal(SEEN(&range, int32_t, ZOO_PAIR_0)[1], 0); /* 10, from 10 */
    assert_ok(step(&range, &io));
    assert_memory_equal(SEEN(&range, uint8_t, ZOO_BITS), io.bits, 6);
    assert_int_equal(SEEN(&range, int32_t, ZOO_CHOICE)[0], 2); /* went 0 (choice 1 from -1), seen from -2 */
    assert_int_equal(SEEN(&range, int32_t, ZOO_CHOICE)[1], 4);
    assert_int_equal(SEEN(&range, uint8_t, ZOO_IMAGE)[12 + 11], 221);
    assert_int_equal(SEEN(&range, int64_t, ZOO_LONG)[1], INT64_C(1) << 33);
    assert_true(SEEN(&range, float, ZOO_NEAR)[0] == 3.5f && SEEN(&range, float, ZOO_NEAR)[2] == -2);
    assert_int_equal(SEEN(&range, int32_t, ZOO_PAIR_0)[0], 1);
    assert_int_equal(SEEN(&range, int32_t, ZOO_PAIR_0)[1], 2);
    assert_int_equal(SEEN(&range, uint8_t, ZOO_PAIR_1)[4 + 1], 1);
    assert_true(SEEN(&range, float, ZOO_WIDE)[0] == 0.5f && SEEN(&range, float, ZOO_WIDE)[1] == 1); /* clipped */
    assert_true(SEEN(&range, float, ZOO_WIDE)[3] == -1);
    assert_true(io.reward[0] == 0 + 0 + 0.5f + 0.25f * 7);
    assert_int_equal(tt_vec_mask(range.vec)[15 + 1], 0);
    assert_true(io.push[0][1] == 7); /* the caller's is left alone */
}

static void refused(const range_t *range, io_t *io, tt_status_t status, const char *words)
{
    const uint64_t clock = tt_vec_clock(range->vec, 0);
    assert_int_equal(step(range, io), status);
    if (!strstr(tt_err_text(), words))
        fail_msg("'%s' lacks '%s'", tt_err_text(), words);
    assert_int_equal(tt_vec_clock(range->vec, 0), clock);
}

static void test_actions_that_are_none(void **state)
{
    (void)state;
    const io_t good = {.go = {1, 1}, .moves = {{0, 2}, {0, 2}}};
    RANGE range = range_open(&zoo_env, 1, 40, 2);
    io_t io = good;
    io.go[1] = 4;
    refused(&range, &io, TT_INVALID, "action.go[0] for env 41 of Zoo-v0 is choice 4 of 4");
    io = good;
    io.moves[1][1] = -1;
    refused(&range, &io, TT_INVALID, "action.moves[1] for env 41 of Zoo-v0 is choice -1 of 3");
    io = good;
    io.bits[0][2] = 2;
    refused(&range, &io, TT_INVALID, "action.bits[2] for env 40 of Zoo-v0 is choice 2 of 2");
    io = good;
    io.force[0] = INFINITY; /* without bounds nothing clips it */
    refused(&range, &io, TT_INVALID, "action.force[0] for env 40 of Zoo-v0 is not a number");
    io = good;
    io.push[1][0] = NAN;
    refused(&range, &io, TT_INVALID, "action.push[0] for env 41 of Zoo-v0 is not a number");
    io = good;
    io.go[1] = 0; /* barred at count 0 */
    refused(&range, &io, TT_INVALID, "action.go[0] for env 41 of Zoo-v0 is a choice that its mask does not allow");
    io = good;
    assert_ok(step(&range, &io));
    io.bits[0][0] = 1; /* barred at odd counts */
    io.go[0] = 2;
    refused(&range, &io, TT_INVALID, "action.bits[0] for env 40 of Zoo-v0");
}

static void test_what_is_not_in_the_space_is_named(void **state)
{
    (void)state;
    static const struct {
        zoo_fault_t fault;
        const char *words;
    } cases[] = {
        {ZOO_BAD_CHOICE, "env Zoo-v0: obs.choice[0] of env 3 is 3 at its step 0 (episode 0, step 0): must be -2 to 2"},
        {ZOO_BAD_BOOL, "obs.bool[1] of env 3 is 2 at its step 0 (episode 0, step 0): must be 0 or 1"},
        {ZOO_BAD_BITS, "obs.pair.1[3] of env 3 is 255 at its step 0 (episode 0, step 0): must be 0 or 1"},
        {ZOO_BAD_WIDE, "obs.wide[0] of env 3 is 1e+300 at its step 0"},
        {ZOO_NO_CHOICE,
            "env Zoo-v0: the mask of env 3 allows nothing for action.moves[1] at its step 0 (episode 0, step 0)"},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        RANGE range = range_open(&zoo_env, 1, 3, 1);
        io_t io = {.go = {1}, .moves = {{0, 2}}};
        zoo_fault = cases[i].fault;
        refused(&range, &io, TT_INTERNAL, cases[i].words);
        zoo_fault = ZOO_SOUND;
    }
}

/*  Cut at its first step by the env itself; what it was cut at is kept, mask and all. */
static void test_an_env_may_cut_its_episode(void **state)
{
    (void)state;
    RANGE range = range_open(&zoo_env, 1, 0, 1);
    io_t io = {.force = {2}, .go = {2}, .moves = {{1, 2}}};
    zoo_fault = ZOO_CUT;
    assert_ok(step(&range, &io));
    assert_true(io.truncated[0] && !io.terminated[0]);
    assert_int_equal(tt_vec_age(range.vec, 0), 0);
    assert_true(*(const float *)tt_vec_final(range.vec, 0, ZOO_NEAR) == 2);
    assert_int_equal(*(const int32_t *)tt_vec_final(range.vec, 0, ZOO_CHOICE), 3); /* went 1, from -2 */
    const uint8_t *mask = tt_vec_final(range.vec, 0, ZOO_MASK);
    assert_true(mask[1] == 0 && mask[7] == 0 && tt_vec_mask(range.vec)[7] == 1);
    assert_true(SEEN(&range, float, ZOO_NEAR)[0] == 0); /* the next episode */
}

/*  No choice need be left where an episode ends for good. */
static void test_a_last_state_needs_no_choice(void **state)
{
    (void)state;
    RANGE range = range_open(&zoo_env, 1, 0, 1);
    io_t io = {.go = {1}, .moves = {{0, 2}}};
    for (int t = 0; t < 10; t++) {
        choose(&range, 0, &io);
        io.bits[0][1] = io.bits[0][2] = 0; /* the episode goes on to its limit */
        assert_ok(step(&range, &io));
    }
    zoo_fault = ZOO_NO_CHOICE_END;
    choose(&range, 0, &io);
    assert_ok(step(&range, &io));
    assert_true(io.truncated[0] && io.terminated[0]); /* both, at the limit: a final that others will check */
    const uint8_t *mask = tt_vec_final(range.vec, 0, ZOO_MASK);
    assert_true(mask[12] && mask[13] && mask[14]);
}

/*  Envs 2..4 of 6 into a range of their own in mid-episode, then both go on: the same bits. */
static void test_a_moved_range_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    enum { LO = 2, M = 3, BEFORE = 16, AFTER = 100 };
    RANGE whole = range_open(&zoo_env, 5, 0, N);
    RANGE moved = range_open(&zoo_env, 5, LO, M);
    const size_t size = tt_vec_save_size(&zoo_env, 1);
    char *bytes = malloc(size + 1), *again = malloc(size);
    io_t a = {0}, b = {0};
    for (int t = 0; t < BEFORE; t++) {
        choose(&whole, 0, &a);
        assert_ok(step(&whole, &a));
    }
    for (uint32_t i = 0; i < M; i++) {
        tt_vec_save(whole.vec, LO + i, bytes + 1); /* at an odd address */
        assert_ok(vec_load(moved.vec, i, bytes + 1));
    }
    uint32_t ends = 0;
    for (int t = 0; t < AFTER; t++) {
        choose(&whole, 0, &a);
        choose(&moved, LO, &b);
        assert_ok(step(&whole, &a));
        assert_ok(step(&moved, &b));
        assert_memory_equal(b.reward, a.reward + LO, M * sizeof *b.reward);
        for (uint32_t i = 0; i < M; i++) {
            ends += b.terminated[i] || b.truncated[i];
            tt_vec_save(whole.vec, LO + i, bytes);
            tt_vec_save(moved.vec, i, again);
            assert_memory_equal(bytes, again, size);
        }
    }
    assert_true(ends > M);
    free(bytes);
    free(again);
}

/*  What was seen is a part of a saved state; a damaged one is refused, and the env stands where it stood. */
static void test_damaged_states_are_refused(void **state)
{
    (void)state;
    enum {
        HEAD = 32,
        BOOL = HEAD + 3,
        CHOICE = BOOL + 3,
        IMAGE = CHOICE + 4,
        NEAR = IMAGE + 12 + 8,
        MASK = NEAR + 8 + 8 + 4 + 8
    };
    static const struct {
        size_t at;
        uint8_t byte;
    } bad[] = {{HEAD, 2}, {BOOL + 1, 9}, {CHOICE, 5}, {NEAR + 3, 0x7f}, {HEAD - 4, 1}};
    RANGE range = range_open(&zoo_env, 1, 0, 1);
    const size_t size = tt_vec_save_size(&zoo_env, 1);
    unsigned char *good = malloc(size), *bytes = malloc(size), *after = malloc(size);
    tt_vec_save(range.vec, 0, good);
    for (size_t i = 0; i < TT_COUNT(bad); i++) {
        memcpy(bytes, good, size);
        bytes[bad[i].at] ^= bad[i].byte;
        if (bad[i].at == NEAR + 3)
            memcpy(bytes + NEAR, &(float){NAN}, sizeof(float));
        assert_int_equal(vec_load(range.vec, 0, bytes), TT_DATA);
    }
    memcpy(bytes, good, size);
    memset(bytes + MASK + 12, 0, 3); /* nothing allowed */
    assert_int_equal(vec_load(range.vec, 0, bytes), TT_DATA);
    tt_vec_save(range.vec, 0, after);
    assert_memory_equal(good, after, size);
    assert_ok(vec_load(range.vec, 0, good));
    free(good);
    free(bytes);
    free(after);
}

static void test_step_many_equals_step(void **state)
{
    (void)state;
    RANGE each = range_open(&zoo_env, 9, 0, N);
    RANGE many = range_open(&zoo_env_many, 9, 0, N);
    io_t a = {0}, b = {0};
    for (int t = 0; t < 200; t++) {
        choose(&each, 0, &a);
        choose(&many, 0, &b);
        assert_ok(step(&each, &a));
        assert_ok(step(&many, &b));
        assert_memory_equal(&a, &b, sizeof a);
        for (uint32_t c = 0; c < ZOO_MASK; c++)
            assert_memory_equal(tt_vec_obs(each.vec)[c], tt_vec_obs(many.vec)[c], N * each.columns->at[c].bytes);
        assert_memory_equal(tt_vec_mask(each.vec), tt_vec_mask(many.vec), N * each.columns->mask_bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_numbers_go_both_ways, sound),
        cmocka_unit_test_setup(test_actions_that_are_none, sound),
        cmocka_unit_test_setup(test_what_is_not_in_the_space_is_named, sound),
        cmocka_unit_test_setup(test_an_env_may_cut_its_episode, sound),
        cmocka_unit_test_setup(test_a_last_state_needs_no_choice, sound),
        cmocka_unit_test_setup(test_a_moved_range_goes_on_with_the_same_bits, sound),
        cmocka_unit_test_setup(test_damaged_states_are_refused, sound),
        cmocka_unit_test_setup(test_step_many_equals_step, sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
