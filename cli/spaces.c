#include "cli/spaces.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { WORDS_MAX = 1 << 16, SHOWN = 16 };

char *space_words(const tt_space_t *space)
{
    tt_buf_t words;
    tt_buf_init(&words, WORDS_MAX);
    const char *end = tt_space_text(space, &words) == TT_OK ? "" : "...";
    char *text = tt_sprintf("%s%s", tt_buf_text(&words), end);
    tt_buf_free(&words);
    return text;
}

static bool s_is_group(const tt_space_t *space)
{
    return space->kind == TT_SPACE_DICT || space->kind == TT_SPACE_TUPLE;
}

/* ---- for a person -------------------------------------------------------------------------------------------------- */

static double s_bound(const tt_space_t *box, const double *bounds, uint32_t i, double none)
{
    return bounds ? bounds[box->same_bounds ? 0 : i] : none;
}

static void s_print_bounds(FILE *out, const tt_space_t *box)
{
    const uint32_t elements = tt_space_elements(box), count = box->same_bounds ? 1 : elements;
    if (!box->low && !box->high)
        return;
    fputs(box->same_bounds && elements > 1 ? ": each in" : ":", out);
    for (uint32_t i = 0; i < count && i < SHOWN; i++)
        fprintf(out, "%s [%g, %g]", i ? "," : "", s_bound(box, box->low, i, -(double)INFINITY),
            s_bound(box, box->high, i, (double)INFINITY));
    fputs(count > SHOWN ? ", ..." : "", out);
}

static void s_print(FILE *out, const char *what, const tt_space_t *space, int depth)
{
    char *words = space_words(space), number[16];
    fprintf(out, "%*s%s: %s", 2 * depth, "", what, words);
    free(words);
    if (space->kind == TT_SPACE_BOX)
        s_print_bounds(out, space);
    if (space->kind == TT_SPACE_DISCRETE) {
        const int64_t first = space->start ? space->start[0] : 0;
        fprintf(out, ": a number %lld to %lld", (long long)first, (long long)(first + space->n[0] - 1));
    }
    fputc('\n', out);
    for (uint32_t i = 0; s_is_group(space) && i < space->parts; i++) {
        snprintf(number, sizeof number, "%u", i);
        s_print(out, space->kind == TT_SPACE_DICT ? space->part[i].key : number, &space->part[i], depth + 1);
    }
}

void space_print(FILE *out, const char *what, const tt_space_t *space)
{
    s_print(out, what, space, 1);
}

/* ---- for a program: null stands for "no bound" ----------------------------------------------------------------------- */

static json_t *s_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *s_bounds_json(const tt_space_t *box, const double *bounds)
{
    if (!bounds)
        return json_null();
    if (box->same_bounds)
        return s_real(bounds[0]);
    json_t *array = json_array();
    for (uint32_t i = 0; i < tt_space_elements(box); i++)
        json_array_append_new(array, s_real(bounds[i]));
    return array;
}

static json_t *s_shape_json(const uint32_t *shape, uint32_t rank)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < rank; i++)
        json_array_append_new(array, json_integer(shape[i]));
    return array;
}

/*  numbers NULL: zeros. */
static json_t *s_numbers_json(const tt_space_t *space, const int64_t *numbers)
{
    if (space->kind == TT_SPACE_DISCRETE)
        return json_integer(numbers ? numbers[0] : 0);
    json_t *array = json_array();
    for (uint32_t i = 0; i < tt_space_elements(space); i++)
        json_array_append_new(array, json_integer(numbers ? numbers[i] : 0));
    return array;
}

static json_t *s_parts_json(const tt_space_t *space)
{
    json_t *parts = space->kind == TT_SPACE_DICT ? json_object() : json_array();
    for (uint32_t i = 0; i < space->parts; i++) {
        if (space->kind == TT_SPACE_DICT)
            json_object_set_new(parts, space->part[i].key, space_json(&space->part[i]));
        else
            json_array_append_new(parts, space_json(&space->part[i]));
    }
    return parts;
}

json_t *space_json(const tt_space_t *space)
{
    char *words = space_words(space);
    json_t *all = json_pack("{s:o, s:s}", "text", tt_json_text(words), "kind", tt_space_kinds[space->kind]);
    free(words);
    if (s_is_group(space)) {
        json_object_set_new(all, "parts", s_parts_json(space));
        return all;
    }
    if (space->kind != TT_SPACE_DISCRETE)
        json_object_set_new(all, "shape", s_shape_json(space->shape, space->rank));
    if (space->kind == TT_SPACE_BOX) {
        json_object_set_new(all, "dtype", json_string(tt_dtypes[space->dtype]));
        json_object_set_new(all, "low", s_bounds_json(space, space->low));
        json_object_set_new(all, "high", s_bounds_json(space, space->high));
    } else if (space->kind != TT_SPACE_MULTI_BINARY) {
        json_object_set_new(all, "n", s_numbers_json(space, space->n));
        json_object_set_new(all, "start", s_numbers_json(space, space->start));
    }
    return all;
}

/* ---- columns --------------------------------------------------------------------------------------------------------- */

uint32_t columns_bytes(const tt_columns_t *columns)
{
    uint32_t bytes = 0;
    for (uint32_t c = 0; c < columns->count; c++)
        bytes += columns->at[c].bytes;
    return bytes;
}

static size_t s_wider(size_t a, size_t b)
{
    return a > b ? a : b;
}

void columns_print_stacked(FILE *out, const tt_columns_t *columns)
{
    for (uint32_t c = 0; c < columns->obs_count; c++) {
        const tt_column_t *column = &columns->at[c];
        const char *separator = c ? ", " : "", *name = columns->obs_count > 1 ? column->name : "";
        fprintf(out, "%s%s%s%s[%u", separator, name, *name ? " " : "", tt_dtypes[column->dtype], columns->stack.frames);
        for (uint32_t i = 0; i < column->rank; i++)
            fprintf(out, ", %u", column->shape[i]);
        fputc(']', out);
    }
}

void columns_print(FILE *out, const tt_columns_t *columns)
{
    size_t width = 0;
    for (uint32_t c = 0; c < columns->count; c++)
        width = s_wider(width, strlen(columns->at[c].name));
    for (uint32_t c = 0; c < columns->count; c++) {
        const tt_column_t *column = &columns->at[c];
        fprintf(out, "#   %-12s %-*s %s", c ? "" : "columns", (int)width, column->name, tt_dtypes[column->dtype]);
        for (uint32_t i = 0; i < column->rank; i++)
            fprintf(out, "%s%u", i ? ", " : "[", column->shape[i]);
        fprintf(out, "%s, %u B\n", column->rank ? "]" : "", column->bytes);
    }
}

json_t *columns_json(const tt_columns_t *columns)
{
    json_t *array = json_array();
    for (uint32_t c = 0; c < columns->count; c++) {
        const tt_column_t *column = &columns->at[c];
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:I}", "name", column->name, "dtype", tt_dtypes[column->dtype], "shape",
                       s_shape_json(column->shape, column->rank), "bytes", (json_int_t)column->bytes));
    }
    return array;
}
