/*  map - all that stands below one key, whatever it is called: each key a claim of its own, so that it has a place in messages,
 *  a line in the dump, and is compared like any other. */
#include "common/base/mem.h"
#include "common/config/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    tt_cfg_map_t *map;
    const entry_t *entry[TT_ENV_ARGS_MAX]; /* of each key */
} taken_t;

static bool s_below(const tt_cfg_field_t *map, const char *key)
{
    return key_is_above(map->key, key);
}

bool map_takes(const tt_config_t *self, const char *key)
{
    for (size_t i = 0; i < self->claim_count; i++)
        if (self->claims[i].field->type == TT_CFG_MAP && s_below(self->claims[i].field, key))
            return true;
    return false;
}

static tt_status_t s_write_list(tt_buf_t *out, const entry_t *entry)
{
    TT_TRY(tt_buf_str(out, "["));
    for (size_t i = 0; i < entry->item_count; i++) {
        TT_TRY(tt_buf_str(out, i ? ", " : ""));
        TT_TRY(value_write_scalar(out, entry->key, entry->items[i]));
    }
    return tt_buf_str(out, "]");
}

/*  What the entry says, as text. */
static tt_status_t s_read(const entry_t *entry, char *out, size_t size)
{
    tt_buf_t text;
    tt_buf_init(&text, TEXT_MAX);
    tt_status_t status = entry->kind == ENTRY_LIST ? s_write_list(&text, entry) : tt_buf_str(&text, entry->text);
    if (status == TT_OK && text.size >= size)
        status =
            tt_err(TT_CONFIG, "%s: %s: a text of %zu bytes; %zu fit", entry->origin, entry->key, text.size, size - 1);
    if (status == TT_OK)
        snprintf(out, size, "%s", tt_buf_text(&text));
    tt_buf_free(&text);
    return status;
}

/*  A key is a value or a section, not both. */
static tt_status_t s_check_apart(const taken_t *self)
{
    for (uint32_t a = 0; a < self->map->count; a++)
        for (uint32_t b = 0; b < self->map->count; b++)
            if (key_is_above(self->entry[a]->key, self->entry[b]->key))
                return tt_err(TT_CONFIG, "%s: %s: '%s' (%s) is a value, not a section", self->entry[b]->origin,
                    self->entry[b]->key, self->entry[a]->key, self->entry[a]->origin);
    return TT_OK;
}

/*  Keys in order: that of the file says nothing. */
static tt_status_t s_take(taken_t *self, const tt_cfg_field_t *field, const entry_t *entry)
{
    tt_cfg_map_t *map = self->map;
    const char *key = entry->key + strlen(field->key) + 1;
    if (map->count == TT_COUNT(map->at))
        return tt_err(
            TT_CONFIG, "%s: %s: more than %zu keys below %s", entry->origin, entry->key, TT_COUNT(map->at), field->key);
    if (strlen(key) >= sizeof map->at[0].key)
        return tt_err(TT_CONFIG, "%s: %s: a key of %zu bytes; %zu fit", entry->origin, entry->key, strlen(key),
            sizeof map->at[0].key - 1);
    uint32_t at = map->count;
    for (; at > 0 && strcmp(map->at[at - 1].key, key) > 0; at--) {
        map->at[at] = map->at[at - 1];
        self->entry[at] = self->entry[at - 1];
    }
    map->count++;
    self->entry[at] = entry;
    snprintf(map->at[at].key, sizeof map->at[at].key, "%s", key);
    return s_read(entry, map->at[at].value, sizeof map->at[at].value);
}

static tt_status_t s_claim_key(tt_config_t *self, const tt_cfg_field_t *map, const entry_t *entry, const char *text)
{
    tt_buf_t value;
    tt_buf_init(&value, TEXT_MAX);
    const tt_status_t status = value_write_scalar(&value, entry->key, text);
    if (status == TT_OK) {
        made_t *made = tt_new0(sizeof *made);
        snprintf(made->key, sizeof made->key, "%s", entry->key);
        made->field =
            (tt_cfg_field_t){.key = made->key, .type = TT_CFG_STR, .def = "", .help = map->help, .resume = map->resume};
        config_remember(self,
            &(claim_t){
                .field = &made->field, .value = tt_strdup(tt_buf_text(&value)), .origin = entry->origin, .made = made});
    }
    tt_buf_free(&value);
    return status;
}

/*  Keys that were there when it was claimed before may be gone. */
static void s_forget(tt_config_t *self, const tt_cfg_field_t *field)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->claim_count; i++) {
        claim_t *claim = &self->claims[i];
        if (claim->made && s_below(field, claim->field->key)) {
            free(claim->value);
            free(claim->made);
        } else {
            self->claims[kept++] = *claim;
        }
    }
    self->claim_count = kept;
}

/*  The key itself holds nothing: `args:` and `args: {}`. */
static tt_status_t s_check_itself(const tt_config_t *self, const tt_cfg_field_t *field)
{
    const entry_t *entry = config_entry(self, field->key);
    if (!entry || (entry->kind == ENTRY_PLAIN && !*entry->text))
        return TT_OK;
    const char *quote = entry->text ? "'" : "";
    return tt_err(TT_CONFIG, "%s: %s: %s%.80s%s is not keys and values; write {key: value}", entry->origin, field->key,
        quote, entry->text ? entry->text : "a list", quote);
}

tt_status_t map_claim(tt_config_t *self, const tt_cfg_field_t *field, tt_cfg_map_t *target)
{
    taken_t taken = {.map = target};
    *target = (tt_cfg_map_t){0};
    s_forget(self, field);
    TT_TRY(s_check_itself(self, field));
    for (size_t i = 0; i < self->entry_count; i++)
        if (s_below(field, self->entries[i].key) && !value_is_null(&self->entries[i]))
            TT_TRY(s_take(&taken, field, &self->entries[i]));
    TT_TRY(s_check_apart(&taken));
    config_remember(self, &(claim_t){.field = field, .value = tt_strdup(""), .origin = "default"});
    for (uint32_t i = 0; i < target->count; i++)
        TT_TRY(s_claim_key(self, field, taken.entry[i], target->at[i].value));
    return TT_OK;
}
