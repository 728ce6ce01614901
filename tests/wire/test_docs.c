/*  docs/wire.md is made from the tables: this test makes it and compares (TT_UPDATE_GOLDEN=1 writes it). */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include "common/wire/msg.h"
#include "tests/golden.h"

enum { MAX = 1 << 20 };

static const char *const s_head =
    "# The wire format\n"
    "\n"
    "Made from `common/wire/messages.def` by `tests/wire/test_docs.c`; do not edit it here. Who says what when:\n"
    "[internals/protocol.md](internals/protocol.md). How it is read and written: "
    "[internals/wire.md](internals/wire.md).\n"
    "\n"
    "A message is one ZeroMQ message of one or more frames. Frame 0 is a msgpack map, `{\"m\": id, field: value, "
    "...}`, with\n"
    "`\"m\"` first. Raw frames may follow; they are never parsed.\n"
    "\n"
    "- An absent field reads as 0, false, \"\" or an empty list, and senders leave out what is just that.\n"
    "- A field that the receiver does not know is ignored. An unknown message, a field that comes twice, a wrong type, "
    "a\n"
    "  value over its limit, bytes behind the map or too many raw frames make the whole message void (`TT_PROTOCOL`).\n"
    "- `u32`, `u64`, `i64`: any msgpack integer that fits; the limit is the largest value (for `i64` the largest "
    "magnitude).\n"
    "  `f64`: float 64 or float 32, NaN allowed. `flag`: true or false. `str`: str without a zero byte; the limit is "
    "its\n"
    "  length in bytes. `[X]`: an array of maps with the fields of record X; the limit is their number.\n"
    "- Ids are never reused. A change that an older peer could not read raises the version in HELLO and WELCOME.\n"
    "- Golden bytes of every message: `tests/golden/wire`.\n"
    "\n";

static void s_type(tt_buf_t *out, const tt_field_t *field)
{
    static const char *const names[] = {"u32", "u64", "i64", "f64", "flag", "str"};
    if (field->kind == TT_KIND_list)
        tt_buf_printf(out, "[%s]", field->record->name);
    else
        tt_buf_str(out, names[field->kind]);
}

static void s_fields(tt_buf_t *out, const tt_record_t *record)
{
    tt_buf_str(out, "| field | type | limit | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < record->field_count; i++) {
        const tt_field_t *field = &record->fields[i];
        tt_buf_printf(out, "| `%s` | ", field->name);
        s_type(out, field);
        if (field->limit)
            tt_buf_printf(out, " | %" PRIu64, field->limit);
        else
            tt_buf_str(out, " | ");
        tt_buf_printf(out, " | %s |\n", field->doc);
    }
    tt_buf_str(out, "\n");
}

static void s_message(tt_buf_t *out, const tt_msg_info_t *info)
{
    tt_buf_printf(
        out, "### %s (%d)\n\n%s to %s: %s.", info->record.name, (int)info->id, info->from, info->to, info->record.doc);
    if (info->frames)
        tt_buf_printf(out, " At most %zu raw frame%s.", info->frames, info->frames > 1 ? "s" : "");
    tt_buf_str(out, "\n\n");
    s_fields(out, &info->record);
}

/*  Every record once, where it is first used. */
static void s_records(tt_buf_t *out, const tt_msg_info_t *infos, size_t count)
{
    const tt_record_t *seen[64];
    size_t seen_count = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < infos[i].record.field_count; k++) {
            const tt_record_t *record = infos[i].record.fields[k].record;
            size_t known = 0;
            while (known < seen_count && seen[known] != record)
                known++;
            if (!record || known < seen_count)
                continue;
            seen[seen_count++] = record;
            tt_buf_printf(out, "### %s\n\n%s.\n\n", record->name, record->doc);
            s_fields(out, record);
        }
    }
}

static void s_lower(char *out, size_t size, const char *text)
{
    size_t i = 0;
    for (; text[i] && i + 1 < size; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    out[i] = '\0';
}

static void test_the_page_is_up_to_date(void **state)
{
    (void)state;
    size_t count;
    const tt_msg_info_t *infos = tt_msg_infos(&count);
    tt_buf_t page;
    tt_buf_init(&page, MAX);
    tt_buf_str(&page, s_head);
    tt_buf_printf(
        &page, "Version: %d.\n\n## Messages\n\n| id | message | from | to |\n|---|---|---|---|\n", TT_WIRE_VERSION);
    for (size_t i = 0; i < count; i++) {
        char anchor[32];
        s_lower(anchor, sizeof anchor, infos[i].record.name);
        tt_buf_printf(&page, "| %d | [%s](#%s-%d) | %s | %s |\n", (int)infos[i].id, infos[i].record.name, anchor,
            (int)infos[i].id, infos[i].from, infos[i].to);
    }
    tt_buf_str(&page, "\n");
    for (size_t i = 0; i < count; i++)
        s_message(&page, &infos[i]);
    tt_buf_str(&page, "## Records\n\n");
    s_records(&page, infos, count);
    page.size--; /* one newline at the end */
    assert_golden("docs/wire.md", &page);
    tt_buf_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_page_is_up_to_date)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
