#include "common/wire/mp.h"
#include <string.h>

enum { DEPTH_MAX = 8 };

static size_t s_left(const tt_mp_reader_t *self)
{
    return (size_t)(self->end - self->at);
}

/*  A big-endian number of `size` bytes. */
static tt_status_t s_number(tt_mp_reader_t *self, size_t size, uint64_t *out)
{
    if (s_left(self) < size)
        return tt_err(TT_PROTOCOL, "msgpack is cut off");
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | *self->at++;
    *out = value;
    return TT_OK;
}

/*  Two's complement of `size` bytes. */
static tt_status_t s_signed(tt_mp_reader_t *self, size_t size, tt_mp_token_t *out)
{
    TT_TRY(s_number(self, size, &out->number));
    const unsigned shift = (unsigned)(64 - 8 * size);
    const int64_t value = (int64_t)(out->number << shift) >> shift;
    out->kind = value < 0 ? TT_MP_INT : TT_MP_UINT;
    out->number = (uint64_t)value;
    return TT_OK;
}

static tt_status_t s_float(tt_mp_reader_t *self, size_t size, tt_mp_token_t *out)
{
    uint64_t bits = 0;
    TT_TRY(s_number(self, size, &bits));
    out->kind = TT_MP_FLOAT;
    if (size == 4) {
        const uint32_t half = (uint32_t)bits;
        float value;
        memcpy(&value, &half, sizeof value);
        out->real = (double)value;
    } else {
        memcpy(&out->real, &bits, sizeof out->real);
    }
    return TT_OK;
}

/*  `out->number` bytes of text or data, behind `skip` bytes (an ext type). */
static tt_status_t s_bytes(tt_mp_reader_t *self, tt_mp_kind_t kind, size_t skip, tt_mp_token_t *out)
{
    if (s_left(self) < skip || s_left(self) - skip < out->number)
        return tt_err(TT_PROTOCOL, "msgpack is cut off");
    out->kind = kind;
    out->bytes = self->at + skip;
    self->at += skip + out->number;
    return TT_OK;
}

static tt_status_t s_sized_bytes(
    tt_mp_reader_t *self, tt_mp_kind_t kind, size_t length_size, size_t skip, tt_mp_token_t *out)
{
    TT_TRY(s_number(self, length_size, &out->number));
    return s_bytes(self, kind, skip, out);
}

/*  Each element takes at least a byte: more of them than bytes is a lie. */
static tt_status_t s_elements(tt_mp_reader_t *self, tt_mp_kind_t kind, tt_mp_token_t *out)
{
    const size_t least = kind == TT_MP_MAP ? 2 : 1;
    if (out->number > s_left(self) / least)
        return tt_err(
            TT_PROTOCOL, "msgpack says %llu elements in %zu bytes", (unsigned long long)out->number, s_left(self));
    out->kind = kind;
    return TT_OK;
}

static tt_status_t s_sized_elements(tt_mp_reader_t *self, tt_mp_kind_t kind, size_t count_size, tt_mp_token_t *out)
{
    TT_TRY(s_number(self, count_size, &out->number));
    return s_elements(self, kind, out);
}

/*  Formats 0xc0..0xdf: the first byte names type and size. */
static tt_status_t s_named(tt_mp_reader_t *self, uint8_t first, tt_mp_token_t *out)
{
    switch (first) {
    case 0xc0:
        out->kind = TT_MP_NIL;
        return TT_OK;
    case 0xc2:
    case 0xc3:
        out->kind = TT_MP_FLAG;
        out->number = first & 1u;
        return TT_OK;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return s_sized_bytes(self, TT_MP_BIN, (size_t)1 << (first - 0xc4), 0, out);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return s_sized_bytes(self, TT_MP_EXT, (size_t)1 << (first - 0xc7), 1, out);
    case 0xca:
        return s_float(self, 4, out);
    case 0xcb:
        return s_float(self, 8, out);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        out->kind = TT_MP_UINT;
        return s_number(self, (size_t)1 << (first - 0xcc), &out->number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return s_signed(self, (size_t)1 << (first - 0xd0), out);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        out->number = (uint64_t)1 << (first - 0xd4);
        return s_bytes(self, TT_MP_EXT, 1, out);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return s_sized_bytes(self, TT_MP_STR, (size_t)1 << (first - 0xd9), 0, out);
    case 0xdc:
    case 0xdd:
        return s_sized_elements(self, TT_MP_ARRAY, (size_t)2 << (first - 0xdc), out);
    case 0xde:
    case 0xdf:
        return s_sized_elements(self, TT_MP_MAP, (size_t)2 << (first - 0xde), out);
    default:
        return tt_err(TT_PROTOCOL, "byte 0x%02x is not msgpack", first);
    }
}

tt_status_t tt_mp_next(tt_mp_reader_t *self, tt_mp_token_t *out)
{
    if (self->at == self->end)
        return tt_err(TT_PROTOCOL, "msgpack is cut off");
    const uint8_t first = *self->at++;
    *out = (tt_mp_token_t){.kind = TT_MP_UINT};
    if (first < 0x80) {
        out->number = first;
        return TT_OK;
    }
    if (first >= 0xe0) {
        out->kind = TT_MP_INT;
        out->number = (uint64_t)(int64_t)(int8_t)first;
        return TT_OK;
    }
    if (first >= 0xc0)
        return s_named(self, first, out);
    if (first >= 0xa0) {
        out->number = first & 0x1fu;
        return s_bytes(self, TT_MP_STR, 0, out);
    }
    out->number = first & 0x0fu;
    return s_elements(self, first >= 0x90 ? TT_MP_ARRAY : TT_MP_MAP, out);
}

static tt_status_t s_skip(tt_mp_reader_t *self, int depth)
{
    if (depth > DEPTH_MAX)
        return tt_err(TT_PROTOCOL, "msgpack is nested deeper than %d", DEPTH_MAX);
    tt_mp_token_t token;
    TT_TRY(tt_mp_next(self, &token));
    uint64_t values = token.kind == TT_MP_ARRAY ? token.number : token.kind == TT_MP_MAP ? 2 * token.number : 0;
    for (; values > 0; values--)
        TT_TRY(s_skip(self, depth + 1));
    return TT_OK;
}

tt_status_t tt_mp_skip(tt_mp_reader_t *self)
{
    return s_skip(self, 1);
}
