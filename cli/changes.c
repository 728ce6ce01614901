#include "cli/changes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"

typedef struct {
    const char *whose;
    json_t *list; /* NULL: only what is fixed counts */
    tt_status_t status;
} look_t;

static tt_status_t s_refuse_fixed(const look_t *self, const char *key, const char *before, const char *now)
{
    return tt_err(TT_CONFIG,
        "%s: %s has %s, now it is %s; it decides what was learned so far and stays as it is in a resumed run (begin a "
        "new run "
        "for another one)",
        key, self->whose, before, now);
}

static tt_status_t s_refuse_edited(const look_t *self, const char *key, const char *before, const char *now)
{
    return tt_err(TT_CONFIG,
        "%s: %s has %s, now it is %s; an edit of what decides the result is not recorded: set it back, and give 'tutti "
        "resume "
        "RUN --set %s=%s'",
        key, self->whose, before, now, key, now);
}

static void s_on_change(void *ctx, const tt_cfg_field_t *field, const char *before, const char *now, const char *origin)
{
    look_t *self = ctx;
    const bool given = strcmp(origin, "--set") == 0;
    if (self->status != TT_OK)
        return;
    if (field->resume == TT_CFG_FIXED)
        self->status = s_refuse_fixed(self, field->key, before, now);
    else if (self->list && field->resume == TT_CFG_GIVEN && !given)
        self->status = s_refuse_edited(self, field->key, before, now);
    if (self->status != TT_OK)
        tt_err_wrap(self->status, "%s", origin);
    else if (self->list)
        json_array_append_new(self->list, json_pack("{s:s, s:s, s:s}", "key", field->key, "from", before, "to", now));
}

/*  Of which nothing else can be compared. */
static tt_status_t s_check_algorithm(const look_t *self, const tt_setup_t *setup, const char *before)
{
    const char *now = tt_setup_algorithm(setup)->name;
    if (strcmp(before, now) == 0)
        return TT_OK;
    return tt_err_wrap(s_refuse_fixed(self, "algorithm.name", before, now), "%s",
        tt_config_origin(tt_setup_config(setup), "algorithm.name"));
}

static tt_status_t s_compare(look_t *self, const tt_setup_t *setup, tt_config_t *before)
{
    const tt_algorithm_t *algorithm = tt_setup_algorithm(setup);
    void *options = tt_new0(algorithm->cfg_size);
    tt_train_cfg_t train;
    tt_status_t status = tt_config_claim(before, tt_train_fields, &train);
    if (status == TT_OK)
        status = s_check_algorithm(self, setup, train.algorithm.name);
    if (status == TT_OK)
        status = tt_config_claim(before, algorithm->fields, options);
    if (status == TT_OK)
        tt_config_diff(before, tt_setup_config(setup), s_on_change, self);
    free(options);
    return status == TT_OK ? self->status : status;
}

static tt_status_t s_upgrade(tt_config_t *config)
{
    tt_buf_t said;
    tt_buf_init(&said, TT_CONFIG_TEXT_MAX);
    const tt_status_t status = tt_config_upgrade(config, &said);
    tt_buf_free(&said);
    return status;
}

tt_status_t tt_changes(json_t **out, const tt_setup_t *setup, const char *before, bool old, const char *whose)
{
    look_t self = {.whose = whose, .list = out ? json_array() : NULL, .status = TT_OK};
    tt_config_t *config = NULL;
    tt_status_t status = tt_config_parse(&config, before, strlen(before), whose);
    if (status == TT_OK)
        tt_config_upgrade_spaces(config);
    if (status == TT_OK && old)
        status = s_upgrade(config);
    if (status == TT_OK)
        status = s_compare(&self, setup, config);
    tt_config_destroy(&config);
    if (status == TT_OK && out)
        *out = json_incref(self.list);
    json_decref(self.list);
    return status;
}

bool tt_changes_any(const json_t *changes, const char *prefix)
{
    size_t i;
    json_t *change;
    json_array_foreach((json_t *)changes, i, change)
    {
        const char *key = json_string_value(json_object_get(change, "key"));
        if (key && strncmp(key, prefix, strlen(prefix)) == 0)
            return true;
    }
    return false;
}

static const char *s_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

char *tt_changes_text(const json_t *changes)
{
    size_t i;
    json_t *change;
    tt_buf_t text;
    tt_buf_init(&text, 1 << 16);
    json_array_foreach(
        (json_t *)changes, i, change) if (tt_buf_printf(&text, "%s%s %s -> %s", i ? ", " : "", s_member(change, "key"),
                                              s_member(change, "from"), s_member(change, "to")) != TT_OK) break;
    char *out = tt_strdup(tt_buf_text(&text));
    tt_buf_free(&text);
    return out;
}
