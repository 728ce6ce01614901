#include "common/job/groups.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *s_skip(const char *at)
{
    return at + strspn(at, " ");
}

/*  A word of letters, digits and '_'; NULL: there is none, or it is too long. */
static const char *s_word(const char *at, char out[TT_GROUP_NAME_MAX])
{
    size_t length = 0;
    at = s_skip(at);
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    if (length == 0 || length >= TT_GROUP_NAME_MAX)
        return NULL;
    memcpy(out, at, length);
    out[length] = '\0';
    return s_skip(at + length);
}

/*  "NAME: TOWER"; what follows, or NULL. */
static const char *s_group(const char *at, char name[TT_GROUP_NAME_MAX], char tower[TT_GROUP_NAME_MAX])
{
    at = s_word(at, name);
    return at && *at == ':' ? s_word(at + 1, tower) : NULL;
}

static bool s_has(const tt_groups_t *self, const char *name)
{
    for (uint32_t g = 0; g < self->count; g++)
        if (strcmp(self->at[g].name, name) == 0)
            return true;
    return false;
}

tt_status_t tt_groups_parse(tt_groups_t *out, const char *words)
{
    tt_groups_t groups = {0};
    for (const char *at = s_skip(words); *at;) {
        char name[TT_GROUP_NAME_MAX], tower[TT_GROUP_NAME_MAX];
        const char *end = s_group(at, name, tower);
        if (!end || (*end && *end != ',') || (*end == ',' && !*s_skip(end + 1)))
            return tt_err(TT_INVALID, "groups: '%.64s' is not of the form NAME: TOWER, NAME: TOWER", at);
        if (s_has(&groups, name))
            return tt_err(TT_INVALID, "groups: %s stands there twice", name);
        if (groups.count == TT_TOWERS_MAX)
            return tt_err(TT_INVALID, "groups: more than %d", TT_TOWERS_MAX);
        snprintf(groups.at[groups.count].name, TT_GROUP_NAME_MAX, "%s", name);
        snprintf(groups.at[groups.count++].tower, TT_GROUP_NAME_MAX, "%s", tower);
        at = *end ? s_skip(end + 1) : end;
    }
    *out = groups;
    return TT_OK;
}

tt_status_t tt_groups_put(const tt_groups_t *self, tt_net_spec_t *spec)
{
    uint32_t first[TT_TOWERS_MAX] = {0};
    for (uint32_t g = 0; g < self->count; g++) {
        first[g] = tt_net_tower(spec, self->at[g].tower);
        if (first[g] == spec->towers)
            return tt_err(TT_INVALID, "groups: %s begins with %s, which the network has not", self->at[g].name,
                self->at[g].tower);
        if (g && first[g] <= first[g - 1])
            return tt_err(TT_INVALID, "groups: %s begins with %s, which is not behind %s", self->at[g].name,
                self->at[g].tower, self->at[g - 1].tower);
    }
    for (uint32_t g = 1; g < self->count; g++)
        for (uint32_t t = first[g]; t < spec->towers; t++)
            spec->tower[t].group = g;
    return TT_OK;
}
