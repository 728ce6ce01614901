/*  Reading units: rows, bootstrap frames, stacks; and where their frames are kept elsewhere. */
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "learner/replay/parts.h"
#include "learner/replay/places.h"

enum { GROUP = 32 };

/*  A frame and the rows that its stack goes back to. */
typedef struct {
    const uint8_t *record; /* a final, or the tip; NULL: it is a row                            */
    past_place_t place;    /* that row; the row before the record                               */
    uint32_t since;        /* frames of its episode before it, SINCE_MAX at most, or one more   */
    uint32_t kept;         /* the record's number, places.h                                     */
} frame_t;

static bool s_is_oldest(const past_t *past, past_place_t place)
{
    return place.in->batch == past->first && place.at < past->cfg.N;
}

/*  Frames of its episode before a row. Of sequences rows are read whose stack is not held: the oldest, and those of an env that broke in
 *  the middle of an episode. It shows what there is. */
static uint32_t s_since(const past_t *past, past_place_t place)
{
    const uint32_t since = place.in->since[place.at];
    uint32_t held = 0;
    if (!past->cfg.length)
        return since;
    while (held < since && held + 1 < past->cfg.stack && !s_is_oldest(past, place)) {
        place = past_before(past, place);
        if (place.in->mark[place.at] & ROW_ENDS)
            break;
        held++;
    }
    return held;
}

static frame_t s_row(const past_t *past, past_place_t place)
{
    return (frame_t){NULL, place, s_since(past, place), 0};
}

static frame_t s_final(const past_t *past, past_place_t place)
{
    const uint32_t k = past_final_number(place.in, place.at), since = s_since(past, place) + 1;
    return (frame_t){past_final(past, place.in, k), place, since, places_final(past, place.in, k)};
}

/*  Behind the newest row of the env, with which its episode may have ended. */
static frame_t s_tip(const past_t *past, past_place_t place, uint32_t env)
{
    const uint32_t since = place.in->mark[place.at] & ROW_ENDS ? 0 : s_since(past, place) + 1;
    return (frame_t){past->tip + env * past->record, place, since, places_tip(env)};
}

/*  Where a unit's bootstrap frame is. */
static frame_t s_next(const replay_t *self, past_place_t at, uint32_t env)
{
    const past_t *past = &self->past;
    units_reach_t reach;
    units_reach(&self->units, at, &reach);
    if (reach.mark & ROW_TERMINATED)
        return s_row(past, reach.place);
    if (reach.mark & ROW_CUT)
        return s_final(past, reach.place);
    return past_is_newest(past, reach.place) ? s_tip(past, reach.place, env)
                                             : s_row(past, past_after(past, reach.place));
}

static bool s_held(const past_t *past, uint64_t clock)
{
    return clock >= past_oldest(past) && clock < past_end(past);
}

/*  Does it say what came after the newest row? */
static bool s_is_tip(const past_t *past, uint64_t clock)
{
    return past->first < past->next && clock == past_end(past);
}

/*  Of any row, so long as what is asked for is there. */
static frame_t s_frame_of_sequence(const replay_t *self, past_place_t place, uint32_t env, replay_frame_t which)
{
    const past_t *past = &self->past;
    if (which == REPLAY_AT)
        return s_row(past, place);
    if (which == REPLAY_FINAL) {
        TT_CHECK(place.in->mark[place.at] & ROW_CUT);
        return s_final(past, place);
    }
    const bool complete = units_complete(&self->units, place);
    TT_CHECK(complete);
    return s_next(self, place, env);
}

static frame_t s_frame(const replay_t *self, uint64_t unit, replay_frame_t which)
{
    const past_t *past = &self->past;
    const uint64_t clock = unit / past->cfg.N;
    const uint32_t env = (uint32_t)(unit % past->cfg.N);
    if (past->cfg.length && which == REPLAY_AT && s_is_tip(past, clock))
        return s_tip(past, past_place(past, clock - 1, env), env);
    const bool held = s_held(past, clock);
    TT_CHECK(held);
    const past_place_t place = past_place(past, clock, env);
    if (past->cfg.length)
        return s_frame_of_sequence(self, place, env, which);
    TT_CHECK((place.in->mark[place.at] & ROW_ALIVE) && which != REPLAY_FINAL);
    return which == REPLAY_AT ? s_row(past, place) : s_next(self, place, env);
}

static const uint8_t *s_value(const past_t *past, const frame_t *frame, uint32_t column)
{
    if (frame->record)
        return frame->record + past->record_at[column];
    return past_value(past, frame->place, column);
}

void replay_row(const replay_t *self, uint64_t unit, replay_frame_t which, const void *column[TT_COLUMNS_MAX])
{
    const past_t *past = &self->past;
    const frame_t frame = s_frame(self, unit, which);
    for (uint32_t c = 0; c < past->cfg.columns->count; c++) {
        const bool row = which == REPLAY_AT && !frame.record;
        const bool there = row ? past_stores(past, c) : past_keeps(past, c);
        column[c] = there ? s_value(past, &frame, c) : NULL;
    }
}

/*  How many frames a stack shows before the frame itself. */
static uint32_t s_back(const past_t *past, const frame_t *frame)
{
    const uint32_t most = past->cfg.stack - 1;
    return frame->since < most ? frame->since : most;
}

/*  The row that is one frame further back than `place` is; before a record that is `place` itself. */
static past_place_t s_before(const past_t *past, const frame_t *frame, past_place_t place, uint32_t k)
{
    return k == 1 && frame->record ? place : past_before(past, place);
}

/*  Frames from the newest, at the end, back; then what stands for those that never were. */
static void s_stack(const past_t *past, const frame_t *frame, uint32_t column, uint8_t *out)
{
    const uint32_t stack = past->cfg.stack, back = s_back(past, frame);
    const size_t bytes = past->cfg.columns->at[column].bytes;
    memcpy(out + (stack - 1) * bytes, s_value(past, frame, column), bytes);
    past_place_t place = frame->place;
    for (uint32_t k = 1; k <= back; k++) {
        place = s_before(past, frame, place, k);
        memcpy(out + (stack - 1 - k) * bytes, past_value(past, place, column), bytes);
    }
    const uint8_t *first = out + (stack - 1 - back) * bytes;
    for (uint32_t k = back + 1; k < stack; k++) {
        uint8_t *to = out + (stack - 1 - k) * bytes;
        if (past->cfg.pad == TT_PAD_RESET)
            memcpy(to, first, bytes);
        else
            memset(to, 0, bytes);
    }
}

/*  First where they all are, so that the memory of many is on its way at once. */
static void s_gather_group(const replay_t *self, const uint64_t *unit, uint32_t count, replay_frame_t which,
    uint32_t column, uint8_t *out, uint32_t stack)
{
    const size_t bytes = self->past.cfg.columns->at[column].bytes;
    const uint8_t *value[GROUP];
    frame_t frame[GROUP];
    const bool kept = past_keeps(&self->past, column);
    for (uint32_t i = 0; i < count; i++) {
        frame[i] = s_frame(self, unit[i], which);
        TT_CHECK(!frame[i].record || kept);
        value[i] = s_value(&self->past, &frame[i], column);
        __builtin_prefetch(value[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (stack > 1)
            s_stack(&self->past, &frame[i], column, out + i * stack * bytes);
        else
            memcpy(out + i * bytes, value[i], bytes);
    }
}

void replay_gather(
    const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t which, uint32_t column, void *out)
{
    const past_t *past = &self->past;
    const bool there = which == REPLAY_AT ? past_stores(past, column) : past_keeps(past, column);
    TT_CHECK(there);
    const size_t bytes = past->cfg.columns->at[column].bytes;
    const uint32_t stack = column == past->cfg.stacked ? past->cfg.stack : 1;
    for (uint32_t i = 0; i < units; i += GROUP)
        s_gather_group(self, unit + i, units - i < GROUP ? units - i : GROUP, which, column,
            (uint8_t *)out + i * stack * bytes, stack);
}

/*  How frames are made into rows. */
typedef struct {
    const past_t *past;
    const tt_norm_t *norm; /* NULL: nothing is scaled                               */
    float clip;
    float *floats; /* [2][scaled]                                           */
    char *room;    /* [stack][columns->frame], for those that are not read where they lie */
} reader_t;

static void s_scale(const reader_t *self, const void *const *column, void *frame)
{
    const tt_columns_t *columns = self->past->cfg.columns;
    float *scaled = self->floats + columns->scaled;
    tt_columns_scaled(columns, column, self->floats);
    tt_norm_scale(self->norm, self->floats, 1, self->clip, scaled);
    tt_columns_put_scaled(columns, scaled, frame);
}

/*  A frame as a network reads it: where it is stored, if it lies there as that, else made in room k. */
static const void *s_read(const reader_t *self, const frame_t *frame, uint32_t k)
{
    const tt_columns_t *columns = self->past->cfg.columns;
    const void *column[TT_COLUMNS_MAX];
    char *room = self->room + (size_t)k * columns->frame;
    for (uint32_t c = 0; c < columns->obs_count; c++)
        column[c] = s_value(self->past, frame, c);
    if (tt_columns_plain(columns) && !self->norm)
        return column[0];
    if (!tt_columns_plain(columns))
        tt_columns_read(columns, column, room);
    if (self->norm)
        s_scale(self, column, room);
    return room;
}

/*  One row of a network. */
static void s_gather_row(const reader_t *self, const frame_t *frame, void *out)
{
    const past_t *past = self->past;
    const tt_columns_t *columns = past->cfg.columns;
    const uint32_t stack = past->cfg.stack, back = s_back(past, frame);
    const void *list[TT_STACK_MAX];
    frame_t at = *frame;
    list[stack - 1] = s_read(self, &at, 0);
    for (uint32_t k = 1; k <= back; k++) {
        at = (frame_t){NULL, s_before(past, frame, at.place, k), 0, 0};
        list[stack - 1 - k] = s_read(self, &at, k);
    }
    tt_stack_pad(&columns->stack, list, back, columns->zero);
    tt_stack_row(&columns->stack, list, out);
}

/*  One after the other. */
static void s_gather_all(
    reader_t *self, const replay_t *replay, const uint64_t *unit, uint32_t units, replay_frame_t which, char *out)
{
    const tt_columns_t *columns = self->past->cfg.columns;
    for (uint32_t c = 0; c < columns->obs_count; c++) {
        const bool there = past_keeps(self->past, c);
        TT_CHECK(there);
    }
    self->room = tt_aligned0(tt_mul(self->past->cfg.stack, columns->frame));
    self->floats = tt_array0(columns->scaled, 2 * sizeof *self->floats);
    for (uint32_t i = 0; i < units; i++) {
        const frame_t frame = s_frame(replay, unit[i], which);
        s_gather_row(self, &frame, out + (size_t)i * columns->row);
    }
    free(self->room);
    free(self->floats);
}

void replay_gather_scaled(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t which,
    const tt_norm_t *norm, float clip, void *out)
{
    const past_t *past = &self->past;
    const tt_columns_t *columns = past->cfg.columns;
    reader_t reader = {.past = past, .norm = columns->scaled ? norm : NULL, .clip = clip};
    TT_CHECK(past->cfg.stack == columns->stack.frames);
    if (!tt_columns_plain(columns) || past->cfg.stack > 1) {
        s_gather_all(&reader, self, unit, units, which, out);
        return;
    }
    replay_gather(self, unit, units, which, 0, out);
    if (reader.norm)
        tt_norm_scale(norm, out, units, clip, out);
}

void replay_gather_rows(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t which, void *out)
{
    replay_gather_scaled(self, unit, units, which, NULL, 0, out);
}

/* ---- sequences -------------------------------------------------------------------------------------------------------- */

const float *replay_carried(const replay_t *self, uint64_t unit)
{
    const past_t *past = &self->past;
    const uint64_t clock = unit / past->cfg.N;
    const bool first = s_held(past, clock) && clock % past->cfg.T == 0;
    TT_CHECK(first && past->cfg.carry);
    return past_place(past, clock, 0).in->carry + unit % past->cfg.N * past->cfg.carry;
}

/*  Of what came after the newest row, its end says it. */
bool replay_begins(const replay_t *self, uint64_t row)
{
    const past_t *past = &self->past;
    const uint64_t clock = row / past->cfg.N;
    const uint32_t env = (uint32_t)(row % past->cfg.N);
    if (s_is_tip(past, clock)) {
        const past_place_t last = past_place(past, clock - 1, env);
        return last.in->mark[last.at] & ROW_ENDS;
    }
    const bool held = s_held(past, clock);
    TT_CHECK(held);
    const past_place_t place = past_place(past, clock, env);
    return place.in->since[place.at] == 0;
}

/* ---- where they are kept elsewhere ------------------------------------------------------------------------------------ */

/*  As s_gather_row makes a row. */
static void s_places(const past_t *past, const frame_t *frame, uint32_t *out)
{
    const uint32_t stack = past->cfg.stack, back = s_back(past, frame), first = stack - 1 - back;
    past_place_t place = frame->place;
    out[stack - 1] = frame->record ? frame->kept : places_row(past, place);
    for (uint32_t k = 1; k <= back; k++) {
        place = s_before(past, frame, place, k);
        out[stack - 1 - k] = places_row(past, place);
    }
    for (uint32_t k = 0; k < first; k++)
        out[k] = past->cfg.pad == TT_PAD_ZERO ? 0 : out[first];
}

void replay_places(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t which, uint32_t *place)
{
    const past_t *past = &self->past;
    TT_CHECK(past->cfg.stack == past->cfg.columns->stack.frames);
    for (uint32_t i = 0; i < units; i++) {
        const frame_t frame = s_frame(self, unit[i], which);
        s_places(past, &frame, place + (size_t)i * past->cfg.stack);
    }
}
