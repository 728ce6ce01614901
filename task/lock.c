#include "task/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { PATIENCE_MS = 2000, LOOK_MS = 20, PATH_SIZE = 4200 };

static tt_status_t s_hold(const char *folder, const char *name, bool wait, int *fd)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd < 0)
        return tt_err_errno(TT_IO, "%s", path);
    int code;
    while ((code = flock(*fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) == 0 ? 0 : errno) == EINTR)
        continue;
    if (code == 0)
        return TT_OK;
    close(*fd);
    *fd = -1;
    errno = code;
    return code == EWOULDBLOCK ? tt_err(TT_EXISTS, "the jobs of %s are run by another process already", folder)
                               : tt_err_errno(TT_IO, "%s", path);
}

tt_status_t lock_run(const char *folder, int *fd)
{
    const int64_t from = tt_now_ms(tt_clock_real());
    tt_status_t status;
    while ((status = s_hold(folder, "run.lock", false, fd)) == TT_EXISTS &&
           tt_now_ms(tt_clock_real()) < from + PATIENCE_MS)
        (void)poll(NULL, 0, LOOK_MS);
    return status;
}

tt_status_t lock_try(const char *folder, int *fd)
{
    return s_hold(folder, "engine.lock", false, fd);
}

static tt_status_t s_sign(int fd)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
        return tt_err_errno(TT_IO, "engine.lock");
    return TT_OK;
}

tt_status_t lock_take(const char *folder, bool wait, int *fd)
{
    const tt_status_t status = s_hold(folder, "engine.lock", wait, fd);
    return status == TT_OK ? s_sign(*fd) : status;
}

int lock_holder(const char *folder)
{
    char path[PATH_SIZE], text[32] = "";
    int held = -1;
    const tt_status_t status = lock_try(folder, &held); /* who looks holds it for a moment, which an engine outwaits */
    if (held >= 0)
        close(held);
    if (status != TT_EXISTS)
        return 0;
    snprintf(path, sizeof path, "%s/engine.lock", folder);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    return size > 0 && atoi(text) > 0 ? atoi(text) : -1;
}
