/*  Frames in a device's memory: what a network reads of a minibatch whose rows are made there is, to the bit, what it reads of rows that
 *  the replay gathers; after every batch, with and without a normaliser. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "learner/shelf.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_made_there),
        cmocka_unit_test(test_another_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
