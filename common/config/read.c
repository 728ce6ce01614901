/*  read - libyaml's events into entries. Recursive over sections, to DEPTH_MAX. */
#include "common/config/parts.h"
#include "common/base/mem.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/*  Key and origin of what this text has given: nothing may be given twice. */
typedef struct {
    entry_t *list;
    size_t count;
} given_t;

typedef struct {
    tt_config_t *config;
    yaml_parser_t parser;
    const char *text; /* for hints at what stands at an error */
    size_t size;
    const char *name;   /* of the file                             */
    const char *origin; /* NULL = name:line:column                 */
    tt_status_t code;
    bool any; /* value was there                         */
    char path[KEY_MAX + 1];
    given_t values, sections;
} reader_t;

static tt_status_t s_node(reader_t *self, const yaml_event_t *event, const yaml_mark_t *at, int depth);

bool key_is_good(const char *key)
{
    const size_t length = strlen(key);
    if (length == 0 || length > KEY_MAX || key[0] == '.' || key[length - 1] == '.' || strstr(key, ".."))
        return false;
    for (; *key; key++)
        if (!isalnum((unsigned char)*key) && *key != '_' && *key != '-' && *key != '.')
            return false;
    return true;
}

/*  "name:line:column", or the origin given. */
static char *s_place(const reader_t *self, const yaml_mark_t *at)
{
    char *place =
        self->origin ? tt_strdup(self->origin) : tt_sprintf("%s:%zu:%zu", self->name, at->line + 1, at->column + 1);
    origin_clean(place);
    return place;
}

static tt_status_t s_err(const reader_t *self, const yaml_mark_t *at, const char *what)
{
    char *place = s_place(self, at);
    const tt_status_t status = tt_err(self->code, "%s: %s", place, what);
    free(place);
    return status;
}

static tt_status_t s_err_path(const reader_t *self, const yaml_mark_t *at, const char *what)
{
    char text[KEY_MAX + 512];
    snprintf(text, sizeof text, "%s: %s", self->path, what);
    return s_err(self, at, self->path[0] ? text : what);
}

/*  A reader error (bytes that are not text) has a byte offset only. */
static yaml_mark_t s_mark_at(const reader_t *self, size_t offset)
{
    yaml_mark_t at = {.index = offset};
    for (size_t i = 0; i < offset && i < self->size; i++) {
        at.column = self->text[i] == '\n' ? 0 : at.column + 1;
        at.line += self->text[i] == '\n';
    }
    return at;
}

/*  libyaml's own complaint. */
static tt_status_t s_err_yaml(const reader_t *self)
{
    const yaml_parser_t *parser = &self->parser;
    const yaml_mark_t at =
        parser->error == YAML_READER_ERROR ? s_mark_at(self, parser->problem_offset) : parser->problem_mark;
    if (at.index < self->size && self->text[at.index] == '\t')
        return s_err(self, &at, "not YAML: a tab; indent with spaces");
    char what[256];
    snprintf(what, sizeof what, "not YAML: %s%s%s", parser->context ? parser->context : "", parser->context ? ": " : "",
        parser->problem ? parser->problem : "unreadable");
    return s_err(self, &at, what);
}

static tt_status_t s_next(reader_t *self, yaml_event_t *event)
{
    if (!yaml_parser_parse(&self->parser, event))
        return s_err_yaml(self);
    return TT_OK;
}

/*  Anchors and tags are refused wherever they stand. */
static tt_status_t s_no_extras(const reader_t *self, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_ALIAS_EVENT) {
        anchor = event->data.alias.anchor;
    } else if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (anchor)
        return s_err_path(self, &event->start_mark,
            "anchors (&) and aliases (*) are not used in a config; write the value out, or quote it");
    if (tag)
        return s_err_path(
            self, &event->start_mark, "tags (!) are not used in a config; write the value alone, or quote it");
    return TT_OK;
}

static tt_status_t s_scalar_text(const reader_t *self, const yaml_event_t *event, char **out)
{
    TT_TRY(s_no_extras(self, event));
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length)
        return s_err_path(self, &event->start_mark, "the text contains a 0 byte");
    *out = tt_strdup(value);
    return TT_OK;
}

/*  ---- entries ---- */

static tt_status_t s_err_twice(const reader_t *self, const yaml_mark_t *at, const entry_t *first)
{
    char what[256];
    snprintf(what, sizeof what, "given twice; first at %.200s", first->origin);
    return s_err_path(self, at, what);
}

/*  NULL: it was not. */
static const entry_t *s_given(const given_t *self, const char *key)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->list[i].key, key) == 0)
            return &self->list[i];
    return NULL;
}

static void s_give(given_t *self, const char *key, char *origin)
{
    if (self->count % 64 == 0)
        self->list = tt_realloc(self->list, (self->count + 64) * sizeof *self->list);
    self->list[self->count++] = (entry_t){.key = tt_strdup(key), .origin = origin};
}

static void s_given_free(given_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        entry_free(&self->list[i]);
    free(self->list);
}

static tt_status_t s_add(reader_t *self, entry_t *entry, const yaml_mark_t *at)
{
    const short_t *word = short_of_whole(self->path);
    const char *key = word ? word->key : self->path;
    const entry_t *before = s_given(&self->values, key);
    tt_status_t status = TT_OK;
    if (before)
        status = s_err_twice(self, at, before);
    else if (!config_entry(self->config, key) && self->config->entry_count >= KEYS_MAX)
        status = s_err_path(self, at, "more than 4096 keys");
    if (status != TT_OK) {
        entry_free(entry);
        return status;
    }
    entry->key = tt_strdup(key);
    entry->origin = s_place(self, at);
    s_give(&self->values, key, s_place(self, at));
    config_add(self->config, entry);
    return TT_OK;
}

static tt_status_t s_scalar(reader_t *self, const yaml_event_t *event, const yaml_mark_t *at)
{
    const entry_t *section = s_given(&self->sections, self->path);
    if (section)
        return s_err_twice(self, at, section);
    entry_t entry = {.kind = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? ENTRY_PLAIN : ENTRY_QUOTED};
    TT_TRY(s_scalar_text(self, event, &entry.text));
    return s_add(self, &entry, at);
}

static tt_status_t s_item(reader_t *self, const yaml_event_t *event, entry_t *list)
{
    TT_TRY(s_no_extras(self, event));
    if (event->type != YAML_SCALAR_EVENT)
        return s_err_path(self, &event->start_mark, "a list holds plain values, neither lists nor keys");
    if (list->item_count == ITEMS_MAX)
        return s_err_path(self, &event->start_mark, "a list of more than 64 values");
    if (!list->items)
        list->items = tt_array0(ITEMS_MAX, sizeof *list->items);
    TT_TRY(s_scalar_text(self, event, &list->items[list->item_count]));
    list->item_count++;
    return TT_OK;
}

static tt_status_t s_list(reader_t *self, const yaml_mark_t *at)
{
    entry_t entry = {.kind = ENTRY_LIST};
    tt_status_t status = TT_OK;
    for (bool done = false; !done && status == TT_OK;) {
        yaml_event_t event;
        status = s_next(self, &event);
        if (status != TT_OK)
            break;
        done = event.type == YAML_SEQUENCE_END_EVENT;
        if (!done)
            status = s_item(self, &event, &entry);
        yaml_event_delete(&event);
    }
    if (status == TT_OK)
        return s_add(self, &entry, at);
    entry_free(&entry);
    return status;
}

/*  ---- sections ---- */

/*  Append the key of a mapping to the path. */
static tt_status_t s_push_key(reader_t *self, const yaml_event_t *event)
{
    TT_TRY(s_no_extras(self, event));
    if (event->type != YAML_SCALAR_EVENT)
        return s_err_path(self, &event->start_mark, "a key must be a plain word");
    char *key = NULL;
    TT_TRY(s_scalar_text(self, event, &key));
    const size_t used = strlen(self->path), length = strlen(key);
    tt_status_t status = TT_OK;
    if (!key_is_good(key)) {
        char what[128];
        snprintf(what, sizeof what, "'%.60s' is not a key: letters, digits, '_', '-' and dots between parts", key);
        status = s_err_path(self, &event->start_mark, what);
    } else if (used + 1 + length > KEY_MAX) {
        status = s_err_path(self, &event->start_mark, "a key path of more than 127 characters");
    } else {
        snprintf(self->path + used, sizeof self->path - used, "%s%s", used ? "." : "", key);
    }
    free(key);
    return status;
}

/*  One key and its value; *done after the last. */
static tt_status_t s_pair(reader_t *self, int depth, bool *done)
{
    yaml_event_t key, value;
    TT_TRY(s_next(self, &key));
    *done = key.type == YAML_MAPPING_END_EVENT;
    const size_t used = strlen(self->path);
    tt_status_t status = *done ? TT_OK : s_push_key(self, &key);
    if (!*done && status == TT_OK) {
        status = s_next(self, &value);
        if (status == TT_OK) {
            status = s_node(self, &value, &key.start_mark, depth);
            yaml_event_delete(&value);
        }
    }
    self->path[used] = '\0';
    yaml_event_delete(&key);
    return status;
}

static tt_status_t s_open_section(reader_t *self, const yaml_mark_t *at, int depth)
{
    if (depth == DEPTH_MAX)
        return s_err_path(self, at, "sections nested deeper than 16");
    if (self->sections.count == KEYS_MAX)
        return s_err_path(self, at, "more than 4096 sections");
    const entry_t *value = s_given(&self->values, self->path), *section = s_given(&self->sections, self->path);
    if (section || value)
        return s_err_twice(self, at, section ? section : value);
    s_give(&self->sections, self->path, s_place(self, at));
    return TT_OK;
}

static tt_status_t s_section(reader_t *self, const yaml_mark_t *at, int depth)
{
    TT_TRY(s_open_section(self, at, depth));
    const size_t before = self->config->entry_count;
    size_t pairs = 0;
    for (bool done = false; !done; pairs++)
        TT_TRY(s_pair(self, depth + 1, &done));
    if (pairs > 1 || !self->path[0])
        return TT_OK;
    TT_CHECK(before == self->config->entry_count);
    entry_t empty = {.kind = ENTRY_PLAIN, .text = tt_strdup("")}; /* `learner: {}` says as much as `learner:` */
    return s_add(self, &empty, at);
}

static tt_status_t s_node(reader_t *self, const yaml_event_t *event, const yaml_mark_t *at, int depth)
{
    TT_TRY(s_no_extras(self, event));
    self->any |= event->type != YAML_SCALAR_EVENT || event->data.scalar.length > 0 ||
                 event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (event->type == YAML_MAPPING_START_EVENT)
        return s_section(self, at, depth);
    if (!self->path[0]) {
        const bool empty = event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0;
        return empty ? TT_OK : s_err(self, at, "a config is keys and values: 'env: CartPole-v1'");
    }
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return s_list(self, at);
    TT_CHECK(event->type == YAML_SCALAR_EVENT);
    return s_scalar(self, event, at);
}

static tt_status_t s_stream(reader_t *self)
{
    int documents = 0;
    for (bool done = false; !done;) {
        yaml_event_t event;
        TT_TRY(s_next(self, &event));
        tt_status_t status = TT_OK;
        done = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && documents++)
            status = s_err(self, &event.start_mark, "a second document; a config is one");
        else if (event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT ||
                 event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT)
            status = s_node(self, &event, &event.start_mark, 0);
        yaml_event_delete(&event);
        TT_TRY(status);
    }
    return TT_OK;
}

tt_status_t config_read(tt_config_t *self, const char *text, size_t size, const char *name, const char *under,
    const char *origin, tt_status_t code)
{
    if (size > TEXT_MAX)
        return tt_err(code, "%s: more than 1 MiB; this is not a config", name);
    reader_t reader = {.config = self, .text = text, .size = size, .name = name, .origin = origin, .code = code};
    snprintf(reader.path, sizeof reader.path, "%s", under ? under : "");
    const int ready = yaml_parser_initialize(&reader.parser);
    TT_CHECK(ready);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    tt_status_t status = s_stream(&reader);
    if (status == TT_OK && under && !reader.any)
        status = tt_err(code, "%s %s=: no value; null switches a rule off, \"\" is the empty text", name, under);
    yaml_parser_delete(&reader.parser);
    s_given_free(&reader.values);
    s_given_free(&reader.sections);
    return status;
}
