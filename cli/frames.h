/*  frames - a folder of PNG files, one a picture: 000001.png, 000002.png ..., as programs that make films of them read them.
 *
 *  They are written into a folder beside it, which gets its name when the last is there: as a whole or not at all (common/base/beside.h).
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"

enum { FRAMES_MAX = 999999 };

typedef struct frames frames_t; /* opaque */

/*  The folder itself must not be there, and what it lies in must. TT_UNSUPPORTED: there is no libpng. TT_EXISTS, TT_DENIED, TT_IO. */
tt_status_t frames_new(frames_t **self_p, const char *folder, uint32_t width, uint32_t height);
/*  What was not finished is removed. */
void frames_destroy(frames_t **self_p);
/*  rgb: [height][width][3]. TT_IO; TT_INVALID: one more than FRAMES_MAX. */
tt_status_t frames_add(frames_t *self, const uint8_t *rgb);
/*  Bytes of all files together; no more is added then. TT_EXISTS, TT_IO. */
tt_status_t frames_finish(frames_t *self, uint64_t *bytes);
