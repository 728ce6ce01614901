#include "controller/rundir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/net/sockdir.h"
#include "controller/mark.h"
#include "controller/registry.h"

enum { ROOM = 16384, FULL = 4096, LOCK_TRIES = 5000, LOCK_PAUSE_NS = 2000000, DIR_MODE = 0700, LOCK_MODE = 0600 };

/* ---- making ---------------------------------------------------------------------------------------------------------- */

/*  Names and directories of runs stand in lists and messages: what moves a terminal's cursor, or ends a line, is no part of one. */
static tt_status_t s_check_words(const char *what, const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t code = 0;
        const size_t length = tt_utf8_next(at, &code);
        if (length ? code < 0x20 || (code >= 0x7f && code < 0xa0) : (unsigned char)*at < 0x20)
            return tt_err(TT_USAGE, "%s: a control character (U+%04X) at byte %zu; use another one", what, code,
                (size_t)(at - text) + 1);
        at += length ? length : 1;
    }
    return TT_OK;
}

static tt_status_t s_settle(tt_rundir_t *out, const char *path)
{
    char real[PATH_MAX];
    *out = (tt_rundir_t){0};
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

static tt_status_t s_err_taken(const char *path)
{
    if (errno != EEXIST && errno != 0)
        return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot make %s", path);
    if (mark_look(path) == MARK_NONE)
        return tt_err(
            TT_EXISTS, "%s is there already, and holds no run: choose another directory with --run-dir", path);
    return tt_err(TT_EXISTS,
        "run directory %s is in use already: choose another with --run-dir, continue it with "
        "'tutti resume %s', or remove it with 'tutti rm %s'",
        path, path, path);
}

static tt_status_t s_create_at(tt_rundir_t *out, const char *path, bool *made)
{
    char parent[PATH_MAX];
    if (!path[0])
        return tt_err(TT_USAGE, "--run-dir: the directory of a run needs a name");
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = '\0';
        TT_TRY(tt_file_make_path(parent, 0777));
    }
    *made = mkdir(path, DIR_MODE) == 0;
    if (*made || (errno == EEXIST && s_is_empty(path)))
        return s_settle(out, path);
    return s_err_taken(path);
}

static tt_status_t s_create_numbered(tt_rundir_t *out, const char *name, bool *made)
{
    const tt_status_t status = tt_file_make_path("runs", 0777);
    if (status != TT_OK)
        return tt_err_wrap(status, "no place for the run here; choose one with --run-dir");
    for (int n = 1; n < 1000000; n++) {
        char path[512], taken[PATH_MAX], candidate[256];
        snprintf(candidate, sizeof candidate, "%s-%d", name, n);
        snprintf(path, sizeof path, "runs/%s", candidate);
        if (registry_look(candidate, taken) && access(path, F_OK) != 0)
            continue; /* a run of that name lives elsewhere */
        *made = mkdir(path, DIR_MODE) == 0;
        if (*made)
            return s_settle(out, path);
        if (errno != EEXIST)
            return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO,
                "no place for the run here; choose one with --run-dir: cannot make %s", path);
    }
    return tt_err(TT_EXISTS, "runs/ holds too many runs called %s", name);
}

/*  The mark first: it is written into what is empty. */
static tt_status_t s_fill(int dir)
{
    static const char *const folders[] = {"logs", "checkpoints"};
    TT_TRY(mark_write(dir));
    for (size_t i = 0; i < TT_COUNT(folders); i++)
        if (mkdirat(dir, folders[i], 0777) != 0 && errno != EEXIST)
            return tt_err_errno(TT_IO, "cannot make %s/", folders[i]);
    return TT_OK;
}

/*  Nothing is left of a run that could not be made. */
static void s_abandon(const tt_rundir_t *self, int dir, bool made)
{
    unlinkat(dir, "logs", AT_REMOVEDIR);
    unlinkat(dir, "checkpoints", AT_REMOVEDIR);
    unlinkat(dir, MARK_FILE, 0);
    if (made)
        rmdir(self->path);
}

tt_status_t tt_rundir_create(tt_rundir_t *out, const char *path, const char *name)
{
    bool made = false;
    TT_TRY(s_check_words(path ? "the run's directory" : "the run's name", path ? path : name));
    TT_TRY(tt_file_check_umask());
    TT_TRY(path ? s_create_at(out, path, &made) : s_create_numbered(out, name, &made));
    const int dir = open(out->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", out->path);
    tt_status_t status = s_fill(dir);
    if (status == TT_OK)
        status = registry_add(out);
    if (status != TT_OK)
        s_abandon(out, dir, made);
    close(dir);
    return status;
}

tt_status_t tt_rundir_adopt(tt_rundir_t *out, const char *path, int mode)
{
    TT_TRY(tt_file_check_umask());
    TT_TRY(tt_file_make_path(path, (mode_t)mode));
    TT_TRY(s_settle(out, path));
    const int dir = open(out->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", out->path);
    tt_status_t status = mark_write(dir);
    if (status == TT_OK)
        status = mark_sync(dir);
    close(dir);
    if (status != TT_OK)
        return tt_err_wrap(status, "%s", path);
    (void)registry_add(out);
    return TT_OK;
}

/* ---- finding ------------------------------------------------------------------------------------------------------- */

/*  A run of ours that was moved here, or copied, gets a name; another user's does not. */
static void s_remember(tt_rundir_t *self)
{
    struct stat info;
    if (stat(self->path, &info) == 0 && info.st_uid == geteuid())
        (void)registry_add(self); /* a read-only file system does not keep us from asking the run */
}

static bool s_is_link(const char *path)
{
    char bare[PATH_MAX];
    struct stat info;
    size_t length = (size_t)snprintf(bare, sizeof bare, "%.4000s", path);
    while (length > 1 && bare[length - 1] == '/') /* lstat follows a link with a slash behind it */
        bare[--length] = '\0';
    return lstat(bare, &info) == 0 && S_ISLNK(info.st_mode);
}

static tt_status_t s_err_none(const char *name)
{
    char near[256], was[PATH_MAX];
    struct stat info;
    const bool there = stat(name, &info) == 0, shut = !there && errno == EACCES,
               folder = there && S_ISDIR(info.st_mode);
    if (shut || (folder && eaccess(name, R_OK | X_OK) != 0 && errno == EACCES))
        return tt_err_errno(TT_DENIED, "%s", name);
    if (folder)
        return tt_err(
            TT_NOT_FOUND, "%s is not the directory of a run (none of its files says so); 'tutti ps' lists them", name);
    if (registry_away(name, was))
        return eaccess(was, R_OK | X_OK) == 0
                   ? tt_err(TT_IO, "run '%.255s' is at %s, which cannot be looked at", name, was)
                   : tt_err_errno(errno == EACCES ? TT_DENIED : TT_IO,
                         "run '%.255s' is at %s, which cannot be looked at", name, was);
    if (registry_was(name, was))
        return tt_err(TT_NOT_FOUND,
            "run '%.255s' was at %s, which is %s; where it was moved, name its directory; 'tutti ps' lists the others",
            name, was, access(was, F_OK) == 0 ? "no run any more" : "gone");
    return registry_nearest(name, near)
               ? tt_err(TT_NOT_FOUND, "no run '%s'; did you mean '%s'? 'tutti ps' lists them", name, near)
               : tt_err(TT_NOT_FOUND, "no run '%s'; 'tutti ps' lists them", name);
}

tt_status_t tt_rundir_find(tt_rundir_t *out, const char *path_or_name)
{
    char path[PATH_MAX];
    if (mark_look(path_or_name) != MARK_NONE) {
        TT_TRY(s_settle(out, path_or_name));
        out->linked = s_is_link(path_or_name);
        s_remember(out);
        return TT_OK;
    }
    if (!registry_look(path_or_name, path))
        return s_err_none(path_or_name);
    TT_TRY(s_settle(out, path));
    snprintf(out->name, sizeof out->name, "%.255s", path_or_name);
    return TT_OK;
}

/* ---- lock, sockets, files ----------------------------------------------------------------------------------------- */

static int s_open_lock(const tt_rundir_t *self, int flags)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", self->path);
    return open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, LOCK_MODE);
}

/*  A look holds the lock too, shared and for a moment only, unless it is held up: whoever wants it for itself then tries again. */
tt_status_t tt_rundir_lock(const tt_rundir_t *self, int *fd)
{
    *fd = s_open_lock(self, O_RDWR | O_CREAT);
    if (*fd < 0)
        return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot lock %s", self->path);
    (void)fchmod(*fd, LOCK_MODE); /* who may read it may lock it */
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

/*  Another user's lock cannot be looked at, but his sockets are there only while it runs. */
static bool s_has_sockets(const tt_rundir_t *self)
{
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/sock", self->path);
    return lstat(path, &info) == 0;
}

bool tt_rundir_live(const tt_rundir_t *self)
{
    const int fd = s_open_lock(self, O_RDONLY);
    if (fd < 0)
        return errno == EACCES && s_has_sockets(self);
    const bool live = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return live;
}

tt_status_t tt_rundir_check(const tt_rundir_t *self, int fd)
{
    char path[PATH_MAX];
    struct stat held, there;
    snprintf(path, sizeof path, "%s/lock", self->path);
    if (fstat(fd, &held) != 0)
        return TT_OK;
    if (lstat(path, &there) == 0)
        return there.st_dev == held.st_dev && there.st_ino == held.st_ino
                   ? TT_OK
                   : tt_err(TT_IO, "the run directory %s is gone or was moved: another one has its place", self->path);
    if (errno != ENOENT && errno != ENOTDIR)
        return TT_OK;
    if (lstat(self->path, &there) == 0)
        return tt_err(TT_IO, "the run directory %s is gone or was moved: what is there has no lock", self->path);
    if (errno != ENOENT && errno != ENOTDIR)
        return TT_OK;
    return tt_err(TT_IO,
        "the run directory %s is gone or was moved; if it was moved, 'tutti resume' with its new path goes on from its "
        "newest snapshot",
        self->path);
}

bool tt_rundir_held_by(const tt_rundir_t *self, pid_t pid)
{
    char path[PATH_MAX];
    struct stat lock, info;
    snprintf(path, sizeof path, "%s/lock", self->path);
    if (lstat(path, &lock) != 0 || !tt_rundir_live(self))
        return false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    bool held = false;
    for (struct dirent *entry; dir && !held && (entry = readdir(dir));)
        held = fstatat(dirfd(dir), entry->d_name, &info, 0) == 0 && info.st_dev == lock.st_dev &&
               info.st_ino == lock.st_ino;
    if (dir)
        closedir(dir);
    return held;
}

tt_status_t tt_rundir_open_sockets(const tt_rundir_t *self)
{
    tt_sockdir_close(self->path); /* of a run that was killed */
    return tt_sockdir_open(self->path);
}

void tt_rundir_close_sockets(const tt_rundir_t *self)
{
    tt_sockdir_close(self->path);
}

tt_status_t tt_rundir_may_ask(const tt_rundir_t *self)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sock", self->path);
    return eaccess(path, X_OK) != 0 && errno == EACCES
               ? tt_err(TT_DENIED, "run %s is another user's, who alone may ask it: %s", self->name, self->path)
               : TT_OK;
}

void tt_rundir_control(const tt_rundir_t *self, char *out, size_t size)
{
    char dir[PATH_MAX];
    if (tt_sockdir_find(self->path, dir, sizeof dir) != TT_OK)
        snprintf(dir, sizeof dir, "%s/sock", self->path);
    snprintf(out, size, "ipc://%s/control", dir);
}

tt_status_t tt_rundir_read(const tt_rundir_t *self, const char *file, tt_buf_t *out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", self->path, file);
    return tt_buf_read_file(out, path);
}

static tt_status_t s_renew_mark(const tt_rundir_t *self)
{
    const int dir = open(self->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", self->path);
    const tt_status_t status = mark_renew(dir);
    close(dir);
    return status;
}

tt_status_t tt_rundir_sync(const tt_rundir_t *self)
{
    const int dir = open(self->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", self->path);
    const tt_status_t status = mark_sync(dir);
    close(dir);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", self->path);
}

tt_status_t tt_rundir_begin(const tt_rundir_t *self)
{
    TT_TRY(tt_file_check_umask());
    TT_TRY(s_renew_mark(self));
    char *room = tt_new0(ROOM + 1);
    memset(room, '\n', ROOM);
    const tt_status_t status = tt_file_replace(self->path, TT_RUNDIR_ROOM, room, 0600);
    free(room);
    return status;
}

bool tt_rundir_full(const tt_rundir_t *self)
{
    struct statvfs disk;
    if (statvfs(self->path, &disk) != 0)
        return false;
    const fsblkcnt_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    const fsfilcnt_t files = geteuid() == 0 ? disk.f_ffree : disk.f_favail;
    return blocks * disk.f_frsize < FULL || (disk.f_files > 0 && files == 0);
}

bool tt_rundir_read_only(const tt_rundir_t *self)
{
    struct statvfs disk;
    return statvfs(self->path, &disk) == 0 && (disk.f_flag & ST_RDONLY);
}

tt_status_t tt_rundir_write(const tt_rundir_t *self, const char *file, const char *text, int mode)
{
    const tt_status_t status = tt_file_replace(self->path, file, text, (mode_t)mode);
    if (status == TT_OK || (errno != ENOSPC && errno != EDQUOT))
        return status;
    tt_rundir_forget(self, TT_RUNDIR_ROOM);
    return tt_file_replace(self->path, file, text, (mode_t)mode);
}

void tt_rundir_forget(const tt_rundir_t *self, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", self->path, file);
    unlink(path);
}
