#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/rl/spaces.h"

/* ---- into words ---------------------------------------------------------------------------------------------------- */

static tt_status_t s_shape_text(const tt_space_t *self, tt_buf_t *out)
{
    for (uint32_t i = 0; i < self->rank; i++)
        TT_TRY(tt_buf_printf(out, "%s%u", i ? ", " : "[", self->shape[i]));
    return self->rank ? tt_buf_str(out, "]") : TT_OK;
}

static tt_status_t s_list_text(const char *before, const int64_t *at, uint32_t count, tt_buf_t *out)
{
    TT_TRY(tt_buf_str(out, before));
    for (uint32_t i = 0; i < count; i++)
        TT_TRY(tt_buf_printf(out, "%s%lld", i ? ", " : "", (long long)at[i]));
    return TT_OK;
}

static tt_status_t s_choices_text(const tt_space_t *self, tt_buf_t *out)
{
    const uint32_t elements = tt_space_elements(self);
    bool from = false;
    TT_TRY(tt_buf_str(out, tt_space_kinds[self->kind]));
    if (self->kind == TT_SPACE_MULTI_DISCRETE && self->rank != 1)
        TT_TRY(s_shape_text(self, out));
    TT_TRY(s_list_text("(", self->n, elements, out));
    for (uint32_t i = 0; self->start && i < elements; i++)
        from = from || self->start[i] != 0;
    if (from)
        TT_TRY(s_list_text(", from ", self->start, elements, out));
    return tt_buf_str(out, ")");
}

static tt_status_t s_parts_text(const tt_space_t *self, tt_buf_t *out)
{
    const bool dict = self->kind == TT_SPACE_DICT;
    for (uint32_t i = 0; i < self->parts; i++) {
        TT_TRY(tt_buf_str(out, i ? ", " : dict ? "{" : "("));
        if (dict)
            TT_TRY(tt_buf_printf(out, "%s: ", self->part[i].key));
        TT_TRY(tt_space_text(&self->part[i], out));
    }
    return tt_buf_str(out, dict ? "}" : ")");
}

tt_status_t tt_space_text(const tt_space_t *self, tt_buf_t *out)
{
    switch (self->kind) {
    case TT_SPACE_DISCRETE:
    case TT_SPACE_MULTI_DISCRETE:
        return s_choices_text(self, out);
    case TT_SPACE_DICT:
    case TT_SPACE_TUPLE:
        return s_parts_text(self, out);
    case TT_SPACE_MULTI_BINARY:
        TT_TRY(tt_buf_str(out, tt_space_kinds[self->kind]));
        return s_shape_text(self, out);
    default:
        TT_TRY(tt_buf_str(out, tt_dtypes[self->dtype]));
        return s_shape_text(self, out);
    }
}

/* ---- and back ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *text, *at;
    uint32_t parts; /* of all groups: bounds what a text can make us allocate */
} s_reader_t;

static tt_status_t s_expected(const s_reader_t *in, const char *what)
{
    return tt_err(TT_INVALID, "space \"%.64s\": %s expected at \"%.16s\"", in->text, what, in->at);
}

static void s_skip(s_reader_t *in)
{
    while (*in->at == ' ')
        in->at++;
}

/*  The text goes on with `word`: go behind it. */
static bool s_take(s_reader_t *in, const char *word)
{
    s_skip(in);
    const size_t size = strlen(word);
    if (strncmp(in->at, word, size) != 0)
        return false;
    in->at += size;
    return true;
}

static tt_status_t s_number(s_reader_t *in, int64_t *out)
{
    s_skip(in);
    const char *digits = in->at + (*in->at == '-');
    if (!isdigit((unsigned char)*digits))
        return s_expected(in, "a number");
    char *end;
    const long long number = strtoll(in->at, &end, 10);
    if (end - digits > 12)
        return s_expected(in, "a smaller number");
    in->at = end;
    *out = number;
    return TT_OK;
}

static tt_status_t s_read_shape(s_reader_t *in, tt_space_t *out)
{
    if (!s_take(in, "["))
        return TT_OK;
    do {
        int64_t size = 0;
        TT_TRY(s_number(in, &size));
        if (out->rank == TT_RANK_MAX || size < 1 || size > TT_ELEMENTS_MAX)
            return s_expected(in, "at most 4 sizes of 1 to 2^20");
        out->shape[out->rank++] = (uint32_t)size;
    } while (s_take(in, ","));
    return s_take(in, "]") ? TT_OK : s_expected(in, "]");
}

/*  Numbers with commas between them, `max` at most; *out is the reader's caller's to free. */
static tt_status_t s_read_list(s_reader_t *in, int64_t **out, uint32_t max, uint32_t *count)
{
    uint32_t room = 0;
    *count = 0;
    do {
        if (*count == max)
            return s_expected(in, "no more numbers");
        if (*count == room) {
            room = room ? 2 * room : 8;
            *out = tt_realloc(*out, tt_mul(room, sizeof **out));
        }
        TT_TRY(s_number(in, &(*out)[*count]));
        ++*count;
        s_skip(in);
    } while (strncmp(in->at, ", from", 6) != 0 && s_take(in, ","));
    return TT_OK;
}

static tt_status_t s_read_choices(s_reader_t *in, tt_space_t *out)
{
    uint32_t count, starts;
    if (!s_take(in, "("))
        return s_expected(in, "(");
    const bool shaped = out->rank > 0 || out->kind == TT_SPACE_DISCRETE;
    TT_TRY(s_read_list(in, (int64_t **)&out->n, shaped ? tt_space_elements(out) : TT_ELEMENTS_MAX, &count));
    if (!shaped) {
        out->rank = 1;
        out->shape[0] = count;
    }
    if (count != tt_space_elements(out))
        return s_expected(in, "a number of choices for each element");
    if (s_take(in, ", from")) {
        TT_TRY(s_read_list(in, (int64_t **)&out->start, count, &starts));
        if (starts != count)
            return s_expected(in, "a first choice for each element");
    }
    return s_take(in, ")") ? TT_OK : s_expected(in, ")");
}

static tt_status_t s_read(s_reader_t *in, tt_space_t *out, uint32_t depth);

static tt_status_t s_read_key(s_reader_t *in, tt_space_t *part)
{
    s_skip(in);
    const char *start = in->at;
    while (tt_space_key_char(*in->at))
        in->at++;
    part->key = tt_sprintf("%.*s", (int)(in->at - start), start);
    return s_take(in, ":") ? TT_OK : s_expected(in, "a key and a colon");
}

static tt_status_t s_read_parts(s_reader_t *in, tt_space_t *out, const char *end, uint32_t depth)
{
    if (depth == TT_SPACE_DEPTH_MAX)
        return s_expected(in, "a space that is not so deep");
    tt_space_t *part = tt_array0(TT_SPACE_PARTS_MAX, sizeof *part);
    out->part = part;
    do {
        if (out->parts == TT_SPACE_PARTS_MAX || in->parts++ == TT_SPACE_TEXT_MAX)
            return s_expected(in, "no more parts");
        tt_space_t *next = &part[out->parts++];
        if (out->kind == TT_SPACE_DICT) {
            TT_TRY(s_read_key(in, next));
        }
        TT_TRY(s_read(in, next, depth + 1));
    } while (s_take(in, ","));
    return s_take(in, end) ? TT_OK : s_expected(in, end);
}

static tt_status_t s_read(s_reader_t *in, tt_space_t *out, uint32_t depth)
{
    if (s_take(in, "{")) {
        out->kind = TT_SPACE_DICT;
        return s_read_parts(in, out, "}", depth);
    }
    if (s_take(in, "(")) {
        out->kind = TT_SPACE_TUPLE;
        return s_read_parts(in, out, ")", depth);
    }
    if (s_take(in, tt_space_kinds[TT_SPACE_DISCRETE])) {
        out->kind = TT_SPACE_DISCRETE;
        return s_read_choices(in, out);
    }
    if (s_take(in, tt_space_kinds[TT_SPACE_MULTI_DISCRETE])) {
        out->kind = TT_SPACE_MULTI_DISCRETE;
        TT_TRY(s_read_shape(in, out));
        return s_read_choices(in, out);
    }
    if (s_take(in, tt_space_kinds[TT_SPACE_MULTI_BINARY])) {
        out->kind = TT_SPACE_MULTI_BINARY;
        return s_read_shape(in, out);
    }
    out->kind = TT_SPACE_BOX;
    for (unsigned d = 0; d < TT_DTYPE_COUNT; d++)
        if (s_take(in, tt_dtypes[d])) {
            out->dtype = (tt_dtype_t)d;
            return s_read_shape(in, out);
        }
    return s_expected(in, "a space");
}

tt_status_t tt_space_parse(tt_space_t **self_p, const char *text)
{
    s_reader_t in = {.text = text, .at = text};
    tt_space_t *self = tt_new0(sizeof *self);
    tt_status_t status = s_read(&in, self, 0);
    s_skip(&in);
    if (status == TT_OK && *in.at)
        status = s_expected(&in, "the end");
    if (status == TT_OK)
        status = tt_space_check(self, "space", false);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_space_free(&self);
    return status;
}

static void s_free_inside(tt_space_t *self)
{
    for (uint32_t i = 0; i < self->parts; i++)
        s_free_inside((tt_space_t *)&self->part[i]);
    free((void *)self->key);
    free((void *)self->n);
    free((void *)self->start);
    free((void *)self->part);
}

void tt_space_free(tt_space_t **self_p)
{
    if (!*self_p)
        return;
    s_free_inside(*self_p);
    free(*self_p);
    *self_p = NULL;
}
