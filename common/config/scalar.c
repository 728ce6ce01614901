#include "common/config/scalar.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/status.h"

enum { NUMBER_MAX = 64 };

static bool s_in(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool s_is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    return s_in(text, words, TT_COUNT(words));
}

static json_t *s_bool(const char *text)
{
    static const char *const yes[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
    static const char *const no[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
    if (s_in(text, yes, TT_COUNT(yes)))
        return json_true();
    return s_in(text, no, TT_COUNT(no)) ? json_false() : NULL;
}

/*  Without underscores; false when it is too long to be a number. */
static bool s_plain_number(const char *text, char out[NUMBER_MAX])
{
    size_t n = 0;
    for (; *text && n < NUMBER_MAX - 1; text++)
        if (*text != '_')
            out[n++] = *text;
    out[n] = '\0';
    return n > 0 && !*text;
}

/*  [sign] then 0x, 0o, 0b or 0 and digits of that base, else decimal ones. NULL: not a whole number of 64 bits. */
static json_t *s_integer(const char *text)
{
    const bool minus = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int base = 10;
    if (digits[0] == '0' && digits[1]) {
        const char kind = (char)(digits[1] | 0x20);
        base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
        digits += kind == 'x' || kind == 'b' || kind == 'o' ? 2 : 1;
    }
    static const char all[] = "0123456789abcdefABCDEF";
    if (!*digits || strspn(digits, all) != strlen(digits))
        return NULL;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(digits, &end, base);
    if (*end || errno || value > (unsigned long long)INT64_MAX + minus)
        return NULL;
    return json_integer(minus ? (json_int_t)(0 - value) : (json_int_t)value);
}

/*  Digits with at most one point, then at most an exponent. */
static bool s_is_decimal(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-' || *text == '+';
    const size_t whole = strspn(text, digits);
    text += whole;
    const size_t part = *text == '.' ? strspn(text + 1, digits) : 0;
    if (whole + part == 0)
        return false;
    text += *text == '.' ? 1 + part : 0;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        const size_t exponent = strspn(text, digits);
        if (!exponent)
            return false;
        text += exponent;
    }
    return !*text;
}

/*  Whole ones become integers, as Go prints them: replicas: 1e3 is a count. */
static json_t *s_real(const char *text)
{
    const double value = strtod(text, NULL);
    if (!isfinite(value))
        return NULL;
    if (value == trunc(value) && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    return json_real(value);
}

static bool s_is_infinite(const char *text)
{
    static const char *const words[] = {
        ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN"};
    return s_in(text, words, TT_COUNT(words));
}

static json_t *s_number(const char *text)
{
    char number[NUMBER_MAX];
    if (!strchr("+-.0123456789", *text) || !s_plain_number(text, number))
        return NULL;
    json_t *value = s_integer(number);
    return value || !s_is_decimal(number) ? value : s_real(number);
}

static json_t *s_plain(const char *text)
{
    json_t *value;
    if (s_is_null(text))
        return json_null();
    if (s_is_infinite(text))
        return NULL;
    if ((value = s_bool(text)) || (value = s_number(text)))
        return value;
    return json_string(text);
}

json_t *tt_scalar_value(const char *text, const char *tag, bool plain)
{
    static const char ours[] = "tag:yaml.org,2002:";
    if (!tag || strcmp(tag, "!") == 0)
        return plain && !tag ? s_plain(text) : json_string(text);
    if (strncmp(tag, ours, sizeof ours - 1) != 0)
        return NULL;
    tag += sizeof ours - 1;
    if (strcmp(tag, "str") == 0)
        return json_string(text);
    if (strcmp(tag, "null") == 0)
        return s_is_null(text) ? json_null() : NULL;
    if (strcmp(tag, "bool") == 0)
        return s_bool(text);
    if (strcmp(tag, "int") == 0 || strcmp(tag, "float") == 0)
        return s_number(text);
    return NULL;
}
