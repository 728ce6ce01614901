/*  draws - numbers of a random history: the same for a seed, wherever it is played.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/base/rng.h"

typedef struct {
    uint64_t seed, count; /* drawn so far */
} draws_t;

/*  ctx: a draws_t. */
static inline uint32_t draws_word(void *ctx)
{
    draws_t *self = ctx;
    uint32_t words[4];
    tt_draw(words, self->seed, TT_STREAM_TEST, 0, self->count++);
    return words[0];
}

/*  0 .. n - 1. */
static inline uint32_t draws_below(draws_t *self, uint32_t n)
{
    return tt_below(draws_word(self), n);
}
