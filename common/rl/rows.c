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
    free(self->flat);
    free(self->floats);
    self->at = self->raw = NULL;
    self->flat = self->floats = NULL;
    self->room = 0;
}

void tt_rows_free(tt_rows_t *self)
{
    s_release(self);
    free(self->scaled);
    self->scaled = NULL;
}

/*  Copies of `width` floats a row, and the pointers to them. */
static float *s_copies(size_t count, size_t width, const float **row)
{
    float *copies = tt_aligned0(tt_mul(tt_mul(count, width), sizeof(float)));
    for (size_t r = 0; r < count; r++)
        row[r] = copies + r * width;
    return copies;
}

void tt_rows_need(tt_rows_t *self, size_t count)
{
    const tt_columns_t *columns = self->columns;
    if (count <= self->room)
        return;
    s_release(self);
    self->room = count;
    self->at = tt_array0(count, sizeof *self->at);
    if (self->scale)
        self->raw = tt_array0(count, sizeof *self->raw);
    if (self->scale || !self->plain)
        self->flat = s_copies(count, columns->flat, self->at);
    if (self->scale && !self->plain)
        self->floats = s_copies(count, columns->scaled, self->raw);
}

static void s_put_plain(tt_rows_t *self, size_t row, size_t count, const tt_norm_t *norm, const float *from)
{
    const size_t D = self->columns->flat;
    const float **at = self->scale ? self->raw : self->at;
    for (size_t k = 0; k < count; k++)
        at[row + k] = from + k * D;
    if (self->scale)
        tt_norm_scale(norm, from, count, self->clip, self->flat + row * D);
}

static void s_put_flat(tt_rows_t *self, size_t row, const tt_norm_t *norm, const void *const *from)
{
    const tt_columns_t *columns = self->columns;
    float *flat = self->flat + row * columns->flat;
    tt_columns_flatten(columns, from, flat);
    if (!self->scale)
        return;
    float *floats = self->floats + row * columns->scaled;
    tt_columns_scaled(columns, from, floats);
    tt_norm_scale(norm, floats, 1, self->clip, self->scaled);
    tt_columns_put_scaled(columns, self->scaled, flat);
}

void tt_rows_put(tt_rows_t *self, size_t row, size_t count, const tt_norm_t *norm, void *const *column, size_t index)
{
    const tt_columns_t *columns = self->columns;
    if (self->plain) {
        s_put_plain(self, row, count, norm, (const float *)column[0] + index * columns->flat);
        return;
    }
    const void *from[TT_COLUMNS_MAX];
    for (size_t k = 0; k < count; k++) {
        for (uint32_t c = 0; c < columns->obs_count; c++)
            from[c] = (const uint8_t *)column[c] + (index + k) * columns->at[c].bytes;
        s_put_flat(self, row + k, norm, from);
    }
}

const float *const *tt_rows_of(tt_rows_t *self, size_t count, const tt_norm_t *norm, void *const *column)
{
    tt_rows_need(self, count);
    tt_rows_put(self, 0, count, norm, column, 0);
    return self->at;
}
