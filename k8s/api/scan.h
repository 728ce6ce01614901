/*  scan - takes lists and watches of the API server apart as they come in, and leaves out what nobody reads.
 *
 *  A list of 10,000 pods is 46 MB of JSON; as a tree it would be 559 MB. So the bytes are cut into objects on the way in
 *  (the elements of a list's "items", or the events of a watch), members that are not wanted are dropped at byte level,
 *  and only one small object at a time is ever parsed. Input is not trusted: depth at most 64, an object at most
 *  max_object bytes after dropping, strings must be closed; anything else is TT_DATA with the offset. Fuzzed.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stddef.h>
#include "common/base/status.h"

/*  Members to drop, as the paths of common/base/members.h; NULL-terminated. The object of an ERROR event is left whole. */
typedef const char *const *kube_drop_t;

typedef struct kube_scan kube_scan_t; /* opaque */

typedef enum { KUBE_SCAN_LIST, KUBE_SCAN_WATCH } kube_scan_kind_t;

/*  One object: of a list (type NULL) or of a watch ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"). The JSON ends with a 0 byte; borrowed. */
typedef tt_status_t (*kube_object_fn)(void *ctx, const char *type, const char *json, size_t size);

tt_status_t kube_scan_new(
    kube_scan_t **self_p, kube_scan_kind_t kind, kube_drop_t drop, size_t max_object, kube_object_fn fn, void *ctx);
void kube_scan_destroy(kube_scan_t **self_p);
/*  The next piece, cut anywhere. What fn returned when not TT_OK. */
tt_status_t kube_scan_feed(kube_scan_t *self, const char *data, size_t size);
/*  The body is over. TT_DATA: in the middle of something, or a list that had no "items". */
tt_status_t kube_scan_end(kube_scan_t *self);
/*  Of a list: metadata.resourceVersion and metadata.continue ("" = none), as they stand between their quotes; valid after
 *  the end. Borrowed. */
const char *kube_scan_version(const kube_scan_t *self);
const char *kube_scan_continue(const kube_scan_t *self);
