/*  remove - a run's directory with all that it holds. Every step is taken from a directory that is open already, so that no
 *  link and no rename leads out of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "controller/mark.h"
#include "controller/registry.h"

enum { DEPTH_MAX = 256, OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

typedef struct {
    const tt_rundir_t *run;
    dev_t device;
    tt_status_t status; /* with the first entry that stays */
    size_t removed;
} sweep_t;

static void s_fail(sweep_t *self, const char *name)
{
    if (self->status == TT_OK)
        self->status = tt_err_errno(errno == EACCES || errno == EPERM ? TT_DENIED : TT_IO,
            "%s could not be removed altogether: %s", self->run->path, name);
}

static void s_sweep(sweep_t *self, int dir, unsigned depth);

static void s_folder(sweep_t *self, int dir, const char *name, unsigned depth)
{
    struct stat info;
    const int fd = openat(dir, name, OPEN_DIR);
    if (fd < 0) {
        s_fail(self, name);
        return;
    }
    const bool inside = fstat(fd, &info) == 0 && info.st_dev == self->device && depth < DEPTH_MAX;
    if (inside)
        s_sweep(self, fd, depth + 1); /* takes fd */
    else
        close(fd);
    errno = inside ? errno : EXDEV; /* a file system that is mounted there is not the run's */
    if (!inside || unlinkat(dir, name, AT_REMOVEDIR) != 0)
        s_fail(self, name);
    else
        self->removed++;
}

static void s_entry(sweep_t *self, int dir, const char *name, unsigned depth)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* gone by itself */
    if (S_ISDIR(info.st_mode))
        s_folder(self, dir, name, depth);
    else if (unlinkat(dir, name, 0) == 0)
        self->removed++;
    else
        s_fail(self, name);
}

/*  Not every file system goes on listing where it was when entries vanish: until nothing more is found. The mark stays till
 *  the end, so that what could not be removed today may be tomorrow. */
static void s_sweep(sweep_t *self, int fd, unsigned depth)
{
    DIR *list = fdopendir(fd);
    if (!list) {
        close(fd);
        return;
    }
    size_t before;
    do {
        before = self->removed;
        rewinddir(list);
        for (struct dirent *entry; (entry = readdir(list));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                (depth > 0 || strcmp(entry->d_name, MARK_FILE) != 0))
                s_entry(self, fd, entry->d_name, depth);
    } while (self->removed > before && self->status == TT_OK);
    closedir(list);
}

static tt_status_t s_remove_all(const tt_rundir_t *run, int dir)
{
    struct stat info;
    if (fstat(dir, &info) != 0)
        return tt_err_errno(TT_IO, "%s", run->path);
    sweep_t sweep = {.run = run, .device = info.st_dev, .status = TT_OK};
    const int list = openat(dir, ".", OPEN_DIR);
    if (list < 0)
        return tt_err_errno(TT_IO, "%s", run->path);
    s_sweep(&sweep, list, 0);
    TT_TRY(sweep.status);
    unlinkat(dir, MARK_FILE, 0);
    if (rmdir(run->path) == 0)
        return TT_OK;
    s_fail(&sweep, ".");
    (void)mark_write(dir);
    return sweep.status;
}

/*  Of what is open, not of what has its name. */
static tt_status_t s_check(const tt_rundir_t *run, int dir)
{
    const mark_t mark = mark_look_at(dir);
    if (mark == MARK_RUN)
        return TT_OK;
    return mark == MARK_HOLDS
               ? tt_err(TT_DENIED, "%s holds other things than its run; remove by hand what is not wanted", run->path)
               : tt_err(TT_DENIED, "%s is not the directory of a run: it is not removed", run->path);
}

static tt_status_t s_remove_open(const tt_rundir_t *run, int dir)
{
    int lock;
    TT_TRY(s_check(run, dir));
    const tt_status_t status = tt_rundir_lock(run, &lock);
    if (status == TT_EXISTS)
        return tt_err(TT_EXISTS, "run %s is running; end it first with 'tutti stop %s'", run->name, run->name);
    TT_TRY(status);
    tt_rundir_close_sockets(run);
    const tt_status_t removed = s_remove_all(run, dir);
    close(lock);
    return removed;
}

tt_status_t tt_rundir_remove(const tt_rundir_t *self)
{
    if (self->linked)
        return tt_err(TT_USAGE, "that is a link; the run is %s: 'tutti rm %s'", self->path, self->name);
    const int dir = open(self->path, OPEN_DIR);
    if (dir < 0)
        return tt_err_errno(TT_IO, "%s", self->path);
    const tt_status_t status = s_remove_open(self, dir);
    close(dir);
    TT_TRY(status);
    registry_forget(self->name);
    return TT_OK;
}
