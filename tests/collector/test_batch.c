/*  batch: a table that moves many envs at once, through the same vec as ordinary ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/env_batch.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/collector/range.h"

enum { N = 5 };

/*  A herd whose every number can be told by hand. It sees how many steps its episode has (float64), and the seed it began with
 *  (two bytes of it); it is told 1 or 2, which is its reward. Episodes end after 3 steps (truncated), of odd seeds after 2
 *  (terminated). */
typedef struct {
    uint32_t count;
    uint8_t *todo, *terminated, *truncated, *begun, *bytes, *last_bytes;
    uint32_t *seed, *of; /* of: what it began with */
    int32_t *told;
    double *steps, *last_steps;
    float *reward;
    uint32_t named; /* rows that recv has named since send */
    void *obs[2], *final[2], *action[1];
} herd_t;

static struct {
    bool begins;    /* it begins the next episode by itself           */
    bool backwards; /* rows come in two parts, the last ones first     */
    uint32_t sends, opened, closed;
    const char *fail_open, *fail_recv;
    bool lost, beyond, early, forgets;
    const void *newest, *from; /* the handle that was opened last, and what it might draw upon */
} s_herd;

static void s_start(herd_t *h, uint32_t i)
{
    h->of[i] = h->seed[i];
    h->steps[i] = 0;
    memcpy(h->bytes + 2 * i, &h->of[i], 2);
}

static bool s_say(tt_env_why_t *why, const char *text)
{
    why->lost = s_herd.lost;
    snprintf(why->text, sizeof why->text, "%s", text);
    return false;
}

static bool herd_open(void **self, const tt_env_open_t *how, tt_env_rows_t *rows, tt_env_why_t *why)
{
    if (s_herd.fail_open)
        return s_say(why, s_herd.fail_open);
    const uint32_t n = how->count;
    herd_t *h = tt_new0(sizeof *h);
    s_herd.newest = h;
    s_herd.from = how->from;
    h->count = n;
    h->todo = tt_new0(n);
    h->terminated = tt_new0(n);
    h->truncated = tt_new0(n);
    h->begun = tt_new0(n);
    h->bytes = tt_new0(2 * n);
    h->last_bytes = tt_new0(2 * n);
    h->seed = tt_array0(n, sizeof *h->seed);
    h->of = tt_array0(n, sizeof *h->of);
    h->told = tt_array0(n, sizeof *h->told);
    h->steps = tt_array0(n, sizeof *h->steps);
    h->last_steps = tt_array0(n, sizeof *h->last_steps);
    h->reward = tt_array0(n, sizeof *h->reward);
    h->obs[0] = h->bytes;
    h->obs[1] = h->steps;
    h->final[0] = h->last_bytes;
    h->final[1] = h->last_steps;
    h->action[0] = h->told;
    *rows = (tt_env_rows_t){.todo = h->todo,
        .seed = h->seed,
        .action = h->action,
        .obs = h->obs,
        .reward = h->reward,
        .terminated = h->terminated,
        .truncated = h->truncated};
    if (s_herd.begins) {
        rows->begun = h->begun;
        rows->final = h->final;
    }
    if (s_herd.forgets)
        rows->reward = NULL;
    s_herd.opened++;
    *self = h;
    return true;
}

static void herd_close(void *self)
{
    herd_t *h = self;
    void *all[] = {h->todo, h->terminated, h->truncated, h->begun, h->bytes, h->last_bytes, h->seed, h->of, h->told,
        h->steps, h->last_steps, h->reward, h};
    for (size_t i = 0; i < TT_COUNT(all); i++)
        free(all[i]);
    s_herd.closed++;
}

static void s_step(herd_t *h, uint32_t i)
{
    h->steps[i]++;
    h->reward[i] = (float)h->told[i];
    h->terminated[i] = h->of[i] % 2 == 1 && h->steps[i] >= 2;
    h->truncated[i] = h->steps[i] >= 3;
    h->begun[i] = s_herd.begins && (s_herd.early || h->terminated[i] || h->truncated[i]);
    if (!h->begun[i])
        return;
    h->last_steps[i] = h->steps[i];
    memcpy(h->last_bytes + 2 * i, h->bytes + 2 * i, 2);
    s_start(h, i);
}

static bool herd_send(void *self, tt_env_why_t *why)
{
    herd_t *h = self;
    (void)why;
    h->named = 0;
    s_herd.sends++;
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->todo[i] == TT_ENV_BEGIN)
            s_start(h, i);
        else if (h->todo[i] == TT_ENV_STEP)
            s_step(h, i);
    }
    return true;
}

static bool herd_recv(void *self, uint32_t *first, uint32_t *count, tt_env_why_t *why)
{
    herd_t *h = self;
    const uint32_t half = s_herd.backwards ? h->count / 2 : 0;
    if (s_herd.fail_recv)
        return s_say(why, s_herd.fail_recv);
    *first = h->named == 0 ? half : 0;
    *count = h->named == 0 ? h->count - half : half;
    *count += s_herd.beyond;
    h->named += *count;
    return true;
}

static bool herd_save(void *self, uint32_t slot, void *bytes, tt_env_why_t *why)
{
    const herd_t *h = self;
    (void)why;
    memcpy(bytes, &h->of[slot], 4);
    memcpy((char *)bytes + 4, &h->steps[slot], 8);
    return true;
}

static bool herd_load(void *self, uint32_t slot, const void *bytes, tt_env_why_t *why)
{
    herd_t *h = self;
    double steps;
    memcpy(&steps, (const char *)bytes + 4, 8);
    if (!(steps >= 0 && steps < 3))
        return s_say(why, "steps\nout of range");
    memcpy(&h->of[slot], bytes, 4);
    h->steps[slot] = steps;
    memcpy(h->bytes + 2 * slot, bytes, 2);
    return true;
}

static const int64_t s_n[] = {2}, s_from[] = {1};
static const tt_space_t s_parts[] = {
    {.kind = TT_SPACE_BOX, .key = "seed", .dtype = TT_U8, .rank = 1, .shape = {2}},
    {.kind = TT_SPACE_BOX, .key = "steps", .dtype = TT_F64},
};
static const tt_env_batch_ops_t s_ops = {
    .env = {.abi = TT_ENV_BATCH_ABI,
        .id = "Herd-v0",
        .summary = "many",
        .reward_threshold = NAN,
        .save_size = 12,
        .obs = {.kind = TT_SPACE_DICT, .part = s_parts, .parts = 2},
        .action = {.kind = TT_SPACE_DISCRETE, .n = s_n, .start = s_from}},
    .open = herd_open,
    .send = herd_send,
    .recv = herd_recv,
    .close = herd_close,
    .save = herd_save,
    .load = herd_load,
};

static int setup(void **state)
{
    (void)state;
    memset(&s_herd, 0, sizeof s_herd);
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
    RANGE range = range_open(&s_ops.env, 9, 3, N);
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
    assert_int_equal(s_herd.opened, 1);
    assert_int_equal(s_herd.closed, 1);
}

static void test_the_env_begins_them_itself(void **state)
{
    (void)state;
    s_herd.begins = true;
    check_episodes();
    assert_int_equal(s_herd.sends, 41); /* once, and once a step */
}

static void test_rows_come_in_any_order(void **state)
{
    (void)state;
    s_herd.backwards = true;
    check_episodes();
    s_herd.begins = true;
    check_episodes();
}

/*  A time limit of the table cuts envs that begin episodes by themselves, too. */
static void test_a_limit_of_the_table(void **state)
{
    (void)state;
    tt_env_batch_ops_t ops = s_ops;
    io_t io = {0};
    s_herd.begins = true;
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
    s_herd.begins = true;
    char bytes[256];
    assert_true(tt_vec_save_size(&s_ops.env, 1) > 12 && tt_vec_save_size(&s_ops.env, 1) <= sizeof bytes);
    RANGE whole = range_open(&s_ops.env, 4, 0, N);
    RANGE one = range_open(&s_ops.env, 4, 3, 1);
    io_t io = {0}, alone = {0};
    for (int t = 0; t < 4; t++)
        assert_ok(step(&whole, 0, t, &io));
    assert_ok(tt_vec_save(whole.vec, 3, bytes));
    assert_ok(tt_vec_load(one.vec, 0, bytes));
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
    memcpy(bytes + tt_vec_save_size(&s_ops.env, 1) - 8, &far, 8);
    assert_err(tt_vec_load(one.vec, 0, bytes), TT_DATA, "load refused a saved state: steps out of range");
}

/*  A range after another one: the env is shown what it may draw upon, while that is still there; no episode is begun, and states go on. */
static void test_a_range_after_another(void **state)
{
    (void)state;
    s_herd.begins = true;
    char bytes[2][256];
    RANGE whole = range_open(&s_ops.env, 4, 0, N);
    RANGE next = {0};
    io_t io = {0}, two = {0};
    const void *before = s_herd.newest;
    for (int t = 0; t < 4; t++)
        assert_ok(step(&whole, 0, t, &io));
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(tt_vec_save(whole.vec, 2 + i, bytes[i]));
    const uint32_t sends = s_herd.sends;
    assert_ok(range_try(&next, &s_ops.env, NULL, (tt_vec_cfg_t){.seed = 4, .lo = 2, .count = 2, .from = whole.vec}));
    assert_ptr_equal(s_herd.from, before);
    assert_int_equal(s_herd.closed, 0);
    assert_int_equal(s_herd.sends, sends);
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(tt_vec_load(next.vec, i, bytes[i]));
    for (int t = 4; t < 20; t++) { /* the herd has nothing to give away, so that both go on */
        assert_ok(step(&whole, 0, t, &io));
        memcpy(two.action, io.action + 2, 2 * sizeof *two.action);
        assert_ok(range_step(&next, two.action, two.reward, two.terminated, two.truncated));
        assert_memory_equal(SEEN_SEED(&whole, 2), SEEN_SEED(&next, 0), 4);
        assert_memory_equal(two.reward, io.reward + 2, sizeof(float) * 2);
    }
    RANGE third = range_open(&s_ops.env, 4, 0, 1);
    assert_null(s_herd.from);
}

/*  A state of zeros is none: the slot begins an episode that nobody has begun, and its clock goes on. */
static void test_a_state_that_is_none(void **state)
{
    (void)state;
    s_herd.begins = true;
    char bytes[256];
    RANGE whole = range_open(&s_ops.env, 4, 0, N);
    RANGE one = range_open(&s_ops.env, 4, 3, 1);
    io_t io = {0};
    for (int t = 0; t < 5; t++)
        assert_ok(step(&whole, 0, t, &io));
    assert_ok(tt_vec_save(whole.vec, 3, bytes));
    memset(bytes + tt_vec_save_size(&s_ops.env, 1) - s_ops.env.save_size, 0, s_ops.env.save_size);
    assert_ok(tt_vec_load(one.vec, 0, bytes));
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
    s_herd.fail_open = "no\x1b power";
    assert_err(range_try(&range, &s_ops.env, NULL, cfg), TT_INTERNAL, "env Herd-v0: no  power");
    range_close(&range);
    assert_int_equal(s_herd.closed, 0);
    s_herd.fail_open = NULL;
    s_herd.forgets = true;
    assert_err(range_try(&range, &s_ops.env, NULL, cfg), TT_INTERNAL, "an array of its rows NULL");
    range_close(&range);
    s_herd.forgets = false;
    assert_ok(range_try(&range, &s_ops.env, NULL, cfg));
    s_herd.fail_recv = "it was killed";
    s_herd.lost = true;
    assert_err(step(&range, 0, 0, &io), TT_UNAVAILABLE, "env Herd-v0: it was killed");
    s_herd.fail_recv = NULL;
    s_herd.beyond = true;
    assert_err(step(&range, 0, 0, &io), TT_INTERNAL, "recv named 6 rows from 0 on, of 5");
    s_herd.beyond = false;
    s_herd.begins = s_herd.early = true;
    range_close(&range);
    assert_ok(range_try(&range, &s_ops.env, NULL, cfg));
    assert_err(step(&range, 0, 0, &io), TT_INTERNAL, "says not that one has ended");
    assert_int_equal(s_herd.opened - s_herd.closed, 1);
}

/*  An ordinary env's arguments are checked against its list; a batch may leave that to itself. */
static void test_arguments(void **state)
{
    (void)state;
    const tt_env_arg_t args[] = {{"size", "3"}, {0}};
    tt_env_batch_ops_t ops = s_ops;
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
        cmocka_unit_test_setup(test_a_limit_of_the_table, setup),
        cmocka_unit_test_setup(test_states_move, setup),
        cmocka_unit_test_setup(test_a_range_after_another, setup),
        cmocka_unit_test_setup(test_a_state_that_is_none, setup),
        cmocka_unit_test_setup(test_what_fails, setup),
        cmocka_unit_test_setup(test_arguments, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
