/*  yaml_file - a YAML (or JSON) file as a tree that knows its lines: kubeconfig files, the operator's file of accelerators.
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
} kube_yaml_t;

typedef yaml_node_t *kube_node_t; /* NULL = there is none */

/*  TT_NOT_FOUND, TT_IO; TT_CONFIG: "file:line: why". */
tt_status_t kube_yaml_read(kube_yaml_t **self_p, const char *path);
tt_status_t kube_yaml_parse(kube_yaml_t **self_p, const char *path, const char *text, size_t size);
void kube_yaml_destroy(kube_yaml_t **self_p);

/*  NULL for an empty file. */
kube_node_t kube_yaml_root(kube_yaml_t *self);
/*  A member of a mapping; NULL when absent or null. */
kube_node_t kube_yaml_get(kube_yaml_t *self, kube_node_t map, const char *key);
/*  Key number i of a mapping, in the order of the file, and its value (NULL: null); NULL at the end. */
kube_node_t kube_yaml_key(kube_yaml_t *self, kube_node_t map, size_t i, kube_node_t *value);
/*  An element of a list; NULL at its end. */
kube_node_t kube_yaml_at(kube_yaml_t *self, kube_node_t list, size_t index);

/*  TT_CONFIG (or another) with "file:line: " and the words. */
tt_status_t kube_yaml_err(const kube_yaml_t *self, kube_node_t at, tt_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*  Members that must be of a type when they are there. Text: *out is borrowed, and left alone when absent. */
tt_status_t kube_yaml_text(kube_yaml_t *self, kube_node_t map, const char *key, const char **out);
tt_status_t kube_yaml_bool(kube_yaml_t *self, kube_node_t map, const char *key, bool *out);
/*  A mapping or a list; *out is NULL when absent. */
tt_status_t kube_yaml_map(kube_yaml_t *self, kube_node_t map, const char *key, kube_node_t *out);
tt_status_t kube_yaml_list(kube_yaml_t *self, kube_node_t map, const char *key, kube_node_t *out);
