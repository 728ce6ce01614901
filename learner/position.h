/*  position - where a learner stands in the run: with weights or without, which update is in hand, how far it is.
 *
 *  position.c alone writes it, one function for each way from one state to the next; everyone else reads.
 *
 *               join, hold                 count, begin
 *      without ------------> between updates ---------> within one --. step
 *      weights <------------  batch n is due <--------- steps of it <'
 *                 reset      ^      |        finish: n + 1, or
 *                            '------'        retract: the same batch anew
 *                             count: a stop rule held
 *
 *  reset leads from anywhere to `without weights`. A learner that joined in the middle of an update is between updates
 *  with `step` optimiser steps of it behind it: it assembles batch n again, and begins, and goes on from there.
 *
 *  Threads: the learner's; it is looked at between optimiser steps only (core.h), so it never changes under a reader. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool holds; /* weights and optimiser state of held_era */
    uint32_t held_era;
    uint64_t update;           /* batch n is waited for, or trained on                                     */
    uint32_t step, step_count; /* optimiser steps of update n that are done; of how many, while begun      */
    uint32_t owed;             /* REPLAY: steps that have a minibatch; without any there is one empty step */
    uint64_t steps;            /* that are done, over the run: the number in GRAD                          */
    uint64_t made;             /* of those, with a minibatch                                               */
    bool begun;                /* batch n was assembled and the algorithm has begun                        */
    uint64_t batches_counted;  /* whose episodes count: n, or n + 1 when batch n is in                     */
    uint64_t trained;          /* transitions, counted when an update ends                                 */
    uint64_t lag_max;          /* updates between a batch and the oldest version that acted in it          */
} position_t;

/*  What a snapshot says of it. */
typedef struct {
    uint64_t update, steps, made, trained, lag_max;
    uint32_t step;
} position_mark_t;

/*  A new era: as if nothing had been. */
void position_reset(position_t *self);
/*  Where a snapshot was made; nothing is held yet. */
void position_join(position_t *self, const position_mark_t *mark);
/*  Weights and optimiser state belong to it from now on. */
void position_hold(position_t *self, uint32_t era);

/*  The episodes of batch n count. */
void position_count(position_t *self);
/*  Update n has so many steps / owes so many, of which none is one of nothing. Between updates. */
void position_plan(position_t *self, uint32_t steps);
void position_owe(position_t *self, uint32_t steps);
/*  Its steps can be made; `oldest` is the oldest version that acted in the batch. */
void position_begin(position_t *self, uint64_t oldest);
/*  The run ends within update n, as if batch n had not come yet. */
void position_uncount(position_t *self);
/*  No step is done, and batch n, which counts, is made of something else: it does not count, and is to begin (again). */
void position_retract(position_t *self);
/*  One step more, with a minibatch or of nothing. */
void position_step(position_t *self, bool made);
/*  The algorithm wants no other, however many were planned. */
void position_end(position_t *self);
/*  All are done: n + 1 it is, with so many transitions more. */
void position_finish(position_t *self, uint64_t transitions);
