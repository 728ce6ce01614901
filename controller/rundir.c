#include "controller/rundir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "common/base/mem.h"
#include "common/config/config.h"

enum {
    NAMES_MAX = 4096,
    SOCKET_NAME_ROOM = 40, /* "/learner-65535-weights" and some */
    LOCK_TRIES = 500,
    LOCK_PAUSE_NS = 2000000
};

static tt_status_t s_make(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return TT_OK;
    return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot make directory %s", path);
}

/*  mkdir -p */
static tt_status_t s_make_path(const char *path, mode_t mode)
{
    char partial[PATH_MAX];
    snprintf(partial, sizeof partial, "%s", path);
    for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        TT_TRY(s_make(partial, mode));
        *slash = '/';
    }
    return s_make(partial, mode);
}

/* ---- registry ----------------------------------------------------------------------------------------------------- */

static tt_status_t s_registry(char *out, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;
    if (state && state[0] == '/')
        length = snprintf(out, size, "%s/tutti/runs", state);
    else
        length = snprintf(out, size, "%s/.local/state/tutti/runs", home && home[0] == '/' ? home : "/tmp");
    if (length < 0 || (size_t)length >= size)
        return tt_err(TT_INVALID, "XDG_STATE_HOME is too long");
    return TT_OK;
}

/*  The directory that a registered name stands for; false when there is none (any more). */
static bool s_registered(const char *name, char *out)
{
    char folder[PATH_MAX - 300], link[PATH_MAX];
    if (strchr(name, '/') || s_registry(folder, sizeof folder) != TT_OK)
        return false;
    snprintf(link, sizeof link, "%s/%s", folder, name);
    struct stat st;
    return realpath(link, out) && stat(out, &st) == 0 && S_ISDIR(st.st_mode);
}

/*  A name already taken by another directory gets a number. */
static tt_status_t s_take_name(tt_rundir_t *self, const char *folder)
{
    char link[PATH_MAX], other[PATH_MAX], wanted[200];
    snprintf(wanted, sizeof wanted, "%.190s", self->name);
    for (int n = 2; n < NAMES_MAX; n++) {
        if (s_registered(self->name, other)) {
            if (strcmp(other, self->path) == 0)
                return TT_OK;
            snprintf(self->name, sizeof self->name, "%s~%d", wanted, n);
            continue;
        }
        snprintf(link, sizeof link, "%s/%s", folder, self->name);
        unlink(link); /* points nowhere */
        if (symlink(self->path, link) == 0)
            return TT_OK;
        if (errno != EEXIST)
            return tt_err_errno(TT_IO, "cannot register the run as %s", link);
    }
    return tt_err(TT_EXISTS, "too many runs are called '%s'", wanted);
}

/*  The registry is changed by one at a time: what points nowhere to one may be another's new name. */
static tt_status_t s_lock_registry(const char *folder, int *fd)
{
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0 && flock(*fd, LOCK_EX) == 0)
        return TT_OK;
    const tt_status_t status = tt_err_errno(TT_IO, "cannot lock %s", folder);
    if (*fd >= 0)
        close(*fd);
    return status;
}

static tt_status_t s_register(tt_rundir_t *self)
{
    char folder[PATH_MAX - 300];
    int lock;
    TT_TRY(s_registry(folder, sizeof folder));
    tt_status_t status = s_make_path(folder, 0755);
    if (status == TT_OK)
        status = s_lock_registry(folder, &lock);
    if (status != TT_OK)
        return tt_err_wrap(status, "no registry of runs in %s (XDG_STATE_HOME chooses another place)", folder);
    status = s_take_name(self, folder);
    close(lock);
    return status;
}

/*  Forget a name that points nowhere. */
static void s_unregister(const char *name)
{
    char folder[PATH_MAX - 300], link[PATH_MAX];
    int lock;
    if (s_registry(folder, sizeof folder) != TT_OK || s_lock_registry(folder, &lock) != TT_OK)
        return;
    if (!s_registered(name, link)) {
        snprintf(link, sizeof link, "%s/%s", folder, name);
        unlink(link);
    }
    close(lock);
}

static tt_status_t s_names(char **names, size_t *count)
{
    char folder[PATH_MAX - 300];
    *count = 0;
    TT_TRY(s_registry(folder, sizeof folder));
    DIR *dir = opendir(folder);
    if (!dir)
        return TT_OK;
    for (struct dirent *entry; (entry = readdir(dir)) && *count < NAMES_MAX;)
        if (entry->d_name[0] != '.')
            names[(*count)++] = tt_strdup(entry->d_name);
    closedir(dir);
    return TT_OK;
}

static int s_by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

tt_status_t tt_registry_each(void (*fn)(void *ctx, const tt_rundir_t *run), void *ctx)
{
    char **names = tt_array0(NAMES_MAX, sizeof *names);
    size_t count;
    const tt_status_t status = s_names(names, &count);
    qsort(names, count, sizeof *names, s_by_name);
    for (size_t i = 0; i < count; i++) {
        tt_rundir_t run;
        char path[PATH_MAX];
        if (s_registered(names[i], path)) {
            snprintf(run.path, sizeof run.path, "%.3000s", path);
            snprintf(run.name, sizeof run.name, "%.255s", names[i]);
            fn(ctx, &run);
        } else {
            s_unregister(names[i]);
        }
        free(names[i]);
    }
    free(names);
    return status;
}

/* ---- making and finding ------------------------------------------------------------------------------------------- */

static tt_status_t s_subfolders(const tt_rundir_t *self)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs", self->path);
    TT_TRY(s_make(path, 0755));
    snprintf(path, sizeof path, "%s/checkpoints", self->path);
    return s_make(path, 0755);
}

static tt_status_t s_settle(tt_rundir_t *out, const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return tt_err_errno(TT_IO, "%s", path);
    if (strlen(real) >= sizeof out->path)
        return tt_err(TT_INVALID, "%s: the path is too long", path);
    memcpy(out->path, real, strlen(real) + 1);
    const char *base = strrchr(real, '/');
    snprintf(out->name, sizeof out->name, "%.200s", base && base[1] ? base + 1 : "run");
    return TT_OK;
}

static bool s_is_empty(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(dir));)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(dir);
    return empty;
}

static tt_status_t s_create_at(tt_rundir_t *out, const char *path, bool *made)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = '\0';
        TT_TRY(s_make_path(parent, 0755));
    }
    *made = mkdir(path, 0755) == 0;
    if (!*made) {
        if (errno != EEXIST)
            return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot make %s", path);
        if (!s_is_empty(path))
            return tt_err(TT_EXISTS,
                "run directory %s is in use already: choose another with --run-dir, continue it with "
                "'tutti resume %s', or remove it with 'tutti rm %s'",
                path, path, path);
    }
    return s_settle(out, path);
}

static tt_status_t s_create_numbered(tt_rundir_t *out, const char *name, bool *made)
{
    TT_TRY(s_make_path("runs", 0755));
    for (int n = 1; n < 1000000; n++) {
        char path[512], taken[PATH_MAX], candidate[256];
        snprintf(candidate, sizeof candidate, "%s-%d", name, n);
        snprintf(path, sizeof path, "runs/%s", candidate);
        if (s_registered(candidate, taken) && access(path, F_OK) != 0)
            continue; /* a run of that name lives elsewhere */
        *made = mkdir(path, 0755) == 0;
        if (*made)
            return s_settle(out, path);
        if (errno != EEXIST)
            return tt_err_errno(TT_IO, "cannot make %s", path);
    }
    return tt_err(TT_EXISTS, "runs/ holds too many runs called %s", name);
}

/*  Nothing is left of a run that could not be made. */
static void s_abandon(const tt_rundir_t *self, bool made)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs", self->path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/checkpoints", self->path);
    rmdir(path);
    if (made)
        rmdir(self->path);
}

tt_status_t tt_rundir_create(tt_rundir_t *out, const char *path, const char *name)
{
    bool made = false;
    TT_TRY(path ? s_create_at(out, path, &made) : s_create_numbered(out, name, &made));
    tt_status_t status = s_subfolders(out);
    if (status == TT_OK)
        status = s_register(out);
    if (status != TT_OK)
        s_abandon(out, made);
    return status;
}

tt_status_t tt_rundir_find(tt_rundir_t *out, const char *path_or_name)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/config.yaml", path_or_name);
    if (stat(path, &st) == 0) {
        TT_TRY(s_settle(out, path_or_name));
        (void)s_register(out); /* a read-only file system does not keep us from asking the run */
        return TT_OK;
    }
    if (s_registered(path_or_name, path)) {
        TT_TRY(s_settle(out, path));
        snprintf(out->name, sizeof out->name, "%.255s", path_or_name);
        return TT_OK;
    }
    char **names = tt_array0(NAMES_MAX, sizeof *names);
    size_t count;
    (void)s_names(names, &count);
    const char *near = tt_nearest(path_or_name, (const char *const *)names, count);
    const tt_status_t status =
        near ? tt_err(TT_NOT_FOUND, "no run '%s'; did you mean '%s'? 'tutti ps' lists them", path_or_name, near)
             : tt_err(TT_NOT_FOUND, "no run '%s'; 'tutti ps' lists them", path_or_name);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}

/* ---- lock, sockets, files ----------------------------------------------------------------------------------------- */

static int s_open_lock(const tt_rundir_t *self, int flags)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", self->path);
    return open(path, flags | O_CLOEXEC, 0644);
}

/*  A look holds the lock too, shared and for a moment only: whoever wants it for itself then tries again. */
tt_status_t tt_rundir_lock(const tt_rundir_t *self, int *fd)
{
    *fd = s_open_lock(self, O_RDWR | O_CREAT);
    if (*fd < 0)
        return tt_err_errno(TT_IO, "cannot lock %s", self->path);
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
            return TT_OK;
        if (flock(*fd, LOCK_SH | LOCK_NB) != 0)
            break;
        flock(*fd, LOCK_UN);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    }
    close(*fd);
    *fd = -1;
    return tt_err(TT_EXISTS, "run %s is running already", self->name);
}

bool tt_rundir_live(const tt_rundir_t *self)
{
    const int fd = s_open_lock(self, O_RDONLY);
    if (fd < 0)
        return false;
    const bool live = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return live;
}

tt_status_t tt_rundir_open_sockets(const tt_rundir_t *self)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sock", self->path);
    tt_rundir_close_sockets(self); /* of a run that was killed */
    if (strlen(path) + SOCKET_NAME_ROOM < sizeof((struct sockaddr_un *)0)->sun_path)
        return s_make(path, 0700);
    char private_[] = "/tmp/tutti-XXXXXX";
    if (!mkdtemp(private_))
        return tt_err_errno(TT_IO, "cannot make %s", private_);
    if (symlink(private_, path) == 0)
        return TT_OK;
    const tt_status_t status = tt_err_errno(TT_IO, "cannot make %s", path);
    rmdir(private_);
    return status;
}

static int s_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void s_remove_tree(const char *path)
{
    nftw(path, s_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void tt_rundir_close_sockets(const tt_rundir_t *self)
{
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%s/sock", self->path);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        if (strncmp(target, "/tmp/tutti-", 11) == 0)
            s_remove_tree(target);
    }
    s_remove_tree(path);
}

void tt_rundir_control(const tt_rundir_t *self, char *out, size_t size)
{
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(path, sizeof path, "%s/sock", self->path);
    if (!realpath(path, real)) /* a long path is a link to a short one */
        snprintf(real, sizeof real, "%s", path);
    snprintf(out, size, "ipc://%s/control", real);
}

tt_status_t tt_rundir_read(const tt_rundir_t *self, const char *file, tt_buf_t *out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", self->path, file);
    return tt_buf_read_file(out, path);
}

tt_status_t tt_rundir_write(const tt_rundir_t *self, const char *file, const char *text, int mode)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", self->path, file);
    snprintf(temporary, sizeof temporary, "%s/.%s.tmp", self->path, file);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return tt_err_errno(TT_IO, "cannot write %s", path);
    const size_t size = strlen(text);
    const bool written = write(fd, text, size) == (ssize_t)size;
    const bool closed = close(fd) == 0;
    if (written && closed && rename(temporary, path) == 0)
        return TT_OK;
    const tt_status_t status = tt_err_errno(TT_IO, "cannot write %s", path);
    unlink(temporary);
    return status;
}

void tt_rundir_forget(const tt_rundir_t *self, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", self->path, file);
    unlink(path);
}

tt_status_t tt_rundir_remove(const tt_rundir_t *self)
{
    if (tt_rundir_live(self))
        return tt_err(TT_EXISTS, "run %s is running; end it first with 'tutti stop %s'", self->name, self->name);
    tt_rundir_close_sockets(self);
    s_remove_tree(self->path);
    struct stat st;
    if (stat(self->path, &st) == 0)
        return tt_err(TT_IO, "%s could not be removed altogether", self->path);
    s_unregister(self->name);
    return TT_OK;
}
