/*  utf8 - which bytes are text, and which of it may stand unescaped in YAML (1.2, section 5.1) and in a message. */
#include "common/config/parts.h"

size_t utf8_next(const char *text, uint32_t *out)
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

bool utf8_printable(uint32_t code)
{
    const bool odd = code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe || code == 0xffff;
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && !odd);
}

void origin_clean(char *origin)
{
    while (*origin) {
        uint32_t code = 0;
        const size_t length = utf8_next(origin, &code);
        if (!length || !utf8_printable(code))
            *origin = '?';
        origin += length && utf8_printable(code) ? length : 1;
    }
}
