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
static void s_check_algorithm(look_t *self, const tt_config_t *now, const char *before, const char *name)
{
    if (strcmp(before, name) != 0)
        self->status = tt_err_wrap(
            s_refuse_fixed(self, "algorithm.name", before, name), "%s", tt_config_origin(now, "algorithm.name"));
}

/*  self->status: what may not be. The other one: `before` cannot be read. */
static tt_status_t s_compare(look_t *self, const tt_config_t *now, const tt_algorithm_t *algorithm, tt_config_t *before)
{
    void *options = tt_new0(algorithm->cfg_size);
    tt_train_cfg_t train;
    tt_status_t status = tt_config_claim(before, tt_train_fields, &train);
    if (status == TT_OK)
        s_check_algorithm(self, now, train.algorithm.name, algorithm->name);
    if (status == TT_OK && self->status == TT_OK)
        status = tt_config_claim(before, algorithm->fields, options);
    if (status == TT_OK && self->status == TT_OK)
        tt_config_diff(before, now, s_on_change, self);
    free(options);
    return status;
}

static tt_status_t s_upgrade(tt_config_t *config)
{
    tt_buf_t said;
    tt_buf_init(&said, TT_CONFIG_TEXT_MAX);
    const tt_status_t status = tt_config_upgrade(config, &said);
    tt_buf_free(&said);
    return status;
}

static tt_status_t s_parse(tt_config_t **config_p, const char *text, bool old, const char *name)
{
    TT_TRY(tt_config_parse(config_p, text, strlen(text), name));
    tt_config_upgrade_spaces(*config_p);
    return old ? s_upgrade(*config_p) : TT_OK;
}

tt_status_t tt_changes(json_t **out, const tt_setup_t *setup, const char *before, bool old, const char *whose)
{
    look_t self = {.whose = whose, .list = out ? json_array() : NULL, .status = TT_OK};
    tt_config_t *config = NULL;
    tt_status_t status = s_parse(&config, before, old, whose);
    if (status == TT_OK)
        status = s_compare(&self, tt_setup_config(setup), tt_setup_algorithm(setup), config);
    if (status == TT_OK)
        status = self.status;
    tt_config_destroy(&config);
    if (status == TT_OK && out)
        *out = json_incref(self.list);
    json_decref(self.list);
    return status;
}

/*  Every setting by itself; whether they fit together nobody asks. */
static tt_status_t s_claim(tt_config_t *config, const tt_args_t *args, const tt_algorithm_t **algorithm)
{
    tt_train_cfg_t train;
    for (size_t i = 0; tt_arg_nth(args, "set", i); i++)
        TT_TRY(tt_config_set(config, tt_arg_nth(args, "set", i)));
    TT_TRY(tt_config_claim(config, tt_train_fields, &train));
    TT_TRY(tt_algorithm_find(algorithm, train.algorithm.name));
    void *options = tt_new0((*algorithm)->cfg_size);
    const tt_status_t status = tt_config_claim(config, (*algorithm)->fields, options);
    free(options);
    return status;
}

tt_status_t tt_changes_fixed(
    const tt_args_t *args, const char *path, const char *text, const char *before, bool old, const char *whose)
{
    look_t self = {.whose = whose, .status = TT_OK};
    tt_config_t *now = NULL, *then = NULL;
    const tt_algorithm_t *algorithm;
    tt_status_t status = s_parse(&now, text, old, path);
    if (status == TT_OK)
        status = s_claim(now, args, &algorithm);
    if (status == TT_OK)
        status = s_parse(&then, before, old, whose);
    if (status == TT_OK)
        s_compare(&self, now, algorithm, then);
    tt_config_destroy(&now);
    tt_config_destroy(&then);
    return self.status;
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
