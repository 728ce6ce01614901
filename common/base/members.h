/*  members - which members of a JSON object are wanted, by a list of paths, walked down along with the brackets.
 *
 *  Paths lead from the object: "metadata.managedFields", "spec.containers.volumeMounts" (arrays are looked through). A last part in
 *  brackets is one key as it is, dots and slashes included: "metadata.annotations[example.com/note]". A member is left out when a
 *  path names it, or when a "*" holds where it stands and no "+" path leads to it or through it. Below a "*" a "+" path keeps what
 *  it names and nothing beside it: {"spec.*", "+spec.containers.name"} leaves only the names of the containers. A plain path wins
 *  over a "+".
 *
 *  Threads: immutable once made. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "common/base/status.h"

typedef struct tt_members tt_members_t; /* opaque */

/*  Where we are in the tree. */
typedef struct {
    int node;  /* -1 = no path leads further */
    bool star; /* a "*" holds                */
} tt_members_at_t;
#define TT_MEMBERS_NONE ((tt_members_at_t){.node = -1})

/*  paths: NULL-terminated; NULL = all are wanted. TT_INVALID: a path that cannot be read. Copies. */
tt_status_t tt_members_new(tt_members_t **self_p, const char *const *paths);
void tt_members_destroy(tt_members_t **self_p);
tt_members_at_t tt_members_root(const tt_members_t *self);
/*  Is this member wanted? The key is as it stands between its quotes, escapes and all. *below: for its value. */
bool tt_members_wanted(
    const tt_members_t *self, tt_members_at_t at, const char *key, size_t size, tt_members_at_t *below);
