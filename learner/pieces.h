/*  pieces - pieces of the replay for learners that warm up (warm.h): one at a time, and after each a rest of three times as long as it
 *  took, so that a joiner costs the training a quarter of its time at most while it fetches. But where batches come so fast that it would
 *  never have all, the rest ends once a quarter of what was lent has come: then the training is slower until the joiner is warm.
 *
 *  What is lent has come to rest on every learner: whoever is asked, and whoever leads when the asker takes part, has the same
 *  batches with the same bits.
 *
 *  pieces.c alone reads and writes pieces_t.
 *  Threads: the learner's. */
#pragma once
#include "learner/fetch.h"

typedef struct {
    int64_t rests_until_ns;
    uint64_t rests_until_update;
    bool asked; /* meanwhile */
} pieces_t;

/*  TT_AGAIN: at rest, or nothing is known yet. */
tt_status_t pieces_answer(core_t *core, const pending_t *to);
/*  After each look at the sockets: is the rest over, and somebody waits? */
void pieces_turn(core_t *core);
/*  How long may the learner wait for messages, of timeout_ms? */
int64_t pieces_wait_ms(const core_t *core, int64_t timeout_ms);
/*  Batches of the replay before it can be lent. */
uint64_t pieces_settled(const core_t *core);
