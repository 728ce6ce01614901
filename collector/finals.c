#include "collector/finals.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

static void s_room_for_one(finals_t *self, const tt_columns_t *columns)
{
    if (self->count < self->room)
        return;
    self->room = 2 * self->room + 16;
    self->at = tt_realloc(self->at, tt_mul(self->room, sizeof *self->at));
    for (uint32_t c = 0; c < columns->action; c++)
        self->column[c] = tt_realloc(self->column[c], tt_mul(self->room, columns->at[c].bytes));
    if (!columns->carry)
        return;
    const size_t bytes = tt_mul(self->room, columns->carry * sizeof *self->carry);
    self->carry = tt_realloc(self->carry, bytes);
    self->carried = tt_realloc(self->carried, bytes);
}

static void s_copy_carry(float *to, size_t k, const float *from, size_t i, const tt_columns_t *columns)
{
    if (columns->carry)
        memcpy(to + k * columns->carry, from + i * columns->carry, columns->carry * sizeof *to);
}

void finals_add(finals_t *self, const tt_columns_t *columns, uint32_t t, uint32_t env,
    const void *const row[TT_COLUMNS_MAX], const float *carry)
{
    s_room_for_one(self, columns);
    for (uint32_t c = 0; c < columns->action; c++) {
        const size_t bytes = columns->at[c].bytes;
        memcpy(self->column[c] + self->count * bytes, row[c], bytes);
    }
    s_copy_carry(self->carry, self->count, carry, 0, columns);
    self->at[self->count] = (final_t){t, env, self->count};
    self->count++;
}

static int s_ascending(const void *a, const void *b)
{
    const final_t *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return x->env < y->env ? -1 : x->env > y->env;
}

void finals_put(finals_t *self, const tt_columns_t *columns, const tt_segment_t *to)
{
    if (self->count > 1) /* of none there is no array, and qsort takes no NULL */
        qsort(self->at, self->count, sizeof *self->at, s_ascending);
    for (uint32_t k = 0; k < self->count; k++) {
        const final_t *final = &self->at[k];
        to->final_t[k] = final->t;
        to->final_env[k] = final->env;
        for (uint32_t c = 0; c < columns->action; c++) {
            const size_t bytes = columns->at[c].bytes;
            memcpy((char *)to->final[c] + k * bytes, self->column[c] + final->row * bytes, bytes);
        }
        s_copy_carry(self->carried, k, self->carry, final->row, columns);
    }
}

void finals_free(finals_t *self)
{
    free(self->at);
    for (size_t c = 0; c < TT_COUNT(self->column); c++)
        free(self->column[c]);
    free(self->carry);
    free(self->carried);
    *self = (finals_t){0};
}
