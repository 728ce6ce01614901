#include "tests/wire/fill.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    fill_t how;
    uint64_t seed, draws;
} filler_t;

static uint64_t s_draw(filler_t *self)
{
    uint32_t out[4];
    tt_draw(out, self->seed, TT_STREAM_TEST, 0, self->draws++);
    return (uint64_t)out[0] << 32 | out[1];
}

/*  Random numbers of all magnitudes: every width of the encoding is hit. */
static uint64_t s_number(filler_t *self, uint64_t largest)
{
    switch (self->how) {
    case FILL_ZERO:
        return 0;
    case FILL_SMALL:
        return ++self->draws < largest ? self->draws : largest;
    case FILL_LIMIT:
        return largest;
    case FILL_RANDOM:
        break;
    }
    const uint64_t value = s_draw(self) >> (s_draw(self) % 64);
    return largest == UINT64_MAX ? value : value % (largest + 1);
}

static int64_t s_signed(filler_t *self, uint64_t largest)
{
    const int64_t value = (int64_t)s_number(self, largest);
    return self->how == FILL_RANDOM && s_draw(self) % 2 ? -value : value;
}

static double s_real(filler_t *self)
{
    if (self->how == FILL_ZERO)
        return 0;
    if (self->how == FILL_SMALL)
        return (double)++self->draws + 0.25;
    const uint64_t bits = self->how == FILL_LIMIT ? 0x7ff8000000000000u : s_draw(self);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static char *s_text(filler_t *self, uint64_t limit)
{
    if (self->how == FILL_ZERO)
        return NULL;
    if (self->how == FILL_SMALL)
        return tt_sprintf("text %d", (int)self->draws++);
    const uint64_t longest = limit < 300 ? limit : 300;
    const size_t size = (size_t)(self->how == FILL_LIMIT ? longest : s_draw(self) % (longest + 1));
    char *text = tt_new0(size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = self->how == FILL_LIMIT ? 'x' : (char)(1 + s_draw(self) % 255);
    return text;
}

static void s_record(filler_t *self, const tt_record_t *record, char *out);

static void s_list(filler_t *self, const tt_field_t *field, char *out)
{
    const size_t count = self->how == FILL_ZERO ? 0 : self->how == FILL_RANDOM ? s_draw(self) % 6 : 2;
    char *items = count ? tt_array0(count, field->record->size) : NULL;
    for (size_t i = 0; i < count; i++)
        s_record(self, field->record, items + i * field->record->size);
    memcpy(out + field->offset, &items, sizeof items);
    memcpy(out + field->count_offset, &count, sizeof count);
}

static void s_field(filler_t *self, const tt_field_t *field, char *out)
{
    const uint64_t limit = field->limit;
    void *at = out + field->offset;
    switch (field->kind) {
    case TT_KIND_u32:
        *(uint32_t *)at = (uint32_t)s_number(self, limit ? limit : UINT32_MAX);
        return;
    case TT_KIND_u64:
        *(uint64_t *)at = s_number(self, limit ? limit : UINT64_MAX);
        return;
    case TT_KIND_i64:
        *(int64_t *)at = s_signed(self, limit ? limit : INT64_MAX);
        return;
    case TT_KIND_f64:
        *(double *)at = s_real(self);
        return;
    case TT_KIND_flag:
        *(bool *)at = self->how != FILL_ZERO && (self->how != FILL_RANDOM || s_draw(self) % 2);
        return;
    case TT_KIND_str:
        *(char **)at = s_text(self, limit);
        return;
    case TT_KIND_list:
        s_list(self, field, out);
        return;
    }
}

static void s_record(filler_t *self, const tt_record_t *record, char *out)
{
    for (size_t i = 0; i < record->field_count; i++)
        s_field(self, &record->fields[i], out);
}

void fill_message(tt_msg_t *out, const tt_msg_info_t *info, fill_t how, uint64_t seed)
{
    filler_t filler = {how, seed, 0};
    memset(out, 0, sizeof *out);
    out->type = info->id;
    s_record(&filler, &info->record, (char *)out);
}

static bool s_equal(const tt_record_t *record, const char *a, const char *b, const char **where);

static bool s_list_equal(const tt_field_t *field, const char *a, const char *b, const char **where)
{
    size_t count_a, count_b;
    const char *items_a, *items_b;
    memcpy(&count_a, a + field->count_offset, sizeof count_a);
    memcpy(&count_b, b + field->count_offset, sizeof count_b);
    memcpy(&items_a, a + field->offset, sizeof items_a);
    memcpy(&items_b, b + field->offset, sizeof items_b);
    for (size_t i = 0; count_a == count_b && i < count_a; i++)
        if (!s_equal(field->record, items_a + i * field->record->size, items_b + i * field->record->size, where))
            return false;
    return count_a == count_b;
}

static bool s_field_equal(const tt_field_t *field, const char *a, const char *b, const char **where)
{
    static const size_t sizes[] = {4, 8, 8, 8, sizeof(bool)};
    if (field->kind == TT_KIND_list)
        return s_list_equal(field, a, b, where);
    a += field->offset;
    b += field->offset;
    if (field->kind != TT_KIND_str)
        return memcmp(a, b, sizes[field->kind]) == 0;
    const char *text_a = *(char *const *)(const void *)a, *text_b = *(char *const *)(const void *)b;
    return strcmp(text_a ? text_a : "", text_b ? text_b : "") == 0;
}

static bool s_equal(const tt_record_t *record, const char *a, const char *b, const char **where)
{
    for (size_t i = 0; i < record->field_count; i++) {
        *where = record->fields[i].name;
        if (!s_field_equal(&record->fields[i], a, b, where))
            return false;
    }
    return true;
}

bool fill_equal(const tt_msg_t *a, const tt_msg_t *b, const char **where)
{
    *where = "type";
    return a->type == b->type && s_equal(&tt_msg_info(a->type)->record, (const char *)a, (const char *)b, where);
}
