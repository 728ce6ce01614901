/*  manifest - YAML (or JSON) files of Kubernetes objects -> JSON, as kubectl reads them.
 *
 *  Plain scalars are typed as in YAML 1.1 and as kubectl 1.32 types them: y, yes, on and true are true, 0644 and 0o644 are
 *  420, 1_000 is 1000, 1e3 is 1000, dates stay text. Keys stay the text they are written as (kubectl makes "true" of a key
 *  `on`). Several documents, block scalars, anchors, aliases and merge keys are read; a null member is left out; a `List`
 *  gives its items. Limits: 4 MiB of text, depth 64, 200,000 values after aliases are filled in; a key given twice is an
 *  error, and so are tags of one's own.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include "common/base/status.h"

typedef struct tt_manifest tt_manifest_t; /* opaque */

/*  A file; "-" = standard input. TT_NOT_FOUND, TT_IO; TT_CONFIG: "file:line: what". */
tt_status_t tt_manifest_load(tt_manifest_t **self_p, const char *path);
/*  `name` stands in messages for the file's name. */
tt_status_t tt_manifest_parse(tt_manifest_t **self_p, const char *text, size_t size, const char *name);
void tt_manifest_destroy(tt_manifest_t **self_p);

/*  As messages name it. */
const char *tt_manifest_name(const tt_manifest_t *self);
/*  The objects, in order; an empty file has none. Borrowed. */
size_t tt_manifest_count(const tt_manifest_t *self);
json_t *tt_manifest_at(const tt_manifest_t *self, size_t index);
/*  "file:line" of a value of object `index`, by its path ("spec.volumes[0].name"); of the nearest thing above it where the
 *  path is not there. Borrowed until the next call. */
const char *tt_manifest_where(tt_manifest_t *self, size_t index, const char *path);

/*  Is this file a manifest and not a config of ours: is there an apiVersion and a kind at the top of its first document? A
 *  pipe is not looked into: what is in it can be read once only. */
bool tt_manifest_is(const char *path);
