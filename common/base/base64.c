#include "common/base/base64.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

char *tt_base64_decode(const char *text, size_t *size)
{
    const size_t length = strlen(text), room = length / 4 * 3 + 4;
    char *out = tt_new0(room + 1);
    if (sodium_base642bin(
            (unsigned char *)out, room, text, length, " \r\n", size, NULL, sodium_base64_VARIANT_ORIGINAL) == 0) {
        out[*size] = 0;
        return out;
    }
    sodium_memzero(out, room);
    free(out);
    return NULL;
}

char *tt_base64_encode(const void *data, size_t size)
{
    const size_t room = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
    return sodium_bin2base64(tt_new0(room), room, data, size, sodium_base64_VARIANT_ORIGINAL);
}
