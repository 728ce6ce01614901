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

static uint64_t s_oldest(const replay_t *replay)
{
    return replay->past.first;
}

enum { SEQUENCES = 100, CARRY = 3, LENGTHS = 10 };

/*  From SEQUENCES on of sequences, into most of which something is carried. */
static world_t *s_world(uint32_t seed)
{
    world_t *world = world_new(1 + seed % 7, 1 + seed * 5 % 17, seed);
    world->breaks = 0.3;
    if (seed >= SEQUENCES)
        world->carry = seed % (CARRY + 1);
    return world;
}

/*  So many seeds of rows, then sequences. */
static uint32_t s_seed(uint32_t i, uint32_t rows)
{
    return i < rows ? i : SEQUENCES + i - rows;
}

static replay_cfg_t s_cfg(const world_t *world, uint32_t seed)
{
    replay_cfg_t cfg = world_cfg(world, 6, 1u << seed % 3, 1 + seed % 4);
    cfg.alpha = seed % 2 ? 0.6f : 0;
    cfg.epsilon = 1e-4f;
    cfg.priority_delay = seed % 5;
    cfg.stack = 1 + seed % 3;
    cfg.stacked = world->image;
    if (seed < SEQUENCES)
        return cfg;
    cfg.length = seed % LENGTHS;
    cfg.burn = cfg.length ? seed % 4 : 0; /* without one: rows, and something is carried all the same */
    const uint64_t least = (cfg.burn + cfg.length + cfg.ahead + cfg.T - 2) / cfg.T;
    cfg.capacity = (least + 4) * world_batch_bytes(world);
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
    const uint32_t length = replay->past.cfg.length, rows = UNITS * (length ? length : 1);
    assert_ok(tt_buf_add(seen, got.ret, sizeof *got.ret * rows));
    assert_ok(tt_buf_add(seen, got.discount, sizeof *got.discount * rows));
    if (got.next)
        assert_ok(tt_buf_add(seen, got.next, sizeof *got.next * rows));
    for (uint32_t i = 0; length && world->carry && i < UNITS; i++)
        assert_ok(tt_buf_add(seen, replay_carried(replay, got.unit[i]), world->carry * sizeof(float)));
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
    assert_ok(replay_load(replay, saved->data, saved->size, NULL));
    return replay;
}

static void test_the_same_from_there_on(void **state)
{
    (void)state;
    uint32_t drawn[2] = {0}; /* rows, sequences */
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t seed = s_seed(i, 30);
        world_t *world = s_world(seed);
        const replay_cfg_t cfg = s_cfg(world, seed);
        replay_t *one = NULL, *other = NULL;
        tt_buf_t saved, again, seen, seen_too;
        tt_buf_init(&seen, 1 << 24);
        tt_buf_init(&seen_too, 1 << 24);
        assert_ok(replay_new(&one, &cfg));
        uint64_t total = 0;
        for (uint32_t batch = 0; batch < 26; batch++) {
            if (batch % 9 == seed % 9) { /* also of an empty one */
                const uint64_t size = replay_save_size(one, s_oldest(one));
                tt_buf_init(&saved, size);
                tt_buf_init(&again, size);
                assert_ok(replay_save(one, s_oldest(one), &saved));
                assert_int_equal(saved.size, size);
                replay_destroy(&other);
                other = s_loaded(&cfg, &saved);
                assert_ok(replay_save(other, s_oldest(other), &again));
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
            drawn[seed >= SEQUENCES] += seen.size > 0;
        }
        replay_destroy(&one);
        replay_destroy(&other);
        tt_buf_free(&seen);
        tt_buf_free(&seen_too);
        world_destroy(&world);
    }
    assert_true(drawn[0] > 200 && drawn[1] > 200);
}

typedef struct {
    world_t *world;
    replay_cfg_t cfg;
    replay_t *replay;
    tt_buf_t saved;
} case_t;

/*  One stripe, priorities that are not seen yet; of sequences two batches are needed. */
enum { ROWS = 9, LONG = SEQUENCES + 23 };

static void s_open_as(case_t *c, uint32_t seed)
{
    *c = (case_t){.world = world_new(3, 5, 21)};
    c->world->carry = seed == LONG ? 2 : 0;
    c->cfg = s_cfg(c->world, seed);
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
    assert_ok(replay_save(c->replay, s_oldest(c->replay), &c->saved));
}

static void s_open(case_t *c)
{
    s_open_as(c, ROWS);
}

static void s_close(case_t *c)
{
    replay_destroy(&c->replay);
    tt_buf_free(&c->saved);
    world_destroy(&c->world);
}

static void s_check_refused(case_t *c, const char *word)
{
    assert_int_equal(replay_load(c->replay, c->saved.data, c->saved.size, NULL), TT_DATA);
    if (!strstr(tt_err_text(), word))
        fail_msg("'%s' is not in '%s'", word, tt_err_text());
}

/* ---- in pieces -------------------------------------------------------------------------------------------------------- */

enum { PIECES = 64 };

/*  What a writer has: pieces, written once, and the block of the newest save. */
typedef struct {
    uint32_t count;
    tt_buf_t bytes[PIECES];
    uint64_t first[PIECES], next[PIECES];
    tt_buf_t block;
} store_t;

static tt_status_t s_get(void *ctx, uint32_t i, replay_piece_t *out)
{
    const store_t *store = ctx;
    *out = (replay_piece_t){store->bytes[i].data, store->bytes[i].size, store->first[i], store->next[i]};
    return TT_OK;
}

/*  Pieces that are no longer needed go; up to `most` settled batches become another. */
static void s_write(store_t *store, const replay_t *replay, uint64_t most)
{
    const uint64_t oldest = s_oldest(replay), settled = replay_settled(replay);
    while (store->count && store->next[0] <= oldest) {
        tt_buf_free(&store->bytes[0]);
        store->count--;
        memmove(store->bytes, store->bytes + 1, store->count * sizeof *store->bytes);
        memmove(store->first, store->first + 1, store->count * sizeof *store->first);
        memmove(store->next, store->next + 1, store->count * sizeof *store->next);
    }
    const uint64_t first = store->count ? store->next[store->count - 1] : oldest;
    const uint64_t next = settled - first < most ? settled : first + most;
    if (first < next) {
        const uint32_t i = store->count++;
        assert_true(i < PIECES);
        store->first[i] = first;
        store->next[i] = next;
        tt_buf_init(&store->bytes[i], replay_batches_size(replay, first, next));
        assert_ok(replay_save_batches(replay, first, next, &store->bytes[i]));
        assert_int_equal(store->bytes[i].size, store->bytes[i].max);
    }
    const uint64_t from = store->count ? store->next[store->count - 1] : oldest;
    tt_buf_free(&store->block);
    tt_buf_init(&store->block, replay_save_size(replay, from));
    assert_ok(replay_save(replay, from, &store->block));
    assert_int_equal(store->block.size, store->block.max);
}

static void s_clear(store_t *store)
{
    for (uint32_t i = 0; i < store->count; i++)
        tt_buf_free(&store->bytes[i]);
    tt_buf_free(&store->block);
    *store = (store_t){0};
}

static tt_status_t s_load_store(replay_t *replay, store_t *store)
{
    return replay_load(replay, store->block.data, store->block.size, &(replay_pieces_t){store, store->count, s_get});
}

/*  Two replays are equal if they save the same bytes. */
static void s_check_equal(const replay_t *a, const replay_t *b)
{
    tt_buf_t x, y;
    tt_buf_init(&x, replay_save_size(a, s_oldest(a)));
    tt_buf_init(&y, replay_save_size(b, s_oldest(b)));
    assert_ok(replay_save(a, s_oldest(a), &x));
    assert_ok(replay_save(b, s_oldest(b), &y));
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    tt_buf_free(&x);
    tt_buf_free(&y);
}

/*  A writer that is now and then behind, evictions, envs that break: block and pieces are the replay, at any time. */
static void test_pieces(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t seed = s_seed(i, 30);
        world_t *world = s_world(seed);
        const replay_cfg_t cfg = s_cfg(world, seed);
        replay_t *one = NULL, *other = NULL;
        store_t store = {0};
        tt_buf_t seen;
        tt_buf_init(&seen, 1 << 24);
        assert_ok(replay_new(&one, &cfg));
        assert_ok(replay_new(&other, &cfg));
        uint64_t total = 0;
        for (uint32_t batch = 0; batch < 30; batch++) {
            world_play(world);
            s_go_on(one, world, &total, &seen);
            if (batch % 3 == seed % 3)
                continue;
            s_write(&store, one, seed % 4);
            assert_ok(s_load_store(other, &store));
            s_check_equal(one, other);
        }
        s_clear(&store);
        tt_buf_free(&seen);
        replay_destroy(&one);
        replay_destroy(&other);
        world_destroy(&world);
    }
}

static void s_check_pieces_refused(case_t *c, store_t *store, const char *word)
{
    assert_int_equal(s_load_store(c->replay, store), TT_DATA);
    if (!strstr(tt_err_text(), word))
        fail_msg("'%s' is not in '%s'", word, tt_err_text());
}

/*  Pieces that are missing, torn, in another order, of other batches; and any byte of one: refused, or it can be drawn from. */
static void s_pieces_forged(uint32_t seed)
{
    case_t c;
    store_t store = {0};
    s_open_as(&c, seed);
    s_write(&store, c.replay, 1);
    s_write(&store, c.replay, 1);
    assert_int_equal(store.count, 2);
    assert_ok(s_load_store(c.replay, &store));
    store.count = 1;
    s_check_pieces_refused(&c, &store, "are in no piece");
    store.count = 2;
    store.next[1]++;
    s_check_pieces_refused(&c, &store, "a piece of batches 1 to 3 where 1 belongs");
    store.next[1]--;
    store.first[0]++;
    s_check_pieces_refused(&c, &store, "where 0 belongs");
    store.first[0]--;
    const tt_buf_t first = store.bytes[0];
    store.bytes[0] = store.bytes[1];
    s_check_pieces_refused(&c, &store, "batch 1 where 0 belongs");
    store.bytes[0] = first;
    for (size_t size = 0; size < first.size; size++) {
        store.bytes[0].size = size;
        s_check_pieces_refused(&c, &store, "");
    }
    store.bytes[0] = first;
    uint32_t refused = 0;
    for (size_t i = 0; i < first.size; i++) {
        first.data[i] = (char)(first.data[i] ^ 0x41);
        const tt_status_t status = s_load_store(c.replay, &store);
        assert_true(status == TT_OK || status == TT_DATA);
        refused += status == TT_DATA;
        first.data[i] = (char)(first.data[i] ^ 0x41);
    }
    assert_true(refused > 20);
    s_clear(&store);
    s_close(&c);
}

static void test_pieces_forged(void **state)
{
    (void)state;
    s_pieces_forged(ROWS);
    s_pieces_forged(LONG);
}

/* ---- on its way to another process ------------------------------------------------------------------------------------ */

/*  What a joiner does: asks for the run of batches that it lacks, of those that the other learners surely have alike. */
static void s_fetch(replay_warm_t *warm, const replay_t *from, uint64_t most)
{
    const uint64_t oldest = s_oldest(from), settled = replay_settled(from);
    const uint64_t end = settled > oldest ? settled - 1 : oldest;
    if (replay_warm_next(warm) < oldest)
        replay_warm_skip(warm, oldest);
    const uint64_t first = replay_warm_next(warm) > oldest ? replay_warm_next(warm) : oldest;
    if (first >= end)
        return;
    uint64_t next = replay_run(from, first, end);
    next = next - first > most ? first + most : next;
    tt_buf_t bytes;
    tt_buf_init(&bytes, replay_batches_size(from, first, next));
    assert_ok(replay_save_batches(from, first, next, &bytes));
    assert_ok(replay_warm_add(warm, &(replay_piece_t){bytes.data, bytes.size, first, next}));
    tt_buf_free(&bytes);
}

static void s_join(replay_t *other, replay_warm_t *warm, const replay_t *one)
{
    tt_buf_t block;
    const uint64_t oldest = s_oldest(one), next = replay_warm_next(warm);
    tt_buf_init(&block, 1 << 24);
    assert_ok(replay_save(one, next > oldest ? next : oldest, &block));
    assert_ok(replay_warm_finish(warm, other, block.data, block.size));
    s_check_equal(one, other);
    tt_buf_free(&block);
}

/*  Pieces while the other goes on: faster, slower, for long behind what is evicted. At any time the block makes it the same replay,
 *  which then draws the same. */
static void test_warming(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t seed = s_seed(i, 60);
        world_t *world = s_world(seed);
        const replay_cfg_t cfg = s_cfg(world, seed);
        replay_t *one = NULL, *other = NULL;
        replay_warm_t *warm = NULL;
        tt_buf_t seen, seen_too;
        tt_buf_init(&seen, 1 << 24);
        tt_buf_init(&seen_too, 1 << 24);
        assert_ok(replay_new(&one, &cfg));
        assert_ok(replay_new(&other, &cfg));
        uint64_t total = 0, total_too = 0;
        const uint32_t begins = seed % 11, joins = begins + seed % 13;
        for (uint32_t batch = 0; batch < 30; batch++) {
            if (batch == begins)
                replay_warm_new(&warm, one);
            for (uint64_t k = 0; warm && k < (uint64_t)(3 * world_unit(7, seed * 100 + batch)); k++)
                s_fetch(warm, one, 1 + seed % 4);
            if (batch == joins) {
                s_join(other, warm, one);
                replay_warm_destroy(&warm);
                total_too = total;
            }
            world_play(world);
            tt_buf_clear(&seen);
            tt_buf_clear(&seen_too);
            s_go_on(one, world, &total, &seen);
            if (batch < joins)
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

/*  A block that goes on elsewhere than the pieces end, or has older batches than they: refused, and nothing is changed. */
static void test_warming_gaps(void **state)
{
    (void)state;
    case_t c;
    tt_buf_t block;
    s_open(&c);
    const uint64_t oldest = s_oldest(c.replay), settled = replay_settled(c.replay);
    assert_true(settled >= oldest + 3);
    const struct {
        uint64_t first, next, from;
        const char *word;
    } gap[] = {{oldest, oldest + 1, oldest + 2, "are in no piece"}, {oldest, oldest + 2, oldest + 1, "are in no piece"},
        {oldest + 1, oldest + 2, oldest + 2, "are more than the capacity"}};
    for (size_t i = 0; i < TT_COUNT(gap); i++) {
        replay_warm_t *warm = NULL;
        tt_buf_t piece;
        replay_warm_new(&warm, c.replay);
        tt_buf_init(&piece, 1 << 20);
        tt_buf_init(&block, 1 << 20);
        assert_ok(replay_save_batches(c.replay, gap[i].first, gap[i].next, &piece));
        const replay_piece_t said = {piece.data, piece.size, gap[i].first, gap[i].next};
        assert_ok(replay_warm_add(warm, &said));
        assert_int_equal(replay_warm_add(warm, &said), TT_DATA); /* twice */
        assert_ok(replay_save(c.replay, gap[i].from, &block));
        assert_int_equal(replay_warm_finish(warm, c.replay, block.data, block.size), TT_DATA);
        if (!strstr(tt_err_text(), gap[i].word))
            fail_msg("'%s' is not in '%s'", gap[i].word, tt_err_text());
        tt_buf_clear(&block);
        assert_ok(replay_save(c.replay, oldest, &block));
        assert_int_equal(block.size, c.saved.size);
        assert_memory_equal(block.data, c.saved.data, block.size);
        replay_warm_destroy(&warm);
        tt_buf_free(&piece);
        tt_buf_free(&block);
    }
    s_close(&c);
}

/*  Before the first batch there is no newest frame, and nothing is asked of it: not even that its mask leaves a choice. */
static void test_empty_with_masks(void **state)
{
    (void)state;
    tt_space_t *obs = NULL, *action = NULL;
    tt_columns_t *columns = NULL;
    replay_t *replay = NULL;
    tt_buf_t saved;
    assert_ok(tt_space_parse(&obs, "float32[2]"));
    assert_ok(tt_space_parse(&action, "discrete(3)"));
    assert_ok(tt_columns_new(&columns, obs, action, true, true));
    const replay_cfg_t cfg = {.columns = columns,
        .store = (UINT64_C(1) << (columns->action + columns->action_count)) - 1,
        .N = 2,
        .T = 3,
        .capacity = 1000,
        .stripes = 1,
        .ahead = 1,
        .stack = 1};
    assert_ok(replay_new(&replay, &cfg));
    tt_buf_init(&saved, 1000);
    assert_ok(replay_save(replay, 0, &saved));
    assert_ok(replay_load(replay, saved.data, saved.size, NULL));
    tt_buf_free(&saved);
    replay_destroy(&replay);
    tt_columns_destroy(&columns);
    tt_space_free(&obs);
    tt_space_free(&action);
}

/* ---- refused ---------------------------------------------------------------------------------------------------------- */

/*  Each byte counts, and so does the length. */
static void s_damaged(uint32_t seed)
{
    case_t c;
    s_open_as(&c, seed);
    for (size_t i = 0; i < c.saved.size; i++) {
        c.saved.data[i] ^= 16;
        assert_int_equal(replay_load(c.replay, c.saved.data, c.saved.size, NULL), TT_DATA);
        c.saved.data[i] ^= 16;
    }
    for (size_t size = 0; size < c.saved.size; size++)
        assert_int_equal(replay_load(c.replay, c.saved.data, size, NULL), TT_DATA);
    tt_buf_t after;
    tt_buf_init(&after, c.saved.size);
    assert_ok(replay_save(c.replay, s_oldest(c.replay), &after)); /* nothing was changed */
    assert_memory_equal(after.data, c.saved.data, after.size);
    tt_buf_free(&after);
    s_close(&c);
}

static void test_damaged(void **state)
{
    (void)state;
    s_damaged(ROWS);
    s_damaged(LONG);
}

static void s_seal(tt_buf_t *block)
{
    crypto_hash_sha256((uint8_t *)block->data + block->size - 32, (const uint8_t *)block->data, block->size - 32);
}

/*  With a sound checksum a block is believed no more: any byte of it changed, it is refused or it can be drawn from. */
static void s_forged(uint32_t seed)
{
    case_t c;
    s_open_as(&c, seed);
    uint32_t refused = 0, taken = 0;
    for (size_t i = 0; i < c.saved.size - 32; i++) {
        const uint8_t flip[] = {1, 0x40, 0xff};
        const size_t step = seed == ROWS ? 1 : TT_COUNT(flip); /* of sequences one of them: it takes a while */
        for (size_t k = i % step; k < TT_COUNT(flip); k += step) {
            c.saved.data[i] = (char)(c.saved.data[i] ^ flip[k]);
            s_seal(&c.saved);
            const tt_status_t status = replay_load(c.replay, c.saved.data, c.saved.size, NULL);
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
            assert_ok(replay_load(c.replay, c.saved.data, c.saved.size, NULL));
        }
    }
    const uint32_t least = seed == ROWS ? 1000 : 500;
    assert_true(refused > least && taken > least);
    s_close(&c);
}

static void test_forged(void **state)
{
    (void)state;
    s_forged(ROWS);
    s_forged(LONG);
}

enum { HEAD = 184, LONGER_HEAD = HEAD + 3 * 8 };

/*  A number that is carried is one. Where it lies, in a block and in a piece. */
static void test_forged_carry(void **state)
{
    (void)state;
    case_t c;
    store_t store = {0};
    s_open_as(&c, LONG);
    const size_t carry = 16 + 3 + 3 * 4; /* number, finals, broken, age */
    const float bad = INFINITY;
    float want[2];
    world_carry(c.world, 0, 0, want);
    assert_memory_equal(c.saved.data + LONGER_HEAD + carry, want, sizeof want);
    s_write(&store, c.replay, 1);
    memcpy(store.bytes[0].data + carry + 5 * sizeof bad, &bad, sizeof bad);
    s_check_pieces_refused(&c, &store, "batch 0: env 2 carries inf");
    memcpy(c.saved.data + LONGER_HEAD + carry, &bad, sizeof bad);
    s_seal(&c.saved);
    s_check_refused(&c, "batch 0: env 0 carries inf");
    s_clear(&store);
    s_close(&c);
}

/*  An env that is said to have broken, but whose rows go on: two episodes would be one. */
static void test_forged_break(void **state)
{
    (void)state;
    case_t c = {.world = world_new(3, 5, 21)};
    c.world->ends = c.world->breaks = 0;
    c.cfg = world_cfg(c.world, 3, 1, 1);
    assert_ok(replay_new(&c.replay, &c.cfg));
    for (int batch = 0; batch < 2; batch++) {
        world_play(c.world);
        assert_ok(world_insert(c.world, c.replay));
    }
    tt_buf_init(&c.saved, 1 << 20);
    assert_ok(replay_save(c.replay, s_oldest(c.replay), &c.saved));
    char *second = c.saved.data + HEAD + 16 + 3 * 5 + 15 * world_row_bytes();
    assert_int_equal(second[8], 0); /* its finals */
    second[16 + 1] = 1;
    s_seal(&c.saved);
    s_check_refused(&c, "env 1 broke before batch 1 and has no final there");
    second[16 + 1] = 2;
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
        {offsetof(replay_cfg_t, pad), TT_PAD_ZERO, "pad"},
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
/*  Rows and sequences, and what is carried; a block of the one is none of the other. */
static void test_another_setup_of_sequences(void **state)
{
    (void)state;
    case_t c, rows;
    s_open_as(&c, LONG);
    s_open(&rows);
    const struct {
        uint32_t length, burn, carry;
        const char *word;
    } other[] = {{3, 3, 3, "carried (floats) 2, here 3"}, {3, 3, 0, "carried (floats) 2, here 0"},
        {3, 2, 2, "burn 3, here 2"}, {2, 3, 2, "the length of sequences 3, here 2"},
        {0, 0, 2, "the length of sequences 3, here 0"}, {0, 0, 0, "the length of sequences 3, here 0"}};
    for (size_t i = 0; i < TT_COUNT(other); i++) {
        replay_cfg_t cfg = c.cfg;
        cfg.length = other[i].length;
        cfg.burn = other[i].burn;
        cfg.carry = other[i].carry;
        replay_destroy(&c.replay);
        assert_ok(replay_new(&c.replay, &cfg));
        s_check_refused(&c, other[i].word);
    }
    replay_destroy(&c.replay);
    assert_ok(replay_new(&c.replay, &c.cfg));
    assert_int_equal(replay_load(c.replay, rows.saved.data, rows.saved.size, NULL), TT_DATA);
    assert_non_null(strstr(tt_err_text(), "the length of sequences 0, here 3"));
    c.saved.data[8] = 2; /* the format of rows: then its head ends before them */
    s_seal(&c.saved);
    s_check_refused(&c, "the length of sequences 0, here 3");
    s_close(&rows);
    s_close(&c);
}

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
    assert_ok(replay_save(c.replay, s_oldest(c.replay), &out));
    assert_ok(replay_load(c.replay, out.data, out.size, NULL));
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
    assert_int_equal(replay_save(c.replay, s_oldest(c.replay), &out), TT_INVALID);
    assert_string_equal(tt_buf_text(&out), "before");
    tt_buf_free(&out);
    s_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_from_there_on),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_pieces_forged),
        cmocka_unit_test(test_warming),
        cmocka_unit_test(test_warming_gaps),
        cmocka_unit_test(test_empty_with_masks),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_forged_carry),
        cmocka_unit_test(test_forged_break),
        cmocka_unit_test(test_another_setup),
        cmocka_unit_test(test_another_setup_of_sequences),
        cmocka_unit_test(test_while_priorities_are_to_come),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
