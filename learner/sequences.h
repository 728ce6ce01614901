/*  sequences - the rows of a minibatch of sequences out of a replay, in the order in which the learner's device has their observations.
 *
 *  One table has them all: blocks with a row of each unit, first those that are trained on, so that these are numbered as the minibatch
 *  says (step * units + position), then the burn-in, then those behind; after them what episodes were cut at. Frame k of a unit is its
 *  k-th row, the burn-in's first; there are burn + length + ahead. Only units of a run of positions are looked at: what stands
 *  for others is not theirs.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "learner/replay/replay.h"

typedef struct {
    uint32_t envs, carries; /* N, and the floats that each carries     */
    uint32_t length, burn, ahead, frames;
    uint32_t units, lo, hi; /* of the run: positions lo .. hi-1        */
    uint64_t *row;          /* [frames][units] of the replay, by block */
    uint8_t *begins;        /* [frames][units] an episode begins with it, by block        */
    float *carry;           /* [units][carries] into frame 0                              */
    uint32_t *next;         /* [length][units] the row of the table where a return goes on */
    uint32_t finals;
    uint32_t *final_at;  /* [finals] the row of the table that it follows, in the order of frames */
    uint64_t *final;     /* [finals] the row of the replay whose final it is        */
    uint32_t *final_of;  /* [frames][units] scratch: its number and one more; 0: none */
    uint32_t final_room; /* of final and final_at                                 */
} sequences_t;

void sequences_init(sequences_t *self, const replay_cfg_t *cfg, uint32_t units);
void sequences_free(sequences_t *self);

/*  Of a minibatch that was drawn. */
void sequences_read(sequences_t *self, const replay_t *replay, const replay_sample_t *sample, uint32_t lo, uint32_t hi);

/*  The block of frame k, and that frame's row of the table. */
static inline uint32_t sequences_block(const sequences_t *self, uint32_t k)
{
    return k < self->burn ? self->length + k : k < self->burn + self->length ? k - self->burn : k;
}
static inline uint32_t sequences_at(const sequences_t *self, uint32_t k, uint32_t unit)
{
    return sequences_block(self, k) * self->units + unit;
}
/*  Rows of the table without finals. */
static inline uint32_t sequences_rows(const sequences_t *self)
{
    return self->frames * self->units;
}
