/*  Frames in a device's memory: what a network reads of a minibatch whose rows are made there is, to the bit, what it reads of rows that
 *  the replay gathers; after every batch, with and without a normaliser. And when a memory has a shelf. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/memory.h"
#include "learner/shelf.h"
#include "learner/shift.h"
#include "tests/replay/world.h"
#include "tests/test.h"

enum { UNITS = 24, OUT = 7, BATCHES = 16 };

typedef struct {
    world_t *world;
    replay_t *replay;
    shelf_t *shelf;
    tt_norm_t *norm;
    tt_device_t *device;
    tt_stream_t *stream;
    tt_net_t *net;
    tt_table_t *table;
} case_t;

static void s_open_net(case_t *c)
{
    tt_net_spec_t spec = tt_net_actor_critic(c->world->columns->flat, (const uint32_t[]){16}, 1, TT_NN_TANH, OUT, 0);
    tt_train_parts(&spec, c->world->columns, false);
    spec.stack = c->world->columns->stack;
    assert_ok(tt_device_open(&c->device, NULL, 0, 1));
    assert_ok(tt_stream_new(&c->stream, c->device));
    assert_ok(tt_net_new(&c->net, c->device, &spec));
    assert_ok(tt_net_init(c->net, c->stream, 3, (const float[]){1, 1}, 0, (tt_progress_t){NULL, NULL}));
    assert_ok(tt_table_new(&c->table, c->device, c->world->columns->row));
}

static replay_cfg_t s_cfg(const world_t *world, uint32_t seed)
{
    replay_cfg_t cfg = world_cfg(world, 5, 2, 1 + seed % 3);
    cfg.stack = world->columns->stack.frames;
    cfg.pad = world->columns->stack.pad;
    cfg.stacked = world->image;
    return cfg;
}

static void s_open(case_t *c, uint32_t seed)
{
    *c = (case_t){.world = world_new(2 + seed % 5, 1 + seed * 3 % 11, seed)};
    world_stack(c->world, 1 + seed % 3, seed % 2 ? TT_PAD_RESET : TT_PAD_ZERO);
    c->world->breaks = 0.3;
    s_open_net(c);
    const replay_cfg_t cfg = s_cfg(c->world, seed);
    assert_ok(replay_new(&c->replay, &cfg));
    assert_ok(shelf_new(&c->shelf, c->replay, c->world->columns, c->device));
    assert_int_equal(shelf_bytes(c->shelf), (uint64_t)replay_places_count(c->replay) * c->world->columns->frame);
    c->norm = tt_norm_new(c->world->columns->scaled);
    assert_ok(tt_norm_load(c->norm, (double[7]){100, 1, -2, 3, 400, 25, 900}, 7));
}

static void s_close(case_t *c)
{
    tt_table_destroy(&c->table);
    tt_net_destroy(&c->net);
    shelf_destroy(&c->shelf);
    assert_null(c->shelf);
    tt_stream_destroy(&c->stream);
    tt_device_close(&c->device);
    tt_norm_destroy(&c->norm);
    replay_destroy(&c->replay);
    world_destroy(&c->world);
}

/*  What the network makes of the rows of the table from lo to hi. */
static void s_forward(case_t *c, uint32_t lo, uint32_t hi, float (*out)[OUT])
{
    float *head[TT_TOWERS_MAX] = {out[0]};
    assert_ok(tt_net_forward_from(c->net, c->stream, 0, c->table, lo, hi - lo, NULL, head));
    assert_ok(tt_stream_sync(c->stream));
}

static void s_check_rows(case_t *c, const uint64_t *unit, uint32_t lo, uint32_t hi, const tt_norm_t *norm)
{
    static const replay_frame_t frames[] = {REPLAY_AT, REPLAY_NEXT};
    const size_t row = c->world->columns->row;
    for (size_t f = 0; f < TT_COUNT(frames); f++) {
        float got[UNITS][OUT], want[UNITS][OUT];
        char *rows = tt_aligned0(UNITS * row);
        tt_stored_t stored;
        shelf_rows(c->shelf, c->replay, &(shelf_units_t){unit, UNITS, lo, hi}, frames[f], norm, 2.5f, &stored);
        assert_int_equal(stored.count, UNITS);
        assert_ok(tt_table_put_stored(c->table, c->stream, &stored));
        s_forward(c, lo, hi, got);
        replay_gather_scaled(c->replay, unit, UNITS, frames[f], norm, 2.5f, rows);
        assert_ok(tt_table_put(c->table, c->stream, rows, UNITS));
        s_forward(c, lo, hi, want);
        assert_memory_equal(got, want, (hi - lo) * sizeof *got);
        assert_ok(tt_table_put(c->table, c->stream, NULL, 0));
        assert_ok(tt_stream_sync(c->stream));
        free(rows);
    }
}

static bool s_check(case_t *c, uint64_t step)
{
    replay_sample_t sample;
    if (replay_sample(c->replay, step, UNITS, 1, &sample) != TT_OK)
        return false;
    s_check_rows(c, sample.unit, 0, UNITS, NULL);
    s_check_rows(c, sample.unit, 0, UNITS, c->norm);
    s_check_rows(c, sample.unit, UNITS / 3, UNITS / 2, c->norm); /* one of several learners */
    return true;
}

static void test_rows_made_there(void **state)
{
    (void)state;
    uint32_t drawn = 0;
    for (uint32_t seed = 0; seed < 12; seed++) {
        case_t c;
        s_open(&c, seed);
        for (uint64_t batch = 0; batch < BATCHES; batch++) {
            world_play(c.world);
            assert_ok(world_insert(c.world, c.replay));
            assert_ok(shelf_follow(c.shelf, c.replay, c.stream, batch));
            drawn += s_check(&c, batch);
        }
        s_close(&c);
    }
    assert_true(drawn > 150);
}

/*  Another replay of the same setup: shown whole, whatever was there. */
static void test_another_replay(void **state)
{
    (void)state;
    case_t c;
    tt_buf_t saved;
    s_open(&c, 4);
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        world_play(c.world);
        assert_ok(world_insert(c.world, c.replay));
    }
    assert_ok(shelf_follow(c.shelf, c.replay, c.stream, 0));
    assert_true(s_check(&c, 1));
    tt_buf_init(&saved, 1 << 24);
    assert_ok(replay_save(c.replay, replay_oldest(c.replay), &saved));
    const replay_cfg_t cfg = s_cfg(c.world, 4);
    replay_destroy(&c.replay);
    assert_ok(replay_new(&c.replay, &cfg));
    assert_ok(replay_load(c.replay, saved.data, saved.size, NULL));
    assert_ok(shelf_follow(c.shelf, c.replay, c.stream, 0));
    assert_true(s_check(&c, 2));
    tt_buf_free(&saved);
    s_close(&c);
}

/* ---- a memory with and without one --------------------------------------------------------------------------------------- */

/*  With an encoder that reads the image. */
static tt_train_cfg_t s_train(const case_t *c, bool normalize)
{
    return (tt_train_cfg_t){.num_envs = c->world->N,
        .num_steps = c->world->T,
        .learner.shards = 2,
        .seed = c->world->seed,
        .actor.kind = TT_ACT_ARGMAX,
        .network.encoder = "conv 2 1x1 relu",
        .space.divisor = 1,
        .normalize = {.obs = normalize, .clip_obs = 2.5f}};
}

static memory_t *s_memory(const case_t *c, tt_memory_t where, bool normalize, uint32_t shift)
{
    memory_t *memory = NULL;
    const tt_train_cfg_t train = s_train(c, normalize);
    const tt_feed_t feed = {.source = TT_FEED_REPLAY,
        .capacity = 5 * c->world->N * c->world->T * world_row_bytes(),
        .ahead = 1,
        .units = UNITS,
        .shift = shift,
        .memory = where,
        .every = 1,
        .steps = 1};
    assert_ok(memory_new(&memory, &train, c->world->columns, &feed, 0.9));
    assert_ok(memory_place(memory, c->device, c->stream));
    return memory;
}

/*  What it hands on to the device. */
static void s_read(case_t *c, memory_t *memory, uint64_t step, bool there, float (*out)[UNITS][OUT])
{
    const replay_sample_t *sample;
    assert_ok(memory_draw(memory, step, &sample));
    const compute_units_t *units = memory_units(memory, 0, UNITS);
    for (int f = 0; f < TT_FRAMES; f++) {
        assert_true((units->stored[f].store != NULL) == there);
        assert_true((units->rows[f] == NULL) == there);
        if (there)
            assert_ok(tt_table_put_stored(c->table, c->stream, &units->stored[f]));
        else
            assert_ok(tt_table_put(c->table, c->stream, units->rows[f], UNITS));
        s_forward(c, 0, UNITS, out[f]);
    }
}

/*  Takes what it says of bytes on a device. */
static void s_emit(void *ctx, const char *name, double value)
{
    if (strcmp(name, "replay/device_bytes") == 0)
        *(double *)ctx = value;
}

/*  `auto`: where the device has memory of its own, which is not short here. */
static bool s_on_device(const case_t *c, tt_memory_t where)
{
    return where == TT_MEMORY_BOTH || (where == TT_MEMORY_AUTO && tt_device_free(c->device));
}

/*  host, both and auto: the same of a replay that is loaded, and loaded again. */
static void test_memories(void **state)
{
    (void)state;
    static const tt_memory_t where[] = {TT_MEMORY_HOST, TT_MEMORY_BOTH, TT_MEMORY_AUTO};
    for (uint32_t seed = 0; seed < 4; seed++) {
        case_t c;
        tt_buf_t saved;
        memory_t *memory[TT_COUNT(where)];
        s_open(&c, 3 * seed); /* ahead is 1 */
        tt_buf_init(&saved, 1 << 24);
        for (size_t m = 0; m < TT_COUNT(where); m++)
            memory[m] = s_memory(&c, where[m], seed % 2, 0);
        for (uint64_t batch = 0; batch < BATCHES; batch++) {
            float got[TT_COUNT(where)][TT_FRAMES][UNITS][OUT];
            world_play(c.world);
            assert_ok(world_insert(c.world, c.replay));
            if (!replay_ready(c.replay))
                continue;
            tt_buf_clear(&saved);
            assert_ok(replay_save(c.replay, replay_oldest(c.replay), &saved));
            for (size_t m = 0; m < TT_COUNT(where); m++) {
                if (batch % 5 == 4)
                    memory_reset(memory[m]);
                assert_ok(memory_scale(memory[m], (double[7]){100, 1, -2, 3, 400, 25, 900 + (double)batch}));
                assert_ok(memory_load(memory[m], saved.data, saved.size, NULL));
                s_read(&c, memory[m], batch, s_on_device(&c, where[m]), got[m]);
                assert_memory_equal(got[m], got[0], sizeof *got);
            }
        }
        for (size_t m = 0; m < TT_COUNT(where); m++) {
            double bytes = -1;
            memory_metrics(memory[m], 0, s_emit, &bytes);
            assert_true(bytes == (s_on_device(&c, where[m]) ? (double)shelf_bytes(c.shelf) : 0));
            memory_destroy(&memory[m]);
        }
        tt_buf_free(&saved);
        s_close(&c);
    }
}

/* ---- shifts ------------------------------------------------------------------------------------------------------------ */

/*  Rows lo .. hi-1 of a frame are those of `plain`, each shifted by what the step says of its position. How many differ. */
static uint32_t s_check_shifted(const case_t *c, const shift_t *shift, int frame, const compute_units_t *got,
    const compute_units_t *plain, uint32_t lo, uint32_t hi)
{
    const size_t bytes = c->world->columns->row;
    char *row = tt_array0(1, bytes);
    uint32_t moved = 0;
    for (uint32_t u = lo; u < hi; u++) {
        memcpy(row, (const char *)plain->rows[frame] + u * bytes, bytes);
        tt_shift_row(shift_of(shift, (tt_frame_t)frame), u, row);
        assert_memory_equal((const char *)got->rows[frame] + u * bytes, row, bytes);
        moved += memcmp(row, (const char *)plain->rows[frame] + u * bytes, bytes) != 0;
    }
    free(row);
    return moved;
}

/*  Of one of several learners, too. */
static uint32_t s_check_shifts(const case_t *c, const shift_t *shift, memory_t *host, memory_t *plain)
{
    static const uint32_t part[][2] = {{0, UNITS}, {UNITS / 3, UNITS / 2}};
    uint32_t moved = 0;
    for (size_t i = 0; i < TT_COUNT(part); i++) {
        const uint32_t lo = part[i][0], hi = part[i][1];
        const compute_units_t *got = memory_units(host, lo, hi), *want = memory_units(plain, lo, hi);
        for (int f = 0; f < TT_FRAMES; f++)
            moved += s_check_shifted(c, shift, f, got, want, lo, hi);
    }
    return moved;
}

/*  A replay whose pictures are shifted: the same from the host's memory and from the device's, and nothing else of the rows. */
static void test_shifts(void **state)
{
    (void)state;
    enum { HOST, BOTH, PLAIN, MEMORIES };
    static const tt_memory_t where[MEMORIES] = {TT_MEMORY_HOST, TT_MEMORY_BOTH, TT_MEMORY_HOST};
    uint32_t moved = 0;
    for (uint32_t seed = 0; seed < 4; seed++) {
        case_t c;
        tt_buf_t saved;
        memory_t *memory[MEMORIES];
        s_open(&c, 3 * seed); /* ahead is 1 */
        tt_buf_init(&saved, 1 << 24);
        const tt_train_cfg_t train = s_train(&c, seed % 2);
        const tt_net_spec_t net = tt_train_net(&train, c.world->columns);
        shift_t *shift = shift_new(&net, train.seed, UNITS, 1);
        for (int m = 0; m < MEMORIES; m++)
            memory[m] = s_memory(&c, where[m], seed % 2, m != PLAIN);
        for (uint64_t batch = 0; batch < BATCHES; batch++) {
            float got[MEMORIES][TT_FRAMES][UNITS][OUT];
            world_play(c.world);
            assert_ok(world_insert(c.world, c.replay));
            if (!replay_ready(c.replay))
                continue;
            tt_buf_clear(&saved);
            assert_ok(replay_save(c.replay, replay_oldest(c.replay), &saved));
            for (int m = 0; m < MEMORIES; m++) {
                assert_ok(memory_scale(memory[m], (double[7]){100, 1, -2, 3, 400, 25, 900 + (double)batch}));
                assert_ok(memory_load(memory[m], saved.data, saved.size, NULL));
                s_read(&c, memory[m], batch, m == BOTH, got[m]);
            }
            assert_memory_equal(got[BOTH], got[HOST], sizeof *got);
            assert_memory_not_equal(got[PLAIN], got[HOST], sizeof *got);
            shift_draw(shift, batch);
            moved += s_check_shifts(&c, shift, memory[HOST], memory[PLAIN]);
        }
        for (int m = 0; m < MEMORIES; m++)
            memory_destroy(&memory[m]);
        shift_destroy(&shift);
        tt_buf_free(&saved);
        s_close(&c);
    }
    assert_true(moved > 1000);
}

/* ---- sequences ------------------------------------------------------------------------------------------------------- */

/*  What the network makes of all rows that a run's positions read. */
static void s_read_sequences(
    case_t *c, memory_t *memory, uint64_t step, bool there, uint32_t lo, uint32_t hi, float *out)
{
    const replay_sample_t *sample;
    assert_ok(memory_draw(memory, step, &sample));
    const compute_units_t *units = memory_units(memory, lo, hi);
    const sequences_t *of = units->sequences;
    const uint32_t rows = sequences_rows(of) + of->finals;
    assert_true((units->stored[TT_AT].store != NULL) == there);
    if (there)
        assert_ok(tt_table_put_stored(c->table, c->stream, &units->stored[TT_AT]));
    else
        assert_ok(tt_table_put(c->table, c->stream, units->rows[TT_AT], rows));
    float *all = tt_array0(rows, OUT * sizeof(float)), *head[TT_TOWERS_MAX] = {all};
    assert_ok(tt_net_forward_from(c->net, c->stream, 0, c->table, 0, rows, NULL, head));
    assert_ok(tt_stream_sync(c->stream));
    for (uint32_t k = 0; k < of->frames; k++)
        memcpy(out + (size_t)k * (hi - lo) * OUT, all + ((size_t)sequences_block(of, k) * of->units + lo) * OUT,
            (hi - lo) * OUT * sizeof *out);
    memcpy(out + (size_t)of->frames * (hi - lo) * OUT, all + (size_t)sequences_rows(of) * OUT,
        of->finals * OUT * sizeof *out);
    assert_ok(tt_table_put(c->table, c->stream, NULL, 0));
    assert_ok(tt_stream_sync(c->stream));
    free(all);
}

/*  Of a few times what a sequence reaches over. */
static uint64_t s_sequence_capacity(const case_t *c)
{
    return (36 / c->world->T + 2) * c->world->N * c->world->T * world_row_bytes();
}

static memory_t *s_sequence_memory(const case_t *c, tt_memory_t where)
{
    memory_t *memory = NULL;
    const tt_train_cfg_t train = {.num_envs = c->world->N,
        .num_steps = c->world->T,
        .learner.shards = 2,
        .seed = c->world->seed,
        .normalize = {.obs = true, .clip_obs = 2.5f}};
    const tt_feed_t feed = {.source = TT_FEED_REPLAY,
        .capacity = s_sequence_capacity(c),
        .ahead = 2,
        .length = 7,
        .burn = 3,
        .units = 6,
        .memory = where,
        .every = 1,
        .steps = 1};
    assert_ok(memory_new(&memory, &train, c->world->columns, &feed, 0.9));
    assert_ok(memory_place(memory, c->device, c->stream));
    assert_ok(memory_scale(memory, (double[7]){100, 1, -2, 3, 400, 25, 900}));
    return memory;
}

/*  What the replay has. */
static void s_follow(const case_t *c, memory_t *memory)
{
    tt_buf_t saved;
    tt_buf_init(&saved, 1 << 24);
    assert_ok(replay_save(c->replay, replay_oldest(c->replay), &saved));
    assert_ok(memory_load(memory, saved.data, saved.size, NULL));
    tt_buf_free(&saved);
}

/*  The frames of sequences and their finals: from the device's memory and from the host's, of all positions and of some. */
static void test_sequences(void **state)
{
    (void)state;
    uint32_t drawn = 0;
    for (uint32_t seed = 0; seed < 4; seed++) {
        case_t c;
        s_open(&c, 5 * seed + 1);
        memory_t *host = s_sequence_memory(&c, TT_MEMORY_HOST), *both = s_sequence_memory(&c, TT_MEMORY_BOTH);
        replay_cfg_t cfg = s_cfg(c.world, c.world->seed);
        cfg.ahead = 2;
        cfg.length = 7;
        cfg.burn = 3;
        cfg.alpha = 0;
        cfg.gamma = 0.9;
        cfg.stripes = 2;
        cfg.capacity = s_sequence_capacity(&c);
        replay_destroy(&c.replay);
        assert_ok(replay_new(&c.replay, &cfg));
        for (uint64_t batch = 0; batch < 2 * BATCHES; batch++) {
            float got[2][12 * 6 * 2 * OUT] = {{0}};
            world_play(c.world);
            assert_ok(world_insert(c.world, c.replay));
            if (!replay_ready(c.replay))
                continue;
            drawn++;
            s_follow(&c, host);
            s_follow(&c, both);
            for (uint32_t part = 0; part < 2; part++) {
                s_read_sequences(&c, host, 2 * batch + part, false, part, 6 - 2 * part, got[0]);
                s_read_sequences(&c, both, 2 * batch + part, true, part, 6 - 2 * part, got[1]);
                assert_memory_equal(got[0], got[1], sizeof *got);
            }
        }
        memory_destroy(&host);
        memory_destroy(&both);
        s_close(&c);
    }
    assert_true(drawn > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_made_there),
        cmocka_unit_test(test_another_replay),
        cmocka_unit_test(test_memories),
        cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
