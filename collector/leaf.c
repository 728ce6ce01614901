#include "collector/leaf.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/status.h"
#include "common/nn/math/activation.h"

static int64_t s_start(const leaf_t *self, size_t element)
{
    return self->space->start ? self->space->start[element] : 0;
}

static bool s_is_choice(const leaf_t *self)
{
    return self->space->kind == TT_SPACE_DISCRETE || self->space->kind == TT_SPACE_MULTI_DISCRETE;
}

static bool s_is_binary(const leaf_t *self)
{
    return self->space->kind == TT_SPACE_MULTI_BINARY ||
           (self->space->kind == TT_SPACE_BOX && self->space->dtype == TT_BOOL);
}

/*  Does the env use another form than the stored one? A box of an action is clipped, so it is always copied. */
static bool s_differs(const leaf_t *self, bool action)
{
    if (self->space->kind == TT_SPACE_BOX)
        return action || self->space->dtype == TT_F64;
    for (uint32_t k = 0; s_is_choice(self) && k < self->column->elements; k++)
        if (s_start(self, k) != 0)
            return true;
    return false;
}

void leaf_init(
    leaf_t *self, const tt_space_t *space, const tt_columns_t *columns, uint32_t column, uint32_t rows, void *lent)
{
    const bool wide = space->kind == TT_SPACE_BOX && space->dtype == TT_F64;
    *self = (leaf_t){.space = space, .column = &columns->at[column]};
    self->name = strcmp(self->column->name, "obs") == 0 ? "observation" : self->column->name;
    self->n = self->column->choice ? columns->choices + self->column->first : NULL;
    self->bytes = wide ? self->column->elements * sizeof(double) : self->column->bytes;
    if (!s_differs(self, column >= columns->action))
        return;
    self->lent = lent != NULL;
    self->scratch = lent ? lent : tt_aligned0(tt_mul(rows, self->bytes));
}

void leaf_free(leaf_t *self)
{
    if (!self->lent)
        free(self->scratch);
    *self = (leaf_t){0};
}

/* ---- checks of what is stored: all at once first, then which one -------------------------------------------------- */

bool leaf_finite(const float *x, size_t count, size_t *bad)
{
    uint32_t any = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        any |= (uint32_t)((bits & 0x7fffffff) >= 0x7f800000);
    }
    for (size_t i = 0; any && i < count; i++) {
        if (!isfinite(x[i])) {
            *bad = i;
            return false;
        }
    }
    return true;
}

static bool s_within(const int32_t *x, const uint32_t *n, uint32_t elements, uint32_t rows, size_t *bad)
{
    const uint32_t first = n[0];
    uint32_t any = 0;
    for (size_t r = 0; elements == 1 && r < rows; r++) /* one choice a row, as most envs have: a loop of its own */
        any |= (uint32_t)((uint32_t)x[r] >= first);
    for (size_t r = 0; elements > 1 && r < rows; r++)
        for (uint32_t k = 0; k < elements; k++)
            any |= (uint32_t)((uint32_t)x[r * elements + k] >= n[k]);
    for (size_t i = 0; any && i < (size_t)rows * elements; i++) {
        if ((uint32_t)x[i] >= n[i % elements]) {
            *bad = i;
            return false;
        }
    }
    return true;
}

static bool s_binary(const uint8_t *x, size_t count, size_t *bad)
{
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= x[i];
    for (size_t i = 0; any > 1 && i < count; i++) {
        if (x[i] > 1) {
            *bad = i;
            return false;
        }
    }
    return true;
}

bool leaf_check(const leaf_t *self, const void *stored, uint32_t rows, size_t *bad)
{
    const size_t count = (size_t)rows * self->column->elements;
    if (s_is_choice(self))
        return s_within(stored, self->n, self->column->elements, rows, bad);
    if (s_is_binary(self))
        return s_binary(stored, count, bad);
    return self->column->dtype != TT_F32 || leaf_finite(stored, count, bad);
}

/* ---- from the env ------------------------------------------------------------------------------------------------- */

/*  What is no choice becomes -1, which the check finds. */
static void s_from_start(const leaf_t *self, const int32_t *from, int32_t *to, uint32_t rows)
{
    const uint32_t elements = self->column->elements;
    for (size_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < elements; k++) {
            const int64_t choice = from[r * elements + k] - s_start(self, k);
            to[r * elements + k] = choice >= 0 && choice < self->n[k] ? (int32_t)choice : -1;
        }
}

static void s_narrow(const double *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

bool leaf_read(const leaf_t *self, const void *from, void *to, uint32_t rows, size_t *bad)
{
    if (!self->scratch)
        memcpy(to, from, rows * self->bytes);
    else if (s_is_choice(self))
        s_from_start(self, from, to, rows);
    else
        s_narrow(from, to, (size_t)rows * self->column->elements);
    return leaf_check(self, to, rows, bad);
}

bool leaf_take(const leaf_t *self, void *stored, uint32_t first, uint32_t rows, size_t *bad)
{
    void *to = (char *)stored + (size_t)first * self->column->bytes;
    if (!self->scratch)
        return leaf_check(self, to, rows, bad);
    return leaf_read(self, (const char *)self->scratch + (size_t)first * self->bytes, to, rows, bad);
}

/* ---- to the env --------------------------------------------------------------------------------------------------- */

static double s_bound(const double *bounds, const tt_space_t *box, uint32_t k, double none)
{
    return !bounds ? none : bounds[box->same_bounds ? 0 : k];
}

static void s_clip(const float *from, float *to, size_t count, size_t stride, float low, float high)
{
    for (size_t i = 0; i < count; i++) {
        const float raised = from[i * stride] < low ? low : from[i * stride];
        to[i * stride] = raised > high ? high : raised;
    }
}

/*  Element by element, all rows of it; at once where all have the same bounds. */
static bool s_clip_f32(const leaf_t *self, const float *from, float *to, uint32_t rows, size_t *bad)
{
    const tt_space_t *box = self->space;
    const uint32_t elements = self->column->elements, apart = box->same_bounds || !box->low ? 1 : elements;
    const size_t count = (size_t)rows * elements;
    for (uint32_t k = 0; k < apart; k++) {
        const float low = (float)s_bound(box->low, box, k, -INFINITY);
        const float high = (float)s_bound(box->high, box, k, INFINITY);
        if (apart == 1)
            s_clip(from, to, count, 1, low, high);
        else
            s_clip(from + k, to + k, rows, elements, low, high);
    }
    return leaf_finite(to, count, bad);
}

static bool s_clip_f64(const leaf_t *self, const float *from, double *to, uint32_t rows, size_t *bad)
{
    const tt_space_t *box = self->space;
    const uint32_t elements = self->column->elements;
    for (size_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < elements; k++) {
            const size_t at = r * elements + k;
            const double low = s_bound(box->low, box, k, -INFINITY), high = s_bound(box->high, box, k, INFINITY);
            const double raised = (double)from[at] < low ? low : (double)from[at];
            to[at] = raised > high ? high : raised;
            if (!isfinite(to[at])) {
                *bad = at;
                return false;
            }
        }
    return true;
}

bool leaf_is_bounded(const tt_space_t *space, uint32_t *bad)
{
    const uint32_t elements = tt_space_elements(space);
    for (*bad = 0; *bad < elements; ++*bad)
        if (!isfinite(s_bound(space->low, space, *bad, -INFINITY)) ||
            !isfinite(s_bound(space->high, space, *bad, INFINITY)))
            return false;
    return true;
}

/*  NaN stays one. */
static double s_squashed(const leaf_t *self, float from, uint32_t k)
{
    const tt_space_t *box = self->space;
    const double low = s_bound(box->low, box, k, -INFINITY), high = s_bound(box->high, box, k, INFINITY);
    const double middle = 0.5 * low + 0.5 * high, half = 0.5 * high - 0.5 * low, way = half * (double)tt_tanhf(from);
    const double to = middle + way;
    return to < low ? low : to > high ? high : to;
}

static bool s_squash(const leaf_t *self, const float *from, void *to, uint32_t rows, size_t *bad)
{
    const uint32_t elements = self->column->elements;
    const bool wide = self->space->dtype == TT_F64;
    for (*bad = 0; *bad < (size_t)rows * elements; ++*bad) {
        const double x = s_squashed(self, from[*bad], (uint32_t)(*bad % elements));
        if (!isfinite(x))
            return false;
        if (wide)
            ((double *)to)[*bad] = x;
        else
            ((float *)to)[*bad] = (float)x;
    }
    return true;
}

static void s_to_start(const leaf_t *self, const int32_t *from, int32_t *to, uint32_t rows)
{
    const uint32_t elements = self->column->elements;
    for (size_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < elements; k++)
            to[r * elements + k] = (int32_t)(from[r * elements + k] + s_start(self, k));
}

bool leaf_give(const leaf_t *self, const void *stored, uint32_t first, uint32_t rows, const void **out, size_t *bad)
{
    const void *from = (const char *)stored + (size_t)first * self->column->bytes;
    void *to = self->scratch ? (char *)self->scratch + (size_t)first * self->bytes : NULL;
    *out = self->scratch ? self->scratch : stored;
    if (self->space->kind == TT_SPACE_BOX && self->squash)
        return s_squash(self, from, to, rows, bad);
    if (self->space->kind == TT_SPACE_BOX)
        return self->space->dtype == TT_F64 ? s_clip_f64(self, from, to, rows, bad)
                                            : s_clip_f32(self, from, to, rows, bad);
    if (!leaf_check(self, from, rows, bad))
        return false;
    if (to)
        s_to_start(self, from, to, rows);
    return true;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

double leaf_written(const leaf_t *self, const void *rows, size_t at)
{
    if (self->column->dtype == TT_F32)
        return self->bytes > self->column->bytes ? ((const double *)rows)[at] : (double)((const float *)rows)[at];
    return self->column->dtype == TT_U8 ? ((const uint8_t *)rows)[at] : ((const int32_t *)rows)[at];
}

const char *leaf_must(const leaf_t *self, size_t at, char text[64])
{
    if (s_is_binary(self))
        return "must be 0 or 1";
    if (!s_is_choice(self))
        return "not a number that one can learn from";
    const size_t element = at % self->column->elements;
    const long long start = s_start(self, element);
    snprintf(text, 64, "must be %lld to %lld", start, start + (long long)self->n[element] - 1);
    return text;
}
