#include "common/http/query.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

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

char *tt_query_decode(const char *from, size_t size)
{
    char *out = tt_new0(size + 1);
    for (size_t at = 0, used = 0, taken; at < size; at += taken) {
        char c = '\0';
        taken = s_decode(&c, from + at, size - at);
        if (taken == 0 || (unsigned char)c < ' ' || c == 0x7f) {
            free(out);
            return NULL;
        }
        out[used++] = c;
    }
    return out;
}

static tt_status_t s_value(char *out, size_t size, const char *from, size_t length, const char *name)
{
    char *text = tt_query_decode(from, length);
    if (!text)
        return tt_err(TT_INVALID, "%s is not text", name);
    const size_t used = strlen(text);
    if (used < size)
        memcpy(out, text, used + 1);
    free(text);
    if (used >= size)
        return tt_err(TT_INVALID, "%s is longer than %zu characters", name, size - 1);
    return used ? TT_OK : TT_NOT_FOUND;
}

tt_status_t tt_query_get(char *out, size_t size, const char *query, const char *name)
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

char *tt_query_escape(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = tt_new0(tt_add(tt_mul(3, strlen(text)), 1)), *at = out;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                           strchr("-._~", *c); /* RFC 3986, unreserved */
        if (plain) {
            *at++ = (char)*c;
            continue;
        }
        *at++ = '%';
        *at++ = digits[*c >> 4];
        *at++ = digits[*c & 15];
    }
    return out;
}
