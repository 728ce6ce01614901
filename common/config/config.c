#include "common/config/parts.h"
#include "common/base/mem.h"
#include "common/config/synonyms.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  ---- entries ---- */

void entry_free(entry_t *entry)
{
    for (size_t i = 0; i < entry->item_count; i++)
        free(entry->items[i]);
    free(entry->items);
    free(entry->key);
    free(entry->text);
    free(entry->origin);
    *entry = (entry_t){0};
}

entry_t *config_entry(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->entry_count; i++)
        if (strcmp(self->entries[i].key, key) == 0)
            return &self->entries[i];
    return NULL;
}

static const short_t s_shorts[] = {{"env", "id", "env.id",
    "'id', 'args', 'stack', 'stack_pad', and for gym: 'frames', 'python', 'path', 'workers' and 'wrappers'"}};

const short_t *short_of(const char *key)
{
    for (size_t i = 0; i < TT_COUNT(s_shorts); i++)
        if (strcmp(s_shorts[i].key, key) == 0)
            return &s_shorts[i];
    return NULL;
}

const short_t *short_of_whole(const char *path)
{
    for (size_t i = 0; i < TT_COUNT(s_shorts); i++)
        if (strcmp(s_shorts[i].whole, path) == 0)
            return &s_shorts[i];
    return NULL;
}

const claim_t *config_claim(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (strcmp(self->claims[i].field->key, key) == 0)
            return &self->claims[i];
    return NULL;
}

void config_add(tt_config_t *self, const entry_t *entry)
{
    entry_t *old = config_entry(self, entry->key);
    if (old) {
        for (size_t i = 0; i < self->claim_count; i++)
            if (strcmp(self->claims[i].field->key, entry->key) == 0)
                self->claims[i].origin = entry->origin; /* claimed again to get the new value */
        entry_free(old);
        *old = *entry;
        return;
    }
    if (self->entry_count % 64 == 0)
        self->entries = tt_realloc(self->entries, (self->entry_count + 64) * sizeof *self->entries);
    self->entries[self->entry_count++] = *entry;
}

static void s_claim_free(claim_t *claim)
{
    free(claim->value);
    free(claim->made);
}

/*  ---- making one ---- */

tt_status_t tt_config_parse(tt_config_t **self_p, const char *text, size_t size, const char *name)
{
    tt_config_t *self = tt_new0(sizeof *self);
    self->name = tt_strdup(name);
    const tt_status_t status = config_read(self, text, size, name, NULL, NULL, TT_CONFIG);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_config_destroy(&self);
    return status;
}

tt_status_t tt_config_load(tt_config_t **self_p, const char *path)
{
    tt_buf_t text;
    tt_buf_init(&text, TEXT_MAX);
    tt_status_t status = tt_buf_read_input(&text, path, TT_INPUT_PATIENCE_MS);
    if (status == TT_INVALID)
        status = tt_err(TT_CONFIG, "%s: more than 1 MiB; this is not a config", path);
    if (status == TT_OK)
        status = tt_config_parse(self_p, tt_buf_text(&text), text.size, strcmp(path, "-") == 0 ? "<stdin>" : path);
    tt_buf_free(&text);
    return status;
}

void tt_config_destroy(tt_config_t **self_p)
{
    tt_config_t *self = *self_p;
    *self_p = NULL;
    if (!self)
        return;
    for (size_t i = 0; i < self->entry_count; i++)
        entry_free(&self->entries[i]);
    for (size_t i = 0; i < self->claim_count; i++)
        s_claim_free(&self->claims[i]);
    for (size_t i = 0; i < self->ignored_count; i++)
        free(self->ignored[i]);
    for (size_t i = 0; i < self->stranger_count; i++) {
        free(self->strangers[i].algorithm);
        free(self->strangers[i].ours);
    }
    free(self->strangers);
    free(self->entries);
    free(self->claims);
    free(self->ignored);
    free(self->name);
    free(self);
}

tt_status_t tt_config_set(tt_config_t *self, const char *assignment)
{
    const size_t length = strcspn(assignment, "=");
    char key[KEY_MAX + 1] = "";
    if (length <= KEY_MAX)
        snprintf(key, sizeof key, "%.*s", (int)length, assignment);
    if (!assignment[length] || !key_is_good(key))
        return tt_err(TT_USAGE, "--set %.80s: not of the form KEY=VALUE, as in learner.replicas=2", assignment);
    const char *value = assignment + length + 1;
    return config_read(self, value, strlen(value), "--set", key, "--set", TT_USAGE);
}

tt_status_t tt_config_set_by(tt_config_t *self, const char *option, const char *key, const char *value)
{
    if (!value[strspn(value, " \t\r\n")])
        return tt_err(TT_USAGE, "%s: no value", option);
    return config_read(self, value, strlen(value), option, key, option, TT_USAGE);
}

void tt_config_put(tt_config_t *self, const char *key, const char *value, const char *origin)
{
    const entry_t entry = {
        .key = tt_strdup(key), .kind = ENTRY_OWN, .text = tt_strdup(value), .origin = tt_strdup(origin)};
    origin_clean(entry.origin);
    config_add(self, &entry);
}

/*  ---- claiming ---- */

void config_remember(tt_config_t *self, const claim_t *claim)
{
    for (size_t i = 0; i < self->claim_count; i++) {
        claim_t *old = &self->claims[i];
        if (strcmp(old->field->key, claim->field->key) == 0) { /* the later table's order counts */
            s_claim_free(old);
            memmove(old, old + 1, (--self->claim_count - i) * sizeof *old);
            break;
        }
    }
    if (self->claim_count % 64 == 0)
        self->claims = tt_realloc(self->claims, (self->claim_count + 64) * sizeof *self->claims);
    self->claims[self->claim_count++] = *claim;
}

static tt_status_t s_read(const entry_t *entry, const tt_cfg_field_t *field, void *target)
{
    const tt_status_t status = value_read(entry, field, target);
    const char *note = status != TT_OK && entry->kind == ENTRY_PLAIN ? tt_synonym_value(field->key, entry->text) : NULL;
    return note ? tt_err(status, "%s; %s", tt_err_text(), note) : status;
}

static tt_status_t s_claim(tt_config_t *self, const tt_cfg_field_t *field, void *target)
{
    if (field->type == TT_CFG_MAP)
        return map_claim(self, field, (tt_cfg_map_t *)(void *)((char *)target + field->offset));
    const entry_t *entry = config_entry(self, field->key);
    if (!entry && !field->def)
        return missing_key(self, field);
    if (entry) {
        TT_TRY(s_read(entry, field, target));
    } else {
        const entry_t standard = {.key = (char *)(uintptr_t)field->key,
            .kind = ENTRY_OWN,
            .text = (char *)(uintptr_t)field->def,
            .origin = (char *)(uintptr_t) "default"};
        TT_TRY(value_read(&standard, field, target));
    }
    tt_buf_t value;
    tt_buf_init(&value, TEXT_MAX);
    const tt_status_t status = value_write(&value, field, target);
    if (status == TT_OK)
        config_remember(self,
            &(claim_t){
                .field = field, .value = tt_strdup(tt_buf_text(&value)), .origin = entry ? entry->origin : "default"});
    tt_buf_free(&value);
    return status;
}

tt_status_t tt_config_claim(tt_config_t *self, const tt_cfg_field_t *fields, void *target)
{
    for (; fields->key; fields++)
        TT_TRY(s_claim(self, fields, target));
    return TT_OK;
}

void tt_config_ignore(tt_config_t *self, const char *prefix)
{
    self->ignored = tt_realloc(self->ignored, (self->ignored_count + 1) * sizeof *self->ignored);
    self->ignored[self->ignored_count++] = tt_strdup(prefix);
}

void tt_config_foreign(tt_config_t *self, const tt_cfg_field_t *fields, const char *algorithm, const char *ours)
{
    self->strangers = tt_realloc(self->strangers, (self->stranger_count + 1) * sizeof *self->strangers);
    self->strangers[self->stranger_count++] = (stranger_t){fields, tt_strdup(algorithm), tt_strdup(ours)};
}

/*  ---- what is left ---- */

bool tt_config_has(const tt_config_t *self, const char *prefix)
{
    for (size_t i = 0; i < self->entry_count; i++)
        if (strncmp(self->entries[i].key, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static bool s_ignored(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->ignored_count; i++)
        if (strncmp(key, self->ignored[i], strlen(self->ignored[i])) == 0)
            return true;
    return false;
}

bool key_is_above(const char *key, const char *path)
{
    const size_t length = strlen(key);
    return strncmp(key, path, length) == 0 && path[length] == '.';
}

static tt_status_t s_err_section(const tt_config_t *self, const entry_t *entry)
{
    char list[160] = "";
    for (size_t i = 0; i < self->claim_count && strlen(list) < 100; i++) {
        const char *key = self->claims[i].field->key;
        const size_t used = strlen(list);
        if (key_is_above(entry->key, key))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", key);
    }
    return tt_err(TT_CONFIG, "%s: '%s' is a section, not a value: %s, ...", entry->origin, entry->key, list);
}

static tt_status_t s_check_claimed(const tt_config_t *self, const entry_t *entry)
{
    if (config_claim(self, entry->key) || map_takes(self, entry->key) || s_ignored(self, entry->key))
        return TT_OK;
    for (size_t i = 0; i < self->claim_count; i++)
        if (key_is_above(entry->key, self->claims[i].field->key))
            return entry->kind == ENTRY_PLAIN && !*entry->text ? TT_OK : s_err_section(self, entry);
    return unknown_key(self, entry);
}

static bool s_is_set(const claim_t *claim)
{
    return claim && strcmp(claim->value, claim->field->def) != 0;
}

/*  Neither may win in silence. */
static tt_status_t s_check_rival(const tt_config_t *self, const claim_t *claim)
{
    const claim_t *rival = claim->field->rival ? config_claim(self, claim->field->rival) : NULL;
    if (!s_is_set(rival) || !s_is_set(claim))
        return TT_OK;
    return tt_err(TT_CONFIG, "%s: %s: given beside %s (%s); one follows from the other: keep one", claim->origin,
        claim->field->key, rival->field->key, rival->origin);
}

tt_status_t tt_config_finish(const tt_config_t *self)
{
    for (size_t i = 0; i < self->claim_count; i++)
        TT_TRY(s_check_rival(self, &self->claims[i]));
    for (size_t i = 0; i < self->entry_count; i++)
        TT_TRY(s_check_claimed(self, &self->entries[i]));
    return TT_OK;
}

const char *tt_config_origin(const tt_config_t *self, const char *key)
{
    const entry_t *entry = config_entry(self, key);
    return entry ? entry->origin : "default";
}
