#include "common/config/yaml_tree.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/buf.h"
#include "common/base/mem.h"

enum { FILE_MAX = 4 << 20 };

tt_status_t tt_yaml_read(tt_yaml_t **self_p, const char *path)
{
    tt_buf_t text;
    tt_buf_init(&text, FILE_MAX);
    tt_status_t status = tt_buf_read_input(&text, path, TT_INPUT_PATIENCE_MS);
    if (status == TT_OK)
        status = tt_yaml_parse(self_p, path, tt_buf_text(&text), text.size);
    tt_buf_free(&text);
    return status;
}

tt_status_t tt_yaml_parse(tt_yaml_t **self_p, const char *path, const char *text, size_t size)
{
    yaml_parser_t parser;
    const int ready = yaml_parser_initialize(&parser);
    TT_CHECK(ready);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    tt_yaml_t *self = tt_new0(sizeof *self);
    tt_status_t status = TT_OK;
    if (yaml_parser_load(&parser, &self->document)) {
        self->path = tt_strdup(path);
        *self_p = self;
    } else {
        status = tt_err(
            TT_CONFIG, "%s:%zu: %s", path, parser.problem_mark.line + 1, parser.problem ? parser.problem : "not YAML");
        free(self);
    }
    yaml_parser_delete(&parser);
    return status;
}

void tt_yaml_destroy(tt_yaml_t **self_p)
{
    if (!*self_p)
        return;
    yaml_document_delete(&(*self_p)->document);
    free((*self_p)->path);
    free(*self_p);
    *self_p = NULL;
}

/*  What is quoted is a text, whatever it says. */
static bool s_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = (const char *)node->data.scalar.value;
    return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static tt_yaml_node_t s_node(tt_yaml_t *self, int number)
{
    tt_yaml_node_t node = yaml_document_get_node(&self->document, number);
    return node && !s_null(node) ? node : NULL;
}

tt_yaml_node_t tt_yaml_root(tt_yaml_t *self)
{
    tt_yaml_node_t node = yaml_document_get_root_node(&self->document);
    return node && !s_null(node) ? node : NULL;
}

tt_yaml_node_t tt_yaml_get(tt_yaml_t *self, tt_yaml_node_t map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(&self->document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return s_node(self, pair->value);
    }
    return NULL;
}

tt_yaml_node_t tt_yaml_key(tt_yaml_t *self, tt_yaml_node_t map, size_t i, tt_yaml_node_t *value)
{
    if (!map || map->type != YAML_MAPPING_NODE ||
        i >= (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start))
        return NULL;
    const yaml_node_pair_t *pair = &map->data.mapping.pairs.start[i];
    *value = s_node(self, pair->value);
    return yaml_document_get_node(&self->document, pair->key);
}

tt_yaml_node_t tt_yaml_at(tt_yaml_t *self, tt_yaml_node_t list, size_t index)
{
    if (!list || list->type != YAML_SEQUENCE_NODE ||
        index >= (size_t)(list->data.sequence.items.top - list->data.sequence.items.start))
        return NULL;
    return yaml_document_get_node(&self->document, list->data.sequence.items.start[index]);
}

tt_status_t tt_yaml_err(const tt_yaml_t *self, tt_yaml_node_t at, tt_status_t status, const char *fmt, ...)
{
    char words[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return tt_err(status, "%s:%zu: %s", self->path, at ? at->start_mark.line + 1 : 1, words);
}

static tt_status_t s_typed(
    tt_yaml_t *self, tt_yaml_node_t map, const char *key, yaml_node_type_t type, const char *what, tt_yaml_node_t *out)
{
    tt_yaml_node_t node = tt_yaml_get(self, map, key);
    if (node && node->type != type)
        return tt_yaml_err(self, node, TT_CONFIG, "%s must be %s", key, what);
    *out = node;
    return TT_OK;
}

tt_status_t tt_yaml_text(tt_yaml_t *self, tt_yaml_node_t map, const char *key, const char **out)
{
    tt_yaml_node_t node = NULL;
    TT_TRY(s_typed(self, map, key, YAML_SCALAR_NODE, "a text", &node));
    if (!node)
        return TT_OK;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return tt_yaml_err(self, node, TT_CONFIG, "%s has a zero byte in it", key);
    if (*text) /* kubectl writes user: "" for one that was not given */
        *out = text;
    return TT_OK;
}

tt_status_t tt_yaml_bool(tt_yaml_t *self, tt_yaml_node_t map, const char *key, bool *out)
{
    const char *text = NULL;
    TT_TRY(tt_yaml_text(self, map, key, &text));
    if (!text)
        return TT_OK;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return tt_yaml_err(self, tt_yaml_get(self, map, key), TT_CONFIG, "%s must be true or false", key);
    *out = text[0] == 't';
    return TT_OK;
}

tt_status_t tt_yaml_map(tt_yaml_t *self, tt_yaml_node_t map, const char *key, tt_yaml_node_t *out)
{
    return s_typed(self, map, key, YAML_MAPPING_NODE, "a mapping", out);
}

tt_status_t tt_yaml_list(tt_yaml_t *self, tt_yaml_node_t map, const char *key, tt_yaml_node_t *out)
{
    return s_typed(self, map, key, YAML_SEQUENCE_NODE, "a list", out);
}
