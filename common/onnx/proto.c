#include "common/onnx/proto.h"
#include <string.h>

enum { VARINT = 0, LENGTH = 2, FOUR_BYTES = 5 }; /* kinds of a field */

static void s_add(tt_buf_t *out, const void *data, size_t size)
{
    const tt_status_t status = tt_buf_add(out, data, size);
    TT_CHECK(status == TT_OK);
}

static void s_varint(tt_buf_t *out, uint64_t value)
{
    unsigned char byte[10];
    size_t count = 0;
    do {
        byte[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    s_add(out, byte, count);
}

static void s_tag(tt_buf_t *out, uint32_t field, uint32_t kind)
{
    s_varint(out, field << 3 | kind);
}

void tt_proto_int(tt_buf_t *out, uint32_t field, int64_t value)
{
    s_tag(out, field, VARINT);
    s_varint(out, (uint64_t)value);
}

void tt_proto_float(tt_buf_t *out, uint32_t field, float value)
{
    s_tag(out, field, FOUR_BYTES);
    s_add(out, &value, sizeof value); /* little-endian, as everything that we run on */
}

void tt_proto_bytes(tt_buf_t *out, uint32_t field, const void *data, size_t size)
{
    s_tag(out, field, LENGTH);
    s_varint(out, size);
    s_add(out, data, size);
}

void tt_proto_text(tt_buf_t *out, uint32_t field, const char *text)
{
    tt_proto_bytes(out, field, text, strlen(text));
}

void tt_proto_message(tt_buf_t *out, uint32_t field, tt_buf_t *inner)
{
    tt_proto_bytes(out, field, tt_buf_text(inner), inner->size);
    tt_buf_clear(inner);
}
