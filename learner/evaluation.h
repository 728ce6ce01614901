/*  evaluation - eval.every, seen from the training: what is due is handed over and what came out is told, between updates.
 *
 *  evaluation.c alone opens core->evaluate; other files hand versions to it (evaluate.h).
 *  Threads: the learner's. */
#pragma once
#include "learner/evaluate.h"

typedef struct core core_t;

tt_status_t evaluation_open(core_t *core);
/*  May training go on? last: nothing may be left to play. When not, it has waited a while. */
tt_status_t evaluation_turn(core_t *core, bool last, bool *done);
