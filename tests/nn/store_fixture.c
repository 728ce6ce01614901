#include "tests/nn/store_fixture.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/scale.h"

/*  A frame: BYTES bytes, then FLOATS floats, and once more two floats. */
enum { BYTES = 8, FLOATS = 5, MORE = 2, FRAME = BYTES + 4 * (FLOATS + MORE), PLACES = 23, ROWS = 37 };
enum { OUTS_MAX = (BYTES + FLOATS + MORE) * TT_STACK_MAX };

typedef struct {
    const place_t *place;
    uint32_t frames;
    tt_stack_t stack;
    tt_net_spec_t spec; /* its head gives the row's numbers */
    tt_net_t *net;
    tt_table_t *table;
    tt_store_t *store;
    uint32_t list[ROWS * TT_STACK_MAX];
    double mean[FLOATS + MORE], inv[FLOATS + MORE];
    union {
        float align;
        uint8_t at[PLACES][FRAME];
    } here; /* what the store should have */
} world_t;

/*  Of a frame that is put there the `turn`-th time. */
static void s_fill(world_t *w, uint32_t first, uint32_t count, uint32_t turn)
{
    for (uint32_t p = first; p < first + count; p++) {
        float floats[FLOATS + MORE];
        for (uint32_t b = 0; b < BYTES; b++)
            w->here.at[p][b] = (uint8_t)(p * 31 + b * 7 + turn);
        for (uint32_t f = 0; f < FLOATS + MORE; f++)
            floats[f] = fixture_number(7 + turn, p * 64 + f) * 3;
        memcpy(w->here.at[p] + BYTES, floats, sizeof floats);
    }
}

static void s_put(world_t *w, uint32_t first, uint32_t count, uint32_t turn)
{
    s_fill(w, first, count, turn);
    assert_ok(tt_store_put(w->store, w->place->stream, first, w->here.at[first], count));
    assert_ok(tt_stream_sync(w->place->stream)); /* what was lent is ours again */
}

/*  Output k is number k of the row: sums of zeros and of that. */
static void s_put_identity(const world_t *w)
{
    float *params = tt_array0(tt_net_param_count(&w->spec), sizeof *params);
    for (uint32_t k = 0; k < w->spec.obs; k++)
        params[(size_t)k * w->spec.obs + k] = 1;
    assert_ok(tt_net_put(w->net, w->place->stream, 0, params));
    assert_ok(tt_stream_sync(w->place->stream));
    free(params);
}

static void s_open(world_t *w, const place_t *place, uint32_t frames)
{
    *w = (world_t){.place = place, .frames = frames};
    w->stack = (tt_stack_t){.frames = frames,
        .parts = 3,
        .part = {{0, 0, BYTES}, {BYTES, BYTES * frames, 4 * FLOATS},
            {BYTES + 4 * FLOATS, (BYTES + 4 * FLOATS) * frames, 4 * MORE}}};
    w->spec = tt_net_one("q", (BYTES + FLOATS + MORE) * frames, NULL, 0, TT_NN_TANH, (BYTES + FLOATS + MORE) * frames);
    w->spec.parts = 3;
    w->spec.part[0] = (tt_part_t){.bytes = true, .elements = BYTES * frames, .divisor = 1};
    w->spec.part[1] = (tt_part_t){.elements = FLOATS * frames};
    w->spec.part[2] = (tt_part_t){.elements = MORE * frames};
    for (uint32_t f = 0; f < FLOATS + MORE; f++) {
        w->mean[f] = (double)fixture_number(3, f) / 3;
        w->inv[f] = 0.5 + (double)fixture_number(4, f) / 7;
    }
    assert_int_equal(tt_net_row_bytes(&w->spec), FRAME * frames);
    assert_ok(tt_net_new(&w->net, place->device, &w->spec));
    assert_ok(tt_table_new(&w->table, place->device, (size_t)FRAME * frames));
    assert_ok(tt_store_new(&w->store, place->device, FRAME, PLACES));
    s_put_identity(w);
}

static void s_close(world_t *w)
{
    tt_table_destroy(&w->table);
    tt_store_destroy(&w->store);
    tt_net_destroy(&w->net);
}

static tt_scale_t s_scale(const world_t *w)
{
    return (tt_scale_t){.runs = 3,
        .run = {{BYTES, 2}, {BYTES + 4 * 2, FLOATS - 2}, {BYTES + 4 * FLOATS, MORE}},
        .mean = w->mean,
        .inv = w->inv,
        .clip = 0.75f,
        .but = 0};
}

static tt_stored_t s_stored(const world_t *w, const tt_scale_t *scale)
{
    return (tt_stored_t){.store = w->store, .stack = &w->stack, .place = w->list, .scale = scale, .count = ROWS};
}

/*  A frame as a row shows it. */
static void s_shown(const world_t *w, uint32_t place, const tt_scale_t *scale, void *out)
{
    float floats[FLOATS + MORE];
    memcpy(out, w->here.at[place], FRAME);
    memcpy(floats, w->here.at[place] + BYTES, sizeof floats);
    for (uint32_t f = 0; scale && place != scale->but && f < FLOATS + MORE; f++)
        floats[f] = tt_scaled(floats[f], w->mean[f], w->inv[f], scale->clip);
    memcpy((char *)out + BYTES, floats, sizeof floats);
}

/*  The numbers of row r. */
static void s_expect(const world_t *w, const tt_scale_t *scale, uint32_t r, float *out)
{
    static uint8_t frame[TT_STACK_MAX][FRAME], row[TT_STACK_MAX * FRAME];
    const void *list[TT_STACK_MAX];
    for (uint32_t k = 0; k < w->frames; k++) {
        s_shown(w, w->list[r * w->frames + k], scale, frame[k]);
        list[k] = frame[k];
    }
    if (w->frames == 1)
        memcpy(row, frame[0], FRAME);
    else
        tt_stack_row(&w->stack, list, row);
    for (uint32_t b = 0; b < BYTES * w->frames; b++)
        *out++ = row[b];
    memcpy(out, row + BYTES * w->frames, sizeof(float) * (FLOATS + MORE) * w->frames);
}

static void s_assert_rows(const world_t *w, const tt_scale_t *scale)
{
    const uint32_t outs = w->spec.obs;
    float *got = tt_array0((size_t)ROWS * outs, sizeof *got), want[OUTS_MAX];
    assert_ok(tt_net_forward(w->net, w->place->stream, 0, w->table, ROWS, NULL, &(float *){got}));
    assert_ok(tt_stream_sync(w->place->stream));
    for (uint32_t r = 0; r < ROWS; r++) {
        s_expect(w, scale, r, want);
        assert_memory_equal(got + (size_t)r * outs, want, outs * sizeof *got);
    }
    free(got);
}

/*  Any place anywhere, the first and the last among them. */
static void s_choose(world_t *w, uint32_t turn)
{
    for (uint32_t i = 0; i < ROWS * w->frames; i++)
        w->list[i] = (i * 13 + turn * 5 + i / 9) % PLACES;
    w->list[0] = 0;
    w->list[ROWS * w->frames - 1] = PLACES - 1;
}

static void s_check_rows(const place_t *place, uint32_t frames)
{
    static world_t w;
    s_open(&w, place, frames);
    const tt_scale_t scale = s_scale(&w);
    for (uint32_t turn = 0; turn < 4; turn++) {
        const tt_scale_t *by = turn % 2 ? &scale : NULL;
        const tt_stored_t from = s_stored(&w, by);
        if (turn != 1) /* at first all is zeros but some */
            s_put(&w, turn ? 0 : 4, turn ? PLACES : 3, turn);
        s_choose(&w, turn);
        assert_ok(tt_table_put_stored(w.table, place->stream, &from));
        s_assert_rows(&w, by);
    }
    s_close(&w);
}

/*  Rows are of what was there when they were put, whatever comes to these places later. */
static void s_check_order(const place_t *place)
{
    static world_t w;
    static uint8_t later[PLACES][FRAME];
    const uint32_t outs = BYTES + FLOATS + MORE;
    float *got = tt_array0((size_t)ROWS * outs, sizeof *got), want[OUTS_MAX];
    s_open(&w, place, 1);
    s_put(&w, 0, PLACES, 0);
    s_choose(&w, 3);
    const tt_stored_t from = s_stored(&w, NULL);
    memset(later, 0x3f, sizeof later);
    assert_ok(tt_table_put_stored(w.table, place->stream, &from));
    assert_ok(tt_store_put(w.store, place->stream, 0, later, PLACES));
    assert_ok(tt_net_forward(w.net, place->stream, 0, w.table, ROWS, NULL, &(float *){got}));
    assert_ok(tt_stream_sync(place->stream));
    for (uint32_t r = 0; r < ROWS; r++) {
        s_expect(&w, NULL, r, want);
        assert_memory_equal(got + (size_t)r * outs, want, outs * sizeof *got);
    }
    free(got);
    s_close(&w);
}

static void s_assert_refused(const world_t *w, const tt_stored_t *from, const char *why)
{
    tt_status_t status = tt_table_put_stored(w->table, w->place->stream, from);
    if (status == TT_OK)
        status = tt_stream_sync(w->place->stream);
    assert_int_equal(status, TT_INVALID);
    assert_non_null(strstr(tt_err_text(), why));
}

static void s_check_refusals(const place_t *place)
{
    static world_t w;
    tt_store_t *none = NULL;
    s_open(&w, place, 3);
    s_put(&w, 0, PLACES, 0);
    s_choose(&w, 0);
    assert_int_equal(tt_store_new(&none, place->device, 0, 4), TT_INVALID);
    assert_int_equal(tt_store_new(&none, place->device, 4, 0), TT_INVALID);
    assert_null(none);
    assert_int_equal(tt_store_put(w.store, place->stream, PLACES - 1, w.here.at, 2), TT_INVALID);
    assert_int_equal(tt_store_put(w.store, place->stream, SIZE_MAX, w.here.at, 2), TT_INVALID);
    assert_ok(tt_store_put(w.store, place->stream, PLACES, w.here.at, 0));
    tt_stored_t from = s_stored(&w, NULL);
    w.list[ROWS] = PLACES;
    s_assert_refused(&w, &from, "place 23 of a store that has 23");
    w.list[ROWS] = 0;
    w.stack.part[2].to += 4;
    s_assert_refused(&w, &from, "make no row of");
    w.stack.part[2].to -= 4;
    w.stack.part[2].from += 4;
    s_assert_refused(&w, &from, "make no row of");
    w.stack.part[2].from -= 4;
    from.stack = NULL;
    s_assert_refused(&w, &from, "make no row of");
    tt_scale_t scale = s_scale(&w);
    from = s_stored(&w, &scale);
    scale.run[1].count++;
    s_assert_refused(&w, &from, "floats at bytes 16 to 32");
    scale.run[1].count--;
    scale.run[0] = (__typeof__(scale.run[0])){BYTES + 2, 1};
    s_assert_refused(&w, &from, "floats at byte");
    from.scale = NULL;
    assert_ok(tt_table_put_stored(w.table, place->stream, &from));
    s_assert_rows(&w, NULL);
    s_close(&w);
}

void store_check(const place_t *place)
{
    for (uint32_t frames = 1; frames <= 4; frames++)
        s_check_rows(place, frames);
    s_check_order(place);
    s_check_refusals(place);
}
