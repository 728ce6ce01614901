/*  replay - experience that stays: whole batches in memory, units drawn from them, priorities.
 *
 *  A *row* is one env at one step; its *clock* is batch * T + t, the same for all envs. A *unit* is a row that can be
 *  trained on: its n-step return is complete (the n rows are there, or the episode ended among them) and so are the frames
 *  that it is stacked with. A unit's number is clock * N + env.
 *
 *  Sequences: with `length` a unit is burn + length rows of an env that follow one another, from the first row of a batch on,
 *  whose number is the unit's: row k of it is unit + k * N. It lives once the frames of the `ahead` rows behind it are there
 *  too, of which the last may be what came after the newest row; and only if its env did not break within it. Episodes may
 *  end in it. Each batch has what the policy carried into its first rows.
 *
 *  Everything is a pure function of what was inserted, the seed and the step: no clock, no arrival order, no number of
 *  learners. So every learner that holds the same batches draws the same units.
 *
 *  Capacity:  logical bytes: living rows and finals of the columns in `store`, and what is carried, one copy. When a batch would not fit, the
 *             oldest whole batches go first; the newest always stays.
 *  Ends:      a terminated row ends its episode with discount 0; a truncated one is bootstrapped from its final
 *             observation; where an env did not go on from where it was (`broken`), its old episode is truncated at what
 *             was its last observation.
 *  Stripes:   unit (clock, env) belongs to stripe (env + floor(clock / C)) mod S; C is the smallest power of two of at
 *             least 16 (1 + ahead). Of sequences all that is counted in batches: batch for clock, and for `ahead` the batches
 *             that burn + length + ahead rows reach into. Shard s of a minibatch is drawn from stripe s. Every holder has all stripes.
 *  Source:    Schaul et al. 2016, "Prioritized Experience Replay" (proportional); docs/internals/replay.md.
 *
 *  Threads: an instance belongs to one thread; the reading functions (const) may be called by many between two changes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/rl/columns.h"
#include "common/rl/norm.h"
#include "common/wire/segment.h"

enum {
    REPLAY_UNITS_MAX = 1 << 20, /* of a step: a shard's draws are numbered with 20 bits */
    REPLAY_AHEAD_MAX = 256,
    REPLAY_DELAY_MAX = 64,
    REPLAY_SEQUENCE_MAX = 4096, /* burn + length */
    REPLAY_PIECE = 4 << 20,     /* bytes of a piece, unless a batch has more */
};
#define REPLAY_ROWS_MAX ((uint64_t)1 << 31)

typedef struct {
    const tt_columns_t *columns; /* borrowed, outlives the replay                                         */
    uint64_t store;              /* bit c: column c is stored; reward, terminated and truncated always are */
    uint32_t N, T;               /* envs, steps of a batch                                                */
    uint64_t capacity;           /* logical bytes; at least one batch                                     */
    uint32_t stripes;            /* S = learner.shards, a power of two                                    */
    uint32_t ahead;              /* n of n-step returns, 1 .. REPLAY_AHEAD_MAX                            */
    uint32_t length;             /* rows of a sequence that are trained on; 0: a unit is one row          */
    uint32_t burn;               /* rows before these, from which a network gets what it remembers        */
    uint32_t carry;              /* floats that an env carries into a batch; 0: they are not stored       */
    double gamma;                /* 0 .. 1                                                                */
    uint32_t stack;              /* frames that `stacked` shows, 1 .. TT_STACK_MAX                        */
    uint32_t stacked;            /* the kept column that replay_gather stacks; not read if stack is 1     */
    tt_pad_t pad;
    float alpha;             /* priority = (x + epsilon)^alpha; 0: uniform, no priorities             */
    float epsilon;           /* > 0 with alpha                                                        */
    uint32_t priority_delay; /* step k sees the priorities of steps up to k - 1 - delay               */
    uint64_t seed;
} replay_cfg_t;

typedef struct replay replay_t; /* opaque */

/*  TT_CONFIG: a number out of its range, a capacity below one batch or one sequence, or over REPLAY_ROWS_MAX rows. */
tt_status_t replay_new(replay_t **self_p, const replay_cfg_t *cfg);
void replay_destroy(replay_t **self_p);

/* ---- what goes in -------------------------------------------------------------------------------------------------- */

/*  Part of a batch: envs first .. first + count - 1 of arrays [T][E] that need not be ours alone (a segment). What stands
 *  in log_prob, value and states is not read, nor are columns that are not stored, nor `carry` unless it is: they may be NULL. */
typedef struct {
    const tt_segment_t *at; /* column, age, carry, last, final_t, final_env, final              */
    uint32_t E, K;          /* envs and finals of these arrays; finals ascend by (t, env)        */
    uint32_t first, count;
    uint32_t env; /* the first one's number in the job                                 */
} replay_part_t;

/*  Copy a batch in, evict what no longer fits, give new units the greatest priority that was ever seen. The parts hold each
 *  of the N envs once, in order. broken[N] (NULL: none): that env did not go on from its last row. An empty replay
 *  begins with any batch, then each is one more than the last. TT_INVALID: that is not so, or a truncation has no final;
 *  nothing was changed. */
tt_status_t replay_insert(
    replay_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken);

/*  Is this what the newest batch was made of? No other can be asked for: it may have been cut by the one behind it. */
bool replay_has(const replay_t *self, uint64_t batch, const replay_part_t *part, uint32_t parts, const uint8_t *broken);

typedef struct {
    uint64_t batches, rows, units; /* living                                                     */
    uint64_t finals;
    uint64_t bytes;        /* logical, as capacity counts                                            */
    uint64_t physical;     /* allocated: with trees, marks and room that is kept for the next batch  */
    uint64_t oldest, next; /* number of the oldest batch, and of the one to come                 */
    float max_priority;
} replay_stats_t;

void replay_stats(const replay_t *self, replay_stats_t *out);
/*  The same number as in there. */
uint64_t replay_oldest(const replay_t *self);

/*  Steps that are owed in all, once `rows` rows were inserted: floor(max(0, rows - start) / every) * steps. */
uint64_t replay_owed(uint64_t rows, uint64_t start, uint64_t every, uint64_t steps);

/* ---- what is drawn ------------------------------------------------------------------------------------------------- */

/*  In `next`: not the frame of row k, but what its episode was cut at. */
#define REPLAY_FINAL_OF (UINT32_C(1) << 31)

/*  A minibatch by position; arrays of the replay, until the next replay_sample, insert or load. Of sequences ret and discount are those of
 *  their rows that are trained on: [length][units]. */
typedef struct {
    uint32_t units;
    const uint64_t *unit;  /* clock * N + env                                                                     */
    const float *weight;   /* prioritised: (n P)^-beta over the largest of the minibatch; uniform: 1 / (n P)      */
    const float *ret;      /* sum of gamma^i * reward over the rows that count: ahead, or fewer to the episode's end */
    const float *discount; /* gamma^(rows that count), 0 after a termination: the target is ret + discount * v(NEXT) */
    const uint32_t *
        next; /* of sequences: [length][units] where NEXT of that row is: the frame of row k of its unit, k counted from the
                              first of `burn` and up to burn + length + ahead - 1; or REPLAY_FINAL_OF | k. NULL: units are rows */
} replay_sample_t;

/*  Does every stripe have something to draw? If not, a step is skipped. */
bool replay_ready(const replay_t *self);

/*  Draw the minibatch of step `total` (steps ever made, < 2^44): `units` in all, shard s has positions
 *  [s * units / S, (s + 1) * units / S). The same step again, nothing inserted between, is the same minibatch. beta: of the
 *  weights; uniform replay does not read it. TT_AGAIN: a stripe is empty. TT_INVALID: units out of range. TT_INTERNAL: the
 *  priorities of a step that should be seen by now were not given. */
tt_status_t replay_sample(replay_t *self, uint64_t total, uint32_t units, float beta, replay_sample_t *out);

/*  What step `total` found, by position: x[units of that step], |TD error| or what stands for it; seen when `priority_delay`
 *  says so, in order of positions, the last of equal units wins. Given again, it replaces
 *  what was given. Uniform replay ignores it. TT_DIVERGED: a number that is not finite; TT_INTERNAL: a negative one, or of no step that is waited for;
 *  nothing was taken. */
tt_status_t replay_priorities(replay_t *self, uint64_t total, const float *x, uint32_t units);

/* ---- what is read -------------------------------------------------------------------------------------------------- */

/*  What is called `unit` here is a unit, or, of sequences, any row that is held: clock * N + env; its stack shows as many of its
 *  episode's frames as are held. */
typedef enum {
    REPLAY_AT,   /* its own row; of sequences, too, the frame that came after the newest row                        */
    REPLAY_NEXT, /* its bootstrap frame: `ahead` rows on, or the final observation of a truncation before that. After
                    a termination: the last row's own frame, to be forwarded for nothing                            */
    REPLAY_FINAL /* of sequences: what the episode was cut at, of a row that REPLAY_FINAL_OF names                  */
} replay_frame_t;

/*  column[c] -> the row of column c as stored (no stack), NULL if it is not stored, or if it is not kept and the
 *  frame is no row's own. Borrowed until the next change. The unit lives. */
void replay_row(const replay_t *self, uint64_t unit, replay_frame_t frame, const void *column[TT_COLUMNS_MAX]);

/*  One column of many units, as stored: out[units][column->bytes], the stacked one [units][stack][column->bytes], oldest
 *  frame first. The units live; the column is stored, and kept if the frame is NEXT. */
void replay_gather(
    const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t frame, uint32_t column, void *out);

/*  Observations of many units as rows of a network (columns.h), side by side: out[units][columns->row]. All observation columns are
 *  stored, and the columns' own stack is this one: every column shows its frames. */
void replay_gather_rows(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t frame, void *out);
/*  The same with the floats of each frame normalised, so that zeros before an episode stay zeros; norm NULL: as they are. What is
 *  stored is what was collected. */
void replay_gather_scaled(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t frame,
    const tt_norm_t *norm, float clip, void *out);

/*  Of sequences. What the policy carried into a unit's first row, [carry] floats, borrowed until the next change; and whether an episode
 *  begins with a row (clock * N + env). */
const float *replay_carried(const replay_t *self, uint64_t unit);
bool replay_begins(const replay_t *self, uint64_t row);

/* ---- what is kept elsewhere, too ------------------------------------------------------------------------------------ */

/*  Each frame that can be shown has a place: a number below replay_places_count, the same as long as it lives, and nobody else's. Who keeps
 *  frames as a network reads them (columns.h; a device's memory) keeps them by it. Place 0 is that of the frame that stands for those
 *  before an episode (columns->zero, where stacks are padded with it; else it is nobody's). After replay_load and replay_warm_finish
 *  all may have moved. All observation columns are stored. */
uint32_t replay_places_count(const replay_t *self);
/*  Of a replay that is not made; 0: its setup is out of limits. */
uint64_t replay_places_of(const replay_cfg_t *cfg);

/*  The places of the frames of many units' rows: place[units][stack], oldest first. What replay_gather_rows makes of their units is made of
 *  these frames. */
void replay_places(const replay_t *self, const uint64_t *unit, uint32_t units, replay_frame_t frame, uint32_t *place);

/*  Frames as a network reads them, side by side, for places first .. first + count - 1; lent for the call. */
typedef tt_status_t (*replay_put_fn)(void *ctx, uint32_t first, const void *frames, uint32_t count);
/*  Show all that changed since batch `from` was yet to come (replay_stats' next): rows and finals of that batch and those behind it, finals
 *  of the one before, and what came after the newest row. From 0 on: all there is, the frame of zeros, too. Frames that lie as they are read are shown where they lie. An error of put is passed on. */
tt_status_t replay_show(const replay_t *self, uint64_t from, replay_put_fn put, void *ctx);

/* ---- what outlives a process --------------------------------------------------------------------------------------- */

/*  A block of its own holds all that changes, with its SHA-256; batches before `from` may be in pieces, which are written once and
 *  kept by the caller, with checksums of the caller's. Loaded together, they draw what this one would draw. */

/*  Batches oldest (replay_stats) .. settled - 1 are not changed any more; the newest may still get finals. */
uint64_t replay_settled(const replay_t *self);
/*  Append living batches first .. next - 1: a piece. And how many bytes those are. TT_INVALID: out is full. */
tt_status_t replay_save_batches(const replay_t *self, uint64_t first, uint64_t next, tt_buf_t *out);
uint64_t replay_batches_size(const replay_t *self, uint64_t first, uint64_t next);
/*  The batch after the last of those from `first` on, up to `end`, that are REPLAY_PIECE bytes together; one at least. */
uint64_t replay_run(const replay_t *self, uint64_t first, uint64_t end);

/*  Append the block. from: batches that are older are in pieces (the oldest living one: there are none). A step whose priorities are
 *  still to come is not part of it: it is drawn again, and is the same. TT_INVALID: out is full. */
tt_status_t replay_save(const replay_t *self, uint64_t from, tt_buf_t *out);
/*  Bytes that replay_save appends. */
uint64_t replay_save_size(const replay_t *self, uint64_t from);

/*  Batches first .. next - 1, as replay_save_batches made them; some may have been evicted since. */
typedef struct {
    const void *bytes;
    size_t size;
    uint64_t first, next;
} replay_piece_t;

/*  Pieces in their order; get(ctx, i) lends one until the next call. Its errors are passed on. */
typedef struct {
    void *ctx;
    uint32_t count;
    tt_status_t (*get)(void *ctx, uint32_t i, replay_piece_t *out);
} replay_pieces_t;

/*  Replace what is here by a saved block and its pieces (NULL: it has none). Nothing need be aligned. TT_DATA: damaged, or saved by
 *  a replay that was set up otherwise (the text says in what); nothing was changed. */
tt_status_t replay_load(replay_t *self, const void *bytes, size_t size, const replay_pieces_t *pieces);

/* ---- what comes from another process ------------------------------------------------------------------------------- */

/*  A replay on its way: pieces, one after the other, while the one that they are of goes on and evicts; at the end its block. Then
 *  both draw the same. Loading a saved one is the same in one go. */
typedef struct replay_warm replay_warm_t; /* opaque */

/*  Set up as `like`. Caller owns *self_p. */
void replay_warm_new(replay_warm_t **self_p, const replay_t *like);
void replay_warm_destroy(replay_warm_t **self_p);
/*  The batch after the last; before the first piece, and after a gap, any may be the first. */
uint64_t replay_warm_next(const replay_warm_t *self);
/*  Batches before `oldest` are evicted where the pieces come from. */
void replay_warm_skip(replay_warm_t *self, uint64_t oldest);
/*  A piece of settled batches. Eviction goes by capacity, as in insertion. TT_DATA: it does not follow, or is damaged; destroy all. */
tt_status_t replay_warm_add(replay_warm_t *self, const replay_piece_t *piece);
/*  The block, made with `from` = replay_warm_next, or with the oldest batch if that is newer. *into becomes what it says. TT_DATA:
 *  as replay_load; *into was not changed, what is here is of no use any more. */
tt_status_t replay_warm_finish(replay_warm_t *self, replay_t *into, const void *bytes, size_t size);
