#include "cli/frames.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/png_lib.h"
#include "common/base/beside.h"
#include "common/base/file.h"
#include "common/base/mem.h"

struct frames {
    const png_lib_t *png;
    tt_beside_t folder;
    png_image image;
    void *memory; /* owned: a file's, before it is written */
    size_t room;
    uint32_t count;
    uint64_t bytes;
};

static tt_status_t s_err_write(const char *path)
{
    return tt_err_errno(errno == EACCES || errno == EROFS ? TT_DENIED : TT_IO, "cannot write %s", path);
}

static const char *s_name(char out[16], uint32_t number)
{
    snprintf(out, 16, "%06u.png", number);
    return out;
}

tt_status_t frames_new(frames_t **self_p, const char *folder, uint32_t width, uint32_t height)
{
    TT_AUTO(frames) self = tt_new0(sizeof *self);
    self->folder.fd = -1;
    self->image = (png_image){.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    TT_TRY(png_lib_load(&self->png));
    TT_TRY(tt_beside_folder(&self->folder, folder));
    TT_TRY(tt_file_is_free(self->folder.path));
    self->room = PNG_IMAGE_PNG_SIZE_MAX(self->image);
    self->memory = tt_array0(self->room, 1);
    *self_p = self;
    self = NULL;
    return TT_OK;
}

void frames_destroy(frames_t **self_p)
{
    frames_t *self = *self_p;
    if (!self)
        return;
    tt_beside_drop(&self->folder);
    free(self->memory);
    free(self);
    *self_p = NULL;
}

static tt_status_t s_write(frames_t *self, size_t size)
{
    char name[16];
    const int fd = openat(self->folder.fd, s_name(name, ++self->count), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return s_err_write(self->folder.path);
    tt_status_t status = tt_file_write(fd, self->memory, size, NULL) ? TT_OK : s_err_write(self->folder.path);
    if (close(fd) != 0 && status == TT_OK)
        status = s_err_write(self->folder.path);
    self->bytes += size;
    return status;
}

tt_status_t frames_add(frames_t *self, const uint8_t *rgb)
{
    png_image image = self->image;
    png_alloc_size_t size = self->room;
    if (self->count == FRAMES_MAX)
        return tt_err(
            TT_INVALID, "%s: more than %d pictures: fewer episodes, or --max-steps", self->folder.path, FRAMES_MAX);
    if (!self->png->write_to_memory(&image, self->memory, &size, 0, rgb, 0, NULL))
        return tt_err(TT_INTERNAL, "%s: libpng: %s", self->folder.path, image.message);
    return s_write(self, size);
}

tt_status_t frames_finish(frames_t *self, uint64_t *bytes)
{
    TT_TRY(tt_beside_finish(&self->folder, false));
    *bytes = self->bytes;
    return TT_OK;
}
