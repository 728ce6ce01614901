#include "common/base/buf.h"
#include "common/base/mem.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

tt_status_t tt_buf_read_file(tt_buf_t *self, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return tt_err_errno(errno == ENOENT ? TT_NOT_FOUND : TT_IO, "%s", path);
    char chunk[16384];
    tt_status_t status = TT_OK;
    size_t got;
    while (status == TT_OK && (got = fread(chunk, 1, sizeof chunk, file)) > 0)
        status = tt_buf_add(self, chunk, got);
    if (status != TT_OK)
        tt_err_wrap(status, "%s", path);
    else if (ferror(file))
        status = tt_err_errno(TT_IO, "%s", path);
    fclose(file);
    return status;
}
