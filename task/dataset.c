#include "task/dataset.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/config/config.h"
#include "task/names.h"

/* ---- what lies at a path ------------------------------------------------------------------------------------------- */

typedef struct {
    char **names;
    size_t count, room;
} list_t;

static void s_free(list_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->names[i]);
    free(self->names);
}

static void s_push(list_t *self, const char *name)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 64;
        self->names = tt_realloc(self->names, tt_mul(self->room, sizeof *self->names));
    }
    self->names[self->count++] = tt_strdup(name);
}

static int s_by_name(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    const int order = strverscmp(left, right);
    return order ? order : strcmp(left, right);
}

static tt_status_t s_read_folder(DIR *folder, const char *path, list_t *out)
{
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat info;
        if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        TT_TRY(names_check_part("file", entry->d_name));
        if (out->count == DATASET_FILES_MAX)
            return tt_err(TT_INVALID, "%s holds over %d files", path, DATASET_FILES_MAX);
        s_push(out, entry->d_name);
    }
    if (out->count == 0)
        return tt_err(TT_INVALID, "%s holds no file (folders, links and names with a leading '.' do not count)", path);
    return TT_OK;
}

static tt_status_t s_list(const char *path, list_t *out)
{
    DIR *folder = opendir(path);
    if (!folder)
        return tt_err_errno(errno == EACCES ? TT_DENIED : TT_IO, "%s", path);
    const tt_status_t status = s_read_folder(folder, path, out);
    closedir(folder);
    if (status == TT_OK)
        qsort(out->names, out->count, sizeof *out->names, s_by_name);
    return status;
}

/*  Where path leads to, and what that is. */
static tt_status_t s_look(const char *path, char *real, bool *folder)
{
    struct stat info;
    if (!realpath(path, real) || stat(real, &info) != 0)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "%s", path);
    TT_TRY(names_check_path("path", real));
    *folder = S_ISDIR(info.st_mode);
    if (!*folder && !S_ISREG(info.st_mode))
        return tt_err(TT_INVALID, "%s is neither a file nor a folder", real);
    if (access(real, *folder ? R_OK | X_OK : R_OK) != 0)
        return tt_err_errno(TT_DENIED, "%s", real);
    return TT_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *path;
    bool folder;
    const list_t *files;
} adding_t;

static tt_status_t s_count(void *ctx, sqlite3_stmt *row)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return TT_OK;
}

static tt_status_t s_add(void *ctx, store_t *store)
{
    const adding_t *adding = ctx;
    int64_t taken = 0;
    TT_TRY(store_run(store, "SELECT count(*) FROM datasets WHERE name = ?", s_count, &taken, "s", adding->name));
    if (taken)
        return tt_err(
            TT_EXISTS, "data set '%s' is there already; 'tutti dataset rm %s' forgets it", adding->name, adding->name);
    TT_TRY(store_run(store, "INSERT INTO datasets(name, path, folder, added) VALUES(?, ?, ?, ?)", NULL, NULL, "ssii",
        adding->name, adding->path, (int64_t)adding->folder, (int64_t)time(NULL)));
    const int64_t id = store_last_id(store);
    for (size_t i = 0; i < adding->files->count; i++)
        TT_TRY(store_run(
            store, "INSERT INTO files(dataset, name) VALUES(?, ?)", NULL, NULL, "is", id, adding->files->names[i]));
    return TT_OK;
}

tt_status_t dataset_add(store_t *store, const char *name, const char *path)
{
    char real[PATH_MAX];
    bool folder = false;
    list_t files = {0};
    TT_TRY(names_check("data set", name));
    TT_TRY(s_look(path, real, &folder));
    tt_status_t status = folder ? s_list(real, &files) : TT_OK;
    const adding_t adding = {.name = name, .path = real, .folder = folder, .files = &files};
    if (status == TT_OK)
        status = store_tx(store, s_add, (void *)&adding);
    s_free(&files);
    return status;
}

static tt_status_t s_take_name(void *ctx, sqlite3_stmt *row)
{
    snprintf(ctx, 256, "%.255s", store_text(row, 0));
    return TT_OK;
}

static tt_status_t s_rm(void *ctx, store_t *store)
{
    dataset_t set;
    TT_TRY(dataset_find(store, ctx, &set));
    char task[256] = "";
    TT_TRY(store_run(store,
        "SELECT tasks.name FROM uses JOIN tasks ON tasks.id = uses.task WHERE uses.dataset = ? LIMIT 1", s_take_name,
        task, "s", set.name));
    if (task[0])
        return tt_err(TT_EXISTS, "data set '%s' is used by task '%s'; 'tutti task delete -t %s' comes first", set.name,
            task, task);
    return store_run(store, "DELETE FROM datasets WHERE id = ?", NULL, NULL, "i", set.id);
}

tt_status_t dataset_rm(store_t *store, const char *name)
{
    return store_tx(store, s_rm, (void *)name);
}

#define SELECT \
    "SELECT id, name, path, folder, added, (SELECT count(*) FROM files WHERE dataset = datasets.id) FROM datasets "

static dataset_t s_row(sqlite3_stmt *row)
{
    dataset_t set = {.id = sqlite3_column_int64(row, 0)};
    snprintf(set.name, sizeof set.name, "%.255s", store_text(row, 1));
    snprintf(set.path, sizeof set.path, "%.4095s", store_text(row, 2));
    set.folder = sqlite3_column_int64(row, 3) != 0;
    set.added = sqlite3_column_int64(row, 4);
    set.files = set.folder ? sqlite3_column_int64(row, 5) : 1;
    return set;
}

static tt_status_t s_take(void *ctx, sqlite3_stmt *row)
{
    *(dataset_t *)ctx = s_row(row);
    return TT_OK;
}

static tt_status_t s_push_name(void *ctx, sqlite3_stmt *row)
{
    s_push(ctx, store_text(row, 0));
    return TT_OK;
}

static tt_status_t s_missing(store_t *store, const char *name)
{
    list_t names = {0};
    tt_status_t status = store_run(store, "SELECT name FROM datasets", s_push_name, &names, "");
    const char *near = status == TT_OK ? tt_nearest(name, (const char *const *)names.names, names.count) : NULL;
    if (near)
        status = tt_err(TT_NOT_FOUND, "no data set '%.200s'; did you mean '%s'?", name, near);
    else if (status == TT_OK)
        status = tt_err(TT_NOT_FOUND, "no data set '%.200s'; 'tutti dataset list' shows them", name);
    s_free(&names);
    return status;
}

tt_status_t dataset_find(store_t *store, const char *name, dataset_t *out)
{
    dataset_t set = {.id = -1};
    TT_TRY(store_run(store, SELECT "WHERE name = ?", s_take, &set, "s", name));
    if (set.id < 0)
        return s_missing(store, name);
    *out = set;
    return TT_OK;
}

typedef struct {
    void (*fn)(void *ctx, const dataset_t *set);
    void *ctx;
} each_t;

static tt_status_t s_give(void *ctx, sqlite3_stmt *row)
{
    const each_t *each = ctx;
    const dataset_t set = s_row(row);
    each->fn(each->ctx, &set);
    return TT_OK;
}

tt_status_t dataset_each(store_t *store, void (*fn)(void *ctx, const dataset_t *set), void *ctx)
{
    each_t each = {fn, ctx};
    return store_run(store, SELECT "ORDER BY name", s_give, &each, "");
}

tt_status_t dataset_files(
    store_t *store, const dataset_t *set, tt_status_t (*fn)(void *ctx, const char *name), void *ctx)
{
    list_t names = {0};
    if (!set->folder)
        return fn(ctx, "");
    tt_status_t status =
        store_run(store, "SELECT name FROM files WHERE dataset = ?", s_push_name, &names, "i", set->id);
    if (status == TT_OK)
        qsort(names.names, names.count, sizeof *names.names, s_by_name);
    for (size_t i = 0; i < names.count && status == TT_OK; i++)
        status = fn(ctx, names.names[i]);
    s_free(&names);
    return status;
}
