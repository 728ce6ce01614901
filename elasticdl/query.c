#include "elasticdl/query.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int s_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*  The character that begins at from, and how many bytes of `left` it takes; 0: none. */
static size_t s_decode(char *out, const char *from, size_t left)
{
    if (*from != '%') {
        *out = *from == '+' ? ' ' : *from;
        return 1;
    }
    const int high = left > 2 ? s_hex(from[1]) : -1, low = left > 2 ? s_hex(from[2]) : -1;
    if (high < 0 || low < 0)
        return 0;
    *out = (char)(high * 16 + low);
    return 3;
}

static tt_status_t s_value(char *out, size_t size, const char *from, size_t length, const char *name)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        char c = '\0';
        const size_t taken = s_decode(&c, from + at, length - at);
        if (taken == 0 || (unsigned char)c < ' ' || c == 0x7f)
            return tt_err(TT_INVALID, "%s is not text", name);
        if (used + 1 >= size)
            return tt_err(TT_INVALID, "%s is longer than %zu characters", name, size - 1);
        out[used++] = c;
        at += taken;
    }
    out[used] = '\0';
    return used ? TT_OK : TT_NOT_FOUND;
}

tt_status_t query_get(char *out, size_t size, const char *query, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = query; *at;) {
        const size_t pair = strcspn(at, "&");
        if (pair > length && at[length] == '=' && strncmp(at, name, length) == 0)
            return s_value(out, size, at + length + 1, pair - length - 1, name);
        at += pair + (at[pair] == '&');
    }
    return TT_NOT_FOUND;
}

tt_status_t query_escape(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (const char *c = text; *c; c++) {
        const bool plain = isalnum((unsigned char)*c) || strchr("-._~", *c);
        const size_t need = plain ? 1 : 3;
        if (used + need >= size)
            return tt_err(TT_INVALID, "'%.80s' is too long", text);
        snprintf(out + used, need + 1, plain ? "%c" : "%%%02X", (unsigned char)*c);
        used += need;
    }
    out[used] = '\0';
    return TT_OK;
}
