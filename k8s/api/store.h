/*  store - objects of one resource as we need them, small, found by name, uid and by the indexes that their owner wants;
 *  and reflector - what fills it: list, then watch, for ever.
 *
 *  An entry begins with kube_meta_t and is made by `decode` from filtered JSON. A write of ours puts the server's answer
 *  into the store at once (kube_store_put), so nobody acts twice on an old picture: an object older than the one we have,
 *  or that the watch has already passed and removed, is ignored. resourceVersions are compared as numbers (KEP-5504).
 *
 *  Threads: the loop's. */
#pragma once
#include "k8s/api/client.h"
#include "k8s/api/scan.h"

typedef struct {
    char *namespace_, *name; /* owned by the entry; namespace "" for cluster-wide ones */
    char uid[37];
    uint64_t version; /* resourceVersion                                        */
    uint32_t mark;    /* the store's own                                        */
} kube_meta_t;

typedef struct kube_store kube_store_t; /* opaque */

enum { KUBE_INDEXES = 4 };
typedef struct {
    /*  A new entry from one object's JSON, meta filled in (kube_meta_read does that). TT_DATA: not such an object: it is
     *  logged and left out. */
    tt_status_t (*decode)(void *ctx, const char *json, size_t size, void **entry);
    void (*destroy)(void *entry);
    /*  The key under which index i finds the entry; NULL = not in it. Borrowed from the entry. */
    const char *(*index[KUBE_INDEXES])(const void *entry);
    /*  Something changed: before is NULL for a new one, now is NULL for one that is gone. Both borrowed. Called for
     *  watches, lists and kube_store_put alike, only when the version differs. */
    void (*changed)(void *ctx, const void *before, const void *now);
    void *ctx;
} kube_store_ops_t;

tt_status_t kube_store_new(kube_store_t **self_p, const kube_store_ops_t *ops);
void kube_store_destroy(kube_store_t **self_p);
size_t kube_store_count(const kube_store_t *self);
/*  NULL when there is none. Borrowed until the store changes. */
void *kube_store_get(const kube_store_t *self, const char *namespace_, const char *name);
void *kube_store_by_uid(const kube_store_t *self, const char *uid);
/*  Those under a key of index i: start with *at = NULL; NULL at the end. The store must not change meanwhile. */
void *kube_store_next(const kube_store_t *self, int index, const char *key, const void **at);
/*  All of them. */
void *kube_store_each(const kube_store_t *self, const void **at);

/*  The server's answer to a write of ours (an object's JSON). TT_DATA. */
tt_status_t kube_store_put(kube_store_t *self, const char *json, size_t size);
/*  The server said 404 to us: it is gone (unless a newer one has come since `version`). */
void kube_store_gone(kube_store_t *self, const char *namespace_, const char *name, uint64_t version);

/*  metadata's namespace, name, uid, resourceVersion of a parsed object (json_t *). */
struct json_t;
tt_status_t kube_meta_read(kube_meta_t *meta, const struct json_t *object);
void kube_meta_clear(kube_meta_t *meta);

/* ---- reflector ----------------------------------------------------------------------------------------------------- */

typedef struct kube_reflector kube_reflector_t; /* opaque */

typedef struct {
    const char *path;           /* "/api/v1/pods", "/api/v1/namespaces/x/pods"                           */
    const char *label_selector; /* NULL = none; not escaped                                              */
    const char *field_selector;
    bool metadata_only;        /* ask for PartialObjectMetadata                                         */
    kube_drop_t drop;          /* in addition to managedFields and last-applied                         */
    int page;                  /* objects a list request; 0 = 10,000 (they are never held as a tree)     */
    void (*synced)(void *ctx); /* the first list is in the store; may be NULL                           */
    /*  The server has no such resource (404), or shows us none (403), and no list has been in the store yet. It is asked for
     *  again, as after any failure. May be NULL. */
    void (*missing)(void *ctx, const kube_reply_t *reply);
    void *ctx;
} kube_reflector_opts_t;

/*  Begins at once: pages of the list, then a watch with bookmarks. 410 Gone or ERROR: list anew (what is not in it is
 *  removed). A watch that ends is opened again where it was, one that fails after 0.2 .. 30 s, doubling, jittered. A
 *  watch is ended by us when nothing, not even a bookmark, came for 2 minutes. Borrows store and client; not to be
 *  destroyed from within a call of either. */
tt_status_t kube_reflector_new(
    kube_reflector_t **self_p, kube_client_t *client, kube_store_t *store, const kube_reflector_opts_t *opts);
void kube_reflector_destroy(kube_reflector_t **self_p);
bool kube_reflector_synced(const kube_reflector_t *self);
typedef struct {
    uint64_t lists, watches, events, bookmarks, errors;
} kube_reflector_stats_t;
kube_reflector_stats_t kube_reflector_stats(const kube_reflector_t *self);
