#include "common/config/node.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tt_node_t tt_node_of(tt_manifest_t *file, size_t index)
{
    return (tt_node_t){.file = file, .index = index, .value = tt_manifest_at(file, index)};
}

/*  Of the path of what is above: where more of it goes, and how much. A path that is too long is cut: it only finds a line. */
static char *s_below(tt_node_t *self, const tt_node_t *above, size_t *room)
{
    *self = (tt_node_t){.file = above->file, .index = above->index};
    const size_t length = strlen(above->path);
    memcpy(self->path, above->path, length);
    *room = sizeof self->path - length;
    return self->path + length;
}

tt_node_t tt_node_get(const tt_node_t *self, const char *key)
{
    tt_node_t out;
    size_t room;
    char *end = s_below(&out, self, &room);
    snprintf(end, room, "%s%s", self->path[0] ? "." : "", key);
    json_t *value = json_object_get(self->value, key);
    out.value = json_is_null(value) ? NULL : value;
    return out;
}

tt_node_t tt_node_at(const tt_node_t *self, size_t i)
{
    tt_node_t out;
    size_t room;
    char *end = s_below(&out, self, &room);
    snprintf(end, room, "[%zu]", i);
    out.value = json_array_get(self->value, i);
    return out;
}

tt_status_t tt_node_err(const tt_node_t *self, tt_status_t status, const char *fmt, ...)
{
    char words[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return tt_err(status, "%s: %s", tt_manifest_where(self->file, self->index, self->path), words);
}

tt_status_t tt_node_text(const tt_node_t *self, const char *key, const char **out)
{
    const tt_node_t member = tt_node_get(self, key);
    const char *text = json_string_value(member.value);
    if (member.value && !text)
        return tt_node_err(&member, TT_CONFIG, "%s must be a text%s", key,
            json_is_array(member.value) || json_is_object(member.value) ? "" : ": put it in quotes");
    if (text && *text)
        *out = text;
    return TT_OK;
}

tt_status_t tt_node_bool(const tt_node_t *self, const char *key, bool *out)
{
    const tt_node_t member = tt_node_get(self, key);
    if (member.value && !json_is_boolean(member.value))
        return tt_node_err(&member, TT_CONFIG, "%s must be true or false", key);
    if (member.value)
        *out = json_is_true(member.value);
    return TT_OK;
}

tt_status_t tt_node_map(const tt_node_t *self, const char *key, tt_node_t *out)
{
    const tt_node_t member = tt_node_get(self, key);
    if (member.value && !json_is_object(member.value))
        return tt_node_err(&member, TT_CONFIG, "%s must be a mapping", key);
    *out = member;
    return TT_OK;
}

tt_status_t tt_node_list(const tt_node_t *self, const char *key, tt_node_t *out)
{
    const tt_node_t member = tt_node_get(self, key);
    if (member.value && !json_is_array(member.value))
        return tt_node_err(&member, TT_CONFIG, "%s must be a list", key);
    *out = member;
    return TT_OK;
}
