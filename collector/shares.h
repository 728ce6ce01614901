/*  shares - who of a range steps, and who is waited for: each share of the vec (vec.h) goes its round by itself, from one end of a batch to
 *  the next. Those side by side that are at the same step can be seen at once.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/run.h"
#include "collector/vec.h"

/*  Envs that go their round together. */
typedef struct {
    run_t at;
    bool plays; /* it is making another step */
} share_t;

typedef struct {
    tt_vec_t *vec; /* borrowed          */
    uint32_t T;    /* steps of a batch  */
    share_t *share;
    uint32_t count; /* of them, >= 1    */
} shares_t;

void shares_init(shares_t *self, tt_vec_t *vec, uint32_t T);
void shares_free(shares_t *self);

/*  All are at the first step of a batch; nobody plays. */
void shares_begin(shares_t *self);
/*  Steps of the batch that everybody has made. */
uint32_t shares_least(const shares_t *self);

/*  The first run of shares from *from on that rest and have steps to make: *from .. *end - 1. False: there is none. */
bool shares_idle(const shares_t *self, uint32_t *from, uint32_t *end);
/*  The end of the run that begins with that share, whatever it does. */
uint32_t shares_end(const shares_t *self, uint32_t from);
/*  Their envs. */
run_t shares_run(const shares_t *self, uint32_t from, uint32_t end);

/*  All of these make their next step, from and into arrays of the whole range; errors as tt_vec_send. */
tt_status_t shares_send(shares_t *self, uint32_t from, uint32_t end, const void *const *action, float *reward,
    uint8_t *terminated, uint8_t *truncated);
/*  One whose step is over: its envs, as they were before it. One must play. As tt_vec_recv. */
tt_status_t shares_recv(shares_t *self, bool waits, run_t *out);
/*  What plays makes its step, which nobody hears of. TT_INTERNAL, TT_UNAVAILABLE: an env failed in it, and nobody plays any more. */
tt_status_t shares_settle(shares_t *self);
/*  Passes status on; where it is a failure, nobody waits any more for what plays. */
tt_status_t shares_lost(shares_t *self, tt_status_t status);
