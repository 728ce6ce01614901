/*  frames - pictures that one of Gymnasium's environments makes of itself, from its worker.
 *
 *  Memory without a name, which the worker opens by our process's entry in /proc: nothing can be left behind. Its path goes to workers in
 *  TUTTI_FRAMES; who finds that makes its env with render_mode "rgb_array" and writes a picture at each reset and step, up to the end
 *  of the env's first episode (python/tutti_env/frames.py). Before the pixels, [height][width][3], stand four uint32: count of pictures,
 *  width, height, and the pictures of 1000 seconds. What stands there is data from outside.
 *  Threads: one; one instance a process. */
#pragma once
#include <stdint.h>
#include "common/base/status.h"

typedef struct gym_frames gym_frames_t; /* opaque */

typedef struct {
    uint32_t width, height; /* 1 .. the side that was allowed  */
    double fps;
    const uint8_t *rgb; /* borrowed until the next read or close */
} gym_frame_t;

/*  Workers that are started from here on until close make pictures of at most side x side pixels. TT_OS. */
tt_status_t gym_frames_open(gym_frames_t **self_p, uint32_t side);
void gym_frames_close(gym_frames_t **self_p);
/*  The newest. TT_INTERNAL: there is none, or it is none (the text says what). */
tt_status_t gym_frames_read(gym_frames_t *self, gym_frame_t *out);
