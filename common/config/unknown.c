/*  unknown - what is said of a key that nobody claimed: a synonym, another's, a typo. */
#include "common/config/parts.h"
#include "common/base/mem.h"
#include "common/config/synonyms.h"
#include "common/config/train.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tt_status_t s_err_synonym(const entry_t *entry, const tt_synonym_t *word)
{
    if (!word->ours)
        return tt_err(TT_CONFIG, "%s: unknown key '%s': %s", entry->origin, entry->key, word->note);
    return tt_err(TT_CONFIG, "%s: unknown key '%s'; here it is called '%s'%s%s%s", entry->origin, entry->key,
        word->ours, word->note ? " (" : "", word->note ? word->note : "", word->note ? ")" : "");
}

/*  A key of a table of others, in whatever section it stands here. */
static const tt_cfg_field_t *s_field_of(const stranger_t *stranger, const char *key)
{
    for (const tt_cfg_field_t *field = stranger->fields; field->key; field++)
        if (strcmp(key_leaf(field->key), key_leaf(key)) == 0)
            return field;
    return NULL;
}

/*  The first table of others that has the key. */
static const tt_cfg_field_t *s_stranger(const tt_config_t *self, const char *key)
{
    const tt_cfg_field_t *field = NULL;
    for (size_t i = 0; i < self->stranger_count && !field; i++)
        field = s_field_of(&self->strangers[i], key);
    return field;
}

/*  "the algorithms dqn, sac and td3, and this is ppo". */
static void s_whose(const tt_config_t *self, const char *key, tt_buf_t *out)
{
    const stranger_t *last = NULL;
    size_t count = 0;
    for (size_t i = 0; i < self->stranger_count; i++)
        if (s_field_of(&self->strangers[i], key)) {
            last = &self->strangers[i];
            count++;
        }
    (void)tt_buf_printf(out, "the algorithm%s ", count > 1 ? "s" : "");
    for (const stranger_t *one = self->strangers; one < last; one++)
        if (s_field_of(one, key))
            (void)tt_buf_printf(out, "%s%s", one->algorithm, --count > 1 ? ", " : " and ");
    (void)tt_buf_printf(out, "%s, and this is %s", last->algorithm, last->ours);
}

/*  A key that a person could have meant: not one of a map's, and not one that the program fills in. */
static bool s_is_for_people(const claim_t *claim)
{
    return !claim->made && !tt_train_fills_in(claim->field->key);
}

static const char *s_nearest_claim(const tt_config_t *self, const char *key)
{
    const char **names = tt_array0(self->claim_count, sizeof *names);
    for (size_t i = 0; i < self->claim_count; i++)
        names[i] = s_is_for_people(&self->claims[i]) ? self->claims[i].field->key : "";
    const char *near = tt_nearest(key, names, self->claim_count);
    free(names);
    return near;
}

/*  A section that another trainer has for what is a map of ours: "env_kwargs" of env_kwargs.g. */
static const tt_synonym_t *s_section_word(const tt_config_t *self, const char *key)
{
    char above[KEY_MAX + 1];
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
        snprintf(above, sizeof above, "%.*s", (int)(dot - key), key);
        const tt_synonym_t *word = tt_synonym(above);
        const claim_t *map = word && word->ours ? config_claim(self, word->ours) : NULL;
        if (map && map->field->type == TT_CFG_MAP)
            return word;
    }
    return NULL;
}

/*  Is it one of our words in a wrong section? Then nothing else is meant. */
static bool s_is_our_word(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (s_is_for_people(&self->claims[i]) && strcmp(key_leaf(self->claims[i].field->key), key_leaf(key)) == 0)
            return true;
    return false;
}

/*  What others call it. One of our words is no synonym, but of a key of that very name: several sections have it, and this one is meant
 *  most often. */
static const tt_synonym_t *s_word(const char *key, bool ours)
{
    const tt_synonym_t *word = tt_synonym(key);
    const bool says_which = word && word->ours && strcmp(key_leaf(word->ours), key_leaf(key)) == 0;
    return ours && !says_which ? NULL : word;
}

/*  Below a value that is its section's, too, but none of what the section has. */
static tt_status_t s_err_inside(const entry_t *entry, const short_t *word)
{
    return tt_err(TT_CONFIG, "%s: unknown key '%s'; '%s' holds %s", entry->origin, entry->key, word->key, word->holds);
}

/*  The value that the key wants to be below. */
static const char *s_value_above(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (key_is_above(self->claims[i].field->key, key))
            return self->claims[i].field->key;
    return NULL;
}

static tt_status_t s_err_stranger(const tt_config_t *self, const entry_t *entry, const char *key)
{
    const bool other = strcmp(key, entry->key) != 0;
    tt_buf_t whose;
    tt_buf_init(&whose, 4096);
    s_whose(self, key, &whose);
    tt_err(TT_CONFIG, "%s: unknown key '%s'%s%s%s; it belongs to %s", entry->origin, entry->key,
        other ? " (here '" : "", other ? key : "", other ? "')" : "", tt_buf_text(&whose));
    tt_buf_free(&whose);
    return TT_CONFIG;
}

tt_status_t unknown_key(const tt_config_t *self, const entry_t *entry)
{
    const tt_synonym_t *section = s_section_word(self, entry->key);
    if (section)
        return s_err_synonym(entry, section);
    const bool ours = s_is_our_word(self, entry->key);
    const tt_synonym_t *word = s_word(entry->key, ours);
    if (word && (!word->ours || config_claim(self, word->ours)))
        return s_err_synonym(entry, word);
    const char *value = s_value_above(self, entry->key);
    if (value && short_of(value))
        return s_err_inside(entry, short_of(value));
    if (value)
        return tt_err(
            TT_CONFIG, "%s: unknown key '%s'; '%s' is a value, not a section", entry->origin, entry->key, value);
    const tt_cfg_field_t *stranger = ours ? NULL : s_stranger(self, word ? word->ours : entry->key);
    if (stranger)
        return s_err_stranger(self, entry, stranger->key);
    const char *near = s_nearest_claim(self, entry->key);
    return near ? tt_err(TT_CONFIG, "%s: unknown key '%s'; did you mean '%s'?", entry->origin, entry->key, near)
                : tt_err(TT_CONFIG, "%s: unknown key '%s'; 'tutti config' lists the keys", entry->origin, entry->key);
}

tt_status_t missing_key(const tt_config_t *self, const tt_cfg_field_t *field)
{
    const char **names = tt_array0(self->entry_count, sizeof *names);
    for (size_t i = 0; i < self->entry_count; i++)
        names[i] = self->entries[i].key;
    const char *typo = tt_nearest(field->key, names, self->entry_count);
    free(names);
    if (typo)
        return tt_err(
            TT_CONFIG, "%s: unknown key '%s'; did you mean '%s'?", tt_config_origin(self, typo), typo, field->key);
    for (size_t i = 0; i < self->entry_count; i++) {
        const tt_synonym_t *word = tt_synonym(self->entries[i].key);
        if (word && word->ours && strcmp(word->ours, field->key) == 0)
            return s_err_synonym(&self->entries[i], word);
    }
    for (size_t i = 0; short_of(field->key) && i < self->entry_count; i++)
        if (key_is_above(field->key, self->entries[i].key))
            return tt_err(TT_CONFIG, "%s: '%s' is missing: '%s' holds %s", self->entries[i].origin,
                short_of(field->key)->whole, field->key, short_of(field->key)->holds);
    return tt_err(TT_CONFIG, "%s: '%s' is missing: %s", self->name, field->key, field->help);
}
