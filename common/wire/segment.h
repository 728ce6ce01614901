/*  segment - one (batch, contiguous envs) of experience: the body of SEGMENT, the same in memory and on the wire. A collector's
 *  range is one segment, or several where one would be too large.
 *
 *  One block of bytes, one array each, aligned to 64 bytes, little-endian, row-major, in this order:
 *    every column c of the job's list (common/rl/columns.h): [T][E][elements of c]; rewards are raw
 *    age u32 [E]: steps of its episode that an env has behind it at the start
 *    every column of the observation: [B][E][elements]: the B frames before the first, oldest first ("before"); those older than
 *        the env's episode are zeros. B = columns->before, 0 where nothing is stacked
 *    carry f32 [E][C]: what the policy carries into each env's first step, zeros where an episode begins with it. C = columns->carry, 0 where it
 *        remembers nothing
 *    every column with `keep`: [E][elements]: after the last step ("last")
 *    final_t u32 [K], final_env u32 [K]: the truncations, 0-based in the range, ordered by (t, env)
 *    every column with `keep`: [K][elements]: what the episodes were cut at ("final")
 *    states u8 [E][S]: saved envs, after the last step, each followed by what the policy carries on from there, f32 [C]
 *  K = `finals` is known only when the segment is full, so what depends on it comes last.
 *
 *  Threads: pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "common/base/status.h"
#include "common/rl/columns.h"

typedef struct {
    const tt_columns_t *columns; /* borrowed                       */
    uint32_t T, E;
    uint32_t K; /* finals                         */
    uint32_t S; /* bytes of one env's saved state, with what is carried on; 0 = it cannot be saved */
} tt_segment_shape_t;

/*  A range of envs cut into segments of at most `most` envs, which are as equal as they can be: how many; and of the i-th, its first env,
 *  counted from the range's, and how many it has. */
uint32_t tt_segment_parts(uint32_t envs, uint32_t most);
void tt_segment_part(uint32_t envs, uint32_t most, uint32_t i, uint32_t *first, uint32_t *count);

/*  Pointers into one block; by number of the column. last, final: NULL where the column is not kept. */
typedef struct {
    void *column[TT_COLUMNS_MAX];
    uint32_t *age;
    void *before[TT_COLUMNS_MAX]; /* NULL where there are none */
    float *carry;                 /* NULL where there is none */
    void *last[TT_COLUMNS_MAX];
    uint32_t *final_t, *final_env;
    void *final[TT_COLUMNS_MAX];
    uint8_t *states;
    /* the same as column[], for those that every list has */
    float *reward;
    uint8_t *terminated, *truncated;
    /* NULL where the list has them not */
    float *log_prob, *value, *last_value, *final_value;
} tt_segment_t;

/*  Bytes of the block for this shape. TT_INVALID: it does not fit size_t or is over 1 GiB. */
tt_status_t tt_segment_size(const tt_segment_shape_t *shape, size_t *bytes);

/*  The pointers, given the block's start (64-byte aligned when it is ours; a received frame may be unaligned: copy it). */
void tt_segment_map(const tt_segment_shape_t *shape, void *block, tt_segment_t *out);

/*  Stacks: how many frames of its episode the observation of step t has before it, as far as a stack shows them and the block has
 *  them; the k-th of these, k = 1 .. that, k = 0 its own: number *index of the arrays that are returned, by column. t = T: after the last
 *  step, whose own frame is in `last`. */
uint32_t tt_segment_back(const tt_segment_shape_t *shape, const tt_segment_t *at, uint32_t t, uint32_t env);
void *const *tt_segment_frame(
    const tt_segment_shape_t *shape, const tt_segment_t *at, uint32_t t, uint32_t env, uint32_t k, size_t *index);

/*  Is a received block sound? Size equals tt_segment_size, flags are 0 or 1, finals ascending, in range and truncated,
 *  their count equal to the truncations, all floats finite, choices in range, a mask 0 or 1 with a choice left for every
 *  element, no action chosen that it forbids, nothing carried into an episode that begins. TT_PROTOCOL with the column's name. */
tt_status_t tt_segment_check(const tt_segment_shape_t *shape, const void *block, size_t bytes);

/*  Rows of one column, wherever they lie: numbers that can be (finite, a choice that there is, a mask that leaves one),
 *  whoever made them. TT_PROTOCOL without the column's name. */
tt_status_t tt_segment_check_column(const tt_columns_t *columns, uint32_t c, const void *at, size_t rows);
