#include "tests/nn/store_fixture.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/scale.h"

/*  A frame: BYTES bytes, then FLOATS floats, and once more two floats. */
enum { BYTES = 8, FLOATS = 6, MORE = 2, FRAME = BYTES + 4 * (FLOATS + MORE), PLACES = 23, ROWS = 37 };
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
    bool moves; /* is the picture shifted? */
    tt_shift_t shift;
    int8_t by[ROWS][2];
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
    return (tt_stored_t){.store = w->store,
        .stack = &w->stack,
        .place = w->list,
        .scale = scale,
        .shift = w->moves ? &w->shift : NULL,
        .count = ROWS};
}

static uint32_t s_nearest(uint32_t place, int8_t by, uint32_t count)
{
    const int at = (int)place + by;
    return at < 0 ? 0 : at < (int)count ? (uint32_t)at : count - 1;
}

/*  The picture of row r, place by place. */
static void s_move(const world_t *w, uint32_t r, uint8_t *row)
{
    const tt_shift_t *shift = &w->shift;
    uint8_t was[TT_STACK_MAX * FRAME];
    memcpy(was, row, sizeof was);
    for (uint32_t line = 0; line < shift->planes * shift->height; line++)
        for (uint32_t x = 0; x < shift->width; x++) {
            const uint32_t y = line % shift->height, from_y = line - y + s_nearest(y, w->by[r][0], shift->height),
                           from_x = s_nearest(x, w->by[r][1], shift->width);
            memcpy(row + shift->at + (line * shift->width + x) * shift->place,
                was + shift->at + (from_y * shift->width + from_x) * shift->place, shift->place);
        }
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
    if (w->moves)
        s_move(w, r, row);
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

/*  Which part is a picture, and of what, in a frame. */
typedef struct {
    uint32_t part, planes, height, width, place;
} picture_t;

static void s_set_picture(world_t *w, const picture_t *picture)
{
    w->moves = true;
    w->shift = (tt_shift_t){.at = w->stack.part[picture->part].to,
        .planes = picture->planes * w->frames,
        .height = picture->height,
        .width = picture->width,
        .place = picture->place,
        .by = (const int8_t(*)[2])w->by};
}

/*  Some rows stay, some go farther than the picture is wide. */
static void s_choose_shifts(world_t *w, uint32_t turn)
{
    for (uint32_t r = 0; r < ROWS; r++) {
        w->by[r][0] = (int8_t)((int)((r * 5 + turn) % 9) - 4);
        w->by[r][1] = (int8_t)((int)((r / 3 + turn * 2) % 7) - 3);
    }
    w->by[1][0] = w->by[1][1] = 0;
}

/*  Pictures of bytes and floats, of one and of several numbers a place, before, between and behind what stays; scaled and not. */
static void s_check_shifts(const place_t *place, uint32_t frames)
{
    static const picture_t pictures[] = {{0, 1, 2, 4, 1}, {0, 2, 2, 2, 1}, {0, 1, 2, 2, 2}, {0, 1, 1, 2, 4},
        {1, 1, 2, 3, 4}, {1, 2, 3, 1, 4}, {1, 1, 3, 1, 8}, {2, 1, 1, 2, 4}};
    static world_t w;
    s_open(&w, place, frames);
    s_put(&w, 0, PLACES, frames);
    tt_scale_t scale = s_scale(&w);
    scale.runs = 2;
    scale.run[0] = (__typeof__(scale.run[0])){BYTES, FLOATS};
    scale.run[1] = scale.run[2];
    for (uint32_t turn = 0; turn < 2 * TT_COUNT(pictures); turn++) {
        const tt_scale_t *by = turn % 2 ? &scale : NULL;
        s_set_picture(&w, &pictures[turn / 2]);
        s_choose(&w, turn);
        s_choose_shifts(&w, turn);
        const tt_stored_t from = s_stored(&w, by);
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
    s_assert_refused(&w, &from, "floats at bytes 16 to 36");
    scale.run[1].count--;
    scale.run[0] = (__typeof__(scale.run[0])){BYTES + 2, 1};
    s_assert_refused(&w, &from, "floats at byte");
    from.scale = NULL;
    assert_ok(tt_table_put_stored(w.table, place->stream, &from));
    s_assert_rows(&w, NULL);
    s_close(&w);
}

/*  A picture with one thing wrong. */
static void s_refuse_picture(world_t *w, const tt_scale_t *scale, picture_t picture, uint32_t at)
{
    s_set_picture(w, &picture);
    w->shift.at += at;
    const tt_stored_t from = s_stored(w, scale);
    s_assert_refused(w, &from, "is no part of rows");
}

static void s_check_refused_shifts(const place_t *place, uint32_t frames)
{
    static world_t w;
    s_open(&w, place, frames);
    s_put(&w, 0, PLACES, 0);
    s_choose(&w, 0);
    s_choose_shifts(&w, 0);
    tt_scale_t scale = s_scale(&w); /* two runs in the part of floats */
    s_refuse_picture(&w, NULL, (picture_t){0, 1, 0, 4, 1}, 0);
    s_refuse_picture(&w, NULL, (picture_t){2, 1, 1, 3, 4}, 0);
    s_refuse_picture(&w, NULL, (picture_t){2, 1, 1, 2, 4}, 4);
    s_refuse_picture(&w, NULL, (picture_t){0, 1, 2, 4, 1}, UINT32_MAX);
    s_refuse_picture(&w, &scale, (picture_t){1, 1, 2, 3, 4}, 0);
    scale.runs = 1; /* the one that begins with the picture */
    s_refuse_picture(&w, &scale, (picture_t){1, 1, 2, 3, 4}, 0);
    scale.run[0].count = FLOATS; /* whole, but two to each of its places */
    s_refuse_picture(&w, &scale, (picture_t){1, 1, 2, 6, 2}, 0);
    if (frames > 1)
        s_refuse_picture(&w, NULL, (picture_t){0, 1, 2, 3, 1}, 0);
    w.shift.planes = 1; /* of no frame more than of another */
    w.shift.height = 2;
    w.shift.width = 2 * frames;
    w.shift.place = 2;
    const tt_stored_t from = s_stored(&w, NULL);
    if (frames > 1)
        s_assert_refused(&w, &from, "is no part of rows");
    w.moves = false;
    const tt_stored_t fine = s_stored(&w, NULL);
    assert_ok(tt_table_put_stored(w.table, place->stream, &fine));
    s_assert_rows(&w, NULL);
    s_close(&w);
}

void store_check(const place_t *place)
{
    for (uint32_t frames = 1; frames <= 4; frames++) {
        s_check_rows(place, frames);
        s_check_shifts(place, frames);
        s_check_refused_shifts(place, frames);
    }
    s_check_order(place);
    s_check_refusals(place);
}
