#include "common/nn/tree.h"
#include <stdlib.h>
#include "common/base/mem.h"

typedef struct {
    float *data; /* NULL: not there */
    void *owner;
} slot_t;

struct tt_tree {
    uint32_t shards;
    size_t count;
    tt_tree_release_fn release;
    void *ctx;
    slot_t *slot; /* [2 * shards], 0 unused */
};

bool tt_tree_shards_ok(uint32_t shards)
{
    return shards >= 1 && shards <= TT_SHARDS_MAX && (shards & (shards - 1)) == 0;
}

void tt_tree_run(uint32_t shards, uint32_t learners, uint32_t rank, uint32_t *lo, uint32_t *hi)
{
    TT_CHECK(rank < learners && learners <= shards);
    *lo = (uint32_t)((uint64_t)rank * shards / learners);
    *hi = (uint32_t)((uint64_t)(rank + 1) * shards / learners);
}

void tt_tree_span(uint32_t shards, uint32_t node, uint32_t *lo, uint32_t *hi)
{
    TT_CHECK(node >= 1 && node < 2 * shards);
    uint32_t width = 1;
    for (; node < shards; node *= 2)
        width *= 2;
    *lo = node - shards;
    *hi = *lo + width;
}

size_t tt_tree_nodes(uint32_t shards, uint32_t lo, uint32_t hi, uint32_t nodes[TT_TREE_RUN_MAX])
{
    TT_CHECK(tt_tree_shards_ok(shards) && lo <= hi && hi <= shards);
    size_t count = 0;
    while (lo < hi) {
        uint32_t node = shards + lo, width = 1;
        while (node > 1 && node % 2 == 0 && lo + 2 * width <= hi) { /* a left child, and its sibling is ours, too */
            node /= 2;
            width *= 2;
        }
        nodes[count++] = node;
        lo += width;
    }
    return count;
}

tt_status_t tt_tree_new(tt_tree_t **self_p, uint32_t shards, size_t count, tt_tree_release_fn release, void *ctx)
{
    if (!tt_tree_shards_ok(shards))
        return tt_err(TT_INVALID, "%u shards: must be a power of two from 1 to %d", shards, TT_SHARDS_MAX);
    tt_tree_t *self = tt_new0(sizeof *self);
    self->shards = shards;
    self->count = count;
    self->release = release;
    self->ctx = ctx;
    self->slot = tt_array0(2 * (size_t)shards, sizeof *self->slot);
    *self_p = self;
    return TT_OK;
}

void tt_tree_destroy(tt_tree_t **self_p)
{
    tt_tree_t *self = *self_p;
    if (!self)
        return;
    tt_tree_reset(self);
    free(self->slot);
    free(self);
    *self_p = NULL;
}

size_t tt_tree_count(const tt_tree_t *self)
{
    return self->count;
}

static void s_release(tt_tree_t *self, void *owner)
{
    if (self->release)
        self->release(self->ctx, owner);
}

static void s_clear(tt_tree_t *self, uint32_t node)
{
    slot_t *slot = &self->slot[node];
    if (!slot->data)
        return;
    slot->data = NULL;
    s_release(self, slot->owner);
}

static bool s_covered(const tt_tree_t *self, uint32_t node)
{
    for (; node; node /= 2)
        if (self->slot[node].data)
            return true;
    return false;
}

/*  What lies below a node that came whole. */
static void s_clear_below(tt_tree_t *self, uint32_t node)
{
    for (uint32_t first = 2 * node, width = 2; first < 2 * self->shards; first *= 2, width *= 2)
        for (uint32_t i = 0; i < width; i++)
            s_clear(self, first + i);
}

/*  The same sum as tt_grad_add: adding element by element has one result, whatever the width of the registers. */
static void s_add(float *restrict left, const float *restrict right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        left[i] += right[i];
}

bool tt_tree_add(tt_tree_t *self, uint32_t node, float *data, void *owner)
{
    TT_CHECK(node >= 1 && node < 2 * self->shards);
    if (s_covered(self, node)) {
        s_release(self, owner);
        return self->slot[1].data != NULL;
    }
    s_clear_below(self, node);
    self->slot[node] = (slot_t){data, owner};
    while (node > 1 && self->slot[node ^ 1].data) {
        const uint32_t left = node & ~1u, right = node | 1u;
        s_add(self->slot[left].data, self->slot[right].data, self->count);
        s_clear(self, right);
        self->slot[left / 2] = self->slot[left];
        self->slot[left].data = NULL;
        node /= 2;
    }
    return node == 1;
}

const float *tt_tree_at(const tt_tree_t *self, uint32_t node, void **owner)
{
    TT_CHECK(node >= 1 && node < 2 * self->shards);
    if (owner)
        *owner = self->slot[node].owner;
    return self->slot[node].data;
}

void tt_tree_reset(tt_tree_t *self)
{
    for (uint32_t node = 1; node < 2 * self->shards; node++)
        s_clear(self, node);
}
