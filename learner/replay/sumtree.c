#include "learner/replay/sumtree.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/status.h"

enum { GROUP = 32 };

void sumtree_init(sumtree_t *self, uint64_t slots)
{
    TT_CHECK(slots && (slots & (slots - 1)) == 0);
    self->slots = slots;
    self->node = tt_array0(tt_mul(2, slots), sizeof *self->node);
}

void sumtree_free(sumtree_t *self)
{
    free(self->node);
    *self = (sumtree_t){0};
}

/*  first .. last without going round the end. */
static void s_refresh(sumtree_t *self, uint64_t first, uint64_t last)
{
    double *node = self->node;
    first += self->slots;
    last += self->slots;
    while (first > 1) {
        first >>= 1;
        last >>= 1;
        for (uint64_t i = first; i <= last; i++)
            node[i] = node[2 * i] + node[2 * i + 1];
    }
}

/*  Round the end, the range is two. */
static void s_each_run(sumtree_t *self, uint64_t from, uint64_t count, bool clear)
{
    TT_DCHECK(count <= self->slots);
    while (count) {
        const uint64_t slot = from & (self->slots - 1);
        const uint64_t run = count < self->slots - slot ? count : self->slots - slot;
        if (clear)
            memset(self->node + self->slots + slot, 0, run * sizeof *self->node);
        s_refresh(self, slot, slot + run - 1);
        from += run;
        count -= run;
    }
}

void sumtree_refresh(sumtree_t *self, uint64_t from, uint64_t count)
{
    s_each_run(self, from, count, false);
}

void sumtree_clear(sumtree_t *self, uint64_t from, uint64_t count)
{
    s_each_run(self, from, count, true);
}

/*  A level at a time for a group: when a parent is summed, both of its children have been. */
static void s_refresh_group(sumtree_t *self, const uint64_t *slot, uint32_t count)
{
    uint64_t at[GROUP];
    double *node = self->node;
    for (uint32_t k = 0; k < count; k++)
        at[k] = self->slots + slot[k];
    for (uint64_t width = self->slots; width > 1; width /= 2) {
        for (uint32_t k = 0; k < count; k++) {
            at[k] /= 2;
            node[at[k]] = node[2 * at[k]] + node[2 * at[k] + 1];
        }
    }
}

void sumtree_refresh_these(sumtree_t *self, const uint64_t *slot, uint32_t count)
{
    for (uint32_t k = 0; k < count; k += GROUP)
        s_refresh_group(self, slot + k, count - k < GROUP ? count - k : GROUP);
}

/*  A level at a time for a group, and without branches: one descent waits for memory at every level, many of them wait
 *  together. */
static void s_find_group(const sumtree_t *self, const double *u, uint64_t *slot, uint32_t count)
{
    const double *node = self->node;
    double rest[GROUP];
    for (uint32_t k = 0; k < count; k++) {
        rest[k] = u[k];
        slot[k] = 1;
    }
    for (uint64_t width = self->slots; width > 1; width /= 2) {
        for (uint32_t k = 0; k < count; k++) {
            const double *child = node + 2 * slot[k];
            const bool right = (rest[k] >= child[0]) & (child[1] > 0); /* it may have been rounded past the end */
            rest[k] -= right * child[0];
            slot[k] = 2 * slot[k] + right;
            if (width > 2)
                __builtin_prefetch(node + 2 * slot[k]);
        }
    }
    for (uint32_t k = 0; k < count; k++)
        slot[k] -= self->slots;
}

void sumtree_find(const sumtree_t *self, const double *u, uint64_t *slot, uint32_t count)
{
    for (uint32_t k = 0; k < count; k += GROUP)
        s_find_group(self, u + k, slot + k, count - k < GROUP ? count - k : GROUP);
}
