/*  Sequences beside the naive replay, batch by batch: which of them live, what each of their rows returns and where its NEXT is, every
 *  frame of what is held, what is carried into them; one worked by hand; and the limits. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"
#include "tests/replay/frames.h"
#include "tests/replay/pair.h"
#include "tests/test.h"

/*  A row that is held, or what came after the newest: every frame that it leads to. */
static void s_check_held(pair_t *pair, uint64_t clock, uint32_t env)
{
    const world_t *world = pair->world;
    const uint64_t id = clock * world->N + env;
    naive_row_t row;
    const bool complete = naive_row(pair->naive, clock, env, &row);
    assert_int_equal(replay_begins(pair->replay, id), row.at == 0);
    frames_check(pair->naive, pair->replay, id, REPLAY_AT, &row);
    if (clock == world->batches * world->T)
        return;
    const past_place_t place = past_place(&pair->replay->past, clock, env);
    assert_int_equal(units_complete(&pair->replay->units, place), complete);
    if (complete)
        frames_check(pair->naive, pair->replay, id, REPLAY_NEXT, &row);
    if ((row.cut && row.rows == 1) || world->row[env][clock].truncated) /* though it be terminated, too */
        frames_check(pair->naive, pair->replay, id, REPLAY_FINAL, &row);
}

static void s_check_carried(const pair_t *pair, uint64_t clock, uint32_t env)
{
    float want[4];
    world_carry(pair->world, clock / pair->world->T, env, want);
    assert_memory_equal(
        replay_carried(pair->replay, clock * pair->world->N + env), want, pair->world->carry * sizeof *want);
}

/*  The frame that NEXT of a row is, by what `next` says of it: the same as the row itself leads to. */
static void s_check_next(pair_t *pair, uint64_t unit, uint32_t next, const naive_row_t *row)
{
    const world_t *world = pair->world;
    const uint64_t id = unit + (uint64_t)(next & ~REPLAY_FINAL_OF) * world->N;
    const bool final = next & REPLAY_FINAL_OF, tip = id / world->N == world->batches * world->T;
    uint8_t got[FRAMES_STACK * 16], want[FRAMES_STACK * 16];
    const uint64_t from = row->clock * world->N + row->env;
    replay_gather_rows(pair->replay, &id, 1, final ? REPLAY_FINAL : REPLAY_AT, got);
    replay_gather_rows(pair->replay, &from, 1, REPLAY_NEXT, want);
    assert_memory_equal(got, want, world->columns->row);
    pair->cut += final;
    pair->over += row->over;
    pair->tips += tip;
    pair->on += !final && !row->over && !tip;
}

/*  Everything that lives, as often as it takes to draw it. */
static void s_check_drawn(pair_t *pair, uint64_t total)
{
    enum { UNITS = 64 };
    const replay_cfg_t *cfg = &pair->naive->cfg;
    replay_sample_t got;
    if (replay_sample(pair->replay, total, UNITS, 0.5f, &got) != TT_OK)
        return;
    for (uint32_t i = 0; i < UNITS; i++) {
        const uint64_t clock = got.unit[i] / cfg->N;
        const uint32_t env = (uint32_t)(got.unit[i] % cfg->N);
        assert_true(naive_lives(pair->naive, clock, env));
        for (uint32_t t = 0; t < cfg->length; t++) {
            naive_row_t row;
            assert_true(naive_row(pair->naive, clock + cfg->burn + t, env, &row));
            assert_true(got.ret[t * UNITS + i] == row.ret && got.discount[t * UNITS + i] == row.discount);
            assert_int_equal(got.next[t * UNITS + i], naive_next(&row, cfg->burn + t));
            s_check_next(pair, got.unit[i], got.next[t * UNITS + i], &row);
        }
    }
}

static void s_check(pair_t *pair)
{
    const world_t *world = pair->world;
    const uint64_t oldest = pair->naive->first * world->T, end = world->batches * world->T;
    replay_stats_t stats;
    uint64_t living = 0;
    for (uint64_t clock = 0; clock <= end; clock++)
        for (uint32_t e = 0; e < world->N; e++) {
            const bool lives = naive_lives(pair->naive, clock, e);
            assert_int_equal(units_lives(&pair->replay->units, clock, e), lives);
            living += lives;
            if (clock >= oldest)
                s_check_held(pair, clock, e);
            if (world->carry && clock >= oldest && clock < end && clock % world->T == 0)
                s_check_carried(pair, clock, e);
        }
    replay_stats(pair->replay, &stats);
    assert_int_equal(stats.units, living);
    assert_int_equal(stats.oldest, pair->naive->first);
    assert_int_equal(stats.bytes, naive_bytes(pair->naive));
    assert_int_equal(stats.bytes, stats.batches * world_batch_bytes(world) + stats.finals * world_final_bytes());
    assert_true(stats.physical > stats.bytes);
    pair->lived += living;
}

/*  Uniform: the sum of each stripe's tree counts its units. */
static void s_check_stripes(const pair_t *pair)
{
    uint64_t count[16] = {0};
    for (uint64_t clock = 0; clock < pair->world->batches * pair->world->T; clock++)
        for (uint32_t e = 0; e < pair->world->N; e++)
            if (naive_lives(pair->naive, clock, e))
                count[naive_stripe(pair->naive, clock, e)]++;
    for (uint32_t s = 0; s < pair->naive->cfg.stripes; s++)
        assert_true(sumtree_sum(&pair->replay->units.tree[s]) == (double)count[s]);
}

static uint32_t s_to(double unit, uint32_t most)
{
    return (uint32_t)(unit * (most + 1));
}

/*  Batches of 1 to 12 steps, sequences that end anywhere in one of theirs or of later ones, with frames ahead that reach still further;
 *  ends and breaks rare and frequent; room for little more than one sequence, or for some. */
static void s_setup(uint32_t seed, pair_t *pair)
{
    double unit[12];
    for (uint64_t k = 0; k < TT_COUNT(unit); k++)
        unit[k] = world_unit(3000 + seed, k);
    world_t *world = world_new(1 + s_to(unit[0], 6), 1 + s_to(unit[1] * unit[1], 11), seed);
    world->ends = unit[2] * unit[2] * 0.5;
    world->breaks = unit[3] * unit[3] * 0.6;
    world->index[0] = s_to(unit[4], 2);
    world->carry = seed % 4;
    const uint32_t stack = 1 + s_to(unit[5] * unit[5], FRAMES_STACK - 1), ahead = 1 + s_to(unit[6] * unit[6], 14);
    const tt_pad_t pad = seed % 2 ? TT_PAD_RESET : TT_PAD_ZERO;
    world_stack(world, stack, pad);
    const uint32_t length = 1 + s_to(unit[7], 15), burn = seed % 3 ? s_to(unit[8], 9) : 0;
    const uint32_t least = (burn + length + ahead - 1 + world->T - 1) / world->T;
    replay_cfg_t cfg = world_cfg(world, least + s_to(unit[9], 6), 1u << s_to(unit[10] * unit[10], 3), ahead);
    cfg.length = length;
    cfg.burn = burn;
    cfg.stack = stack;
    cfg.stacked = world->image;
    cfg.pad = pad;
    pair_open(pair, world, &cfg);
}

static void test_random_worlds(void **state)
{
    (void)state;
    uint64_t evicted = 0, lived = 0, cut = 0, over = 0, on = 0, tips = 0;
    for (uint32_t seed = 0; seed < 60; seed++) {
        pair_t pair;
        s_setup(seed, &pair);
        const uint64_t batches = pair.replay->past.room + 8;
        for (uint64_t batch = 0; batch < batches; batch++) {
            pair_play(&pair);
            if (batch % 4 && batch + 8 < batches)
                continue;
            s_check(&pair);
            s_check_stripes(&pair);
            s_check_drawn(&pair, batch);
        }
        evicted += pair.naive->first;
        lived += pair.lived;
        cut += pair.cut;
        over += pair.over;
        on += pair.on;
        tips += pair.tips;
        pair_close(&pair);
    }
    assert_true(evicted > 300 && lived > 2000);
    assert_true(cut > 1000 && over > 1000 && on > 1000 && tips > 500);
}

/* ---- worked by hand ----------------------------------------------------------------------------------------------------- */

/*  Two rows of one env: their rewards, and what it carried into them. */
typedef struct {
    float reward[2], carry, last;
    bool broken, truncated; /* it, before the first; the episode, at the first */
} hand_t;

static void s_insert(replay_t *replay, const world_t *world, uint64_t batch, const hand_t *hand)
{
    const tt_columns_t *columns = world->columns;
    float vector[2][3] = {{2 * (float)batch}, {2 * (float)batch + 1}}, last[3] = {hand->last}, final[3] = {-1};
    float reward[2] = {hand->reward[0], hand->reward[1]}, carry = hand->carry;
    uint8_t terminated[2] = {0}, truncated[2] = {hand->truncated};
    uint32_t age = hand->broken || batch == 5 ? 0 : 2, final_t = 0, final_env = 0;
    tt_segment_t at = {.age = &age, .carry = &carry, .final_t = &final_t, .final_env = &final_env};
    at.column[world->vector] = vector;
    at.last[world->vector] = last;
    at.final[world->vector] = final;
    at.column[columns->reward] = reward;
    at.column[columns->terminated] = terminated;
    at.column[columns->truncated] = truncated;
    const replay_part_t part = {.at = &at, .E = 1, .K = hand->truncated, .count = 1};
    assert_ok(replay_insert(replay, batch, &part, 1, hand->broken ? (const uint8_t[]){1} : NULL));
}

static float s_frame(const replay_t *replay, const world_t *world, uint64_t row, replay_frame_t which)
{
    const void *column[TT_COLUMNS_MAX];
    replay_row(replay, row, which, column);
    return *(const float *)column[world->vector];
}

static void s_check_sample(replay_t *replay, uint64_t total, uint64_t unit, const float ret[2], const float discount[2],
    const uint32_t next[2])
{
    replay_sample_t got;
    assert_ok(replay_sample(replay, total, 1, 1, &got));
    assert_int_equal(got.unit[0], unit);
    for (int t = 0; t < 2; t++) {
        assert_true(got.ret[t] == ret[t] && got.discount[t] == discount[t]);
        assert_int_equal(got.next[t], next[t]);
    }
}

/*  One env, T = 2, burn 1, length 2, n = 2, gamma 1/2: four rows, and what comes after them. The first sequence begins with row 10 and
 *  is whole with row 13; then the env breaks, so its last row returns as much, but is cut. Row 12 begins none: it broke within that. Row
 *  14 does, and is truncated at once, behind which an episode begins. */
static void test_by_hand(void **state)
{
    (void)state;
    world_t *world = world_new(1, 1, 0);
    replay_cfg_t cfg = {.columns = world->columns,
        .store = 1u << world->vector,
        .N = 1,
        .T = 2,
        .capacity = 4 * (2 * (12 + 6) + 4) + 4 * 12,
        .stripes = 1,
        .ahead = 2,
        .burn = 1,
        .length = 2,
        .carry = 1,
        .gamma = 0.5,
        .stack = 1};
    replay_t *replay = NULL;
    assert_ok(replay_new(&replay, &cfg));
    s_insert(replay, world, 5, &(hand_t){.reward = {1, 2}, .carry = 50, .last = 12});
    assert_false(replay_ready(replay));
    s_insert(replay, world, 6, &(hand_t){.reward = {4, 8}, .carry = 60, .last = 99});
    s_check_sample(replay, 0, 10, (float[]){4, 8}, (float[]){0.25f, 0.25f}, (uint32_t[]){3, 4});
    assert_true(s_frame(replay, world, 13, REPLAY_AT) == 13 && s_frame(replay, world, 14, REPLAY_AT) == 99);
    assert_true(replay_begins(replay, 10) && !replay_begins(replay, 11) && !replay_begins(replay, 14));
    s_insert(
        replay, world, 7, &(hand_t){.reward = {16, 32}, .carry = 70, .last = 16, .broken = true, .truncated = true});
    s_check_sample(replay, 1, 10, (float[]){4, 8}, (float[]){0.25f, 0.25f}, (uint32_t[]){3, REPLAY_FINAL_OF | 3});
    assert_true(s_frame(replay, world, 13, REPLAY_FINAL) == 99 && s_frame(replay, world, 14, REPLAY_AT) == 14);
    assert_true(s_frame(replay, world, 14, REPLAY_FINAL) == -1 && s_frame(replay, world, 16, REPLAY_AT) == 16);
    assert_true(replay_begins(replay, 14) && replay_begins(replay, 15) && !replay_begins(replay, 16));
    s_insert(replay, world, 8, &(hand_t){.reward = {64, 128}, .carry = 80, .last = 18});
    assert_true(*replay_carried(replay, 10) == 50 && *replay_carried(replay, 14) == 70);
    assert_false(units_lives(&replay->units, 12, 0));
    s_insert(replay, world, 9,
        &(hand_t){.reward = {256, 512}, .carry = 90, .last = 20}); /* batch 5 goes, and what began there */
    assert_int_equal(replay_oldest(replay), 6);
    assert_true(units_lives(&replay->units, 14, 0) && units_lives(&replay->units, 16, 0));
    replay_stats_t stats;
    replay_stats(replay, &stats);
    assert_int_equal(stats.units, 2);
    s_insert(replay, world, 10, &(hand_t){.reward = {0}, .last = 22}); /* batch 6 */
    s_check_sample(replay, 2, 14, (float[]){64, 128}, (float[]){0.25f, 0.25f}, (uint32_t[]){3, 4});
    replay_destroy(&replay);
    world_destroy(&world);
}

/* ---- limits ------------------------------------------------------------------------------------------------------------- */

static void s_check_refused(const replay_cfg_t *cfg, const char *word)
{
    replay_t *replay = NULL;
    assert_int_equal(replay_new(&replay, cfg), TT_CONFIG);
    if (!strstr(tt_err_text(), word))
        fail_msg("'%s' is not in '%s'", word, tt_err_text());
    assert_null(replay);
}

static void test_limits(void **state)
{
    (void)state;
    world_t *world = world_new(4, 8, 3);
    world->carry = 5;
    replay_cfg_t cfg = world_cfg(world, 3, 2, 3); /* 24 rows */
    replay_t *replay = NULL;
    cfg.burn = 2;
    cfg.length = 20;
    assert_ok(replay_new(&replay, &cfg)); /* 20 + 2 + 3 - 1 */
    replay_destroy(&replay);
    cfg.length = 21;
    s_check_refused(&cfg, "holds 3 batches; a sequence of 2 and 21 rows and the 3 ahead of them needs 4");
    assert_int_equal(replay_places_of(&cfg), 0);
    cfg.length = 20;
    cfg.capacity--;
    s_check_refused(&cfg, "holds 2 batches");
    cfg.capacity = world_batch_bytes(world) - 1;
    s_check_refused(&cfg, "one batch (4 envs, 8 steps) takes 912");
    cfg.capacity = 1 << 30;
    cfg.length = REPLAY_SEQUENCE_MAX - 1;
    s_check_refused(&cfg, "burn and length is 4097; it can be 0 to 4096");
    cfg.length = UINT32_MAX;
    s_check_refused(&cfg, "burn and length");
    cfg.length = 0;
    s_check_refused(&cfg, "a burn of 2 without a length");
    world_destroy(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
