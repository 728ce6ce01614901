/*  shift - pictures of a replay's minibatch, shifted at random before they are trained on: the part of a row that the encoder reads as a
 *  picture, by at most so many places up or down and left or right, edges repeated. All frames of a stack alike; TT_AT and TT_NEXT each by
 *  its own.
 *
 *  Source:  Kostrikov et al. 2020, "Image augmentation is all you need" (DrQ), arXiv:2004.13649; Yarats et al. 2021, arXiv:2107.09645.
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/shift.h"
#include "common/nn/nn.h"

typedef struct shift shift_t; /* opaque */

/*  The picture that the network's encoder reads, in a row of its observations: by NULL. False: there is none. */
bool shift_picture(const tt_net_spec_t *net, tt_shift_t *out);

/*  Of minibatches of so many units, by at most `most` places (1 .. TT_SHIFT_MAX); the network has a picture. */
shift_t *shift_new(const tt_net_spec_t *net, uint64_t seed, uint32_t units, uint32_t most);
void shift_destroy(shift_t **self_p);

/*  Those of the optimiser step `total` of the run. */
void shift_draw(shift_t *self, uint64_t total);
/*  What was drawn last; borrowed until the next. */
const tt_shift_t *shift_of(const shift_t *self, tt_frame_t frame);
/*  Rows of positions lo .. hi-1 of [units] rows of `bytes`, where they lie. */
void shift_rows(const shift_t *self, tt_frame_t frame, uint32_t lo, uint32_t hi, char *rows, size_t bytes);
