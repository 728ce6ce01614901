/*  Any bytes as a header: refused, or a message that packs into bytes which read as the same message again. */
#include "common/wire/msg.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_msg_t msg, again;
    if (tt_msg_unpack(&msg, data, size) != TT_OK)
        return 0;
    tt_buf_t bytes, twice;
    tt_buf_init(&bytes, (size_t)16 << 20);
    tt_buf_init(&twice, (size_t)16 << 20);
    TT_CHECK(tt_msg_pack(&bytes, &msg) == TT_OK); /* what came in within its limits goes out within them */
    TT_CHECK(tt_msg_unpack(&again, bytes.data, bytes.size) == TT_OK);
    TT_CHECK(tt_msg_pack(&twice, &again) == TT_OK);
    TT_CHECK(twice.size == bytes.size && memcmp(twice.data, bytes.data, bytes.size) == 0);
    tt_msg_clear(&msg);
    tt_msg_clear(&again);
    tt_buf_free(&bytes);
    tt_buf_free(&twice);
    return 0;
}
