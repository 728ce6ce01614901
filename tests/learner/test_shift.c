/*  Pictures shifted at random: which part of a row is one, by how much it goes, and that it becomes what PyTorch makes of it by a pad and
 *  a crop. */
#include "learner/shift.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/job/fit.h"
#include "tests/nn/st_file.h"
#include "tests/test.h"

static tt_net_spec_t s_net(const char *obs, const char *encoder, uint32_t frames)
{
    TT_AUTO(tt_columns) columns = NULL;
    tt_train_cfg_t cfg = {.actor.kind = TT_ACT_ARGMAX, .stack.frames = frames, .space.divisor = 1};
    snprintf(cfg.space.obs, sizeof cfg.space.obs, "%s", obs);
    snprintf(cfg.space.action, sizeof cfg.space.action, "discrete(3)");
    snprintf(cfg.network.encoder, sizeof cfg.network.encoder, "%s", encoder);
    if (strstr(obs, "far: float32"))
        snprintf(cfg.network.picture, sizeof cfg.network.picture, "far");
    assert_ok(tt_train_columns(&columns, &cfg));
    return tt_train_net(&cfg, columns);
}

/* ---- where ------------------------------------------------------------------------------------------------------------ */

static void test_the_picture(void **state)
{
    (void)state;
    static const struct {
        const char *obs;
        uint32_t frames;
        tt_shift_t want;
    } cases[] = {
        {"uint8[84, 60]", 1, {0, 1, 84, 60, 1, NULL}},
        {"uint8[84, 60, 3]", 1, {0, 1, 84, 60, 3, NULL}},
        {"uint8[3, 84, 60]", 1, {0, 3, 84, 60, 1, NULL}},
        {"uint8[84, 60, 3]", 3, {0, 3, 84, 60, 3, NULL}},
        {"uint8[3, 84, 60]", 2, {0, 6, 84, 60, 1, NULL}},
        {"{at: float32[3], image: bool[9, 7], last: float32}", 4, {48, 4, 9, 7, 1, NULL}},
        {"{at: uint8[3], far: float32[2, 6, 5], near: uint8[8, 8]}", 1, {4, 2, 6, 5, 4, NULL}},
        {"{at: uint8[3], far: float32[6, 5, 2]}", 2, {8, 2, 6, 5, 8, NULL}},
    };
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const tt_net_spec_t net = s_net(cases[i].obs, "conv 4 2x2 relu", cases[i].frames);
        const tt_shift_t *want = &cases[i].want;
        tt_shift_t got;
        assert_true(shift_picture(&net, &got));
        if (got.at != want->at || got.planes != want->planes || got.height != want->height ||
            got.width != want->width || got.place != want->place || got.by)
            fail_msg("%s: at %u, [%u][%u][%u] of %u bytes", cases[i].obs, got.at, got.planes, got.height, got.width,
                got.place);
    }
}

static void test_no_picture(void **state)
{
    (void)state;
    tt_shift_t got;
    const tt_net_spec_t vector = s_net("float32[4]", "dense 8 relu", 1), none = s_net("uint8[8, 8]", "none", 1);
    assert_false(shift_picture(&vector, &got));
    assert_false(shift_picture(&none, &got));
}

/* ---- how far ---------------------------------------------------------------------------------------------------------- */

static shift_t *s_shift(uint64_t seed, uint32_t units, uint32_t most)
{
    const tt_net_spec_t net = s_net("uint8[84, 84]", "conv 4 2x2 relu", 1);
    return shift_new(&net, seed, units, most);
}

/*  Each of 25 pairs as often as any other, in both frames. */
static void test_uniform(void **state)
{
    (void)state;
    enum { UNITS = 500, STEPS = 40, SIDE = 5, CELLS = SIDE * SIDE };
    shift_t *shift = s_shift(3, UNITS, 2);
    uint32_t count[TT_FRAMES][CELLS] = {{0}};
    for (uint64_t step = 0; step < STEPS; step++) {
        shift_draw(shift, step);
        for (int f = 0; f < TT_FRAMES; f++)
            for (uint32_t u = 0; u < UNITS; u++) {
                const int8_t *by = shift_of(shift, (tt_frame_t)f)->by[u];
                assert_true(by[0] >= -2 && by[0] <= 2 && by[1] >= -2 && by[1] <= 2);
                count[f][(by[0] + 2) * SIDE + by[1] + 2]++;
            }
    }
    for (int f = 0; f < TT_FRAMES; f++) {
        const double want = (double)UNITS * STEPS / CELLS;
        double chi = 0;
        for (int i = 0; i < CELLS; i++)
            chi += (count[f][i] - want) * (count[f][i] - want) / want;
        assert_true(chi < CELLS + 5 * sqrt(2.0 * CELLS));
        assert_true(chi > CELLS * 0.3); /* random all the same */
    }
    shift_destroy(&shift);
    assert_null(shift);
}

/*  How many of two lists of pairs are the same. */
static uint32_t s_alike(const int8_t (*one)[2], const int8_t (*other)[2], uint32_t units)
{
    uint32_t alike = 0;
    for (uint32_t u = 0; u < units; u++)
        alike += one[u][0] == other[u][0] && one[u][1] == other[u][1];
    return alike;
}

/*  All of them count: seed, step, position, frame; and nothing else does. */
static void test_of_what(void **state)
{
    (void)state;
    enum { UNITS = 400, FEW = 30 };
    shift_t *one = s_shift(3, UNITS, TT_SHIFT_MAX), *few = s_shift(3, FEW, TT_SHIFT_MAX),
            *other = s_shift(4, UNITS, TT_SHIFT_MAX);
    int8_t first[UNITS][2], next[UNITS][2];
    shift_draw(one, 7);
    memcpy(first, shift_of(one, TT_AT)->by, sizeof first);
    memcpy(next, shift_of(one, TT_NEXT)->by, sizeof next);
    shift_draw(one, UINT64_C(1) << 33);
    shift_draw(other, 7);
    shift_draw(few, 9);
    shift_draw(few, 7);
    assert_memory_equal(shift_of(few, TT_AT)->by, first, FEW * sizeof *first);
    assert_memory_equal(shift_of(few, TT_NEXT)->by, next, FEW * sizeof *next);
    const int8_t(*const same)[2] = (const int8_t(*)[2])first;
    assert_true(s_alike(same, (const int8_t(*)[2])next, UNITS) < UNITS / 40);
    assert_true(s_alike(same, (const int8_t(*)[2])(first + 1), UNITS - 1) < UNITS / 40);
    assert_true(s_alike(same, shift_of(one, TT_AT)->by, UNITS) < UNITS / 40);
    assert_true(s_alike(same, shift_of(other, TT_AT)->by, UNITS) < UNITS / 40);
    shift_draw(one, 7);
    assert_memory_equal(shift_of(one, TT_AT)->by, first, sizeof first);
    shift_destroy(&one);
    shift_destroy(&few);
    shift_destroy(&other);
}

/*  The bits are part of what a seed means. */
static void test_bits(void **state)
{
    (void)state;
    enum { UNITS = 64 };
    shift_t *shift = s_shift(12345, UNITS, TT_SHIFT_MAX);
    uint32_t hash = 2166136261u;
    int least = 0, most = 0;
    for (uint64_t step = 0; step < 40; step++) {
        shift_draw(shift, step);
        for (int f = 0; f < TT_FRAMES; f++)
            for (uint32_t i = 0; i < 2 * UNITS; i++) {
                const int8_t by = shift_of(shift, (tt_frame_t)f)->by[i / 2][i % 2];
                hash = (hash ^ (uint8_t)by) * 16777619u;
                least = by < least ? by : least;
                most = by > most ? by : most;
            }
    }
    assert_true(least == -TT_SHIFT_MAX && most == TT_SHIFT_MAX);
    assert_int_equal(hash, 0x2991153au);
    shift_destroy(&shift);
}

/* ---- as PyTorch ------------------------------------------------------------------------------------------------------- */

static const tt_st_array_t *s_array(const tt_st_t *file, const char *name, const char *what, tt_st_type_t type)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", name, what);
    const tt_st_array_t *found = tt_st_find(file, full);
    assert_non_null(found);
    assert_int_equal(found->type, type);
    return found;
}

typedef struct {
    uint32_t rows, channels, height, width;
    const uint8_t *from, *to;
    int8_t (*by)[2];
} golden_t;

/*  Number (c, y, x) of picture i, and where it stands in one of [planes][height][width][channels / planes]. */
static size_t s_there(const golden_t *g, uint32_t i, uint32_t c, uint32_t at)
{
    return ((size_t)i * g->channels + c) * g->height * g->width + at;
}

static size_t s_here(const golden_t *g, uint32_t planes, uint32_t c, uint32_t at)
{
    const uint32_t numbers = g->channels / planes;
    return ((size_t)(c / numbers) * g->height * g->width + at) * numbers + c % numbers;
}

/*  As bytes, or as floats. */
static void s_check_golden(const golden_t *g, uint32_t planes, bool bytes)
{
    const uint32_t area = g->height * g->width, size = bytes ? 1 : sizeof(float);
    const tt_shift_t shift = {.planes = planes,
        .height = g->height,
        .width = g->width,
        .place = g->channels / planes * size,
        .by = (const int8_t(*)[2])g->by};
    float *row = tt_array0(g->channels, area * sizeof *row);
    for (uint32_t i = 0; i < g->rows; i++) {
        for (uint32_t k = 0; k < g->channels * area; k++) {
            const uint8_t number = g->from[s_there(g, i, k / area, k % area)];
            const size_t at = s_here(g, planes, k / area, k % area);
            if (bytes)
                ((uint8_t *)row)[at] = number;
            else
                row[at] = number;
        }
        tt_shift_row(&shift, i, row);
        for (uint32_t k = 0; k < g->channels * area; k++) {
            const size_t at = s_here(g, planes, k / area, k % area);
            const float got = bytes ? (float)((uint8_t *)row)[at] : row[at];
            assert_true(got == (float)g->to[s_there(g, i, k / area, k % area)]);
        }
    }
    free(row);
}

static void test_torch(void **state)
{
    (void)state;
    static const char *const cases[] = {"small", "wide", "drq", "far"};
    tt_st_t *file;
    assert_ok(st_file(&file, TT_SOURCE_DIR "/tests/golden/torch/shift.safetensors"));
    assert_non_null(tt_st_meta(file, "torch"));
    for (size_t i = 0; i < TT_COUNT(cases); i++) {
        const tt_st_array_t *from = s_array(file, cases[i], "from", TT_ST_U8);
        const int32_t *by = s_array(file, cases[i], "by", TT_ST_I32)->data;
        const golden_t g = {.rows = (uint32_t)from->shape[0],
            .channels = (uint32_t)from->shape[1],
            .height = (uint32_t)from->shape[2],
            .width = (uint32_t)from->shape[3],
            .from = from->data,
            .to = s_array(file, cases[i], "to", TT_ST_U8)->data,
            .by = tt_array0(from->shape[0], sizeof *g.by)};
        for (uint32_t k = 0; k < 2 * g.rows; k++)
            g.by[k / 2][k % 2] = (int8_t)by[k];
        for (uint32_t planes = 1; planes <= g.channels; planes++)
            for (int bytes = 0; bytes < 2 && g.channels % planes == 0; bytes++)
                s_check_golden(&g, planes, bytes);
        free(g.by);
    }
    tt_st_destroy(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_picture),
        cmocka_unit_test(test_no_picture),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_of_what),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
