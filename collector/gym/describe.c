#include "collector/gym/describe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/rl/columns.h"
#include "common/rl/spaces.h"

static tt_status_t s_garbled(const char *what)
{
    return tt_err(TT_INVALID, "its worker describes no space that we know (%s)", what);
}

/*  The position of a word in a table, -1 = it is not there. */
static int s_position(const json_t *word, const char *const *words, int count)
{
    const char *text = json_string_value(word);
    for (int i = 0; text && i < count; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static tt_status_t s_shape(tt_space_t *out, const json_t *shape)
{
    if (json_array_size(shape) > TT_RANK_MAX)
        return tt_err(
            TT_INVALID, "a space of %zu dimensions; at most %d are supported", json_array_size(shape), TT_RANK_MAX);
    out->rank = (uint32_t)json_array_size(shape);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        const json_int_t size = json_integer_value(json_array_get(shape, i));
        if (size < 1 || size > TT_ELEMENTS_MAX)
            return tt_err(TT_INVALID, "a dimension of %lld, must be 1 to %d", (long long)size, TT_ELEMENTS_MAX);
        out->shape[i] = (uint32_t)size;
        elements *= (uint64_t)size;
        if (elements > TT_ELEMENTS_MAX)
            return tt_err(TT_INVALID, "a space of more than %d elements", TT_ELEMENTS_MAX);
    }
    return TT_OK;
}

/*  Text, since JSON knows no infinity. */
static const double *s_reals(const json_t *array, size_t count)
{
    double *out = json_array_size(array) == count ? tt_array0(count, sizeof *out) : NULL;
    for (size_t i = 0; out && i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        out[i] = text ? strtod(text, NULL) : (double)NAN; /* which tt_space_check refuses */
    }
    return out;
}

static const int64_t *s_wholes(const json_t *array, size_t count)
{
    int64_t *out = json_array_size(array) == count ? tt_array0(count, sizeof *out) : NULL;
    for (size_t i = 0; out && i < count; i++)
        out[i] = json_integer_value(json_array_get(array, i));
    return out;
}

static tt_status_t s_box(tt_space_t *out, const json_t *json)
{
    const int dtype = s_position(json_object_get(json, "dtype"), tt_dtypes, TT_DTYPE_COUNT);
    const json_t *low = json_object_get(json, "low"), *high = json_object_get(json, "high");
    if (dtype < 0)
        return s_garbled("dtype");
    out->dtype = (tt_dtype_t)dtype;
    if (!low)
        return TT_OK;
    out->same_bounds = json_is_true(json_object_get(json, "same"));
    const size_t count = out->same_bounds ? 1 : tt_space_elements(out);
    out->low = s_reals(low, count);
    out->high = s_reals(high, count);
    return out->low && out->high ? TT_OK : s_garbled("bounds");
}

static tt_status_t s_choices(tt_space_t *out, const json_t *json)
{
    const size_t count = tt_space_elements(out);
    out->n = s_wholes(json_object_get(json, "n"), count);
    out->start = s_wholes(json_object_get(json, "start"), count);
    return out->n && out->start ? TT_OK : s_garbled("choices");
}

static tt_status_t s_space(tt_space_t *out, const json_t *json, int depth);

static tt_status_t s_parts(tt_space_t *out, const json_t *json, int depth)
{
    const json_t *parts = json_object_get(json, "parts");
    const size_t count = json_array_size(parts);
    if (count < 1 || count > TT_SPACE_PARTS_MAX || depth == TT_SPACE_DEPTH_MAX)
        return tt_err(TT_INVALID, "a %s of %zu parts, must be 1 to %d, and nested at most %d deep",
            tt_space_kinds[out->kind], count, TT_SPACE_PARTS_MAX, TT_SPACE_DEPTH_MAX);
    tt_space_t *part = tt_array0(count, sizeof *part);
    out->part = part;
    out->parts = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *of = json_array_get(parts, i);
        TT_TRY(s_space(&part[i], of, depth + 1));
        part[i].key = tt_strdup(json_string_value(json_object_get(of, "key")));
    }
    return TT_OK;
}

static tt_status_t s_space(tt_space_t *out, const json_t *json, int depth)
{
    const int kind = s_position(json_object_get(json, "kind"), tt_space_kinds, TT_SPACE_KIND_COUNT);
    if (kind < 0)
        return s_garbled("kind");
    out->kind = (tt_space_kind_t)kind;
    TT_TRY(s_shape(out, json_object_get(json, "shape")));
    switch (out->kind) {
    case TT_SPACE_BOX:
        return s_box(out, json);
    case TT_SPACE_DISCRETE:
    case TT_SPACE_MULTI_DISCRETE:
        return s_choices(out, json);
    case TT_SPACE_DICT:
    case TT_SPACE_TUPLE:
        return s_parts(out, json, depth);
    default:
        return TT_OK;
    }
}

tt_status_t gym_describe(tt_env_ops_t *out, const json_t *about)
{
    const json_t *threshold = json_object_get(about, "threshold");
    tt_columns_t *columns;
    TT_TRY(s_space(&out->obs, json_object_get(about, "obs"), 0));
    TT_TRY(s_space(&out->action, json_object_get(about, "action"), 0));
    TT_TRY(tt_space_check(&out->obs, "obs", false));
    TT_TRY(tt_space_check(&out->action, "action", true));
    out->mask = json_is_true(json_object_get(about, "mask"));
    TT_TRY(tt_columns_new(&columns, &out->obs, &out->action, out->mask, true));
    tt_columns_destroy(&columns);
    out->reward_threshold = json_is_number(threshold) ? json_number_value(threshold) : (double)NAN;
    return TT_OK;
}

static void s_free(const tt_space_t *self)
{
    for (uint32_t i = 0; i < self->parts; i++)
        s_free(&self->part[i]);
    const void *owned[] = {self->key, self->low, self->high, self->n, self->start, self->part};
    for (size_t i = 0; i < TT_COUNT(owned); i++)
        free((void *)(uintptr_t)owned[i]);
}

void gym_describe_free(tt_env_ops_t *self)
{
    s_free(&self->obs);
    s_free(&self->action);
    self->obs = self->action = (tt_space_t){0};
}

bool gym_same_spaces(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "obs"), json_object_get(b, "obs")) &&
           json_equal(json_object_get(a, "action"), json_object_get(b, "action"));
}
