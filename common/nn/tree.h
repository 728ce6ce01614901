/*  tree - the fixed binary tree along which shard gradients are summed, so that any split over any number of learners,
 *  in any order of arrival, gives the same bits.
 *
 *  S shards (a power of two) are the leaves of a complete binary tree in heap numbering: node 1 is the root, node i has
 *  children 2i and 2i+1, the leaf of shard s is S + s. A node's sum is left + right, element by element.
 *
 *  Threads: pure functions; a tt_tree_t belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"

enum {
    TT_SHARDS_MAX = 32768,
    TT_TREE_RUN_MAX = 32 /* most nodes that tt_tree_nodes can name */
};

/*  A power of two in 1 .. TT_SHARDS_MAX? */
bool tt_tree_shards_ok(uint32_t shards);

/*  The shards [*lo, *hi) of `rank` among `learners` <= shards: contiguous and near equal. */
void tt_tree_run(uint32_t shards, uint32_t learners, uint32_t rank, uint32_t *lo, uint32_t *hi);

/*  The shards [*lo, *hi) below `node`, 1 <= node < 2 * shards. */
void tt_tree_span(uint32_t shards, uint32_t node, uint32_t *lo, uint32_t *hi);

/*  The maximal aligned subtrees that make up the shards [lo, hi), from left to right: the nodes for which a learner with
 *  that run sends one partial sum each. Returns how many were written. */
size_t tt_tree_nodes(uint32_t shards, uint32_t lo, uint32_t hi, uint32_t nodes[TT_TREE_RUN_MAX]);

/*  Sums of one chunk: takes nodes in any order and adds siblings as soon as both are there, left += right in place, so
 *  each number is read once. A node that is already covered (it, or one above it, is there) is dropped; a node that
 *  covers others which are there replaces them: their bits are the same. */
typedef struct tt_tree tt_tree_t;

/*  Called when the tree no longer needs what came with `owner`; may be NULL. */
typedef void (*tt_tree_release_fn)(void *ctx, void *owner);

/*  count: floats of every node. TT_INVALID: shards is no power of two or too large. Caller owns *self_p. */
tt_status_t tt_tree_new(tt_tree_t **self_p, uint32_t shards, size_t count, tt_tree_release_fn release, void *ctx);
void tt_tree_destroy(tt_tree_t **self_p);
size_t tt_tree_count(const tt_tree_t *self);

/*  Take the sum of `node` (1 <= node < 2 * shards). data[count] stays where it is, may be overwritten and must live until
 *  release(ctx, owner). Returns true when the root is there (now or before). */
bool tt_tree_add(tt_tree_t *self, uint32_t node, float *data, void *owner);

/*  The sum of a node if it is there as one, else NULL. Borrowed. `owner` (may be NULL) gets what came with it. */
const float *tt_tree_at(const tt_tree_t *self, uint32_t node, void **owner);

/*  Release everything; empty and usable again. */
void tt_tree_reset(tt_tree_t *self);
