#include "common/wire/segment.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are little-endian");

enum { ALIGN = 64 };

/*  The walk over a block: the size of what came before, and whether it is still one that can be. */
typedef struct {
    const tt_segment_shape_t *shape;
    char *block; /* NULL: only the size is asked for */
    size_t total;
    const char *over; /* the array that was too large */
} s_walk_t;

/*  The next array: `rows` of `bytes` bytes each. */
static void *s_next(s_walk_t *self, const char *name, size_t rows, size_t bytes)
{
    size_t size;
    if (self->over)
        return NULL;
    if (!tt_mul_ok(rows, bytes, &size) || size > TT_FRAME_MAX) {
        self->over = name;
        return NULL;
    }
    self->total = tt_align(self->total, ALIGN);
    void *at = self->block ? self->block + self->total : NULL;
    self->total += size; /* some hundred arrays of a GiB at most: no overflow */
    return at;
}

static void s_walk(s_walk_t *self, tt_segment_t *out)
{
    const tt_segment_shape_t *shape = self->shape;
    const tt_columns_t *columns = shape->columns;
    const size_t rows = (size_t)shape->T * shape->E;
    for (uint32_t c = 0; c < columns->count; c++)
        out->column[c] = s_next(self, columns->at[c].name, rows, columns->at[c].bytes);
    out->age = s_next(self, "age", shape->E, sizeof *out->age);
    const size_t before = (size_t)columns->before * shape->E;
    for (uint32_t c = 0; c < columns->count; c++)
        out->before[c] =
            before && c < columns->obs_count ? s_next(self, columns->at[c].name, before, columns->at[c].bytes) : NULL;
    out->carry = columns->carry ? s_next(self, "carry", shape->E, columns->carry * sizeof(float)) : NULL;
    for (uint32_t c = 0; c < columns->count; c++)
        out->last[c] = columns->at[c].keep ? s_next(self, columns->at[c].name, shape->E, columns->at[c].bytes) : NULL;
    out->final_t = s_next(self, "final_t", shape->K, sizeof *out->final_t);
    out->final_env = s_next(self, "final_env", shape->K, sizeof *out->final_env);
    for (uint32_t c = 0; c < columns->count; c++)
        out->final[c] = columns->at[c].keep ? s_next(self, columns->at[c].name, shape->K, columns->at[c].bytes) : NULL;
    out->states = s_next(self, "states", shape->E, shape->S);
    out->reward = out->column[columns->reward];
    out->terminated = out->column[columns->terminated];
    out->truncated = out->column[columns->truncated];
    out->log_prob = columns->log_prob < 0 ? NULL : out->column[columns->log_prob];
    out->value = columns->value < 0 ? NULL : out->column[columns->value];
    out->last_value = columns->value < 0 ? NULL : out->last[columns->value];
    out->final_value = columns->value < 0 ? NULL : out->final[columns->value];
}

uint32_t tt_segment_parts(uint32_t envs, uint32_t most)
{
    return envs / most + (envs % most != 0);
}

void tt_segment_part(uint32_t envs, uint32_t most, uint32_t i, uint32_t *first, uint32_t *count)
{
    const uint64_t parts = tt_segment_parts(envs, most);
    *first = (uint32_t)(envs * (uint64_t)i / parts);
    *count = (uint32_t)(envs * ((uint64_t)i + 1) / parts) - *first;
}

tt_status_t tt_segment_size(const tt_segment_shape_t *shape, size_t *bytes)
{
    if (!shape->T || !shape->E)
        return tt_err(TT_INVALID, "a segment of %u steps, %u envs", shape->T, shape->E);
    if (shape->K > (uint64_t)shape->T * shape->E)
        return tt_err(TT_INVALID, "a segment with %u finals in %u x %u steps", shape->K, shape->T, shape->E);
    s_walk_t walk = {.shape = shape};
    tt_segment_t none;
    s_walk(&walk, &none);
    if (walk.over)
        return tt_err(TT_INVALID, "%s of a segment would be over 1 GiB", walk.over);
    if (walk.total > TT_FRAME_MAX)
        return tt_err(TT_INVALID, "a segment of %zu bytes is over 1 GiB", walk.total);
    *bytes = walk.total;
    return TT_OK;
}

void tt_segment_map(const tt_segment_shape_t *shape, void *block, tt_segment_t *out)
{
    s_walk_t walk = {.shape = shape, .block = block};
    s_walk(&walk, out);
    TT_CHECK(!walk.over);
}

/* ---- frames of a stack --------------------------------------------------------------------------------------------- */

uint32_t tt_segment_back(const tt_segment_shape_t *shape, const tt_segment_t *at, uint32_t t, uint32_t env)
{
    const uint32_t most = shape->columns->stack.frames - 1;
    uint32_t back = 0;
    for (; back < most && back < t; back++) {
        const size_t before = (size_t)(t - back - 1) * shape->E + env;
        if (at->terminated[before] | at->truncated[before])
            return back;
    }
    if (back == most)
        return back;
    const uint32_t left = most - back < shape->columns->before ? most - back : shape->columns->before;
    return back + (at->age[env] < left ? at->age[env] : left);
}

void *const *tt_segment_frame(
    const tt_segment_shape_t *shape, const tt_segment_t *at, uint32_t t, uint32_t env, uint32_t k, size_t *index)
{
    *index = env;
    if (k == 0 && t == shape->T)
        return at->last;
    *index += (size_t)(k <= t ? t - k : shape->columns->before + t - k) * shape->E;
    return k <= t ? at->column : at->before;
}

/* ---- check: reads through memcpy, as a received block may lie anywhere -------------------------------------------- */

static uint32_t s_word(const void *words, size_t i)
{
    uint32_t word;
    memcpy(&word, (const char *)words + 4 * i, sizeof word);
    return word;
}

static tt_status_t s_check_finite(const void *floats, size_t count)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++)
        bad |= (s_word(floats, i) & 0x7f800000u) == 0x7f800000u;
    return bad ? tt_err(TT_PROTOCOL, "not finite") : TT_OK;
}

static tt_status_t s_check_flags(const char *name, const uint8_t *flags, size_t count, size_t *set)
{
    uint8_t all = 0;
    *set = 0;
    for (size_t i = 0; i < count; i++) {
        all |= flags[i];
        *set += flags[i];
    }
    return all > 1 ? tt_err(TT_PROTOCOL, "segment: %s is neither 0 nor 1", name) : TT_OK;
}

/*  As many as there are truncations, in order, each at one: then each truncation has its final. */
static tt_status_t s_check_finals(const tt_segment_shape_t *shape, const tt_segment_t *s, size_t truncations)
{
    if (shape->K != truncations)
        return tt_err(TT_PROTOCOL, "segment: %u finals for %zu truncations", shape->K, truncations);
    uint64_t next = 0; /* lowest place the next one may have */
    for (uint32_t k = 0; k < shape->K; k++) {
        const uint32_t t = s_word(s->final_t, k), env = s_word(s->final_env, k);
        if (t >= shape->T || env >= shape->E)
            return tt_err(TT_PROTOCOL, "segment: final %u is at step %u, env %u", k, t, env);
        const uint64_t place = (uint64_t)t * shape->E + env;
        if (place < next || !s->truncated[place])
            return tt_err(TT_PROTOCOL, "segment: final %u is out of order or not at a truncation", k);
        next = place + 1;
    }
    return TT_OK;
}

/*  Choices of `rows` rows: each below its number. */
static tt_status_t s_check_choices(
    const tt_columns_t *columns, const tt_column_t *column, const uint8_t *at, size_t rows)
{
    const uint32_t *n = columns->choices + column->first;
    const bool bytes = column->dtype == TT_U8;
    for (size_t i = 0, e = 0; i < rows * column->elements; i++, e = e + 1 == column->elements ? 0 : e + 1) {
        const uint32_t choice = bytes ? at[i] : s_word(at, i);
        if (choice >= n[e])
            return tt_err(TT_PROTOCOL, "element %zu is %u, there are %u choices", e, choice, n[e]);
    }
    return TT_OK;
}

/*  Which choices are allowed: 0 or 1, and one of every element's at least. */
static tt_status_t s_check_mask(const tt_columns_t *columns, const uint8_t *mask, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns->action_count; c++) {
            const tt_column_t *action = &columns->at[columns->action + c];
            for (uint32_t e = 0; action->choice && e < action->elements; e++) {
                const uint32_t n = columns->choices[action->first + e];
                uint32_t allowed = 0, all = 0;
                for (uint32_t a = 0; a < n; a++, mask++) {
                    allowed += *mask;
                    all |= *mask;
                }
                if (all > 1 || allowed == 0)
                    return tt_err(TT_PROTOCOL, "row %zu %s", r, all > 1 ? "is neither 0 nor 1" : "leaves no choice");
            }
        }
    return TT_OK;
}

/*  Of what is chosen, nothing may be forbidden: its probability would be 0. Choices and mask have been checked. */
static tt_status_t s_check_allowed(const tt_columns_t *columns, const tt_segment_t *s, size_t rows)
{
    const uint8_t *mask = s->column[columns->mask];
    for (size_t r = 0; r < rows; r++)
        for (uint32_t c = columns->action; c < columns->action + columns->action_count; c++) {
            const tt_column_t *action = &columns->at[c];
            for (uint32_t e = 0; action->choice && e < action->elements; e++) {
                const size_t i = r * action->elements + e;
                const uint8_t *bytes = s->column[c];
                if (!mask[action->dtype == TT_U8 ? bytes[i] : s_word(bytes, i)])
                    return tt_err(
                        TT_PROTOCOL, "segment: %s[%u] of row %zu is forbidden by its mask", action->name, e, r);
                mask += columns->choices[action->first + e];
            }
        }
    return TT_OK;
}

tt_status_t tt_segment_check_column(const tt_columns_t *columns, uint32_t c, const void *at, size_t rows)
{
    const tt_column_t *column = &columns->at[c];
    if ((int)c == columns->mask)
        return s_check_mask(columns, at, rows);
    if (column->choice)
        return s_check_choices(columns, column, at, rows);
    return column->dtype == TT_F32 ? s_check_finite(at, rows * column->elements) : TT_OK;
}

/*  which: "" of the steps, "last ", "final ". */
static tt_status_t s_check_rows(const tt_columns_t *columns, uint32_t c, const char *which, const void *at, size_t rows)
{
    const tt_status_t status = tt_segment_check_column(columns, c, at, rows);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "segment: %s%s", which, columns->at[c].name);
}

static bool s_is_zeros(const void *words, size_t first, size_t count)
{
    uint32_t any = 0;
    for (size_t i = first; i < first + count; i++)
        any |= s_word(words, i);
    return !any;
}

/*  Numbers, and zeros into an episode that begins, as everybody has them there. */
static tt_status_t s_check_carry(const tt_segment_shape_t *shape, const tt_segment_t *s)
{
    const size_t floats = shape->columns->carry;
    if (s_check_finite(s->carry, shape->E * floats) != TT_OK)
        return tt_err_wrap(TT_PROTOCOL, "segment: carry");
    for (uint32_t env = 0; env < shape->E; env++)
        if (s_word(s->age, env) == 0 && !s_is_zeros(s->carry, env * floats, floats))
            return tt_err(TT_PROTOCOL, "segment: carry of an env whose episode begins, env %u, is not zeros", env);
    return TT_OK;
}

tt_status_t tt_segment_check(const tt_segment_shape_t *shape, const void *block, size_t bytes)
{
    size_t expected = 0, ended, truncations;
    if (tt_segment_size(shape, &expected) != TT_OK)
        return TT_PROTOCOL;
    if (bytes != expected)
        return tt_err(TT_PROTOCOL, "segment: %zu bytes where its header says %zu", bytes, expected);
    tt_segment_t s;
    tt_segment_map(shape, (void *)(uintptr_t)block, &s);
    const tt_columns_t *columns = shape->columns;
    const size_t rows = (size_t)shape->T * shape->E;
    TT_TRY(s_check_flags("terminated", s.terminated, rows, &ended));
    TT_TRY(s_check_flags("truncated", s.truncated, rows, &truncations));
    TT_TRY(s_check_finals(shape, &s, truncations));
    if (columns->carry)
        TT_TRY(s_check_carry(shape, &s));
    for (uint32_t c = 0; c < columns->obs_count && columns->before; c++)
        TT_TRY(s_check_rows(columns, c, "before ", s.before[c], (size_t)columns->before * shape->E));
    for (uint32_t c = 0; c < columns->count; c++) {
        TT_TRY(s_check_rows(columns, c, "", s.column[c], rows));
        if (!columns->at[c].keep)
            continue;
        TT_TRY(s_check_rows(columns, c, "last ", s.last[c], shape->E));
        TT_TRY(s_check_rows(columns, c, "final ", s.final[c], shape->K));
    }
    return columns->mask < 0 ? TT_OK : s_check_allowed(columns, &s, rows);
}
