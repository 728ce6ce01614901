/*  backoff - how long something that fails again and again is left alone before it is tried again.
 *
 *  A rule, which is data, and a state: failures in a row, and since when it has lived. The first `at_once` failures are not waited
 *  for, the next for `first`, then doubling up to `most`; a life of `steady` or more makes it new. Time is in whatever unit rule
 *  and caller agree on, and comes from the caller's clock. Chance, where many would come at one moment, is the caller's to add.
 *
 *  Threads: pure; a state belongs to one thread. */
#pragma once
#include <stdint.h>

typedef struct {
    uint32_t at_once; /* failures in a row that are not waited for */
    int64_t first;    /* >= 1 */
    int64_t most;     /* >= 1; below `first` it is that, too */
    int64_t steady;   /* who lived so long begins anew */
} tt_backoff_rule_t;

/*  Zeroed: one that was never tried. */
typedef struct {
    uint32_t failures; /* in a row */
    int64_t since;     /* it lives, or was tried */
} tt_backoff_t;

/*  How long to wait after so many failures in a row; 0 = not at all. */
int64_t tt_backoff_wait(const tt_backoff_rule_t *rule, int64_t failures);
/*  How long to wait where `waited` was waited before; 0 = it was not. For who remembers that and no number. */
int64_t tt_backoff_next(const tt_backoff_rule_t *rule, int64_t waited);

/*  It is tried: its life begins. */
void tt_backoff_begin(tt_backoff_t *self, int64_t now);
/*  It failed: counts that, and returns when it may be tried again; never before now. */
int64_t tt_backoff_fail(tt_backoff_t *self, const tt_backoff_rule_t *rule, int64_t now);
