#include "coordinator/writer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"

/*  O_NONBLOCK: a FIFO of that name would hold us. */
tt_status_t writer_open(writer_t *self, const char *path, bool once)
{
    const int how = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (once ? O_EXCL : 0);
    const int fd = open(path, how, 0644);
    if (fd < 0)
        return tt_err_errno(errno == EEXIST ? TT_EXISTS : TT_IO, "%s", path);
    *self = (writer_t){.fd = fd, .path = tt_strdup(path)};
    tt_buf_init(&self->pending, WRITER_MAX);
    return TT_OK;
}

size_t writer_begin(const writer_t *self)
{
    return self->pending.size;
}

tt_status_t writer_end(writer_t *self, size_t begun, tt_status_t status)
{
    if (status != TT_OK)
        tt_buf_cut(&self->pending, begun);
    return status;
}

static tt_status_t s_err(const writer_t *self)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return tt_err_errno(TT_IO, "%s: the disk is full; make room, then `tutti resume` goes on", self->path);
    return tt_err_errno(TT_IO, "%s", self->path);
}

/*  Cannot be cut back? Then what is written is not pending any more. */
static void s_take_back(writer_t *self, off_t before, size_t done)
{
    if (done == 0 || ftruncate(self->fd, before) == 0)
        return;
    memmove(self->pending.data, self->pending.data + done, self->pending.size - done);
    tt_buf_cut(&self->pending, self->pending.size - done);
}

tt_status_t writer_flush(writer_t *self)
{
    struct stat info;
    size_t done = 0;
    if (self->pending.size == 0)
        return TT_OK;
    if (fstat(self->fd, &info) != 0)
        return s_err(self);
    if (!tt_file_write(self->fd, self->pending.data, self->pending.size, &done)) {
        const tt_status_t status = s_err(self);
        s_take_back(self, info.st_size, done);
        return status;
    }
    tt_buf_clear(&self->pending);
    return TT_OK;
}

tt_status_t writer_flush_full(writer_t *self)
{
    return self->pending.size < WRITER_FULL ? TT_OK : writer_flush(self);
}

tt_status_t writer_close(writer_t *self)
{
    if (!self->path)
        return TT_OK;
    const tt_status_t status = writer_flush(self);
    close(self->fd);
    free(self->path);
    tt_buf_free(&self->pending);
    *self = (writer_t){.fd = -1};
    return status;
}
