#include "k8s/front/spec.h"
#include <stdio.h>
#include <string.h>
#include "common/config/config.h"

static const json_t *s_member(const json_t *holder, const char *key)
{
    const json_t *member = json_object_get(holder, key);
    return json_is_null(member) ? NULL : member;
}

const char *spec_text(char **wrong, const json_t *holder, const char *where, const char *key)
{
    const json_t *member = s_member(holder, key);
    if (member && !json_is_string(member))
        SPEC_WRONG(wrong, "%s.%s: expected text", where, key);
    return parts_text(holder, key, "");
}

int64_t spec_number(
    char **wrong, const json_t *holder, const char *where, const char *key, int64_t otherwise, int64_t min, int64_t max)
{
    bool bad = false;
    parts_int(holder, key, min, max, &otherwise, &bad);
    if (bad)
        SPEC_WRONG(wrong, "%s.%s: expected a number from %lld to %lld", where, key, (long long)min, (long long)max);
    return otherwise;
}

bool spec_flag(char **wrong, const json_t *holder, const char *where, const char *key)
{
    const json_t *member = s_member(holder, key);
    if (member && !json_is_boolean(member))
        SPEC_WRONG(wrong, "%s.%s: expected true or false", where, key);
    return json_is_true(member);
}

static void s_none_of(
    char **wrong, const char *where, const char *key, const char *text, const char *const *words, size_t count)
{
    char list[128] = "";
    const char *near = tt_nearest(text, words, count);
    for (size_t i = 0, at = 0; i < count && at < sizeof list; i++)
        if (*words[i])
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", words[i]);
    SPEC_WRONG(wrong, "%s.%s: '%.40s' is none of %s%s%s%s", where, key, text, list, near ? "; did you mean '" : "",
        near ? near : "", near ? "'?" : "");
}

size_t spec_word(
    char **wrong, const json_t *holder, const char *where, const char *key, const char *const *words, size_t count)
{
    const char *text = spec_text(wrong, holder, where, key);
    const json_t *member = s_member(holder, key);
    if (!member)
        return 0;
    if (!json_is_string(member))
        return count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    s_none_of(wrong, where, key, text, words, count);
    return count;
}

bool spec_is_label(const char *text, size_t most, bool letter)
{
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length == 0 || length > most || text[length] || text[0] == '-' || text[length - 1] == '-')
        return false;
    return !letter || text[0] > '9';
}

tt_status_t spec_head(
    const json_t *object, const char *kind, const char *group, kube_meta_t *meta, int64_t *generation, bool *deleting)
{
    const char *its = parts_text(object, "kind", kind), *version = parts_text(object, "apiVersion", NULL);
    const json_t *metadata = json_object_get(object, "metadata");
    const size_t size = strlen(group);
    if (!json_is_object(object) || strcmp(its, kind) != 0 ||
        (version && (strncmp(version, group, size) != 0 || version[size] != '/')))
        return tt_err(TT_DATA, "not a %s of %s: kind '%.60s' of '%.80s%s'", kind, group, its, version ? version : group,
            version ? "" : "/");
    TT_TRY(parts_meta(meta, metadata));
    *generation = json_integer_value(json_object_get(metadata, "generation"));
    *deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
    return TT_OK;
}

tt_status_t spec_load(json_t **out, const char *what, const char *json, size_t size)
{
    json_error_t error;
    *out = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
    return *out ? TT_OK : tt_err(TT_DATA, "%s's JSON, byte %d: %s", what, error.position, error.text);
}
