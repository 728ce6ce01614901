/*  dump - everything claimed as YAML, sections gathered in the order in which they first appear. */
#include "common/config/parts.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

enum { COMMENT_COLUMN = 44 };

/*  A claim and the path that it is written at: of a short key the whole one, where other keys share its section. */
typedef struct {
    const claim_t *claim;
    const char *path;
} line_t;

typedef struct {
    tt_buf_t *out;
    line_t *line;
    size_t count;
    bool with_origins;
} dump_t;

static tt_status_t s_spaces(tt_buf_t *out, size_t count)
{
    while (count--)
        TT_TRY(tt_buf_str(out, " "));
    return TT_OK;
}

static tt_status_t s_leaf(const dump_t *self, const claim_t *claim, const char *name, size_t depth)
{
    tt_buf_t *out = self->out;
    const size_t begin = out->size;
    TT_TRY(s_spaces(out, 2 * depth));
    TT_TRY(tt_buf_printf(out, "%s: %s", name, claim->value));
    if (self->with_origins) {
        const size_t width = out->size - begin;
        TT_TRY(s_spaces(out, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 1));
        TT_TRY(tt_buf_printf(out, " # %s", claim->origin));
    }
    return tt_buf_str(out, "\n");
}

/*  Does an earlier line open the section path[0..length)? */
static bool s_opened(const dump_t *self, size_t at, size_t length)
{
    for (size_t i = 0; i < at; i++)
        if (strncmp(self->line[i].path, self->line[at].path, length) == 0)
            return true;
    return false;
}

/*  The lines whose paths begin with prefix[0..length): "" or "learner.". */
static tt_status_t s_section(const dump_t *self, const char *prefix, size_t length, size_t depth)
{
    for (size_t i = 0; i < self->count; i++) {
        const char *path = self->line[i].path;
        if (strncmp(path, prefix, length) != 0)
            continue;
        const char *name = path + length, *dot = strchr(name, '.');
        if (!dot) {
            TT_TRY(s_leaf(self, self->line[i].claim, name, depth));
        } else if (!s_opened(self, i, (size_t)(dot - path) + 1)) {
            TT_TRY(s_spaces(self->out, 2 * depth));
            TT_TRY(tt_buf_printf(self->out, "%.*s:\n", (int)(dot - name), name));
            TT_TRY(s_section(self, path, (size_t)(dot - path) + 1, depth + 1));
        }
    }
    return TT_OK;
}

static bool s_is_written(const claim_t *claim)
{
    const bool unsaid = claim->field->quiet && strcmp(claim->origin, "default") == 0;
    return claim->field->type != TT_CFG_MAP && !unsaid;
}

/*  Does anything that is written stand below the key? */
static bool s_is_shared(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (s_is_written(&self->claims[i]) && key_is_above(key, self->claims[i].field->key))
            return true;
    return false;
}

static const char *s_path(const tt_config_t *self, const char *key)
{
    const short_t *word = short_of(key);
    return word && s_is_shared(self, key) ? word->whole : key;
}

tt_status_t tt_config_dump(const tt_config_t *self, tt_buf_t *out, bool with_origins)
{
    dump_t dump = {
        .out = out, .line = tt_array0(self->claim_count + 1, sizeof *dump.line), .with_origins = with_origins};
    for (size_t i = 0; i < self->claim_count; i++)
        if (s_is_written(&self->claims[i]))
            dump.line[dump.count++] = (line_t){&self->claims[i], s_path(self, self->claims[i].field->key)};
    const tt_status_t status = s_section(&dump, "", 0, 0);
    free(dump.line);
    return status;
}

void tt_config_each(const tt_config_t *self, tt_config_fn fn, void *ctx)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (s_is_written(&self->claims[i]))
            fn(ctx, self->claims[i].field, self->claims[i].value, self->claims[i].origin);
}
