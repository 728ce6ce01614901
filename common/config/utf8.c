/*  utf8 - which characters may stand unescaped in YAML (1.2, section 5.1) and in a message. */
#include "common/config/parts.h"

bool utf8_printable(uint32_t code)
{
    const bool odd = code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe || code == 0xffff;
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && !odd);
}

void origin_clean(char *origin)
{
    while (*origin) {
        uint32_t code = 0;
        const size_t length = tt_utf8_next(origin, &code);
        if (!length || !utf8_printable(code))
            *origin = '?';
        origin += length && utf8_printable(code) ? length : 1;
    }
}
