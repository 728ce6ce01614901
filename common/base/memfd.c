#include "common/base/memfd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

tt_status_t tt_memfd_make(tt_memfd_t *out, const char *name)
{
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tt_err_errno(TT_UNSUPPORTED, "memfd_create");
    *out = (tt_memfd_t){.fd = fd};
    return TT_OK;
}

tt_status_t tt_memfd_size(tt_memfd_t *self, size_t size)
{
    /* a reader of what had been cut off would be killed */
    if (ftruncate(self->fd, (off_t)size) != 0 ||
        fcntl(self->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return tt_err_errno(TT_OS, "memory of %zu bytes to share", size);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
    if (at == MAP_FAILED)
        return tt_err_errno(TT_OS, "memory of %zu bytes to share", size);
    self->at = at;
    self->size = size;
    return TT_OK;
}

/*  Before it is opened: to open something else may do things. */
static bool s_is_one(const char *path, const char *name)
{
    char found[300], wanted[300];
    const ssize_t size = readlink(path, found, sizeof found - 1);
    if (size < 0)
        return false;
    found[size] = '\0';
    snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name);
    return strcmp(found, wanted) == 0;
}

static tt_status_t s_map(tt_memfd_t *out, int fd, size_t size)
{
    struct stat info;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &info) != 0)
        return tt_err(TT_NOT_FOUND, "it has no size yet");
    if (info.st_size != (off_t)size)
        return tt_err(TT_DATA, "it has %lld bytes, expected %zu", (long long)info.st_size, size);
    void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return tt_err_errno(TT_OS, "memory of %zu bytes that another shares", size);
    *out = (tt_memfd_t){at, size, -1};
    return TT_OK;
}

tt_status_t tt_memfd_map(tt_memfd_t *out, uint32_t pid, int fd, const char *name, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, fd);
    if (!s_is_one(path, name))
        return tt_err(TT_NOT_FOUND, "%s: not the memory that process %u would share", path, pid);
    const int here = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (here < 0)
        return tt_err_errno(TT_NOT_FOUND, "%s", path);
    const tt_status_t status = s_map(out, here, size);
    close(here);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", path);
}

void tt_memfd_drop(tt_memfd_t *self)
{
    if (self->at)
        munmap(self->at, self->size);
    if (self->fd >= 0)
        close(self->fd);
    *self = (tt_memfd_t){.fd = -1};
}
