/*  warm - a joiner's way to a replay: pieces of it from the learners that have it, while they go on. What changes (priorities, and
 *  what came since) comes with the state of rank 0, once nothing else is missing.
 *
 *  Rank 0 is asked for the oldest batch that is lacking, and says by it what is evicted; each of the others for a run behind that, one
 *  question to each at a time. So as many pieces are under way as there are learners. What one of them owed when it died another is
 *  asked for. docs/internals/protocol.md, "A learner warms up".
 *
 *  warm.c alone writes warm_t.
 *  Threads: the learner's. */
#pragma once
#include "learner/ask.h"
#include "learner/replay/replay.h"

typedef struct core core_t;

/*  A learner that is asked. */
typedef struct {
    uint64_t instance;
    ask_t *ask;
    uint64_t oldest; /* that it has, as far as it was asked for older ones */
    bool asked, came;
    uint64_t first, until; /* batches that it was asked for (until 0: as many as it likes), or that came */
    tt_packet_t piece;     /* which came */
} warm_source_t;

typedef struct {
    uint32_t era;
    replay_warm_t *replay; /* NULL: nothing is under way */
    warm_source_t *source; /* [sources] */
    uint32_t sources;
    uint64_t settled; /* what can be had, as of the newest answer */
    uint64_t run;     /* batches of a piece; 0 = not known yet  */
    uint32_t damaged; /* pieces that were                        */
    bool answered, ready;
    int64_t moved_ns, looked_ns; /* the newest answer; when it was last asked for what may have come since */
} warm_t;

/*  Look for what has come, and ask for what is lacking. *ready: nothing is, as of a moment ago. TT_UNAVAILABLE: it cannot be had. */
tt_status_t warm_turn(core_t *core, bool *ready);
/*  For a wait: "warming: has the replay up to batch 12 of 60". */
const char *warm_words(const core_t *core, char *out, size_t size);
/*  The batch after the newest that is here. */
uint64_t warm_next(const core_t *core);
/*  Rank 0 says that too much is lacking still. */
void warm_again(core_t *core);
/*  The block of rank 0's state: it and what is here are the replay. TT_UNAVAILABLE: they do not fit. */
tt_status_t warm_finish(core_t *core, const void *block, size_t size);
/*  It is there, or void. */
void warm_reset(core_t *core);
void warm_close(warm_t *self);
