#include "learner/replay/places.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"

enum { ROOM = 256 << 10 }; /* bytes of frames that are read at once */

/* ---- how many ------------------------------------------------------------------------------------------------------- */

/*  In so many batches: no row has two finals, and the capacity counts both. */
static uint64_t s_frames(const past_t *self, uint64_t batches)
{
    const uint64_t rows = batches * self->cfg.T * self->cfg.N, left = self->cfg.capacity - batches * self->batch_bytes;
    return rows + (left / rows < self->final_bytes ? left / self->final_bytes : rows);
}

/*  A final takes fewer bytes than a row. So the most frames are in as many batches as fit with a final for each row, or in one
 *  more with as many finals as fit; one batch stays whatever it has. */
uint64_t places_most(const past_t *self)
{
    const uint64_t rows = (uint64_t)self->cfg.T * self->cfg.N;
    const uint64_t full = self->cfg.capacity / (self->batch_bytes + rows * self->final_bytes);
    const uint64_t least = (full ? full : 1) * 2 * rows, more = full < self->room ? s_frames(self, full + 1) : 0;
    return more > least ? more : least;
}

uint32_t replay_places_count(const replay_t *self)
{
    return (uint32_t)(1 + self->past.cfg.N + self->past.places);
}

uint64_t replay_places_of(const replay_cfg_t *cfg)
{
    past_t past;
    return past_measure(&past, cfg) == TT_OK ? 1 + past.cfg.N + past.places : 0;
}

/* ---- what is there -------------------------------------------------------------------------------------------------- */

/*  Frames one after the other, column by column. */
typedef struct {
    const uint8_t *column[TT_COLUMNS_MAX];
    size_t step[TT_COLUMNS_MAX];
} run_t;

typedef struct {
    const past_t *past;
    replay_put_fn put;
    void *ctx;
    char *room; /* [frames], for those that do not lie as they are read */
    uint32_t frames;
} show_t;

static run_t s_rows(const past_t *past, const past_batch_t *batch)
{
    run_t run = {.column = {NULL}};
    for (uint32_t c = 0; c < past->cfg.columns->obs_count; c++) {
        run.column[c] = batch->column[c];
        run.step[c] = past->cfg.columns->at[c].bytes;
    }
    return run;
}

static run_t s_records(const past_t *past, const uint8_t *record)
{
    run_t run = {.column = {NULL}};
    for (uint32_t c = 0; c < past->cfg.columns->obs_count; c++) {
        run.column[c] = record + past->record_at[c];
        run.step[c] = past->record;
    }
    return run;
}

static void s_read(const tt_columns_t *columns, const run_t *run, size_t i, void *out)
{
    const void *column[TT_COLUMNS_MAX];
    for (uint32_t c = 0; c < columns->obs_count; c++)
        column[c] = run->column[c] + i * run->step[c];
    tt_columns_read(columns, column, out);
}

/*  Frames from number i of a run on, to places side by side. */
static tt_status_t s_show(const show_t *self, const run_t *run, size_t i, uint32_t count, uint32_t place)
{
    const tt_columns_t *columns = self->past->cfg.columns;
    const size_t bytes = columns->frame;
    if (tt_columns_plain(columns) && run->step[0] == bytes)
        return count ? self->put(self->ctx, place, run->column[0] + i * bytes, count) : TT_OK;
    while (count) {
        const uint32_t now = count < self->frames ? count : self->frames;
        for (uint32_t k = 0; k < now; k++)
            s_read(columns, run, i + k, self->room + k * bytes);
        TT_TRY(self->put(self->ctx, place, self->room, now));
        i += now;
        place += now;
        count -= now;
    }
    return TT_OK;
}

/*  A whole run to the ring, from `at` on and round its end. */
static tt_status_t s_show_round(const show_t *self, const run_t *run, uint32_t count, uint64_t at)
{
    const uint32_t first = 1 + self->past->cfg.N;
    const uint64_t end = self->past->places - at;
    const uint32_t before = count < end ? count : (uint32_t)end;
    TT_TRY(s_show(self, run, 0, before, first + (uint32_t)at));
    return s_show(self, run, before, count - before, first);
}

static tt_status_t s_show_finals(const show_t *self, const past_batch_t *batch)
{
    const past_t *past = self->past;
    const run_t run = s_records(past, batch->final);
    return s_show_round(self, &run, batch->finals, places_after(past, batch, (uint64_t)past->cfg.T * past->cfg.N));
}

static tt_status_t s_show_rows(const show_t *self, const past_batch_t *batch)
{
    const run_t run = s_rows(self->past, batch);
    return s_show_round(self, &run, self->past->cfg.T * self->past->cfg.N, batch->place);
}

static tt_status_t s_show_all(const show_t *self, uint64_t from)
{
    const past_t *past = self->past;
    if (past->cfg.columns->zero && from == 0)
        TT_TRY(self->put(self->ctx, 0, past->cfg.columns->zero, 1));
    if (past->first == past->next)
        return TT_OK;
    if (from > past->first)
        TT_TRY(s_show_finals(self, past_batch(past, from - 1)));
    for (uint64_t b = from > past->first ? from : past->first; b < past->next; b++) {
        TT_TRY(s_show_rows(self, past_batch(past, b)));
        TT_TRY(s_show_finals(self, past_batch(past, b)));
    }
    const run_t tip = s_records(past, past->tip);
    return s_show(self, &tip, 0, past->cfg.N, places_tip(0));
}

tt_status_t replay_show(const replay_t *self, uint64_t from, replay_put_fn put, void *ctx)
{
    const past_t *past = &self->past;
    const tt_columns_t *columns = past->cfg.columns;
    TT_CHECK(from <= past->next);
    for (uint32_t c = 0; c < columns->obs_count; c++) {
        const bool there = past_keeps(past, c);
        TT_CHECK(there);
    }
    show_t show = {.past = past, .put = put, .ctx = ctx, .frames = ROOM / columns->frame + 1};
    show.room = tt_aligned0(tt_mul(show.frames, columns->frame));
    const tt_status_t status = s_show_all(&show, from);
    free(show.room);
    return status;
}
