#include "common/base/beside.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/tree.h"

#define MIDDLE ".tutti-"
#define ENDING ".tmp"

enum { NAMES_MAX = 16, LINKS_MAX = 100, FD_PATH = 32, OPEN_LEFT = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

static tt_status_t s_err(const tt_beside_t *self)
{
    return tt_err_errno(
        errno == EACCES || errno == EPERM || errno == EROFS ? TT_DENIED : TT_IO, "cannot write %s", self->path);
}

/* ---- what a killed writer left --------------------------------------------------------------------------------------- */

static const char *s_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/*  .tutti-<digits>-<digits>.tmp */
static bool s_is_tail(const char *text)
{
    if (strncmp(text, MIDDLE, strlen(MIDDLE)) != 0)
        return false;
    const char *at = text + strlen(MIDDLE);
    const size_t pid = strspn(at, "0123456789"), turn = at[pid] == '-' ? strspn(at + pid + 1, "0123456789") : 0;
    return pid > 0 && turn > 0 && strcmp(at + pid + 1 + turn, ENDING) == 0;
}

static bool s_is_of(const char *name, const char *base)
{
    const size_t length = strlen(base);
    return strncmp(name, base, length) == 0 && s_is_tail(name + length);
}

/*  Of any base that ends so. */
static bool s_ends(const char *name, const char *ending)
{
    for (const char *at = strstr(name, ending); at; at = strstr(at + 1, ending))
        if (s_is_tail(at + strlen(ending)))
            return true;
    return false;
}

/*  Is what we have open and locked still what lies there under that name? Somebody else may have removed it before us. */
static bool s_is_there(int fd, int dir, const char *name)
{
    struct stat ours, theirs;
    return fstat(fd, &ours) == 0 && fstatat(dir, name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static void s_remove_left(int dir, const char *name)
{
    struct stat info;
    const int fd = openat(dir, name, OPEN_LEFT);
    if (fd < 0)
        return;
    const bool ours = fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                      s_is_there(fd, dir, name);
    if (ours && S_ISREG(info.st_mode))
        (void)unlinkat(dir, name, 0);
    else if (ours && S_ISDIR(info.st_mode) && tt_tree_empty(fd, name, NULL) == TT_OK)
        (void)unlinkat(dir, name, AT_REMOVEDIR);
    close(fd);
}

static int s_open_parent(const char *path)
{
    char parent[PATH_MAX];
    const size_t length = (size_t)(s_base(path) - path);
    memcpy(parent, path, length);
    memcpy(parent + length, ".", 2);
    return open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*  What cannot be looked at or removed stays: it is in nobody's way. */
static void s_sweep(const char *path)
{
    const int fd = s_open_parent(path);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        close(fd);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (s_is_of(entry->d_name, s_base(path)))
            s_remove_left(fd, entry->d_name);
    if (list)
        closedir(list);
}

void tt_beside_sweep(const char *folder, const char *ending)
{
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        if (s_ends(entry->d_name, ending))
            s_remove_left(dirfd(list), entry->d_name);
    if (list)
        closedir(list);
}

/* ---- begun ----------------------------------------------------------------------------------------------------------- */

/*  /dev/stdout and its like: what a link in /proc stands for is somebody's open file, whatever it is at present. */
static bool s_leads_to_proc(const char *path)
{
    static const char proc[] = "/proc/";
    char to[sizeof proc];
    return readlink(path, to, sizeof to) >= (ssize_t)sizeof to - 1 && strncmp(to, proc, sizeof proc - 1) == 0;
}

/*  A rename puts a file in the place of anything but a folder; a device or a pipe that a user has named would be gone for all. */
static tt_status_t s_may_replace(const tt_beside_t *self)
{
    struct stat info;
    const bool there = stat(self->path, &info) == 0;
    if (there && S_ISDIR(info.st_mode)) {
        errno = EISDIR; /* the rename would say so too late, or in other words */
        return s_err(self);
    }
    if ((there && !S_ISREG(info.st_mode)) || s_leads_to_proc(self->path))
        return tt_err(TT_IO, "cannot write %s: it is no ordinary file, and a file would take its place", self->path);
    return TT_OK;
}

static tt_status_t s_begin(tt_beside_t *self, const char *path, bool folder)
{
    size_t length = strlen(path);
    self->fd = -1;
    self->folder = folder;
    self->named = false;
    while (folder && length > 1 && path[length - 1] == '/')
        length--;
    if (length + sizeof MIDDLE + sizeof ENDING + 24 > sizeof self->beside)
        return tt_err(TT_INVALID, "%.64s...: the path is too long", path);
    memcpy(self->path, path, length);
    self->path[length] = '\0';
    TT_TRY(folder ? TT_OK : s_may_replace(self));
    s_sweep(self->path);
    return TT_OK;
}

/*  The n-th name: another process may have the first, as one with the same number in another container. */
static void s_name(tt_beside_t *self, int turn)
{
    /* s_begin has seen that it fits */
    (void)snprintf(self->beside, sizeof self->beside, "%.*s" MIDDLE "%d-%d" ENDING, PATH_MAX - 40, self->path,
        (int)getpid(), turn);
}

/*  Ours alone, or not at all. One that is no longer there was taken for a dead one's in the moment before it was locked. Without locks
 *  nobody removes it. */
static bool s_hold(tt_beside_t *self)
{
    if (flock(self->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return s_is_there(self->fd, AT_FDCWD, self->beside);
}

/*  False: errno says why; EEXIST: another name. */
static bool s_make_folder(tt_beside_t *self, mode_t mode)
{
    if (mkdir(self->beside, mode) != 0)
        return false;
    self->fd = open(self->beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->fd >= 0)
        return true;
    const int cause = errno == ENOENT ? EEXIST : errno; /* it was taken for a dead one's */
    (void)rmdir(self->beside);
    errno = cause;
    return false;
}

static bool s_make(tt_beside_t *self, mode_t mode)
{
    if (self->folder)
        return s_make_folder(self, mode);
    self->fd = open(self->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return self->fd >= 0;
}

static tt_status_t s_open_named(tt_beside_t *self, mode_t mode)
{
    for (int turn = 0; turn < NAMES_MAX; turn++) {
        s_name(self, turn);
        if (s_make(self, mode)) {
            self->named = s_hold(self);
            if (self->named)
                return TT_OK;
            close(self->fd);
            self->fd = -1;
        } else if (errno != EEXIST) {
            return s_err(self);
        }
    }
    errno = EEXIST;
    return s_err(self);
}

tt_status_t tt_beside_named(tt_beside_t *self, const char *path, mode_t mode)
{
    TT_TRY(s_begin(self, path, false));
    return s_open_named(self, mode);
}

tt_status_t tt_beside_folder(tt_beside_t *self, const char *path)
{
    TT_TRY(s_begin(self, path, true));
    return s_open_named(self, 0777);
}

/*  It gets its name by way of /proc. It is locked before anybody can see it. */
static bool s_open_nameless(tt_beside_t *self, mode_t mode)
{
    char by_number[FD_PATH], parent[PATH_MAX];
    const size_t length = (size_t)(s_base(self->path) - self->path);
    memcpy(parent, self->path, length);
    memcpy(parent + length, ".", 2);
    self->fd = open(parent, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", self->fd);
    if (self->fd >= 0 && access(by_number, F_OK) == 0 && flock(self->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    return false;
}

tt_status_t tt_beside_file(tt_beside_t *self, const char *path, mode_t mode)
{
    TT_TRY(s_begin(self, path, false));
    return s_open_nameless(self, mode) ? TT_OK : s_open_named(self, mode);
}

/* ---- ended ----------------------------------------------------------------------------------------------------------- */

static tt_status_t s_err_exists(const tt_beside_t *self)
{
    return tt_err(TT_EXISTS, "%s is there already", self->path);
}

static bool s_link(const tt_beside_t *self, const char *to)
{
    char by_number[FD_PATH];
    snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", self->fd);
    return linkat(AT_FDCWD, by_number, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0;
}

/*  What replaces another has to have a name first: only a rename does it at once. */
static tt_status_t s_give_name(tt_beside_t *self)
{
    for (int turn = 0; turn < NAMES_MAX && !self->named; turn++) {
        s_name(self, turn);
        self->named = s_link(self, self->beside);
        if (!self->named && errno != EEXIST)
            return s_err(self);
    }
    return self->named ? TT_OK : s_err(self);
}

/*  Not every file system can be told to replace nothing. */
static tt_status_t s_rename(const tt_beside_t *self, bool replace)
{
    struct stat info;
    if (renameat2(AT_FDCWD, self->beside, AT_FDCWD, self->path, replace ? 0 : RENAME_NOREPLACE) == 0)
        return TT_OK;
    if (!replace && errno == EEXIST)
        return s_err_exists(self);
    if (replace || errno != EINVAL)
        return s_err(self);
    if (lstat(self->path, &info) == 0)
        return s_err_exists(self);
    return rename(self->beside, self->path) == 0 ? TT_OK : s_err(self);
}

static tt_status_t s_put_in_place(tt_beside_t *self, bool replace)
{
    if (self->named || replace) {
        TT_TRY(self->named ? TT_OK : s_give_name(self));
        return s_rename(self, replace);
    }
    if (s_link(self, self->path))
        return TT_OK;
    return errno == EEXIST ? s_err_exists(self) : s_err(self);
}

/*  Some file systems say only when a file is closed that it has no room; ours stays open, as that is what holds the lock. */
static bool s_flush(const tt_beside_t *self)
{
    const int copy = self->folder ? -1 : fcntl(self->fd, F_DUPFD_CLOEXEC, 0);
    return self->folder || (copy >= 0 && close(copy) == 0);
}

tt_status_t tt_beside_finish(tt_beside_t *self, bool replace)
{
    TT_TRY(s_flush(self) ? TT_OK : s_err(self));
    TT_TRY(s_put_in_place(self, replace));
    close(self->fd);
    self->fd = -1;
    return TT_OK;
}

void tt_beside_drop(tt_beside_t *self)
{
    if (self->fd < 0)
        return;
    if (self->named && self->folder && tt_tree_empty(self->fd, self->beside, NULL) == TT_OK)
        (void)rmdir(self->beside);
    else if (self->named && !self->folder)
        (void)unlink(self->beside);
    close(self->fd);
    self->fd = -1;
}

/* ---- a second name --------------------------------------------------------------------------------------------------- */

/*  False, and errno: EEXIST, or ENOENT with `from` still there: somebody was at the same names. */
static bool s_link_over(tt_beside_t *self, const char *from)
{
    if (link(from, self->beside) != 0 || rename(self->beside, self->path) != 0)
        return false;
    (void)unlink(self->beside); /* rename leaves it when both are one file already */
    return true;
}

/*  Each turn has a name of its own: writers that took one name from each other, an operation by turns, would never end. */
tt_status_t tt_beside_link(const char *from, const char *path)
{
    tt_beside_t self;
    TT_TRY(s_begin(&self, path, false));
    for (int turn = 0; turn < LINKS_MAX; turn++) {
        s_name(&self, turn);
        if (s_link_over(&self, from))
            return TT_OK;
        if ((errno != EEXIST && errno != ENOENT) || access(from, F_OK) != 0)
            break;
    }
    return s_err(&self);
}
