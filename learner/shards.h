/*  shards - the gradient of a minibatch for a run of shards, on all threads of the pool, summed as far as the fixed tree
 *  (common/nn/tree.h) allows within the run.
 *
 *  Shard s of S has rows [s m / S, (s + 1) m / S) of a minibatch of m: equal parts where S divides m. Every shard's gradient has a buffer of its own, and every
 *  addition is one of the tree's, so neither the number of threads nor the run's borders can change a bit.
 *
 *  Threads: the learner's thread; it uses the pool inside. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/nn/nn.h"
#include "learner/pool.h"

typedef struct shards shards_t; /* opaque */

typedef struct {
    const float *const *obs[TT_FRAMES]; /* by frame, by row number; a frame that no stage reads may be NULL */
    const uint32_t *row;                /* [rows] of the minibatch                                          */
    uint32_t rows;                      /* 0: a sum of nothing                                              */
    const tt_objective_t *objective;
    const void *loss_ctx;
} shards_work_t;

/*  net and pool are borrowed; the net needs a lane for every lane of the pool. Memory: a gradient for each shard of a run
 *  that was ever computed, and row pointers. */
shards_t *shards_new(tt_net_t *net, pool_t *pool, uint32_t shards);
void shards_destroy(shards_t **self_p);

/*  The first row of a shard in a minibatch of `rows`. */
uint32_t shards_first(const shards_t *self, uint32_t rows, uint32_t shard);

/*  Compute shards lo .. hi-1. Errors: what the network said. */
tt_status_t shards_compute(shards_t *self, const shards_work_t *work, uint32_t lo, uint32_t hi);

/*  After shards_compute: the sum of a maximal subtree of the run just computed (tt_tree_nodes names them).
 *  tt_net_grad_count floats, borrowed until the next compute. */
const float *shards_node(const shards_t *self, uint32_t node);

/*  Forward rows on all threads; a tt_forward_fn, ctx is the shards_t. */
tt_status_t shards_forward(void *ctx, const float *const *obs, size_t rows, float *const *out);
