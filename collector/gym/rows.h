/*  rows - the memory that a handle and its workers share: an anonymous file (memfd) that nobody can find by name and that is
 *  gone with the last process that has it. Its size is sealed, so that no worker can take it from under us.
 *
 *  Threads: an instance belongs to one thread; a worker writes the rows of its own slots. */
#pragma once
#include <jansson.h>
#include <stdatomic.h>
#include "collector/area.h"
#include "collector/env_batch.h"
#include "common/base/status.h"
#include "common/rl/columns.h"

/*  What a worker is doing, as python/tutti_env/worker.py says it. */
typedef enum { GYM_OPENING, GYM_BEGINNING, GYM_STEPPING, GYM_CLOSING, GYM_SAVING, GYM_LOADING } gym_doing_t;

/*  What a slot is to do, beside what env_batch.h has: its state into its row of `state`, and from there. */
enum { GYM_SAVE = TT_ENV_REST + 1, GYM_LOAD };

/*  How far a worker is; what it writes here is for messages and deadlines only. */
typedef struct {
    _Atomic int32_t slot, doing;
    _Atomic int32_t again; /* steps made again by the load that it is at, or was */
} gym_progress_t;

/*  Orders and answers of a worker, counted: half h of its slots is to be played when asked[h] moves on, and has been when done[h] is the same
 *  again. The rest says who waits for a byte: the worker for an order, the collector for its answer. Whoever sends the byte takes that back.
 *  No two workers have one such word together: one that was slow to take it back would do so when somebody else is waited for. */
typedef struct {
    _Atomic uint32_t asked[2], done[2], worker_sleeps, collector_sleeps;
} gym_post_t;

/*  Of all of them: some worker has answered since the collector looked. */
typedef struct {
    _Atomic uint32_t come;
} gym_bell_t;

typedef struct {
    int fd; /* -1 = none */
    unsigned char *at;
    size_t size;
    size_t progress, post; /* of worker 0, from the start; a cache line each */
    size_t bell;           /* from the start */
    json_t *layout;        /* where everything lies, for workers */
    size_t room;           /* bytes of a slot's saved state, 0 = it is not saved                 */
    unsigned char *states; /* [count][room]: how long it is (uint32_t, 0 = none), then it, zeros */
    void *obs[TT_COLUMNS_MAX], *final[TT_COLUMNS_MAX], *action[TT_COLUMNS_MAX];
    struct {
        area_t *area;         /* NULL = observations are as workers write them      */
        uint8_t *large[2];    /* [count] screens each: observations, and finals     */
        uint8_t *small[2];    /* the same as `obs` and `final` have them, ours alone */
        size_t whole, shrunk; /* bytes of one                                       */
    } screen;
    tt_env_rows_t rows; /* points into the memory, and to these three */
} gym_rows_t;

/*  Zeroed memory for count slots of the table's spaces and states. shown: what workers write of an observation: the table's, or the
 *  larger screens that it is made of. TT_OS. gym_rows_free takes what is half made, too. */
tt_status_t gym_rows_init(
    gym_rows_t *self, const tt_env_ops_t *env, const tt_space_t *shown, uint32_t count, uint32_t workers);
/*  A worker has played these slots: their screens, if there are any, as the table has them. */
void gym_rows_shrink(gym_rows_t *self, uint32_t first, uint32_t count);
/*  A slot's saved state, from its row and to it: [room] bytes. */
void gym_rows_state(const gym_rows_t *self, uint32_t slot, void *bytes);
void gym_rows_put_state(gym_rows_t *self, uint32_t slot, const void *bytes);
void gym_rows_free(gym_rows_t *self);
/*  Where a worker's progress lies, from the start of the memory, and there. */
size_t gym_rows_progress_at(const gym_rows_t *self, uint32_t worker);
const gym_progress_t *gym_rows_progress(const gym_rows_t *self, uint32_t worker);
/*  The same of its orders. */
size_t gym_rows_post_at(const gym_rows_t *self, uint32_t worker);
gym_post_t *gym_rows_post(const gym_rows_t *self, uint32_t worker);
gym_bell_t *gym_rows_bell(const gym_rows_t *self);
