#include "common/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static tt_status_t s_err(const char *path)
{
    return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : errno == EACCES ? TT_DENIED : TT_IO, "%s", path);
}

/*  O_NONBLOCK: a FIFO that nobody writes would hold us in open. */
tt_status_t tt_file_open(int *fd_out, const char *path)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENXIO)
        return tt_err(TT_DATA, "%s: not an ordinary file", path);
    if (fd < 0)
        return s_err(path);
    struct stat info;
    tt_status_t status = fstat(fd, &info) == 0 ? TT_OK : s_err(path);
    if (status == TT_OK && S_ISDIR(info.st_mode))
        status = tt_err(TT_IO, "%s: is a directory", path);
    else if (status == TT_OK && !S_ISREG(info.st_mode))
        status = tt_err(TT_DATA, "%s: not an ordinary file", path);
    if (status == TT_OK)
        *fd_out = fd;
    else
        close(fd);
    return status;
}

tt_status_t tt_file_check(const char *path)
{
    int fd = -1;
    TT_TRY(tt_file_open(&fd, path));
    close(fd);
    return TT_OK;
}
