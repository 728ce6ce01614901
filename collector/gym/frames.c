#include "collector/gym/frames.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/mem.h"

#define VARIABLE "TUTTI_FRAMES"

enum { HEAD = 4 };

struct gym_frames {
    int fd;
    uint32_t side;
    uint8_t *rgb; /* of the newest */
    size_t room;
};

tt_status_t gym_frames_open(gym_frames_t **self_p, uint32_t side)
{
    char where[96];
    const int fd = memfd_create("tutti-frames", MFD_CLOEXEC);
    if (fd < 0)
        return tt_err_errno(TT_OS, "memory for pictures");
    snprintf(where, sizeof where, "%u:/proc/%d/fd/%d", side, (int)getpid(), fd);
    if (setenv(VARIABLE, where, 1) != 0) {
        close(fd);
        return tt_err_errno(TT_OS, VARIABLE);
    }
    *self_p = tt_new0(sizeof **self_p);
    (*self_p)->fd = fd;
    (*self_p)->side = side;
    return TT_OK;
}

void gym_frames_close(gym_frames_t **self_p)
{
    gym_frames_t *self = *self_p;
    if (!self)
        return;
    unsetenv(VARIABLE);
    close(self->fd);
    free(self->rgb);
    free(self);
    *self_p = NULL;
}

tt_status_t gym_frames_read(gym_frames_t *self, gym_frame_t *out)
{
    uint32_t head[HEAD];
    if (pread(self->fd, head, sizeof head, 0) != (ssize_t)sizeof head || head[0] == 0)
        return tt_err(TT_INTERNAL, "the environment has made no picture of itself");
    if (head[1] < 1 || head[1] > self->side || head[2] < 1 || head[2] > self->side || head[3] < 1)
        return tt_err(TT_INTERNAL, "the environment's picture is %u x %u, %g a second: at most %u x %u are possible",
            head[1], head[2], head[3] / 1000.0, self->side, self->side);
    const size_t bytes = tt_mul(tt_mul(head[1], head[2]), 3);
    if (bytes > self->room) {
        self->rgb = tt_realloc(self->rgb, bytes);
        self->room = bytes;
    }
    for (size_t at = 0; at < bytes;) {
        const ssize_t got = pread(self->fd, self->rgb + at, bytes - at, (off_t)(sizeof head + at));
        if (got <= 0)
            return tt_err(TT_INTERNAL, "the environment's picture is cut off");
        at += (size_t)got;
    }
    *out = (gym_frame_t){.width = head[1], .height = head[2], .fps = head[3] / 1000.0, .rgb = self->rgb};
    return TT_OK;
}
