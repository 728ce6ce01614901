#include "common/rl/columns.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"

static tt_dtype_t s_stored(const tt_space_t *leaf)
{
    if (leaf->kind == TT_SPACE_MULTI_BINARY)
        return TT_U8;
    if (leaf->kind != TT_SPACE_BOX)
        return TT_I32;
    return leaf->dtype == TT_F64 ? TT_F32 : leaf->dtype == TT_BOOL ? TT_U8 : leaf->dtype;
}

static uint32_t s_size(tt_dtype_t dtype)
{
    return dtype == TT_U8 ? 1 : dtype == TT_I64 ? 8 : 4;
}

/* ---- the list ------------------------------------------------------------------------------------------------------ */

static tt_status_t s_add(tt_columns_t *self, const char *name, tt_column_t column)
{
    if (self->count == TT_COLUMNS_MAX)
        return tt_err(TT_INVALID, "%s: a row has more than %d columns", name, TT_COLUMNS_MAX);
    if (strlen(name) >= sizeof column.name)
        return tt_err(TT_INVALID, "%s: the name of a column is at most %zu bytes", name, sizeof column.name - 1);
    memcpy(column.name, name, strlen(name));
    column.elements = 1;
    for (uint32_t i = 0; i < column.rank; i++)
        column.elements *= column.shape[i];
    column.bytes = column.elements * s_size(column.dtype);
    if (!column.choice)
        column.flat = column.elements;
    uint64_t row = column.bytes;
    for (uint32_t c = 0; c < self->count; c++)
        row += self->at[c].bytes;
    if (row > TT_ROW_MAX)
        return tt_err(TT_INVALID, "%s: a row is more than %d MiB", name, TT_ROW_MAX >> 20);
    self->at[self->count++] = column;
    return TT_OK;
}

static void s_put_choices(tt_columns_t *self, const tt_space_t *leaf, tt_column_t *column, uint32_t *room)
{
    const uint32_t elements = tt_space_elements(leaf);
    column->choice = true;
    column->first = *room;
    self->choices = tt_realloc(self->choices, tt_mul(*room + elements, sizeof *self->choices));
    for (uint32_t i = 0; i < elements; i++) {
        const uint32_t n = leaf->n ? (uint32_t)leaf->n[i] : 2; /* multi-binary: off or on */
        self->choices[*room + i] = n;
        column->flat += n;
    }
    *room += elements;
}

/*  "action.move.0": what a leaf is called, below what its space is called. */
typedef struct {
    tt_columns_t *columns;
    bool action;
    uint32_t room; /* of choices, in use */
} s_maker_t;

static tt_status_t s_add_leaf(s_maker_t *self, const tt_space_t *leaf, const char *name)
{
    tt_column_t column = {.dtype = s_stored(leaf), .keep = !self->action};
    if (leaf->kind != TT_SPACE_DISCRETE) {
        column.rank = leaf->rank;
        memcpy(column.shape, leaf->shape, sizeof column.shape);
    }
    /* bits are numbers to look at, and choices to make */
    if (leaf->n || (leaf->kind == TT_SPACE_MULTI_BINARY && self->action))
        s_put_choices(self->columns, leaf, &column, &self->room);
    return s_add(self->columns, name, column);
}

static tt_status_t s_add_space(s_maker_t *self, const tt_space_t *space, const char *name)
{
    if (space->kind != TT_SPACE_DICT && space->kind != TT_SPACE_TUPLE)
        return s_add_leaf(self, space, name);
    for (uint32_t i = 0; i < space->parts; i++) {
        char path[TT_COLUMN_NAME + TT_SPACE_KEY_MAX + 16];
        if (space->kind == TT_SPACE_DICT)
            snprintf(path, sizeof path, "%.64s.%s", name, space->part[i].key);
        else
            snprintf(path, sizeof path, "%.64s.%u", name, i);
        TT_TRY(s_add_space(self, &space->part[i], path));
    }
    return TT_OK;
}

static tt_status_t s_add_mask(s_maker_t *self, const tt_space_t *action)
{
    const tt_space_t *leaf[TT_COLUMNS_MAX];
    const uint32_t leaves = tt_space_leaves(action, leaf, TT_COLUMNS_MAX);
    uint64_t bits = 0;
    for (uint32_t l = 0; l < leaves && l < TT_COLUMNS_MAX; l++)
        for (uint32_t i = 0; leaf[l]->kind != TT_SPACE_BOX && i < tt_space_elements(leaf[l]); i++)
            bits += leaf[l]->n ? (uint64_t)leaf[l]->n[i] : 2;
    if (bits == 0 || bits > TT_CHOICES_MAX)
        return tt_err(
            TT_INVALID, "mask: %llu choices in an action, must be 1 to %d", (unsigned long long)bits, TT_CHOICES_MAX);
    self->columns->mask = (int)self->columns->count;
    self->columns->mask_bits = (uint32_t)bits;
    return s_add(
        self->columns, "mask", (tt_column_t){.dtype = TT_U8, .rank = 1, .shape = {(uint32_t)bits}, .keep = true});
}

static tt_status_t s_add_rest(tt_columns_t *self, bool estimates)
{
    const tt_column_t number = {.dtype = TT_F32}, flag = {.dtype = TT_U8}, kept = {.dtype = TT_F32, .keep = true};
    self->reward = self->count;
    TT_TRY(s_add(self, "reward", number));
    self->terminated = self->count;
    TT_TRY(s_add(self, "terminated", flag));
    self->truncated = self->count;
    TT_TRY(s_add(self, "truncated", flag));
    self->log_prob = self->value = -1;
    if (!estimates)
        return TT_OK;
    self->log_prob = (int)self->count;
    TT_TRY(s_add(self, "log_prob", number));
    self->value = (int)self->count;
    return s_add(self, "value", kept);
}

/*  FNV-1a over what a reader of rows has to know, number by number in little-endian bytes. */
static uint64_t s_mix(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size--; at++)
        hash = (hash ^ *at) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t s_hash(const tt_columns_t *self)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t c = 0; c < self->count; c++) {
        const tt_column_t *column = &self->at[c];
        const uint32_t words[] = {(uint32_t)column->dtype, column->rank, column->keep, column->choice};
        hash = s_mix(hash, column->name, strlen(column->name) + 1);
        hash = s_mix(hash, words, sizeof words);
        hash = s_mix(hash, column->shape, column->rank * sizeof *column->shape);
        if (column->choice)
            hash = s_mix(hash, self->choices + column->first, column->elements * sizeof *self->choices);
    }
    const uint32_t stack[] = {self->stack.frames, (uint32_t)self->stack.pad};
    if (self->stack.frames > 1)
        hash = s_mix(hash, stack, sizeof stack);
    return self->carry ? s_mix(hash, &self->carry, sizeof self->carry) : hash;
}

static uint32_t s_round(uint32_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

/*  Where a frame, and a network's row, have which column. TT_INVALID: the row is too large. */
static tt_status_t s_lay_row(tt_columns_t *self)
{
    uint64_t row = 0;
    for (uint32_t c = 0; c < self->obs_count; c++) {
        tt_column_t *column = &self->at[c];
        const uint32_t bytes = column->flat * (uint32_t)(tt_column_is_bytes(column) ? 1 : sizeof(float));
        row = (row + 3) / 4 * 4;
        if (self->stack.frames > 1 && row + (uint64_t)self->stack.frames * bytes > TT_ROW_MAX)
            return tt_err(
                TT_INVALID, "%s: %u frames are more than %d MiB", column->name, self->stack.frames, TT_ROW_MAX >> 20);
        column->at = s_round(self->frame);
        self->frame = column->at + bytes;
        self->stack.part[self->stack.parts++] = (tt_stack_part_t){column->at, (uint32_t)row, bytes};
        row += (uint64_t)self->stack.frames * bytes;
        self->flat += self->stack.frames * column->flat;
        self->scaled += column->dtype == TT_F32 ? column->elements : 0;
    }
    self->row = (uint32_t)row;
    if (self->obs_count > 1) {
        self->frame = s_round(self->frame);
        self->row = s_round(self->row);
    }
    return TT_OK;
}

static void s_make_zero(tt_columns_t *self)
{
    const void *column[TT_COLUMNS_MAX];
    uint32_t most = 0;
    if (self->stack.frames == 1 || self->stack.pad != TT_PAD_ZERO)
        return;
    for (uint32_t c = 0; c < self->obs_count; c++)
        most = self->at[c].bytes > most ? self->at[c].bytes : most;
    void *stored = tt_new0(most);
    for (uint32_t c = 0; c < self->obs_count; c++)
        column[c] = stored;
    self->zero = tt_aligned0(self->frame);
    tt_columns_read(self, column, self->zero);
    free(stored);
}

static tt_status_t s_fill(
    tt_columns_t *self, const tt_space_t *obs, const tt_space_t *action, bool mask, bool estimates)
{
    s_maker_t maker = {.columns = self};
    self->mask = -1;
    TT_TRY(s_add_space(&maker, obs, "obs"));
    self->obs_count = self->count;
    maker.action = true;
    if (mask)
        TT_TRY(s_add_mask(&maker, action));
    self->action = self->count;
    TT_TRY(s_add_space(&maker, action, "action"));
    self->action_count = self->count - self->action;
    TT_TRY(s_add_rest(self, estimates));
    TT_TRY(s_lay_row(self));
    s_make_zero(self);
    self->before = estimates ? self->stack.frames - 1 : 0; /* a replay holds the batches before */
    self->hash = s_hash(self);
    return TT_OK;
}

tt_status_t tt_columns_new(
    tt_columns_t **self_p, const tt_space_t *obs, const tt_space_t *action, bool mask, bool estimates)
{
    return tt_columns_new_stacked(self_p, obs, action, mask, estimates, 1, TT_PAD_RESET);
}

tt_status_t tt_columns_new_stacked(tt_columns_t **self_p, const tt_space_t *obs, const tt_space_t *action, bool mask,
    bool estimates, uint32_t frames, tt_pad_t pad)
{
    if (frames > TT_STACK_MAX)
        return tt_err(TT_INVALID, "%u frames; an observation shows 1 to %d", frames, TT_STACK_MAX);
    tt_columns_t *self = tt_new0(sizeof *self);
    self->stack.frames = frames ? frames : 1;
    self->stack.pad = pad;
    const tt_status_t status = s_fill(self, obs, action, mask, estimates);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_columns_destroy(&self);
    return status;
}

void tt_columns_destroy(tt_columns_t **self_p)
{
    if (!*self_p)
        return;
    free((*self_p)->choices);
    free((*self_p)->zero);
    free(*self_p);
    *self_p = NULL;
}

void tt_columns_put_carry(tt_columns_t *self, uint32_t floats)
{
    self->carry = floats;
    self->hash = s_hash(self);
}

bool tt_column_is_bytes(const tt_column_t *column)
{
    return column->dtype == TT_U8 && !column->choice;
}

bool tt_columns_plain(const tt_columns_t *self)
{
    return self->obs_count == 1 && (self->at[0].dtype == TT_F32 || tt_column_is_bytes(&self->at[0]));
}

/* ---- one observation as a frame ------------------------------------------------------------------------------------ */

/*  Reads through memcpy: a row of a received frame may lie anywhere. */
static void s_read_numbers(const tt_column_t *column, const unsigned char *from, float *out)
{
    switch (column->dtype) {
    case TT_U8:
    case TT_F32:
        memcpy(out, from, column->bytes);
        break;
    case TT_I32:
        for (uint32_t i = 0; i < column->elements; i++) {
            int32_t number;
            memcpy(&number, from + (size_t)4 * i, sizeof number);
            out[i] = (float)number;
        }
        break;
    default:
        for (uint32_t i = 0; i < column->elements; i++) {
            int64_t number;
            memcpy(&number, from + (size_t)8 * i, sizeof number);
            out[i] = (float)number;
        }
    }
}

static void s_read_choices(const tt_column_t *column, const uint32_t *choices, const unsigned char *from, float *out)
{
    memset(out, 0, column->flat * sizeof *out);
    for (uint32_t i = 0; i < column->elements; i++) {
        int32_t choice;
        memcpy(&choice, from + (size_t)4 * i, sizeof choice);
        if (choice >= 0 && (uint32_t)choice < choices[i])
            out[choice] = 1;
        out += choices[i];
    }
}

void tt_columns_read(const tt_columns_t *self, const void *const *column, void *out)
{
    for (uint32_t c = 0; c < self->obs_count; c++) {
        const tt_column_t *at = &self->at[c];
        float *to = (float *)((char *)out + at->at);
        if (at->choice)
            s_read_choices(at, self->choices + at->first, column[c], to);
        else
            s_read_numbers(at, column[c], to);
    }
}

void tt_columns_scaled(const tt_columns_t *self, const void *const *column, float *out)
{
    for (uint32_t c = 0; c < self->obs_count; c++) {
        if (self->at[c].dtype != TT_F32)
            continue;
        memcpy(out, column[c], self->at[c].bytes);
        out += self->at[c].elements;
    }
}

void tt_columns_put_scaled(const tt_columns_t *self, const float *scaled, void *frame)
{
    for (uint32_t c = 0; c < self->obs_count; c++) {
        const tt_column_t *at = &self->at[c];
        if (at->dtype != TT_F32)
            continue;
        memcpy((char *)frame + at->at, scaled, at->bytes);
        scaled += at->elements;
    }
}
