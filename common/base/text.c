#include "common/base/text.h"
#include <stdbool.h>
#include <stdio.h>
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

static bool s_is_obeyed(size_t length, uint32_t code)
{
    return !length || code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static bool s_is_plain(const char *text)
{
    size_t length;
    for (uint32_t code = 0; *text; text += length) {
        length = tt_utf8_next(text, &code);
        if (s_is_obeyed(length, code))
            return false;
    }
    return true;
}

/*  Of one character, or a byte of none; out has room for it. */
static size_t s_show(char *out, const char *text, size_t length, uint32_t code)
{
    if (!s_is_obeyed(length, code)) {
        memcpy(out, text, length);
        return length;
    }
    return (size_t)(length > 1 ? sprintf(out, "\\u%04x", code) : sprintf(out, "\\x%02x", (unsigned char)*text));
}

const char *tt_shown(const char *text)
{
    enum { MOST = 8 }; /* of one character, and of "..." */
    static _Thread_local char ring[TT_SHOWN_AT_ONCE][TT_SHOWN_MAX];
    static _Thread_local unsigned turn;
    if (!text || s_is_plain(text))
        return text;
    char *out = ring[turn++ % TT_SHOWN_AT_ONCE];
    size_t used = 0;
    while (*text && used + 2 * MOST < TT_SHOWN_MAX) {
        uint32_t code = 0;
        const size_t length = tt_utf8_next(text, &code);
        used += s_show(out + used, text, length, code);
        text += length ? length : 1;
    }
    strcpy(out + used, *text ? "..." : "");
    return out;
}
