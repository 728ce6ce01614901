/*  A replay beside the naive one, batch by batch: which units live, what they return, every frame and stack of each of them;
 *  then what is refused, and the limits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"
#include "tests/replay/frames.h"
#include "tests/replay/pair.h"
#include "tests/test.h"

enum { STACK_MAX = FRAMES_STACK };

static void s_check_unit(const pair_t *pair, const naive_row_t *unit)
{
    const uint64_t id = unit->clock * pair->world->N + unit->env;
    units_reach_t reach;
    units_reach(&pair->replay->units, past_place(&pair->replay->past, unit->clock, unit->env), &reach);
    assert_true(reach.ret == unit->ret && reach.discount == unit->discount);
    frames_check(pair->naive, pair->replay, id, REPLAY_AT, unit);
    frames_check(pair->naive, pair->replay, id, REPLAY_NEXT, unit);
}

/*  What is counted as they come and go is what they have. */
static void s_check_room(const past_t *past)
{
    uint64_t room = past->spare ? past->spare->finals_room : 0;
    for (uint64_t b = past->first; b < past->next; b++)
        room += past_batch(past, b)->finals_room;
    assert_int_equal(past->finals_room, room);
}

static void s_check(const pair_t *pair)
{
    const world_t *world = pair->world;
    replay_stats_t stats;
    uint64_t living = 0;
    for (uint64_t clock = 0; clock < world->batches * world->T; clock++) {
        for (uint32_t e = 0; e < world->N; e++) {
            naive_row_t unit;
            const bool lives = naive_lives(pair->naive, clock, e);
            assert_int_equal(units_lives(&pair->replay->units, clock, e), lives);
            living += lives;
            if (lives && naive_row(pair->naive, clock, e, &unit))
                s_check_unit(pair, &unit);
        }
    }
    replay_stats(pair->replay, &stats);
    assert_int_equal(stats.units, living);
    assert_int_equal(stats.oldest, pair->naive->first);
    assert_int_equal(stats.next, world->batches);
    assert_int_equal(stats.bytes, naive_bytes(pair->naive));
    assert_int_equal(stats.bytes, stats.rows * world_row_bytes() + stats.finals * world_final_bytes());
    assert_true(stats.physical > stats.bytes);
    s_check_room(&pair->replay->past);
}

/*  Uniform: the sum of each stripe's tree counts its units. */
static void s_check_stripes(const pair_t *pair)
{
    uint64_t count[16] = {0};
    for (uint64_t clock = 0; clock < pair->world->batches * pair->world->T; clock++)
        for (uint32_t e = 0; e < pair->world->N; e++) {
            if (naive_lives(pair->naive, clock, e))
                count[naive_stripe(pair->naive, clock, e)]++;
        }
    for (uint32_t s = 0; s < pair->naive->cfg.stripes; s++)
        assert_true(sumtree_sum(&pair->replay->units.tree[s]) == (double)count[s]);
}

/*  Random setups: batches of 1 to 40 steps, room for 1 to 12 of them, rare and frequent ends and breaks. */
static void test_random_worlds(void **state)
{
    (void)state;
    const int worlds = 40;
    uint64_t evicted = 0;
    for (uint32_t seed = 0; seed < (uint32_t)worlds; seed++) {
        double unit[9];
        for (uint64_t k = 0; k < TT_COUNT(unit); k++)
            unit[k] = world_unit(1000 + seed, k);
        world_t *world = world_new(1 + (uint32_t)(unit[0] * 11), 1 + (uint32_t)(unit[1] * unit[1] * 40), seed);
        world->ends = unit[2] * unit[2] * 0.6;
        world->breaks = unit[3] * unit[3];
        world->index[0] = (uint32_t)(unit[4] * 3); /* a run that goes on, with a replay that begins */
        const uint32_t stack = 1 + (uint32_t)(unit[8] * STACK_MAX);
        const tt_pad_t pad = seed % 2 ? TT_PAD_RESET : TT_PAD_ZERO;
        world_stack(world, stack, pad);
        replay_cfg_t cfg = world_cfg(
            world, 1 + (uint32_t)(unit[5] * 12), 1u << (uint32_t)(unit[6] * 4), 1 + (uint32_t)(unit[7] * unit[7] * 9));
        cfg.stack = stack;
        cfg.stacked = world->image;
        cfg.pad = pad;
        pair_t pair;
        pair_open(&pair, world, &cfg);
        for (int batch = 0; batch < 16; batch++) {
            pair_play(&pair);
            s_check(&pair);
            s_check_stripes(&pair);
        }
        evicted += pair.naive->first;
        pair_close(&pair);
    }
    assert_true(evicted > 100);
}

/*  Worked by hand: 2 envs, T = 3, n = 2, gamma 1/2. Env 0: rewards 1 2 4, truncated after the second; env 1 terminates at
 *  its first. Then env 0 breaks. */
static void test_by_hand(void **state)
{
    (void)state;
    world_t *world = world_new(1, 1, 0);
    const tt_columns_t *columns = world->columns;
    replay_cfg_t cfg = {.columns = columns,
        .store = 1u << world->vector,
        .N = 2,
        .T = 3,
        .capacity = 1 << 20,
        .stripes = 1,
        .ahead = 2,
        .gamma = 0.5,
        .stack = 1};
    replay_t *replay = NULL;
    assert_ok(replay_new(&replay, &cfg));
    float vector[3][2][3] = {{{0}}}, last[2][3] = {{7, 7, 7}, {8, 8, 8}}, final[1][3] = {{9, 9, 9}};
    float reward[3][2] = {{1, 16}, {2, 32}, {4, 64}};
    uint8_t terminated[3][2] = {{0, 1}}, truncated[3][2] = {{0}, {1, 0}};
    uint32_t age[2] = {0}, final_t[1] = {1}, final_env[1] = {0};
    tt_segment_t at = {.age = age, .final_t = final_t, .final_env = final_env};
    at.column[world->vector] = vector;
    at.last[world->vector] = last;
    at.final[world->vector] = final;
    at.column[columns->reward] = reward;
    at.column[columns->terminated] = terminated;
    at.column[columns->truncated] = truncated;
    for (uint32_t i = 0; i < 6; i++)
        vector[i / 2][i % 2][0] = (float)i;
    replay_part_t part = {.at = &at, .E = 2, .K = 1, .count = 2};
    assert_ok(replay_insert(replay, 5, &part, 1, NULL));

    const struct {
        uint64_t clock;
        uint32_t env;
        float ret, discount, next;
    } want[] = {
        {15, 0, 2, 0.25f, 9}, {16, 0, 2, 0.5f, 9}, {15, 1, 16, 0, 1}, {16, 1, 64, 0.25f, 8}, {17, 0, 4, 0.5f, 7}};
    for (size_t i = 0; i < TT_COUNT(want); i++) {
        if (i == 4) { /* broke: what it would have gone on with is its final */
            assert_false(units_lives(&replay->units, 17, 0));
            memset(truncated, 0, sizeof truncated);
            memset(last, 0, sizeof last);
            part.K = 0;
            assert_ok(replay_insert(replay, 6, &part, 1, (const uint8_t[]){1, 0}));
        }
        const void *column[TT_COLUMNS_MAX];
        units_reach_t reach;
        assert_true(units_lives(&replay->units, want[i].clock, want[i].env));
        units_reach(&replay->units, past_place(&replay->past, want[i].clock, want[i].env), &reach);
        assert_true(reach.ret == want[i].ret && reach.discount == want[i].discount);
        replay_row(replay, want[i].clock * 2 + want[i].env, REPLAY_NEXT, column);
        assert_true(*(const float *)column[world->vector] == want[i].next);
    }
    replay_destroy(&replay);
    world_destroy(&world);
}

static void test_refused_batches(void **state)
{
    (void)state;
    world_t *world = world_new(4, 8, 3);
    world->ends = 0.3;
    const replay_cfg_t cfg = world_cfg(world, 3, 1, 1);
    replay_t *replay = NULL;
    assert_ok(replay_new(&replay, &cfg));
    world_play(world);
    replay_part_t part[4];
    memcpy(part, world->part, world->parts * sizeof *part);
    const uint32_t parts = world->parts;
    assert_int_equal(replay_insert(replay, 0, part, parts - 1, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "a batch of"));
    part[parts - 1].count++;
    assert_int_equal(replay_insert(replay, 0, part, parts, NULL), TT_INVALID);
    part[parts - 1].count--;
    part[0].env = 1;
    assert_int_equal(replay_insert(replay, 0, part, parts, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "env 0 of 4 is due"));
    part[0].env = 0;
    assert_true(part[0].K > 0);
    part[0].K--;
    assert_int_equal(replay_insert(replay, 0, part, parts, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "without a final observation"));
    part[0].K++;
    part[0].at->final_t[part[0].K - 1]--;
    assert_int_equal(replay_insert(replay, 0, part, parts, NULL), TT_INVALID);
    part[0].at->final_t[part[0].K - 1]++;
    replay_stats_t stats;
    replay_stats(replay, &stats);
    assert_int_equal(stats.rows, 0);
    assert_ok(replay_insert(replay, 7, part, parts, NULL)); /* an empty one begins anywhere */
    assert_int_equal(replay_insert(replay, 7, part, parts, NULL), TT_INVALID);
    assert_non_null(strstr(tt_err_text(), "batch 8 is due, not 7"));
    assert_int_equal(replay_insert(replay, 9, part, parts, NULL), TT_INVALID);
    assert_ok(replay_insert(replay, 8, part, parts, NULL));
    replay_destroy(&replay);
    world_destroy(&world);
}

static void test_limits(void **state)
{
    (void)state;
    world_t *world = world_new(4, 8, 3);
    const replay_cfg_t good = world_cfg(world, 1, 2, 3);
    replay_t *replay = NULL;
    const struct {
        size_t offset;
        uint32_t bad;
        const char *word;
    } numbers[] = {{offsetof(replay_cfg_t, N), 0, "envs"}, {offsetof(replay_cfg_t, N), 65537, "envs"},
        {offsetof(replay_cfg_t, T), 0, "steps"}, {offsetof(replay_cfg_t, stripes), 0, "stripes"},
        {offsetof(replay_cfg_t, stripes), 3, "power of two"}, {offsetof(replay_cfg_t, stripes), 512, "stripes"},
        {offsetof(replay_cfg_t, ahead), 0, "ahead"}, {offsetof(replay_cfg_t, ahead), 257, "ahead"},
        {offsetof(replay_cfg_t, stack), 0, "stack"}, {offsetof(replay_cfg_t, stack), 65, "stack"},
        {offsetof(replay_cfg_t, priority_delay), 65, "priority_delay"}};
    for (size_t i = 0; i < TT_COUNT(numbers); i++) {
        replay_cfg_t cfg = good;
        memcpy((char *)&cfg + numbers[i].offset, &numbers[i].bad, sizeof numbers[i].bad);
        assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
        assert_non_null(strstr(tt_err_text(), numbers[i].word));
    }
    replay_cfg_t cfg = good;
    cfg.capacity--;
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "one batch (4 envs, 8 steps) takes 832"));
    cfg.capacity = UINT64_MAX;
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    cfg = good;
    cfg.gamma = NAN;
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    cfg = good;
    cfg.alpha = 0.5f; /* and no epsilon */
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    cfg.alpha = 4;
    cfg.epsilon = 1e-20f; /* to the 4th: 0 */
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    cfg = good;
    cfg.stack = 4;
    cfg.stacked = world->action;
    assert_int_equal(replay_new(&replay, &cfg), TT_CONFIG);
    assert_non_null(strstr(tt_err_text(), "cannot be stacked"));
    assert_null(replay);
    world_destroy(&world);
}

static bool s_has(const pair_t *pair)
{
    const world_t *world = pair->world;
    return replay_has(pair->replay, world->batches - 1, world->part, world->parts, world->broke);
}

/*  Another byte at `at`: is it another batch? */
static void s_check_differs(const pair_t *pair, void *at)
{
    *(uint8_t *)at ^= 1;
    assert_false(s_has(pair));
    *(uint8_t *)at ^= 1;
}

/*  Every kind of number that goes in, of the last env. */
static void s_check_all_differ(pair_t *pair)
{
    world_t *world = pair->world;
    const replay_part_t *part = &world->part[world->parts - 1];
    const tt_segment_t *at = part->at;
    const size_t env = part->first + part->count - 1, row = (size_t)(world->T - 1) * part->E + env;
    s_check_differs(pair, (float *)at->column[world->columns->reward] + row);
    s_check_differs(pair, (uint8_t *)at->column[world->columns->terminated] + row);
    s_check_differs(pair, (uint8_t *)at->column[world->image] + 4 * row);
    s_check_differs(pair, (uint8_t *)at->last[world->image] + 4 * env);
    s_check_differs(pair, at->age + env);
    s_check_differs(pair, at->carry + world->carry * (env + 1) - 1);
    s_check_differs(pair, &world->broke[world->N - 1]);
    for (uint32_t k = 0; k < part->K; k++)
        if (at->final_env[k] == env)
            s_check_differs(pair, (uint8_t *)at->final[world->image] + 4 * k);
}

/*  Each env by itself. */
static void s_cut(const world_t *world, replay_part_t out[WORLD_ENVS])
{
    for (uint32_t p = 0; p < world->parts; p++)
        for (uint32_t k = 0; k < world->part[p].count; k++) {
            replay_part_t *part = &out[world->part[p].env + k];
            *part = world->part[p];
            part->first += k;
            part->env += k;
            part->count = 1;
        }
}

/*  Whether it has a batch goes by what is in that, however it was cut into segments. */
static void test_has(void **state)
{
    (void)state;
    pair_t pair;
    world_t *world = world_new(5, 7, 3);
    world->breaks = 0.3;
    world->carry = 2;
    const replay_cfg_t cfg = world_cfg(world, 4, 2, 2);
    pair_open(&pair, world, &cfg);
    assert_false(replay_has(pair.replay, 0, world->part, 0, NULL));
    for (uint32_t batch = 0; batch < 12; batch++) {
        pair_play(&pair);
        assert_true(s_has(&pair));
        assert_false(replay_has(pair.replay, batch + 1, world->part, world->parts, world->broke));
        s_check_all_differ(&pair);
        replay_part_t part[WORLD_ENVS];
        s_cut(world, part);
        assert_true(replay_has(pair.replay, batch, part, world->N, world->broke));
    }
    pair_close(&pair);
}

static void test_owed(void **state)
{
    (void)state;
    assert_int_equal(replay_owed(0, 100, 4, 1), 0);
    assert_int_equal(replay_owed(100, 100, 4, 1), 0);
    assert_int_equal(replay_owed(103, 100, 4, 1), 0);
    assert_int_equal(replay_owed(104, 100, 4, 1), 1);
    assert_int_equal(replay_owed(1356, 1000, 256, 128), 128);
    assert_int_equal(replay_owed(1u << 20, 0, 1, 3), 3u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_refused_batches),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_has),
        cmocka_unit_test(test_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
