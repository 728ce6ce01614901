/*  yaml_tree - a YAML (or JSON) file as a tree that knows its lines, for files that others have defined: all of YAML is read, anchors
 *  too. A config of ours is stricter (read.c).
 *
 *  Threads: an instance is read-only once read. Nothing in a file is trusted: at most 4 MiB, every type checked. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>
#include "common/base/status.h"

typedef struct {
    char *path; /* as errors name it */
    yaml_document_t document;
} tt_yaml_t;

typedef yaml_node_t *tt_yaml_node_t; /* NULL = there is none */

/*  TT_NOT_FOUND, TT_IO; TT_CONFIG: "file:line: why". */
tt_status_t tt_yaml_read(tt_yaml_t **self_p, const char *path);
tt_status_t tt_yaml_parse(tt_yaml_t **self_p, const char *path, const char *text, size_t size);
void tt_yaml_destroy(tt_yaml_t **self_p);

/*  NULL for an empty file. */
tt_yaml_node_t tt_yaml_root(tt_yaml_t *self);
/*  A member of a mapping; NULL when absent or null. */
tt_yaml_node_t tt_yaml_get(tt_yaml_t *self, tt_yaml_node_t map, const char *key);
/*  Key number i of a mapping, in the order of the file, and its value (NULL: null); NULL at the end. */
tt_yaml_node_t tt_yaml_key(tt_yaml_t *self, tt_yaml_node_t map, size_t i, tt_yaml_node_t *value);
/*  An element of a list; NULL at its end. */
tt_yaml_node_t tt_yaml_at(tt_yaml_t *self, tt_yaml_node_t list, size_t index);

/*  TT_CONFIG (or another) with "file:line: " and the words. */
tt_status_t tt_yaml_err(const tt_yaml_t *self, tt_yaml_node_t at, tt_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*  Members that must be of a type when they are there. Text: *out is borrowed, and left alone when absent. */
tt_status_t tt_yaml_text(tt_yaml_t *self, tt_yaml_node_t map, const char *key, const char **out);
tt_status_t tt_yaml_bool(tt_yaml_t *self, tt_yaml_node_t map, const char *key, bool *out);
/*  A mapping or a list; *out is NULL when absent. */
tt_status_t tt_yaml_map(tt_yaml_t *self, tt_yaml_node_t map, const char *key, tt_yaml_node_t *out);
tt_status_t tt_yaml_list(tt_yaml_t *self, tt_yaml_node_t map, const char *key, tt_yaml_node_t *out);
