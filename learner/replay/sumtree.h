/*  sumtree - a row of weights, their sum, and which of them a number below the sum falls on.
 *
 *  A complete binary tree in one array: node 1 is the root, 2i and 2i + 1 are i's children, the leaves are the slots. A
 *  parent is always left + right in double, so the sums depend on the leaves alone, not on the order they were set in.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t slots; /* a power of two                    */
    double *node;   /* [2 * slots], owned; leaves behind */
} sumtree_t;

/*  All weights 0. slots: a power of two. */
void sumtree_init(sumtree_t *self, uint64_t slots);
void sumtree_free(sumtree_t *self);

static inline double sumtree_sum(const sumtree_t *self)
{
    return self->node[1];
}
static inline double sumtree_at(const sumtree_t *self, uint64_t slot)
{
    return self->node[self->slots + slot];
}

/*  Leaves alone, the sums above are stale until refreshed; weight >= 0, finite. */
static inline void sumtree_put(sumtree_t *self, uint64_t slot, double weight)
{
    self->node[self->slots + slot] = weight;
}
/*  Sums above `count` slots from `from` on, round the end; count <= slots. */
void sumtree_refresh(sumtree_t *self, uint64_t from, uint64_t count);
/*  Sums above these slots, in any order, some of them twice. */
void sumtree_refresh_these(sumtree_t *self, const uint64_t *slot, uint32_t count);
/*  0 to as many slots, and their sums. */
void sumtree_clear(sumtree_t *self, uint64_t from, uint64_t count);

/*  The slots that u[i], 0 <= u[i] < sum, fall on when weights stand side by side. A slot's weight is not 0 (the sum must not
 *  be), whatever rounding does to u. */
void sumtree_find(const sumtree_t *self, const double *u, uint64_t *slot, uint32_t count);
