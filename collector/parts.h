/*  parts - what a batch of a range is written into: one segment block, or several where one would be too large (segment.h), each for some of
 *  its envs. Every number goes to its place when it is made.
 *
 *  Threads: an instance belongs to one thread. */
#pragma once
#include "collector/blocks.h"
#include "collector/carry.h"
#include "collector/finals.h"
#include "collector/rollout.h"
#include "collector/run.h"
#include "collector/vec.h"

typedef struct {
    const tt_columns_t *columns; /* borrowed, as are the next three           */
    const tt_vec_t *vec;         /* the envs                                  */
    const carry_t *carry;        /* what is carried in each of them           */
    blocks_t *blocks;            /*                                           */
    uint32_t T, E;               /* steps of a batch, envs of the range       */
    uint32_t most;               /* envs that one segment holds               */
    size_t env_bytes;            /* of an env that is saved; 0 = it cannot be */
} parts_cfg_t;

/*  The envs of one segment, and its block. */
typedef struct {
    uint32_t first, E; /* of the range            */
    void *block;       /* NULL = no batch in hand */
    tt_segment_t at;
    finals_t finals;
} part_t;

typedef struct {
    parts_cfg_t cfg;
    part_t *part; /* [count] what the range is cut into */
    uint32_t count;
    uint32_t widest;       /* the most envs of one                  */
    uint32_t block_finals; /* for how many each block has room      */
    void *staged_block;
    tt_segment_t staged; /* where there are several: what a step gave, for all envs of the range; T = 1 */
} parts_t;

/*  self: to be freed, whatever comes back. TT_INVALID: not even a step of the range has a size. */
tt_status_t parts_init(parts_t *self, const parts_cfg_t *cfg);
void parts_free(parts_t *self);

/*  A batch begins, with the envs as they are: blocks are taken, where the batch before has not left them. */
void parts_begin(parts_t *self);
bool parts_in_hand(const parts_t *self);
void parts_abandon(parts_t *self);

/*  Where the rows of step t lie in the block of one. */
static inline void *parts_place(const parts_t *self, const part_t *part, uint32_t t, uint32_t column)
{
    return (char *)part->at.column[column] + (size_t)t * part->E * self->cfg.columns->at[column].bytes;
}

/*  Where what step t gives is written, for all envs of the range: at once to its place if there is one block. */
static inline void *parts_row(const parts_t *self, uint32_t t, uint32_t column)
{
    return self->count == 1 ? parts_place(self, &self->part[0], t, column) : self->staged.column[column];
}
/*  What a run sees before its step: `seen` as frames_current gives it. */
void parts_put_seen(const parts_t *self, const run_t *run, void *const *seen);
/*  What a run's step has given; what its envs were cut at is set aside, with what was carried there, and nothing is carried into an episode
 *  that begins. */
void parts_put_step(parts_t *self, const run_t *run);

/*  After the last step: what is seen then, and at the truncations; from here on `at` of each part is the whole segment. */
void parts_put_ends(parts_t *self);
/*  Where the values of the last observations are written, for all envs of the range; and then to their places. */
float *parts_last_value(const parts_t *self);
void parts_put_last_value(const parts_t *self);
/*  Of a saved env, with what is carried on; 0 = it cannot be saved. */
size_t parts_state_bytes(const parts_t *self);
/*  TT_INTERNAL, TT_UNAVAILABLE: as tt_vec_save. */
tt_status_t parts_put_states(const parts_t *self);
tt_segment_shape_t parts_shape(const parts_t *self, const part_t *part);
/*  The blocks become frames, which the caller owns: out[count]. No batch is in hand. */
void parts_wrap(parts_t *self, rollout_segment_t *out);
