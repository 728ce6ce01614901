/*  Saved in the middle and loaded elsewhere: the same minibatches, frames and bytes from there on. And what is refused. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"
#include "tests/replay/world.h"
#include "tests/test.h"

enum { UNITS = 24 };

static replay_cfg_t s_cfg(const world_t *world, uint32_t seed)
{
    replay_cfg_t cfg = world_cfg(world, 6, 1u << seed % 3, 1 + seed % 4);
    cfg.alpha = seed % 2 ? 0.6f : 0;
    cfg.epsilon = 1e-4f;
    cfg.priority_delay = seed % 5;
    cfg.stack = 1 + seed % 3;
    cfg.stacked = world->image;
    return cfg;
}

/*  One step, and everything that can be seen of it. */
static void s_step(replay_t *replay, const world_t *world, uint64_t total, tt_buf_t *seen)
{
    replay_sample_t got;
    float x[UNITS];
    uint8_t image[UNITS][3][4];
    if (replay_sample(replay, total, UNITS, 0.4f, &got) != TT_OK)
        return;
    assert_ok(tt_buf_add(seen, got.unit, sizeof *got.unit * UNITS));
    assert_ok(tt_buf_add(seen, got.weight, sizeof *got.weight * UNITS));
    assert_ok(tt_buf_add(seen, got.ret, sizeof *got.ret * UNITS));
    assert_ok(tt_buf_add(seen, got.discount, sizeof *got.discount * UNITS));
    for (int which = REPLAY_AT; which <= REPLAY_NEXT; which++) {
        memset(image, 0, sizeof image);
        replay_gather(replay, got.unit, UNITS, (replay_frame_t)which, world->image, image);
        assert_ok(tt_buf_add(seen, image, sizeof image));
    }
    for (uint32_t i = 0; i < UNITS; i++)
        x[i] = 4 * (float)world_unit(5, total * UNITS + i);
    assert_ok(replay_priorities(replay, total, x, UNITS));
}

static void s_go_on(replay_t *replay, world_t *world, uint64_t *total, tt_buf_t *seen)
{
    assert_ok(world_insert(world, replay));
    for (int k = 0; k < 2; k++)
        s_step(replay, world, (*total)++, seen);
}

static replay_t *s_loaded(const replay_cfg_t *cfg, const tt_buf_t *saved)
{
    replay_t *replay = NULL;
    assert_ok(replay_new(&replay, cfg));
    assert_ok(replay_load(replay, saved->data, saved->size));
    return replay;
}

static void test_the_same_from_there_on(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 30; seed++) {
        world_t *world = world_new(1 + seed % 7, 1 + seed * 5 % 17, seed);
        world->breaks = 0.3;
        const replay_cfg_t cfg = s_cfg(world, seed);
        replay_t *one = NULL, *other = NULL;
        tt_buf_t saved, again, seen, seen_too;
        tt_buf_init(&seen, 1 << 24);
        tt_buf_init(&seen_too, 1 << 24);
        assert_ok(replay_new(&one, &cfg));
        uint64_t total = 0;
        for (uint32_t batch = 0; batch < 26; batch++) {
            if (batch % 9 == seed % 9) { /* also of an empty one */
                const uint64_t size = replay_save_size(one);
                tt_buf_init(&saved, size);
                tt_buf_init(&again, size);
                assert_ok(replay_save(one, &saved));
                assert_int_equal(saved.size, size);
                replay_destroy(&other);
                other = s_loaded(&cfg, &saved);
                assert_ok(replay_save(other, &again));
                assert_int_equal(again.size, size);
                assert_memory_equal(again.data, saved.data, size);
                tt_buf_free(&saved);
                tt_buf_free(&again);
            }
            world_play(world);
            uint64_t total_too = total;
            tt_buf_clear(&seen);
            tt_buf_clear(&seen_too);
            s_go_on(one, world, &total, &seen);
            if (!other)
                continue;
            s_go_on(other, world, &total_too, &seen_too);
            assert_int_equal(seen.size, seen_too.size);
            if (seen.size)
                assert_memory_equal(seen.data, seen_too.data, seen.size);
        }
        replay_destroy(&one);
        replay_destroy(&other);
        tt_buf_free(&seen);
        tt_buf_free(&seen_too);
        world_destroy(&world);
    }
}

typedef struct {
    world_t *world;
    replay_cfg_t cfg;
    replay_t *replay;
    tt_buf_t saved;
} case_t;

static void s_open(case_t *c)
{
    *c = (case_t){.world = world_new(3, 5, 21)};
    c->cfg = s_cfg(c->world, 9); /* one stripe, priorities that are not seen yet */
    assert_ok(replay_new(&c->replay, &c->cfg));
    tt_buf_t seen;
    tt_buf_init(&seen, 1 << 24);
    uint64_t total = 0;
    for (int batch = 0; batch < 4; batch++) {
        world_play(c->world);
        s_go_on(c->replay, c->world, &total, &seen);
    }
    tt_buf_free(&seen);
    tt_buf_init(&c->saved, 1 << 24);
    assert_ok(replay_save(c->replay, &c->saved));
}

static void s_close(case_t *c)
{
    replay_destroy(&c->replay);
    tt_buf_free(&c->saved);
    world_destroy(&c->world);
}

static void s_check_refused(case_t *c, const char *word)
{
    assert_int_equal(replay_load(c->replay, c->saved.data, c->saved.size), TT_DATA);
    if (!strstr(tt_err_text(), word))
        fail_msg("'%s' is not in '%s'", word, tt_err_text());
}

/*  Each byte counts, and so does the length. */
static void test_damaged(void **state)
{
    (void)state;
    case_t c;
    s_open(&c);
    for (size_t i = 0; i < c.saved.size; i++) {
        c.saved.data[i] ^= 16;
        assert_int_equal(replay_load(c.replay, c.saved.data, c.saved.size), TT_DATA);
        c.saved.data[i] ^= 16;
    }
    for (size_t size = 0; size < c.saved.size; size++)
        assert_int_equal(replay_load(c.replay, c.saved.data, size), TT_DATA);
    tt_buf_t after;
    tt_buf_init(&after, c.saved.size);
    assert_ok(replay_save(c.replay, &after)); /* nothing was changed */
    assert_memory_equal(after.data, c.saved.data, after.size);
    tt_buf_free(&after);
    s_close(&c);
}

static void s_seal(tt_buf_t *block)
{
    crypto_hash_sha256((uint8_t *)block->data + block->size - 32, (const uint8_t *)block->data, block->size - 32);
}

/*  With a sound checksum a block is believed no more: any byte of it changed, it is refused or it can be drawn from. */
static void test_forged(void **state)
{
    (void)state;
    case_t c;
    s_open(&c);
    uint32_t refused = 0, taken = 0;
    for (size_t i = 0; i < c.saved.size - 32; i++) {
        const uint8_t flip[] = {1, 0x40, 0xff};
        for (size_t k = 0; k < TT_COUNT(flip); k++) {
            c.saved.data[i] = (char)(c.saved.data[i] ^ flip[k]);
            s_seal(&c.saved);
            const tt_status_t status = replay_load(c.replay, c.saved.data, c.saved.size);
            c.saved.data[i] = (char)(c.saved.data[i] ^ flip[k]);
            refused += status == TT_DATA;
            if (status == TT_DATA)
                continue;
            assert_ok(status);
            taken++;
            tt_buf_t seen;
            tt_buf_init(&seen, 1 << 20);
            s_step(c.replay, c.world, c.replay->total + 20, &seen);
            tt_buf_free(&seen);
            s_seal(&c.saved);
            assert_ok(replay_load(c.replay, c.saved.data, c.saved.size));
        }
    }
    assert_true(refused > 1000 && taken > 1000);
    s_close(&c);
}

/*  An env that is said to have broken, but whose rows go on: two episodes would be one. */
static void test_forged_break(void **state)
{
    (void)state;
    enum { HEAD = 176 };
    case_t c = {.world = world_new(3, 5, 21)};
    c.world->ends = c.world->breaks = 0;
    c.cfg = world_cfg(c.world, 3, 1, 1);
    assert_ok(replay_new(&c.replay, &c.cfg));
    for (int batch = 0; batch < 2; batch++) {
        world_play(c.world);
        assert_ok(world_insert(c.world, c.replay));
    }
    tt_buf_init(&c.saved, 1 << 20);
    assert_ok(replay_save(c.replay, &c.saved));
    char *second = c.saved.data + HEAD + 8 + 3 * 5 + 15 * world_row_bytes();
    assert_int_equal(second[0], 0); /* its finals */
    second[8 + 1] = 1;
    s_seal(&c.saved);
    s_check_refused(&c, "env 1 broke before batch 1 and has no final there");
    second[8 + 1] = 2;
    s_seal(&c.saved);
    s_check_refused(&c, "batch 1");
    s_close(&c);
}

static void test_another_setup(void **state)
{
    (void)state;
    case_t c;
    s_open(&c);
    const struct {
        size_t offset;
        uint32_t value;
        const char *word;
    } other[] = {{offsetof(replay_cfg_t, N), 4, "num_envs 3, here 4"},
        {offsetof(replay_cfg_t, T), 6, "steps of a batch 5, here 6"}, {offsetof(replay_cfg_t, stripes), 8, "stripes"},
        {offsetof(replay_cfg_t, ahead), 3, "ahead"}, {offsetof(replay_cfg_t, stack), 2, "stack"},
        {offsetof(replay_cfg_t, pad), REPLAY_PAD_ZERO, "pad"},
        {offsetof(replay_cfg_t, priority_delay), 9, "priority_delay"}, {offsetof(replay_cfg_t, seed), 9, "seed"},
        {offsetof(replay_cfg_t, capacity), 1u << 20, "capacity"}, {offsetof(replay_cfg_t, store), 3, "stored columns"}};
    for (size_t i = 0; i < TT_COUNT(other); i++) {
        replay_cfg_t cfg = c.cfg;
        memcpy((char *)&cfg + other[i].offset, &other[i].value, sizeof other[i].value);
        replay_destroy(&c.replay);
        assert_ok(replay_new(&c.replay, &cfg));
        s_check_refused(&c, other[i].word);
    }
    memcpy(c.saved.data, "SQLite format 3", 15);
    s_check_refused(&c, "no saved replay");
    s_close(&c);
}

/*  Saved in the middle of a step: whoever loads it makes that step too, of the same units. */
static void test_while_priorities_are_to_come(void **state)
{
    (void)state;
    case_t c;
    s_open(&c);
    replay_sample_t got;
    float x[UNITS] = {0};
    uint64_t unit[UNITS];
    float weight[UNITS];
    tt_buf_t out;
    tt_buf_init(&out, 1 << 20);
    assert_ok(replay_sample(c.replay, 100, UNITS, 1, &got));
    memcpy(unit, got.unit, sizeof unit);
    memcpy(weight, got.weight, sizeof weight);
    assert_ok(replay_save(c.replay, &out));
    assert_ok(replay_load(c.replay, out.data, out.size));
    assert_int_equal(replay_priorities(c.replay, 100, x, UNITS), TT_INTERNAL); /* it has to be drawn again */
    assert_ok(replay_sample(c.replay, 100, UNITS, 1, &got));
    assert_memory_equal(got.unit, unit, sizeof unit);
    assert_memory_equal(got.weight, weight, sizeof weight);
    assert_ok(replay_priorities(c.replay, 100, x, UNITS));
    tt_buf_free(&out);
    s_close(&c);
}

static void test_no_room(void **state)
{
    (void)state;
    case_t c;
    s_open(&c);
    tt_buf_t out;
    tt_buf_init(&out, 500);
    assert_ok(tt_buf_str(&out, "before"));
    assert_int_equal(replay_save(c.replay, &out), TT_INVALID);
    assert_string_equal(tt_buf_text(&out), "before");
    tt_buf_free(&out);
    s_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_from_there_on),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_forged_break),
        cmocka_unit_test(test_another_setup),
        cmocka_unit_test(test_while_priorities_are_to_come),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
