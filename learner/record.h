/*  record - what a run has reached: when it was solved, and the best mean return of a checkpoint.
 *
 *  record.c alone writes it; everyone else reads.
 *  Threads: the learner's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t solved_steps; /* env steps when it was, 0 = not yet */
    int64_t solved_ns;     /* 0: not known, it was before the snapshot that we come from */
    double solved_mean;
    double best; /* NAN = none */
} record_t;

/*  A new era. */
void record_reset(record_t *self);
/*  Of a snapshot, whose mean return was `mean`. Whoever leads can say that it is solved, also one that was not there. */
void record_restore(record_t *self, uint64_t solved_steps, double mean, double best);
void record_solve(record_t *self, uint64_t env_steps, int64_t now_ns, double mean);
/*  Is this mean return (NAN = none) better than the best? */
bool record_exceeds(const record_t *self, double mean);
/*  The same; then it is noted. */
bool record_better(record_t *self, double mean);
