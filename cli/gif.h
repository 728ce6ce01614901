/*  gif - an animation, made picture by picture.
 *
 *  Format: GIF89a (https://www.w3.org/Graphics/GIF/spec-gif89a.txt). Of each picture only the box that has changed is written, with a
 *          palette of its own: colours are exact where a box has at most 256 of them, else the nearest of 6 x 6 x 6.
 *  Times:  hundredths of a second, and viewers want at least two: of more than 50 pictures a second some are left out. The last one of an
 *          episode stays for a second. It begins anew for ever.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/buf.h"

enum { GIF_SIDE_MAX = 4096, GIF_BYTES_MAX = 256 << 20 };

typedef struct gif gif_t; /* opaque */

/*  1 .. GIF_SIDE_MAX each; fps > 0. */
gif_t *gif_new(uint32_t width, uint32_t height, double fps);
void gif_destroy(gif_t **self_p);
/*  rgb: [height][width][3]. last: of an episode. TT_INVALID: it would be larger than GIF_BYTES_MAX. */
tt_status_t gif_add(gif_t *self, const uint8_t *rgb, bool last);
/*  All of it; borrowed until destroy. No more is added then. */
tt_status_t gif_finish(gif_t *self, const tt_buf_t **out);
