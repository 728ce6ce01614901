/*  places - a number for each frame that a replay can show: for who keeps a copy of them by it (replay.h).
 *
 *    0        the frame of zeros
 *    1 .. N   the tip, by env
 *    N + 1 .. a ring of frames as they came: of each batch its rows, then its finals, round the end
 *
 *  Batches go oldest first, and only the newest gets finals later on, before the next is numbered: so what lives is one run of the
 *  ring, and where each batch's begins (past_batch_t.place) says everything.
 *
 *  Threads: pure. */
#pragma once
#include "learner/replay/past.h"

/*  How many rows and finals can live at once, at most: the size of the ring. */
uint64_t places_most(const past_t *self);

/*  Where the ring goes on behind these frames of a batch. */
static inline uint64_t places_after(const past_t *self, const past_batch_t *batch, uint64_t frames)
{
    return (batch->place + frames) % self->places;
}
static inline uint32_t places_tip(uint32_t env)
{
    return 1 + env;
}
static inline uint32_t places_row(const past_t *self, past_place_t place)
{
    return (uint32_t)(1 + self->cfg.N + places_after(self, place.in, place.at));
}
/*  Of the batch's k-th final. */
static inline uint32_t places_final(const past_t *self, const past_batch_t *batch, uint32_t k)
{
    return (uint32_t)(1 + self->cfg.N + places_after(self, batch, (uint64_t)self->cfg.T * self->cfg.N + k));
}
