/*  print - a message as one line for a person. */
#include "common/wire/msg.h"
#include <inttypes.h>
#include <string.h>

enum { TEXT_SHOWN = 60, ITEMS_SHOWN = 8 };

static void s_text(tt_buf_t *out, const char *text)
{
    const size_t size = strlen(text);
    tt_buf_str(out, "'");
    for (size_t i = 0; i < size && i < TEXT_SHOWN; i++) {
        const unsigned char c = (unsigned char)text[i];
        const char shown = c < 0x20 || c == 0x7f ? '.' : (char)c; /* a log line stays one line */
        tt_buf_add(out, &shown, 1);
    }
    tt_buf_str(out, size > TEXT_SHOWN ? "...'" : "'");
}

static void s_fields(tt_buf_t *out, const tt_record_t *record, const void *self);

static void s_list(tt_buf_t *out, const tt_field_t *field, const void *self)
{
    const size_t count = *(const size_t *)(const void *)((const char *)self + field->count_offset);
    const char *items = *(char *const *)(const void *)((const char *)self + field->offset);
    tt_buf_str(out, "[");
    for (size_t i = 0; i < count && i < ITEMS_SHOWN; i++) {
        tt_buf_str(out, i ? " {" : "{");
        s_fields(out, field->record, items + i * field->record->size);
        tt_buf_str(out, "}");
    }
    if (count > ITEMS_SHOWN)
        tt_buf_printf(out, " ... %zu in all", count);
    tt_buf_str(out, "]");
}

static void s_value(tt_buf_t *out, const tt_field_t *field, const void *self)
{
    const void *at = (const char *)self + field->offset;
    switch (field->kind) {
    case TT_KIND_u32:
        tt_buf_printf(out, "%" PRIu32, *(const uint32_t *)at);
        return;
    case TT_KIND_u64:
        tt_buf_printf(out, "%" PRIu64, *(const uint64_t *)at);
        return;
    case TT_KIND_i64:
        tt_buf_printf(out, "%" PRId64, *(const int64_t *)at);
        return;
    case TT_KIND_f64:
        tt_buf_printf(out, "%.17g", *(const double *)at);
        return;
    case TT_KIND_flag:
        tt_buf_str(out, *(const bool *)at ? "true" : "false");
        return;
    case TT_KIND_str: {
        const char *text = *(char *const *)at;
        s_text(out, text ? text : "");
        return;
    }
    case TT_KIND_list:
        s_list(out, field, self);
        return;
    }
}

static void s_fields(tt_buf_t *out, const tt_record_t *record, const void *self)
{
    for (size_t i = 0; i < record->field_count; i++) {
        tt_buf_printf(out, "%s%s=", i ? " " : "", record->fields[i].name);
        s_value(out, &record->fields[i], self);
    }
}

void tt_msg_print(tt_buf_t *out, const void *msg)
{
    const tt_msg_id_t id = *(const tt_msg_id_t *)msg;
    const tt_msg_info_t *info = tt_msg_info(id);
    tt_buf_printf(out, "%s ", tt_msg_name(id));
    if (info)
        s_fields(out, &info->record, msg);
}
