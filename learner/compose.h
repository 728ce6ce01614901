/*  compose - where a segment that is collected again has other bits (at lag > 1, or when envs cannot be saved), rank 0 says
 *  what a batch is made of: the first copies that it got. The others ask for its composition, and for the segments that
 *  they lack or have other copies of. When ranges move, what is unfinished (on the others: what has not begun) and came from a
 *  range of before is forgotten, so that an env always goes on from where its trajectory in the trained batches ended.
 *
 *  compose.c alone reads and writes compose_t.
 *  Threads: the learner's. */
#pragma once
#include "learner/fetch.h"

typedef struct {
    tt_packet_t answer;    /* what rank 0 makes batch `known - 1` of      */
    uint64_t known, taken; /* batches below: their answer came; they have it */
    int64_t known_ms;      /* since when it is known                      */
    uint64_t epoch;        /* of the newest roster                        */
    bool missed;           /* one between it and that before              */
} compose_t;

/*  May a collector's segment count? */
bool compose_fence(const core_t *core, const tt_msg_SEGMENT_t *msg);
/*  A new roster; `leader` was rank 0 before. */
tt_status_t compose_on_roster(core_t *core, uint64_t leader);
tt_status_t compose_answer(core_t *core, const pending_t *to);
bool compose_done(const core_t *core);
tt_status_t compose_turn(core_t *core);
/*  What rank 0 said counts no more: another era, or another rank 0. */
void compose_reset(compose_t *self);
void compose_close(compose_t *self);
