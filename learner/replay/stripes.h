/*  stripes - which stripe a unit belongs to, and its number there.
 *
 *  Block b = floor(clock / C); the stripe of (clock, env) is (env + b) mod S. Within a stripe units are numbered by (clock,
 *  env) without holes. Over S blocks every stripe gets N * C units, whatever N is; within them a table says how many.
 *
 *  Threads: pure. */
#pragma once
#include <stdint.h>

typedef struct {
    uint32_t N, S;
    uint32_t log_S, log_C;
    uint32_t *before; /* [S][S + 1]: envs of a stripe in the blocks 0 .. i - 1 of S; owned */
} stripes_t;

/*  C for units that read `rows` rows and one more. */
uint32_t stripes_log_block(uint32_t rows);

/*  S: a power of two. */
void stripes_init(stripes_t *self, uint32_t N, uint32_t S, uint32_t log_C);
void stripes_free(stripes_t *self);

static inline uint32_t stripes_of(const stripes_t *self, uint64_t clock, uint32_t env)
{
    return (env + (uint32_t)(clock >> self->log_C)) & (self->S - 1);
}

/*  Units of a stripe before this clock: the number of its first one from there on. */
static inline uint64_t stripes_first(const stripes_t *self, uint32_t stripe, uint64_t clock)
{
    const uint64_t block = clock >> self->log_C, within = clock & (((uint64_t)1 << self->log_C) - 1);
    const uint32_t *before = self->before + (uint64_t)stripe * (self->S + 1) + (block & (self->S - 1));
    const uint64_t blocks = ((block >> self->log_S) * self->N + before[0]) << self->log_C;
    return blocks + within * (before[1] - before[0]);
}

/*  The number of a unit in its stripe. */
static inline uint64_t stripes_number(const stripes_t *self, uint64_t clock, uint32_t env)
{
    return stripes_first(self, stripes_of(self, clock, env), clock) + (env >> self->log_S);
}

/*  The way back: clock * N + env. */
uint64_t stripes_unit(const stripes_t *self, uint32_t stripe, uint64_t number);

/*  Units of one stripe in any `clocks` clocks in a row, at most. */
uint64_t stripes_most(const stripes_t *self, uint64_t clocks);
