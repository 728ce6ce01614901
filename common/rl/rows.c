#include "common/rl/rows.h"
#include <stdlib.h>
#include "common/base/mem.h"

void tt_rows_init(tt_rows_t *self, const tt_columns_t *columns, bool scale, float clip)
{
    *self = (tt_rows_t){
        .columns = columns, .plain = tt_columns_plain(columns), .scale = scale && columns->scaled, .clip = clip};
    if (self->scale && !self->plain)
        self->scaled = tt_array0(columns->scaled, sizeof(float));
}

static void s_release(tt_rows_t *self)
{
    free(self->at);
    free(self->raw);
    free(self->copies);
    free(self->floats);
    self->at = NULL;
    self->raw = NULL;
    self->copies = NULL;
    self->floats = NULL;
    self->room = 0;
}

void tt_rows_free(tt_rows_t *self)
{
    s_release(self);
    free(self->scaled);
    self->scaled = NULL;
}

static void s_make_copies(tt_rows_t *self)
{
    const size_t bytes = self->columns->frame;
    self->copies = tt_aligned0(tt_mul(self->room, bytes));
    for (size_t r = 0; r < self->room; r++)
        self->at[r] = self->copies + r * bytes;
}

static void s_make_floats(tt_rows_t *self)
{
    const size_t scaled = self->columns->scaled;
    self->floats = tt_aligned0(tt_mul(tt_mul(self->room, scaled), sizeof(float)));
    for (size_t r = 0; r < self->room; r++)
        self->raw[r] = self->floats + r * scaled;
}

void tt_rows_need(tt_rows_t *self, size_t count)
{
    if (count <= self->room)
        return;
    s_release(self);
    self->room = count;
    self->at = tt_array0(count, sizeof *self->at);
    if (self->scale)
        self->raw = tt_array0(count, sizeof *self->raw);
    if (self->scale || !self->plain)
        s_make_copies(self);
    if (self->scale && !self->plain)
        s_make_floats(self);
}

static void s_put_plain(tt_rows_t *self, size_t row, size_t count, const tt_norm_t *norm, const char *from)
{
    const size_t bytes = self->columns->frame;
    for (size_t k = 0; k < count; k++) {
        if (self->scale)
            self->raw[row + k] = (const float *)(from + k * bytes);
        else
            self->at[row + k] = from + k * bytes;
    }
    if (self->scale)
        tt_norm_scale(norm, (const float *)from, count, self->clip, (float *)(self->copies + row * bytes));
}

static void s_put_copy(tt_rows_t *self, size_t row, const tt_norm_t *norm, const void *const *from)
{
    const tt_columns_t *columns = self->columns;
    char *copy = self->copies + row * columns->frame;
    tt_columns_read(columns, from, copy);
    if (!self->scale)
        return;
    float *floats = self->floats + row * columns->scaled;
    tt_columns_scaled(columns, from, floats);
    tt_norm_scale(norm, floats, 1, self->clip, self->scaled);
    tt_columns_put_scaled(columns, self->scaled, copy);
}

void tt_rows_put(tt_rows_t *self, size_t row, size_t count, const tt_norm_t *norm, void *const *column, size_t index)
{
    const tt_columns_t *columns = self->columns;
    if (self->plain) {
        s_put_plain(self, row, count, norm, (const char *)column[0] + index * columns->frame);
        return;
    }
    const void *from[TT_COLUMNS_MAX];
    for (size_t k = 0; k < count; k++) {
        for (uint32_t c = 0; c < columns->obs_count; c++)
            from[c] = (const uint8_t *)column[c] + (index + k) * columns->at[c].bytes;
        s_put_copy(self, row + k, norm, from);
    }
}

const void *const *tt_rows_of(tt_rows_t *self, size_t count, const tt_norm_t *norm, void *const *column)
{
    tt_rows_need(self, count);
    tt_rows_put(self, 0, count, norm, column, 0);
    return self->at;
}
