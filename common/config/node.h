/*  node - a value of a manifest by its path, with its line for who has something to say about it.
 *
 *  Threads: as manifest.h. */
#pragma once
#include "common/config/manifest.h"

enum { TT_NODE_PATH = 512 };

typedef struct {
    tt_manifest_t *file; /* borrowed */
    size_t index;        /* of the object */
    const json_t *value; /* borrowed; NULL: it is not there, or null */
    char path[TT_NODE_PATH];
} tt_node_t;

/*  Object `index` of the file; where there is none its value is NULL, as is that of everything below it. */
tt_node_t tt_node_of(tt_manifest_t *file, size_t index);
/*  A member of a mapping; an item of a list. */
tt_node_t tt_node_get(const tt_node_t *self, const char *key);
tt_node_t tt_node_at(const tt_node_t *self, size_t i);

/*  The status (TT_CONFIG, most often) with "file:line: " and the words. */
tt_status_t tt_node_err(const tt_node_t *self, tt_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*  Members that have to be of a type where they are there; *out is left alone where they are not. A text is borrowed, and "" is as if it were
 *  not there. */
tt_status_t tt_node_text(const tt_node_t *self, const char *key, const char **out);
tt_status_t tt_node_bool(const tt_node_t *self, const char *key, bool *out);
tt_status_t tt_node_map(const tt_node_t *self, const char *key, tt_node_t *out);
tt_status_t tt_node_list(const tt_node_t *self, const char *key, tt_node_t *out);
