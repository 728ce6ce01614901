#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/job/job.h"

enum { TEXT_MAX = 1 << 20 };

char *tt_expand(const char *text, tt_lookup_fn lookup, const void *ctx)
{
    tt_buf_t out;
    tt_buf_init(&out, TEXT_MAX);
    while (*text) {
        const char *close = strncmp(text, "$(", 2) == 0 ? strchr(text, ')') : NULL;
        const char *value = close ? lookup(ctx, text + 2, (size_t)(close - text - 2)) : NULL;
        if (value) {
            (void)tt_buf_str(&out, value);
            text = close + 1;
        } else {
            (void)tt_buf_add(&out, text, 1);
            text += strncmp(text, "$$", 2) == 0 ? 2 : 1;
        }
    }
    char *copy = tt_strdup(tt_buf_text(&out));
    tt_buf_free(&out);
    return copy;
}

char *tt_expand_literal(const char *text)
{
    char *out = tt_new0(tt_add(tt_mul(2, strlen(text)), 1)), *to = out;
    for (const char *c = text; *c; c++) {
        if (*c == '$')
            *to++ = '$';
        *to++ = *c;
    }
    return out;
}
