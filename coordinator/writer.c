#include "coordinator/writer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/mem.h"

tt_status_t writer_open(writer_t *self, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return tt_err_errno(TT_IO, "%s", path);
    *self = (writer_t){.fd = fd, .path = tt_strdup(path)};
    tt_buf_init(&self->pending, WRITER_MAX);
    return TT_OK;
}

tt_status_t writer_flush(writer_t *self)
{
    size_t done = 0;
    while (done < self->pending.size) {
        const ssize_t written = write(self->fd, self->pending.data + done, self->pending.size - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (errno != EINTR) {
            const char *hint = errno == ENOSPC ? "; make room, then `tutti resume` goes on" : "";
            return tt_err(TT_IO, "%s: %s%s", self->path, strerror(errno), hint);
        }
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
