/*  dataset - named files: a data set is a file, or a folder with the files that lay in it when it was registered.
 *
 *  Only where they are is kept, never what they hold, and nothing here changes or removes them. A folder's files are its ordinary
 *  files, in the order of their names (strverscmp: cfg2 before cfg10); folders in it, names with a leading '.', links and
 *  whatever else lies there are left out, so nothing outside of it is reached by a name in it.
 *
 *  Threads: as its store. */
#pragma once
#include "task/store.h"

enum { DATASET_FILES_MAX = 100000 };

typedef struct {
    int64_t id;
    char name[256];
    char path[4096]; /* absolute, links resolved */
    bool folder;
    int64_t files; /* 1 for a file */
    int64_t added; /* seconds since 1970 */
} dataset_t;

/*  Register path. TT_INVALID (a path that is neither, no file in it), TT_NOT_FOUND, TT_EXISTS (the name is taken), TT_USAGE (its name, too
 *  many files). */
tt_status_t dataset_add(store_t *store, const char *name, const char *path);
/*  Forget it. TT_NOT_FOUND; TT_EXISTS: a task uses it (delete that first). */
tt_status_t dataset_rm(store_t *store, const char *name);
/*  TT_NOT_FOUND names the nearest. */
tt_status_t dataset_find(store_t *store, const char *name, dataset_t *out);
/*  All of them, by name. */
tt_status_t dataset_each(store_t *store, void (*fn)(void *ctx, const dataset_t *set), void *ctx);
/*  The names of its files, in order; of a file, one: "". fn's status is passed on. */
tt_status_t dataset_files(
    store_t *store, const dataset_t *set, tt_status_t (*fn)(void *ctx, const char *name), void *ctx);
