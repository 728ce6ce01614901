#include "learner/replay/stripes.h"
#include <stdlib.h>
#include "common/base/mem.h"
#include "common/base/status.h"

enum { UNITS_OF_A_BLOCK = 16 }; /* so that few units read rows of another block */

uint32_t stripes_log_block(uint32_t rows)
{
    uint32_t log = 0;
    while ((uint64_t)1 << log < (uint64_t)UNITS_OF_A_BLOCK * (rows + 1))
        log++;
    return log;
}

/*  Envs e < N with (e + block) mod S = stripe. */
static uint32_t s_envs(const stripes_t *self, uint32_t stripe, uint32_t block)
{
    const uint32_t first = (stripe - block) & (self->S - 1);
    return first < self->N ? (self->N - 1 - first) / self->S + 1 : 0;
}

void stripes_init(stripes_t *self, uint32_t N, uint32_t S, uint32_t log_C)
{
    TT_CHECK(N && S && (S & (S - 1)) == 0);
    *self = (stripes_t){.N = N, .S = S, .log_C = log_C};
    while (1u << self->log_S < S)
        self->log_S++;
    self->before = tt_array0(tt_mul(S, S + 1), sizeof *self->before);
    for (uint32_t stripe = 0; stripe < S; stripe++) {
        uint32_t *before = self->before + (size_t)stripe * (S + 1);
        for (uint32_t block = 0; block < S; block++)
            before[block + 1] = before[block] + s_envs(self, stripe, block);
    }
}

void stripes_free(stripes_t *self)
{
    free(self->before);
    *self = (stripes_t){0};
}

uint64_t stripes_unit(const stripes_t *self, uint32_t stripe, uint64_t number)
{
    const uint64_t turn = (uint64_t)self->N << self->log_C; /* units of S blocks */
    const uint64_t rest = number % turn, turns = number / turn;
    const uint32_t *before = self->before + (size_t)stripe * (self->S + 1);
    uint32_t low = 0, high = self->S - 1; /* the last block that begins at or before `rest`, and is not empty */
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if ((uint64_t)before[middle] << self->log_C <= rest)
            low = middle;
        else
            high = middle - 1;
    }
    const uint32_t envs = before[low + 1] - before[low];
    const uint64_t within = rest - ((uint64_t)before[low] << self->log_C);
    const uint64_t clock = (((turns << self->log_S) + low) << self->log_C) + within / envs;
    const uint32_t env = (uint32_t)(within % envs << self->log_S) + ((stripe - low) & (self->S - 1));
    return clock * self->N + env;
}

uint64_t stripes_most(const stripes_t *self, uint64_t clocks)
{
    const uint64_t each = (uint64_t)(self->N - 1) / self->S + 1; /* of one clock */
    const uint64_t turns = (clocks >> self->log_C >> self->log_S) + 1;
    const uint64_t by_turns = tt_mul(turns, (uint64_t)self->N << self->log_C);
    return by_turns < clocks * each ? by_turns : tt_mul(clocks, each);
}
