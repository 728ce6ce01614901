/*  block - what the losses share: a block of rows as columns of TT_BLOCK numbers (tt_loss_block_t), and the one order in which
 *  such a column is added up. A loss is written with these names alone, and compiled twice:
 *
 *  C:    a column is an array, EACH_ROW a loop over it. Inlined into each clone of a loss, so that its loops become that
 *        processor's vectors.
 *  CUDA: a block is a warp and a row a lane of it (common/nn/cuda/loss.cuh): a column is a number of each lane, EACH_ROW runs once,
 *        sums go from lane to lane.
 *  Threads: pure. */
#pragma once
#include "common/nn/loss.h"
#ifdef __cplusplus
#include "common/nn/cuda/loss.cuh"
#else
#include <string.h>
#include "common/base/vmath.h"

#define BLOCK_FN                               static inline __attribute__((always_inline))
#define BLOCK_CLONES                           TT_CLONES
#define BLOCK_CUDA(objective, loss)            /* the launchers of an objective's loss on a card */
#define BLOCK_CUDA_LOSS(objective, loss)       /* the same, of an objective that draws */
#define BLOCK_CUDA_DRAW(objective, draw, back) /* and of its draw, and of the way back */
#define EACH_ROW(r)                            for (size_t r = 0; r < TT_BLOCK; r++)
#define EACH_GIVEN_ROW(r, the_block)           for (size_t r = 0; r < (the_block)->rows; r++) /* not those behind the last */
#define EACH_COLUMN(a, first, columns)         for (size_t a = (first); a < (columns); a++)
#define EACH_IN_TURN(a, numbers)               for (uint32_t a = 0; a < (numbers); a++) /* of an action */
#define EACH_NUMBER(a, numbers)                for (uint32_t a = 0; a < (numbers); a++) /* of an action, each by itself */

/*  What is worked on where it lies; on a card, a copy. */
#define BLOCK_OWN(type, name, from)            type *const name = from
#define BLOCK_MAKE(type, name, to)             type *const name = to
#define BLOCK_MADE(name, to)                   ((void)0)

typedef float col_t[TT_BLOCK]; /* one number for each row of a block */
typedef const float *col_in;   /* as arguments                       */
typedef float *col_out;
typedef int32_t choices_t[TT_BLOCK];
typedef int32_t *choices_out;

_Static_assert(TT_BLOCK == 32, "block_sum adds 32 numbers");

/*  32 -> 16 -> 8 -> 4 -> 2 -> 1, always. */
BLOCK_FN float block_sum(col_in col)
{
    float a[16], b[8], c[4];
    for (int i = 0; i < 16; i++)
        a[i] = col[i] + col[i + 16];
    for (int i = 0; i < 8; i++)
        b[i] = a[i] + a[i + 8];
    for (int i = 0; i < 4; i++)
        c[i] = b[i] + b[i + 4];
    return (c[0] + c[2]) + (c[1] + c[3]);
}

/*  A sum of the block, to what is added up over blocks: at most once a block to each place, for a card adds the blocks' later. */
BLOCK_FN void block_add(float *to, float sum)
{
    *to += sum;
}

BLOCK_FN void block_zero(col_out col)
{
    memset(col, 0, sizeof(col_t));
}

BLOCK_FN void block_no_choices(choices_out col)
{
    memset(col, 0, sizeof(choices_t));
}

/*  A column of a head. */
BLOCK_FN void block_load(const float *from, col_out to)
{
    memcpy(to, from, sizeof(col_t));
}

/*  Columns of one head to those of another. */
BLOCK_FN void block_copy(size_t columns, const float *from, float *to)
{
    memcpy(to, from, columns * sizeof(col_t));
}
#endif
