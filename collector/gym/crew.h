/*  crew - the workers of a range. When the range is over, those of the next one are made of them: they keep the envs that they will have
 *  slots for, and the interpreter with all that it has imported. Who has no slots then waits for another range, for a while.
 *
 *  Threads: an instance belongs to one thread, and its workers die with that. */
#pragma once
#include <jansson.h>
#include "collector/gym/rows.h"
#include "collector/gym/worker.h"

/*  Slots first .. end - 1. */
typedef struct {
    uint32_t first, end;
} gym_share_t;

typedef struct {
    const char *id, *python, *package; /* of what they play; borrowed                                           */
    json_t *asked;                     /* what each of them is told of it; borrowed                             */
    const tt_clock_t *clock;           /* NULL = the real one                                                   */
    gym_worker_t *worker;              /* [hired] the first `playing` have slots                                */
    gym_share_t (*share)[2];           /* [playing] of each half of the slots; the second one may be empty       */
    uint32_t half;                     /* slots of the first half, 0 = there is only one of all                 */
    uint32_t *share_end; /* [shares] of all, in their order (env_batch.h): those of the first half, then the others */
    uint32_t shares;
    uint32_t playing, hired, room;
    int64_t since_ms; /* since when the others have waited */
} gym_crew_t;

/*  How many play a range of so many slots. wanted: 0 = as many as this process has cores. */
uint32_t gym_crew_size(uint32_t wanted, uint32_t slots);

/*  The first fields are filled in; `playing` will have `slots` slots. from: a crew whose range is over, which has nobody any more then;
 *  NULL = none. */
void gym_crew_gather(gym_crew_t *self, uint32_t playing, uint32_t slots, gym_crew_t *from);

/*  Each gets its slots in these rows, of env `lo` on; who is lacking is started. All at once, since each imports what it needs and makes its
 *  envs; they are busy, and answer with what those are (gym_worker_wait). loads: a state is loaded into each slot first. TT_OS, TT_NOT_FOUND: one cannot
 *  be started. */
tt_status_t gym_crew_share(gym_crew_t *self, const gym_rows_t *rows, uint32_t lo, uint32_t slots, bool loads);

/*  Ends those who have waited for long. */
void gym_crew_dismiss(gym_crew_t *self);

/*  Ends everybody. */
void gym_crew_end(gym_crew_t *self);
