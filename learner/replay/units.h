/*  units - which rows can be drawn, with what weight, and how far each of them reaches.
 *
 *  A unit lives when its n-step return is complete, the frames of its stack are held, and it was not evicted. Its priority
 *  is a leaf of its stripe's tree, at slot number mod slots; what does not live has 0.
 *
 *  A sequence is known by its first row, which is a batch's first; it lives when the returns of all its rows are complete and its env
 *  did not break within it. Stripes and trees count batches then, and not clocks: `period`.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "learner/replay/past.h"
#include "learner/replay/stripes.h"
#include "learner/replay/sumtree.h"

typedef struct {
    const past_t *past; /* borrowed                    */
    stripes_t stripes;
    uint32_t period;    /* clocks from one unit of an env to the next: 1, of sequences T */
    sumtree_t *tree;    /* [S]                         */
    uint64_t *next_end; /* [N] scratch of units_add    */
    uint64_t living;
} units_t;

void units_init(units_t *self, const past_t *past);
void units_free(units_t *self);

/*  The newest batch has been added: what it completes lives from now on, with this priority. */
void units_add(units_t *self, float priority);
/*  After loading: of all batches. */
void units_add_all(units_t *self, float priority);
/*  The oldest batch is about to be evicted. */
void units_drop(units_t *self);

float units_priority(const units_t *self, uint64_t clock, uint32_t env);
/*  Of a unit that lives; the sums above are stale until units_sum or units_sum_all. A unit is clock * N + env. */
void units_set(units_t *self, uint64_t clock, uint32_t env, float priority);
void units_sum(units_t *self, const uint64_t *unit, uint32_t count);
void units_sum_all(units_t *self);

/*  The unit of a stripe that has that slot, of those that are held; first: units_first of the stripe. */
uint64_t units_first(const units_t *self, uint32_t stripe);
uint64_t units_of_slot(const units_t *self, uint32_t stripe, uint64_t first, uint64_t slot);

/*  How a unit's run of rows ends: after `rows` rows, in one that `mark` says more of. */
typedef struct {
    past_place_t place; /* of the last one */
    uint32_t rows;
    uint8_t mark; /* ROW_TERMINATED, ROW_CUT: its ends are its episode's; 0: it goes on */
    float ret, discount;
} units_reach_t;

/*  Is its end known: are `ahead` rows from it on there, or does its episode end among those that are? */
bool units_complete(const units_t *self, past_place_t place);
/*  Of a row of which that is so. */
void units_reach(const units_t *self, past_place_t place, units_reach_t *out);

static inline bool units_lives(const units_t *self, uint64_t clock, uint32_t env)
{
    if (clock < past_oldest(self->past) || clock >= past_end(self->past))
        return false;
    const past_place_t place = past_place(self->past, clock, env);
    return place.in->mark[place.at] & ROW_ALIVE;
}
