#include "controller/registry.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/home.h"
#include "common/base/mem.h"
#include "common/config/config.h"
#include "controller/mark.h"

enum { NUMBERS_MAX = 4096 };

/* ---- the folder ---------------------------------------------------------------------------------------------------- */

/*  Who has no home has a folder in /tmp, whose name anybody could have taken first (s_is_ours). A reboot takes names from there, no run. */
static tt_status_t s_folder(char *out, size_t size)
{
    char homeless[64];
    snprintf(homeless, sizeof homeless, "/tmp/tutti-state-%u", (unsigned)geteuid());
    return tt_home_state(out, size, "runs", homeless);
}

/*  Names that somebody else may change lead where he likes. Root may look at a user's. */
static bool s_is_ours(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && (info.st_uid == geteuid() || (geteuid() == 0 && !(info.st_mode & 022)));
}

static int s_open(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || s_is_ours(fd))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/*  The registry is changed by one at a time: what points nowhere to one may be another's new name. */
static tt_status_t s_lock(const char *folder, int *fd)
{
    *fd = s_open(folder);
    if (*fd >= 0 && flock(*fd, LOCK_EX) == 0)
        return TT_OK;
    const tt_status_t status = tt_err_errno(TT_IO, "cannot lock %s", folder);
    if (*fd >= 0)
        close(*fd);
    return status;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

/*  Where a name in the folder points to, whatever is there. */
static bool s_read(int folder, const char *name, char target[PATH_MAX])
{
    if (!name[0] || strchr(name, '/'))
        return false;
    const ssize_t length = readlinkat(folder, name, target, PATH_MAX - 1);
    if (length <= 0 || target[0] != '/')
        return false;
    target[length] = '\0';
    return true;
}

/*  The run that a name in the folder stands for. */
static bool s_look(int folder, const char *name, char *out)
{
    char target[PATH_MAX];
    return s_read(folder, name, target) && realpath(target, out) && mark_look(out) != MARK_NONE;
}

/*  Is it certain that there is nothing, or no run? A disk that is away for a moment, or a folder that is shut, does not make it so. */
static bool s_is_void(int folder, const char *name, char *target)
{
    if (!s_read(folder, name, target))
        return true;
    const int dir = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR;
    const bool none = mark_look_at(dir) == MARK_NONE;
    close(dir);
    return none;
}

static bool s_was(int folder, const char *name, char *out)
{
    return s_read(folder, name, out) && s_is_void(folder, name, out);
}

static bool s_is_away(int folder, const char *name, char *out)
{
    char real[PATH_MAX];
    return !s_is_void(folder, name, out) && !s_look(folder, name, real);
}

static bool s_ask(bool (*ask)(int folder, const char *name, char *out), const char *name, char *out)
{
    char path[PATH_MAX];
    const int folder = s_folder(path, sizeof path) == TT_OK ? s_open(path) : -1;
    const bool found = folder >= 0 && ask(folder, name, out);
    if (folder >= 0)
        close(folder);
    return found;
}

bool registry_look(const char *name, char *out)
{
    return s_ask(s_look, name, out);
}

bool registry_was(const char *name, char *out)
{
    return s_ask(s_was, name, out);
}

bool registry_away(const char *name, char *out)
{
    return s_ask(s_is_away, name, out);
}

/*  Forget a name. Only links are names: whatever else lies there was put there by somebody else. */
static void s_drop(int folder, const char *name)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
        unlinkat(folder, name, 0);
}

/*  A name already taken by another directory gets a number. */
static tt_status_t s_take_name(tt_rundir_t *self, int folder)
{
    char other[PATH_MAX], wanted[200];
    snprintf(wanted, sizeof wanted, "%.190s", self->name);
    for (int n = 2; n < NUMBERS_MAX; n++) {
        if (s_look(folder, self->name, other)) {
            if (strcmp(other, self->path) == 0)
                return TT_OK;
        } else if (s_is_void(folder, self->name, other)) {
            s_drop(folder, self->name);
            if (symlinkat(self->path, folder, self->name) == 0)
                return TT_OK;
            if (errno != EEXIST)
                return tt_err_errno(TT_IO, "cannot register the run as '%s'", self->name);
        }
        snprintf(self->name, sizeof self->name, "%s~%d", wanted, n);
    }
    return tt_err(TT_EXISTS, "too many runs are called '%s'", wanted);
}

tt_status_t registry_add(tt_rundir_t *self)
{
    char path[PATH_MAX];
    int folder;
    TT_TRY(s_folder(path, sizeof path));
    tt_status_t status = tt_file_make_path(path, 0700);
    if (status == TT_OK)
        status = s_lock(path, &folder);
    if (status != TT_OK)
        return tt_err_wrap(status, "no registry of runs in %s (XDG_STATE_HOME chooses another place)", path);
    status = s_take_name(self, folder);
    close(folder);
    return status;
}

void registry_forget(const char *name)
{
    char path[PATH_MAX], target[PATH_MAX];
    int folder;
    if (s_folder(path, sizeof path) != TT_OK || s_lock(path, &folder) != TT_OK)
        return;
    if (s_is_void(folder, name, target))
        s_drop(folder, name);
    close(folder);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static int s_by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

typedef struct {
    char **at;
    size_t count, room;
} names_t;

static void s_names_add(names_t *self, const char *name)
{
    if (self->count == self->room) {
        self->room = self->room ? 2 * self->room : 64;
        self->at = tt_realloc(self->at, self->room * sizeof *self->at);
    }
    self->at[self->count++] = tt_strdup(name);
}

static void s_names_free(names_t *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->at[i]);
    free(self->at);
}

/*  All that are registered, in order. s_names_free() it, also after an error. */
static tt_status_t s_names(names_t *out)
{
    char path[PATH_MAX];
    *out = (names_t){0};
    TT_TRY(s_folder(path, sizeof path));
    const int folder = s_open(path);
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    if (!dir)
        return errno == EPERM ? tt_err(TT_DENIED, "%s belongs to another user; set XDG_STATE_HOME", path) : TT_OK;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            s_names_add(out, entry->d_name);
    closedir(dir);
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, s_by_name);
    return TT_OK;
}

tt_status_t tt_registry_sweep(void (*fn)(void *ctx, const char *name, const char *was), void *ctx)
{
    names_t names;
    char was[PATH_MAX];
    const tt_status_t status = s_names(&names);
    for (size_t i = 0; i < names.count; i++)
        if (registry_was(names.at[i], was)) {
            registry_forget(names.at[i]);
            fn(ctx, names.at[i], was);
        }
    s_names_free(&names);
    return status;
}

tt_status_t tt_registry_each(void (*fn)(void *ctx, const tt_rundir_t *run), void *ctx)
{
    names_t names;
    const tt_status_t status = s_names(&names);
    for (size_t i = 0; i < names.count; i++) {
        tt_rundir_t run = {0};
        char path[PATH_MAX];
        if (!registry_look(names.at[i], path)) {
            registry_forget(names.at[i]);
            continue;
        }
        snprintf(run.path, sizeof run.path, "%.3000s", path);
        snprintf(run.name, sizeof run.name, "%.255s", names.at[i]);
        fn(ctx, &run);
    }
    s_names_free(&names);
    return status;
}

/*  The number of "demo-3" as a run of demo's; -1: it is none. */
static long s_number(const char *name, const char *of)
{
    enum { DIGITS_MAX = 9 };
    const size_t length = strlen(of);
    if (strncmp(name, of, length) != 0 || name[length] != '-')
        return -1;
    const char *text = name + length + 1;
    const size_t digits = strspn(text, "0123456789");
    return digits && digits <= DIGITS_MAX && !text[digits] ? atol(text) : -1;
}

/*  Of those that are called so but for the number that each gets, the newest. */
static const char *s_newest(const char *name, const char *const *live, size_t count)
{
    const char *newest = NULL;
    for (size_t i = 0; i < count; i++)
        if (s_number(live[i], name) > (newest ? s_number(newest, name) : -1))
            newest = live[i];
    return newest;
}

bool registry_nearest(const char *name, char *out)
{
    names_t names;
    char path[PATH_MAX];
    (void)s_names(&names);
    const char **live = tt_array0(names.count + 1, sizeof *live);
    size_t live_count = 0;
    for (size_t i = 0; i < names.count; i++)
        if (registry_look(names.at[i], path))
            live[live_count++] = names.at[i];
    const char *near = s_newest(name, live, live_count);
    if (!near)
        near = tt_nearest(name, live, live_count);
    if (near)
        snprintf(out, sizeof(tt_rundir_t){0}.name, "%s", near);
    free(live);
    s_names_free(&names);
    return near != NULL;
}
