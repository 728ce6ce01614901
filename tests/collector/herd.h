/*  herd - a batch of envs whose every number can be told by hand. One sees how many steps its episode has (float64), and the seed it began with
 *  (two bytes of it); it is told 1 or 2, which is its reward. Episodes end after 3 steps (truncated), of odd seeds after 2
 *  (terminated).
 *
 *  What is under way shows nonsense: who looks at a row before recv has named it is found out.
 *
 *  Threads: one; `herd` is everybody's. */
#pragma once
#include "collector/env_batch.h"

typedef struct {
    bool begins;    /* it begins the next episode by itself                        */
    bool backwards; /* rows come in two parts, the last ones first                 */
    bool
        swaps; /* of the shares that are under way, the one that was sent last comes first, so that it gets ahead of all others */
    bool ready;    /* whatever is under way is there                              */
    uint32_t wide; /* slots of each share but the last one, where there are more than that; 0: there are no shares */
    bool later;    /* states are loaded one at a time, the last one first          */
    uint32_t sends, opened, closed;
    uint32_t apart; /* times that a share was sent while others were under way     */
    const char *fail_open, *fail_recv, *fail_loaded;
    bool lost, beyond, early, forgets, across;
    const void *newest, *from; /* the handle that was opened last, and what it might draw upon */
} herd_t;

extern herd_t herd;
extern const tt_env_batch_ops_t herd_ops; /* "Herd-v0" */
