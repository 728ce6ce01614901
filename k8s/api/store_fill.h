/*  store_fill - the reflector's side of a store: what a list and a watch bring into it.
 *
 *  Threads: the loop's. */
#pragma once
#include "k8s/api/store.h"

/*  A list begins: what is in no page of it is removed at its end, but for what is newer than it. A list that was begun and
 *  not ended has done nothing but bring in what it had. */
void kube_store_list_begin(kube_store_t *self);
void kube_store_list_object(kube_store_t *self, const char *json, size_t size);
/*  version: the list's. TT_AGAIN: it is older than what a watch has shown before: the server was set back (restored from a
 *  backup, say), and everything must be listed once more; any version will do then. */
tt_status_t kube_store_list_end(kube_store_t *self, uint64_t version);

/*  An ADDED, MODIFIED or DELETED of a watch. */
void kube_store_event(kube_store_t *self, const char *type, const char *json, size_t size);
/*  A BOOKMARK: the watch has shown everything up to this version. */
void kube_store_passed(kube_store_t *self, uint64_t version);
/*  The highest version that list and watch have shown: where a watch goes on. */
uint64_t kube_store_version(const kube_store_t *self);

/*  A resourceVersion as a number. False: it is none. */
bool kube_version_read(const char *text, uint64_t *version);
