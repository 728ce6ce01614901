#include "common/base/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 256, OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

typedef struct {
    const char *path, *keep;
    dev_t device;
    tt_status_t status; /* with the first entry that stays */
    size_t removed;
} sweep_t;

static void s_fail(sweep_t *self, const char *name)
{
    if (self->status == TT_OK)
        self->status = tt_err_errno(errno == EACCES || errno == EPERM ? TT_DENIED : TT_IO,
            "%s could not be removed altogether: %s", self->path, name);
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
    errno = inside ? errno : EXDEV; /* a file system that is mounted there is somebody else's */
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

/*  Not every file system goes on listing where it was when entries vanish: until nothing more is found. What is kept stays till
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
                (depth > 0 || !self->keep || strcmp(entry->d_name, self->keep) != 0))
                s_entry(self, fd, entry->d_name, depth);
    } while (self->removed > before && self->status == TT_OK);
    closedir(list);
}

tt_status_t tt_tree_empty(int dir, const char *path, const char *keep)
{
    struct stat info;
    if (fstat(dir, &info) != 0)
        return tt_err_errno(TT_IO, "%s", path);
    sweep_t sweep = {.path = path, .keep = keep, .device = info.st_dev, .status = TT_OK};
    const int list = openat(dir, ".", OPEN_DIR);
    if (list < 0)
        return tt_err_errno(TT_IO, "%s", path);
    s_sweep(&sweep, list, 0);
    return sweep.status;
}
