/*  allreduce - this learner's line to the aggregators: partial sums out, finished sums back.
 *
 *  Where all learners of a generation are on one host, and found that they reach each other's memory, they put partial sums there and send
 *  nothing (exchange.h). Which of both a step is, everybody knows from the sum before it; a generation begins with sending.
 *
 *  A gradient that is sent is cut into chunks of 256 Ki floats; chunk c goes to aggregator c modulo their number. Nothing is ever lost
 *  for good: what was sent for the step in hand is kept and sent again to a new generation, to an aggregator that was
 *  restarted, and after a lease of silence. The sum of the last finished step is kept too, and sent as the root on entering
 *  a generation, so that a peer that is one step behind gets it (docs/internals/protocol.md).
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "common/net/net.h"
#include "learner/exchange.h"
#include "learner/view.h"

enum { ALLREDUCE_CHUNK = 262144 }; /* floats */

typedef struct {
    tt_loop_t *loop; /* borrowed; the sockets are served there */
    const tt_keys_t *keys;
    uint32_t index; /* of this learner */
    uint64_t instance;
    uint32_t shards;
    size_t count;       /* floats of a gradient */
    tt_memfd_t *memory; /* as exchange_cfg_t's, and so is */
    const char *dir;
    int64_t resend_ms;
    const tt_clock_t *clock;
} allreduce_cfg_t;

typedef struct allreduce allreduce_t; /* opaque */

allreduce_t *allreduce_new(const allreduce_cfg_t *cfg);
void allreduce_destroy(allreduce_t **self_p);

/*  A new roster: connect to its aggregators, drop those that are gone. In a new generation the step in hand is void (the
 *  caller starts it again) and the kept sum is sent; to a new aggregator everything is sent again. */
tt_status_t allreduce_enter(allreduce_t *self, const view_t *view);
/*  A new era: forget kept sums. */
void allreduce_forget(allreduce_t *self);

/*  Where the partial sum of a node of the run in hand is: out[count], borrowed until those of another step are asked for. */
typedef tt_status_t (*allreduce_node_fn)(void *ctx, uint32_t node, const float **out);

/*  Send the partial sums of `step` for shards lo .. hi-1; ctx is borrowed until the sum is complete. */
tt_status_t allreduce_send(
    allreduce_t *self, uint64_t step, uint32_t lo, uint32_t hi, allreduce_node_fn node, void *ctx);
/*  The finished sum of the step in hand, NULL while it is not complete: the loop returns when more has come. Borrowed until the next send. */
const float *allreduce_sum(allreduce_t *self);
/*  Send again when nothing came for resend_ms. For the waiting loop. */
tt_status_t allreduce_nudge(allreduce_t *self);
/*  The sum of the last finished step and its number, NULL = none is kept. For a joiner, who must be able to help a peer
 *  that is one step behind when whoever told it where we stand is gone. Borrowed. */
const float *allreduce_last_sum(const allreduce_t *self, uint64_t *step);
/*  The joiner's side: keep this sum of `step`. */
void allreduce_keep(allreduce_t *self, uint64_t step, const float *sum);
/*  The step in hand was applied: it is the last finished one now. */
void allreduce_finish(allreduce_t *self);

/*  "aggregator/0" or "learner/1", whom we wait for; "an aggregator to join" when there is none. */
const char *allreduce_awaited(const allreduce_t *self, char *text, size_t size);
