#include "coordinator/files.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool s_write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(fd, text, size);
        if (written <= 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

tt_status_t files_replace(const char *dir, const char *name, const char *text, mode_t mode)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
        snprintf(fresh, sizeof fresh, "%s/.%s.new", dir, name) >= (int)sizeof fresh)
        return tt_err(TT_INVALID, "%s/%s: path too long", dir, name);
    unlink(fresh);
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return tt_err_errno(TT_IO, "%s", fresh);
    const bool written = s_write_all(fd, text, strlen(text));
    if (close(fd) != 0 || !written || rename(fresh, path) != 0) {
        const tt_status_t status = tt_err_errno(TT_IO, "%s", path);
        unlink(fresh);
        return status;
    }
    return TT_OK;
}

void files_remove(const char *dir, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
        unlink(path);
}
