/*  A copy of the frames of a replay, filled by what it shows alone: rows that are made of it at the places that it says are those that
 *  the replay itself gathers; after every batch, and once it was loaded or came from elsewhere. And how many places there are. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"
#include "learner/replay/places.h"
#include "tests/replay/world.h"
#include "tests/test.h"

enum { STACK_MAX = 5, CHOICES = 3 };

/* ---- one world seen as different columns -------------------------------------------------------------------------------- */

/*  Frames that lie as they are read (bytes, floats), and such that do not. */
typedef enum { IMAGE, VECTOR, CHOICE, ALL, SHOWN } shown_t;

typedef struct {
    world_t *world;
    tt_columns_t *columns;
    int from[4]; /* column of the observation -> of the world; -1: a choice */
    int32_t *choice;
    replay_cfg_t cfg;
} scene_t;

static void s_open(scene_t *self, uint32_t seed)
{
    static const int64_t choices = CHOICES;
    const tt_space_t leaf[] = {{.kind = TT_SPACE_DISCRETE, .key = "choice", .n = &choices},
        {.kind = TT_SPACE_BOX, .key = "image", .dtype = TT_U8, .rank = 2, .shape = {2, 2}},
        {.kind = TT_SPACE_BOX, .key = "vector", .dtype = TT_F32, .rank = 1, .shape = {3}}};
    const tt_space_t all = {.kind = TT_SPACE_DICT, .part = leaf, .parts = 3}, action = TT_CHOICES(&choices);
    const shown_t shown = (shown_t)(seed % SHOWN);
    double unit[12];
    for (uint64_t k = 0; k < TT_COUNT(unit); k++)
        unit[k] = world_unit(2000 + seed, k);
    *self = (scene_t){.world = world_new(1 + (uint32_t)(unit[0] * 11), 1 + (uint32_t)(unit[1] * unit[1] * 30), seed)};
    world_t *world = self->world;
    world->ends = seed % 5 ? unit[2] * unit[2] * 0.6 : 1; /* or truncated one row after the other, but for a few */
    world->breaks = unit[3] * unit[3];
    world->index[0] = (uint32_t)(unit[4] * 3);
    world->carry = seed / SHOWN % 3;
    memcpy(self->from,
        shown == ALL ? (int[4]){-1, 0, 1}
                     : (int[4]){shown == CHOICE  ? -1
                                : shown == IMAGE ? 0
                                                 : 1},
        sizeof self->from);
    assert_ok(tt_columns_new_stacked(&self->columns,
        shown == ALL ? &all
                     : &leaf[shown == CHOICE  ? 0
                             : shown == IMAGE ? 1
                                              : 2],
        &action, false, false, 1 + (uint32_t)(unit[8] * STACK_MAX), seed % 2 ? TT_PAD_RESET : TT_PAD_ZERO));
    self->choice = tt_array0(WORLD_CLOCKS * WORLD_ENVS, sizeof *self->choice);
    for (uint32_t i = 0; i < WORLD_CLOCKS * WORLD_ENVS; i++)
        self->choice[i] = (int32_t)(CHOICES * world_unit(seed, i));
    const uint32_t obs = self->columns->obs_count;
    self->cfg = (replay_cfg_t){.columns = self->columns,
        .store = (UINT64_C(1) << obs) - 1,
        .N = world->N,
        .T = world->T,
        .stripes = 1u << (uint32_t)(unit[6] * 3),
        .ahead = 1 + (uint32_t)(unit[7] * unit[7] * 9),
        .gamma = 0.9,
        .stack = self->columns->stack.frames,
        .pad = self->columns->stack.pad,
        .carry = world->carry,
        .seed = seed};
    for (uint32_t c = 0; c < obs; c++)
        self->cfg.capacity += self->columns->at[c].bytes;
    double batches = 1 + unit[5] * 11;
    if (seed / SHOWN % 2) { /* sequences */
        self->cfg.length = 1 + (uint32_t)(unit[9] * 15);
        self->cfg.burn = (uint32_t)(unit[10] * 5);
        batches += (self->cfg.burn + self->cfg.length + self->cfg.ahead - 1) / world->T;
    }
    const uint64_t batch = world->N * (world->T * (self->cfg.capacity + 6) + world->carry * sizeof(float));
    self->cfg.capacity = (uint64_t)(batches * (double)batch);
}

static void s_close(scene_t *self)
{
    tt_columns_destroy(&self->columns);
    world_destroy(&self->world);
    free(self->choice);
}

/*  The world's newest batch in these columns. Choices are other ones in each array. */
static tt_status_t s_insert(const scene_t *self, replay_t *replay)
{
    const world_t *world = self->world;
    tt_segment_t segment[WORLD_ENVS];
    replay_part_t part[WORLD_ENVS];
    for (uint32_t p = 0; p < world->parts; p++) {
        const tt_segment_t *at = world->part[p].at;
        part[p] = world->part[p];
        part[p].at = &segment[p];
        segment[p] =
            (tt_segment_t){.age = at->age, .carry = at->carry, .final_t = at->final_t, .final_env = at->final_env};
        for (uint32_t c = 0; c < self->columns->obs_count; c++) {
            int32_t *choice = self->choice + (world->batches * 31 + p * 7) % 997;
            segment[p].column[c] = self->from[c] < 0 ? choice : at->column[self->from[c]];
            segment[p].last[c] = self->from[c] < 0 ? choice + 1 : at->last[self->from[c]];
            segment[p].final[c] = self->from[c] < 0 ? choice + 2 : at->final[self->from[c]];
        }
        segment[p].column[self->columns->reward] = at->column[world->columns->reward];
        segment[p].column[self->columns->terminated] = at->column[world->columns->terminated];
        segment[p].column[self->columns->truncated] = at->column[world->columns->truncated];
    }
    return replay_insert(replay, world->batches - 1, part, world->parts, world->broke);
}

/* ---- the copy ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const tt_columns_t *columns;
    uint32_t count;
    char *frame; /* [count][columns->frame], what was never shown is 0xee */
} copy_t;

static void s_copy_open(copy_t *self, const scene_t *scene, const replay_t *replay)
{
    *self = (copy_t){.columns = scene->columns, .count = replay_places_count(replay)};
    self->frame = tt_aligned0(tt_mul(self->count, scene->columns->frame));
    memset(self->frame, 0xee, (size_t)self->count * scene->columns->frame);
}

static tt_status_t s_put(void *ctx, uint32_t first, const void *frames, uint32_t count)
{
    copy_t *self = ctx;
    assert_true(count > 0 && first < self->count && count <= self->count - first);
    memcpy(self->frame + (size_t)first * self->columns->frame, frames, (size_t)count * self->columns->frame);
    return TT_OK;
}

static void s_check_unit(const copy_t *self, const replay_t *replay, uint64_t unit, replay_frame_t which)
{
    uint32_t place[STACK_MAX];
    const void *frame[STACK_MAX];
    char got[STACK_MAX * 64], want[STACK_MAX * 64];
    assert_true(self->columns->row <= sizeof got);
    replay_places(replay, &unit, 1, which, place);
    for (uint32_t k = 0; k < self->columns->stack.frames; k++) {
        assert_true(place[k] < self->count);
        frame[k] = self->frame + (size_t)place[k] * self->columns->frame;
    }
    memset(got, 0, sizeof got);
    memset(want, 0, sizeof want);
    tt_stack_row(&self->columns->stack, frame, got);
    replay_gather_rows(replay, &unit, 1, which, want);
    assert_memory_equal(got, want, self->columns->row);
}

/*  Of sequences each row that is held, and what came after the newest. */
static void s_check_row(const copy_t *self, const replay_t *replay, uint64_t clock, uint32_t env)
{
    const past_t *past = &replay->past;
    const uint64_t row = clock * past->cfg.N + env;
    s_check_unit(self, replay, row, REPLAY_AT);
    if (clock == past_end(past))
        return;
    const past_place_t place = past_place(past, clock, env);
    if (units_complete(&replay->units, place))
        s_check_unit(self, replay, row, REPLAY_NEXT);
    if (place.in->mark[place.at] & ROW_CUT)
        s_check_unit(self, replay, row, REPLAY_FINAL);
}

static void s_check_all(const copy_t *self, const replay_t *replay)
{
    const past_t *past = &replay->past;
    for (uint64_t clock = past_oldest(past); clock <= past_end(past); clock++)
        for (uint32_t e = 0; e < past->cfg.N; e++) {
            if (past->cfg.length)
                s_check_row(self, replay, clock, e);
            if (past->cfg.length || !units_lives(&replay->units, clock, e))
                continue;
            s_check_unit(self, replay, clock * past->cfg.N + e, REPLAY_AT);
            s_check_unit(self, replay, clock * past->cfg.N + e, REPLAY_NEXT);
        }
}

static void s_take(uint8_t *taken, uint32_t place, uint32_t count)
{
    assert_true(place < count);
    assert_int_equal(taken[place], 0);
    taken[place] = 1;
}

/*  No two that live have one place; how many there are. */
static uint64_t s_check_apart(const copy_t *self, const replay_t *replay)
{
    const past_t *past = &replay->past;
    uint8_t *taken = tt_array0(self->count, 1);
    uint64_t frames = 0;
    s_take(taken, 0, self->count);
    for (uint32_t e = 0; e < past->cfg.N; e++)
        s_take(taken, places_tip(e), self->count);
    for (uint64_t b = past->first; b < past->next; b++) {
        const past_batch_t *batch = past_batch(past, b);
        const uint32_t rows = past->cfg.T * past->cfg.N;
        for (uint32_t i = 0; i < rows; i++)
            s_take(taken, places_row(past, (past_place_t){batch, i}), self->count);
        for (uint32_t k = 0; k < batch->finals; k++)
            s_take(taken, places_final(past, batch, k), self->count);
        frames += rows + batch->finals;
    }
    free(taken);
    return frames;
}

static uint64_t s_check(const copy_t *self, const replay_t *replay)
{
    s_check_all(self, replay);
    return s_check_apart(self, replay);
}

/*  A new copy of all of it. */
static void s_check_anew(const scene_t *scene, const replay_t *replay)
{
    copy_t copy;
    s_copy_open(&copy, scene, replay);
    assert_ok(replay_show(replay, 0, s_put, &copy));
    s_check(&copy, replay);
    free(copy.frame);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------- */

/*  Batch by batch; each shows what is new alone. */
static void test_random_worlds(void **state)
{
    (void)state;
    uint64_t evicted = 0, round = 0;
    for (uint32_t seed = 0; seed < 60; seed++) {
        scene_t scene;
        copy_t copy;
        replay_t *replay = NULL;
        s_open(&scene, seed);
        assert_ok(replay_new(&replay, &scene.cfg));
        s_copy_open(&copy, &scene, replay);
        uint64_t last = 0;
        for (int batch = 0; batch < 24; batch++) {
            world_play(scene.world);
            assert_ok(s_insert(&scene, replay));
            assert_ok(replay_show(replay, scene.world->batches - 1, s_put, &copy));
            s_check(&copy, replay);
            const uint64_t at = past_batch(&replay->past, replay->past.next - 1)->place;
            round += at < last;
            last = at;
        }
        evicted += replay->past.first;
        free(copy.frame);
        replay_destroy(&replay);
        s_close(&scene);
    }
    assert_true(evicted > 300 && round > 50);
}

/*  One batch, or the rest, is shown at once as well as one by one; and again. */
static void test_shown_late(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        scene_t scene;
        copy_t copy;
        replay_t *replay = NULL;
        s_open(&scene, seed);
        assert_ok(replay_new(&replay, &scene.cfg));
        s_copy_open(&copy, &scene, replay);
        assert_ok(replay_show(replay, 0, s_put, &copy)); /* nothing, yet */
        uint64_t from = 0;
        for (uint64_t batch = 1; batch <= 20; batch++) {
            world_play(scene.world);
            assert_ok(s_insert(&scene, replay));
            if (world_unit(seed + 7, batch) < 0.6)
                continue;
            assert_ok(replay_show(replay, from, s_put, &copy));
            s_check(&copy, replay);
            from = batch;
        }
        free(copy.frame);
        replay_destroy(&replay);
        s_close(&scene);
    }
}

static replay_t *s_loaded(const scene_t *scene, const replay_t *from)
{
    replay_t *replay = NULL;
    tt_buf_t saved;
    tt_buf_init(&saved, 1 << 24);
    assert_ok(replay_save(from, replay_oldest(from), &saved));
    assert_ok(replay_new(&replay, &scene->cfg));
    assert_ok(replay_load(replay, saved.data, saved.size, NULL));
    tt_buf_free(&saved);
    return replay;
}

/*  Settled batches came before, the rest with the block. */
static replay_t *s_warmed(const scene_t *scene, const replay_t *from)
{
    replay_t *replay = NULL;
    replay_warm_t *warm;
    tt_buf_t piece, block;
    const uint64_t first = replay_oldest(from), next = replay_settled(from);
    tt_buf_init(&piece, 1 << 24);
    tt_buf_init(&block, 1 << 24);
    assert_ok(replay_new(&replay, &scene->cfg));
    replay_warm_new(&warm, replay);
    if (first < next) {
        assert_ok(replay_save_batches(from, first, next, &piece));
        assert_ok(replay_warm_add(warm, &(replay_piece_t){piece.data, piece.size, first, next}));
    }
    assert_ok(replay_save(from, next > first ? next : first, &block));
    assert_ok(replay_warm_finish(warm, replay, block.data, block.size));
    replay_warm_destroy(&warm);
    tt_buf_free(&piece);
    tt_buf_free(&block);
    return replay;
}

/*  What was loaded has places of its own, goes on from there, and shows all of it. */
static void test_loaded_and_warmed(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 30; seed++) {
        scene_t scene;
        replay_t *replay = NULL;
        s_open(&scene, seed);
        assert_ok(replay_new(&replay, &scene.cfg));
        for (uint32_t batch = 0; batch < 20; batch++) {
            world_play(scene.world);
            assert_ok(s_insert(&scene, replay));
            if (batch % 4 != seed % 4)
                continue;
            replay_t *loaded = s_loaded(&scene, replay), *warmed = s_warmed(&scene, replay);
            s_check_anew(&scene, loaded);
            s_check_anew(&scene, warmed);
            replay_destroy(&replay);
            replay = seed % 2 ? loaded : warmed;
            replay_destroy(seed % 2 ? &warmed : &loaded);
        }
        replay_destroy(&replay);
        s_close(&scene);
    }
}

/*  As many as can live at once, by trying all numbers of batches; and one world in which so many do. */
static void test_how_many(void **state)
{
    (void)state;
    uint32_t more = 0;
    for (uint32_t seed = 0; seed < 200; seed++) {
        scene_t scene;
        replay_t *replay = NULL;
        s_open(&scene, seed);
        assert_ok(replay_new(&replay, &scene.cfg));
        const past_t *past = &replay->past;
        const uint64_t rows = (uint64_t)past->cfg.T * past->cfg.N;
        uint64_t most = 2 * rows;
        for (uint64_t batches = 1; batches <= past->room; batches++)
            for (uint64_t finals = 0; finals <= batches * rows; finals++)
                if (batches * (rows * past->row_bytes + past->cfg.N * past->cfg.carry * sizeof(float)) +
                            finals * past->final_bytes <=
                        past->cfg.capacity &&
                    batches * rows + finals > most)
                    most = batches * rows + finals;
        assert_int_equal(replay_places_count(replay), 1 + past->cfg.N + most);
        assert_int_equal(replay_places_of(&scene.cfg), replay_places_count(replay));
        more += most > past->room * rows && most < 2 * past->room * rows;
        replay_destroy(&replay);
        s_close(&scene);
    }
    assert_true(more > 20);
}

/*  One env that is truncated at every row: the ring is full to the last place. */
static void test_full(void **state)
{
    (void)state;
    scene_t scene;
    copy_t copy;
    replay_t *replay = NULL;
    s_open(&scene, IMAGE);
    world_t *world = scene.world;
    uint64_t most = 0;
    scene.cfg.capacity = UINT64_C(4) * world->N * world->T * (4 + 6 + 4);
    assert_ok(replay_new(&replay, &scene.cfg));
    s_copy_open(&copy, &scene, replay);
    for (int batch = 0; batch < 12; batch++) {
        world->breaks = 0;
        world->ends = 1;
        world_play(world);
        for (uint32_t p = 0; p < world->parts; p++) {
            const replay_part_t *part = &world->part[p];
            memset(part->at->column[world->columns->terminated], 0, (size_t)world->T * part->E);
        }
        assert_ok(s_insert(&scene, replay));
        assert_ok(replay_show(replay, world->batches - 1, s_put, &copy));
        const uint64_t frames = s_check(&copy, replay);
        most = frames > most ? frames : most;
    }
    assert_int_equal(1 + world->N + most, copy.count);
    free(copy.frame);
    replay_destroy(&replay);
    s_close(&scene);
}

/*  Numbers that are read as floats, so many that a few frames fill the room in which they are. */
static void test_large_frames(void **state)
{
    (void)state;
    enum { STEPS = 7, NUMBERS = 30000 };
    static int32_t value[STEPS + 1][NUMBERS];
    static const int64_t choices = CHOICES;
    const tt_space_t obs = {.kind = TT_SPACE_BOX, .dtype = TT_I32, .rank = 1, .shape = {NUMBERS}};
    const tt_space_t action = TT_CHOICES(&choices);
    scene_t scene = {.cfg = {.N = 1, .T = STEPS, .stripes = 1, .ahead = 1, .stack = 1}};
    replay_t *replay = NULL;
    copy_t copy;
    float rewards[STEPS] = {0};
    uint8_t flags[STEPS] = {0};
    uint32_t age = 0;
    assert_ok(tt_columns_new(&scene.columns, &obs, &action, false, false));
    const tt_columns_t *columns = scene.cfg.columns = scene.columns;
    scene.cfg.store = 1;
    scene.cfg.capacity = sizeof value * 3;
    for (int32_t i = 0; i < (STEPS + 1) * NUMBERS; i++)
        value[i / NUMBERS][i % NUMBERS] = i;
    tt_segment_t at = {.age = &age};
    at.column[0] = value;
    at.last[0] = value[STEPS];
    at.column[columns->reward] = rewards;
    at.column[columns->terminated] = at.column[columns->truncated] = flags;
    assert_ok(replay_new(&replay, &scene.cfg));
    assert_ok(replay_insert(replay, 0, &(replay_part_t){.at = &at, .E = 1, .count = 1}, 1, NULL));
    s_copy_open(&copy, &scene, replay);
    assert_ok(replay_show(replay, 0, s_put, &copy));
    for (uint64_t unit = 0; unit < STEPS; unit++)
        for (int which = REPLAY_AT; which <= REPLAY_NEXT; which++) {
            static float want[NUMBERS];
            uint32_t place;
            replay_gather_rows(replay, &unit, 1, (replay_frame_t)which, want);
            replay_places(replay, &unit, 1, (replay_frame_t)which, &place);
            assert_true(want[1] == (float)value[unit + (uint64_t)which][1]);
            assert_memory_equal(copy.frame + (size_t)place * sizeof want, want, sizeof want);
        }
    free(copy.frame);
    replay_destroy(&replay);
    tt_columns_destroy(&scene.columns);
}

static tt_status_t s_refuse(void *ctx, uint32_t first, const void *frames, uint32_t count)
{
    (void)first, (void)frames, (void)count;
    return --*(int *)ctx ? TT_OK : tt_err(TT_UNAVAILABLE, "no more");
}

/*  Whoever is shown frames may say no. */
static void test_put_fails(void **state)
{
    (void)state;
    scene_t scene;
    replay_t *replay = NULL;
    s_open(&scene, ALL);
    assert_ok(replay_new(&replay, &scene.cfg));
    world_play(scene.world);
    assert_ok(s_insert(&scene, replay));
    for (int after = 1; after <= 2; after++) {
        int left = after;
        assert_int_equal(replay_show(replay, 0, s_refuse, &left), TT_UNAVAILABLE);
        assert_int_equal(left, 0);
    }
    replay_destroy(&replay);
    s_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_shown_late),
        cmocka_unit_test(test_loaded_and_warmed),
        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_large_frames),
        cmocka_unit_test(test_put_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
