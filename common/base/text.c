#include "common/base/text.h"
#include <stdbool.h>
#include <string.h>
#include "common/base/mem.h"

size_t tt_utf8_next(const char *text, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* shorter forms exist below */
    const unsigned char *at = (const unsigned char *)text;
    if (*at < 0x80) {
        *out = *at;
        return 1;
    }
    const size_t length = *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    if (!length)
        return 0;
    uint32_t code = *at & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    *out = code;
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

void tt_text_copy(char *out, size_t size, const char *text)
{
    size_t used = 0, length;
    for (uint32_t code; *text && used + 1 < size; text += length) {
        length = tt_utf8_next(text, &code);
        if (length > 0 && used + length >= size)
            break;
        if (length > 0)
            memcpy(out + used, text, length);
        else
            out[used] = '?';
        length = length > 0 ? length : 1;
        used += length;
    }
    out[used] = '\0';
}

char *tt_text_dup(const char *text)
{
    char *out = tt_strdup(text);
    if (out)
        tt_text_copy(out, strlen(text) + 1, text);
    return out;
}
