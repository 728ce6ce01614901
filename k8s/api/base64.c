#include "k8s/api/base64.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

static const char s_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* One character's six bits; -1 = none of the alphabet. */
static int s_value(char c)
{
    const char *at = c ? strchr(s_alphabet, c) : NULL;
    return at ? (int)(at - s_alphabet) : -1;
}

char *kube_base64_decode(const char *text, size_t *size)
{
    char *out = tt_new0(strlen(text) / 4 * 3 + 4);
    size_t n = 0, taken = 0, padding = 0;
    uint32_t bits = 0;
    for (; *text; text++) {
        if (*text == '\n' || *text == '\r')
            continue;
        const int value = *text == '=' ? 0 : s_value(*text);
        padding += *text == '=';
        if (value < 0 || (padding && *text != '=') || padding > 2) {
            free(out);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)value;
        if (++taken % 4)
            continue;
        out[n++] = (char)(bits >> 16);
        out[n++] = (char)(bits >> 8);
        out[n++] = (char)bits;
        bits = 0;
    }
    if (taken % 4) {
        free(out);
        return NULL;
    }
    n -= padding;
    out[n] = 0;
    *size = n;
    return out;
}

char *kube_base64_encode(const void *data, size_t size)
{
    const unsigned char *in = data;
    char *out = tt_new0(tt_add(tt_mul(size / 3 + 1, 4), 1)), *at = out;
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t bits =
            (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
        *at++ = s_alphabet[bits >> 18];
        *at++ = s_alphabet[bits >> 12 & 63];
        *at++ = left > 1 ? s_alphabet[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? s_alphabet[bits & 63] : '=';
    }
    return out;
}
