#include "common/http/exposition.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

tt_status_t tt_exposition_head(tt_buf_t *out, const char *prefix, const char *name, const char *type, const char *help)
{
    return tt_buf_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name, type);
}

void tt_exposition_number(char out[32], double value)
{
    if (isnan(value) || isinf(value)) {
        snprintf(out, 32, "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

tt_status_t tt_exposition_one(
    tt_buf_t *out, const char *prefix, const char *name, const char *type, const char *help, double value)
{
    char number[32];
    tt_exposition_number(number, value);
    TT_TRY(tt_exposition_head(out, prefix, name, type, help));
    return tt_buf_printf(out, "%s%s %s\n", prefix, name, number);
}

tt_status_t tt_exposition_label(tt_buf_t *out, const char *text)
{
    for (; *text; text++)
        TT_TRY(tt_buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : *text == '\n' ? "\\n" : "%c", *text));
    return TT_OK;
}
