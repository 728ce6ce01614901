/*  dump - everything claimed as YAML, sections gathered in the order in which they first appear. */
#include "common/config/parts.h"
#include <string.h>

enum { COMMENT_COLUMN = 44 };

static tt_status_t s_spaces(tt_buf_t *out, size_t count)
{
    while (count--)
        TT_TRY(tt_buf_str(out, " "));
    return TT_OK;
}

static tt_status_t s_leaf(tt_buf_t *out, const claim_t *claim, const char *name, size_t depth, bool with_origins)
{
    const size_t begin = out->size;
    TT_TRY(s_spaces(out, 2 * depth));
    TT_TRY(tt_buf_printf(out, "%s: %s", name, claim->value));
    if (with_origins) {
        const size_t width = out->size - begin;
        TT_TRY(s_spaces(out, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 1));
        TT_TRY(tt_buf_printf(out, " # %s", claim->origin));
    }
    return tt_buf_str(out, "\n");
}

/*  Does an earlier claim open the section key[0..length)? */
static bool s_opened(const tt_config_t *self, size_t at, size_t length)
{
    const char *key = self->claims[at].field->key;
    for (size_t i = 0; i < at; i++)
        if (strncmp(self->claims[i].field->key, key, length) == 0)
            return true;
    return false;
}

/*  The keys that begin with prefix[0..length): "" or "learner.". */
static tt_status_t s_section(
    const tt_config_t *self, tt_buf_t *out, const char *prefix, size_t length, size_t depth, bool with_origins)
{
    for (size_t i = 0; i < self->claim_count; i++) {
        const char *key = self->claims[i].field->key;
        if (strncmp(key, prefix, length) != 0)
            continue;
        const char *name = key + length, *dot = strchr(name, '.');
        if (!dot) {
            TT_TRY(s_leaf(out, &self->claims[i], name, depth, with_origins));
        } else if (!s_opened(self, i, (size_t)(dot - key) + 1)) {
            TT_TRY(s_spaces(out, 2 * depth));
            TT_TRY(tt_buf_printf(out, "%.*s:\n", (int)(dot - name), name));
            TT_TRY(s_section(self, out, key, (size_t)(dot - key) + 1, depth + 1, with_origins));
        }
    }
    return TT_OK;
}

tt_status_t tt_config_dump(const tt_config_t *self, tt_buf_t *out, bool with_origins)
{
    return s_section(self, out, "", 0, 0, with_origins);
}

void tt_config_each(const tt_config_t *self, tt_config_fn fn, void *ctx)
{
    for (size_t i = 0; i < self->claim_count; i++)
        fn(ctx, self->claims[i].field, self->claims[i].value, self->claims[i].origin);
}
