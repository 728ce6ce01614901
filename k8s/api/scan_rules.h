/*  scan_rules - the paths of scan.h as a tree, walked down along with the brackets.
 *
 *  A member is left out when a path names it, or when a "*" holds where it stands and no "+" path leads to it or through
 *  it. Below a "*" a "+" path keeps what it names and nothing beside it: {"spec.*", "+spec.containers.name"} leaves
 *  only the names of the containers. A plain path wins over a "+".
 *
 *  Threads: immutable once made. */
#pragma once
#include <stdbool.h>
#include "k8s/api/scan.h"

typedef struct kube_rules kube_rules_t; /* opaque */

/*  Where we are in the tree. */
typedef struct {
    int node;  /* -1 = no path leads further */
    bool star; /* a "*" holds                */
} kube_rules_at_t;
#define KUBE_RULES_NONE ((kube_rules_at_t){.node = -1})

/*  TT_INVALID: a path that cannot be read. Copies. */
tt_status_t kube_rules_new(kube_rules_t **self_p, kube_drop_t drop);
void kube_rules_destroy(kube_rules_t **self_p);
kube_rules_at_t kube_rules_root(const kube_rules_t *self);
/*  Is this member wanted? The key is as it stands between its quotes, escapes and all. *below: for its value. */
bool kube_rules_member(
    const kube_rules_t *self, kube_rules_at_t at, const char *key, size_t size, kube_rules_at_t *below);
