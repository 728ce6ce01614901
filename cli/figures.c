#include "cli/figures.h"
#include <math.h>
#include <stdio.h>
#include "common/base/status.h"

enum { DIGITS = 4 };

const char *figure_count(uint64_t number, char out[FIGURE])
{
    char digits[FIGURE];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    int used = 0;
    for (int i = 0; i < length; i++) {
        out[used++] = digits[i];
        if ((length - i) % 3 == 1 && i + 1 < length)
            out[used++] = ',';
    }
    out[used] = '\0';
    return out;
}

const char *figure_digits(double value, char out[FIGURE])
{
    const double size = fabs(value);
    if (isnan(value))
        snprintf(out, FIGURE, "-");
    else if (value == 0)
        snprintf(out, FIGURE, "0");
    else if (size >= 1e9 || size < 1e-4)
        snprintf(out, FIGURE, "%.1e", value);
    else {
        const int before = (int)floor(log10(size)) + 1; /* digits before the point, or minus the zeros behind it */
        snprintf(out, FIGURE, "%.*f", before < DIGITS ? DIGITS - before : 0, value);
    }
    return out;
}

const char *figure_time(double seconds, char out[FIGURE])
{
    if (!(seconds >= 0 && seconds < 1e12)) {
        snprintf(out, FIGURE, "-");
        return out;
    }
    const unsigned long long all = (unsigned long long)seconds, days = all / 86400, rest = all % 86400;
    const unsigned hours = (unsigned)(rest / 3600), minutes = (unsigned)(rest / 60 % 60), last = (unsigned)(rest % 60);
    if (days)
        snprintf(out, FIGURE, "%llud %02u:%02u:%02u", days, hours, minutes, last);
    else
        snprintf(out, FIGURE, "%02u:%02u:%02u", hours, minutes, last);
    return out;
}

const char *figure_bytes(double bytes, char out[FIGURE])
{
    if (bytes >= 1e10)
        snprintf(out, FIGURE, "%.0f GB", bytes * 1e-9);
    else
        snprintf(out, FIGURE, "%.0f MB", bytes * 1e-6);
    return out;
}

const char *figure_amount(uint64_t number, const char *unit, char out[FIGURE])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    double amount = (double)number;
    size_t p = 0;
    for (; amount >= 1000 && p + 1 < TT_COUNT(prefixes); p++)
        amount /= 1000;
    snprintf(out, FIGURE, amount < 10 && p ? "%.1f %s%s" : "%.0f %s%s", amount, prefixes[p], unit);
    return out;
}
