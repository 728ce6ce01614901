/*  batch: a table that moves many envs at once, through the same vec as ordinary ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/collector/herd.h"
#include "tests/collector/load.h"
#include "tests/collector/range.h"

enum { N = 5 };

static int setup(void **state)
{
    (void)state;
    memset(&herd, 0, sizeof herd);
    return 0;
}

/*  What a call says when it fails. */
#define assert_err(call, status, words)                \
    do {                                               \
        assert_int_equal(call, status);                \
        assert_non_null(strstr(tt_err_text(), words)); \
    } while (0)

typedef struct {
    int32_t action[N];
    float reward[N];
    uint8_t terminated[N], truncated[N];
} io_t;

static tt_status_t step(const range_t *range, uint32_t lo, int t, io_t *io)
{
    for (uint32_t i = 0; i < N; i++)
        io->action[i] = (int32_t)((lo + i + (uint32_t)t) % 2);
    return range_step(range, io->action, io->reward, io->terminated, io->truncated);
}

static uint32_t s_drawn(uint64_t seed, uint32_t env, uint64_t episode)
{
    uint32_t words[4];
    tt_draw(words, seed, TT_STREAM_RESET, env, episode << 32);
    return words[0];
}

#define SEEN_SEED(range, i)  (((const uint8_t *)tt_vec_obs((range)->vec)[0]) + 2 * (i))
#define SEEN_STEPS(range, i) ((const float *)tt_vec_obs((range)->vec)[1])[i]

/*  Every episode begins with the draw for (seed, env, episode), whichever way it is begun. */
static void check_episodes(void)
{
    RANGE range = range_open(&herd_ops.env, 9, 3, N);
    uint64_t episode[N] = {0};
    uint32_t steps[N] = {0};
    io_t io = {0};
    for (int t = 0; t < 40; t++) {
        assert_ok(step(&range, 3, t, &io));
        for (uint32_t i = 0; i < N; i++) {
            uint32_t seed = s_drawn(9, 3 + i, episode[i]);
            steps[i]++;
            assert_true(io.reward[i] == (float)(1 + (3 + i + (uint32_t)t) % 2));
            assert_int_equal(io.terminated[i], seed % 2 == 1 && steps[i] >= 2);
            assert_int_equal(io.truncated[i], steps[i] >= 3);
            if (io.truncated[i]) {
                assert_true(*(const float *)tt_vec_final(range.vec, i, 1) == 3);
                assert_memory_equal(tt_vec_final(range.vec, i, 0), &seed, 2);
            }
            if (io.terminated[i] || io.truncated[i]) {
                seed = s_drawn(9, 3 + i, ++episode[i]);
                steps[i] = 0;
            }
            assert_true(SEEN_STEPS(&range, i) == (float)steps[i]);
            assert_memory_equal(SEEN_SEED(&range, i), &seed, 2);
            assert_int_equal(tt_vec_age(range.vec, i), steps[i]);
        }
    }
}

static void test_the_host_begins_episodes(void **state)
{
    (void)state;
    check_episodes();
    assert_int_equal(herd.opened, 1);
    assert_int_equal(herd.closed, 1);
}

static void test_the_env_begins_them_itself(void **state)
{
    (void)state;
    herd.begins = true;
    check_episodes();
    assert_int_equal(herd.sends, 41); /* once, and once a step */
}

static void test_rows_come_in_any_order(void **state)
{
    (void)state;
    herd.backwards = true;
    check_episodes();
    herd.begins = true;
    check_episodes();
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

enum { WAYS = 16 };

static void s_set_way(int way, uint32_t wide)
{
    memset(&herd, 0, sizeof herd);
    herd.wide = wide;
    herd.begins = way & 1;
    herd.backwards = way & 2;
    herd.swaps = way & 4;
    herd.ready = way & 8;
}

/*  However they come: what is seen is what is seen without them. */
static void test_shares(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (uint32_t wide = 1; wide < N; wide++) {
            s_set_way(way, wide);
            check_episodes();
            assert_true(herd.apart >= 40);
        }
}

static void s_send(const range_t *range, uint32_t share, int t, io_t *io)
{
    const void *action = io->action;
    for (uint32_t i = 0; i < N; i++)
        io->action[i] = (int32_t)((i + (uint32_t)t) % 2);
    assert_ok(tt_vec_send(range->vec, share, &action, io->reward, io->terminated, io->truncated));
}

/*  Everybody's numbers after each step of the whole. */
typedef struct {
    io_t io;
    uint8_t seed[N][2], final[N][2];
    double steps[N];
    uint32_t age[N];
    uint64_t clock[N];
} seen_t;

static void s_see(const range_t *range, seen_t *out)
{
    for (uint32_t i = 0; i < N; i++) {
        memcpy(out->seed[i], SEEN_SEED(range, i), 2);
        memcpy(out->final[i], tt_vec_final(range->vec, i, 0), 2);
        out->steps[i] = SEEN_STEPS(range, i);
        out->age[i] = tt_vec_age(range->vec, i);
        out->clock[i] = tt_vec_clock(range->vec, i);
    }
}

/*  A share's rows, as those of the whole after the same step. */
static void s_assert_share(const seen_t *want, const range_t *range, const io_t *got, uint32_t share)
{
    uint32_t first, count;
    tt_vec_share(range->vec, share, &first, &count);
    for (uint32_t i = first; i < first + count; i++) {
        assert_true(got->reward[i] == want->io.reward[i]);
        assert_int_equal(got->terminated[i], want->io.terminated[i]);
        assert_int_equal(got->truncated[i], want->io.truncated[i]);
        assert_memory_equal(SEEN_SEED(range, i), want->seed[i], 2);
        assert_true(SEEN_STEPS(range, i) == want->steps[i]);
        assert_int_equal(tt_vec_age(range->vec, i), want->age[i]);
        assert_int_equal(tt_vec_clock(range->vec, i), want->clock[i]);
        if (want->io.truncated[i])
            assert_memory_equal(tt_vec_final(range->vec, i, 0), want->final[i], 2);
    }
}

enum { STEPS = 40 };

/*  Each share sets out again as soon as it is back, some far ahead of others, and is looked at while those play. */
static void s_play_apart(uint32_t wide)
{
    seen_t want[STEPS];
    io_t apart = {0};
    int made[N] = {0};
    uint32_t shares, share = 0;
    herd.wide = 0;
    RANGE whole = range_open(&herd_ops.env, 9, 0, N);
    herd.wide = wide;
    RANGE range = range_open(&herd_ops.env, 9, 0, N);
    assert_int_equal(tt_vec_shares(whole.vec), 1);
    shares = tt_vec_shares(range.vec);
    assert_int_equal(shares, (N + wide - 1) / wide);
    for (int t = 0; t < STEPS; t++) {
        assert_ok(step(&whole, 0, t, &want[t].io));
        s_see(&whole, &want[t]);
    }
    assert_int_equal(tt_vec_recv(range.vec, false, &share), TT_AGAIN); /* nothing is under way */
    for (uint32_t k = 0; k < shares; k++)
        s_send(&range, k, 0, &apart);
    for (uint32_t left = shares * (STEPS - 1); left; left--) {
        assert_ok(tt_vec_recv(range.vec, true, &share));
        s_assert_share(&want[made[share]], &range, &apart, share);
        if (++made[share] < STEPS)
            s_send(&range, share, made[share], &apart);
    }
} /* some are under way, and let go */

static void test_shares_are_played_apart(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (uint32_t wide = 1; wide < N; wide++) {
            s_set_way(way, wide);
            s_play_apart(wide);
            assert_int_equal(herd.opened, herd.closed);
        }
}

/*  Who does not wait gets what is there, in turn, and nothing else. */
static void test_what_is_there(void **state)
{
    (void)state;
    io_t io = {0};
    uint32_t share = 9;
    herd.wide = 1;
    RANGE range = range_open(&herd_ops.env, 9, 0, N);
    for (uint32_t k = 0; k < N; k++)
        s_send(&range, k, 0, &io);
    assert_int_equal(tt_vec_recv(range.vec, false, &share), TT_AGAIN);
    herd.ready = true;
    for (uint32_t k = 0; k < N; k++) {
        assert_ok(tt_vec_recv(range.vec, false, &share));
        assert_int_equal(share, k);
    }
    assert_int_equal(tt_vec_recv(range.vec, false, &share), TT_AGAIN);
}

static void test_what_shares_must_be(void **state)
{
    (void)state;
    const tt_vec_cfg_t cfg = {.seed = 1, .count = N};
    tt_env_batch_ops_t ops = herd_ops;
    RANGE range = {0};
    io_t io = {0};
    ops.send_share = NULL;
    herd.wide = 2;
    assert_err(range_try(&range, &ops.env, NULL, cfg), TT_INTERNAL,
        "rows.shares to 3, of 5 slots: each must end, by rows.share_end, behind the one before it, the last one with "
        "the slots, "
        "and the table have send_share");
    range_close(&range);
    assert_ok(range_try(&range, &herd_ops.env, NULL, cfg));
    herd.across = true;
    assert_err(step(&range, 0, 0, &io), TT_INTERNAL, "recv named 5 rows from 0 on, which are not all under way");
    range_close(&range);
    assert_int_equal(herd.opened, herd.closed);
}

/*  A time limit of the table cuts envs that begin episodes by themselves, too. */
static void test_a_limit_of_the_table(void **state)
{
    (void)state;
    tt_env_batch_ops_t ops = herd_ops;
    io_t io = {0};
    herd.begins = true;
    ops.env.max_episode_steps = 1;
    RANGE range = range_open(&ops.env, 9, 0, N);
    for (int t = 0; t < 5; t++) {
        assert_ok(step(&range, 0, t, &io));
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t seed = s_drawn(9, i, (uint64_t)t + 1);
            assert_int_equal(io.truncated[i], 1);
            assert_memory_equal(SEEN_SEED(&range, i), &seed, 2);
            assert_true(*(const float *)tt_vec_final(range.vec, i, 1) == 1);
        }
    }
}

/*  A state goes on in another slot of another range with the same numbers, across resets. */
static void test_states_move(void **state)
{
    (void)state;
    herd.begins = true;
    char bytes[256];
    assert_true(tt_vec_save_size(&herd_ops.env, 1) > 12 && tt_vec_save_size(&herd_ops.env, 1) <= sizeof bytes);
    RANGE whole = range_open(&herd_ops.env, 4, 0, N);
    RANGE one = range_open(&herd_ops.env, 4, 3, 1);
    io_t io = {0}, alone = {0};
    for (int t = 0; t < 4; t++)
        assert_ok(step(&whole, 0, t, &io));
    assert_ok(tt_vec_save(whole.vec, 3, bytes));
    assert_ok(vec_load(one.vec, 0, bytes));
    for (int t = 4; t < 20; t++) {
        assert_memory_equal(SEEN_SEED(&whole, 3), SEEN_SEED(&one, 0), 2);
        assert_true(SEEN_STEPS(&whole, 3) == SEEN_STEPS(&one, 0));
        assert_ok(step(&whole, 0, t, &io));
        alone.action[0] = io.action[3];
        assert_ok(range_step(&one, alone.action, alone.reward, alone.terminated, alone.truncated));
        assert_int_equal(alone.terminated[0], io.terminated[3]);
        assert_int_equal(alone.truncated[0], io.truncated[3]);
    }
    const double far = 7;
    memcpy(bytes + tt_vec_save_size(&herd_ops.env, 1) - 8, &far, 8);
    assert_err(vec_load(one.vec, 0, bytes), TT_DATA, "load refused a saved state: steps out of range");
}

/*  All states are named first, and then waited for together; play goes on when all envs are there. */
static void test_states_are_loaded_together(void **state)
{
    (void)state;
    herd.begins = herd.later = true;
    char bytes[2][256];
    RANGE whole = range_open(&herd_ops.env, 4, 0, N);
    RANGE two = range_open(&herd_ops.env, 4, 2, 2);
    io_t io = {0}, part = {0};
    for (int t = 0; t < 4; t++)
        assert_ok(step(&whole, 0, t, &io));
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(tt_vec_save(whole.vec, 2 + i, bytes[i]));
        assert_ok(tt_vec_begin_load(two.vec, i, bytes[i]));
    }
    bool all = false;
    uint64_t moves;
    for (uint64_t calls = 1; !all; calls++) {
        assert_ok(tt_vec_loaded(two.vec, &all, &moves));
        assert_int_equal(moves, all ? 2 : calls);
    }
    for (int t = 4; t < 20; t++) {
        assert_ok(step(&whole, 0, t, &io));
        memcpy(part.action, io.action + 2, 2 * sizeof *part.action);
        assert_ok(range_step(&two, part.action, part.reward, part.terminated, part.truncated));
        assert_memory_equal(SEEN_SEED(&whole, 2), SEEN_SEED(&two, 0), 4);
        assert_memory_equal(part.reward, io.reward + 2, sizeof(float) * 2);
    }
    herd.fail_loaded = "step of env 3 did not come back";
    assert_ok(tt_vec_begin_load(two.vec, 1, bytes[1]));
    assert_err(tt_vec_loaded(two.vec, &all, &moves), TT_INTERNAL, "env Herd-v0: step of env 3 did not come back");
    herd.lost = true;
    assert_err(vec_load(two.vec, 1, bytes[1]), TT_UNAVAILABLE, "env Herd-v0: step of env 3 did not come back");
    tt_env_batch_ops_t ops = herd_ops;
    ops.loaded = NULL;
    RANGE without = {0};
    assert_err(range_try(&without, &ops.env, NULL, (tt_vec_cfg_t){.count = 1}), TT_INTERNAL, "its table has no loaded");
}

/*  A range after another one: the env is shown what it may draw upon, while that is still there; no episode is begun, and states go on. */
static void test_a_range_after_another(void **state)
{
    (void)state;
    herd.begins = true;
    char bytes[2][256];
    RANGE whole = range_open(&herd_ops.env, 4, 0, N);
    RANGE next = {0};
    io_t io = {0}, two = {0};
    const void *before = herd.newest;
    for (int t = 0; t < 4; t++)
        assert_ok(step(&whole, 0, t, &io));
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(tt_vec_save(whole.vec, 2 + i, bytes[i]));
    const uint32_t sends = herd.sends;
    assert_ok(range_try(&next, &herd_ops.env, NULL, (tt_vec_cfg_t){.seed = 4, .lo = 2, .count = 2, .from = whole.vec}));
    assert_ptr_equal(herd.from, before);
    assert_int_equal(herd.closed, 0);
    assert_int_equal(herd.sends, sends);
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(vec_load(next.vec, i, bytes[i]));
    for (int t = 4; t < 20; t++) { /* the herd has nothing to give away, so that both go on */
        assert_ok(step(&whole, 0, t, &io));
        memcpy(two.action, io.action + 2, 2 * sizeof *two.action);
        assert_ok(range_step(&next, two.action, two.reward, two.terminated, two.truncated));
        assert_memory_equal(SEEN_SEED(&whole, 2), SEEN_SEED(&next, 0), 4);
        assert_memory_equal(two.reward, io.reward + 2, sizeof(float) * 2);
    }
    RANGE third = range_open(&herd_ops.env, 4, 0, 1);
    assert_non_null(third.vec);
    assert_null(herd.from);
}

/*  A state of zeros is none: the slot begins an episode that nobody has begun, and its clock goes on. */
static void test_a_state_that_is_none(void **state)
{
    (void)state;
    herd.begins = true;
    char bytes[256];
    RANGE whole = range_open(&herd_ops.env, 4, 0, N);
    RANGE one = range_open(&herd_ops.env, 4, 3, 1);
    io_t io = {0};
    for (int t = 0; t < 5; t++)
        assert_ok(step(&whole, 0, t, &io));
    assert_ok(tt_vec_save(whole.vec, 3, bytes));
    memset(bytes + tt_vec_save_size(&herd_ops.env, 1) - herd_ops.env.save_size, 0, herd_ops.env.save_size);
    assert_ok(vec_load(one.vec, 0, bytes));
    const uint32_t seed = s_drawn(4, 3, 5);
    assert_memory_equal(SEEN_SEED(&one, 0), &seed, 2);
    assert_int_equal(tt_vec_clock(one.vec, 0), 5);
    assert_int_equal(tt_vec_age(one.vec, 0), 0);
}

static void test_what_fails(void **state)
{
    (void)state;
    RANGE range = {0};
    const tt_vec_cfg_t cfg = {.seed = 1, .count = N};
    io_t io = {0};
    herd.fail_open = "no\x1b power";
    assert_err(range_try(&range, &herd_ops.env, NULL, cfg), TT_INTERNAL, "env Herd-v0: no  power");
    range_close(&range);
    assert_int_equal(herd.closed, 0);
    herd.fail_open = NULL;
    herd.forgets = true;
    assert_err(range_try(&range, &herd_ops.env, NULL, cfg), TT_INTERNAL, "an array of its rows NULL");
    range_close(&range);
    herd.forgets = false;
    assert_ok(range_try(&range, &herd_ops.env, NULL, cfg));
    herd.fail_recv = "it was killed";
    herd.lost = true;
    assert_err(step(&range, 0, 0, &io), TT_UNAVAILABLE, "env Herd-v0: it was killed");
    range_close(&range);
    herd.fail_recv = NULL;
    assert_ok(range_try(&range, &herd_ops.env, NULL, cfg));
    herd.beyond = true;
    assert_err(step(&range, 0, 0, &io), TT_INTERNAL, "recv named 6 rows from 0 on, of 5");
    herd.beyond = false;
    herd.begins = herd.early = true;
    range_close(&range);
    assert_ok(range_try(&range, &herd_ops.env, NULL, cfg));
    assert_err(step(&range, 0, 0, &io), TT_INTERNAL, "says not that one has ended");
    assert_int_equal(herd.opened - herd.closed, 1);
}

/*  An ordinary env's arguments are checked against its list; a batch may leave that to itself. */
static void test_arguments(void **state)
{
    (void)state;
    const tt_env_arg_t args[] = {{"size", "3"}, {0}};
    tt_env_batch_ops_t ops = herd_ops;
    RANGE range = {0};
    assert_err(range_try(&range, &ops.env, args, (tt_vec_cfg_t){.count = 1}), TT_CONFIG, "takes no arguments");
    range_close(&range);
    ops.any_args = true;
    assert_ok(range_try(&range, &ops.env, args, (tt_vec_cfg_t){.count = 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_host_begins_episodes, setup),
        cmocka_unit_test_setup(test_the_env_begins_them_itself, setup),
        cmocka_unit_test_setup(test_rows_come_in_any_order, setup),
        cmocka_unit_test_setup(test_shares, setup),
        cmocka_unit_test_setup(test_shares_are_played_apart, setup),
        cmocka_unit_test_setup(test_what_is_there, setup),
        cmocka_unit_test_setup(test_what_shares_must_be, setup),
        cmocka_unit_test_setup(test_a_limit_of_the_table, setup),
        cmocka_unit_test_setup(test_states_move, setup),
        cmocka_unit_test_setup(test_states_are_loaded_together, setup),
        cmocka_unit_test_setup(test_a_range_after_another, setup),
        cmocka_unit_test_setup(test_a_state_that_is_none, setup),
        cmocka_unit_test_setup(test_what_fails, setup),
        cmocka_unit_test_setup(test_arguments, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
