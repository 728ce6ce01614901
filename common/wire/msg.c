/*  The interpreter: walks a message's field table to pack or unpack it. */
#include "common/wire/msg.h"
#include "common/base/mem.h"
#include "common/wire/mp.h"
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

/*  A field's place in a struct: the table says which kind it is. */
static void *s_at(const void *self, const tt_field_t *field)
{
    return (char *)(uintptr_t)self + field->offset;
}
static size_t *s_count_at(const void *self, const tt_field_t *field)
{
    return (size_t *)(void *)((char *)(uintptr_t)self + field->count_offset);
}
static const char *s_text_at(const void *self, const tt_field_t *field)
{
    const char *text = *(char *const *)s_at(self, field);
    return text ? text : "";
}

static tt_status_t s_over(tt_status_t status, const tt_field_t *field)
{
    return tt_err(status, "%s is over its limit of %" PRIu64, field->name, field->limit);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static bool s_within(const tt_field_t *field, uint64_t value)
{
    return field->limit == 0 || value <= field->limit;
}

static uint64_t s_magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/*  Is a field that is to be packed within its limit? */
static bool s_field_ok(const void *self, const tt_field_t *field)
{
    switch (field->kind) {
    case TT_KIND_u32:
        return s_within(field, *(const uint32_t *)s_at(self, field));
    case TT_KIND_u64:
        return s_within(field, *(const uint64_t *)s_at(self, field));
    case TT_KIND_i64:
        return s_within(field, s_magnitude(*(const int64_t *)s_at(self, field)));
    case TT_KIND_str:
        return strlen(s_text_at(self, field)) <= field->limit;
    case TT_KIND_list:
        return *s_count_at(self, field) <= field->limit;
    case TT_KIND_f64:
    case TT_KIND_flag:
        break;
    }
    return true;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static int s_write(void *buf, const char *data, size_t size)
{
    return tt_buf_add(buf, data, size) == TT_OK ? 0 : -1;
}

/*  Zero, false, "" and an empty list are left out: an absent field reads as just that. (-0.0 and NAN are not zero.) */
static bool s_absent(const void *self, const tt_field_t *field)
{
    switch (field->kind) {
    case TT_KIND_u32:
        return *(const uint32_t *)s_at(self, field) == 0;
    case TT_KIND_u64:
    case TT_KIND_i64:
    case TT_KIND_f64: {
        uint64_t bits;
        memcpy(&bits, s_at(self, field), sizeof bits);
        return bits == 0;
    }
    case TT_KIND_flag:
        return !*(const bool *)s_at(self, field);
    case TT_KIND_str:
        return *s_text_at(self, field) == '\0';
    case TT_KIND_list:
        return *s_count_at(self, field) == 0;
    }
    return true;
}

static size_t s_present(const tt_record_t *record, const void *self)
{
    size_t count = 0;
    for (size_t i = 0; i < record->field_count; i++)
        count += !s_absent(self, &record->fields[i]);
    return count;
}

static int s_pack_text(msgpack_packer *packer, const char *text)
{
    const size_t size = strlen(text);
    const int failed = msgpack_pack_str(packer, size);
    return failed ? failed : msgpack_pack_str_body(packer, text, size);
}

static tt_status_t s_pack_fields(msgpack_packer *packer, const tt_record_t *record, const void *self);

static tt_status_t s_pack_list(msgpack_packer *packer, const tt_field_t *field, const void *self)
{
    const size_t count = *s_count_at(self, field);
    const char *items = *(char *const *)s_at(self, field);
    if (msgpack_pack_array(packer, count))
        return TT_INVALID;
    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * field->record->size;
        if (msgpack_pack_map(packer, s_present(field->record, item)))
            return TT_INVALID;
        const tt_status_t status = s_pack_fields(packer, field->record, item);
        if (status != TT_OK)
            return tt_err_wrap(status, "%s[%zu]", field->name, i);
    }
    return TT_OK;
}

static tt_status_t s_pack_value(msgpack_packer *packer, const tt_field_t *field, const void *self)
{
    int failed = 0;
    switch (field->kind) {
    case TT_KIND_u32:
        failed = msgpack_pack_uint32(packer, *(const uint32_t *)s_at(self, field));
        break;
    case TT_KIND_u64:
        failed = msgpack_pack_uint64(packer, *(const uint64_t *)s_at(self, field));
        break;
    case TT_KIND_i64:
        failed = msgpack_pack_int64(packer, *(const int64_t *)s_at(self, field));
        break;
    case TT_KIND_f64:
        failed = msgpack_pack_double(packer, *(const double *)s_at(self, field));
        break;
    case TT_KIND_flag:
        failed = msgpack_pack_true(packer);
        break;
    case TT_KIND_str:
        failed = s_pack_text(packer, s_text_at(self, field));
        break;
    case TT_KIND_list:
        return s_pack_list(packer, field, self);
    }
    return failed ? TT_INVALID : TT_OK; /* the buffer has said why */
}

static tt_status_t s_pack_fields(msgpack_packer *packer, const tt_record_t *record, const void *self)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const tt_field_t *field = &record->fields[i];
        if (s_absent(self, field))
            continue;
        if (!s_field_ok(self, field))
            return s_over(TT_INVALID, field);
        if (s_pack_text(packer, field->name))
            return TT_INVALID;
        TT_TRY(s_pack_value(packer, field, self));
    }
    return TT_OK;
}

tt_status_t tt_msg_pack(tt_buf_t *out, const void *msg)
{
    const tt_msg_id_t id = *(const tt_msg_id_t *)msg;
    const tt_msg_info_t *info = tt_msg_info(id);
    if (!info)
        return tt_err(TT_INVALID, "no message has the id %d", (int)id);
    const size_t start = out->size;
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, s_write);
    tt_status_t status = TT_INVALID;
    if (!msgpack_pack_map(&packer, 1 + s_present(&info->record, msg)) && !s_pack_text(&packer, "m") &&
        !msgpack_pack_int(&packer, (int)id))
        status = s_pack_fields(&packer, &info->record, msg);
    if (status == TT_OK)
        return TT_OK;
    out->size = start; /* nothing half-written stays */
    return tt_err_wrap(status, "packing %s", info->record.name);
}

/* ---- unpacking --------------------------------------------------------------------------------------------------- */

static const char *const s_kind_names[] = {"u32", "u64", "i64", "f64", "flag", "str", "list"};

static tt_status_t s_wrong_type(const tt_field_t *field)
{
    return tt_err(TT_PROTOCOL, "%s is not a %s", field->name, s_kind_names[field->kind]);
}

static tt_status_t s_take_unsigned(const tt_field_t *field, const tt_mp_token_t *token, void *self)
{
    if (token->kind != TT_MP_UINT)
        return s_wrong_type(field);
    if (!s_within(field, token->number))
        return s_over(TT_PROTOCOL, field);
    if (field->kind == TT_KIND_u64) {
        *(uint64_t *)s_at(self, field) = token->number;
        return TT_OK;
    }
    if (token->number > UINT32_MAX)
        return tt_err(TT_PROTOCOL, "%s does not fit 32 bits", field->name);
    *(uint32_t *)s_at(self, field) = (uint32_t)token->number;
    return TT_OK;
}

static tt_status_t s_take_signed(const tt_field_t *field, const tt_mp_token_t *token, void *self)
{
    if (token->kind != TT_MP_UINT && token->kind != TT_MP_INT)
        return s_wrong_type(field);
    if (token->kind == TT_MP_UINT && token->number > INT64_MAX)
        return tt_err(TT_PROTOCOL, "%s does not fit 64 bits", field->name);
    const int64_t value = (int64_t)token->number;
    if (!s_within(field, s_magnitude(value)))
        return s_over(TT_PROTOCOL, field);
    *(int64_t *)s_at(self, field) = value;
    return TT_OK;
}

static tt_status_t s_take_text(const tt_field_t *field, const tt_mp_token_t *token, void *self)
{
    if (token->kind != TT_MP_STR)
        return s_wrong_type(field);
    if (token->number > field->limit)
        return s_over(TT_PROTOCOL, field);
    const size_t size = (size_t)token->number;
    if (memchr(token->bytes, '\0', size))
        return tt_err(TT_PROTOCOL, "%s holds a zero byte", field->name);
    char *text = tt_new0(size + 1);
    memcpy(text, token->bytes, size);
    *(char **)s_at(self, field) = text;
    return TT_OK;
}

static tt_status_t s_take_fields(tt_mp_reader_t *reader, const tt_record_t *record, uint64_t pairs, void *self);

/*  Items are reached by s_clear through the count, which grows with them: nothing leaks when one of them is bad. */
static tt_status_t s_take_list(tt_mp_reader_t *reader, const tt_field_t *field, const tt_mp_token_t *token, void *self)
{
    if (token->kind != TT_MP_ARRAY)
        return s_wrong_type(field);
    if (token->number > field->limit)
        return s_over(TT_PROTOCOL, field);
    char *items = tt_array0((size_t)token->number, field->record->size);
    *(char **)s_at(self, field) = items;
    size_t *count = s_count_at(self, field);
    while (*count < token->number) {
        tt_mp_token_t map;
        TT_TRY(tt_mp_next(reader, &map));
        if (map.kind != TT_MP_MAP)
            return tt_err(TT_PROTOCOL, "%s[%zu] is not a map", field->name, *count);
        char *item = items + *count * field->record->size;
        ++*count;
        const tt_status_t status = s_take_fields(reader, field->record, map.number, item);
        if (status != TT_OK)
            return tt_err_wrap(status, "%s[%zu]", field->name, *count - 1);
    }
    return TT_OK;
}

static tt_status_t s_take_value(tt_mp_reader_t *reader, const tt_field_t *field, void *self)
{
    tt_mp_token_t token;
    const tt_status_t status = tt_mp_next(reader, &token);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", field->name);
    switch (field->kind) {
    case TT_KIND_u32:
    case TT_KIND_u64:
        return s_take_unsigned(field, &token, self);
    case TT_KIND_i64:
        return s_take_signed(field, &token, self);
    case TT_KIND_f64:
        if (token.kind != TT_MP_FLOAT)
            return s_wrong_type(field);
        *(double *)s_at(self, field) = token.real;
        return TT_OK;
    case TT_KIND_flag:
        if (token.kind != TT_MP_FLAG)
            return s_wrong_type(field);
        *(bool *)s_at(self, field) = token.number != 0;
        return TT_OK;
    case TT_KIND_str:
        return s_take_text(field, &token, self);
    case TT_KIND_list:
        return s_take_list(reader, field, &token, self);
    }
    return TT_INTERNAL;
}

static tt_status_t s_next_key(tt_mp_reader_t *reader, tt_mp_token_t *out)
{
    TT_TRY(tt_mp_next(reader, out));
    return out->kind == TT_MP_STR ? TT_OK : tt_err(TT_PROTOCOL, "a key is not a string");
}

static bool s_is(const tt_mp_token_t *key, const char *name)
{
    return strlen(name) == key->number && memcmp(name, key->bytes, key->number) == 0;
}

/*  The field a key names, looked for from `hint` on (our own sender keeps the table's order); field_count if none. */
static size_t s_find(const tt_record_t *record, const tt_mp_token_t *key, size_t hint)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const size_t at = (hint + i) % record->field_count;
        if (s_is(key, record->fields[at].name))
            return at;
    }
    return record->field_count;
}

static tt_status_t s_take_fields(tt_mp_reader_t *reader, const tt_record_t *record, uint64_t pairs, void *self)
{
    uint64_t seen = 0;
    TT_CHECK(record->field_count <= 64);
    for (size_t hint = 0; pairs > 0; pairs--) {
        tt_mp_token_t key;
        TT_TRY(s_next_key(reader, &key));
        const size_t at = s_find(record, &key, hint);
        if (at == record->field_count) { /* of a later version */
            TT_TRY(tt_mp_skip(reader));
            continue;
        }
        if (seen >> at & 1)
            return tt_err(TT_PROTOCOL, "%s comes twice", record->fields[at].name);
        seen |= (uint64_t)1 << at;
        TT_TRY(s_take_value(reader, &record->fields[at], self));
        hint = at + 1;
    }
    return TT_OK;
}

/*  {"m": id, ...: the first pair says which message it is. */
static tt_status_t s_take_id(tt_mp_reader_t *reader, const tt_msg_info_t **info, uint64_t *pairs)
{
    tt_mp_token_t map, key, id;
    TT_TRY(tt_mp_next(reader, &map));
    if (map.kind != TT_MP_MAP || map.number == 0)
        return tt_err(TT_PROTOCOL, "the header is not a map");
    TT_TRY(s_next_key(reader, &key));
    if (!s_is(&key, "m"))
        return tt_err(TT_PROTOCOL, "the header does not begin with \"m\"");
    TT_TRY(tt_mp_next(reader, &id));
    *info = id.kind == TT_MP_UINT && id.number <= INT32_MAX ? tt_msg_info((tt_msg_id_t)id.number) : NULL;
    if (!*info)
        return tt_err(TT_PROTOCOL, "unknown message");
    *pairs = map.number - 1;
    return TT_OK;
}

static void s_clear(const tt_record_t *record, void *self)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const tt_field_t *field = &record->fields[i];
        if (field->kind == TT_KIND_list) {
            char *items = *(char **)s_at(self, field);
            for (size_t k = 0; k < *s_count_at(self, field); k++)
                s_clear(field->record, items + k * field->record->size);
        }
        if (field->kind == TT_KIND_list || field->kind == TT_KIND_str)
            free(*(void **)s_at(self, field));
    }
}

tt_status_t tt_msg_unpack(tt_msg_t *out, const void *data, size_t size)
{
    tt_mp_reader_t reader = {data, (const uint8_t *)data + size};
    const tt_msg_info_t *info = NULL;
    uint64_t pairs = 0;
    TT_TRY(s_take_id(&reader, &info, &pairs));
    tt_msg_t msg;
    memset(&msg, 0, sizeof msg);
    msg.type = info->id;
    tt_status_t status = s_take_fields(&reader, &info->record, pairs, &msg);
    if (status == TT_OK && reader.at != reader.end)
        status = tt_err(TT_PROTOCOL, "%zu bytes behind the header", (size_t)(reader.end - reader.at));
    if (status != TT_OK) {
        s_clear(&info->record, &msg);
        return tt_err_wrap(status, "%s", info->record.name);
    }
    *out = msg;
    return TT_OK;
}

void tt_msg_clear(tt_msg_t *self)
{
    const tt_msg_info_t *info = tt_msg_info(self->type);
    if (info)
        s_clear(&info->record, self);
    memset(self, 0, sizeof *self);
}
