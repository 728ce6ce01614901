#include "cli/as_key.h"
#include <stdio.h>
#include <string.h>
#include "common/config/synonyms.h"
#include "common/config/train.h"
#include "learner/algorithm.h"

/*  The whole key, or its last part. */
static bool s_is(const char *key, const char *name)
{
    const size_t length = strlen(key), wanted = strlen(name);
    const char *at = length < wanted ? key : key + (length - wanted);
    if (length < wanted || (at > key && at[-1] != '.'))
        return false;
    for (; *at && (*at == *name || (*at == '_' && *name == '-')); at++, name++)
        ;
    return !*at;
}

/*  Keys of that name, each counted once; *out is the first. */
static size_t s_count(const tt_cfg_field_t *fields, const char *name, const char **out)
{
    size_t count = 0;
    for (; fields->key; fields++)
        if (s_is(fields->key, name) && !tt_train_fills_in(fields->key) && !(*out && strcmp(*out, fields->key) == 0)) {
            *out = *out ? *out : fields->key;
            count++;
        }
    return count;
}

static size_t s_keys(const char *name, const char **out)
{
    size_t count;
    const tt_algorithm_t *const *algorithms = tt_algorithms(&count);
    size_t keys = s_count(tt_train_fields, name, out);
    for (size_t i = 0; i < count; i++)
        keys += s_count(algorithms[i]->fields, name, out);
    return keys;
}

bool as_key(char *out, size_t size, const char *name)
{
    const char *key = NULL, *note = NULL;
    const size_t keys = s_keys(name, &key);
    const tt_synonym_t *word = tt_synonym(name);
    if (word && (keys == 0 ||
                    (word->ours && s_is(word->ours, name)))) { /* a word of ours is no synonym, unless it says which */
        key = word->ours;
        note = word->note;
    } else if (keys != 1)
        return false;
    if (key)
        snprintf(
            out, size, "here it is '--set %s=VALUE'%s%s%s", key, note ? " (" : "", note ? note : "", note ? ")" : "");
    else
        snprintf(out, size, "%s", note);
    return true;
}
