#include "common/base/buf.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/file.h"
#include "common/base/mem.h"

void tt_buf_init(tt_buf_t *self, size_t max)
{
    *self = (tt_buf_t){.max = max};
}

void tt_buf_free(tt_buf_t *self)
{
    free(self->data);
    tt_buf_init(self, self->max);
}

void tt_buf_clear(tt_buf_t *self)
{
    self->size = 0;
    if (self->data)
        self->data[0] = '\0';
}

void tt_buf_cut(tt_buf_t *self, size_t size)
{
    TT_CHECK(size <= self->size);
    self->size = size;
    if (self->data)
        self->data[size] = '\0';
}

static tt_status_t s_reserve(tt_buf_t *self, size_t more)
{
    if (more > self->max - self->size)
        return tt_err(TT_INVALID, "more than %zu bytes", self->max);
    const size_t need = self->size + more + 1;
    if (need <= self->room)
        return TT_OK;
    size_t room = self->room ? self->room : 256;
    while (room < need)
        room = tt_mul(room, 2);
    self->data = tt_realloc(self->data, room);
    self->room = room;
    return TT_OK;
}

tt_status_t tt_buf_add(tt_buf_t *self, const void *data, size_t size)
{
    TT_TRY(s_reserve(self, size));
    if (size)
        memcpy(self->data + self->size, data, size);
    self->size += size;
    self->data[self->size] = '\0';
    return TT_OK;
}

tt_status_t tt_buf_str(tt_buf_t *self, const char *text)
{
    return tt_buf_add(self, text, strlen(text));
}

tt_status_t tt_buf_printf(tt_buf_t *self, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int length = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    TT_CHECK(length >= 0);
    const tt_status_t status = s_reserve(self, (size_t)length);
    if (status == TT_OK) {
        vsnprintf(self->data + self->size, (size_t)length + 1, fmt, again);
        self->size += (size_t)length;
    }
    va_end(again);
    return status;
}

const char *tt_buf_text(const tt_buf_t *self)
{
    return self->data ? self->data : "";
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/*  To the end, or till nothing comes any more. */
static tt_status_t s_read_all(tt_buf_t *self, int fd, int patience_ms)
{
    char chunk[16384];
    for (;;) {
        struct pollfd item = {.fd = fd, .events = POLLIN};
        const int ready = poll(&item, 1, patience_ms);
        if (ready == 0)
            return tt_err(TT_TIMEOUT, "nothing came for %.3g s; does anybody write to it?", patience_ms * 1e-3);
        const ssize_t got = ready > 0 ? read(fd, chunk, sizeof chunk) : -1;
        if (got == 0)
            return TT_OK;
        if (got > 0)
            TT_TRY(tt_buf_add(self, chunk, (size_t)got));
        else if (errno != EINTR && errno != EAGAIN)
            return tt_err_errno(TT_IO, "cannot be read");
    }
}

/*  Too long is said before anything is read. */
static tt_status_t s_read_regular(tt_buf_t *self, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tt_err_errno(TT_IO, "cannot be read");
    if (S_ISREG(info.st_mode) && (uintmax_t)info.st_size > self->max - self->size)
        return tt_err(TT_INVALID, "more than %zu bytes", self->max);
    return s_read_all(self, fd, -1);
}

static tt_status_t s_close(int fd, tt_status_t status, const char *path)
{
    close(fd);
    return status == TT_OK ? TT_OK : tt_err_wrap(status, "%s", path);
}

tt_status_t tt_buf_read_file(tt_buf_t *self, const char *path)
{
    int fd = -1;
    TT_TRY(tt_file_open(&fd, path));
    return s_close(fd, s_read_regular(self, fd), path);
}

tt_status_t tt_buf_read_input(tt_buf_t *self, const char *path, int patience_ms)
{
    const bool in = strcmp(path, "-") == 0;
    const int fd =
        in ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    path = in ? "standard input" : path;
    if (fd < 0)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : errno == EACCES ? TT_DENIED : TT_IO, "%s", path);
    return s_close(fd, s_read_all(self, fd, isatty(fd) ? -1 : patience_ms), path);
}
