#include "common/base/when.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECONDS "%Y-%m-%dT%H:%M:%S"

/*  Up to the seconds, without a zone. */
static void s_seconds(char out[TT_WHEN], int64_t unix_s)
{
    enum { REST = sizeof ".000000Z" };
    const time_t when = (time_t)unix_s;
    struct tm tm;
    if (!gmtime_r(&when, &tm) || strftime(out, TT_WHEN - REST, SECONDS, &tm) == 0)
        snprintf(out, TT_WHEN, "1970-01-01T00:00:00");
}

const char *tt_when_text(char out[TT_WHEN], int64_t unix_s)
{
    s_seconds(out, unix_s);
    return strcat(out, "Z");
}

const char *tt_when_text_us(char out[TT_WHEN], int64_t unix_ns)
{
    s_seconds(out, unix_ns / 1000000000);
    const size_t length = strlen(out);
    snprintf(out + length, TT_WHEN - length, ".%06dZ", (int)(unix_ns % 1000000000 / 1000));
    return out;
}

/*  Z or an offset, to the end of the text. */
static bool s_zone(const char *text, int64_t *offset_s)
{
    unsigned hours = 0, minutes = 0;
    int end = 0;
    *offset_s = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &end) != 2 || text[1 + end] ||
        hours > 23 || minutes > 59)
        return false;
    *offset_s = (*text == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

bool tt_when_read(int64_t *out, const char *text)
{
    struct tm tm = {0};
    int64_t offset_s;
    const char *rest = strptime(text, SECONDS, &tm);
    if (!rest)
        return false;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!s_zone(rest, &offset_s))
        return false;
    *out = (int64_t)timegm(&tm) - offset_s;
    return true;
}
