#include "common/rl/spaces.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "common/base/limits.h"

const char *const tt_space_kinds[TT_SPACE_KIND_COUNT] = {
    [TT_SPACE_BOX] = "box",
    [TT_SPACE_DISCRETE] = "discrete",
    [TT_SPACE_MULTI_DISCRETE] = "multi_discrete",
    [TT_SPACE_MULTI_BINARY] = "multi_binary",
    [TT_SPACE_DICT] = "dict",
    [TT_SPACE_TUPLE] = "tuple",
};
const char *const tt_dtypes[TT_DTYPE_COUNT] = {
    [TT_F32] = "float32",
    [TT_F64] = "float64",
    [TT_U8] = "uint8",
    [TT_I32] = "int32",
    [TT_I64] = "int64",
    [TT_BOOL] = "bool",
};

static bool s_is_group(const tt_space_t *self)
{
    return self->kind == TT_SPACE_DICT || self->kind == TT_SPACE_TUPLE;
}

uint32_t tt_space_elements(const tt_space_t *leaf)
{
    uint32_t elements = 1;
    if (leaf->kind != TT_SPACE_DISCRETE)
        for (uint32_t i = 0; i < leaf->rank; i++)
            elements *= leaf->shape[i];
    return elements;
}

uint32_t tt_space_leaves(const tt_space_t *self, const tt_space_t **leaf, uint32_t room)
{
    if (!s_is_group(self)) {
        if (room)
            *leaf = self;
        return 1;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->parts; i++) {
        const bool left = count < room;
        count += tt_space_leaves(&self->part[i], left ? leaf + count : NULL, left ? room - count : 0);
    }
    return count;
}

/* ---- check --------------------------------------------------------------------------------------------------------- */

static tt_status_t s_check_shape(const tt_space_t *self, const char *what)
{
    uint64_t elements = 1;
    if (self->rank > TT_RANK_MAX)
        return tt_err(TT_INVALID, "%s: rank is %u, must be 0 to %d", what, self->rank, TT_RANK_MAX);
    for (uint32_t i = 0; i < self->rank; i++) {
        if (self->shape[i] < 1)
            return tt_err(TT_INVALID, "%s: shape[%u] is 0, must be at least 1", what, i);
        elements *= self->shape[i];
        if (elements > TT_ELEMENTS_MAX)
            return tt_err(TT_INVALID, "%s: has more than %d elements", what, TT_ELEMENTS_MAX);
    }
    return TT_OK;
}

static tt_status_t s_check_box(const tt_space_t *self, const char *what, bool action)
{
    if ((unsigned)self->dtype >= TT_DTYPE_COUNT)
        return tt_err(TT_INVALID, "%s: dtype is %d, which is none", what, (int)self->dtype);
    if (action && self->dtype != TT_F32 && self->dtype != TT_F64)
        return tt_err(TT_INVALID, "%s: a box of %s as an action is not supported: float32 or float64, or choices", what,
            tt_dtypes[self->dtype]);
    if (!self->low != !self->high)
        return tt_err(TT_INVALID, "%s: low and high must both be given or both be NULL", what);
    const uint32_t bounds = !self->low ? 0 : self->same_bounds ? 1 : tt_space_elements(self);
    for (uint32_t i = 0; i < bounds; i++) {
        if (!(self->low[i] <= self->high[i])) /* a NaN fails, too */
            return tt_err(
                TT_INVALID, "%s: low[%u] = %g is not below high[%u] = %g", what, i, self->low[i], i, self->high[i]);
    }
    return TT_OK;
}

static tt_status_t s_check_choices(const tt_space_t *self, const char *what)
{
    const uint32_t elements = tt_space_elements(self);
    uint64_t all = 0;
    if (!self->n)
        return tt_err(TT_INVALID, "%s: n must point to the number of choices of each of %u elements", what, elements);
    for (uint32_t i = 0; i < elements; i++) {
        const int64_t n = self->n[i], start = self->start ? self->start[i] : 0;
        if (n < 1 || n > TT_CHOICES_MAX)
            return tt_err(TT_INVALID, "%s: n[%u] is %lld, must be 1 to %d", what, i, (long long)n, TT_CHOICES_MAX);
        if (start < INT32_MIN || start + n - 1 > INT32_MAX)
            return tt_err(TT_INVALID, "%s: start[%u] is %lld, choices must fit in 32 bits", what, i, (long long)start);
        all += (uint64_t)n;
    }
    if (all > TT_ELEMENTS_MAX)
        return tt_err(TT_INVALID, "%s: has more than %d choices", what, TT_ELEMENTS_MAX);
    return TT_OK;
}

bool tt_space_key_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static tt_status_t s_check_key(const tt_space_t *self, const char *what, uint32_t i)
{
    const char *key = self->part[i].key;
    const size_t size = key ? strnlen(key, TT_SPACE_KEY_MAX + 1) : 0;
    bool sound = size >= 1 && size <= TT_SPACE_KEY_MAX;
    for (size_t k = 0; sound && k < size; k++)
        sound = tt_space_key_char(key[k]);
    if (!sound)
        return tt_err(
            TT_INVALID, "%s: part[%u].key must be 1 to %d letters, digits, '_' or '-'", what, i, TT_SPACE_KEY_MAX);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(self->part[k].key, key) == 0)
            return tt_err(TT_INVALID, "%s: the key \"%s\" is there twice", what, key);
    return TT_OK;
}

static tt_status_t s_check(const tt_space_t *self, const char *what, bool action, uint32_t depth);

static tt_status_t s_check_parts(const tt_space_t *self, const char *what, bool action, uint32_t depth)
{
    if (depth == TT_SPACE_DEPTH_MAX)
        return tt_err(TT_INVALID, "%s: spaces are nested deeper than %d", what, TT_SPACE_DEPTH_MAX);
    if (!self->part || self->parts < 1 || self->parts > TT_SPACE_PARTS_MAX)
        return tt_err(TT_INVALID, "%s: a %s of %u parts, must be 1 to %d", what, tt_space_kinds[self->kind],
            self->parts, TT_SPACE_PARTS_MAX);
    for (uint32_t i = 0; i < self->parts; i++) {
        char path[256];
        if (self->kind == TT_SPACE_DICT) {
            TT_TRY(s_check_key(self, what, i));
            snprintf(path, sizeof path, "%s.%s", what, self->part[i].key);
        } else {
            snprintf(path, sizeof path, "%s.%u", what, i);
        }
        TT_TRY(s_check(&self->part[i], path, action, depth + 1));
    }
    return TT_OK;
}

static tt_status_t s_check(const tt_space_t *self, const char *what, bool action, uint32_t depth)
{
    switch (self->kind) {
    case TT_SPACE_DISCRETE:
        return s_check_choices(self, what);
    case TT_SPACE_MULTI_DISCRETE:
        TT_TRY(s_check_shape(self, what));
        return s_check_choices(self, what);
    case TT_SPACE_MULTI_BINARY:
        return s_check_shape(self, what);
    case TT_SPACE_BOX:
        TT_TRY(s_check_shape(self, what));
        return s_check_box(self, what, action);
    case TT_SPACE_DICT:
    case TT_SPACE_TUPLE:
        return s_check_parts(self, what, action, depth);
    default:
        return tt_err(TT_INVALID, "%s: kind is %d, which is none", what, (int)self->kind);
    }
}

tt_status_t tt_space_check(const tt_space_t *self, const char *what, bool action)
{
    return s_check(self, what, action, 0);
}
