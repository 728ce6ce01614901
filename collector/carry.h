/*  carry - what a policy that remembers carries from step to step in each env of a range: a row of C floats (tt_net_carry), zeros where an
 *  episode begins. Where it remembers nothing there are no rows, and nothing is done with them.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/nn/nn.h"
#include "common/rl/columns.h"

typedef struct {
    uint32_t floats; /* C */
    float *at;       /* [envs][C]; NULL where C is 0 */
} carry_t;

/*  Every env is at the beginning of an episode. */
void carry_init(carry_t *self, const tt_columns_t *columns, uint32_t envs);
void carry_free(carry_t *self);
/*  TT_INVALID: the network carries another number of floats than the job. */
tt_status_t carry_check(const tt_columns_t *columns, const tt_net_spec_t *spec);

/*  The row of env i, behind which those of its neighbours lie; NULL where there is none. */
static inline float *carry_row(const carry_t *self, uint32_t i)
{
    return self->at ? self->at + (size_t)i * self->floats : NULL;
}

/*  Their bytes, of a row and as part of a saved env. */
static inline size_t carry_bytes(const carry_t *self)
{
    return self->floats * sizeof *self->at;
}

/*  A step of envs from i on, as tt_inference_run takes it: what it gives takes the place of what it was given. */
static inline tt_carry_t carry_step(const carry_t *self, uint32_t i)
{
    float *row = carry_row(self, i);
    return (tt_carry_t){row, row};
}

/*  A step of envs i .. i + count - 1 is over, by these flags [count]: whose episode has ended begins another. */
void carry_end(const carry_t *self, uint32_t i, uint32_t count, const uint8_t *terminated, const uint8_t *truncated);
/*  Continue env i from the bytes of a row, which need not be aligned; begins: its episode does, whatever they say. TT_DATA: they are no such
 *  row. */
tt_status_t carry_load(const carry_t *self, uint32_t i, const void *bytes, bool begins);
