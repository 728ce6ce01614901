/*  results - what the pods of a local run have left in their volumes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "common/base/mem.h"
#include "local/local.h"

enum { DEPTH = 4 }; /* pods/<pod>/volumes/<volume>/[subPath/]checkpoints */

typedef struct {
    char *folder; /* owned */
    struct timespec when;
} newest_t;

static void s_look(newest_t *self, const char *folder)
{
    struct stat info;
    const bool there = lstat(folder, &info) == 0 && S_ISDIR(info.st_mode);
    const struct timespec *a = &info.st_mtim, *b = &self->when;
    if (!there || (self->folder && (a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec <= b->tv_nsec))))
        return;
    free(self->folder);
    self->folder = tt_strdup(folder);
    self->when = info.st_mtim;
}

/*  Links are not followed: a pod may have made them. */
static void s_search(newest_t *self, const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = tt_sprintf("%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, "checkpoints") == 0)
            s_look(self, path);
        else if (depth < DEPTH && lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            s_search(self, path, depth + 1);
        free(path);
    }
    if (dir)
        closedir(dir);
}

char *local_checkpoints(const char *run_dir)
{
    static const char *const places[] = {"pods", "claims", "host"};
    newest_t newest = {0};
    for (size_t i = 0; i < TT_COUNT(places); i++) {
        char *folder = tt_sprintf("%s/%s", run_dir, places[i]);
        s_search(&newest, folder, 0);
        free(folder);
    }
    return newest.folder;
}
