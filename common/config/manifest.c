#include "common/config/manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/config/scalar.h"

enum { TEXT_MAX = 4 << 20, DEPTH_MAX = 64, VALUES_MAX = 200000, ANCHORS_MAX = 1024, PATH_MAX_BYTES = 512 };

#define NOT_AN_OBJECT "a document must be a mapping"

/*  Where a value stands. */
typedef struct {
    size_t object;
    char *path;
    int line;
} place_t;

typedef struct {
    char *name;
    json_t *value; /* owned reference, never changed */
} anchor_t;

struct tt_manifest {
    char *name;
    json_t **objects; /* owned references */
    size_t count;
    place_t *places;
    size_t place_count, place_room;
    char where[1024];
};

/*  One reading. */
typedef struct {
    tt_manifest_t *out;
    yaml_parser_t parser;
    yaml_event_t event; /* the one in hand; deleted by s_next */
    anchor_t anchors[ANCHORS_MAX];
    size_t anchor_count;
    size_t values;
    int depth;
    char path[PATH_MAX_BYTES];
} reader_t;

static int s_line(const reader_t *self)
{
    return (int)self->event.start_mark.line + 1;
}

#define FAIL(self, ...) s_fail(self, tt_sprintf(__VA_ARGS__))

/*  Takes the words. */
static tt_status_t s_fail(const reader_t *self, char *words)
{
    const tt_status_t status = tt_err(TT_CONFIG, "%s:%d: %s", self->out->name, s_line(self), words);
    free(words);
    return status;
}

static tt_status_t s_next(reader_t *self)
{
    yaml_event_delete(&self->event);
    if (yaml_parser_parse(&self->parser, &self->event))
        return TT_OK;
    const yaml_parser_t *p = &self->parser;
    const size_t line = p->problem_mark.line ? p->problem_mark.line : p->context_mark.line;
    return tt_err(TT_CONFIG, "%s:%zu: %s%s%s", self->out->name, line + 1, p->problem ? p->problem : "not YAML",
        p->context ? ", " : "", p->context ? p->context : "");
}

/* ---- places ---------------------------------------------------------------------------------------------------------------- */

static void s_note(reader_t *self)
{
    tt_manifest_t *out = self->out;
    if (out->place_count == out->place_room) {
        out->place_room = out->place_room ? 2 * out->place_room : 64;
        out->places = tt_realloc(out->places, tt_mul(out->place_room, sizeof *out->places));
    }
    out->places[out->place_count++] =
        (place_t){.object = out->count, .path = tt_strdup(self->path), .line = s_line(self)};
}

/*  The path with a key or an index behind it; returns its old length. A path too long is cut: it only names a place. */
static size_t s_enter(reader_t *self, const char *key, size_t index)
{
    const size_t length = strlen(self->path), room = sizeof self->path - length;
    if (key)
        snprintf(self->path + length, room, "%s%s", length ? "." : "", key);
    else
        snprintf(self->path + length, room, "[%zu]", index);
    return length;
}

static void s_leave(reader_t *self, size_t length)
{
    self->path[length] = '\0';
}

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

static tt_status_t s_value(reader_t *self, json_t **out);

static tt_status_t s_count(reader_t *self, size_t more)
{
    self->values += more;
    if (self->values > VALUES_MAX)
        return FAIL(self, "more than %d values (aliases filled in)", VALUES_MAX);
    return TT_OK;
}

static size_t s_size(const json_t *value)
{
    size_t sum = 1, i;
    const char *key;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        sum += s_size(item);
    }
    json_object_foreach((json_t *)value, key, item)
    {
        sum += s_size(item);
    }
    return sum;
}

static void s_anchor(reader_t *self, const char *name, json_t *value)
{
    if (name && self->anchor_count < ANCHORS_MAX)
        self->anchors[self->anchor_count++] = (anchor_t){tt_strdup(name), json_deep_copy(value)};
}

/*  The event in hand is an alias. */
static tt_status_t s_alias(reader_t *self, json_t **out)
{
    const char *name = (const char *)self->event.data.alias.anchor;
    for (size_t i = self->anchor_count; i-- > 0;) {
        if (strcmp(self->anchors[i].name, name) != 0)
            continue;
        TT_TRY(s_count(self, s_size(self->anchors[i].value)));
        *out = json_deep_copy(self->anchors[i].value);
        return TT_OK;
    }
    return FAIL(self, "*%s: no such anchor above", name);
}

static tt_status_t s_scalar(reader_t *self, json_t **out)
{
    const char *text = (const char *)self->event.data.scalar.value;
    const char *tag = (const char *)self->event.data.scalar.tag;
    const size_t size = self->event.data.scalar.length;
    const bool plain = self->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, 0, size))
        return FAIL(self, "a zero byte");
    *out = tt_scalar_value(text, tag, plain);
    return *out ? TT_OK : FAIL(self, "'%.60s' cannot be said in JSON, or not with tag %.40s", text, tag ? tag : "none");
}

static tt_status_t s_list(reader_t *self, json_t **out)
{
    json_t *list = json_array();
    tt_status_t status = s_next(self);
    while (status == TT_OK && self->event.type != YAML_SEQUENCE_END_EVENT) {
        json_t *item = NULL;
        const size_t length = s_enter(self, NULL, json_array_size(list));
        status = s_value(self, &item);
        s_leave(self, length);
        if (status == TT_OK) {
            json_array_append_new(list, item);
            status = s_next(self);
        }
    }
    if (status != TT_OK)
        json_decref(list);
    else
        *out = list;
    return status;
}

/*  <<: what the mapping has not got itself comes from there. */
static tt_status_t s_merge(reader_t *self, json_t *merged, const json_t *from)
{
    size_t i;
    json_t *item;
    if (json_is_object(from))
        json_object_update_missing(merged, (json_t *)from);
    else if (!json_is_array(from))
        return FAIL(self, "<< wants a mapping, or a list of them");
    json_array_foreach(from, i, item)
    {
        if (!json_is_object(item))
            return FAIL(self, "<< wants a mapping, or a list of them");
        json_object_update_missing(merged, item);
    }
    return TT_OK;
}

/*  The event in hand is a key: it and its value. `nulls` holds keys that were given as null. */
static tt_status_t s_member(reader_t *self, json_t *mapping, json_t *nulls, json_t *merged)
{
    json_t *value = NULL;
    if (self->event.type != YAML_SCALAR_EVENT)
        return FAIL(self, "a key must be text");
    char *key = tt_strdup((const char *)self->event.data.scalar.value);
    const bool merge = strcmp(key, "<<") == 0 && self->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    tt_status_t status = TT_OK;
    if (json_object_get(mapping, key) || json_object_get(nulls, key))
        status = FAIL(self, "key '%.80s' is there twice", key);
    else if (strlen(key) != self->event.data.scalar.length)
        status = FAIL(self, "a zero byte in a key");
    const size_t length = s_enter(self, key, 0);
    if (status == TT_OK)
        status = s_next(self);
    if (status == TT_OK)
        status = s_value(self, &value);
    s_leave(self, length);
    if (status == TT_OK && merge)
        status = s_merge(self, merged, value);
    else if (status == TT_OK)
        json_object_set(json_is_null(value) ? nulls : mapping, key, value);
    json_decref(value);
    free(key);
    return status;
}

static tt_status_t s_mapping(reader_t *self, json_t **out)
{
    json_t *mapping = json_object(), *nulls = json_object(), *merged = json_object();
    tt_status_t status = s_next(self);
    while (status == TT_OK && self->event.type != YAML_MAPPING_END_EVENT) {
        status = s_member(self, mapping, nulls, merged);
        if (status == TT_OK)
            status = s_next(self);
    }
    const char *key;
    json_t *value;
    json_object_foreach(merged, key, value)
    {
        if (!json_object_get(mapping, key) && !json_object_get(nulls, key))
            json_object_set(mapping, key, value);
    }
    json_decref(nulls);
    json_decref(merged);
    if (status != TT_OK)
        json_decref(mapping);
    else
        *out = mapping;
    return status;
}

static const char *s_event_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return (const char *)event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

/*  The event in hand begins a value; afterwards it is the one that ends it. */
static tt_status_t s_value(reader_t *self, json_t **out)
{
    char *anchor = tt_strdup(s_event_anchor(&self->event));
    tt_status_t status = s_count(self, 1);
    s_note(self);
    self->depth++;
    if (status == TT_OK && self->depth > DEPTH_MAX)
        status = FAIL(self, "nested more than %d deep", DEPTH_MAX);
    else if (status == TT_OK && self->event.type == YAML_ALIAS_EVENT)
        status = s_alias(self, out);
    else if (status == TT_OK && self->event.type == YAML_SCALAR_EVENT)
        status = s_scalar(self, out);
    else if (status == TT_OK && self->event.type == YAML_SEQUENCE_START_EVENT)
        status = s_list(self, out);
    else if (status == TT_OK && self->event.type == YAML_MAPPING_START_EVENT)
        status = s_mapping(self, out);
    else if (status == TT_OK)
        status = FAIL(self, "expected a value");
    self->depth--;
    if (status == TT_OK)
        s_anchor(self, anchor, *out);
    free(anchor);
    return status;
}

/* ---- documents ------------------------------------------------------------------------------------------------------------- */

static void s_forget_anchors(reader_t *self)
{
    for (size_t i = 0; i < self->anchor_count; i++) {
        free(self->anchors[i].name);
        json_decref(self->anchors[i].value);
    }
    self->anchor_count = 0;
}

static void s_add(tt_manifest_t *self, json_t *object)
{
    self->objects = tt_realloc(self->objects, tt_mul(self->count + 1, sizeof(json_t *)));
    self->objects[self->count++] = object;
}

/*  The items of a List are objects of their own; their places are the list's. Takes object. */
static tt_status_t s_take(reader_t *self, json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    json_t *items = json_object_get(object, "items");
    tt_status_t status = TT_OK;
    if (json_is_null(object)) {
        json_decref(object);
        return TT_OK;
    }
    if (!json_is_object(object))
        status = FAIL(self, NOT_AN_OBJECT);
    else if (!kind || strcmp(kind, "List") != 0) {
        s_add(self->out, object);
        return TT_OK;
    }
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        if (json_is_object(item))
            s_add(self->out, json_incref(item));
    }
    json_decref(object);
    return status;
}

/*  The event in hand begins a document. */
static tt_status_t s_document(reader_t *self)
{
    json_t *object = NULL;
    TT_TRY(s_next(self));
    if (self->event.type == YAML_SEQUENCE_START_EVENT)
        return FAIL(self, NOT_AN_OBJECT);
    TT_TRY(s_value(self, &object));
    const tt_status_t status = s_take(self, object);
    s_forget_anchors(self);
    return status == TT_OK ? s_next(self) : status;
}

static tt_status_t s_stream(reader_t *self)
{
    TT_TRY(s_next(self));
    TT_TRY(s_next(self));
    while (self->event.type != YAML_STREAM_END_EVENT) {
        if (self->event.type == YAML_DOCUMENT_START_EVENT)
            TT_TRY(s_document(self));
        TT_TRY(s_next(self));
    }
    return TT_OK;
}

tt_status_t tt_manifest_parse(tt_manifest_t **self_p, const char *text, size_t size, const char *name)
{
    tt_manifest_t *self = tt_new0(sizeof *self);
    reader_t *reader = tt_new0(sizeof *reader);
    self->name = tt_strdup(name);
    reader->out = self;
    yaml_parser_initialize(&reader->parser);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, size);
    tt_status_t status =
        size > TEXT_MAX ? tt_err(TT_CONFIG, "%s: larger than %d MiB", name, TEXT_MAX >> 20) : s_stream(reader);
    s_forget_anchors(reader);
    yaml_event_delete(&reader->event);
    yaml_parser_delete(&reader->parser);
    free(reader);
    if (status == TT_OK)
        *self_p = self;
    else
        tt_manifest_destroy(&self);
    return status;
}

tt_status_t tt_manifest_load(tt_manifest_t **self_p, const char *path)
{
    tt_buf_t text;
    const bool in = strcmp(path, "-") == 0;
    tt_buf_init(&text, TEXT_MAX);
    tt_status_t status = tt_buf_read_input(&text, path, TT_INPUT_PATIENCE_MS);
    if (status == TT_OK)
        status = tt_manifest_parse(self_p, tt_buf_text(&text), text.size, in ? "(standard input)" : path);
    tt_buf_free(&text);
    return status;
}

void tt_manifest_destroy(tt_manifest_t **self_p)
{
    tt_manifest_t *self = *self_p;
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        json_decref(self->objects[i]);
    for (size_t i = 0; i < self->place_count; i++)
        free(self->places[i].path);
    free(self->objects);
    free(self->places);
    free(self->name);
    free(self);
    *self_p = NULL;
}

/* ---- looking --------------------------------------------------------------------------------------------------------------- */

const char *tt_manifest_name(const tt_manifest_t *self)
{
    return self->name;
}

size_t tt_manifest_count(const tt_manifest_t *self)
{
    return self->count;
}

json_t *tt_manifest_at(const tt_manifest_t *self, size_t index)
{
    return index < self->count ? self->objects[index] : NULL;
}

/*  Does the path lie at or below `above`? */
static bool s_below(const char *above, const char *path)
{
    const size_t length = strlen(above);
    return strncmp(above, path, length) == 0 &&
           (!length || !path[length] || path[length] == '.' || path[length] == '[');
}

const char *tt_manifest_where(tt_manifest_t *self, size_t index, const char *path)
{
    int line = 1;
    size_t best = 0;
    for (size_t i = 0; i < self->place_count; i++) {
        const place_t *place = &self->places[i];
        const size_t length = strlen(place->path);
        if (place->object != index || length < best || !s_below(place->path, path))
            continue;
        best = length;
        line = place->line;
    }
    snprintf(self->where, sizeof self->where, "%.900s:%d", self->name, line);
    return self->where;
}

bool tt_manifest_is(const char *path)
{
    tt_manifest_t *self = NULL;
    if (tt_file_check(path) != TT_OK || tt_manifest_load(&self, path) != TT_OK)
        return false; /* what can be read once only is left to who reads it */
    const json_t *first = tt_manifest_at(self, 0);
    const bool is = json_object_get(first, "apiVersion") && json_object_get(first, "kind");
    tt_manifest_destroy(&self);
    return is;
}
