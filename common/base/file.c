#include "common/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/beside.h"

static tt_status_t s_err(const char *path)
{
    return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : errno == EACCES ? TT_DENIED : TT_IO, "%s", path);
}

static tt_status_t s_err_write(const char *path)
{
    return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot write %s", path);
}

static tt_status_t s_expect_regular(const struct stat *info, const char *path)
{
    if (S_ISREG(info->st_mode))
        return TT_OK;
    return S_ISDIR(info->st_mode) ? tt_err(TT_IO, "%s: is a directory", path)
                                  : tt_err(TT_DATA, "%s: not an ordinary file", path);
}

/*  Looked at before it is opened: who waits to write into a FIFO would take us for its reader. O_NONBLOCK: and it may have
 *  become one since. */
tt_status_t tt_file_open(int *fd_out, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return s_err(path);
    TT_TRY(s_expect_regular(&info, path));
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return s_err(path);
    const tt_status_t status = fstat(fd, &info) == 0 ? s_expect_regular(&info, path) : s_err(path);
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

bool tt_file_write(int fd, const void *data, size_t size, size_t *done)
{
    size_t at = 0;
    bool ok = true;
    while (ok && at < size) {
        const ssize_t written = write(fd, (const char *)data + at, size - at);
        if (written > 0)
            at += (size_t)written;
        else
            ok = written < 0 && errno == EINTR;
    }
    if (done)
        *done = at;
    return ok;
}

bool tt_file_write_pieces(int fd, const void *data, size_t size, bool sync, tt_progress_t progress)
{
    for (size_t done = 0; done < size;) {
        const size_t left = size - done, piece = left < TT_FILE_PIECE ? left : TT_FILE_PIECE;
        if (!tt_file_write(fd, (const char *)data + done, piece, NULL))
            return false;
        done += piece;
        if (sync && done < size && fdatasync(fd) != 0)
            return false;
        tt_progress(progress);
    }
    return true;
}

tt_status_t tt_file_append(int *fd_out, const char *path, mode_t mode)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
    struct stat info;
    char last = '\n';
    if (fd < 0)
        return s_err_write(path);
    bool ok = fstat(fd, &info) == 0 && fcntl(fd, F_SETFL, O_APPEND) == 0; /* it becomes a program's output, too */
    if (ok && !S_ISREG(info.st_mode)) {
        close(fd);
        return tt_err(TT_IO, "cannot write %s: not an ordinary file", path);
    }
    if (ok && info.st_size > 0)
        ok = pread(fd, &last, 1, info.st_size - 1) == 1;
    if (ok && last != '\n')
        (void)tt_file_write(fd, "\n", 1, NULL); /* full? then it is a torn line as others are */
    if (ok) {
        *fd_out = fd;
        return TT_OK;
    }
    const tt_status_t status = s_err_write(path);
    close(fd);
    return status;
}

/* ---- whole or not at all --------------------------------------------------------------------------------------------- */

static tt_status_t s_fill(tt_beside_t *beside, const char *path, const void *data, size_t size, bool sync)
{
    return tt_file_write(beside->fd, data, size, NULL) && (!sync || fsync(beside->fd) == 0) ? TT_OK : s_err_write(path);
}

tt_status_t tt_file_replace(const char *dir, const char *name, const char *text, mode_t mode)
{
    char path[PATH_MAX];
    tt_beside_t beside;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return tt_err(TT_INVALID, "%s/%s: path too long", dir, name);
    TT_TRY(tt_beside_file(&beside, path, mode));
    tt_status_t status = s_fill(&beside, path, text, strlen(text), false);
    if (status == TT_OK)
        status = tt_beside_finish(&beside, true);
    const int cause = errno; /* the caller's to look at */
    tt_beside_drop(&beside);
    errno = cause;
    return status;
}

tt_status_t tt_file_is_free(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 ? tt_err(TT_EXISTS, "%s is there already", path) : TT_OK;
}

tt_status_t tt_file_save(const char *path, const void *data, size_t size, bool replace)
{
    tt_beside_t beside;
    TT_TRY(tt_beside_file(&beside, path, 0666));
    tt_status_t status = s_fill(&beside, path, data, size, true);
    if (status == TT_OK)
        status = tt_beside_finish(&beside, replace);
    tt_beside_drop(&beside);
    return status;
}

/*  Of /proc: umask(2) tells it only to who changes it, for all threads. 0 where /proc does not say. */
static mode_t s_umask(void)
{
    static const char key[] = "Umask:";
    char line[256];
    unsigned mask = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, sizeof key - 1) == 0) {
            mask = (unsigned)strtoul(line + sizeof key - 1, NULL, 8);
            break;
        }
    if (file)
        fclose(file);
    return (mode_t)mask;
}

tt_status_t tt_file_check_umask(void)
{
    const mode_t mask = s_umask();
    if ((mask & S_IRWXU) == 0)
        return TT_OK;
    return tt_err(TT_DENIED,
        "umask %04o: it takes your own rights to whatever is made; set another one first, as 'umask 022'",
        (unsigned)mask);
}

static tt_status_t s_make(const char *path, mode_t mode)
{
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT)
        TT_TRY(tt_file_check_umask());
    if (mkdir(path, mode) == 0)
        return TT_OK;
    if (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return TT_OK;
    return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot make directory %s", path);
}

tt_status_t tt_file_make_path(const char *path, mode_t mode)
{
    char partial[PATH_MAX];
    if (snprintf(partial, sizeof partial, "%s", path) >= (int)sizeof partial)
        return tt_err(TT_INVALID, "%.64s...: the path is too long", path);
    for (char *slash = strchr(partial + 1, '/'); partial[0] && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        TT_TRY(s_make(partial, 0777));
        *slash = '/';
    }
    return s_make(partial, mode);
}
