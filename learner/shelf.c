#include "learner/shelf.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

/*  Of a frame of units: what a device is told. */
typedef struct {
    uint32_t *place; /* [room][stack] */
    size_t room;
    tt_scale_t scale;
} rows_t;

struct shelf {
    const tt_columns_t *columns;
    tt_store_t *store;
    uint64_t bytes;
    rows_t rows[REPLAY_NEXT + 1];
};

uint64_t shelf_needs(const replay_t *replay, const tt_columns_t *columns)
{
    return (uint64_t)replay_places_count(replay) * columns->frame;
}

/*  The columns of floats, as tt_columns_scaled goes through them. */
static void s_find_floats(const tt_columns_t *columns, tt_scale_t *out)
{
    for (uint32_t c = 0; c < columns->obs_count; c++) {
        if (columns->at[c].dtype != TT_F32)
            continue;
        out->run[out->runs].at = columns->at[c].at;
        out->run[out->runs++].count = columns->at[c].elements;
    }
    out->but = columns->zero ? 0 : UINT32_MAX;
}

tt_status_t shelf_new(shelf_t **self_p, const replay_t *like, const tt_columns_t *columns, tt_device_t *device)
{
    tt_store_t *store = NULL;
    TT_TRY(tt_store_new(&store, device, columns->frame, replay_places_count(like)));
    shelf_t *self = tt_new0(sizeof *self);
    self->columns = columns;
    self->store = store;
    self->bytes = shelf_needs(like, columns);
    for (int f = REPLAY_AT; f <= REPLAY_NEXT; f++)
        s_find_floats(columns, &self->rows[f].scale);
    *self_p = self;
    return TT_OK;
}

void shelf_destroy(shelf_t **self_p)
{
    shelf_t *self = *self_p;
    if (!self)
        return;
    tt_store_destroy(&self->store);
    for (int f = REPLAY_AT; f <= REPLAY_NEXT; f++)
        free(self->rows[f].place);
    free(self);
    *self_p = NULL;
}

uint64_t shelf_bytes(const shelf_t *self)
{
    return self->bytes;
}

/* ---- in --------------------------------------------------------------------------------------------------------------- */

typedef struct {
    shelf_t *shelf;
    tt_stream_t *stream;
} put_t;

/*  Frames are lent for the call. */
static tt_status_t s_put(void *ctx, uint32_t first, const void *frames, uint32_t count)
{
    const put_t *put = ctx;
    TT_TRY(tt_store_put(put->shelf->store, put->stream, first, frames, count));
    tt_stream_let_go(put->stream);
    return TT_OK;
}

tt_status_t shelf_follow(shelf_t *self, const replay_t *replay, tt_stream_t *stream, uint64_t from)
{
    put_t put = {self, stream};
    return replay_show(replay, from, s_put, &put);
}

/* ---- out -------------------------------------------------------------------------------------------------------------- */

static void s_need_room(rows_t *rows, size_t places)
{
    if (rows->room >= places)
        return;
    free(rows->place);
    rows->place = tt_array0(places, sizeof *rows->place);
    rows->room = places;
}

/*  So many rows, of frames that are there. */
static void s_blank(const shelf_t *self, rows_t *rows, size_t count)
{
    const size_t places = tt_mul(count, self->columns->stack.frames);
    s_need_room(rows, places);
    memset(rows->place, 0, places * sizeof *rows->place);
}

/*  Where rows go. */
typedef struct {
    rows_t *rows;
    size_t at;
} place_t;

static void s_place(const shelf_t *self, const replay_t *replay, const uint64_t *row, uint32_t rows,
    replay_frame_t frame, const place_t *to)
{
    replay_places(replay, row, rows, frame, to->rows->place + to->at * self->columns->stack.frames);
}

static tt_stored_t s_stored(const shelf_t *self, rows_t *rows, size_t count, const tt_norm_t *norm, float clip)
{
    if (norm) {
        rows->scale.mean = tt_norm_means(norm);
        rows->scale.inv = tt_norm_invs(norm);
        rows->scale.clip = clip;
    }
    return (tt_stored_t){.store = self->store,
        .stack = &self->columns->stack,
        .place = rows->place,
        .scale = norm && rows->scale.runs ? &rows->scale : NULL,
        .count = count};
}

void shelf_rows(shelf_t *self, const replay_t *replay, const shelf_units_t *units, replay_frame_t frame,
    const tt_norm_t *norm, float clip, tt_stored_t *out)
{
    rows_t *rows = &self->rows[frame];
    s_blank(self, rows, units->count);
    s_place(self, replay, units->unit + units->lo, units->hi - units->lo, frame, &(place_t){rows, units->lo});
    *out = s_stored(self, rows, units->count, norm, clip);
}

void shelf_sequences(shelf_t *self, const replay_t *replay, const sequences_t *sequences, const tt_norm_t *norm,
    float clip, tt_stored_t *out)
{
    rows_t *rows = &self->rows[REPLAY_AT];
    const size_t finals = sequences_rows(sequences), count = finals + sequences->finals;
    s_blank(self, rows, count);
    for (uint32_t block = 0; block < sequences->frames; block++) {
        const size_t at = (size_t)block * sequences->units + sequences->lo;
        s_place(self, replay, sequences->row + at, sequences->hi - sequences->lo, REPLAY_AT, &(place_t){rows, at});
    }
    s_place(self, replay, sequences->final, sequences->finals, REPLAY_FINAL, &(place_t){rows, finals});
    *out = s_stored(self, rows, count, norm, clip);
}
