/*  exchange - partial sums of learners on one host, in memory that they share: nobody sends them, whoever needs them reads them there.
 *
 *  Each learner has an area with room for its run's nodes of two steps, an even one and an odd one, and maps those of the others to read
 *  them. An area says which step its nodes are of; when all are of the step in hand, each learner adds them up along the tree, for itself.
 *  Nobody gets beyond a step before all have put theirs there, so nobody is further than one step ahead of another of his generation, and what
 *  is read is not written to; whoever reads when he has no part any more finds another step's number there. What was put stays there,
 *  even if its owner is killed: a peer that is a step behind finds it.
 *
 *  Who finds that somebody's nodes are missing looks for a moment, then says in his area that he sleeps; whoever puts nodes somewhere
 *  wakes those that do.
 *
 *  Threads: an instance belongs to one thread; areas are read by other processes. */
#pragma once
#include "common/base/memfd.h"
#include "common/net/net.h"
#include "learner/view.h"

#define EXCHANGE_NAME "tutti-sums"

typedef struct {
    tt_memfd_t *memory; /* ours, made and not yet sized; borrowed. NULL, or without descriptor: nothing is shared */
    tt_loop_t *loop;    /* borrowed; to be woken there                                                           */
    const char *dir;    /* of this host's sockets                                                                */
    uint32_t index;
    uint64_t instance;
    uint32_t shards;
    size_t count; /* floats of a gradient */
} exchange_cfg_t;

/*  Which nodes: of a step as in GRAD. */
typedef struct {
    uint32_t era;
    uint64_t generation, step;
} exchange_step_t;

typedef struct exchange exchange_t; /* opaque */

/*  Sizes our memory; where that cannot be nothing is shared (the log says why). */
exchange_t *exchange_new(const exchange_cfg_t *cfg);
void exchange_destroy(exchange_t **self_p);

/*  The learners of a new generation, and our rank. */
void exchange_enter(exchange_t *self, const view_t *view);
/*  Do we reach the areas of all of them? Looked for as long as one is missing, less and less often: one that has just come may not have
 *  its size yet. */
bool exchange_reaches(exchange_t *self);
/*  Put the nodes of our run there, in the order of tt_tree_nodes; then look for a moment (some 50 us) whether the others' are there. */
void exchange_put(exchange_t *self, const exchange_step_t *which, const float *const *node);
/*  The sum of all learners' nodes along the tree: out[count]. False: somebody's are not there (yet); out is anything then, and the loop
 *  returns when more have come. */
bool exchange_sum(exchange_t *self, const exchange_step_t *which, float *out);
/*  The index of the first learner whose nodes of that step are missing; UINT32_MAX: nobody's. */
uint32_t exchange_awaited(const exchange_t *self, const exchange_step_t *which);
